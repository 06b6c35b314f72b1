"""What the lanes of one store's menu share: their context, rounds one at a time, reading exports.

A lane is one subject (menu, availability, tables): its rounds are requested, made one at a time,
and made again where they failed. What cannot be read is reported, and the last good menu stays
(invariant 4). An export that is still being written, or locked by the till, mends itself and is
read again soon; only after a while is it a problem.
"""

import asyncio
import gc
import time
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from sqlalchemy import Connection

from tillbridge.adapter import BadRow, ExportUnreadable, PosFailure
from tillbridge.config import StoreSettings
from tillbridge.core.context import StoreContext
from tillbridge.core.errors import (
    BridgeError,
    Conflict,
    ConsentLost,
    LedgerError,
    OutcomeUnknown,
    RateLimited,
    Refused,
    ServiceDown,
    ServiceError,
)
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger import menu
from tillbridge.menu.compare import changes_from
from tillbridge.menu.guard import Rules
from tillbridge.menu.overlay import CallsInFlight, Overlay
from tillbridge.model.catalogue import Availability, Catalogue, CatalogueChanges
from tillbridge.pos.validation import bad_rows_problem, unreadable_problem
from tillbridge.service.answers import NOT_INTEGRATED

if TYPE_CHECKING:
    from tillbridge.core.clock import Clock
    from tillbridge.core.worker import Supervisor
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.ledger.problems import ProblemTracker
    from tillbridge.pos.runner import PosRunner
    from tillbridge.service.client import ServiceClient

log = get_logger()

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

LONGEST_BACKOFF_S = 15.0  # so soon after a service is back somebody notices, and all go on
PATIENCE_S = 5.0  # so long may an export be in the making before it is a problem
SOON_S = 0.5
# What is mended without the file changing (a permission, a share) is noticed after so long.
UNCHANGED_S = 15.0
PUSH_NOT_ALLOWED = "menu.push_not_allowed"


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
    settings: StoreSettings
    pos: "PosRunner"
    service: "ServiceClient"
    ledger: "Ledger"
    problems: "ProblemTracker"
    clock: "Clock"
    supervisor: "Supervisor"
    rules: Rules
    base_url: str  # of the service
    job_poll_s: float
    availability: LatestAvailability
    calls: CallsInFlight = field(default_factory=CallsInFlight)

    @classmethod
    def of(cls, store: StoreContext) -> "MenuContext":
        """Return the context of a store's menu."""
        bridge, settings, pos = store.bridge, store.settings, store.pos.menu
        return cls(
            store.store,
            settings,
            pos,
            store.service,
            bridge.ledger,
            bridge.problems,
            bridge.clock,
            store.supervisor,
            Rules(settings.menu, bridge.settings.assumptions, settings.currency),
            bridge.settings.service.base_url,
            bridge.settings.service.job_poll_s,
            LatestAvailability(None if pos.reads_availability else {}),
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

    def report(
        self, code: str, detail: Mapping[str, object] | None = None, subject: str = ""
    ) -> None:
        """Report whether the store has this problem now: with that detail, or (None) not at all."""
        found = [] if detail is None else [Found(code, subject, detail)]
        self.problems.report(Scope(self.store, frozenset({code}), subject), found)

    def overlay(self) -> Overlay:
        """Return what the POS has of availability now; the ledger adds the staff's overrides."""
        return Overlay(self.clock.now_ms(), self.availability.by_pos)


class JobLost(BridgeError):
    """The service no longer knows the job, and shows no sync since it began."""


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What the next round shall do beyond the usual.

    Compare everything, push it all, or send what the service refused before (`retry_refused`).
    """

    whole: bool = False
    full: bool = False
    retry_refused: bool = False
    since: float | None = None  # monotonic, when the export changed

    def __or__(self, other: "SyncRequest") -> "SyncRequest":
        """Return both requests in one."""
        begun = [each for each in (self.since, other.since) if each is not None]
        return SyncRequest(
            whole=self.whole or other.whole,
            full=self.full or other.full,
            retry_refused=self.retry_refused or other.retry_refused,
            since=min(begun, default=None),
        )


USUAL = SyncRequest()


class SyncLane(ABC, Generic[T]):
    """The rounds of one subject (menu, availability, tables) of one store."""

    push_failed: ClassVar = "menu.push_failed"  # the problem, and the log event

    def __init__(self, ctx: MenuContext, subject: str) -> None:
        self.ctx = ctx
        self.subject = subject
        self.worker = Worker(subject, self.step, ctx.supervisor, ctx.clock)
        self.refused_digest = ""  # of a plan that the service refuses as a whole
        self._requested = USUAL
        self._one_at_a_time = asyncio.Lock()
        self._passing_since: float | None = None  # monotonic, of an export in the making
        self._unreadable = ""  # why the export cannot be read, as it was logged

    @abstractmethod
    async def round(self, request: SyncRequest) -> T | None:
        """Make one round; None where the export cannot be read now."""

    def request(self, request: SyncRequest = USUAL, *, after_s: float = 0.0) -> None:
        """Ask for a round; many requests are one round."""
        self.postpone(request)
        if request.whole or request.full:
            self.refused_digest = ""
        if after_s:
            self.worker.wake_in(after_s)
        else:
            self.worker.wake()

    def postpone(self, request: SyncRequest) -> None:
        """Leave to the next round what this one could not do."""
        self._requested |= request

    def retry(self) -> None:
        """Ask for a round although the service refused the same plan before."""
        self.refused_digest = ""
        self.worker.wake()

    async def now(self, request: SyncRequest = USUAL) -> T | None:
        """Make a round now; a failure is reported before it is raised.

        Raises ServiceError, JobLost or LedgerError.
        """
        async with self._one_at_a_time:
            request, self._requested = request | self._requested, USUAL
            try:
                return await self.round(request)
            except Exception as failure:
                self.postpone(request)
                if isinstance(failure, ServiceError | JobLost | LedgerError):
                    self._failed(failure)
                raise

    def succeeded(self) -> None:
        """Close what a failure opened; the next one is a first one again."""
        self.worker.succeeded()
        self.ctx.report(self.push_failed, None, self.subject)

    async def step(self) -> None:
        """Make a round, as the worker does."""
        with suppress(ServiceError, JobLost, LedgerError):  # reported, and tried again by itself
            await self.now()

    def _failed(self, failure: ServiceError | JobLost | LedgerError) -> None:
        """Try again where that can help, and report to a person where it cannot.

        What is refused for good, or waits for the merchant's consent, is not tried again by a
        timer: something has to change first.
        """
        log.warning(
            self.push_failed,
            store=self.ctx.store,
            subject=self.subject,
            failure=type(failure).__name__,
            detail=failure.text,
        )
        match failure:
            case ConsentLost():
                return  # `stores` reports it, and requests rounds when consent is back
            case Refused(code=code) if code == NOT_INTEGRATED:
                return  # (as above, for the integration)
            case Refused(code=code) if code == PUSH_NOT_ALLOWED:
                self.ctx.report(PUSH_NOT_ALLOWED, {})
                return
            case RateLimited():
                self.worker.wake_in(failure.retry_after_s)
                return
            case Refused() | Conflict():
                pass
            case _:
                self.worker.wake_in(self.worker.back_off(LONGEST_BACKOFF_S))
        if isinstance(failure, Refused | Conflict | ServiceDown | OutcomeUnknown | JobLost):
            self.ctx.report(self.push_failed, {"detail": failure.text}, self.subject)

    # -- reading the subject's export

    async def read_export(self, reading: Callable[[], Awaitable[R]]) -> R | None:
        """Return what was read; None where it cannot be now: then it is read again by itself."""
        try:
            found = await reading()
        except ExportUnreadable as failure:
            self._is_unreadable(failure)
            return None
        except PosFailure as failure:
            self._log_unreadable(failure.message or type(failure).__name__)
            self.worker.wake_in(self.worker.back_off(LONGEST_BACKOFF_S))
            return None
        self._passing_since = None
        self._unreadable = ""
        self.ctx.report("export.unreadable", None, self.subject)
        return found

    def report_bad_rows(self, bad_rows: Sequence[BadRow]) -> None:
        """Report the rows that cannot be read."""
        detail = bad_rows_problem(self.subject, bad_rows).detail if bad_rows else None
        self.ctx.report("export.bad_rows", detail, self.subject)

    def _is_unreadable(self, failure: ExportUnreadable) -> None:
        if failure.passing:
            now = self.ctx.clock.monotonic()
            if self._passing_since is None:
                self._passing_since = now
            patient = now - self._passing_since < PATIENCE_S
            self.worker.wake_in(SOON_S if patient else 10 * SOON_S)
            if patient:
                return
        else:
            self.worker.wake_in(UNCHANGED_S)
        self._log_unreadable(failure.text)
        found = unreadable_problem(self.subject, failure)
        self.ctx.report(found.code, found.detail, self.subject)

    def _log_unreadable(self, text: str) -> None:
        if text != self._unreadable:
            self._unreadable = text
            log.warning(
                "export.unreadable", store=self.ctx.store, subject=self.subject, detail=text
            )


async def read_now(reading: Callable[[], Awaitable[T]]) -> T:
    """Return what was read, for a person who waits for it. Raises BridgeError."""
    try:
        return await reading()
    except ExportUnreadable as failure:
        raise BridgeError(f"{failure.place} {failure.text}".strip(), fix=failure.fix) from failure
    except PosFailure as failure:
        raise BridgeError(
            failure.message or _("The till cannot be read now."),
            fix=_("Check that the till is on and connected."),
        ) from failure


# -- the menu, read as its difference where that can be


class MenuExport:
    """Reads the menu of one store, as its difference to what the service has or whole."""

    def __init__(self, ctx: MenuContext) -> None:
        self._ctx = ctx
        self._counts: tuple[int, int, int] | None = None  # as they were last logged
        self._known: KnownFingerprints | None = None

    def forget(self) -> None:
        """Take note that what the service has is not what it was."""
        self._known = None

    async def known(self) -> "KnownFingerprints":
        """Return the fingerprints of what the service has; they are cached until `forget`."""
        if self._known is None:
            self._known = KnownFingerprints(await self._ctx.read(menu.known_fingerprints))
        return self._known

    async def read(self, *, whole: bool) -> Catalogue | CatalogueChanges:
        """Return the menu, or what differs in it. Raises PosFailure where it cannot be read now."""
        started = time.perf_counter()
        reading = await (self._ctx.pos.read_catalogue() if whole else self._read_changes())
        if isinstance(reading, Catalogue):
            items, fresh = len(reading.items), reading
        else:
            items, fresh = reading.items_read, reading.fresh
        counts = (items, len(fresh.items), len(fresh.bad_rows))
        # A till that is asked every few seconds mostly answers the same.
        write = log.debug if counts == self._counts else log.info
        self._counts = counts
        write(
            "export.read",
            store=self._ctx.store,
            items=items,
            fresh=len(fresh.items),
            bad_rows=len(fresh.bad_rows),
            ms=milliseconds_since(started),
        )
        return reading

    async def _read_changes(self) -> CatalogueChanges:
        pos, known = self._ctx.pos, await self.known()
        if pos.reads_changes:
            return await pos.read_changes(known)
        return await asyncio.to_thread(changes_from, await pos.read_catalogue(), known)


class KnownFingerprints(AbstractSet[int]):
    """A set of signed 64-bit numbers over a sorted array: 8 bytes a record of the menu."""

    def __init__(self, in_order: "array[int]") -> None:
        self._in_order = in_order

    @classmethod
    def _from_iterable(cls, numbers: Iterable[int]) -> frozenset[int]:  # type: ignore[override] # what set operations give
        return frozenset(numbers)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._in_order, number)
        return place < len(self._in_order) and self._in_order[place] == number

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_order)

    def __len__(self) -> int:
        return len(self._in_order)


def milliseconds_since(start: float) -> int:
    """Return how long ago `start` (of `time.perf_counter`) was."""
    return round((time.perf_counter() - start) * 1000)


# -- Python's garbage collector, kept out of whole menus
#
# A menu of 200,000 items is a million objects without a single cycle. Walking through them, the
# collector would hold the interpreter, and with it the event loop, for a third of a second, again
# and again while the menu grows. So it pauses while a whole menu is built and compared, and passes
# over a large one from then on: reference counts free it all the same.


LARGE = 5_000  # items; walking through fewer takes no time that anybody notices

_pauses = 0


@contextmanager
def gc_paused(*, when: bool = True) -> Iterator[None]:
    """Pause the collector."""
    global _pauses  # noqa: PLW0603 -- there is one collector in a process
    if not when:
        yield
        return
    _pauses += 1
    gc.disable()
    try:
        yield
    finally:
        _pauses -= 1
        if not _pauses:
            gc.enable()


def pass_over(items: int) -> None:
    """Let the collector pass over what is there now, if that is a large menu.

    It holds until `unfreeze`: whole menus are read once a day.
    """
    if items >= LARGE:
        gc.freeze()


def unfreeze() -> None:
    """Collect what a run that is over has left; another one begins in this process."""
    gc.unfreeze()
    gc.collect()
