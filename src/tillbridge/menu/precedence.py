"""Which availability the service hears last, from calls that run beside each other.

Availability does not wait for a menu push, and it has the last word. What its lane sent since a
plan was made is put into the plan's calls (`sent`). Where a menu call under way says otherwise,
nobody knows which of the two the service applies last: such an item is sent once more after it.
Calls of availability alone, of either lane, take turns (`turn`): what one has sent is no news to
the next.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tillbridge.menu.narrowing import ids_of
from tillbridge.menu.plan import PatchItem, PushBatch, PushFull, SetAvailability, Step
from tillbridge.model.catalogue import Availability, Item

Words = dict[str, Availability | None]

_ON, _OFF = Availability(available=True), Availability(available=False)


def availability_of(item: Item) -> Availability:
    """Return what the item says of its availability."""
    if item.snooze_until is not None:
        return Availability(item.available, item.snooze_until)
    return _ON if item.available else _OFF


def availability_in(step: Step) -> Words:
    """Return what the step says of its items' availability; None of one that it deletes."""
    match step:
        case PushFull() | SetAvailability():
            return {each.external_id: availability_of(each) for each in step.items}
        case PushBatch():
            put = {each.external_id: availability_of(each) for each in (*step.add, *step.update)}
            return put | dict.fromkeys(step.delete)
        case PatchItem():
            says = "available" in step.fields
            return {step.item.external_id: availability_of(step.item)} if says else {}


def apply_latest_availability(step: Step, told: Mapping[str, Availability]) -> Step:
    """Return the step with what was told of its items since it was planned."""
    if told.keys().isdisjoint(ids_of(step)):
        return step
    match step:
        case PushFull():
            return replace(step, items=_with_latest(step.items, told, ends=False))
        case PushBatch():
            return replace(
                step,
                add=_with_latest(step.add, told, ends=False),
                update=_with_latest(step.update, told, ends=False),
            )
        case PatchItem():
            (item,) = _with_latest((step.item,), told, ends=False)
            return replace(step, item=item)
        case SetAvailability():
            return SetAvailability(_with_latest(step.items, told, ends=True))


def _with_latest(
    items: tuple[Item, ...], told: Mapping[str, Availability], *, ends: bool
) -> tuple[Item, ...]:
    """Say it anew; item objects cannot carry the end of a snooze (`ends`)."""
    return tuple(
        replace(each, available=word.available, snooze_until=word.until if ends else None)
        if (word := told.get(each.external_id)) is not None
        else each
        for each in items
    )


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
