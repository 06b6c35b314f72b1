"""Which stores this bridge serves, where several share a ledger: leases are renewed, taken, given.

A bridge renews all its leases by one write every two seconds (`ledger.leases.beat`). One that could
not for six seconds stops acting: calls of tills and of the service ask `may_act` first, from
whatever thread, so a bridge that was frozen does nothing when it goes on. Others take its stores
after eight seconds at the earliest.
"""

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import tillbridge
from tillbridge.core.errors import ConfigError, LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Supervisor, Worker
from tillbridge.daemon.served import ServedStores, keys_of
from tillbridge.ledger import leases
from tillbridge.ledger.community import key_of
from tillbridge.ledger.leases import Cluster, NameTaken
from tillbridge.ledger.models import BridgeRow, Lease
from tillbridge.operations.bridge import Bridge

# -- What a bridge takes and gives back, and whether it may act now: decided from what it has read.
#
# Every bridge decides for itself, from the same rows; the database lets only one of them take a
# store (`ledger.leases`), so bridges that have read different states disagree for a moment at most.


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
class Plan:
    """What to take, and what to give back."""

    take: tuple[str, ...] = ()
    give: tuple[str, ...] = ()


def plan(me: Member, members: Iterable[Member], leases: Iterable[Lease]) -> Plan:
    """Return what `me`, one of the members, takes and gives back now.

    Nobody has a lease whose holder is "" or not alive; only the bridge that it is `pinned` to may.
    What nobody has goes to the bridge with the fewest leases of those that may serve it. A bridge
    gives back what it may not serve any more, and else one store at a time, as long as another one
    that may serve it has at least two fewer.
    """
    alive = sorted(members, key=lambda each: each.holder)
    holders = {each.holder for each in alive}
    known = sorted(leases, key=lambda each: each.store)
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
                take.append(lease.store)
    mine = [each for each in known if each.holder == me.holder]
    give = [each.store for each in mine if not _may_serve(me, each)]
    if not give and not take:
        give = _surplus(me, alive, mine, load)
    return Plan(tuple(take), tuple(give))


def _may_serve(member: Member, lease: Lease) -> bool:
    return lease.store in member.serves and lease.pinned in {"", member.name}


def _surplus(
    me: Member, alive: Sequence[Member], mine: Iterable[Lease], load: Mapping[str, int]
) -> list[str]:
    """Return one lease for a bridge that has at least two fewer, if there is such a bridge."""
    poor = [each for each in alive if load[each.holder] + 2 <= load[me.holder]]
    for lease in mine:
        if any(_may_serve(each, lease) for each in poor):
            return [lease.store]
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


log = get_logger()

_AGAIN_S = 1.0  # after a renewal that failed
_HANGS_S = 10.0  # a write: longer than all that a server may wait for
_LOOK_AGAIN_S = 0.5  # whether an earlier run of this bridge is gone


def now_s() -> float:
    """Return the time in seconds by a clock that goes on while the machine sleeps, if there is one.

    Otherwise a machine that slept would believe that its leases are fresh.
    """
    boot = sys.platform == "linux" and time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot or time.monotonic()


class Leases:
    """The leases of this bridge. `start`, then run `worker`; `hand_over` and `leave` at the end.

    Used from the event loop, but for `may_act`. `on_renewed` is called with each state that was
    read.
    """

    def __init__(self, bridge: Bridge, served: ServedStores) -> None:
        settings = bridge.settings
        self._bridge = bridge
        self._served = served
        self._served.on_end = self._ended
        self._keys = _own_keys(bridge)
        self._me = BridgeRow(
            name=settings.bridge.known_as,
            holder="",
            url=f"http://{settings.status_page.listen}/",
            version=tillbridge.__version__,
            started_at=bridge.clock.now_ms(),
            seen_at=0,
            detail={"stores": sorted(self._keys), "serve": sorted(settings.bridge.serve)},
        )
        self._right = Right()
        self._changing = threading.Lock()  # the right, by the loop and the ledger's thread
        self._joined_at = now_s()
        self._releasing: set[str] = set()  # given back, by a write that is under way
        self._alarm: asyncio.TimerHandle | None = None
        self._failing = False
        self.on_renewed: Callable[[Cluster], None] = lambda _cluster: None
        supervisor = Supervisor("", bridge.problems)
        self.worker = Worker("leases", self._beat, supervisor, bridge.clock)

    @property
    def holder(self) -> str:
        """The id of this run of the bridge, as others see it."""
        return self._me.holder

    def may_act(self, key: str) -> bool:
        """Return whether this bridge may call the till or the service for a store now.

        Called from any thread.
        """
        return self._right.allows(key, now_s())

    async def start(self) -> tuple[str, ...]:
        """Join the other bridges, and return what this one serves at first.

        Raises ConfigError where another bridge has this one's name, LedgerError.
        """
        await self._join()
        cluster = await self._renew()
        self.worker.wake_in(BEAT_S)
        return () if cluster is None else tuple(sorted(cluster.held))

    async def hand_over(self) -> None:
        """Give back everything, each store as soon as no call is under way for it."""
        self._me.detail = {**self._me.detail, "stores": []}  # nobody waits for this bridge to take
        await self._beat()
        await self._served.ended()

    async def leave(self) -> None:
        """Tell the others that this run has ended."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._right = Right()
        if self._me.holder:
            with suppress(LedgerError):  # then they find out
                await self._bridge.ledger.write_beside(leases.leave, self._me.name, self._me.holder)

    async def _join(self) -> None:
        """Register this run; wait for an earlier one that may have been killed a moment ago."""
        seen_at: int | None = None
        while True:
            try:
                self._me.holder = await self._bridge.ledger.write(
                    leases.join, self._me, self._keys, DEAD_AFTER_MS
                )
            except NameTaken as other:
                if seen_at is not None and other.seen_at > seen_at:
                    text = _("Another bridge called {name} uses this database.")
                    raise ConfigError(
                        text.format(name=self._me.name),
                        fix=_("Give each bridge a name of its own: name in [bridge]."),
                    ) from None
                seen_at = other.seen_at
                await asyncio.sleep(_LOOK_AGAIN_S)
            else:
                self._joined_at = now_s()
                self._bridge.consents.state_prefix = f"{self._me.holder}."
                log.info("leases.joined", name=self._me.name, holder=self._me.holder)
                return

    async def _beat(self) -> float:
        """Renew; return in how many seconds to do it again."""
        began = now_s()
        try:
            cluster = await self._renew()
            if cluster is None:
                log.warning("leases.declared_dead", name=self._me.name)
                await self._join()
                cluster = await self._renew()
        except LedgerError as failure:
            if not self._failing:
                log.error("leases.not_renewed", detail=failure.text)
            self._failing = True
            return _AGAIN_S
        if self._failing:
            log.info("leases.renewed_again")
        self._failing = False
        return max(0.1, BEAT_S - (now_s() - began))

    async def _renew(self) -> Cluster | None:
        """Renew the leases, take what is this bridge's to take, and let run what it holds.

        It waits for no other write. But a bridge that cannot write at all serves nobody.
        """
        writing_since = self._bridge.ledger.writing_since
        if writing_since is not None and self._bridge.clock.monotonic() - writing_since > _HANGS_S:
            raise LedgerUnwritable(_("The database does not answer."))
        began = now_s()
        if began - self._right.renewed_at > 2 * BEAT_S:
            self._joined_at = began  # it was away: others may have been, too
        self._me.detail = {**self._me.detail, "tills": _tills(self._bridge)}
        is_steady = began - self._joined_at >= STEADY_S
        cluster = await self._bridge.ledger.write_beside(
            leases.beat,
            self._me,
            lambda cluster: self._plan(cluster).take,  # called in the ledger's thread
            dead_ms=DEAD_AFTER_MS if is_steady else None,
            renewed=partial(self._renewed, began),
        )
        # What was read before a release that follows it is this bridge's no more.
        held = frozenset() if cluster is None else cluster.held - self._releasing
        with self._changing:
            before, self._right = self._right, Right(held, began)
        if lost := before.keys - held:
            log.warning("leases.lost", stores=sorted(lost))
        if won := held - before.keys:
            log.info("leases.taken", stores=sorted(won))
        if cluster is None:
            self._served.serve(())
            return None
        self._bridge.cluster = cluster
        for name in cluster.died:
            log.warning("leases.died", name=name)
        self._watch()
        give = set(self._plan(cluster).give)
        self._served.serve(sorted(held - give))
        for key in give:
            self._ended(key)
        for key in cluster.inbox & held:
            self._served.deliveries_arrived(key)
        self.on_renewed(cluster)
        return cluster

    def _renewed(self, began: float) -> None:
        """Go on with what this bridge holds, in the ledger's thread: the loop may be late."""
        with self._changing:
            self._right = replace(self._right, renewed_at=began)

    def _watch(self) -> None:
        """Look when the right to act ends."""
        if self._alarm is not None:
            self._alarm.cancel()
        left_s = MAY_ACT_S - (now_s() - self._right.renewed_at)
        self._alarm = asyncio.get_running_loop().call_later(left_s, self._lapsed)

    def _lapsed(self) -> None:
        """Stop serving: others may take the stores from now on."""
        if self._right.is_fresh(now_s()):
            self._watch()  # it was renewed meanwhile
        else:
            log.error("leases.lapsed", stores=sorted(self._right.keys))
            self._served.serve(())

    def _ended(self, key: str) -> None:
        """Give back what does not run and is not to."""
        if self._served.is_idle(key) and key in self._right.keys:
            with self._changing:
                self._right = replace(self._right, keys=self._right.keys - {key})
            self._releasing.add(key)
            giving = self._bridge.ledger.write_beside(leases.release, self._me.holder, [key])
            giving.add_done_callback(partial(self._released, key))
            log.info("leases.given_back", store=key)

    def _released(self, key: str, done: asyncio.Future[None]) -> None:
        """Take note that it is given back; if that failed, it is with the next renewal, or held."""
        self._releasing.discard(key)
        if not done.cancelled() and done.exception() is not None:
            log.warning("leases.not_given_back", store=key)

    def _plan(self, cluster: Cluster) -> Plan:
        members = {
            each.holder: Member(each.name, each.holder, frozenset(each.detail.get("stores") or ()))
            for each in cluster.bridges
            if each.holder
        }
        me = Member(self._me.name, self._me.holder, frozenset(self._me.detail["stores"]))
        members[me.holder] = me
        return plan(me, members.values(), cluster.leases)


def _tills(bridge: Bridge) -> dict[str, tuple[int | None, int | None]]:
    """Return, by store, when the till was last found there (ms) and how long that took (ms)."""
    seen = {name: each.orders.presence for name, each in bridge.stores.items()}
    return {name: (each.seen_at, each.took_ms) for name, each in seen.items()}


def _own_keys(bridge: Bridge) -> frozenset[str]:
    """Return what this bridge can serve: all of the configuration, or what `serve` names."""
    keys, serve = keys_of(bridge), bridge.settings.bridge.serve
    if not serve:
        return frozenset(keys)
    wanted = {*serve, *map(key_of, serve)}
    return frozenset(key for key in keys if key in wanted)
