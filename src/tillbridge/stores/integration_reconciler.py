"""Keeps a store's integration in line with the configuration; reports what only people can do.

Specification: Integration status. One round reads the store and its integration, compares, applies
what it may, and opens or closes problems. Transitions are reported, not rounds.
"""

import time
from collections.abc import Awaitable, Callable, Collection

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError, ConsentLost, LedgerError, ServiceError
from tillbridge.core.i18n import joined
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.service.tokens import StoreTokens
from tillbridge.service.types import Store
from tillbridge.stores.integration import IntegrationSnapshot, Integrator
from tillbridge.stores.integration_plan import (
    Difference,
    IntegrationPlan,
    Kind,
    State,
    changed_elsewhere,
)
from tillbridge.stores.link import LinkMonitor

log = get_logger()

APPLIED: dict[str, frozenset[Kind]] = {
    "apply": frozenset({Kind.CHANGE, Kind.REINTEGRATE}),
    "apply_safe": frozenset({Kind.CHANGE}),
    "tell": frozenset(),
}
_STATES = frozenset(
    {
        "integration.missing",
        "integration.disabled",
        "integration.pending",
        "integration.removed",
        "integration.secret_missing",
    }
)


def problem_of_state(plan: IntegrationPlan) -> str | None:
    """Return the problem for an integration in this state, or None. Pure."""
    match plan.kind:
        case Kind.WAIT:
            disabled = plan.state is State.DISABLED
            return "integration.disabled" if disabled else "integration.pending"
        case Kind.INTEGRATE:
            return "integration.missing"
        case Kind.ROTATE:
            return "integration.secret_missing"
        case _:
            return None


_FIRST_WAIT_S = 1.0
_HURRY_S = 0.1
_LONGEST_WAIT_S = 60.0  # while something is wrong


async def _nothing(*_values: object) -> None:
    """Nobody listens to the rounds."""


class IntegrationReconciler:
    """One store's: checks every `integration_check_s` while all is well, and sooner otherwise.

    `settles_in_s` returns for how long no new integration should be made automatically. `on_read`
    receives each round's store, and when its read began (monotonic seconds); `after_round` is
    awaited after each complete round.
    """

    def __init__(
        self,
        context: StoreContext,
        integrator: Integrator,
        link: LinkMonitor,
        tokens: StoreTokens,
        *,
        settles_in_s: Callable[[], float] = lambda: 0.0,
        on_read: Callable[[Store, float], Awaitable[None]] = _nothing,
        after_round: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        settings = context.bridge.settings.service
        self._store = context.store
        self._integrator = integrator
        self._repository = integrator.repository
        self._problems = context.bridge.problems
        self._link = link
        self._tokens = tokens
        self._applied = APPLIED[settings.integration_changes]
        self._check_s = settings.integration_check_s
        self._settles_in_s = settles_in_s
        self._on_read = on_read
        self._after_round = after_round
        self._waits = False  # for deliveries, before creating a new integration
        self._failed_with = ""
        self._requested = False
        self._hurried = 0  # consecutive rounds that somebody asked for
        self._wait_s = _FIRST_WAIT_S
        clock = context.bridge.clock
        self.worker = Worker("integration", self._step, context.supervisor, clock)
        self.worker.wake()

    def look(self) -> None:
        """Check soon: a call was refused, the service is back, or a person has done something."""
        if not self._requested:
            self._requested = True
            # If the service's answers contradict each other, this must not loop.
            self.worker.wake_in(min(_LONGEST_WAIT_S, _HURRY_S * 2**self._hurried))

    async def _step(self) -> float:
        """Do a round, and return in how many seconds the next one is due.

        A store that was never connected has no tokens: nothing is requested until it is connected.
        """
        self._hurried = min(self._hurried + 1, 16) if self._requested else 0
        self._requested = False
        if await self._tokens.tokens() is not None and await self._round_is_well():
            self._wait_s = _FIRST_WAIT_S
            return self._check_s
        wait_s, self._wait_s = self._wait_s, min(_LONGEST_WAIT_S, self._wait_s * 2)
        return min(self._check_s, wait_s)

    async def _round_is_well(self) -> bool:
        try:
            well = await self.round()
            await self._after_round()
        except (ConsentLost, LedgerError, ServiceError) as failure:
            log.debug("integration.not_read", store=self._store, detail=failure.text)
            return False
        except BridgeError as failure:  # a person has to choose a store, or the configured one
            if str(failure) != self._failed_with:
                self._failed_with = str(failure)
                log.warning("integration.not_read", store=self._store, detail=str(failure))
            if (await self._repository.facts()).store_id is not None:
                found = Found("integration.differs", detail={"detail": failure.text})
                self._problems.report(Scope.of_one(found.code, self._store), [found])
            return False
        self._failed_with = ""
        return well

    async def round(self) -> bool:
        """Check once, and do what is needed; return False if another check is needed soon.

        Raises BridgeError: what the service or the ledger refused.
        """
        await self._integrator.resume()
        await self._repository.forget_old_secrets()
        if (await self._repository.facts()).removed:
            self._link.block("removed")
            self._report("integration.removed")
            return True
        asked_at = time.monotonic()
        seen = await self._integrator.look()
        if seen.facts.store_id is None:
            return await self._recalled(seen)
        await self._on_read(seen.store, asked_at)
        self._waits = False
        seen = await self._reconciled(seen)
        await self._repository.note_seen(seen.plan)
        problem = problem_of_state(seen.plan)
        self._report(problem)
        if seen.plan.state is State.INTEGRATED:
            self._link.open()
        else:
            self._link.block(str(seen.plan.state))
        return problem is None and not self._waits

    async def _recalled(self, seen: IntegrationSnapshot) -> bool:
        """After the ledger was lost, recognise our integration. Else a person has to connect."""
        if seen.plan.state is not State.INTEGRATED or seen.plan.kind is Kind.ROTATE:
            return False
        await self._integrator.adopt(seen)
        log.info("integration.recalled", store=self._store)
        return False  # and check again, now that it is known

    async def _reconciled(self, seen: IntegrationSnapshot) -> IntegrationSnapshot:
        """Apply what may be applied; return the new state."""
        differs = seen.plan.kind in {Kind.CHANGE, Kind.REINTEGRATE}
        lately = seen.facts.restored_lately
        if not differs:
            self._report_differences("integration.differs", ())
            if not lately:
                self._report_differences("integration.changed_elsewhere", ())
            return seen
        others = changed_elsewhere(seen.plan, seen.facts.acknowledged)
        if others:
            self._report_differences("integration.changed_elsewhere", others)
            log.warning(
                "integration.changed_elsewhere",
                store=self._store,
                fields=[each.field for each in others],
            )
        if others and lately:
            return seen
        done = await self._integrator.apply(self._kinds_now(seen.plan))
        if done is not None:
            log.info("integration.applied", store=self._store, changed=list(done.changed))
            if others:
                await self._repository.note_restored()
            seen = await self._integrator.look()
        left = () if others or self._waits else seen.plan.differences
        self._report_differences("integration.differs", left)
        return seen

    def _kinds_now(self, plan: IntegrationPlan) -> frozenset[Kind]:
        """Return what may be done now; a new integration waits for deliveries to arrive."""
        if plan.kind is not Kind.REINTEGRATE or plan.kind not in self._applied:
            return self._applied
        wait_s = self._settles_in_s()
        if wait_s <= 0:
            return self._applied
        self._waits = True
        log.info("integration.waits_for_deliveries", store=self._store, seconds=round(wait_s, 1))
        return self._applied - {Kind.REINTEGRATE}

    def _report(self, problem: str | None) -> None:
        found = [] if problem is None else [Found(problem)]
        self._problems.report(Scope(self._store, _STATES), found)

    def _report_differences(self, code: str, differences: Collection[Difference]) -> None:
        detail = joined("; ", [each.line for each in differences])
        found = [Found(code, detail={"detail": detail})] if differences else []
        self._problems.report(Scope.of_one(code, self._store), found)
