"""The community (hub) endpoints: mirrored catalogue, availability, hours, orders, subscriptions.

A record's `updated_at` is when the mirror noticed the change: at the first read after it.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tillbridge.sandbox.bodies import (
    CatalogueQuery,
    CommunityItemPatch,
    Hours,
    Subscribe,
    SubscriptionUpdate,
    check_hours,
)
from tillbridge.sandbox.catalogue import (
    find_add_on,
    groups_of,
    is_available,
    is_orderable,
    live_variants,
)
from tillbridge.sandbox.clock import as_timestamp
from tillbridge.sandbox.endpoints import API, own_community, own_subscription
from tillbridge.sandbox.orders import parent_body
from tillbridge.sandbox.state import (
    AddOnGroup,
    Community,
    Item,
    Link,
    Mirrored,
    OwnState,
    Store,
    Subscription,
    World,
    new_id,
    plain,
)
from tillbridge.sandbox.validation import Json, ServiceError, validate, wrong
from tillbridge.sandbox.webhooks import new_secret

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_ATTEMPTS_SHOWN = 100
_LISTS = ("stores", "categories", "items")


def _opaque(prefix: str, store: Store, external_id: str) -> str:
    digest = hashlib.sha256(f"{store.store_id}\n{external_id}".encode()).hexdigest()
    return f"{prefix}_{digest[:16]}"


class Mirror:
    """Reads of a community's catalogue."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._settings = world.settings

    def catalogue(
        self, community: Community, now_ms: int, *, store_id: str | None, since_ms: int | None
    ) -> dict[str, Any]:
        """The whole of it, or of one store, or what has changed since an instant, or both."""
        self._observe(community, now_ms)
        body: dict[str, Any] = {
            "community_id": community.community_id,
            "name": community.name,
            "as_of": as_timestamp(now_ms),
        }
        for name in _LISTS:
            body[name] = [
                entry.record
                | {"updated_at": as_timestamp(entry.updated_at_ms)}
                | ({} if entry.fingerprint is not None else {"removed": True, "available": False})
                for key, entry in community.mirrored.items()
                if key.startswith(f"{name} ")
                and store_id in (None, entry.record["store_id"])
                and self._shown(entry, since_ms)
            ]
        return body

    def _shown(self, entry: Mirrored, since_ms: int | None) -> bool:
        if entry.fingerprint is None and (
            since_ms is None or not self._settings.community_tells_removed
        ):
            return False
        return since_ms is None or entry.updated_at_ms >= since_ms

    def detail(
        self, community: Community, found: tuple[Store, Link, Item], now_ms: int
    ) -> dict[str, Any]:
        """One item: price, availability of both sides, snooze state, modifier groups."""
        self._observe(community, now_ms)
        item = found[2]
        record = self._item(community, found, now_ms)
        entry = community.mirrored[f"items {item.product_id}"]
        return {
            **record,
            "currency": found[0].currency,
            "merchant_available": is_orderable(item, now_ms),
            "community_available": community.own_state(item.product_id, now_ms).available,
            "updated_at": as_timestamp(entry.updated_at_ms),
        }

    def version(self, community: Community, now_ms: int) -> str:
        """Changes with everything that the catalogue shows."""
        self._observe(community, now_ms)
        latest = max((entry.updated_at_ms for entry in community.mirrored.values()), default=0)
        return f"{latest}.{len(community.mirrored)}"

    def _observe(self, community: Community, now_ms: int) -> None:
        """Compare the world with how it was last read."""
        current = self._records(community, now_ms)
        for key, record in current.items():
            fingerprint = json.dumps(record, sort_keys=True)
            entry = community.mirrored.get(key)
            if entry is None or entry.fingerprint != fingerprint:
                community.mirrored[key] = Mirrored(fingerprint, now_ms, record)
        for key, entry in community.mirrored.items():
            if key not in current and entry.fingerprint is not None:
                entry.fingerprint, entry.updated_at_ms = None, now_ms

    def _records(self, community: Community, now_ms: int) -> dict[str, dict[str, Any]]:
        records: dict[str, dict[str, Any]] = {}
        for store in self._world.members(community):
            records[f"stores {store.store_id}"] = {
                "store_id": store.store_id,
                "name": store.name,
                "status": store.status,
                "is_open": self._world.is_open(community, store, now_ms),
                "hours": community.hours.get(store.store_id),
            }
            link = self._world.active_link(store.store_id)
            for external_id, name in (link.catalogue.categories if link else {}).items():
                key = _opaque("cat", store, external_id)
                record = {"category_id": key, "store_id": store.store_id, "name": name}
                records[f"categories {key}"] = self._marked(record, external_id)
        for found in self._world.community_items(community):
            records[f"items {found[2].product_id}"] = self._item(community, found, now_ms)
        return records

    def _item(
        self, community: Community, found: tuple[Store, Link, Item], now_ms: int
    ) -> dict[str, Any]:
        store, link, item = found
        own = community.own_state(item.product_id, now_ms)
        record = {
            "item_id": item.product_id,
            "store_id": store.store_id,
            "name": item.name,
            "description": item.fields.get("description", ""),
            "image_url": item.fields.get("image_url", ""),
            "price": item.price,
            "category_ids": [
                _opaque("cat", store, external_id)
                for external_id in item.fields.get("categories", ())
            ],
            "available": own.available and is_orderable(item, now_ms),
            "snoozed_until": as_timestamp(own.snoozed_until_ms) if own.snoozed_until_ms else None,
            "variants": [
                self._marked(
                    {
                        "variant_id": variant.variant_id,
                        "name": variant.variant_name,
                        "price": variant.price,
                        "available": variant.available,
                    },
                    variant.external_id,
                )
                for variant in live_variants(item)
            ],
            "modifier_groups": [
                self._group(store, link, group, now_ms) for group in groups_of(link.catalogue, item)
            ],
        }
        return self._marked(record, item.external_id)

    def _group(self, store: Store, link: Link, group: AddOnGroup, now_ms: int) -> dict[str, Any]:
        things = [find_add_on(link.catalogue, external_id) for external_id in group.add_ons]
        record = {
            "modifier_group_id": _opaque("mgr", store, group.external_id),
            "name": group.name,
            "min_select": group.min_select,
            "max_select": group.max_select,
            "modifiers": [
                self._marked(
                    {
                        "modifier_id": thing.product_id,
                        "name": thing.name,
                        "price": thing.price,
                        "available": is_available(thing, now_ms),
                    },
                    thing.external_id,
                )
                for thing in things
                if thing is not None
            ],
        }
        return self._marked(record, group.external_id)

    def _marked(self, record: dict[str, Any], external_id: str) -> dict[str, Any]:
        return (
            {**record, "external_id": external_id}
            if self._settings.community_external_ids
            else record
        )


# Catalogue, hours, orders


_COMMUNITY = "/communities/{community_id}"
_WEBHOOK = "/webhooks/{webhook_id}"
_ITEM = f"{_COMMUNITY}/catalogue/items/{{item_id}}"


@API.serves("GET", f"{_COMMUNITY}/catalogue", own_community)
def _catalogue(sandbox: "Sandbox", community: Community, request: web.Request) -> Json:
    for name in request.query.keys() - CatalogueQuery.known:
        raise wrong(name, "is not a query field of this endpoint")
    query = validate(dict(request.query), CatalogueQuery)
    if query.store_id is not None:
        sandbox.world.member(community, query.store_id)
    return sandbox.mirror.catalogue(
        community, sandbox.clock.now_ms(), store_id=query.store_id, since_ms=query.updated_since
    )


@API.serves("GET", _ITEM, own_community)
def _item(sandbox: "Sandbox", community: Community, item_id: str) -> Json:
    found = sandbox.world.community_item(community, item_id)
    return sandbox.mirror.detail(community, found, sandbox.clock.now_ms())


@API.serves("PATCH", _ITEM, own_community)
def _patch(
    sandbox: "Sandbox", community: Community, item_id: str, body: CommunityItemPatch
) -> Json:
    """The community's own availability; the merchant's stays what it is."""
    sandbox.world.community_item(community, item_id)
    own = OwnState(body.available or False, body.snoozed_until)
    own.settle(sandbox.clock.now_ms())
    community.own[item_id] = own
    return _item(sandbox, community, item_id)


@API.serves("PUT", f"{_COMMUNITY}/stores/{{store_id}}/hours", own_community)
def _hours(sandbox: "Sandbox", community: Community, store_id: str, body: Hours) -> Json:
    """The whole of a store's hours; overrides that are left out are no longer."""
    store = sandbox.world.member(community, store_id)
    hours = {"overrides": [], **body.sent()}
    check_hours(hours, past_midnight=sandbox.settings.hours_past_midnight)
    community.hours[store.store_id] = hours
    is_open = sandbox.world.is_open(community, store, sandbox.clock.now_ms())
    return {"store_id": store.store_id, "is_open": is_open, "hours": hours}


@API.serves("GET", f"{_COMMUNITY}/orders/{{order_id}}", own_community)
def _order(sandbox: "Sandbox", community: Community, order_id: str) -> Json:
    parent = sandbox.world.parent_orders.get(order_id)
    if parent is None or parent.community is not community:
        raise ServiceError(
            "order.not_found", f"No order {order_id} in community {community.community_id}"
        )
    return parent_body(parent)


# Webhook subscriptions


def subscription_body(subscription: Subscription) -> dict[str, Any]:
    """A subscription as every endpoint but its creation shows it: without its secret."""
    return {**plain(subscription, "secret", "gone")}


@API.serves("POST", f"{_COMMUNITY}/webhooks", own_community, status=201)
def _subscribe(sandbox: "Sandbox", community: Community, body: Subscribe) -> Json:
    """The only answer with the signing secret."""
    now = sandbox.clock.now_ms()
    subscription = Subscription(
        new_id("whk"),
        community.community_id,
        new_secret(),
        body.name,
        body.url,
        tuple(body.events or ("*",)),
        body.is_active is not False,
        now,
        now,
    )
    sandbox.world.subscriptions[subscription.webhook_id] = subscription
    secret = {sandbox.settings.subscription_secret_field: subscription.secret}
    return {**subscription_body(subscription), **secret}


@API.serves("GET", _WEBHOOK, own_subscription)
def _show(_sandbox: "Sandbox", subscription: Subscription) -> Json:
    return subscription_body(subscription)


@API.serves("PUT", _WEBHOOK, own_subscription)
def _change(sandbox: "Sandbox", subscription: Subscription, body: SubscriptionUpdate) -> Json:
    """Only sent fields change; switched off, it gets nothing of what is still under way."""
    for name, value in body.sent().items():
        setattr(subscription, name, tuple(value) if name == "events" else value)
    subscription.updated_at_ms = sandbox.clock.now_ms()
    if not subscription.is_active:
        sandbox.webhooks.stop_for(subscription)
    return subscription_body(subscription)


@API.serves("DELETE", _WEBHOOK, own_subscription)
def _remove(sandbox: "Sandbox", subscription: Subscription) -> Json:
    subscription.gone = True
    del sandbox.world.subscriptions[subscription.webhook_id]
    sandbox.webhooks.stop_for(subscription)
    return {"status": "success", "message": "Webhook subscription removed"}


@API.serves("POST", f"{_WEBHOOK}/test", own_subscription)
def _test(sandbox: "Sandbox", subscription: Subscription) -> Json:
    """One attempt, whatever the subscription's events are; a failed test is not repeated."""
    webhooks, target = sandbox.webhooks, subscription
    event_type = sandbox.settings.subscription_test_event
    content = webhooks.envelope(target, event_type, {"webhook_id": subscription.webhook_id})
    delivery = webhooks.send(target, content, retry=False)
    return {"status": "success", "delivery_id": delivery.delivery_id, "event_type": event_type}


@API.serves("GET", f"{_WEBHOOK}/deliveries", own_subscription)
def _deliveries(sandbox: "Sandbox", subscription: Subscription) -> Json:
    """The attempts, newest first."""
    attempts = [
        {
            "delivery_id": delivery.delivery_id,
            "event_id": delivery.event_id,
            "event_type": delivery.event_type,
            "attempted_at": as_timestamp(attempt.at_ms),
            "response_status": attempt.status,
            "response_body": attempt.answer,
            "error": attempt.error,
        }
        for delivery in sandbox.webhooks.deliveries.values()
        if delivery.target is subscription
        for attempt in delivery.attempts
    ]
    attempts.sort(key=lambda attempt: str(attempt["attempted_at"]), reverse=True)
    return {"deliveries": attempts[:_ATTEMPTS_SHOWN]}
