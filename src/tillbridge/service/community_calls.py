"""The calls of a community (hub), with the app's own token.

Specification: Community (hub) endpoints.
Each raises ServiceError and nothing else: Refused for what is not there (a request for another
community is a 404) or not accepted, Unreachable, ServiceDown, RateLimited, OutcomeUnknown.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tillbridge.core.errors import OutcomeUnknown, Refused
from tillbridge.core.i18n import _
from tillbridge.model.community import (
    Catalogue,
    DeliveryAttempt,
    NewSubscription,
    ParentOrder,
    Record,
    RecordKind,
    Subscription,
    SubscriptionRequest,
)
from tillbridge.model.instant import to_iso
from tillbridge.model.lenient import instant, objects, text
from tillbridge.service.caller import Caller, Write
from tillbridge.service.types import mapping, need, read, unreadable

_LISTS: tuple[tuple[str, RecordKind], ...] = (
    ("stores", "store"),
    ("categories", "category"),
    ("items", "item"),
)


class CommunityCalls:
    """All calls of one community.

    `secret_field` is where the answer to a new subscription has its secret; it is not shown.
    """

    def __init__(self, caller: Caller, community_id: str, *, secret_field: str) -> None:
        self._caller = caller
        self._call = caller.call
        self._read = caller.read
        self._community = community_id
        self._secret_field = secret_field

    @property
    def unanswered_at(self) -> float:
        """When a write was last left without an answer, by the loop's clock; -inf: never."""
        return self._caller.unanswered_at

    # -- the catalogue

    async def catalogue(
        self, *, store_id: str | None = None, updated_since: str | None = None
    ) -> Catalogue:
        """Return the member stores' catalogue, complete or only the changes since a time.

        GET /communities/{communityId}/catalogue. `updated_since` is ISO 8601, as a rule the
        `as_of` of the answer before.
        """
        operation = "communities.catalogue"
        query = {"store_id": store_id, "updated_since": updated_since}
        given = {name: value for name, value in query.items() if value is not None}
        answer = await self._call(operation, self._community, query=given)
        whole = mapping(answer.body, operation)
        if not any(isinstance(whole.get(name), list) for name, _kind in _LISTS):
            raise unreadable(operation, _("it has no {field}").format(field="items"))
        found = [_record(kind, each) for name, kind in _LISTS for each in objects(whole.get(name))]
        records = tuple(each for each in found if each is not None)
        return Catalogue(records, text(whole.get("as_of")))

    async def item(self, item_id: str) -> Record:
        """Return a complete item. GET /communities/{communityId}/catalogue/items/{itemId}."""
        operation = "communities.item"
        answer = await self._call(operation, self._community, item_id)
        item = _record("item", mapping(answer.body, operation))
        if item is None:
            raise unreadable(operation, _("it has no {field}").format(field="item_id"))
        return item

    async def take_off(self, item_id: str, *, until_ms: int | None) -> None:
        """Take an item off the community's storefront at once; the service restores it at `until`.

        PATCH /communities/{communityId}/catalogue/items/{itemId}.
        """
        body: dict[str, Any] = {"available": False}
        if until_ms is not None:
            body["snoozed_until"] = to_iso(until_ms)
        await self._patch(item_id, body, until_ms)

    async def restore(self, item_id: str) -> None:
        """Put an item back on sale in the community, and clear any snooze. The same PATCH."""
        await self._patch(item_id, {"available": True}, None)

    async def _patch(self, item_id: str, body: Mapping[str, Any], until_ms: int | None) -> None:
        async def settle() -> bool:
            now = await self.item(item_id)
            same = now.community_available is body["available"]
            return same and instant(now.snoozed_until) == until_ms

        await self._call(
            "communities.availability", self._community, item_id, body=body, write=Write(settle)
        )

    # -- opening hours

    async def put_hours(self, store_id: str, hours: Mapping[str, Any]) -> None:
        """Replace all opening hours of a member store.

        PUT /communities/{communityId}/stores/{storeId}/hours: `timezone`, `weekly`, `overrides`.
        """

        async def settle() -> bool:
            return any(
                each.kind == "store"
                and each.store_id == store_id
                and _same_hours(each.body.get("hours"), hours)
                for each in (await self.catalogue(store_id=store_id)).records
            )

        await self._call(
            "communities.hours", self._community, store_id, body=hours, write=Write(settle)
        )

    # -- orders

    async def order(self, order_id: str) -> ParentOrder:
        """Return the latest complete parent order.

        GET /communities/{communityId}/orders/{orderId}; Refused `order.not_found`.
        """
        return await self._read(ParentOrder, "communities.order", self._community, order_id)

    # -- the webhook subscription

    async def subscribe(self, wanted: SubscriptionRequest) -> NewSubscription:
        """Create a subscription. Only this answer shows its signing secret.

        POST /communities/{communityId}/webhooks. There is no list of subscriptions, so nothing
        shows whether one was made whose answer is lost: OutcomeUnknown, and it is not repeated.
        """
        operation = "communities.subscribe"

        lost = OutcomeUnknown(
            _("The service did not confirm that it created the subscription."),
            operation=operation,
            fix=_(
                "The bridge creates another one. If every event then arrives twice, once with a "
                "signature that does not match, ask the service's support to remove the first."
            ),
        )

        async def settle() -> bool:
            raise lost

        try:
            answer = await self._call(
                operation, self._community, body=wanted.body(), write=Write(settle)
            )
        except OutcomeUnknown as failure:
            raise lost from failure
        made = read(Subscription, answer.body, operation)
        return NewSubscription(made, need(answer.body, self._secret_field, operation))

    async def subscription(self, webhook_id: str) -> Subscription | None:
        """Return the subscription, or None if it does not exist (any more). GET /webhooks/{id}."""
        try:
            return await self._read(Subscription, "webhooks.read", webhook_id)
        except Refused as failure:
            if failure.status == 404:
                return None
            raise

    async def change_subscription(self, webhook_id: str, changed: Mapping[str, Any]) -> None:
        """Change the given fields: `name`, `url`, `events`, `is_active`. PUT /webhooks/{id}."""

        async def settle() -> bool:
            now = await self.subscription(webhook_id)
            if now is None:
                return False  # the repeat is answered so
            has = asdict(now) | {"events": None if now.events is None else list(now.events)}
            return all(has.get(name) == value for name, value in changed.items())

        await self._call("webhooks.change", webhook_id, body=changed, write=Write(settle))

    async def unsubscribe(self, webhook_id: str) -> None:
        """Remove the subscription; no error if it is already gone. DELETE /webhooks/{id}."""

        async def settle() -> bool:
            return await self.subscription(webhook_id) is None

        try:
            await self._call("webhooks.remove", webhook_id, write=Write(settle))
        except Refused as failure:
            if failure.status != 404:
                raise

    async def test_subscription(self, webhook_id: str) -> str:
        """Ask the service for a test delivery; return its ID, or "" if it gives none.

        POST /webhooks/{id}/test.
        """
        answer = await self._call("webhooks.test", webhook_id)
        return text(mapping(answer.body or {}, "webhooks.test").get("delivery_id"), "")

    async def deliveries(self, webhook_id: str) -> list[DeliveryAttempt]:
        """Return the delivery attempts: a list, or a list in the field `deliveries`.

        GET /webhooks/{id}/deliveries.
        """
        operation = "webhooks.deliveries"
        body = (await self._call(operation, webhook_id)).body
        listed = body.get("deliveries") if isinstance(body, dict) else body
        return [read(DeliveryAttempt, each, operation) for each in objects(listed)]


def _same_hours(now: object, wanted: Mapping[str, Any]) -> bool:
    """Whether a store's hours are as they were put: a day that is left out is closed."""
    if not isinstance(now, Mapping) or now.get("timezone") != wanted.get("timezone"):
        return False
    weekly, wanted_weekly = now.get("weekly") or {}, wanted.get("weekly") or {}
    days = weekly.keys() | wanted_weekly.keys() if isinstance(weekly, Mapping) else ()
    return (
        bool(days)
        and all(weekly.get(day, []) == wanted_weekly.get(day, []) for day in days)
        and (now.get("overrides") or []) == (wanted.get("overrides") or [])
    )


def _record(kind: RecordKind, body: Mapping[str, Any]) -> Record | None:
    """Return a record of the catalogue; None for one without an id."""
    record_id = text(body.get(f"{kind}_id")) or text(body.get("id"))
    if not record_id:
        return None
    return Record(
        kind,
        record_id,
        record_id if kind == "store" else text(body.get("store_id"), ""),
        text(body.get("name"), ""),
        body,
        removed=body.get("removed") is True,
    )
