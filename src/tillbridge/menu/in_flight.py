"""What two calls are telling the service of one item at the same time, or one after the other.

Availability does not wait for a menu push, and it has the last word. What its lane told since a
plan was made is put into the plan's calls (`told`). Where a menu call that is under way says
otherwise, nobody knows whose word the service heard last: such an item is told once more after it.
Calls of availability alone, of either lane, take turns (`turn`): what one has told is no news to
the next.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tillbridge.model.catalogue import Availability

_Words = Mapping[str, Availability | None]  # None: the item is taken off the menu


class InFlight:
    """The calls under way of one store. Used from the event loop."""

    def __init__(self) -> None:
        self.pushes: set[int] = set()  # rows of the ledger that this process will end
        self.turn = asyncio.Lock()
        self.told: dict[str, Availability] = {}  # by the availability lane, since `plan_begins`
        self._menu: list[_Words] = []
        self._availability: list[tuple[_Words, set[str]]] = []

    def plan_begins(self) -> None:
        """Take note that a plan is being made of what is known now."""
        self.told.clear()

    @contextmanager
    def menu(self, words: _Words) -> Iterator[None]:
        """Hold while a menu call says this of its items."""
        for others, clashed in self._availability:
            clashed.update(_unlike(others, words))
        self._menu.append(words)
        try:
            yield
        finally:
            self._menu = [each for each in self._menu if each is not words]

    @contextmanager
    def availability(self, words: _Words) -> Iterator[set[str]]:
        """Hold while an availability call says this; yields the items of which others differ."""
        clashed: set[str] = set()
        for others in self._menu:
            clashed.update(_unlike(words, others))
        entry = (words, clashed)
        self._availability.append(entry)
        try:
            yield clashed
        finally:
            self._availability = [each for each in self._availability if each is not entry]


def _unlike(words: _Words, others: _Words) -> Iterator[str]:
    for external_id, word in words.items():
        if external_id in others and others[external_id] != word:
            yield external_id
