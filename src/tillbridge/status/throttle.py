"""Wrong passwords make one wait: longer for each, but never for good. Monotonic seconds."""

from collections import OrderedDict, deque
from dataclasses import dataclass

_FREE = 4  # slips that cost nothing
_LONGEST_S = 60.0  # a stranger who keeps trying must not lock the technician out
_FORGET_S = 900.0
_NAMES = 500
_ALL_PER_MINUTE = 30


@dataclass(slots=True)
class _Slips:
    count: int
    last: float
    wait_until: float


class Throttle:
    """Counts failures by name and all together. What is refused meanwhile counts nothing."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, _Slips] = OrderedDict()
        self._all: deque[float] = deque(maxlen=_ALL_PER_MINUTE)

    def wait_s(self, name: str, now: float) -> float:
        """Return how many seconds `name` has to wait before it may try; 0 for none."""
        waits = [0.0]
        slips = self._names.get(name)
        if slips is not None:
            waits.append(slips.wait_until - now)
        if len(self._all) == _ALL_PER_MINUTE:
            waits.append(self._all[0] + 60.0 - now)
        return max(waits)

    def failed(self, name: str, now: float) -> None:
        """Take note of a wrong name or password."""
        slips = self._names.pop(name, None)
        count = 1 if slips is None or now - slips.last > _FORGET_S else slips.count + 1
        wait = 0.0 if count <= _FREE else min(_LONGEST_S, 2.0 ** min(count - _FREE, 10))
        self._names[name] = _Slips(count, now, now + wait)
        while len(self._names) > _NAMES:
            self._names.popitem(last=False)
        self._all.append(now)

    def worked(self, name: str) -> None:
        """Forget the slips of a name that signed in."""
        self._names.pop(name, None)
