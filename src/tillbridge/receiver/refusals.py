"""What is said about refused deliveries: a log that cannot be flooded, and a problem."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from tillbridge.core.clock import Clock
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import Found, Scope
from tillbridge.core.scheduler import Scheduler
from tillbridge.ledger.problems import ProblemTracker

log = get_logger()

_LOG_EVERY_S = 60.0
_SEVERAL = 3
_WITHIN_S = 600.0
_CROWDED = 20  # surplus connections within a minute
_CROWDED_WITHIN_S = 60.0
_CALM_S = 300.0
_TELL_EVERY_S = 10.0  # a flood of them is not a flood of writes
_DAY_S = 86_400.0
ALL_REFUSED = "receiver.all_refused"
_PASSING = {"receiver.bad_signature", "community.bad_signature"}


class Refusals:
    """Counts refusals by store and reason; each kind is logged at most once a minute."""

    def __init__(self, tracker: ProblemTracker, clock: Clock) -> None:
        self._tracker = tracker
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}
        self._unlogged: dict[tuple[str, str], int] = {}
        self._bad: dict[str, _Bad] = {}

    def refused(self, store: str, reason: str, detail: str = "") -> None:
        """Log it, or count it if that kind was logged within the last minute."""
        key = (store, reason)
        now = self._clock.monotonic()
        if now - self._logged.get(key, float("-inf")) < _LOG_EVERY_S:
            self._unlogged[key] = self._unlogged.get(key, 0) + 1
            return
        self._logged[key] = now
        others = self._unlogged.pop(key, 0)
        log.warning("delivery.refused", store=store, reason=reason, detail=detail, others=others)

    def bad_signature(self, store: str, *, looks_real: bool) -> None:
        """Note a signature that does not match: several within ten minutes are a problem.

        `looks_real`: the body could be the service's. Where all of the last ones that do were
        refused, no order arrives.
        """
        now = self._clock.monotonic()
        bad = self._bad.setdefault(store, _Bad())
        bad.times.append(now)
        bad.count += 1
        bad.real += looks_real
        bad.last_ms = self._clock.now_ms()
        several = len(bad.times) == _SEVERAL and now - bad.times[0] <= _WITHIN_S
        if not several and bad.real < _SEVERAL and not self._is_told(store):
            return
        if bad.told_at is None or now - bad.told_at >= _TELL_EVERY_S or bad.real == _SEVERAL:
            bad.told_at = now
            self._tell(store, bad)

    def good_signature(self, store: str) -> None:
        """Note a signature that matches: the secret is right after all."""
        if self._bad.pop(store, None) is not None or self._is_told(store):
            self._tracker.report(_scope(store), ())

    def let_go(self) -> None:
        """End what is only about strangers who have not come again for a day; call it hourly."""
        now = self._clock.monotonic()
        for each in self._tracker.current():
            if each.code not in _PASSING:
                continue
            bad = self._bad.setdefault(each.store, _Bad())
            if not bad.times:  # from before this start
                bad.times.append(now)
            if now - bad.times[-1] >= _DAY_S:
                self._bad.pop(each.store)
                self._tracker.close(each.code, each.store)

    def _is_told(self, store: str) -> bool:
        return any(self._tracker.is_open(code, store) for code in _scope(store).codes)

    def _tell(self, store: str, bad: "_Bad") -> None:
        code, community, name = _problem(store)
        last = datetime.fromtimestamp(bad.last_ms / 1000).astimezone()
        detail: dict[str, object] = {
            "count": bad.real if bad.real >= _SEVERAL else bad.count,
            "last": f"{last:%Y-%m-%d %H:%M:%S}",
        }
        if community:
            detail["community"] = name
        elif bad.real >= _SEVERAL:
            code = ALL_REFUSED
        self._tracker.report(_scope(store), [Found(code, detail=detail)])


@dataclass(slots=True)
class _Bad:
    """Refused signatures of one path, since the last one that matched."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=_SEVERAL))  # monotonic
    count: int = 0
    real: int = 0  # of them, those whose body could be the service's
    last_ms: int = 0
    told_at: float | None = None


def _scope(store: str) -> Scope:
    code, community, _name = _problem(store)
    return Scope(store, frozenset({code} if community else {code, ALL_REFUSED}))


class Crowding:
    """Counts connections beyond `max_connections`; many within a minute are a problem."""

    def __init__(self, tracker: ProblemTracker, clock: Clock) -> None:
        self.metrics = Metrics()
        self._tracker = tracker
        self._clock = clock
        self._began = clock.monotonic()
        self._times: deque[float] = deque(maxlen=_CROWDED)

    def surplus(self, result: str) -> None:
        """Count a connection that was "refused", or that took the place of another ("replaced")."""
        self.metrics.surplus_connections.labels(result=result).inc()
        now = self._clock.monotonic()
        self._times.append(now)
        if len(self._times) == _CROWDED and now - self._times[0] <= _CROWDED_WITHIN_S:
            self._tracker.open("receiver.crowded")

    def plan(self, scheduler: Scheduler) -> None:
        """Let the problem be closed once no connection has been surplus for five minutes."""
        scheduler.every(
            "receiver.crowding", _CROWDED_WITHIN_S, self.look, first_s=_CROWDED_WITHIN_S
        )

    async def look(self) -> None:
        """Close the problem if no connection has been surplus for five minutes."""
        since = self._times[-1] if self._times else self._began
        if self._clock.monotonic() - since >= _CALM_S and self._tracker.is_open("receiver.crowded"):
            self._tracker.close("receiver.crowded")


def _problem(path: str) -> tuple[str, bool, str]:
    """Return the problem's code for the end of a webhook's path, and the community it names."""
    first, slash, name = path.partition("/")
    if slash and first == "communities":
        return "community.bad_signature", True, name
    return "receiver.bad_signature", False, ""
