"""What is said about refused deliveries: a log that cannot be flooded, and a problem."""

import asyncio
from collections import deque

from tillbridge.clock import Clock
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.log import get_logger
from tillbridge.tally import Tally

log = get_logger()

_LOG_EVERY_S = 60.0
_BAD_SIGNATURES = 3
_WITHIN_S = 600.0
_CROWDED = 20  # surplus connections within a minute
_CROWDED_WITHIN_S = 60.0
_CALM_S = 300.0


class Refusals:
    """Counts refusals by store and reason; each kind is logged at most once a minute."""

    def __init__(self, desk: ProblemDesk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}
        self._unlogged: dict[tuple[str, str], int] = {}
        self._bad: dict[str, deque[float]] = {}

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

    def bad_signature(self, store: str) -> None:
        """Note a signature that does not match; several within ten minutes are a problem."""
        now = self._clock.monotonic()
        times = self._bad.setdefault(store, deque(maxlen=_BAD_SIGNATURES))
        times.append(now)
        if len(times) == _BAD_SIGNATURES and now - times[0] <= _WITHIN_S:
            kind, community, name = _problem(store)
            self._desk.open(kind, store, **({"community": name} if community else {}))

    def good_signature(self, store: str) -> None:
        """Note a signature that matches: the secret is right after all."""
        self._bad.pop(store, None)
        kind = _problem(store)[0]
        if self._desk.is_open(kind, store):
            self._desk.close(kind, store)


class Crowding:
    """Counts connections beyond `max_connections`; many within a minute are a problem."""

    def __init__(self, desk: ProblemDesk, clock: Clock) -> None:
        self.tally = Tally()
        self._desk = desk
        self._clock = clock
        self._times: deque[float] = deque(maxlen=_CROWDED)

    def surplus(self, result: str) -> None:
        """Count a connection that was "refused", or that took the place of another ("replaced")."""
        self.tally.count("surplus_connections", result=result)
        now = self._clock.monotonic()
        self._times.append(now)
        if len(self._times) == _CROWDED and now - self._times[0] <= _CROWDED_WITHIN_S:
            self._desk.open("receiver.crowded")

    async def run(self) -> None:
        """Close the problem once no connection has been surplus for five minutes."""
        quiet_since = self._clock.monotonic()
        while True:
            await asyncio.sleep(_CROWDED_WITHIN_S)
            since = self._times[-1] if self._times else quiet_since
            if self._clock.monotonic() - since >= _CALM_S and self._desk.is_open(
                "receiver.crowded"
            ):
                self._desk.close("receiver.crowded")


def _problem(path: str) -> tuple[str, bool, str]:
    """Return the problem's code for the end of a webhook's path, and the community it names."""
    first, slash, name = path.partition("/")
    if slash and first == "communities":
        return "community.bad_signature", True, name
    return "receiver.bad_signature", False, ""
