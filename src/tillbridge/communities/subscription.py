"""The webhook subscription: created, matched to the configuration, tested; its deliveries.

Specification: POST /communities/{communityId}/webhooks, /webhooks/{webhookId}. The signing secret
is shown once: it is in the vault before anything else happens, in the form in which the receiver
reads a store's secrets. Beside it is the subscription's id: the service lists no subscriptions, so
what is not stored here cannot be found again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tillbridge.communities import CommunityContext
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.ledger.orders import has_delivery
from tillbridge.ledger.vault import prove_writable, store_webhook_secret, webhook_secrets
from tillbridge.model.community import DeliveryAttempt, Subscription, SubscriptionRequest

log = get_logger()

_SHOWN = 100
_ALL = frozenset({"*"})
_TEST_S = 12.0  # the receiver's time-out is 10 seconds
_LOOK_EVERY_S = 0.25
_FAILING = "community.deliveries_failing"

OnSecret = Callable[[str], Awaitable[None]]


def newest(attempts: Sequence[DeliveryAttempt]) -> DeliveryAttempt | None:
    """Return the latest attempt; where there are no times, the first of the list."""
    if not attempts:
        return None
    if any(each.attempted_at is None for each in attempts):
        return attempts[0]
    return max(attempts, key=lambda each: each.attempted_at or 0)


def describe(attempt: DeliveryAttempt) -> str:
    """Return what came of an attempt, in words."""
    if attempt.response_status is None:
        why = attempt.error or _("no answer")
        return _("{event}: {why}").format(event=attempt.event_type, why=why)
    answer = attempt.response_body.strip()[:_SHOWN]
    text = _("{event}: answered {status}").format(
        event=attempt.event_type, status=attempt.response_status
    )
    return f"{text} ({answer})" if answer else text


def remedy(attempt: DeliveryAttempt, name: str, url: str) -> str:
    """Return what to do about a failing attempt."""
    status = attempt.response_status
    if status is None or status in {502, 503, 504}:
        return _(
            "Check that {url} can be reached from the internet: look at the tunnel or router, "
            "and at public_url."
        ).format(url=url)
    if status == 401:
        return _(
            "The signing secret is a different one. Run: tillbridge community webhook remake {name}"
        ).format(name=name)
    return _(
        "Another program may be answering at {url}. Check public_url and whatever is in front of "
        "the bridge, then run: tillbridge community webhook test {name}"
    ).format(url=url, name=name)


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
    same_events = _events(now.events) == _events(wanted.events)
    return {
        name: value
        for name, value in wanted.body().items()
        if not (same_events if name == "events" else getattr(now, name) == value)
    }


class Subscriber:
    """Reconciles the subscription of one community with the configuration.

    `on_secret_expected(key)`: deliveries may come before their secret is known here; until
    `on_secret(key)`, also where there is none after all.
    """

    def __init__(self, context: CommunityContext) -> None:
        settings = context.settings
        public_url = context.bridge.settings.receiver.public_url
        self._context = context
        self._one_at_a_time = asyncio.Lock()
        self.on_secret: OnSecret = _nobody
        self.on_secret_expected: Callable[[str], None] = lambda _key: None
        self.wanted = SubscriptionRequest(
            settings.webhook_name,
            f"{public_url.rstrip('/')}/webhooks/{context.key}",
            tuple(settings.events),
        )

    @property
    def webhook_id(self) -> str | None:
        """The id of the subscription whose secret is in the vault."""
        secrets = webhook_secrets(self._context.bridge.ledger.vault, self._context.key)
        return (secrets[0].webhook_id or None) if secrets else None

    async def reconcile(self) -> None:
        """Make the subscription where it is missing, bring it in line, look at its deliveries.

        Raises ServiceError, LedgerError.
        """
        async with self._one_at_a_time:
            webhook_id = self.webhook_id
            now = None if webhook_id is None else await self._context.calls.subscription(webhook_id)
            if webhook_id is not None and now is not None:
                if changed := differences(now, self.wanted):
                    await self._context.calls.change_subscription(webhook_id, changed)
                    log.info(
                        "community.subscription_changed",
                        community=self._context.name,
                        changed=sorted(changed),
                    )
                await self._note(webhook_id)
            else:
                if webhook_id is not None:
                    log.warning("community.subscription_gone", community=self._context.name)
                webhook_id = await self._make()
            await self._look(webhook_id)

    async def remake(self) -> None:
        """Remove the subscription and make another one, with a new secret."""
        async with self._one_at_a_time:
            webhook_id = self.webhook_id
            if webhook_id is not None:
                await self._prove()
                await self._context.calls.unsubscribe(webhook_id)
            await self._make()
            self._context.report("community.bad_signature", "")

    async def test(self) -> Tested | None:
        """Let the service send a test delivery, and watch for it; None: there is no subscription.

        Takes up to twelve seconds.
        """
        webhook_id = self.webhook_id
        return None if webhook_id is None else await self._test(webhook_id)

    async def deliveries(self) -> list[DeliveryAttempt]:
        """Return the attempts that the service remembers."""
        webhook_id = self.webhook_id
        return [] if webhook_id is None else await self._context.calls.deliveries(webhook_id)

    # -- inside

    async def _make(self) -> str:
        context = self._context
        await self._prove()
        self.on_secret_expected(context.key)
        try:
            made = await context.calls.subscribe(self.wanted)
            webhook_id = made.subscription.webhook_id
            await asyncio.to_thread(
                store_webhook_secret,
                context.bridge.ledger.vault,
                context.key,
                made.secret,
                at_ms=context.bridge.clock.now_ms(),
                webhook_id=webhook_id,
            )
        finally:
            await self.on_secret(context.key)
        await self._note(webhook_id)
        log.info("community.subscribed", community=context.name, webhook_id=webhook_id)
        return webhook_id

    async def _prove(self) -> None:
        context = self._context
        at_ms = context.bridge.clock.now_ms()
        await asyncio.to_thread(
            prove_writable, context.bridge.ledger.vault, context.key, at_ms=at_ms
        )

    async def _note(self, webhook_id: str) -> None:
        at = self._context.bridge.clock.now_ms()
        fact = {
            "webhook_id": webhook_id,
            "url": self.wanted.url,
            "events": self.wanted.body()["events"],
            "checked_at": at,
        }
        await self._context.bridge.ledger.put_fact(self._context.key, "subscription", fact, at=at)

    async def _look(self, webhook_id: str) -> None:
        """See whether events arrive; a failure that may be over is tested before it is reported."""
        context = self._context
        attempt = newest(await context.calls.deliveries(webhook_id))
        if attempt is not None and not attempt.succeeded:
            attempt = (await self._test(webhook_id)).attempt or attempt
        found = []
        if attempt is not None and not attempt.succeeded:
            detail = {
                "community": context.name,
                "detail": describe(attempt),
                "remedy": remedy(attempt, context.name, self.wanted.url),
            }
            found.append(Found(_FAILING, detail=detail))
        context.report(_FAILING, "", *found)

    async def _test(self, webhook_id: str) -> Tested:
        context = self._context
        before = {each.delivery_id for each in await context.calls.deliveries(webhook_id)}
        sent = await context.calls.test_subscription(webhook_id)
        attempt, arrived = None, False
        deadline = context.bridge.clock.monotonic() + _TEST_S
        while context.bridge.clock.monotonic() < deadline:
            attempts = await context.calls.deliveries(webhook_id)
            fresh = [each for each in attempts if each.delivery_id not in before]
            attempt = next((each for each in fresh if each.delivery_id == sent), None)
            if attempt is None and not sent and fresh:
                attempt = newest(fresh)  # its id is not known: it is what came since
            if attempt is not None:
                arrived = await context.bridge.ledger.read(
                    has_delivery, store=context.key, delivery_id=attempt.delivery_id
                )
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        log.info("community.webhook_tested", community=context.name, arrived=arrived)
        return Tested(sent, attempt, arrived)


def _events(events: tuple[str, ...] | None) -> frozenset[str]:
    return _ALL if not events or "*" in events else frozenset(events)


async def _nobody(_key: str) -> None:
    """Without a receiver nobody needs the new secret."""
