"""What has to change at the service: the difference of two catalogues, as a value, and its name.

`apply(diff(a, b), a)` has the content of `b`, for any two catalogues, apart from what bad rows of
`b` stand for: that keeps its state in `a`. Equal differences have equal digests: a sum over the
entries, in any order, so that the digest of what is left after a part was accepted is known by
subtraction. Availability does not count there: it goes out even while the rest waits, and must not
turn an approved plan into another one.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import xxhash

from tillbridge.ledger.menu_codec import item_text, part_text
from tillbridge.model.catalogue import AddOn, AddOnGroup, Catalogue, Category, Item, Menu

AVAILABILITY = frozenset({"available", "snooze_until"})
ITEM_FIELDS = tuple(each.name for each in fields(Item))
PART_KINDS = ("categories", "add_ons", "addon_groups", "menus")

P = TypeVar("P", Category, AddOn, AddOnGroup, Menu)


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item known to both sides; `fields` names what differs (all, where that is unknown)."""

    before: Item
    after: Item
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class PartChanges(Generic[P]):
    """Parts of one kind: `put` are new or changed, `before` what the changed ones were."""

    put: Mapping[str, P] = field(default_factory=dict)
    before: Mapping[str, P] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.put or self.gone)


@dataclass(frozen=True)
class Diff:
    """The difference between what the service has and what it should have, by external id."""

    added: Mapping[str, Item] = field(default_factory=dict)
    changed: Mapping[str, ItemChange] = field(default_factory=dict)
    removed: Mapping[str, Item] = field(default_factory=dict)
    categories: PartChanges[Category] = field(default_factory=PartChanges)
    add_ons: PartChanges[AddOn] = field(default_factory=PartChanges)
    addon_groups: PartChanges[AddOnGroup] = field(default_factory=PartChanges)
    menus: PartChanges[Menu] = field(default_factory=PartChanges)

    @cached_property
    def content(self) -> Mapping[str, ItemChange]:
        """The changed items of which more than availability differs."""
        return {k: each for k, each in self.changed.items() if not each.fields <= AVAILABILITY}

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many items of each kind of change, and parts that are new or changed."""
        return {
            "added": len(self.added),
            "changed": len(self.content),
            "removed": len(self.removed),
            "availability": len(self.changed) - len(self.content),
            "parts": sum(len(getattr(self, kind).put) for kind in PART_KINDS),
        }

    @property
    def needs_push(self) -> bool:
        """Whether more than availability has to be sent."""
        return any(count for what, count in self.counts.items() if what != "availability")

    @property
    def parts_gone(self) -> dict[str, frozenset[str]]:
        """The ids of the parts that are gone, by kind."""
        return {kind: getattr(self, kind).gone for kind in PART_KINDS}

    def __bool__(self) -> bool:
        return any(self.counts.values()) or any(self.parts_gone.values())


def diff(
    acknowledged: Catalogue, current: Catalogue, *, doubtful: AbstractSet[str] = frozenset()
) -> Diff:
    """Return what turns `acknowledged` into `current`.

    What a bad row of `current` stands for, an item or an add-on group with its add-ons, is neither
    changed nor removed, and a bad row without an id lets nothing be removed. `doubtful` items count
    as changed in every field.
    """
    unread = {row.external_id for row in current.bad_rows if row.external_id}
    may_remove = all(row.external_id for row in current.bad_rows)
    added: dict[str, Item] = {}
    changed: dict[str, ItemChange] = {}
    for external_id, after in current.items.items():
        if external_id in unread:
            continue
        before = acknowledged.items.get(external_id)
        if before is None:
            added[external_id] = after
        elif external_id in doubtful:
            changed[external_id] = ItemChange(before, after, frozenset(ITEM_FIELDS))
        elif before is not after and before != after:
            differing = (
                name for name in ITEM_FIELDS if getattr(before, name) != getattr(after, name)
            )
            changed[external_id] = ItemChange(before, after, frozenset(differing))
    removed = {
        external_id: item
        for external_id, item in acknowledged.items.items()
        if may_remove and external_id not in current.items and external_id not in unread
    }
    unread_add_ons = {
        add_on
        for key, group in acknowledged.addon_groups.items()
        if key in unread
        for add_on in group.add_ons
    }
    return Diff(
        added,
        changed,
        removed,
        _parts(acknowledged.categories, current.categories, may_go=may_remove),
        _parts(acknowledged.add_ons, current.add_ons, unread_add_ons, may_go=may_remove),
        _parts(acknowledged.addon_groups, current.addon_groups, unread, may_go=may_remove),
        _parts(acknowledged.menus, current.menus, may_go=may_remove),
    )


def apply(changes: Diff, acknowledged: Catalogue) -> Catalogue:
    """Return the catalogue the service has after `changes`; without bad rows and fingerprints."""
    items = dict(acknowledged.items)
    for external_id in changes.removed:
        items.pop(external_id, None)
    items.update((external_id, change.after) for external_id, change in changes.changed.items())
    items.update(changes.added)
    parts: dict[str, Any] = {}
    for kind in PART_KINDS:
        changed = getattr(changes, kind)
        had = getattr(acknowledged, kind).items()
        stay = {key: part for key, part in had if key not in changed.gone}
        parts[kind] = {**stay, **changed.put}
    return Catalogue(items=items, **parts)


def _parts(
    before: Mapping[str, P],
    after: Mapping[str, P],
    unread: AbstractSet[str] = frozenset(),
    *,
    may_go: bool,
) -> PartChanges[P]:
    put = {
        key: part for key, part in after.items() if before.get(key) != part and key not in unread
    }
    return PartChanges(
        put,
        {key: before[key] for key in put if key in before},
        frozenset(before.keys() - after.keys() - unread) if may_go else frozenset(),
    )


_MODULUS = 1 << 128


class ContentDigest:
    """The digest of a difference, and of what is left of it as parts of it are accepted."""

    def __init__(self, changes: Diff) -> None:
        self._items = {key: _number(f"removed {key}") for key in changes.removed}
        put = [("added", each) for each in changes.added.values()]
        put += [("changed", each.after) for each in changes.content.values()]
        for what, item in put:
            if not item.available or item.snooze_until is not None:
                item = replace(item, available=True, snooze_until=None)  # noqa: PLW2901 -- its content
            self._items[item.external_id] = _number(f"{what} {item_text(item)}")
        content = replace(changes, addon_groups=_without_sold_out(changes.addon_groups))
        self._parts = sum(
            _number(f"{kind} {part_text(part)}")
            for kind in PART_KINDS
            for part in getattr(content, kind).put.values()
        )
        self._sum = sum(self._items.values())

    @property
    def text(self) -> str:
        """The digest of what is left; "" where that is nothing."""
        if not self._items and not self._parts:
            return ""
        return f"{(self._sum + self._parts) % _MODULUS:032x}"

    def accepted(self, external_ids: Iterable[str]) -> None:
        """Leave these items out; categories, add-ons and groups went with the first of them."""
        for external_id in external_ids:
            self._sum -= self._items.pop(external_id, 0)
        self._parts = 0


def _without_sold_out(groups: PartChanges[AddOnGroup]) -> PartChanges[AddOnGroup]:
    """Return the groups of which more than what is sold out differs, as if nothing was."""
    before = {key: replace(each, sold_out=()) for key, each in groups.before.items()}
    put = {key: replace(each, sold_out=()) for key, each in groups.put.items()}
    return PartChanges({key: each for key, each in put.items() if before.get(key) != each}, before)


def _number(text: str) -> int:
    return xxhash.xxh3_128_intdigest(text.encode("utf-8", "surrogatepass"))
