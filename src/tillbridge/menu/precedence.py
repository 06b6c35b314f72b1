"""Which availability the service hears last, from calls that run beside each other.

Availability does not wait for a menu push, and it has the last word. What its lane sent since a
plan was made is put into the plan's calls (`sent`). Where a menu call under way differs, nobody
knows which of the two the service applies last: such an item is sent once more after it. Calls of
availability alone, of either lane, take turns (`turn`): what one has sent is no news to the next.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tillbridge.menu.narrowing import ids_of
from tillbridge.menu.plan import PatchItem, PushBatch, PushFull, SetAvailability, Step
from tillbridge.model.catalogue import Availability, Item

AvailabilityById = Mapping[str, Availability | None]  # None: the item is taken off the menu

_ON, _OFF = Availability(available=True), Availability(available=False)


class CallsInFlight:
    """The calls under way of one store. Used from the event loop."""

    def __init__(self) -> None:
        self.push_ids: set[int] = set()  # rows of the ledger that this process will end
        self.turn = asyncio.Lock()
        self.sent: dict[str, Availability] = {}  # by the availability lane, since `plan_begins`
        self._menu: list[AvailabilityById] = []
        self._availability: list[tuple[AvailabilityById, set[str]]] = []

    def plan_begins(self) -> None:
        """Take note that a plan is being made of what is known now."""
        self.sent.clear()

    def in_menu_call(self, external_id: str) -> bool:
        """Whether a menu call under way carries the availability of the item."""
        return any(external_id in each for each in self._menu)

    @contextmanager
    def menu(self, carried: AvailabilityById) -> Iterator[None]:
        """Hold while a menu call carries this availability of its items."""
        for others, clashed in self._availability:
            clashed.update(_unlike(others, carried))
        self._menu.append(carried)
        try:
            yield
        finally:
            self._menu = [each for each in self._menu if each is not carried]

    @contextmanager
    def availability(self, carried: AvailabilityById) -> Iterator[set[str]]:
        """Hold while an availability call carries this; yields the items of which others differ."""
        clashed: set[str] = set()
        for others in self._menu:
            clashed.update(_unlike(carried, others))
        entry = (carried, clashed)
        self._availability.append(entry)
        try:
            yield clashed
        finally:
            self._availability = [each for each in self._availability if each is not entry]


def availability_of(item: Item) -> Availability:
    """Return the item's availability."""
    if item.snooze_until is not None:
        return Availability(item.available, item.snooze_until)
    return _ON if item.available else _OFF


def availability_in(step: Step) -> AvailabilityById:
    """Return the availability that the step carries; None of an item that it deletes."""
    match step:
        case PushFull() | SetAvailability():
            return {each.external_id: availability_of(each) for each in step.items}
        case PushBatch():
            put = {each.external_id: availability_of(each) for each in (*step.add, *step.update)}
            return put | dict.fromkeys(step.delete)
        case PatchItem():
            carries = "available" in step.fields
            return {step.item.external_id: availability_of(step.item)} if carries else {}


def apply_latest_availability(step: Step, sent: Mapping[str, Availability]) -> Step:
    """Return the step with the availability that was sent of its items since it was planned."""
    if sent.keys().isdisjoint(ids_of(step)):
        return step
    match step:
        case PushFull():
            return replace(step, items=_with_latest(step.items, sent, ends=False))
        case PushBatch():
            return replace(
                step,
                add=_with_latest(step.add, sent, ends=False),
                update=_with_latest(step.update, sent, ends=False),
            )
        case PatchItem():
            (item,) = _with_latest((step.item,), sent, ends=False)
            return replace(step, item=item)
        case SetAvailability():
            return SetAvailability(_with_latest(step.items, sent, ends=True))


def _with_latest(
    items: tuple[Item, ...], sent: Mapping[str, Availability], *, ends: bool
) -> tuple[Item, ...]:
    """Return the items as last sent; item objects cannot carry the end of a snooze (`ends`)."""
    return tuple(
        replace(each, available=latest.available, snooze_until=latest.until if ends else None)
        if (latest := sent.get(each.external_id)) is not None
        else each
        for each in items
    )


def _unlike(carried: AvailabilityById, others: AvailabilityById) -> Iterator[str]:
    for external_id, availability in carried.items():
        if external_id in others and others[external_id] != availability:
            yield external_id
