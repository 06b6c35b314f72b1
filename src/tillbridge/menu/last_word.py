"""Availability has the last word, also in calls of a plan that was made before it. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from tillbridge.menu.narrowing import ids_of
from tillbridge.menu.plan import PatchItem, PushBatch, PushFull, SetAvailability, Step
from tillbridge.model.catalogue import Availability, Item

Words = dict[str, Availability | None]

_ON, _OFF = Availability(available=True), Availability(available=False)


def word_of(item: Item) -> Availability:
    """Return what the item says of its availability."""
    if item.snooze_until is not None:
        return Availability(item.available, item.snooze_until)
    return _ON if item.available else _OFF


def words_of(step: Step) -> Words:
    """Return what the step says of its items' availability; None of one that it deletes."""
    match step:
        case PushFull() | SetAvailability():
            return {each.external_id: word_of(each) for each in step.items}
        case PushBatch():
            put = {each.external_id: word_of(each) for each in (*step.add, *step.update)}
            return put | dict.fromkeys(step.delete)
        case PatchItem():
            says = "available" in step.fields
            return {step.item.external_id: word_of(step.item)} if says else {}


def restated(step: Step, told: Mapping[str, Availability]) -> Step:
    """Return the step with what was told of its items since it was planned."""
    if told.keys().isdisjoint(ids_of(step)):
        return step
    match step:
        case PushFull():
            return replace(step, items=_restated(step.items, told, ends=False))
        case PushBatch():
            return replace(
                step,
                add=_restated(step.add, told, ends=False),
                update=_restated(step.update, told, ends=False),
            )
        case PatchItem():
            (item,) = _restated((step.item,), told, ends=False)
            return replace(step, item=item)
        case SetAvailability():
            return SetAvailability(_restated(step.items, told, ends=True))


def _restated(
    items: tuple[Item, ...], told: Mapping[str, Availability], *, ends: bool
) -> tuple[Item, ...]:
    """Say it anew; item objects cannot carry the end of a snooze (`ends`)."""
    return tuple(
        replace(each, available=word.available, snooze_until=word.until if ends else None)
        if (word := told.get(each.external_id)) is not None
        else each
        for each in items
    )
