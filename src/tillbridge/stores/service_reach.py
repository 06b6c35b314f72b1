"""Whether the ordering service answers: from every call of every store, and from a small probe.

One service that is away is one problem, whichever store notices it. A bridge at rest makes no call,
so a probe asks every few seconds; and a service that answers anything at all, a refusal too, is
there.
"""

from tillbridge.core.clock import Clock
from tillbridge.core.errors import ServiceError
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.service.answers import problem_of
from tillbridge.service.caller import Contact

UNREACHABLE = "service.unreachable"
_IN_A_ROW = 2
_OUT_OF_ORDER_S = 30.0  # a 5xx of one call stands for so long against a good answer to the probe


class ServiceReach:
    """Keeps the problem `service.unreachable`. Used from the event loop."""

    def __init__(self, desk: ProblemDesk, *, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._failed_probes = 0
        self._probe_fix = ""
        self._failure: ServiceError | None = None  # of the last call, if that got no answer
        self._failed_at = 0.0
        for each in desk.current():
            if each.code == UNREACHABLE and each.store:  # of a version that told it of each store
                desk.close(UNREACHABLE, each.store, each.subject)

    def called(self, contact: Contact) -> None:
        """Take note of what came of a call."""
        failure = contact.failure
        if contact.ok:
            self._failure, self._failed_probes = None, 0
        elif failure is not None and problem_of(failure) == UNREACHABLE:
            self._failure, self._failed_at = failure, self._clock.monotonic()
        else:
            return
        self._report()

    def probed(self, *, answers: bool, fix: str = "") -> bool:
        """Take note of a probe; return whether another one soon would tell more."""
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
        self._desk.report(Scope("", frozenset({UNREACHABLE})), found)
