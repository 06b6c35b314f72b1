"""What a bridge has that reads a till's changes only: it must be what the till's menu says whole.

A vendor's own tests can export whatever a till exports, and call `ChangesFollower.follow` after
each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tillbridge.adapter.conformance.subject import Subject, Violation, able, plain_items
from tillbridge.adapter.protocols import ReadsCatalogue, ReadsCatalogueChanges
from tillbridge.model.catalogue import BadRow, CatalogueChanges, Item

_PARTS = ("menus", "categories", "add_ons", "addon_groups")
_COVERED = (
    "Let the fingerprint cover all that an item is made of: every field of its records, the"
    " columns, the options, the currency, and what other files say about it."
)


@dataclass(slots=True)
class ChangesFollower:
    """The items by id, each with the fingerprint of its record, and the parts that they name."""

    records: dict[str, tuple[int, Item]] = field(default_factory=dict)
    parts: dict[str, dict[str, object]] = field(default_factory=dict)  # by their kind, and by id

    @property
    def known(self) -> frozenset[int]:
        """Return the fingerprints of the records the bridge has."""
        return frozenset(fingerprint for fingerprint, _item in self.records.values())

    def follow(self, pos: object) -> None:
        """Read the changes as the bridge does. Raises Violation if they contradict the menu."""
        changes = able(pos, ReadsCatalogueChanges).read_changes(self.known)
        whole = able(pos, ReadsCatalogue).read_catalogue()
        fresh = changes.fresh
        if fresh.fingerprints.keys() != fresh.items.keys():
            raise Violation(
                "Not every item that is told has its fingerprint.",
                fix="Put the fingerprint of each item's record into the catalogue's fingerprints.",
            )
        for kind in _PARTS:
            changed, there = getattr(fresh, kind), getattr(whole, kind)
            if changed.items() - there.items():
                raise Violation(
                    f"The changes tell other {kind} than the menu does.",
                    fix="Read them from the same export.",
                )
            parts = self.parts.setdefault(kind, {})
            parts |= changed
            if missing := sorted(key for key in there if parts.get(key) != there[key]):
                raise Violation(
                    f"The changes do not tell what {missing[0]} of the {kind} is now.",
                    fix="Tell with each item what it names, and what has another name now.",
                )
        twice = self._twice(changes)
        # Of an id that stands twice with different contents, only the whole says which counts.
        twice |= {row.value for row in whole.bad_rows if row.field == "external_id" and row.value}
        if _but(twice, fresh.bad_rows) != _but(twice, whole.bad_rows):
            raise Violation(
                "The changes tell other bad rows than the menu does.",
                fix="Let a record that makes no item be new at each reading.",
            )
        self._take(changes)
        stay = twice | {row.external_id for row in whole.bad_rows}
        for external_id in (whole.items.keys() | self.records.keys()) - stay:
            whole_item = whole.items.get(external_id)
            _fingerprint, has = self.records.get(external_id, (0, None))
            if whole_item != has:
                raise Violation(
                    f"By its changes the item {external_id} is {has}, by the menu {whole_item}.",
                    fix=_COVERED,
                )

    def _twice(self, changes: CatalogueChanges) -> set[str]:
        """Return the ids of which the known record is there, and a new one as well."""
        ids = changes.fresh.items.keys() & self.records.keys()
        return {each for each in ids if self.records[each][0] not in changes.unseen}

    def _take(self, changes: CatalogueChanges) -> None:
        """Take the changes; what has a bad row, or appears twice, stays as it was."""
        stay = self._twice(changes) | {row.external_id for row in changes.fresh.bad_rows}
        for external_id, (fingerprint, _item) in list(self.records.items()):
            if fingerprint in changes.unseen and external_id not in stay:
                del self.records[external_id]
        for external_id, item in changes.fresh.items.items():
            if external_id not in stay:
                self.records[external_id] = (changes.fresh.fingerprints[external_id], item)


Told = ChangesFollower  # its name before


def reports_the_same_by_changes(subject: Subject) -> str:
    """Change the menu in every way, and follow it by its changes alone."""
    with subject.till() as rig:
        sold = rig.sell(plain_items(12), "EUR")
        pos, follower = rig.open(), ChangesFollower()
        follower.follow(pos)
        _nothing_is_new(pos, follower)
        rig.rename(sold[0].external_id, "Another name")
        follower.follow(pos)
        rig.reorder()
        follower.follow(pos)
        rig.sell_out(sold[1].external_id)
        follower.follow(pos)
        rig.sell(plain_items(9), "EUR")
        follower.follow(pos)
        return f"{len(sold)} items, changed in every way"


def _nothing_is_new(pos: object, follower: ChangesFollower) -> None:
    changes = able(pos, ReadsCatalogueChanges).read_changes(follower.known)
    if changes.fresh.items or changes.unseen:
        raise Violation(
            "The same export, read again, differs from itself.",
            fix="Make fingerprints of what the export says alone: no clock, no random numbers.",
        )


def _but(external_ids: set[str], rows: Iterable[BadRow]) -> set[BadRow]:
    """Return the rows that are not about one of these ids."""
    return {
        row
        for row in rows
        if not {row.external_id, row.value if row.field == "external_id" else ""} & external_ids
    }
