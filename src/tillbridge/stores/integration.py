"""Integrating a store with this bridge, and everything later in the life of an integration.

Specification: Stores and integrations; Integration status. The webhook secret is returned only
once, by the call that integrates: it is stored before anything else happens. Everything here can be
repeated at any time; `resume` continues what was cut off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError, ConfigError, Conflict, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.audit import AuditTrail
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.client import ALREADY_INTEGRATED
from tillbridge.service.types import Integration, IntegrationRequest, IntegrationWithSecret, Store
from tillbridge.stores.integration_plan import (
    IntegrationPlan,
    Kind,
    State,
    choose_store,
    plan_of,
    state_of,
)
from tillbridge.stores.integration_repository import (
    IntegrationFacts,
    IntegrationRepository,
    Intent,
)
from tillbridge.stores.link import LinkMonitor

log = get_logger()

_TRIES = 3  # to create an integration, if its answer is lost each time


@dataclass(frozen=True, slots=True)
class Integrated:
    """The result: the service's id of the store, and what was done there.

    Without `secret_known` deliveries cannot be verified: the secret has to be rotated.
    """

    store_id: str
    created: bool
    changed: tuple[str, ...] = ()
    secret_known: bool = True


@dataclass(frozen=True, slots=True)
class IntegrationSnapshot:
    """A store as the service has it, and as it is wanted."""

    store: Store
    now: Integration | None
    wanted: IntegrationRequest
    plan: IntegrationPlan
    facts: IntegrationFacts


async def _ignore(_store: str) -> None:
    """Before anything is received, nobody needs to read the secrets again."""


class Integrator:
    """Integrates one configured store. Does one thing at a time."""

    def __init__(
        self,
        context: StoreContext,
        link: LinkMonitor,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        settings, shared = context.settings, context.bridge.settings
        self._store = context.store
        self._configured = settings.store_id
        self._client = context.service
        self._quiet_s = shared.service.reintegrate_quiet_s
        self._rotate_field = shared.assumptions.rotate_secret_field
        self._link = link
        self._sleep = sleep
        self._lock = asyncio.Lock()
        self._trail = AuditTrail(context.bridge.ledger, context.bridge.clock)
        # For whoever verifies deliveries: the secret is about to change; read the secrets again.
        self.on_secret_expected: Callable[[str], None] = lambda _store: None
        self.on_secret: Callable[[str], Awaitable[None]] = _ignore
        self.repository = IntegrationRepository(context)
        self.wanted = IntegrationRequest(
            webhook_url=f"{shared.receiver.public_url.rstrip('/')}/webhooks/{context.store}",
            menu_sync_direction=settings.menu_sync_direction,
            external_store_id=settings.location_id,
            auto_accept_orders=settings.auto_accept_orders,
            notification_email=settings.notification_email,
        )

    @property
    def new_secret_takes_new_integration(self) -> bool:
        """Whether rotating requires a new integration."""
        return not self._rotate_field

    # -- requests. Each raises BridgeError (including ServiceError) with what to do.

    async def look(self) -> IntegrationSnapshot:
        """Read the store and its integration, and compare."""
        async with self._lock:
            return await self._look()

    async def choose(self, store_id: str) -> None:
        """Record which of the merchant's stores a person has chosen.

        Raises ConfigError if the configuration names another one.
        """
        if self._configured not in {None, store_id}:
            raise ConfigError(
                _("bridge.toml says store_id = {configured}, but you chose {chosen}.").format(
                    configured=f'"{self._configured}"', chosen=store_id
                ),
                fix=_("Correct store_id in bridge.toml, or choose the same store."),
            )
        async with self._lock:
            stores = await self._client.stores()
            await self._check_free(choose_store(stores, self._store, chosen=store_id))
            await self.repository.note_choice(store_id)

    async def integrate(self) -> Integrated:
        """Integrate the store, or take over an integration and update it."""
        async with self._lock:
            await self._resume()
            store = await self._chosen()
            if state_of(store) is State.INTEGRATED:
                return await self._take_over()
            await self.repository.begin(Intent("make"))
            try:
                return await self._make(store.store_id, Intent("make"), remove=False)
            except Conflict as conflict:
                if conflict.code != ALREADY_INTEGRATED:
                    raise
            # Another integration, which the list of stores did not show: it is not removed.
            state = state_of(await self._chosen())
            if state is State.INTEGRATED:
                return await self._take_over()
            raise _wrong_state(state)

    async def apply(self, kinds: frozenset[Kind]) -> Integrated | None:
        """Read, compare, and do what is needed if it is of these kinds.

        If a new integration is needed but not allowed, do what a PUT can change.
        """
        async with self._lock:
            await self._resume()
            seen = await self._look()
            if seen.plan.kind in kinds:
                return await self._apply(seen)
            if seen.plan.kind is Kind.REINTEGRATE and seen.plan.changes and Kind.CHANGE in kinds:
                return await self._change(seen, secret_known=True)
            return None

    async def reintegrate(self) -> Integrated:
        """Remove the integration and make a new one, with a new webhook secret."""
        async with self._lock:
            # If exactly this was cut off a moment ago, it is not done twice.
            return await self._resume() or await self._replace(await self._chosen())

    async def rotate(self) -> Integrated:
        """Get a new webhook secret; the old one stays valid for a while."""
        async with self._lock:
            if resumed := await self._resume():
                return resumed
            store = await self._chosen()
            field = self._rotate_field
            if not field or state_of(store) is not State.INTEGRATED:
                return await self._replace(store)
            await self.repository.begin(Intent("rotate"))
            return await self._rotate_by_field(store.store_id, field)

    async def remove(self) -> str:
        """Remove the integration, and disconnect the store; return its id."""
        async with self._lock:
            facts = await self.repository.facts()
            store_id = facts.store_id or (await self._chosen(facts)).store_id
            await self.repository.begin(Intent("remove"))
            await self._release(store_id)
            return store_id

    async def resume(self) -> None:
        """Finish what was cut off, if anything."""
        async with self._lock:
            await self._resume()

    async def adopt(self, seen: IntegrationSnapshot) -> None:
        """Record an integration that is ours, after the ledger was lost."""
        if seen.now is not None:
            await self.repository.note(
                seen.store.store_id, seen.now, self.wanted, secret_known=True
            )
            await self.on_secret(self._store)

    # -- reading

    async def _look(self) -> IntegrationSnapshot:
        facts = await self.repository.facts()
        store = await self._chosen(facts)
        state, now, known = state_of(store), None, False
        if state is State.INTEGRATED:
            now = await self._integration_of(store.store_id)
            known = now is not None and facts.secret_known(now)
        plan = plan_of(state, now, self.wanted, secret_known=known)
        return IntegrationSnapshot(store, now, self.wanted, plan, facts)

    async def _chosen(self, facts: IntegrationFacts | None = None) -> Store:
        """Choose the store, and record its name for printing."""
        chosen = (facts or await self.repository.facts()).store_id or ""
        store = choose_store(
            await self._client.stores(),
            self._store,
            configured=self._configured or "",
            chosen=chosen,
        )
        await self._check_free(store)
        if store.name:
            await self.repository.note_store_name(store.name)
        return store

    async def _check_free(self, store: Store) -> None:
        """Refuse a store that is already assigned to another store of this bridge."""
        taken = await self.repository.taken_by(store.store_id)
        if taken is not None:
            raise BridgeError(
                _("The store {store_id} is already connected here, as {taken}.").format(
                    store_id=store.store_id, taken=taken
                ),
                fix=_("Choose another: tillbridge connect {store} --store-id ID").format(
                    store=self._store
                ),
            )

    async def _integration_of(self, store_id: str) -> Integration | None:
        try:
            return await self._client.integration(store_id)
        except Refused as refused:
            if refused.code != NOT_INTEGRATED:
                raise
            return None

    # -- taking over, changing

    async def _take_over(self) -> Integrated:
        """Update an existing integration, whoever created it."""
        seen = await self._look()
        if seen.plan.kind is Kind.ROTATE:
            log.warning("integration.secret_unknown", store=self._store)
            return await self._change(seen, secret_known=False)
        return await self._apply(seen)

    async def _apply(self, seen: IntegrationSnapshot) -> Integrated:
        match seen.plan.kind:
            case Kind.NOTHING | Kind.CHANGE:
                return await self._change(seen, secret_known=True)
            case Kind.REINTEGRATE:
                if seen.plan.changes:  # so that a refusal comes before anything is removed
                    await self._change(seen, secret_known=True)
                return await self._replace(seen.store, changed=_fields(seen.plan))
            case Kind.ROTATE:
                return await self._replace(seen.store, changed=_fields(seen.plan))
            case Kind.INTEGRATE:
                await self.repository.begin(Intent("make"))
                return await self._make(seen.store.store_id, Intent("make"), remove=False)
            case Kind.WAIT:
                raise _wrong_state(seen.plan.state)

    async def _change(self, seen: IntegrationSnapshot, *, secret_known: bool) -> Integrated:
        store_id, now = seen.store.store_id, seen.now or Integration(seen.store.store_id)
        if seen.plan.changes:
            now = await self._client.change_integration(store_id, **seen.plan.body)
        await self.repository.note(store_id, now, self.wanted, secret_known=secret_known)
        await self.on_secret(self._store)
        changed = tuple(sorted(seen.plan.body))
        log.info("integration.aligned", store=self._store, changed=list(changed))
        return Integrated(store_id, created=False, changed=changed, secret_known=secret_known)

    # -- creating

    async def _replace(self, store: Store, changed: tuple[str, ...] = ()) -> Integrated:
        integrated = state_of(store) is State.INTEGRATED
        intent = Intent(
            "replace",
            was=store.integration.integration_id if store.integration else None,
            closed=integrated and store.status == "active" and self._quiet_s > 0,
        )
        await self.repository.begin(intent)
        if intent.closed:
            await self._client.set_store_status(store.store_id, "inactive")
            log.info("integration.store_closed", store=self._store, seconds=self._quiet_s)
            why = "to be reintegrated"
            await self._trail.own("store.pause", self._store, why=why, reason="")
            await self._sleep(self._quiet_s)
        remove = state_of(store) is not State.NOT_INTEGRATED
        done = await self._make(store.store_id, intent, remove=remove)
        return replace(done, changed=changed)

    async def _make(self, store_id: str, intent: Intent, *, remove: bool = True) -> Integrated:
        """Remove an existing integration, create a new one, and open the storefront again.

        A 409 concerns this bridge's own integration if an answer was lost, and the secret with it:
        then repeat. An integration that somebody else created in the meantime stays.
        """
        self._link.block("being reintegrated")
        for tries_left in reversed(range(_TRIES)):
            if remove:
                await self._delete(store_id)
            await self.repository.prove_writable()
            try:
                made = await self._shown(self._client.integrate(store_id, self.wanted))
            except Refused:
                if not remove:  # there was none before, so there is nothing to resume
                    await self.repository.finished()
                raise
            except Conflict as conflict:
                now = await self._integration_of(store_id)
                own = now is not None and now.webhook_url == self.wanted.webhook_url
                if conflict.code == ALREADY_INTEGRATED and not own:
                    await self.repository.finished()
                if conflict.code != ALREADY_INTEGRATED or not own or not tries_left:
                    raise
                log.warning("integration.answer_lost", store=self._store)
                remove = True
            else:
                log.info("integration.created", store=self._store, store_id=store_id)
                return await self._made(store_id, made.integration, intent)
        raise AssertionError  # the last try returns or raises

    async def _made(self, store_id: str, now: Integration, intent: Intent) -> Integrated:
        """Everything that follows once the secret of the new integration is stored."""
        await self.repository.note(store_id, now, self.wanted, secret_known=True, made=True)
        await self.on_secret(self._store)
        self._link.open()
        if intent.closed:
            await self._client.set_store_status(store_id, "active")
            log.info("integration.store_opened", store=self._store)
            await self._trail.own("store.resume", self._store, why="reintegrated", reason="")
        await self.repository.finished()
        return Integrated(store_id, created=True)

    async def _shown(self, call: Awaitable[IntegrationWithSecret]) -> IntegrationWithSecret:
        """Make a call that returns a secret, and store it before anything else happens."""
        self.on_secret_expected(self._store)
        try:
            shown = await call
            if shown.webhook_secret:
                await self.repository.store_secret(
                    shown.webhook_secret, shown.integration, self.wanted.external_store_id
                )
        finally:
            await self.on_secret(self._store)
        return shown

    async def _rotate_by_field(self, store_id: str, field: str) -> Integrated:
        try:
            rotated = await self._shown(self._client.rotate_webhook_secret(store_id, field))
        except Refused:
            await self.repository.finished()
            raise
        if not rotated.webhook_secret:
            # It signs with a secret that nobody knows: only a new integration returns one.
            log.warning("integration.rotation_showed_no_secret", store=self._store)
            return await self._make(store_id, Intent("rotate"))
        await self.repository.note(store_id, rotated.integration, self.wanted, secret_known=True)
        await self.repository.finished()
        log.info("integration.secret_rotated", store=self._store)
        return Integrated(store_id, created=False)

    # -- removing, and resuming what was cut off

    async def _release(self, store_id: str) -> None:
        await self._delete(store_id)
        self._link.block("removed")
        await self.repository.note_removed()
        await self.on_secret(self._store)
        log.warning("integration.removed", store=self._store, store_id=store_id)

    async def _delete(self, store_id: str) -> None:
        try:
            await self._client.remove_integration(store_id)
        except Refused as refused:
            if refused.code != NOT_INTEGRATED:
                raise

    async def _resume(self) -> Integrated | None:
        """Finish what was cut off; return the integration created for it, if any."""
        facts = await self.repository.facts()
        intent = facts.intent
        if intent is None:
            return None
        log.warning("integration.resumed", store=self._store, begun=intent.kind)
        store = await self._chosen(facts)
        if intent.kind == "remove":
            await self._release(store.store_id)
            return None
        now = await self._integration_of(store.store_id)
        ours = now is not None and facts.secret_known(now)
        made = ours and intent.kind != "rotate"
        if now is not None and made and now.integration_id != intent.was:
            # The secret is stored; only the following steps were cut off.
            self._link.block("being reintegrated")  # opening it again notifies the flows
            return await self._made(store.store_id, now, intent)
        return await self._make(store.store_id, intent)


def _wrong_state(state: State) -> BridgeError:
    return BridgeError(
        _("At the ordering service the connection is {state}.").format(state=state),
        fix=_("To see what to do, run: tillbridge status"),
    )


def _fields(plan: IntegrationPlan) -> tuple[str, ...]:
    return tuple(sorted(each.field for each in plan.differences))


_RETRY_DELAYS_S = (60.0, 300.0, 1800.0, 7200.0, 21600.0)
_ON_THE_WAY_S = 10.0  # the receiver time-out


def settle_s(absent_s: float, least_s: float) -> float:
    """Return how long after its start the bridge has everything placed during its absence.

    At least `least_s`, which covers the first repetition; 0 means no waiting.
    """
    if least_s <= 0:
        return 0.0
    for delay_s, until_s in zip(_RETRY_DELAYS_S, accumulate(_RETRY_DELAYS_S), strict=True):
        if absent_s < until_s:
            # `least_s` is for an absence within the first minute.
            return least_s if until_s == _RETRY_DELAYS_S[0] else delay_s + _ON_THE_WAY_S
    return _RETRY_DELAYS_S[-1] + _ON_THE_WAY_S  # what was placed later is still being repeated
