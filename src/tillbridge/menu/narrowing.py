"""What an answer means for the items of a step, and which items a refusal is about. Pure.

A partial answer says that something was not taken, and perhaps what: names count only where the
numbers agree with them; where nobody can tell, nothing is acknowledged and the push is repeated in
parts. A refusal may name the items in its message, by id or by place ("items[17]"), or may not: a
step is divided until what is refused is one item. Names only guide the division. Everything is an
upsert, so sending a part twice does no harm.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.plan import (
    PatchItem,
    PushBatch,
    PushFull,
    SetAvailability,
    Step,
    menus_of,
    needed,
)
from tillbridge.model.catalogue import Item

_PLACE = re.compile(r"(?:menus\W{0,2}(\d+)\W{1,3})?\b(items|add|update|delete)(?:\[|\.|/)(\d+)")
_QUOTED = re.compile("[\"'`\u2018\u201c]([^\"'`\u2019\u201d]+)[\"'`\u2019\u201d]")
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}]+")


def ids_of(step: Step) -> frozenset[str]:
    """Return the external ids of the items that the step carries."""
    return frozenset(_listed_ids(step))


def named_in(message: str, step: Step) -> frozenset[str]:
    """Return those of the step's items that the message names, by id or by place."""
    ids = ids_of(step)
    found = {each for each in _QUOTED.findall(message) if each in ids}
    for word in _WORD.findall(message):
        found.update(each for each in (word, word.rstrip(".:!?")) if each in ids)
    return frozenset(found | set(_by_place(message, step)))


def lacking_in(message: str, step: Step) -> frozenset[str]:
    """Return the ids of parts that the message names, which the step refers to and does not carry.

    Such a category, add-on or group was sent before: the service has lost it.
    """
    items: tuple[Item, ...] = ()
    parts = Parts()
    if isinstance(step, PushBatch):
        items, parts = (*step.add, *step.update), step.parts
    elif isinstance(step, PatchItem):
        items = (step.item,)
    carried = parts.categories.keys() | parts.add_ons.keys() | parts.addon_groups.keys()
    needed_ids = {each for item in items for each in (*item.categories, *item.addon_groups)}
    needed_ids.update(each for group in parts.addon_groups.values() for each in group.add_ons)
    named = {*_QUOTED.findall(message), *_WORD.findall(message)}
    return frozenset((needed_ids - carried) & named)


def divide(step: Step, named: AbstractSet[str]) -> tuple[Step, ...]:
    """Return smaller steps that carry the same: the named items singly, or halves."""
    ids = list(_listed_ids(step))
    if len(ids) < 2:
        return ()
    if named and len(named) < len(ids):
        rest = only(step, frozenset(ids) - named)
        return (rest, *(only(step, {each}) for each in ids if each in named))
    middle = len(ids) // 2
    return only(step, frozenset(ids[:middle])), only(step, frozenset(ids[middle:]))


def singly(step: Step, named: Iterable[str]) -> tuple[Step, ...]:
    """Return one step for each of these items."""
    return tuple(only(step, {each}) for each in named)


def only(step: Step, ids: AbstractSet[str]) -> Step:
    """Return the step with these items alone, and the parts that they need."""
    match step:
        case PushFull():
            items = tuple(each for each in step.items if each.external_id in ids)
            return PushFull(step.menus, items, needed(items, step.parts))
        case PushBatch():
            add = tuple(each for each in step.add if each.external_id in ids)
            update = tuple(each for each in step.update if each.external_id in ids)
            return PushBatch(
                add,
                update,
                tuple(each for each in step.delete if each in ids),
                needed((*add, *update), step.parts),
                step.before,
            )
        case SetAvailability():
            return SetAvailability(tuple(each for each in step.items if each.external_id in ids))
        case PatchItem():
            return step


def _listed_ids(step: Step) -> Sequence[str]:
    match step:
        case PushFull() | SetAvailability():
            return [each.external_id for each in step.items]
        case PushBatch():
            return [*(each.external_id for each in (*step.add, *step.update)), *step.delete]
        case PatchItem():
            return [step.item.external_id]


def _by_place(message: str, step: Step) -> Iterable[str]:
    for menu, name, place in _PLACE.findall(message):
        listed = _list_named(step, int(menu or 0), name)
        if int(place) < len(listed):
            yield listed[int(place)]


def _list_named(step: Step, menu: int, name: str) -> Sequence[str]:
    match step:
        case PushFull() if name == "items":
            menus = list(menus_of(step))
            return [each.external_id for each in menus[menu][1]] if menu < len(menus) else []
        case PushBatch() if name == "delete":
            return step.delete
        case PushBatch() if name in {"add", "update"}:
            return [each.external_id for each in (step.add if name == "add" else step.update)]
        case SetAvailability() if name == "items":
            return [each.external_id for each in step.items]
    return []


_INCOMPLETE = frozenset({"partial", "failed", "error"})


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a call.

    `refused` means that nothing of it was taken; `partial` that some of it was not, of which
    `named` are known by name (the rest is acknowledged), or that nobody can tell which (none are).
    `missing` are items that the service does not know. `reserved` says that every item was taken,
    but not everything about them: `message` says what. `lacks`: it was refused for a category,
    add-on or group that the service was sent before, and does not know now. `again`: the service
    failed at its own work; the same is sent once more before any item is blamed.
    """

    verdict: Literal["taken", "partial", "refused"]
    message: str = ""
    named: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    reserved: bool = False
    lacks: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The service's answer in one shape; `count` is how many items it took, None: unknown."""

    status: str
    message: str
    count: int | None = None
    missing: frozenset[str] = frozenset()


def judge(reply: Reply, step: Step) -> Sent:
    """Return what came of the call."""
    if reply.status not in _INCOMPLETE:
        return Sent("taken", reply.message, missing=reply.missing)
    named = named_in(reply.message, step)
    carried = len(ids_of(step))
    if reply.count is not None and reply.count == carried:
        return Sent("taken", reply.message, reserved=True)  # what was not taken is no item
    if named and reply.count is not None and reply.count != carried - len(named):
        named = frozenset()  # the message does not name them all
    return Sent("partial", reply.message, named)


def taken_of(step: Step, sent: Sent) -> Step | None:
    """Return what of the step is to be acknowledged."""
    if sent.verdict == "taken":
        return only(step, ids_of(step) - sent.missing) if sent.missing else step
    if sent.verdict == "partial" and sent.named and sent.named != ids_of(step):
        return only(step, ids_of(step) - sent.named)
    return None
