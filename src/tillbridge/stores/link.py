"""The link to the service: whether it answers, what answers mean, whether calls make sense.

Specification: Integration status; Errors. Transitions are reported, not calls. An unreachable
service is one problem, whichever store notices it. An idle bridge makes no calls, so a probe asks
every few seconds; any answer, even a refusal, means that the service is there. Without an active
integration the service refuses every call about the store's menu, orders, tables and settings with
store.not_integrated: such calls are not made, but refused here with that code.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable

from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext
from tillbridge.core.errors import ConsentLost, LedgerError, Refused, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.service.answers import NOT_INTEGRATED, problem_of
from tillbridge.service.caller import Contact

UNREACHABLE = "service.unreachable"
_IN_A_ROW = 2
_OUT_OF_ORDER_S = 30.0  # for this long, a 5xx of one call outweighs a good answer to the probe


class ServiceReach:
    """Reports the problem `service.unreachable`. Used from the event loop."""

    def __init__(self, problems: ProblemTracker, *, clock: Clock) -> None:
        self._problems = problems
        self._clock = clock
        self._failed_probes = 0
        self._probe_fix = ""
        self._failure: ServiceError | None = None  # of the last call, if it got no answer
        self._failed_at = 0.0
        for each in problems.current():
            # An earlier version reported it for each store.
            if each.code == UNREACHABLE and each.store:
                problems.report(Scope.of_one(UNREACHABLE, each.store, each.subject), ())

    def called(self, contact: Contact) -> None:
        """Record the result of a call."""
        failure = contact.failure
        if contact.ok:
            self._failure, self._failed_probes = None, 0
        elif failure is not None and problem_of(failure) == UNREACHABLE:
            self._failure, self._failed_at = failure, self._clock.monotonic()
        else:
            return
        self._report()

    def probed(self, *, answers: bool, fix: str = "") -> bool:
        """Record the result of a probe; return whether another one soon would help."""
        if answers:
            self._failed_probes = 0
            waited_s = self._clock.monotonic() - self._failed_at
            if self._failure is not None and (
                not self._failure.status or waited_s >= _OUT_OF_ORDER_S
            ):
                self._failure = None
        else:
            self._failed_probes += 1
            self._probe_fix = fix
        self._report()
        return 0 < self._failed_probes < _IN_A_ROW

    def _report(self) -> None:
        found = []
        if self._failure is not None or self._failed_probes >= _IN_A_ROW:
            fix = self._probe_fix if self._failed_probes else ""
            fix = fix or (self._failure.fix if self._failure is not None else "")
            found.append(Found(UNREACHABLE, detail={"remedy": fix} if fix else {}))
        self._problems.report(Scope("", frozenset({UNREACHABLE})), found)


_NOTE_EVERY_MS = 60_000
_CONSENT = frozenset({"consent.missing", "consent.expired", "consent.revoked"})
# Why a store is not integrated, once known.
_BETTER = ("integration.disabled", "integration.pending", "integration.removed")
# Calls that need an active integration.
_INTEGRATED = ("menus.", "items.", "orders.", "tables.")
_INTEGRATED_CALLS = ("integrations.create", "integrations.read", "integrations.change")
_PUSHES = ("menus.push", "menus.batch", "items.", "tables.")
# Calls that are not made without one, though the service might allow some of them.
_GUARDED = (*_INTEGRATED, "stores.")
_FREE = "stores.list"

log = get_logger()


@functools.cache
def disproved_by(operation: str) -> frozenset[str]:
    """Return the problems of a store that a successful call of this operation disproves."""
    over = _CONSENT | {"service.bad_client", "service.token_refused"}
    if operation.startswith(_INTEGRATED) or operation in _INTEGRATED_CALLS:
        over |= {"integration.missing", *_BETTER}
    if operation.startswith(_PUSHES):
        over |= {"menu.push_not_allowed"}
    return over


def is_guarded(operation: str) -> bool:
    """Return whether a call needs an active integration."""
    return operation.startswith(_GUARDED) and operation != _FREE


def _ignore() -> None:
    """Nobody waits."""


class LinkMonitor:
    """One store's link: reports what its calls show, and refuses calls that make no sense.

    `seen` is the client's `on_contact`, `refusal` its `hindrance`. While nothing is known, calls
    are made. `on_back` is called when the service, the consent or the integration is back,
    `on_unsure` when the integration may have changed.
    """

    def __init__(self, store: str, bridge: BridgeContext, reach: ServiceReach) -> None:
        self._store = store
        self._reach = reach
        self._bridge = bridge
        self.on_back: Callable[[], None] = _ignore
        self.on_unsure: Callable[[], None] = _ignore
        self._blocked = ""  # why, as a word for the log
        self._well = False  # whether the last call succeeded
        self._noted_ms: int | None = None
        self._noting: asyncio.Task[None] | None = None
        self._called_at = bridge.clock.monotonic()

    @property
    def is_open(self) -> bool:
        """Whether calls are made."""
        return not self._blocked

    def block(self, why: str) -> None:
        """Stop making calls that need an integration; `why` is a word for the log."""
        if why != self._blocked:
            log.info("store.calls_blocked", store=self._store, why=why)
        self._blocked = why

    def open(self) -> None:
        """Make calls again, and notify those who wait."""
        if self._blocked:
            log.info("store.calls_unblocked", store=self._store)
            self._blocked = ""
            self.on_back()

    def refusal(self, operation: str) -> ServiceError | None:
        """Return why the call must not be made, or None."""
        if not self._blocked or not is_guarded(operation):
            return None
        return Refused(
            _("The store is not connected to this bridge at the moment."),
            code=NOT_INTEGRATED,
            status=404,
            operation=operation,
            fix=_("To see what to do, run: tillbridge integration show {store}").format(
                store=self._store
            ),
        )

    async def read_if_idle(self, read: Callable[[], Awaitable[object]], every_s: float) -> float:
        """Call `read` if no call was answered for `every_s` seconds; return when to try again.

        Nothing else notices a consent that ends while there are no calls.
        """
        clock = self._bridge.clock
        left_s = self._called_at + every_s - clock.monotonic()
        if left_s > 0:
            return left_s
        self._called_at = clock.monotonic()
        try:
            await read()
        except ServiceError as failure:  # `seen` has recorded it
            log.debug("service.idle_read", store=self._store, code=failure.code)
            if failure.code == NOT_INTEGRATED:
                self.on_unsure()
        return every_s

    def seen(self, contact: Contact) -> None:
        """Record the result of a call; what waits continues when the service is back."""
        self._reach.called(contact)
        clock = self._bridge.clock
        if contact.ok:
            self._called_at, now = clock.monotonic(), clock.now_ms()
            recent = self._noted_ms is not None and 0 <= now - self._noted_ms < _NOTE_EVERY_MS
            if not recent and (self._noting is None or self._noting.done()):
                self._noted_ms = now
                noting = self._note(now, round(contact.took_s * 1000))
                self._noting = asyncio.get_running_loop().create_task(noting)
        self._report(contact)
        failure = contact.failure
        if failure is not None and failure.code == NOT_INTEGRATED and is_guarded(contact.operation):
            self.block(NOT_INTEGRATED)
            self.on_unsure()
        self._bridge.metrics.called(self._store, contact)
        well = contact.ok and not isinstance(failure, ConsentLost)
        if well and not self._well:
            self.on_back()
            if is_guarded(contact.operation):  # whoever reads integrations already knows
                self.on_unsure()
        self._well = well

    async def close(self) -> None:
        """Wait for pending writes."""
        if self._noting is not None:
            await self._noting

    def _report(self, contact: Contact) -> None:
        problems = self._bridge.problems
        problem = problem_of(contact.failure) if contact.failure else None
        if problem in _CONSENT:
            problems.report(Scope(self._store, _CONSENT), [Found(problem)])
        elif problem is not None and problem != UNREACHABLE:
            # The reason for store.not_integrated may already be reported.
            better = _BETTER if problem == "integration.missing" else ()
            if not any(problems.is_open(code, self._store) for code in better):
                problems.report(Scope.of_one(problem, self._store), [Found(problem)])
        elif contact.failure is None:
            problems.report(Scope(self._store, disproved_by(contact.operation)), ())

    async def _note(self, now: int, took_ms: int) -> None:
        try:
            await self._bridge.ledger.put_fact(
                self._store, "service_contact", {"ok_at": now, "took_ms": took_ms}, at=now
            )
        except LedgerError:
            self._noted_ms = None  # that the database cannot be written is reported elsewhere
