"""What a bridge takes and gives back, and whether it may act now: decided from what it has read.

Every bridge decides for itself, from the same rows; the database lets only one of them take a store
(`ledger.leases`), so bridges that have read different states disagree for a moment at most.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

BEAT_S = 2.0
"""How often a bridge renews its leases."""

MAY_ACT_S = 6.0
"""For how long after it began to renew a bridge may act: others take its stores only later."""

DEAD_AFTER_MS = 8_000
"""After so long without renewal others declare a bridge dead; longer than `MAY_ACT_S`."""

STEADY_S = 5.0
"""A bridge that has just come, or come back, declares nobody dead: they may be coming back, too."""


@dataclass(frozen=True, slots=True)
class Member:
    """A bridge that is alive: its name, the id of its run, and the keys that it can serve."""

    name: str
    holder: str
    serves: frozenset[str]


@dataclass(frozen=True, slots=True)
class Held:
    """A lease: who has it ("" or one who is not alive: nobody), and who alone may, "" for any."""

    key: str
    holder: str
    pinned: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to take, and what to give back."""

    take: tuple[str, ...] = ()
    give: tuple[str, ...] = ()


def plan(me: Member, members: Iterable[Member], leases: Iterable[Held]) -> Plan:
    """Return what `me`, one of the members, takes and gives back now.

    What nobody has goes to the bridge with the fewest leases of those that may serve it. A bridge
    gives back what it may not serve any more, and else one store at a time, as long as another one
    that may serve it has at least two fewer.
    """
    alive = sorted(members, key=lambda each: each.holder)
    holders = {each.holder for each in alive}
    known = sorted(leases, key=lambda each: each.key)
    load = Counter({each.holder: 0 for each in alive})
    load.update(each.holder for each in known if each.holder in holders)
    take = []
    for lease in known:
        if lease.holder in holders:
            continue
        able = [each for each in alive if _may_serve(each, lease)]
        if able:
            chosen = min(able, key=lambda each: (load[each.holder], each.holder))
            load[chosen.holder] += 1
            if chosen.holder == me.holder:
                take.append(lease.key)
    mine = [each for each in known if each.holder == me.holder]
    give = [each.key for each in mine if not _may_serve(me, each)]
    if not give and not take:
        give = _surplus(me, alive, mine, load)
    return Plan(tuple(take), tuple(give))


def _may_serve(member: Member, lease: Held) -> bool:
    return lease.key in member.serves and lease.pinned in {"", member.name}


def _surplus(
    me: Member, alive: Sequence[Member], mine: Iterable[Held], load: Mapping[str, int]
) -> list[str]:
    """Return one lease for a bridge that has at least two fewer, if there is such a bridge."""
    poor = [each for each in alive if load[each.holder] + 2 <= load[me.holder]]
    for lease in mine:
        if any(_may_serve(each, lease) for each in poor):
            return [lease.key]
    return []


@dataclass(frozen=True, slots=True)
class Right:
    """The right to act for these keys; `renewed_at` is when its renewal began (s, monotonic).

    Frozen, and replaced as a whole: any thread may ask.
    """

    keys: frozenset[str] = frozenset()
    renewed_at: float = float("-inf")

    def is_fresh(self, now: float) -> bool:
        """Return whether the renewal is recent enough; a clock that was set back is not."""
        return 0 <= now - self.renewed_at < MAY_ACT_S

    def allows(self, key: str, now: float) -> bool:
        """Return whether this bridge may act for `key` now."""
        return key in self.keys and self.is_fresh(now)
