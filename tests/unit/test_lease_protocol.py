"""Bridges that renew, take and give leases, in virtual time: what a seed does to them harms nobody.

The bridges are real (`daemon.leases.Leases`); the database is a model of the statements of
`ledger.leases`, whose reality `test_leases_on_postgresql.py` checks. Bridges are killed, started,
frozen and cut off, and their answers come late.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.daemon import leases as daemon
from tillbridge.daemon.leases import DEAD_AFTER_MS, Leases
from tillbridge.ledger import leases
from tillbridge.ledger.leases import Cluster, NameTaken
from tillbridge.ledger.models import BridgeRow, Lease

KEYS = tuple(f"s{number}" for number in range(6))
TAKEN_OVER_S = 15.0
_numbers = itertools.count()


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self._selector: Any
        self._select = self._selector.select
        self._selector.select = self._jump

    def time(self) -> float:
        return self.now

    def _jump(self, timeout: float | None) -> Any:  # noqa: ANN401 -- as the selector returns
        self.now += timeout or 0.0
        return self._select(0)


class VirtualClock(Clock):
    """The loop's time."""

    def __init__(self, loop: JumpingLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.now

    def now_ms(self) -> int:
        return round(self._loop.now * 1000)


class Database:
    """The rows of `bridges` and `leases`, and what the statements make of them, one at a time."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.bridges: dict[str, BridgeRow] = {}
        self.leases: dict[str, Lease] = {}

    def join(self, me: BridgeRow, keys: Collection[str], dead_ms: int) -> str:
        now, known = self.now_ms(), self.bridges.get(me.name)
        is_taken = known is not None and known.holder not in {"", me.holder}
        if is_taken and known is not None and now - known.seen_at < dead_ms:
            raise NameTaken(me.name, known.seen_at)
        holder = f"run-{next(_numbers)}"
        self.bridges[me.name] = me.replace(holder=holder, seen_at=now)
        for key in keys:
            self.leases.setdefault(key, Lease(store=key, since=now))
        return holder

    def beat(
        self,
        me: BridgeRow,
        decide: leases.Decide,
        *,
        dead_ms: int | None,
        renewed: Callable[[], None],
    ) -> Cluster | None:
        now, own = self.now_ms(), self.bridges.get(me.name)
        if own is None or own.holder != me.holder:
            return None
        self.bridges[me.name] = own.replace(seen_at=now, detail=me.detail)
        renewed()
        died = []
        for name, each in self.bridges.items():
            if dead_ms is not None and each.holder and each.seen_at < now - dead_ms:
                self.bridges[name] = each.replace(holder="")
                died.append(name)
        alive = {each.holder for each in self.bridges.values() if each.holder}
        for key in decide(self._read(me.holder)):
            lease = self.leases[key]
            if lease.holder not in alive:
                taken = lease.replace(holder=me.holder, token=lease.token + 1, since=now)
                self.leases[key] = taken
        return self._read(me.holder)

    def release(self, holder: str, keys: Collection[str]) -> None:
        for key in keys:
            if self.leases[key].holder == holder:
                self.leases[key] = self.leases[key].replace(holder="")

    def leave(self, name: str, holder: str) -> None:
        if self.bridges[name].holder == holder:
            self.bridges[name] = self.bridges[name].replace(holder="")

    def _read(self, holder: str) -> Cluster:
        return Cluster(
            holder,
            self.now_ms(),
            tuple(self.bridges.values()),
            tuple(self.leases.values()),
            frozenset(),
            (),
            {},
        )


@dataclass
class Link:
    """A bridge's line to the database: nothing passes while it is cut, or the bridge is frozen."""

    delay_s: float = 0.05
    waits_s: float = 0.0  # for other writes, before each of its own
    is_cut: bool = False
    is_frozen: bool = False


@dataclass
class SimBridge:
    """A bridge: its leases, and what runs."""

    name: str
    database: Database
    clock: VirtualClock
    link: Link = field(default_factory=Link)
    serving: set[str] = field(default_factory=set)
    writing_since: float | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    leases: Leases = field(init=False)
    _writer: asyncio.Lock = field(default_factory=asyncio.Lock)
    _beside: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        config = SimpleNamespace(
            bridge=SimpleNamespace(known_as=self.name, serve=[]),
            status_page=SimpleNamespace(listen="127.0.0.1:1"),
            stores=dict.fromkeys(KEYS),
            communities={},
        )
        bridge: Any = SimpleNamespace(
            settings=config,
            clock=self.clock,
            ledger=self,
            problems=SimpleNamespace(report=lambda *_: None),
            consents=SimpleNamespace(),
            stores={},
            cluster=None,
        )
        self.on_end: Callable[[str], None] = lambda _key: None
        served: Any = self
        self.leases = Leases(bridge, served)

    # -- as the ledger

    def write(self, job: Any, *args: Any, **more: Any) -> "asyncio.Task[Any]":  # noqa: ANN401 -- as the ledger's
        task = asyncio.create_task(self._write(job.__name__, *args, **more))
        self.tasks.append(task)
        return task

    def write_beside(self, job: Any, *args: Any, **more: Any) -> "asyncio.Task[Any]":  # noqa: ANN401 -- (as above)
        task = asyncio.create_task(self._write_beside(job.__name__, *args, **more))
        self.tasks.append(task)
        return task

    async def _write_beside(self, job: str, *args: Any, **more: Any) -> Any:  # noqa: ANN401 -- (as above)
        async with self._beside:
            return await self._write_at_once(job, *args, **more)

    async def _write(
        self,
        job: str,
        *args: Any,  # noqa: ANN401 -- as the job's
        **more: Any,  # noqa: ANN401 -- (as above)
    ) -> Any:  # noqa: ANN401 -- (as above)
        async with self._writer:  # there is one, and it writes in order
            await asyncio.sleep(self.link.waits_s)
            return await self._write_at_once(job, *args, **more)

    async def _write_at_once(self, job: str, *args: Any, **more: Any) -> Any:  # noqa: ANN401 -- (as above)
        await self._passes()
        result = getattr(self.database, job)(*args, **more)
        await self._passes()  # the answer may come late, or after the bridge was frozen
        return result

    async def _passes(self) -> None:
        await asyncio.sleep(self.link.delay_s)
        given_up = self.clock.monotonic() + 10.0
        while self.link.is_cut or self.link.is_frozen:
            await asyncio.sleep(0.1)
            if self.link.is_cut and self.clock.monotonic() > given_up:
                raise LedgerUnwritable("no route")

    # -- as what is served: one that ends takes a moment

    def serve(self, keys: Collection[str]) -> None:
        for key in self.serving - set(keys):
            self.tasks.append(asyncio.create_task(self._end(key)))
        self.serving |= set(keys)

    async def _end(self, key: str) -> None:
        await asyncio.sleep(0.2)
        self.serving.discard(key)
        self.on_end(key)

    def is_idle(self, key: str) -> bool:
        return key not in self.serving

    def get(self, _key: str) -> None:
        return None

    # -- what is done to it

    async def start(self) -> None:
        self.tasks.append(asyncio.create_task(self._live()))

    async def _live(self) -> None:
        while True:
            try:
                self.serving.update(await self.leases.start())
                break
            except LedgerUnwritable:
                await asyncio.sleep(1.0)  # the bridge ends; the service manager starts it again
        await self.leases.worker.run()

    def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        if self.leases._alarm is not None:
            self.leases._alarm.cancel()
        self.serving.clear()

    def acts(self) -> set[str]:
        """Return the stores that it would call a till for now."""
        if self.link.is_frozen:
            return set()
        return {key for key in self.serving if self.leases.may_act(key)}


async def play(seed: int, loop: JumpingLoop) -> None:
    """Let a seed do what it likes to three bridges for ten minutes, and then leave them alone."""
    rng, clock = random.Random(seed), VirtualClock(loop)
    database = Database(clock.now_ms)
    bridges = {name: SimBridge(name, database, clock) for name in "abc"}
    for each in bridges.values():
        await each.start()
    quiet_at, calm_since = loop.now + 600, loop.now
    next_fault = loop.now + 20
    ends: list[tuple[float, Callable[[], None]]] = []
    unserved_since = dict.fromkeys(KEYS, loop.now)
    while loop.now < quiet_at + 60:
        await asyncio.sleep(0.1)
        for end in [each for each in ends if each[0] <= loop.now]:
            ends.remove(end)
            end[1]()
            calm_since = loop.now
        if next_fault <= loop.now < quiet_at:
            next_fault = loop.now + rng.uniform(1, 40)
            calm_since = loop.now
            name = rng.choice("abc")
            bridge = bridges[name]
            lasts = loop.now + rng.choice([1, 5, 7, 9, 20, 40])
            match rng.choice(["freeze", "cut", "slow", "kill"]):
                case "freeze":
                    bridge.link.is_frozen = True
                    ends.append((lasts, lambda link=bridge.link: setattr(link, "is_frozen", False)))  # type: ignore[misc]  # bound
                case "cut":
                    bridge.link.is_cut = True
                    ends.append((lasts, lambda link=bridge.link: setattr(link, "is_cut", False)))  # type: ignore[misc]  # (as above)
                case "slow":
                    bridge.link.delay_s = rng.uniform(0.5, 6)
                    bridge.link.waits_s = rng.choice([0.0, rng.uniform(0.5, 20)])
                    ends.append((lasts, lambda link=bridge.link: setattr(link, "waits_s", 0.0)))  # type: ignore[misc]  # bound
                    ends.append((lasts, lambda link=bridge.link: setattr(link, "delay_s", 0.05)))  # type: ignore[misc]  # (as above)
                case _:
                    bridge.kill()
                    bridges[name] = SimBridge(name, database, clock)
                    await bridges[name].start()
        acting = [key for each in bridges.values() for key in each.acts()]
        assert len(acting) == len(set(acting)), f"two bridges act for one store (seed {seed})"
        for key in KEYS:
            if key in acting:
                unserved_since[key] = loop.now
            # While something is done to them, another one may be cut off in turn.
            waited_s = loop.now - max(unserved_since[key], calm_since)
            assert ends or waited_s <= TAKEN_OVER_S, f"nobody serves {key} (seed {seed})"
    loads = sorted(len(each.acts()) for each in bridges.values())
    assert loads == [2, 2, 2], f"they are not spread evenly (seed {seed})"
    for each in bridges.values():
        each.kill()


def virtually(work: Callable[[JumpingLoop], Coroutine[Any, Any, None]], **defects: float) -> None:
    """Do this in virtual time; `defects` are constants of the plan that are wrong."""
    loop = JumpingLoop()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(daemon, "now_s", lambda: loop.now)
        for name, value in defects.items():
            monkeypatch.setattr(daemon, name, value)
        try:
            loop.run_until_complete(work(loop))
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.close()


def played(seed: int, **defects: float) -> None:
    """Play a seed."""
    virtually(partial(play, seed), **defects)


@settings(max_examples=5)  # each is eleven minutes of three bridges
@given(seed=st.integers(0, 2**32))
def test_never_do_two_bridges_act_for_a_store_and_none_is_left_alone_for_long(seed: int) -> None:
    played(seed)


# Two bridges that acted for one store; a bridge whose database was away when it started.
@pytest.mark.parametrize("seed", [8, 2232378])
def test_a_seed_that_once_found_something_finds_nothing(seed: int) -> None:
    played(seed)


def test_the_play_finds_bridges_that_act_for_too_long() -> None:
    def find() -> None:
        for seed in range(20):
            played(seed, MAY_ACT_S=2 * DEAD_AFTER_MS / 1000)

    with pytest.raises(AssertionError, match="two bridges act"):
        find()


def test_a_bridge_whose_renewals_wait_for_other_writes_goes_on() -> None:
    acts = []

    async def busy(loop: JumpingLoop) -> None:
        clock = VirtualClock(loop)
        bridge = SimBridge("a", Database(clock.now_ms), clock)
        await bridge.start()
        await asyncio.sleep(10)
        bridge.link.waits_s = 30
        for _ in range(600):
            await asyncio.sleep(0.1)
            acts.append(bridge.acts())
        bridge.kill()

    virtually(busy)
    assert acts == [set(KEYS)] * 600


def test_a_bridge_that_cannot_write_lets_others_have_its_stores() -> None:
    acts = []

    async def stuck(loop: JumpingLoop) -> None:
        clock = VirtualClock(loop)
        bridge = SimBridge("a", Database(clock.now_ms), clock)
        await bridge.start()
        await asyncio.sleep(10)
        acts.append(bridge.acts())
        bridge.writing_since = loop.now
        await asyncio.sleep(TAKEN_OVER_S + 3)
        acts.append(bridge.acts())
        bridge.kill()

    virtually(stuck)
    assert acts == [set(KEYS), set()]
