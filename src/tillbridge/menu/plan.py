"""From a difference to the cheapest calls that are right. Pure. Specification: Menus and items.

| what differs | calls |
|---|---|
| nothing | none |
| availability alone | one availability call |
| one item's fields | one PATCH |
| several things | one batch, with the parts it needs |
| everything (first, drift), most of a large menu, or who is on which menu | a full push |

Full pushes upsert, so what is gone is deleted by a batch afterwards. An item object cannot carry
the end of a snooze, so that goes by an availability call afterwards. Lists longer than the service
may take in one call are split.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.codec import can_be_patched
from tillbridge.menu.diff import Diff
from tillbridge.model.catalogue import Catalogue, Item, Menu

T = TypeVar("T")

Kind = Literal["nothing", "availability", "patch", "batch", "full"]

DEFAULT_MENU = Menu("menu", "Menu")  # for a POS that knows of no menus


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Sizes (settings `[assumptions]` and `full_push_percent`)."""

    background_threshold: int
    batch_max_items: int
    full_push_percent: float


@dataclass(frozen=True, slots=True)
class PushFull:
    """POST menus: these items of these menus, with the parts they need."""

    menus: tuple[Menu, ...]
    items: tuple[Item, ...]
    parts: Parts


@dataclass(frozen=True, slots=True)
class PushBatch:
    """POST menus/batch. `before` holds what the service has of the updated items."""

    add: tuple[Item, ...] = ()
    update: tuple[Item, ...] = ()
    delete: tuple[str, ...] = ()
    parts: Parts = field(default_factory=Parts)
    before: Mapping[str, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PatchItem:
    """PATCH of one item: `fields` are what differs from `before`."""

    item: Item
    before: Item
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class SetAvailability:
    """POST items/availability: whether these items are on sale, and until when they are not."""

    items: tuple[Item, ...]


Step = PushFull | PushBatch | PatchItem | SetAvailability


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls to make, in order."""

    kind: Kind
    steps: tuple[Step, ...] = ()


def choose(changes: Diff, *, acknowledged: int, menus: int, limits: PlanLimits) -> Kind:
    """Return the kind of plan for `changes`.

    `acknowledged` is how many items the service has, `menus` how many menus the catalogue has.
    """
    if not changes.needs_push:
        return "availability" if changes.availability else "nothing"
    touched = len(changes.added) + len(changes.content)
    large = touched > limits.background_threshold
    most = touched * 100 > limits.full_push_percent * max(acknowledged, touched)
    if acknowledged == 0 and touched:
        return "full"
    if (large and most) or _menus_move(changes, menus):
        return "full"
    if _is_one_patch(changes):
        return "patch"
    return "batch"


def plan(kind: Kind, changes: Diff, target: Catalogue, limits: PlanLimits) -> Plan:
    """Return the calls of that kind; for a full push `target` is the whole catalogue to be."""
    match kind:
        case "nothing":
            return Plan("nothing")
        case "availability":
            return Plan("availability", tuple(_availability(_toggled(changes), limits)))
        case "patch":
            return Plan("patch", (*_patch(changes), *_availability(_snoozed(changes), limits)))
        case "batch":
            return Plan(
                "batch",
                (*_batches(changes, limits), *_availability(_snoozed(changes), limits)),
            )
        case "full":
            return Plan("full", tuple(_full(changes, target, limits)))


def _menus_move(changes: Diff, menus: int) -> bool:
    """Whether something changes that only a full push can say: menus, and who is on which."""
    if changes.menus.put:
        return True
    if changes.added and menus > 1:
        return True
    return any(
        "menus" in change.fields and change.after.menus != change.before.menus
        for change in changes.changed.values()
    )


def _is_one_patch(changes: Diff) -> bool:
    if changes.added or changes.removed or changes.parts_put or len(changes.changed) != 1:
        return False
    (change,) = changes.changed.values()
    return can_be_patched(change.after, change.before, change.fields)


def _patch(changes: Diff) -> Iterator[Step]:
    for change in changes.changed.values():
        yield PatchItem(without_snooze(change.after), change.before, change.fields)


def _batches(changes: Diff, limits: PlanLimits) -> Iterator[Step]:
    parts = Parts(changes.categories.put, changes.add_ons.put, changes.addon_groups.put)
    rows: list[tuple[str, str]] = [
        *(("add", each) for each in changes.added),
        *(("update", each) for each in changes.changed),
        *(("delete", each) for each in changes.removed),
    ]
    for number, portion in enumerate(_portions(rows, limits.batch_max_items) or [[]]):
        chosen = {
            verb: [external_id for what, external_id in portion if what == verb]
            for verb in ("add", "update", "delete")
        }
        yield PushBatch(
            add=tuple(without_snooze(changes.added[each]) for each in chosen["add"]),
            update=tuple(without_snooze(changes.changed[each].after) for each in chosen["update"]),
            delete=tuple(chosen["delete"]),
            parts=parts if number == 0 else Parts(),
            before={each: changes.changed[each].before for each in chosen["update"]},
        )


def _full(changes: Diff, target: Catalogue, limits: PlanLimits) -> Iterator[Step]:
    items = tuple(without_snooze(each) for each in target.items.values())
    if items or target.menus:
        yield PushFull(
            tuple(target.menus.values()) or (DEFAULT_MENU,),
            items,
            Parts(target.categories, target.add_ons, target.addon_groups, target.menus),
        )
    for portion in _portions(list(changes.removed), limits.batch_max_items):
        yield PushBatch(delete=tuple(portion))
    yield from _availability([each for each in target.items.values() if _has_end(each)], limits)


def _toggled(changes: Diff) -> list[Item]:
    return [change.after for change in changes.availability.values()]


def _snoozed(changes: Diff) -> list[Item]:
    """Return the items of a patch or batch whose snooze has an end: only availability says it."""
    touched = (*changes.added.values(), *(each.after for each in changes.changed.values()))
    return [each for each in touched if _has_end(each)]


def _has_end(item: Item) -> bool:
    return not item.available and item.snooze_until is not None


def without_snooze(item: Item) -> Item:
    """Return the item as an item object can say it."""
    return item if item.snooze_until is None else replace(item, snooze_until=None)


def _availability(items: Sequence[Item], limits: PlanLimits) -> Iterator[Step]:
    for portion in _portions(items, limits.batch_max_items):
        yield SetAvailability(tuple(portion))


def _portions(values: Sequence[T], size: int) -> list[Sequence[T]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def needed(items: Sequence[Item], parts: Parts) -> Parts:
    """Return those of the parts that the items refer to, directly or through a group."""
    categories = {each for item in items for each in item.categories}
    groups = {each for item in items for each in item.addon_groups}
    add_ons = {
        each
        for group in groups
        if group in parts.addon_groups
        for each in parts.addon_groups[group].add_ons
    }
    return Parts(
        {key: part for key, part in parts.categories.items() if key in categories},
        {key: part for key, part in parts.add_ons.items() if key in add_ons},
        {key: part for key, part in parts.addon_groups.items() if key in groups},
        parts.menus,
    )


def menus_of(push: PushFull) -> Iterator[tuple[Menu, tuple[Item, ...], Parts]]:
    """Yield each menu of a push with its items and parts.

    An item that names no menu of the push is on the first one; so are parts that no item needs.
    """
    known = {menu.external_id for menu in push.menus}
    on: dict[str, list[Item]] = {menu.external_id: [] for menu in push.menus}
    first = push.menus[0].external_id
    for item in push.items:
        for menu_id in [each for each in item.menus if each in known] or [first]:
            on[menu_id].append(item)
    if len(push.menus) == 1:
        yield push.menus[0], push.items, push.parts
        return
    needs = {menu_id: needed(items, push.parts) for menu_id, items in on.items()}
    for menu in push.menus:
        mine = needs[menu.external_id]
        if menu.external_id == first:
            mine = _with_orphans(mine, push.parts, tuple(needs.values()))
        yield menu, tuple(on[menu.external_id]), mine


def _with_orphans(mine: Parts, every: Parts, used: Sequence[Parts]) -> Parts:
    return Parts(
        {**mine.categories} | _untaken(every.categories, [each.categories for each in used]),
        {**mine.add_ons} | _untaken(every.add_ons, [each.add_ons for each in used]),
        {**mine.addon_groups} | _untaken(every.addon_groups, [each.addon_groups for each in used]),
        mine.menus,
    )


def _untaken(every: Mapping[str, T], used: Sequence[Mapping[str, T]]) -> dict[str, T]:
    return {key: part for key, part in every.items() if not any(key in each for each in used)}
