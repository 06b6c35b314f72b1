"""What the lanes of one store's menu share, passed as one argument."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.menu.assess import Rules
from tillbridge.menu.overlay import Overlay
from tillbridge.menu.precedence import CallsInFlight
from tillbridge.model.catalogue import Availability

if TYPE_CHECKING:
    from tillbridge.core.clock import Clock
    from tillbridge.core.supervision import Supervisor
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.ledger.problems import ProblemTracker
    from tillbridge.pos.runner import PosRunner
    from tillbridge.service.client import ServiceClient

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class LatestAvailability:
    """What was read last of the POS's availability; changed by the availability lane alone.

    `by_pos` is None while it is not known. `unconfirmed` are items of which two calls carried the
    availability at the same time, so that it is sent once more.
    """

    by_pos: Mapping[str, Availability] | None = None
    unconfirmed: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class MenuContext:
    """One store, its rules, and what its lanes have to know of each other."""

    store: str
    pos: "PosRunner"
    service: "ServiceClient"
    ledger: "Ledger"
    problems: "ProblemTracker"
    clock: "Clock"
    supervisor: "Supervisor"
    rules: Rules
    base_url: str  # of the service
    job_poll_s: float
    calls: CallsInFlight = field(default_factory=CallsInFlight)
    availability: LatestAvailability = field(default_factory=LatestAvailability)

    @classmethod
    def of(cls, store: StoreContext) -> "MenuContext":
        """Return the context of a store's menu."""
        bridge, pos = store.bridge, store.pos.menu
        return cls(
            store.store,
            pos,
            store.service,
            bridge.ledger,
            bridge.problems,
            bridge.clock,
            store.supervisor,
            Rules.of(store.settings, bridge.settings.assumptions),
            bridge.settings.service.base_url,
            bridge.settings.service.job_poll_s,
            availability=LatestAvailability(None if pos.reads_availability else {}),
        )

    async def read(
        self,
        query: Callable[Concatenate[Connection, str, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Ask the ledger about this store. Raises LedgerError."""
        return await self.ledger.read(
            lambda connection: query(connection, self.store, *arguments, **options)
        )

    async def write(
        self,
        change: Callable[Concatenate[Connection, str, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Change what the ledger has of this store, in one transaction. Raises LedgerError."""
        return await self.ledger.write(
            lambda connection: change(connection, self.store, *arguments, **options)
        )

    def open_problem(self, code: str, subject: str = "", **detail: object) -> None:
        """Open a problem of this store; of one that is open only the detail changes."""
        self.problems.open(code, self.store, subject, **detail)

    def close_problem(self, code: str, subject: str = "") -> None:
        """Close a problem of this store, if it is open."""
        self.problems.close(code, self.store, subject)

    def begin_plan(self) -> Overlay:
        """Return what the POS has of availability now, for a plan: after the export was read.

        Reading takes its time, and what sells out meanwhile must not come back with it.
        """
        self.calls.plan_begins()
        return self.overlay()

    def overlay(self) -> Overlay:
        """Return what the POS has of availability now; the ledger adds the staff's overrides."""
        return Overlay(self.clock.now_ms(), self.availability.by_pos)
