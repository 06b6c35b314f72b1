"""Wrong passwords make one wait: longer for each, but never for good. Monotonic seconds.

Failures count by where they come from: else a stranger who keeps guessing locks everybody out.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

_FREE = 4  # slips that cost nothing
_LONGEST_S = 60.0  # a stranger who keeps trying must not lock the technician out
_FORGET_S = 900.0
_NAMES = 500
_EACH_PER_MINUTE = 30


@dataclass(slots=True)
class _Slips:
    count: int
    last: float
    wait_until: float


class Throttle:
    """Counts failures by source and name, and all of a source. A refusal counts nothing.

    A source is where requests come from, see `source_of`.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[str, str], _Slips] = OrderedDict()
        self._sources: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, source: str, name: str, now: float) -> float:
        """Return how many seconds until `name` may be tried from there; 0 for none."""
        waits = [0.0]
        slips = self._names.get((source, name))
        if slips is not None:
            waits.append(slips.wait_until - now)
        failures = self._sources.get(source)
        if failures is not None and len(failures) == _EACH_PER_MINUTE:
            waits.append(failures[0] + 60.0 - now)
        return max(waits)

    def failed(self, source: str, name: str, now: float) -> None:
        """Take note of a wrong name or password."""
        key = (source, name)
        slips = self._names.pop(key, None)
        count = 1 if slips is None or now - slips.last > _FORGET_S else slips.count + 1
        wait = 0.0 if count <= _FREE else min(_LONGEST_S, 2.0 ** min(count - _FREE, 10))
        self._names[key] = _Slips(count, now, now + wait)
        while len(self._names) > _NAMES:
            self._names.popitem(last=False)
        failures = self._sources.pop(source, None) or deque(maxlen=_EACH_PER_MINUTE)
        failures.append(now)
        self._sources[source] = failures
        while len(self._sources) > _NAMES:
            self._sources.popitem(last=False)

    def worked(self, source: str, name: str) -> None:
        """Forget the slips of a name that signed in from there."""
        self._names.pop((source, name), None)


def source_of(address: str) -> str:
    """Return what counts as one place: an IPv4 address, or the network of an IPv6 one.

    Whoever has one IPv6 address has the other 2^64 of its network too.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)
