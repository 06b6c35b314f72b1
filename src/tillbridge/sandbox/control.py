"""Control API, the service's records: state, orders, stores, communities, consent, menus.

Bodies are as strict as the service's own, so that a typo in a test says so.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tillbridge.sandbox.bodies import StoreState
from tillbridge.sandbox.bodies import TaxComponent as ItemTaxComponent
from tillbridge.sandbox.catalogue import is_available
from tillbridge.sandbox.endpoints import SITE
from tillbridge.sandbox.menus import NextJob, job_body
from tillbridge.sandbox.orders import CommunityBasket, CommunityLine, parent_body
from tillbridge.sandbox.pricing import Basket
from tillbridge.sandbox.settings import AppSeed, StoreSeed
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
from tillbridge.sandbox.tokens import Kind
from tillbridge.sandbox.validation import (
    Body,
    Email,
    Id,
    Json,
    Number,
    OptionalText,
    ServiceError,
    Text,
    wrong,
)
from tillbridge.sandbox.webhooks import delivery_body, first_attempt

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


# The state


@SITE.serves("GET", "/_control/state")
def state(sandbox: "Sandbox") -> Json:
    """Everything as it is now: webhook secrets included, tokens not."""
    world, now = sandbox.world, sandbox.clock.now_ms()
    return {
        "clock": {"now": sandbox.clock.timestamp(), "speed": sandbox.clock.speed},
        "auto_consent": world.auto_consent,
        "apps": list(world.apps),
        "merchants": plain(list(world.merchants.values())),
        "stores": {
            store_id: {
                **plain(store),
                "integrations": [link_body(link, now) for link in world.links_of(store_id)],
            }
            for store_id, store in world.stores.items()
        },
        "communities": {
            community_id: _community_body(world, community, now)
            for community_id, community in world.communities.items()
        },
        "orders": [order_body(order) for order in world.orders.values()],
        "jobs": [job_body(job) for job in world.jobs.values()],
        "tokens": sandbox.tokens.summary(),
        "channel_events": world.channel_events,
        "webhooks": {"paused": sandbox.webhooks.paused},
        "deliveries": [delivery_body(each) for each in sandbox.webhooks.deliveries.values()],
        "rejected_items": world.rejected_items,
    }


def link_body(link: Link, now_ms: int) -> dict[str, Any]:
    """An app's side of a store. The integration's fields are absent when there is none."""
    catalogue, integration = link.catalogue, link.integration
    body: dict[str, Any] = {"app_id": link.app_id}
    if integration is not None:
        body = {
            **integration_body(link),
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


@SITE.serves("POST", "/_control/reset")
def reset(sandbox: "Sandbox") -> Json:
    """Everything back to the seeds."""
    sandbox.reset()
    return {"status": "success"}


# Orders


class PlaceOrder(Basket):
    """POST /_control/orders."""

    store_id: Id
    unchecked: bool = False
    overrides: dict[str, Any] = Field(default_factory=dict)
    wait: bool = False


@SITE.serves("POST", "/_control/orders")
async def place(sandbox: "Sandbox", body: PlaceOrder) -> Json:
    """A customer orders; with `unchecked` or overrides, what a customer could not."""
    link = sandbox.world.connected(sandbox.world.store(body.store_id).store_id)
    if body.unchecked or body.overrides or any(line.overrides.sent() for line in body.items):
        order = sandbox.orders.place_unchecked(link, body, body.overrides)
    else:
        order = sandbox.orders.place(link, body)
    answer = order_body(order)
    delivery = sandbox.webhooks.of_order(order.order_id)
    if delivery is not None:
        answer["delivery"] = await first_attempt(delivery, wait=body.wait)
    return answer


@SITE.serves("GET", "/_control/orders/{order_id}")
def show_order(_sandbox: "Sandbox", order: Order) -> Json:
    """One order."""
    return order_body(order)


@SITE.serves("POST", "/_control/orders/{order_id}/deliver")
def deliver(sandbox: "Sandbox", order: Order) -> Json:
    """The courier is done."""
    sandbox.orders.deliver(order)
    return order_body(order)


@SITE.serves("POST", "/_control/orders/{order_id}/customer-cancel")
def customer_cancel(sandbox: "Sandbox", order: Order, *, event_type: Text | None = None) -> Json:
    """The customer cancels."""
    sandbox.orders.cancel_by_customer(order, event_type)
    return order_body(order)


# Stores and tables


@SITE.serves("POST", "/_control/stores", status=201)
def add_store(
    sandbox: "Sandbox",
    *,
    name: Text,
    store_id: Id | None = None,
    email: Email | None = None,
    community_id: Id | None = None,
) -> Json:
    """Another store of a merchant and, if asked for, a member of a community."""
    world = sandbox.world
    merchant = _merchant(world, email)
    if store_id in world.stores:
        raise ServiceError("control.refused", "The store exists already")
    community = world.community(community_id) if community_id else None
    store = world.add_store(merchant, StoreSeed(store_id or new_id("st"), name, None))
    if community is not None:
        community.store_ids.append(store.store_id)
    return {"store_id": store.store_id, "name": store.name, "email": merchant.email}


def _merchant(world: World, email: str | None) -> Merchant:
    merchant = world.merchant(email) if email else next(iter(world.merchants.values()))
    if merchant is None:
        raise ServiceError("control.refused", "No such merchant; GET /_control/state lists them")
    return merchant


@SITE.serves("POST", "/_control/stores/{store_id}/status")
def set_store_status(_sandbox: "Sandbox", store: Store, *, status: StoreState) -> Json:
    """Somebody else opens or closes the store: no event tells of it."""
    store.status = status
    return {"store_id": store.store_id, "store_status": store.status}


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


@SITE.serves("PUT", "/_control/stores/{store_id}/tax-config")
def set_taxes(_sandbox: "Sandbox", store: Store, body: TaxConfig) -> Json:
    """The merchant changes the taxes."""
    store.tax_config = body.sent()
    return store.tax_config


@SITE.serves("POST", "/_control/tables/{store_id}/rotate")
def rotate_tables(
    sandbox: "Sandbox", store: Store, *, external_ids: list[Id] | None = None
) -> Json:
    """New QR tokens, for some tables or all: printed codes are dead from now on."""
    link = sandbox.world.active_link(store.store_id)
    tables = link.tables if link else {}
    wanted = list(tables) if external_ids is None else external_ids
    for external_id in wanted:
        if external_id not in tables:
            raise ServiceError("control.refused", f"No table {external_id} was pushed")
    for external_id in wanted:
        tables[external_id].qr_token = new_id("qrt")
    return {"rotated": {key: tables[key].qr_token for key in wanted}}


# Communities


@SITE.serves("POST", "/_control/communities/{community_id}/members")
def join(sandbox: "Sandbox", community: Community, *, store_id: Id) -> Json:
    """A store becomes a member."""
    if sandbox.world.store(store_id).store_id not in community.store_ids:
        community.store_ids.append(store_id)
    return {"community_id": community.community_id, "store_ids": community.store_ids}


class PlaceCommunityOrder(CommunityBasket):
    """POST /_control/communities/{community_id}/orders."""

    wait: bool = False


@SITE.serves("POST", "/_control/communities/{community_id}/orders")
async def place_community_order(
    sandbox: "Sandbox", community: Community, body: PlaceCommunityOrder
) -> Json:
    """A customer orders, of one member store or several."""
    lines = [_of_store(sandbox.world, community, line) for line in body.items]
    parent = sandbox.orders.place_in(community, body.model_copy(update={"items": lines}))
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


@SITE.serves("GET", "/_control/communities/{community_id}/orders/{order_id}")
def show_parent(_sandbox: "Sandbox", order: ParentOrder) -> Json:
    """One order of the community."""
    return _parent_body(order)


@SITE.serves("POST", "/_control/communities/{community_id}/orders/{order_id}/{step}")
def move_parent(sandbox: "Sandbox", order: ParentOrder, step: str) -> Json:
    """What courier and customer do."""
    sandbox.orders.step(order, step)
    return _parent_body(order)


# Integrations, tokens and apps


@SITE.serves("POST", "/_control/integrations/{store_id}/{status}")
def set_integration(sandbox: "Sandbox", store_id: str, status: str) -> Json:
    """Enable, disable (as an uninstall or a suspension does) or pending, for all apps."""
    statuses = {"enable": "active", "disable": "disabled", "pending": "pending"}
    links = [link for link in sandbox.world.links_of(store_id) if link.integration is not None]
    if status not in statuses:
        raise ServiceError("request.not_found", "The last part is enable, disable or pending")
    if not links:
        raise ServiceError("store.not_integrated", f"Store {store_id} has no integration to change")
    for link in links:
        _set_status(sandbox, link, statuses[status])
    shown = links[0].integration_status
    return {"status": "success", "store_id": store_id, "integration_status": shown}


def _set_status(sandbox: "Sandbox", link: Link, status: str) -> None:
    if link.integration is not None:
        link.integration.status = status
    if status != "active":
        sandbox.webhooks.stop_for(link)


@SITE.serves("POST", "/_control/tokens/expire")
def expire(sandbox: "Sandbox", *, kind: Kind = "access") -> Json:
    """The lifetime of all tokens of a kind is over."""
    return {"expired": sandbox.tokens.expire(kind)}


@SITE.serves("POST", "/_control/tokens/invalidate")
def invalidate(sandbox: "Sandbox", *, kind: Kind = "access") -> Json:
    """All tokens of a kind are unknown from now on."""
    return {"invalidated": sandbox.tokens.invalidate(kind)}


@SITE.serves("POST", "/_control/tokens/revoke")
def revoke(sandbox: "Sandbox", *, email: Email | None = None, uninstall: bool = False) -> Json:
    """The merchant revokes consent; with `uninstall` the integrations are disabled too."""
    revoked = sandbox.tokens.revoke(email)
    hit = {(consent.app_id, consent.merchant_email) for consent in revoked}
    for link in list(sandbox.world.links.values()):
        known = (link.app_id, link.store.merchant_email) in hit and link.integration is not None
        if uninstall and known:
            _set_status(sandbox, link, "disabled")
    return {"revoked": len(revoked)}


@SITE.serves("POST", "/_control/tokens/mint")
def mint(sandbox: "Sandbox", *, client_id: Text | None = None, email: Email | None = None) -> Json:
    """Tokens without the browser."""
    app = _app(sandbox.world, client_id or next(iter(sandbox.world.apps)))
    return sandbox.tokens.issue_for(app.client_id, _merchant(sandbox.world, email).email)


@SITE.serves("POST", "/_control/consent")
def consent(sandbox: "Sandbox", *, auto: bool) -> Json:
    """Authorize without asking, or not."""
    sandbox.world.auto_consent = auto
    return {"auto": auto}


@SITE.serves("GET", "/_control/apps")
def list_apps(sandbox: "Sandbox") -> Json:
    """Their ids and secrets, as the console of a real service shows them."""
    return {"apps": plain(list(sandbox.world.apps.values()))}


@SITE.serves("POST", "/_control/apps/{client_id}/secret")
def set_app_secret(sandbox: "Sandbox", client_id: str, *, client_secret: Text) -> Json:
    """A rotation in the console: the new secret is valid at once, tokens go on working."""
    app = _app(sandbox.world, client_id)
    sandbox.world.apps[client_id] = replace(app, client_secret=client_secret)
    return {"client_id": client_id}


def _app(world: World, client_id: str) -> AppSeed:
    if client_id not in world.apps:
        raise ServiceError("control.refused", "No such app; GET /_control/state lists them")
    return world.apps[client_id]


# Menus


@SITE.serves("POST", "/_control/jobs/lose")
def lose_jobs(sandbox: "Sandbox", *, keep_work: bool = True) -> Json:
    """All jobs are forgotten; with `keep_work` those that run still do their work."""
    return {"lost": sandbox.jobs.lose(keep_work=keep_work)}


@SITE.serves("POST", "/_control/jobs/next")
def plan_job(
    sandbox: "Sandbox", *, fail: Text | None = None, duration_s: Number | None = None
) -> Json:
    """How the next job shall go."""
    sandbox.jobs.next_job = NextJob(fail, duration_s)
    return {"fail": fail, "duration_s": duration_s}


@SITE.serves("POST", "/_control/items/reject")
def reject_items(
    sandbox: "Sandbox",
    *,
    external_ids: list[Id],
    reason: Text = "rejected by the merchant catalogue service",
) -> Json:
    """Items that pushes refuse from now on; an empty list ends that."""
    sandbox.world.rejected_items = dict.fromkeys(external_ids, reason)
    return {"rejected": sandbox.world.rejected_items}
