"""Keeps a store's integration in line with the configuration, and tells what only people can do.

Specification: Integration status. One round reads the store and its integration, compares, applies
what may be applied, and opens or closes problems. Transitions are told, not rounds.
"""

import time
from collections.abc import Awaitable, Callable, Collection

from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.service.types import Store
from tillbridge.stores.door import StoreDoor
from tillbridge.stores.integration import Integrator
from tillbridge.stores.integration_plan import (
    Difference,
    IntegrationPlan,
    Kind,
    State,
    changed_elsewhere,
)
from tillbridge.stores.integration_sight import Seen

log = get_logger()

APPLIED: dict[str, frozenset[Kind]] = {
    "apply": frozenset({Kind.CHANGE, Kind.REINTEGRATE}),
    "apply_safe": frozenset({Kind.CHANGE}),
    "tell": frozenset(),
}
_STANDING = (
    "integration.missing",
    "integration.disabled",
    "integration.pending",
    "integration.removed",
    "integration.secret_missing",
)


def standing_problem(plan: IntegrationPlan) -> str | None:
    """Return the problem that an integration in this state is, None for none. Pure."""
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


class IntegrationKeeper:
    """Looks after one store. `applied` are the kinds of plans that need no person.

    `settles_in_s` tells for how long no new integration should be made by itself yet. `on_read`
    takes each round's store, and when its read began (monotonic seconds).
    """

    def __init__(
        self,
        store: str,
        integrator: Integrator,
        desk: ProblemDesk,
        door: StoreDoor,
        *,
        applied: Collection[Kind],
        settles_in_s: Callable[[], float] = lambda: 0.0,
        on_read: Callable[[Store, float], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._integrator = integrator
        self._books = integrator.books
        self._desk = desk
        self._door = door
        self._applied = frozenset(applied)
        self._settles_in_s = settles_in_s
        self._on_read = on_read
        self._waits = False

    async def round(self) -> bool:
        """Look once, and do what is to be done; False where it should be looked at again soon.

        Raises BridgeError: what the service or the ledger refused.
        """
        await self._integrator.resume()
        await self._books.forget_old_secrets()
        if await self._books.removed():
            self._door.shut("removed")
            self._tell("integration.removed")
            return True
        asked_at = time.monotonic()
        seen = await self._integrator.look()
        if await self._books.store_id() is None:
            return await self._recalled(seen)
        if self._on_read is not None:
            await self._on_read(seen.store, asked_at)
        self._waits = False
        seen = await self._brought_in_line(seen)
        await self._books.note_seen(seen.plan)
        problem = standing_problem(seen.plan)
        self._tell(problem)
        if seen.plan.state is State.INTEGRATED:
            self._door.open()
        else:
            self._door.shut(str(seen.plan.state))
        return problem is None and not self._waits

    async def _recalled(self, seen: Seen) -> bool:
        """After a ledger was lost: what is ours is learnt again. Else connecting is a person's."""
        if seen.plan.state is not State.INTEGRATED or seen.plan.kind is Kind.ROTATE:
            return False
        await self._integrator.adopt(seen)
        log.info("integration.recalled", store=self._store)
        return False  # and look again, now that it is known

    async def _brought_in_line(self, seen: Seen) -> Seen:
        """Apply what may be applied; return how it is then."""
        differs = seen.plan.kind in {Kind.CHANGE, Kind.REINTEGRATE}
        lately = await self._books.restored_lately()
        if not differs:
            self._desk.close("integration.differs", self._store)
            if not lately:
                self._desk.close("integration.changed_elsewhere", self._store)
            return seen
        others = changed_elsewhere(seen.plan, await self._books.acknowledged())
        if others:
            self._desk.open("integration.changed_elsewhere", self._store, detail=_words(others))
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
                await self._books.note_restored()
            seen = await self._integrator.look()
        left = seen.plan.differences
        if left and not others and not self._waits:
            self._desk.open("integration.differs", self._store, detail=_words(left))
        else:
            self._desk.close("integration.differs", self._store)
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

    def _tell(self, problem: str | None) -> None:
        for code in _STANDING:
            if code != problem:
                self._desk.close(code, self._store)
        if problem is not None:
            self._desk.open(problem, self._store)


def _words(differences: Collection[Difference]) -> str:
    return "; ".join(each.line for each in differences) or _("nothing")
