"""Tells people: follows the problems, and lets each way tell what is due. One task each.

What is told is written down before a way is tried, and taken back when it is sure that it failed:
a bridge that is killed in between tells nothing twice. While the ledger cannot be written, memory
must do: that it cannot is worth telling too.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tillbridge.alerts.books import FACT, from_fact, to_fact
from tillbridge.alerts.episodes import (
    Due,
    Episode,
    Key,
    Rules,
    due,
    follow,
    given_back,
    key_of,
    next_in_s,
    taken,
)
from tillbridge.alerts.message import Message, compose
from tillbridge.alerts.quiet import is_quiet
from tillbridge.alerts.ways import Way
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.ledger.snapshot import ACKNOWLEDGED, acknowledgement

log = get_logger()

_RETRY_FIRST_S = 10.0
_RETRY_CAP_S = 300.0
_QUIET_LOOK_S = 60.0
NOT_SENT = "alerts.not_sent"


@dataclass(frozen=True, slots=True)
class About:
    """What people call a store, and the sentence about its orders that wait; each may be ""."""

    who: str = ""
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """How alerts speak: when they are due, when warnings wait, and where docs are."""

    rules: Rules
    quiet_hours: str | None = None
    docs_url: str = "docs/problems.md"
    retry_first_s: float = _RETRY_FIRST_S


class Teller:
    """Tells of problems by every way. Used from the event loop."""

    def __init__(
        self,
        ways: Sequence[Way],
        manner: Manner,
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
        about: Callable[[str], Awaitable[About]],
    ) -> None:
        self._ways = ways
        self._manner = manner
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._about = about
        self._episodes: Mapping[Key, Episode] = {}
        self._acknowledged: frozenset[Key] = frozenset()
        self._looked_at: float | None = None
        self._look = asyncio.Event()
        self._news = {way.name: asyncio.Event() for way in ways}

    def look(self) -> None:
        """Look again: a problem has come or gone, or was acknowledged."""
        self._look.set()

    async def run(self) -> None:
        """Follow and tell, until cancelled."""
        await self._recall()
        self._desk.on_change(self.look)
        for code in (each for each in self._desk.current() if each.code == NOT_SENT):
            if code.subject not in self._news:  # a way that is configured no more
                self._desk.close(NOT_SENT, code.store, code.subject)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name="alerts.follow")
            for way in self._ways:
                tasks.create_task(self._serve(way), name=f"alerts.{way.name}")

    # -- following

    async def _follow(self) -> None:
        while True:
            self._look.clear()
            await self._read_acknowledged()
            before = self._episodes
            now = self._clock.monotonic()
            passed = 0.0 if self._looked_at is None else now - self._looked_at
            self._looked_at = now
            rules = self._manner.rules
            self._episodes = follow(before, self._desk.current(), self._acknowledged, passed, rules)
            if _outline(before) != _outline(self._episodes):
                await self._write_down()
            for news in self._news.values():
                news.set()
            await self._until_next_look()

    async def _until_next_look(self) -> None:
        next_s = next_in_s(self._episodes, self._manner.rules)
        if self._episodes and self._manner.quiet_hours is not None:
            next_s = min(_QUIET_LOOK_S, next_s or _QUIET_LOOK_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if next_s is None else next_s + 0.01):
                await self._look.wait()

    # -- telling

    async def _serve(self, way: Way) -> None:
        failures = 0
        news = self._news[way.name]
        while True:
            news.clear()
            what = next(
                iter(due(self._episodes, way.name, self._manner.rules, quiet=self._quiet)), None
            )
            if what is None:
                await news.wait()
                continue
            failure = await self._tell(way, what)
            if failure is None:
                failures = 0
                self._desk.close(NOT_SENT, subject=way.name)
                continue
            failures += 1
            self._desk.open(
                NOT_SENT, subject=way.name, way=way.name, detail=failure.text, remedy=failure.fix
            )
            wait_s = min(_RETRY_CAP_S, self._manner.retry_first_s * 2 ** (failures - 1))
            await asyncio.sleep(wait_s)

    async def _tell(self, way: Way, what: Due) -> BridgeError | None:
        before = self._episodes
        message = await self._message(what)
        if any(key not in self._episodes for key in what.keys):
            return None  # it was over while the message was written
        self._episodes = taken(self._episodes, way.name, what, self._manner.rules)
        await self._write_down()
        try:
            await way.send(message)
        except BridgeError as failure:
            self._episodes = given_back(self._episodes, before, way.name, what)
            await self._write_down()
            return failure
        log.info("alert.sent", way=way.name, kind=message.kind, code=what.keys[0][0])
        return None

    async def _message(self, what: Due) -> Message:
        episodes = [self._episodes[key] for key in what.keys]
        about = About(who=what.keys[0][1])
        with contextlib.suppress(LedgerError):  # a failing disk is what there is to tell
            about = await self._about(what.keys[0][1])
        return compose(
            what,
            episodes,
            who=about.who,
            waiting=about.waiting,
            docs_url=self._manner.docs_url,
            now_ms=self._clock.now_ms(),
        )

    @property
    def _quiet(self) -> bool:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000).astimezone()
        return is_quiet(self._manner.quiet_hours, now.time())

    # -- the books

    async def _recall(self) -> None:
        known = from_fact(
            await self._ledger.read(lambda connection: get_fact(connection, "", FACT))
        )
        # How long nobody looked is known by the wall clock only; one that was set back says 0.
        asleep_s = max(0, self._clock.now_ms() - known.at) / 1000
        self._looked_at = self._clock.monotonic() - (asleep_s if known.episodes else 0.0)
        self._episodes = known.episodes

    async def _read_acknowledged(self) -> None:
        with contextlib.suppress(LedgerError):
            fact = await self._ledger.read(
                lambda connection: get_fact(connection, "", ACKNOWLEDGED)
            )
            self._acknowledged = frozenset(
                key_of(each)
                for each in self._desk.current()
                if acknowledgement(fact, each) is not None
            )

    async def _write_down(self) -> None:
        at = self._clock.now_ms()
        fact = to_fact(self._episodes, at)
        with contextlib.suppress(LedgerError):
            await self._ledger.write(lambda connection: put_fact(connection, "", FACT, fact, at=at))


def _outline(episodes: Mapping[Key, Episode]) -> object:
    """Return all of the episodes that is worth a line in the ledger: not their age."""
    return {
        key: (each.over_s is None, each.acknowledged, dict(each.told), each.problem.since)
        for key, each in episodes.items()
    }
