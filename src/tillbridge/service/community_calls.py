"""The calls of a community (hub), with the app's own token.

Specification: Community (hub) endpoints.
Each raises ServiceError and nothing else: Refused for what is not there (a request for another
community is a 404) or not taken, Unreachable, ServiceDown, RateLimited, OutcomeUnknown.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tillbridge.core.errors import OutcomeUnknown, Refused
from tillbridge.core.i18n import _
from tillbridge.model.community import (
    Catalogue,
    DeliveryAttempt,
    ItemDetail,
    NewSubscription,
    ParentOrder,
    Subscription,
    SubscriptionRequest,
)
from tillbridge.model.instant import from_iso, to_iso
from tillbridge.service.caller import Caller, Write
from tillbridge.service.calls import Calls
from tillbridge.service.community_reading import (
    read_attempts,
    read_catalogue,
    read_item,
    read_new_subscription,
    read_parent,
    read_subscription,
)
from tillbridge.service.encoding import encode_small
from tillbridge.service.fields import Fields
from tillbridge.service.gate import Priority
from tillbridge.service.transport import Answer

_APPLIED = Answer(200, None)


class CommunityCalls(Calls):
    """All calls of one community.

    `secret_field` is where the answer to a new subscription has its secret; it is not shown.
    """

    def __init__(self, caller: Caller, community_id: str, *, secret_field: str) -> None:
        super().__init__(caller)
        self._community = ("communities", community_id)
        self._secret_field = secret_field

    # -- the catalogue

    async def catalogue(
        self, *, store_id: str | None = None, updated_since: str | None = None
    ) -> Catalogue:
        """Return the mirror of the member stores, whole, or what changed since an instant.

        GET /communities/{communityId}/catalogue. `updated_since` is ISO 8601, as a rule the
        `as_of` of the answer before.
        """
        operation = "communities.catalogue"
        query = {"store_id": store_id, "updated_since": updated_since}
        given = {name: value for name, value in query.items() if value is not None}
        url = self._caller.origin.url(*self._community, "catalogue")
        answer = await self._read_url(
            operation, f"{url}?{urlencode(given)}" if given else url, priority=Priority.POLL
        )
        return read_catalogue(answer.body, operation)

    async def item(self, item_id: str) -> ItemDetail:
        """Return an item whole. GET /communities/{communityId}/catalogue/items/{itemId}."""
        operation = "communities.item"
        path = (*self._community, "catalogue", "items", item_id)
        answer = await self._read(operation, *path, priority=Priority.STORE)
        return read_item(answer.body, operation)

    async def take_off(self, item_id: str, *, until_ms: int | None) -> None:
        """Take an item off the community's storefront at once; the service restores it at `until`.

        PATCH /communities/{communityId}/catalogue/items/{itemId}.
        """
        body: dict[str, Any] = {"available": False}
        if until_ms is not None:
            body["snoozed_until"] = to_iso(until_ms)
        await self._patch(item_id, body, until_ms)

    async def restore(self, item_id: str) -> None:
        """Let the community sell an item again, and clear any snooze. The same PATCH."""
        await self._patch(item_id, {"available": True}, None)

    async def _patch(self, item_id: str, body: Mapping[str, Any], until_ms: int | None) -> None:
        async def settle() -> Answer | None:
            now = await self.item(item_id)
            same = now.community_available is body["available"]
            return _APPLIED if same and _instant(now.record.snoozed_until) == until_ms else None

        await self._write(
            (
                "communities.availability",
                "PATCH",
                (*self._community, "catalogue", "items", item_id),
            ),
            encode_small(body),
            priority=Priority.AVAILABILITY,
            write=Write(settle),
        )

    # -- opening hours

    async def put_hours(self, store_id: str, hours: Mapping[str, Any]) -> None:
        """Put a member store's opening hours in place, whole.

        PUT /communities/{communityId}/stores/{storeId}/hours: `timezone`, `weekly`, `overrides`.
        """

        async def settle() -> Answer | None:
            found = (await self.catalogue(store_id=store_id)).records
            same = [
                each.kind == "store"
                and each.store_id == store_id
                and _same_hours(each.body.get("hours"), hours)
                for each in found
            ]
            return _APPLIED if any(same) else None

        await self._write(
            ("communities.hours", "PUT", (*self._community, "stores", store_id, "hours")),
            encode_small(hours),
            priority=Priority.STORE,
            write=Write(settle),
        )

    # -- orders

    async def order(self, order_id: str) -> ParentOrder:
        """Return the latest full parent order.

        GET /communities/{communityId}/orders/{orderId}; Refused `order.not_found`.
        """
        operation = "communities.order"
        path = (*self._community, "orders", order_id)
        answer = await self._read(operation, *path, priority=Priority.ORDERS)
        return read_parent(answer.body, operation)

    # -- the webhook subscription

    async def subscribe(self, wanted: SubscriptionRequest) -> NewSubscription:
        """Make a subscription; the answer shows its signing secret, this once.

        POST /communities/{communityId}/webhooks. There is no list of subscriptions, so nothing
        tells whether one was made whose answer is lost: OutcomeUnknown, and it is not repeated.
        """
        operation = "communities.subscribe"

        lost = OutcomeUnknown(
            _("The service did not say whether it has made the subscription."),
            operation=operation,
            fix=_(
                "Another one is made by itself. If every event then comes twice, once with a "
                "signature that does not match, ask the service's support to remove the first."
            ),
        )

        async def settle() -> None:
            raise lost

        try:
            outcome = await self._write(
                (operation, "POST", (*self._community, "webhooks")),
                encode_small(wanted.body()),
                priority=Priority.STORE,
                write=Write(settle),
            )
        except OutcomeUnknown as failure:
            raise lost from failure
        return read_new_subscription(
            outcome.answer.body, operation, secret_field=self._secret_field
        )

    async def subscription(self, webhook_id: str) -> Subscription | None:
        """Return the subscription, None where there is none (any more). GET /webhooks/{id}."""
        operation = "webhooks.read"
        try:
            answer = await self._read(operation, "webhooks", webhook_id, priority=Priority.STORE)
        except Refused as failure:
            if failure.status == 404:
                return None
            raise
        return read_subscription(answer.body, operation)

    async def change_subscription(self, webhook_id: str, changed: Mapping[str, Any]) -> None:
        """Change what is named: `name`, `url`, `events`, `is_active`. PUT /webhooks/{id}."""

        async def settle() -> Answer | None:
            now = await self.subscription(webhook_id)
            if now is None:
                return None  # the repeat is told so
            has = {
                "name": now.name,
                "url": now.url,
                "is_active": now.is_active,
                "events": None if now.events is None else list(now.events),
            }
            same = all(has.get(name) == value for name, value in changed.items())
            return _APPLIED if same else None

        await self._write(
            ("webhooks.change", "PUT", ("webhooks", webhook_id)),
            encode_small(changed),
            priority=Priority.STORE,
            write=Write(settle),
        )

    async def unsubscribe(self, webhook_id: str) -> None:
        """Remove the subscription; one that is gone is as good. DELETE /webhooks/{id}."""

        async def settle() -> Answer | None:
            return _APPLIED if await self.subscription(webhook_id) is None else None

        try:
            await self._write(
                ("webhooks.remove", "DELETE", ("webhooks", webhook_id)),
                None,
                priority=Priority.STORE,
                write=Write(settle),
            )
        except Refused as failure:
            if failure.status != 404:
                raise

    async def test_subscription(self, webhook_id: str) -> str:
        """Let the service send a test delivery; return its id, "" where it is not told.

        POST /webhooks/{id}/test.
        """
        outcome = await self._write(
            ("webhooks.test", "POST", ("webhooks", webhook_id, "test")),
            None,
            priority=Priority.STORE,
        )
        body = outcome.answer.body
        return Fields(body or {}, "webhooks.test").text("delivery_id") or ""

    async def deliveries(self, webhook_id: str) -> list[DeliveryAttempt]:
        """Return the attempts to deliver. GET /webhooks/{id}/deliveries."""
        operation = "webhooks.deliveries"
        answer = await self._read(
            operation, "webhooks", webhook_id, "deliveries", priority=Priority.STORE
        )
        return read_attempts(answer.body, operation)


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


def _instant(text: str | None) -> int | None:
    """Return a time that the service tells; None where it tells none that can be read."""
    try:
        return None if text is None else from_iso(text)
    except ValueError:
        return None
