"""What the lanes of one store's menu share: their context, rounds one at a time, reading exports.

A lane is one subject (menu, availability, tables): its rounds are requested, made one at a time,
and made again where they failed. What cannot be read is reported, and the last good menu stays
(invariant 4). An export that is still being written, or locked by the till, mends itself and is
read again soon; only after a while is it a problem.

Availability does not wait for a menu push, and it has the last word (invariant 13). What its lane
sent since a plan was made is put into the plan's calls (`sent`). Where a menu call under way
differs, nobody knows which of the two the service applies last: such an item is sent once more
after it. Calls of availability alone, of either lane, take turns (`turn`).

A call that nobody has answered may arrive after later ones, and undo them: what was said otherwise
meanwhile is said once more when it can no longer come (`again`).
"""

import asyncio
import gc
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
)

from sqlalchemy import Connection

from tillbridge.adapter import ExportUnreadable, PosFailure
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
from tillbridge.menu.guard import Rules
from tillbridge.menu.plan import Step, portions
from tillbridge.model.catalogue import Availability
from tillbridge.model.instant import to_iso
from tillbridge.pos.runner import unreadable_detail
from tillbridge.service.answers import NOT_INTEGRATED

if TYPE_CHECKING:
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.pos.runner import PosRunner
    from tillbridge.service.client import ServiceClient

log = get_logger()

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

LONGEST_BACKOFF_S = 15.0  # so soon after the service is back this is noticed
PATIENCE_S = 5.0  # so long may an export be in the making before it is a problem
SOON_S = 0.5
# What is mended without the file changing (a permission, a share) is noticed after so long.
UNCHANGED_S = 15.0
PUSH_NOT_ALLOWED = "menu.push_not_allowed"
PORTION = 1000  # items in one commit: a delivery must not wait long for its own

AvailabilityById = Mapping[str, Availability | None]  # None: the item is removed


class CallsInFlight:
    """The calls under way of one store. Used from the event loop.

    `sent` is what the availability lane sent since the latest plan began. `unconfirmed` are items
    of which two calls carried different availability at the same time: it is sent once more.
    `availability_calls` are what its calls carry, and where that clashes with the menu's.
    `push_ids` are rows of the ledger that this process will end. `again` are items whose
    availability is to be sent once more, `whole_again` those to send as a whole, and from when on.
    """

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.sent: dict[str, Availability] = {}
        self.unconfirmed: set[str] = set()
        self.push_ids: set[int] = set()
        self.again: dict[str, float] = {}  # by the loop's clock
        self.whole_again: dict[str, float] = {}
        self._late: list[tuple[float, Step]] = []  # until when they may arrive
        self._menu: list[AvailabilityById] = []
        self.availability_calls: list[tuple[AvailabilityById, set[str]]] = []

    def may_be_late(self, step: Step, until: float) -> None:
        """Remember a call that was not answered: it may take effect until then."""
        call = (until, step)
        self._late.append(call)
        asyncio.get_running_loop().call_at(until, self._late.remove, call)

    async def note_contradictions(self, step: Step) -> bool:
        """Note what this call contradicts of calls that may arrive after it: it is sent once more.

        Return whether that is anything.
        """
        found = False
        for until, late in tuple(self._late):
            ids = await asyncio.to_thread(late.contradicted_by, step)
            self.again |= dict.fromkeys(ids, until)
            if "availability" not in {late.kind, step.kind}:
                self.whole_again |= dict.fromkeys(ids, until)
            found |= bool(ids)
        return found

    @contextmanager
    def menu(self, carried: AvailabilityById) -> Iterator[None]:
        """Hold while a menu call carries this availability of its items."""
        for others, clashed in self.availability_calls:
            clashed.update(_unlike(others, carried))
        self._menu.append(carried)
        try:
            yield
        finally:
            self._menu = [each for each in self._menu if each is not carried]

    @contextmanager
    def availability(self, carried: AvailabilityById) -> Iterator[set[str]]:
        """Hold while an availability call carries this; yields the items of which others differ."""
        clashed = {key for others in self._menu for key in _unlike(carried, others)}
        entry = (carried, clashed)
        self.availability_calls.append(entry)
        try:
            yield clashed
        finally:
            self.availability_calls = [
                each for each in self.availability_calls if each is not entry
            ]


def due_of(again: Mapping[str, float]) -> set[str]:
    """Return the items whose time has come."""
    now = asyncio.get_running_loop().time()
    return {key for key, from_s in again.items() if from_s <= now}


def _unlike(carried: AvailabilityById, others: AvailabilityById) -> Iterator[str]:
    for external_id in carried.keys() & others.keys():
        if others[external_id] != carried[external_id]:
            yield external_id


Phase = Literal["", "reading", "sending", "importing"]


class ProgressView(TypedDict):
    """How far a menu is on its way: `done` of `total` items; `phase` is "" while none is.

    It is read from the till (then nobody knows the total), sent and acknowledged, or imported by
    the service, which does not say how far that is.
    """

    phase: Phase
    since: str | None
    done: int
    total: int


class MenuContext:
    """One store, its rules, and what its lanes have to know of each other.

    `by_pos` is what was read last of the POS's availability, None while it is not known; it is
    changed by the availability lane alone. `progress` is for people, and changed by the menu lane.
    """

    def __init__(self, context: StoreContext) -> None:
        bridge, settings = context.bridge, context.settings
        self.store, self.settings = context.store, settings
        self.pos: PosRunner = context.pos.menu
        self.service: ServiceClient = context.service
        self.ledger: Ledger = bridge.ledger
        self.clock = bridge.clock
        self.supervisor = context.supervisor
        self.service_settings = bridge.settings.service
        self.rules = Rules(settings.menu, bridge.settings.assumptions, settings.currency)
        self.calls = CallsInFlight()
        self.by_pos: Mapping[str, Availability] | None = None
        if not self.pos.reads_availability:
            self.by_pos = {}
        self.progress: ProgressView = {"phase": "", "since": None, "done": 0, "total": 0}
        self._problems = bridge.problems

    @contextmanager
    def underway(self, phase: Phase, total: int = 0) -> Iterator[None]:
        """Show meanwhile that a menu is on its way; what was shown before is shown again after."""
        before = self.progress
        since = to_iso(self.clock.now_ms())
        self.progress = {"phase": phase, "since": since, "done": 0, "total": total}
        try:
            yield
        finally:
            self.progress = before

    async def read(
        self,
        query: Callable[Concatenate[Connection, str, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Ask the ledger about this store. Raises LedgerError."""
        return await self.ledger.read(query, self.store, *arguments, **options)

    async def write(
        self,
        change: Callable[Concatenate[Connection, str, P], T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Change what the ledger has of this store, in one transaction. Raises LedgerError."""
        return await self.ledger.write(change, self.store, *arguments, **options)

    async def write_portions(
        self,
        change: Callable[Concatenate[Connection, str, Sequence[R], P], None],
        values: Collection[R],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> None:
        """Change what the ledger has of many items, a portion at a time. Raises LedgerError."""
        for portion in portions(list(values), PORTION):
            await self.write(change, portion, *arguments, **options)

    def report(
        self, code: str, detail: Mapping[str, object] | None = None, subject: str = ""
    ) -> None:
        """Report whether the store has this problem now: with that detail, or (None) not at all."""
        found = [] if detail is None else [Found(code, subject, detail)]
        self._problems.report(Scope.of_one(code, self.store, subject), found)


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
        # Called after each round with what it came to; None: it failed, or could not read.
        self.on_end: Callable[[T | None], None] = lambda _result: None
        self.refused_digest = ""  # of a plan that the service refuses as a whole
        self._requested = USUAL  # of the next round, also what this one could not do
        self._one_at_a_time = asyncio.Lock()
        self._passing_since: float | None = None  # monotonic, of an export in the making
        self._unreadable = ""  # why the export cannot be read, as it was logged

    @abstractmethod
    async def round(self, request: SyncRequest) -> T | None:
        """Make one round; None if the export cannot be read now."""

    def request(self, request: SyncRequest = USUAL, *, after_s: float = 0.0) -> None:
        """Ask for a round; many requests are one round."""
        self._requested |= request
        if request.whole or request.full:
            self.refused_digest = ""
        if after_s:
            self.worker.wake_in(after_s)
        else:
            self.worker.wake()

    def changed(self) -> None:
        """Ask for a round: an export or an override has changed."""
        self.request(SyncRequest(since=self.ctx.clock.monotonic()))

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
            result: T | None = None
            try:
                result = await self.round(request)
            except Exception as failure:
                self._requested |= request
                if isinstance(failure, ServiceError | JobLost | LedgerError):
                    self._failed(failure)
                raise
            finally:
                self.on_end(result)
            return result

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
        """Return what was read; None if it cannot be now: then it is read again by itself."""
        try:
            found = await reading()
        except (ExportUnreadable, PosFailure) as failure:
            self._report_unreadable(failure)
            return None
        self._passing_since = None
        self._unreadable = ""
        self.ctx.report("export.unreadable", None, self.subject)
        return found

    def _report_unreadable(self, failure: ExportUnreadable | PosFailure) -> None:
        """Read again soon; report an export that does not mend itself meanwhile."""
        if isinstance(failure, PosFailure):
            text = failure.message or type(failure).__name__
            self.worker.wake_in(self.worker.back_off(LONGEST_BACKOFF_S))
        else:
            text, now = failure.text, self.ctx.clock.monotonic()
            since = now if self._passing_since is None else self._passing_since
            if failure.passing:
                self._passing_since = since
            patient = failure.passing and now - since < PATIENCE_S
            again_s = 10 * SOON_S if failure.passing else UNCHANGED_S
            self.worker.wake_in(SOON_S if patient else again_s)
            if patient:
                return
            self.ctx.report("export.unreadable", unreadable_detail(failure), self.subject)
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
        found = unreadable_detail(failure)
        raise BridgeError(found["detail"], fix=found["remedy"]) from failure
    except PosFailure as failure:
        raise BridgeError(
            failure.message or _("The till cannot be read now."),
            fix=failure.fix or _("Check that the till is on and connected."),
        ) from failure


# -- Python's garbage collector, paused while whole menus are built
#
# A menu of 200,000 items is a million objects without a single cycle. Walking through them, the
# collector would hold the interpreter, and with it the event loop, for a third of a second, again
# and again while the menu grows. So it pauses while a whole menu is built and compared, and passes
# over a large one from then on: reference counts free it anyway.


LARGE = 5_000  # items; walking through fewer takes no time that anybody notices

_pauses = 0
_passed_over = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector."""
    global _pauses  # noqa: PLW0603 -- there is one collector in a process
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
    global _passed_over  # noqa: PLW0603 -- (as above)
    if items >= LARGE:
        gc.freeze()
        _passed_over = True


def unfreeze() -> None:
    """Collect what a run that is over has left; another one begins in this process.

    Without a large menu, nothing of it is frozen, and the collector need not visit what the program
    has imported.
    """
    global _passed_over  # noqa: PLW0603 -- (as above)
    if _passed_over:
        gc.unfreeze()
        _passed_over = False
    gc.collect()
