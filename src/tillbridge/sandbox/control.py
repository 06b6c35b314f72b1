"""Control API, the service's records: state, orders, stores, communities, consent, menus.

Bodies are as strict as the service's own, so that a typo in a test says so.
"""

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from tillbridge.sandbox.bodies import StoreStatus
from tillbridge.sandbox.bodies import TaxComponent as ItemTaxComponent
from tillbridge.sandbox.catalogue import is_available
from tillbridge.sandbox.endpoints import (
    Call,
    Endpoint,
    Unread,
    any_community,
    any_order,
    any_parent,
    any_store,
    anyone,
)
from tillbridge.sandbox.menus import NextJob, job_body
from tillbridge.sandbox.orders import CommunityBasket, CommunityLine, parent_body
from tillbridge.sandbox.pricing import Basket, PlacementError
from tillbridge.sandbox.settings import StoreSeed
from tillbridge.sandbox.state import (
    Community,
    Item,
    Link,
    Merchant,
    Order,
    ParentOrder,
    Store,
    World,
    new_id,
    plain,
)
from tillbridge.sandbox.stores import integration_body
from tillbridge.sandbox.validation import (
    Body,
    Email,
    Empty,
    Id,
    Json,
    Number,
    OptionalText,
    ServiceError,
    Text,
    wrong,
)
from tillbridge.sandbox.webhooks import delivery_body, first_attempt

# The state


async def _state(call: Call[None, Unread]) -> Json:
    """Everything as it is now: webhook secrets included, tokens not."""
    world, now = call.sandbox.world, call.sandbox.clock.now_ms()
    return {
        "clock": {"now": call.sandbox.clock.timestamp(), "speed": call.sandbox.clock.speed},
        "auto_consent": world.auto_consent,
        "apps": list(world.apps),
        "merchants": plain(list(world.merchants.values())),
        "stores": {
            store.store_id: {
                **plain(store),
                "integrations": [link_body(link, now) for link in world.links_of(store.store_id)],
            }
            for store in world.stores.values()
        },
        "communities": {
            community.community_id: _community_body(world, community, now)
            for community in world.communities.values()
        },
        "orders": [order_body(order) for order in world.orders.values()],
        "jobs": [job_body(job) for job in world.jobs.values()],
        "tokens": call.sandbox.tokens.summary(),
        "channel_events": world.channel_events,
        "webhooks": {"paused": call.sandbox.webhooks.paused},
        "deliveries": [
            delivery_body(delivery) for delivery in call.sandbox.webhooks.deliveries.values()
        ],
        "rejected_items": world.rejected_items,
    }


def link_body(link: Link, now_ms: int) -> dict[str, Any]:
    """An app's side of a store. The integration's fields are absent when there is none."""
    catalogue, integration = link.catalogue, link.integration
    body: dict[str, Any] = {"app_id": link.app_id}
    if integration is not None:
        body = {
            **integration_body(link, integration),
            "webhook_secret": integration.webhook_secret,
        }
    return {
        **body,
        **plain(link, "app_id", "store", "integration", "catalogue"),
        **plain(catalogue, "items", "add_ons", "snoozed"),
        "integration_status": link.integration_status,
        "items": {key: _sellable_body(item, now_ms) for key, item in catalogue.items.items()},
        "add_ons": {key: _sellable_body(one, now_ms) for key, one in catalogue.add_ons.items()},
    }


def _sellable_body(thing: Item, now_ms: int) -> dict[str, Any]:
    """As a customer finds it now; `snooze_until` only while the snooze lasts."""
    body = {**plain(thing, "fields"), **thing.fields}
    available = is_available(thing, now_ms)
    return {
        **body,
        "available": available,
        "snooze_until": None if available else body["snooze_until"],
    }


def order_body(order: Order) -> dict[str, Any]:
    """An order with its history."""
    return {**plain(order, "link"), "store_id": order.link.store.store_id}


def _community_body(world: World, community: Community, now_ms: int) -> dict[str, Any]:
    return {
        "name": community.name,
        "app_id": community.app_id,
        "stores": {
            store.store_id: {
                "name": store.name,
                "is_open": world.is_open(community, store, now_ms),
                "hours": community.hours.get(store.store_id),
            }
            for store in world.members(community)
        },
        "items_off": sorted(
            item.external_id
            for _, _, item in world.community_items(community)
            if not community.own_state(item.product_id, now_ms).available
        ),
        "webhooks": plain(world.subscriptions_of(community)),
        "orders": [
            _parent_body(parent)
            for parent in world.parent_orders.values()
            if parent.community is community
        ],
    }


def _parent_body(parent: ParentOrder) -> dict[str, Any]:
    return {**parent_body(parent), "history": parent.history}


async def _reset(call: Call[None, Empty]) -> Json:
    call.sandbox.reset()
    return {"status": "success"}


# Orders


class PlaceOrder(Basket):
    """POST /_control/orders."""

    store_id: Id
    unchecked: bool = False
    overrides: dict[str, Any] = Field(default_factory=dict)
    wait: bool = False


async def _place(call: Call[None, PlaceOrder]) -> Json:
    world, orders, body = call.sandbox.world, call.sandbox.orders, call.body
    world.store(body.store_id)
    link = world.active_link(body.store_id)
    if link is None:
        raise ServiceError(
            "store.not_integrated", f"Store {body.store_id} has no active integration"
        )
    try:
        if body.unchecked or body.overrides or any(line.overrides.sent() for line in body.items):
            order = orders.place_unchecked(link, body, body.overrides)
        else:
            order = orders.place(link, body)
    except PlacementError as refusal:
        raise ServiceError("control.refused", str(refusal)) from None
    answer = order_body(order)
    delivery = call.sandbox.webhooks.of_order(order.order_id)
    if delivery is not None:
        answer["delivery"] = await first_attempt(delivery, wait=body.wait)
    return answer


async def _show_order(call: Call[Order, Unread]) -> Json:
    return order_body(call.found)


async def _deliver(call: Call[Order, Empty]) -> Json:
    call.sandbox.orders.deliver(call.found)
    return order_body(call.found)


class CustomerCancel(Body):
    """POST /_control/orders/{order_id}/customer-cancel."""

    event_type: Text | None = None


async def _customer_cancel(call: Call[Order, CustomerCancel]) -> Json:
    call.sandbox.orders.cancel_by_customer(call.found, call.body.event_type)
    return order_body(call.found)


# Stores and tables


class NewStore(Body):
    """POST /_control/stores."""

    name: Text
    store_id: Id | None = None
    email: Email | None = None
    community_id: Id | None = None


async def _add_store(call: Call[None, NewStore]) -> Json:
    """Another store of a merchant and, if asked for, a member of a community."""
    world, body = call.sandbox.world, call.body
    merchant = _merchant(world, body.email)
    if body.store_id in world.stores:
        raise ServiceError("control.refused", "The store exists already")
    community = world.community(body.community_id) if body.community_id else None
    store = world.add_store(merchant, StoreSeed(body.store_id or new_id("st"), body.name, None))
    if community is not None:
        community.store_ids.append(store.store_id)
    return {"store_id": store.store_id, "name": store.name, "email": merchant.email}


def _merchant(world: World, email: str | None) -> Merchant:
    merchant = world.merchant(email) if email else next(iter(world.merchants.values()))
    if merchant is None:
        raise ServiceError("control.refused", "No such merchant; GET /_control/state lists them")
    return merchant


async def _set_store_status(call: Call[Store, StoreStatus]) -> Json:
    """Somebody else opens or closes the store: no event tells of it."""
    call.found.status = call.body.status
    return {"store_id": call.found.store_id, "store_status": call.found.status}


class TaxComponent(ItemTaxComponent):
    """One rate of a tax, in percent."""

    compound: bool


class Tax(Body):
    """A tax of a store."""

    tax_id: Text
    name: Text
    components: list[TaxComponent]


class TaxConfig(Body):
    """PUT /_control/stores/{store_id}/tax-config: the whole of it."""

    enabled: bool
    tax_level: Literal["store", "category", "product"]
    pricing_mode: Literal["inclusive", "exclusive"]
    default_tax_id: OptionalText
    taxes: list[Tax]


async def _set_taxes(call: Call[Store, TaxConfig]) -> Json:
    """The merchant changes the taxes."""
    call.found.tax_config = call.body.sent()
    return call.found.tax_config


class Rotate(Body):
    """POST /_control/tables/{store_id}/rotate."""

    external_ids: list[Id] | None = None


async def _rotate_tables(call: Call[Store, Rotate]) -> Json:
    """New QR tokens, for some tables or all: printed codes are dead from now on."""
    link = call.sandbox.world.active_link(call.found.store_id)
    tables = link.tables if link else {}
    wanted = list(tables) if call.body.external_ids is None else call.body.external_ids
    for external_id in wanted:
        if external_id not in tables:
            raise ServiceError("control.refused", f"No table {external_id} was pushed")
    for external_id in wanted:
        tables[external_id].qr_token = new_id("qrt")
    return {"rotated": {key: tables[key].qr_token for key in wanted}}


# Communities


class Member(Body):
    """POST /_control/communities/{community_id}/members."""

    store_id: Id


async def _join(call: Call[Community, Member]) -> Json:
    community, store_id = call.found, call.sandbox.world.store(call.body.store_id).store_id
    if store_id not in community.store_ids:
        community.store_ids.append(store_id)
    return {"community_id": community.community_id, "store_ids": community.store_ids}


class PlaceCommunityOrder(CommunityBasket):
    """POST /_control/communities/{community_id}/orders."""

    wait: bool = False


async def _place_community_order(call: Call[Community, PlaceCommunityOrder]) -> Json:
    """A customer orders, of one member store or several."""
    body, sandbox = call.body, call.sandbox
    lines = [_of_store(sandbox.world, call.found, line) for line in body.items]
    try:
        parent = sandbox.orders.place_in(call.found, body.model_copy(update={"items": lines}))
    except PlacementError as refusal:
        raise ServiceError("control.refused", str(refusal)) from None
    answer = _parent_body(parent)
    if body.wait:
        ids = {parent.order_id, *(child.order_id for child in parent.children)}
        about = [one for one in sandbox.webhooks.deliveries.values() if one.order_id in ids]
        answer["deliveries"] = [await first_attempt(one, wait=True) for one in about]
    return answer


def _of_store(world: World, community: Community, line: CommunityLine) -> CommunityLine:
    if line.item_id is not None:
        store, _, item = world.community_item(community, line.item_id)
        found = {"store_id": store.store_id, "external_id": item.external_id}
        return line.model_copy(update=found)
    if line.store_id is None or "external_id" not in line.model_fields_set:
        raise wrong("items", "each names an item_id, or a store_id and an external_id")
    return line


async def _show_parent(call: Call[ParentOrder, Unread]) -> Json:
    return _parent_body(call.found)


async def _move_parent(call: Call[ParentOrder, Empty]) -> Json:
    call.sandbox.orders.step(call.found, call.part("step"))
    return _parent_body(call.found)


# Integrations, tokens and apps


async def _set_integration(call: Call[None, Empty]) -> Json:
    """Enable, disable (as an uninstall or a suspension does) or pending, for all apps."""
    statuses = {"enable": "active", "disable": "disabled", "pending": "pending"}
    status, store_id = statuses.get(call.part("status")), call.part("store_id")
    links = [link for link in call.sandbox.world.links_of(store_id) if link.integration is not None]
    if status is None:
        raise ServiceError("request.not_found", "The last part is enable, disable or pending")
    if not links:
        raise ServiceError("store.not_integrated", f"Store {store_id} has no integration to change")
    for link in links:
        _set_status(call, link, status)
    shown = links[0].integration_status
    return {"status": "success", "store_id": store_id, "integration_status": shown}


def _set_status(call: Call[Any, Any], link: Link, status: str) -> None:
    if link.integration is not None:
        link.integration.status = status
    if status != "active":
        call.sandbox.webhooks.stop_for(link)


class OfKind(Body):
    """Which tokens."""

    kind: Literal["access", "refresh", "app"] = "access"


async def _expire(call: Call[None, OfKind]) -> Json:
    return {"expired": call.sandbox.tokens.expire(call.body.kind)}


async def _invalidate(call: Call[None, OfKind]) -> Json:
    return {"invalidated": call.sandbox.tokens.invalidate(call.body.kind)}


class Revoke(Body):
    """POST /_control/tokens/revoke."""

    email: Email | None = None
    uninstall: bool = False


async def _revoke(call: Call[None, Revoke]) -> Json:
    """The merchant revokes consent; with `uninstall` the integrations are disabled too."""
    revoked = call.sandbox.tokens.revoke(call.body.email)
    hit = {(consent.app_id, consent.merchant_email) for consent in revoked}
    for link in list(call.sandbox.world.links.values()):
        known = (link.app_id, link.store.merchant_email) in hit and link.integration is not None
        if call.body.uninstall and known:
            _set_status(call, link, "disabled")
    return {"revoked": len(revoked)}


class Mint(Body):
    """POST /_control/tokens/mint."""

    client_id: Text | None = None
    email: Email | None = None


async def _mint(call: Call[None, Mint]) -> Json:
    """Tokens without the browser."""
    world = call.sandbox.world
    client_id = call.body.client_id or next(iter(world.apps))
    if client_id not in world.apps:
        raise ServiceError("control.refused", "No such app; GET /_control/state lists them")
    return call.sandbox.tokens.issue_for(client_id, _merchant(world, call.body.email).email)


class Consent(Body):
    """POST /_control/consent."""

    auto: bool


async def _consent(call: Call[None, Consent]) -> Json:
    call.sandbox.world.auto_consent = call.body.auto
    return {"auto": call.body.auto}


class AppSecret(Body):
    """POST /_control/apps/{client_id}/secret."""

    client_secret: Text


async def _set_app_secret(call: Call[None, AppSecret]) -> Json:
    """A rotation in the console: the new secret is valid at once, tokens go on working."""
    app = call.sandbox.world.apps.get(call.part("client_id"))
    if app is None:
        raise ServiceError("control.refused", "No such app; GET /_control/state lists them")
    call.sandbox.world.apps[app.client_id] = replace(app, client_secret=call.body.client_secret)
    return {"client_id": app.client_id}


# Menus


class LoseJobs(Body):
    """POST /_control/jobs/lose."""

    keep_work: bool = True


async def _lose_jobs(call: Call[None, LoseJobs]) -> Json:
    return {"lost": call.sandbox.jobs.lose(keep_work=call.body.keep_work)}


class PlanJob(Body):
    """POST /_control/jobs/next."""

    fail: Text | None = None
    duration_s: Number | None = None


async def _plan_job(call: Call[None, PlanJob]) -> Json:
    call.sandbox.jobs.next_job = NextJob(call.body.fail, call.body.duration_s)
    return call.body.model_dump()


class RejectItems(Body):
    """POST /_control/items/reject."""

    external_ids: list[Id]
    reason: Text = "rejected by the merchant catalogue service"


async def _reject_items(call: Call[None, RejectItems]) -> Json:
    """Items that pushes refuse from now on; an empty list ends that."""
    world, body = call.sandbox.world, call.body
    world.rejected_items = dict.fromkeys(body.external_ids, body.reason)
    return {"rejected": world.rejected_items}


_ORDER = "/_control/orders/{order_id}"
_COMMUNITY = "/_control/communities/{community_id}"
_PARENT = f"{_COMMUNITY}/orders/{{order_id}}"
_STORE = "/_control/stores/{store_id}"
CONTROL_ENDPOINTS = (
    Endpoint("GET", "/_control/state", anyone, Unread, _state),
    Endpoint("POST", "/_control/reset", anyone, Empty, _reset),
    Endpoint("POST", "/_control/orders", anyone, PlaceOrder, _place),
    Endpoint("GET", _ORDER, any_order, Unread, _show_order),
    Endpoint("POST", f"{_ORDER}/deliver", any_order, Empty, _deliver),
    Endpoint("POST", f"{_ORDER}/customer-cancel", any_order, CustomerCancel, _customer_cancel),
    Endpoint("POST", "/_control/stores", anyone, NewStore, _add_store, 201),
    Endpoint("POST", f"{_STORE}/status", any_store, StoreStatus, _set_store_status),
    Endpoint("PUT", f"{_STORE}/tax-config", any_store, TaxConfig, _set_taxes),
    Endpoint("POST", "/_control/tables/{store_id}/rotate", any_store, Rotate, _rotate_tables),
    Endpoint("POST", f"{_COMMUNITY}/members", any_community, Member, _join),
    Endpoint(
        "POST", f"{_COMMUNITY}/orders", any_community, PlaceCommunityOrder, _place_community_order
    ),
    Endpoint("GET", _PARENT, any_parent, Unread, _show_parent),
    Endpoint("POST", f"{_PARENT}/{{step}}", any_parent, Empty, _move_parent),
    Endpoint("POST", "/_control/integrations/{store_id}/{status}", anyone, Empty, _set_integration),
    Endpoint("POST", "/_control/tokens/expire", anyone, OfKind, _expire),
    Endpoint("POST", "/_control/tokens/invalidate", anyone, OfKind, _invalidate),
    Endpoint("POST", "/_control/tokens/revoke", anyone, Revoke, _revoke),
    Endpoint("POST", "/_control/tokens/mint", anyone, Mint, _mint),
    Endpoint("POST", "/_control/consent", anyone, Consent, _consent),
    Endpoint("POST", "/_control/apps/{client_id}/secret", anyone, AppSecret, _set_app_secret),
    Endpoint("POST", "/_control/jobs/lose", anyone, LoseJobs, _lose_jobs),
    Endpoint("POST", "/_control/jobs/next", anyone, PlanJob, _plan_job),
    Endpoint("POST", "/_control/items/reject", anyone, RejectItems, _reject_items),
)
