"""The webhook subscription: made, kept as the configuration says, tested, its deliveries read.

Specification: POST /communities/{communityId}/webhooks, /webhooks/{webhookId}.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tillbridge.communities.deliveries import newest, remedy, told
from tillbridge.communities.secret import keep_secret, prove_writable, webhook_id_of
from tillbridge.communities.shared import Shared
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.inbox import has_delivery
from tillbridge.model.community import DeliveryAttempt, Subscription, SubscriptionRequest

log = get_logger()

_ALL = frozenset({"*"})
_TEST_S = 12.0  # the receiver's time-out is 10 seconds
_LOOK_EVERY_S = 0.25

OnSecret = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Tested:
    """What came of a test: the service's attempt (None: not seen in time), and what is here."""

    delivery_id: str
    attempt: DeliveryAttempt | None
    arrived: bool

    @property
    def ok(self) -> bool:
        """Whether the service sent it, and it is on disk here."""
        return self.arrived and self.attempt is not None and self.attempt.succeeded


def differences(now: Subscription, wanted: SubscriptionRequest) -> dict[str, Any]:
    """Return what a PUT has to change; no events, or "*" among them, are all of them. Pure."""
    changed: dict[str, Any] = {}
    if now.name != wanted.name:
        changed["name"] = wanted.name
    if now.url != wanted.url:
        changed["url"] = wanted.url
    if _events(now.events) != _events(wanted.events):
        changed["events"] = wanted.body()["events"]
    if now.is_active is not wanted.is_active:
        changed["is_active"] = wanted.is_active
    return changed


class Subscriber:
    """Keeps the subscription of one community.

    `on_secret_expected(key)`: deliveries may come before their secret is known here; until
    `on_secret(key)`, also where there is none after all.
    """

    def __init__(self, shared: Shared, *, public_url: str) -> None:
        settings = shared.settings
        self._shared = shared
        self._one_at_a_time = asyncio.Lock()
        self.on_secret: OnSecret = _nobody
        self.on_secret_expected: Callable[[str], None] = lambda _key: None
        self.wanted = SubscriptionRequest(
            settings.webhook_name,
            f"{public_url.rstrip('/')}/webhooks/{shared.key}",
            tuple(settings.events),
        )

    @property
    def webhook_id(self) -> str | None:
        """The id of the subscription whose secret is in the vault."""
        return webhook_id_of(self._shared.ledger.vault, self._shared.key)

    async def keep(self) -> None:
        """Make the subscription where it is missing, bring it in line, look at its deliveries.

        Raises ServiceError, LedgerError.
        """
        async with self._one_at_a_time:
            webhook_id = self.webhook_id
            now = None if webhook_id is None else await self._shared.calls.subscription(webhook_id)
            if webhook_id is None or now is None:
                if webhook_id is not None:
                    log.warning("community.subscription_gone", community=self._shared.name)
                webhook_id = await self._make()
            elif changed := differences(now, self.wanted):
                await self._shared.calls.change_subscription(webhook_id, changed)
                await self._note(webhook_id)
                log.info(
                    "community.subscription_changed",
                    community=self._shared.name,
                    changed=sorted(changed),
                )
            else:
                await self._note(webhook_id)
            await self._look(webhook_id)

    async def remake(self) -> None:
        """Remove the subscription and make another one, with a new secret."""
        async with self._one_at_a_time:
            webhook_id = self.webhook_id
            if webhook_id is not None:
                await asyncio.to_thread(self._prove)
                await self._shared.calls.unsubscribe(webhook_id)
            await self._make()
            self._shared.desk.close("community.bad_signature", self._shared.key)

    async def test(self) -> Tested | None:
        """Let the service send a test delivery, and watch for it; None: there is no subscription.

        Takes up to twelve seconds.
        """
        webhook_id = self.webhook_id
        return None if webhook_id is None else await self._test(webhook_id)

    async def deliveries(self) -> list[DeliveryAttempt]:
        """Return the attempts that the service remembers."""
        webhook_id = self.webhook_id
        return [] if webhook_id is None else await self._shared.calls.deliveries(webhook_id)

    # -- inside

    async def _make(self) -> str:
        shared = self._shared
        await asyncio.to_thread(self._prove)
        self.on_secret_expected(shared.key)
        try:
            made = await shared.calls.subscribe(self.wanted)
            webhook_id = made.subscription.webhook_id
            await asyncio.to_thread(
                keep_secret,
                shared.ledger.vault,
                shared.key,
                made.secret,
                webhook_id,
                at_ms=shared.clock.now_ms(),
            )
        finally:
            await self.on_secret(shared.key)
        await self._note(webhook_id)
        log.info("community.subscribed", community=shared.name, webhook_id=webhook_id)
        return webhook_id

    def _prove(self) -> None:
        prove_writable(
            self._shared.ledger.vault, self._shared.key, at_ms=self._shared.clock.now_ms()
        )

    async def _note(self, webhook_id: str) -> None:
        at = self._shared.clock.now_ms()
        fact = {
            "webhook_id": webhook_id,
            "url": self.wanted.url,
            "events": self.wanted.body()["events"],
            "checked_at": at,
        }
        await self._shared.ledger.write(
            lambda connection: put_fact(connection, self._shared.key, "subscription", fact, at=at)
        )

    async def _look(self, webhook_id: str) -> None:
        """See whether events arrive; a failure that may be over is tested before it is told."""
        shared = self._shared
        attempt = newest(await shared.calls.deliveries(webhook_id))
        if attempt is not None and not attempt.succeeded:
            attempt = (await self._test(webhook_id)).attempt or attempt
        if attempt is None or attempt.succeeded:
            shared.desk.close("community.deliveries_failing", shared.key)
            return
        shared.desk.open(
            "community.deliveries_failing",
            shared.key,
            community=shared.name,
            detail=told(attempt),
            remedy=remedy(attempt, shared.name, self.wanted.url),
        )

    async def _test(self, webhook_id: str) -> Tested:
        shared = self._shared
        before = {each.delivery_id for each in await shared.calls.deliveries(webhook_id)}
        sent = await shared.calls.test_subscription(webhook_id)
        attempt, arrived = None, False
        deadline = shared.clock.monotonic() + _TEST_S
        while shared.clock.monotonic() < deadline:
            attempts = await shared.calls.deliveries(webhook_id)
            fresh = [each for each in attempts if each.delivery_id not in before]
            attempt = next((each for each in fresh if each.delivery_id == sent), None)
            if attempt is None and not sent and fresh:
                attempt = newest(fresh)  # its id is not told: it is what came since
            if attempt is not None:
                arrived = await shared.ledger.read(
                    partial(has_delivery, store=shared.key, delivery_id=attempt.delivery_id)
                )
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        log.info("community.webhook_tested", community=shared.name, arrived=arrived)
        return Tested(sent, attempt, arrived)


def _events(events: tuple[str, ...] | None) -> frozenset[str]:
    return _ALL if not events or "*" in events else frozenset(events)


async def _nobody(_key: str) -> None:
    """Without a receiver nobody has to hear of a new secret."""
