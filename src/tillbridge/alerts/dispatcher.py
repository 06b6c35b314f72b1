"""Sends what opened and closed to people, and remembers in the ledger what was sent."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time
from functools import partial
from typing import Any

from tillbridge.alerts.channels import Channel
from tillbridge.alerts.episodes import (
    Due,
    Episode,
    Key,
    Message,
    compose,
    due,
    follow,
    next_in_s,
    record_sent,
    record_unsent,
)
from tillbridge.config.bridge import AlertSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Found, OpenProblem, Scope
from tillbridge.core.worker import Supervisor, Worker, backoff_s
from tillbridge.ledger.facts import facts_named
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.snapshot import ACKNOWLEDGED, acknowledgement

log = get_logger()

_RETRY_FIRST_S = 10.0
_RETRY_CAP_S = 300.0
_QUIET_LOOK_S = 60.0
NOT_SENT = "alerts.not_sent"


class AlertDispatcher:
    """Sends problems through every channel. Used from the event loop.

    `about` returns what people call a store, and the sentence about its orders that wait, or "".
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        settings: AlertSettings,
        ledger: Ledger,
        tracker: ProblemTracker,
        *,
        clock: Clock,
        about: Callable[[str], Awaitable[tuple[str, str]]],
        retry_first_s: float = _RETRY_FIRST_S,
    ) -> None:
        self._channels = channels
        self._settings = settings
        self._ledger = ledger
        self._tracker = tracker
        self._clock = clock
        self._about = about
        self._retry_first_s = retry_first_s
        self._episodes: Mapping[Key, Episode] = {}
        self._acknowledged: frozenset[Key] = frozenset()
        self._looked_at = clock.monotonic()
        self._followed: frozenset[str] | None = frozenset()  # as of the tracker
        supervisor = Supervisor("", tracker)
        self._follower = Worker("alerts", self._follow, supervisor, clock)
        self._senders = {
            channel.name: Worker(
                f"alerts.{channel.name}", partial(self._serve, channel), supervisor, clock
            )
            for channel in channels
        }
        self._failures: dict[str, int] = {}  # by channel, in a row
        self._not_before: dict[str, float] = {}  # by channel, monotonic

    async def run(self) -> None:
        """Follow and send, until cancelled."""
        self._tracker.on_change(self._follower.wake)
        for code in (each for each in self._tracker.current() if each.code == NOT_SENT):
            if code.subject not in self._senders:  # a channel that is no longer configured
                self._tracker.report(Scope.of_one(*code.key), ())
        self._follower.wake()
        async with asyncio.TaskGroup() as tasks:
            for worker in (self._follower, *self._senders.values()):
                tasks.create_task(worker.run(), name=worker.name)

    # -- following

    async def _follow(self) -> float | None:
        """Follow the problems; return in how many seconds there is something to send."""
        await self._read_acknowledged()
        while (followed := self._tracker.followed) != self._followed:
            await self._take_over(followed)
        before = self._episodes
        now = self._clock.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        settings, found = self._settings, self._tracker.current()
        self._episodes = follow(before, found, self._acknowledged, passed, settings)
        await self._store(before)
        for sender in self._senders.values():
            sender.wake()
        next_s = next_in_s(self._episodes, settings)
        if self._episodes and settings.quiet_hours is not None:
            next_s = min(_QUIET_LOOK_S, next_s or _QUIET_LOOK_S)
        return None if next_s is None else next_s + 0.01

    # -- sending

    async def _serve(self, channel: Channel) -> float | None:
        """Send what is due by this channel; return in how many seconds to try again."""
        name = channel.name
        wait_s = self._not_before.get(name, 0.0) - self._clock.monotonic()
        if wait_s > 0:
            return wait_s
        settings = self._settings
        while (
            what := next(iter(due(self._episodes, name, settings, quiet=self._quiet)), None)
        ) is not None:
            failure = await self._send(channel, what)
            if failure is not None:
                return self._failed(name, failure)
            self._failures.pop(name, None)
            self._tracker.report(Scope.of_one(NOT_SENT, subject=name), ())
        return None

    def _failed(self, channel: str, failure: BridgeError) -> float:
        """Report that the channel failed; return in how many seconds it is tried again."""
        failures = self._failures[channel] = self._failures.get(channel, 0) + 1
        detail = {"way": channel, "detail": failure.text, "remedy": failure.fix}
        found = Found(NOT_SENT, channel, detail)
        self._tracker.report(Scope.of_one(NOT_SENT, subject=channel), [found])
        wait_s = backoff_s(failures, self._retry_first_s, _RETRY_CAP_S)
        self._not_before[channel] = self._clock.monotonic() + wait_s
        return wait_s

    async def _send(self, channel: Channel, what: Due) -> BridgeError | None:
        before = self._episodes
        message = await self._message(what)
        if any(key not in self._episodes for key in what.keys):
            return None  # it was over while the message was written
        unsent = self._episodes
        self._episodes = record_sent(unsent, channel.name, what, self._settings)
        await self._store(unsent)
        try:
            await channel.send(message)
        except BridgeError as failure:
            sent = self._episodes
            self._episodes = record_unsent(sent, before, channel.name, what)
            await self._store(sent)
            return failure
        log.info("alert.sent", way=channel.name, kind=message.kind, code=what.keys[0][0])
        return None

    async def _message(self, what: Due) -> Message:
        episodes = [self._episodes[key] for key in what.keys]
        who, waiting = what.keys[0][1], ""
        with contextlib.suppress(LedgerError):  # the failing disk is the news
            who, waiting = await self._about(who)
        return compose(
            what,
            episodes,
            who=who,
            waiting=waiting,
            docs_url=self._settings.docs_url,
            now_ms=self._clock.now_ms(),
        )

    @property
    def _quiet(self) -> bool:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000).astimezone()
        return is_quiet(self._settings.quiet_hours, now.time())

    # -- the ledger

    async def _take_over(self, followed: frozenset[str] | None) -> None:
        """Continue the episodes of stores that this bridge follows from now on, and only those."""
        stored, now_ms = await self._ledger.read(facts_named, FACT), self._clock.now_ms()
        episodes: dict[Key, Episode] = {}
        for store, fact in stored.items():
            known, at = from_fact(fact)
            # How long nobody looked is known by the wall clock only; one that was set back says 0.
            asleep_s = max(0, now_ms - at) / 1000
            for key, each in known.items():
                if key[1] == store:
                    over_s = None if each.over_s is None else each.over_s + asleep_s
                    episodes[key] = replace(each, age_s=each.age_s + asleep_s, over_s=over_s)
        before, self._followed = self._followed, followed
        self._episodes = {
            key: each
            for key, each in {**episodes, **self._episodes}.items()
            if _is_in(followed, key) and (key in self._episodes or not _is_in(before, key))
        }

    async def _read_acknowledged(self) -> None:
        with contextlib.suppress(LedgerError):
            fact = await self._ledger.get_fact("", ACKNOWLEDGED)
            self._acknowledged = frozenset(
                each.key
                for each in self._tracker.current()
                if acknowledgement(fact, each) is not None
            )

    async def _store(self, before: Mapping[Key, Episode]) -> None:
        """Write down the episodes of each store where more than their age has changed."""
        after = self._episodes
        stores = {store for _code, store, _subject in (*before, *after)}
        await asyncio.gather(
            *(
                self._put(store)
                for store in stores
                if _outline(_of(before, store)) != _outline(_of(after, store))
            )
        )

    async def _put(self, store: str) -> None:
        at = self._clock.now_ms()
        with contextlib.suppress(LedgerError):
            fact = to_fact(_of(self._episodes, store), at)
            await self._ledger.put_fact(store, FACT, fact, at=at)


def _is_in(followed: frozenset[str] | None, key: Key) -> bool:
    return followed is None or key[1] in followed


def _of(episodes: Mapping[Key, Episode], store: str) -> Mapping[Key, Episode]:
    return {key: each for key, each in episodes.items() if key[1] == store}


def _outline(episodes: Mapping[Key, Episode]) -> object:
    """Return all of the episodes that is worth a line in the ledger: not their age."""
    return {
        key: (each.over_s is None, each.acknowledged, dict(each.sent), each.problem.since)
        for key, each in episodes.items()
    }


FACT = "alerts"


def to_fact(episodes: Mapping[Key, Episode], at: int) -> dict[str, Any]:
    """Return the episodes as a JSON value."""
    return {
        "at": at,
        "episodes": [
            {
                "code": each.problem.code,
                "store": each.problem.store,
                "subject": each.problem.subject,
                "since": each.problem.since,
                "detail": {name: str(value) for name, value in each.problem.detail.items()},
                "age_s": round(each.age_s, 3),
                "over_s": None if each.over_s is None else round(each.over_s, 3),
                "acknowledged": each.acknowledged,
                "told": dict(each.sent),
            }
            for each in episodes.values()
        ],
    }


def from_fact(fact: object) -> tuple[Mapping[Key, Episode], int]:
    """Return what was written down, and when (ms); nothing where there is none, 0.

    Codes that are gone are left.
    """
    episodes: dict[Key, Episode] = {}
    if not isinstance(fact, Mapping):
        return episodes, 0
    for stored in fact["episodes"]:
        if stored["code"] not in PROBLEMS:
            continue
        problem = OpenProblem(
            stored["code"], stored["store"], stored["subject"], stored["since"], stored["detail"]
        )
        episodes[problem.key] = Episode(
            problem, stored["age_s"], stored["over_s"], stored["acknowledged"], stored["told"]
        )
    return episodes, fact["at"]


def is_quiet(hours: str | None, now: time) -> bool:
    """Return whether a local time of day lies within hours such as "23:00-07:00"."""
    if hours is None:
        return False
    begin, end = (time.fromisoformat(part) for part in hours.split("-"))
    if begin < end:
        return begin <= now < end
    return now >= begin or now < end
