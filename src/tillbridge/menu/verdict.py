"""What the service's answer to a step of a plan means, and which items a refusal is about; pure.

A partial answer says that something was not accepted, and perhaps what: names count only where the
numbers agree with them; if that is unclear, nothing is acknowledged and the push is repeated in
parts. A refusal may name the items in its message, by id or by place ("items[17]"), or may not: a
step is divided until what is refused is one item. Names only guide the division. Everything is an
upsert, so sending a part twice does no harm.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from tillbridge.core.errors import Refused, ServiceError
from tillbridge.menu.plan import Step, menus_of
from tillbridge.model.catalogue import Item

ITEM_NOT_FOUND = "menu.item_not_found"
_BODY_REFUSED = frozenset({400, 413, 422})
_REFERENCE_REFUSED = frozenset({400, 404, 422})
_INCOMPLETE = frozenset({"partial", "failed", "error"})


@dataclass(frozen=True, slots=True)
class Reply:
    """The service's answer in one shape; `count` is how many items it accepted, None: unknown.

    The status of a job with unknown outcome is "lost".
    """

    status: str
    message: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a call.

    `failed` means that nothing of it was accepted; `partial` that some was not, of which
    `named` are known by name (the rest is acknowledged), or it is unknown which (none are).
    `missing` are items that the service does not know. `reserved` says that every item was
    accepted, but not everything about them: `message` says what. `lacks`: it was refused for a
    category, add-on or group that the service was sent before, and does not know now. `again`: the
    service failed at its own work; the same is sent once more before any item is blamed.
    """

    state: Literal["success", "partial", "failed"]
    message: str = ""
    named: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    reserved: bool = False
    lacks: bool = False
    again: bool = False


def judge(reply: Reply, step: Step) -> Sent:
    """Return what came of the call."""
    if reply.status not in _INCOMPLETE:
        return Sent("success", reply.message)
    named = named_in(reply.message, step)
    carried = len(set(step.ids))
    if reply.count is not None and reply.count == carried:
        return Sent("success", reply.message, reserved=True)  # what was refused is no item
    if named and reply.count is not None and reply.count != carried - len(named):
        named = frozenset()  # the message does not name them all
    return Sent("partial", reply.message, named)


def refused_for(failure: ServiceError, step: Step) -> Sent | None:
    """Return what a refusal says of the step; None if it says nothing about its content."""
    if not isinstance(failure, Refused):
        return None
    named = named_in(failure.text, step)
    if failure.code == ITEM_NOT_FOUND:
        return Sent("failed", failure.text, missing=named or frozenset(step.ids))
    if failure.status in _REFERENCE_REFUSED and lacking_in(failure.text, step):
        return Sent("failed", failure.text, lacks=True)
    return Sent("failed", failure.text, named) if failure.status in _BODY_REFUSED else None


def accepted_part(step: Step, sent: Sent) -> Step | None:
    """Return what of the step is to be acknowledged."""
    ids = frozenset(step.ids)
    if sent.state == "success":
        return step.only(ids - sent.missing) if sent.missing else step
    if sent.state == "partial" and sent.named and sent.named != ids:
        return step.only(ids - sent.named)
    return None


def divide(step: Step, sent: Sent) -> tuple[Step, ...]:
    """Return what to send next of a step that was not accepted whole; () where it is one item.

    The named items go singly, after the rest unless that was accepted; without names, halves.
    """
    ids, named = step.ids, sent.named
    if named and len(named) < len(ids):
        singly = tuple(step.only({each}) for each in ids if each in named)
        if sent.state == "partial":
            return singly
        return step.only(frozenset(ids) - named), *singly
    if len(ids) < 2:
        return ()
    middle = len(ids) // 2
    return step.only(frozenset(ids[:middle])), step.only(frozenset(ids[middle:]))


_PLACE = re.compile(r"(?:menus\W{0,2}(\d+)\W{1,3})?\b(items|add|update|delete)(?:\[|\.|/)(\d+)")
_QUOTED = re.compile("[\"'`\u2018\u201c]([^\"'`\u2019\u201d]+)[\"'`\u2019\u201d]")
_WORD = re.compile(r"[^\s\"'`,;()\[\]{}]+")


def named_in(message: str, step: Step) -> frozenset[str]:
    """Return those of the step's items that the message names, by id or by place."""
    words = _WORD.findall(message)
    found = {*_QUOTED.findall(message), *words, *(each.rstrip(".:!?") for each in words)}
    return frozenset(found.intersection(step.ids)).union(_named_by_place(message, step))


def _named_by_place(message: str, step: Step) -> Iterator[str]:
    for menu_place, name, place in _PLACE.findall(message):
        listed: Sequence[Item | str] = ()
        if step.kind == "full" and name == "items":
            menus = list(menus_of(step))
            number = int(menu_place or 0)
            listed = menus[number][1] if number < len(menus) else ()
        elif step.kind == "availability" and name == "items":
            listed = step.items
        elif step.kind == "batch" and name != "items":
            by_name: Mapping[str, Sequence[Item | str]] = {
                "add": step.add,
                "update": step.update,
                "delete": step.delete,
            }
            listed = by_name[name]
        if int(place) < len(listed):
            found = listed[int(place)]
            yield found if isinstance(found, str) else found.external_id


def lacking_in(message: str, step: Step) -> AbstractSet[str]:
    """Return the ids of parts that the message names, which the step refers to and does not carry.

    Such a category, add-on or group was sent before: the service has lost it. A full push carries
    all of them.
    """
    if step.kind not in {"batch", "patch"}:
        return frozenset()
    parts = step.parts
    carried = parts.categories.keys() | parts.add_ons.keys() | parts.addon_groups.keys()
    needed = {each for item in step.items for each in (*item.categories, *item.addon_groups)}
    needed.update(each for group in parts.addon_groups.values() for each in group.add_ons)
    return (needed - carried) & {*_QUOTED.findall(message), *_WORD.findall(message)}
