"""Gathering what is to be written, so that what comes together is committed together.

A batch is handed over when the event loop has turned a few times without news: whoever was about
to ask has asked. Handing over the first to come would make all others wait for a commit of its own,
and set the writer and the busy loop fighting for the interpreter while both have work. Where the
last batch was one alone there are no others to wait for, and the next is handed over at once.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_QUIET_TURNS = 5  # a request takes two or three from the socket to the ledger
_LONGEST_S = 0.01  # under a load that never pauses
_MOST = 512


class Gathering(Generic[T]):
    """Used from the event loop only. One batch is under way at a time; `done` ends it."""

    def __init__(self, hand_over: Callable[[list[T]], None]) -> None:
        self._hand_over = hand_over
        self._loop = asyncio.get_running_loop()
        self._gathered: list[T] = []
        self._under_way = False
        self._watching = False
        self._quiet_turns = 0
        self._since = 0.0
        self._last = 1  # how many were in the last batch
        self.handed_over_at: float | None = None  # the batch under way, by the loop's clock

    def add(self, item: T) -> None:
        """Add something to the next batch."""
        self._gathered.append(item)
        self._quiet_turns = 0
        if self._last == 1 and not self._under_way:
            self.flush()
        else:
            self._watch()

    def done(self) -> None:
        """Tell that the batch handed over last has been dealt with."""
        self._under_way = False
        self.handed_over_at = None
        if self._gathered:
            self._watch()

    def flush(self) -> None:
        """Hand over what there is, at once."""
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self._under_way = True
            self.handed_over_at = self._loop.time()
            self._last = len(batch)
            self._hand_over(batch)

    def _watch(self) -> None:
        if not self._under_way and not self._watching:
            self._watching = True
            self._quiet_turns = 0
            self._since = self._loop.time()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._quiet_turns += 1
        if (
            self._quiet_turns < _QUIET_TURNS
            and len(self._gathered) < _MOST
            and self._loop.time() - self._since < _LONGEST_S
        ):
            self._loop.call_soon(self._turn)
        else:
            self._watching = False
            self.flush()
