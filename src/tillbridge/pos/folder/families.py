"""Fingerprints of items that stand in several rows: an item and its variants.

The fingerprint of such an item is made of its own row's and those of its variants' rows in their
order, so that a changed variant is a changed item. Which rows belong together is only known at
the end of the file. To keep nothing of what did not change, a first pass keeps numbers only, and
what proved to be new is read in a second. Most exports have few rows of this kind, or none: then
their rows are kept, and one pass does.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from tillbridge.pos.folder import cells
from tillbridge.pos.folder.table_file import Table

_FEW_ROWS = 2_000
_TO_SIGNED = 1 << 63
_64_BITS = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15  # so that the order of rows matters

_Row = tuple[int, list[str], int]


def unknown_rows_of_items(
    table: Table, known: AbstractSet[int], unseen: set[int], seed: int
) -> Iterator[_Row]:
    """Yield the rows of items whose fingerprint is not in `known`, in the file's order.

    As `Table.unknown_rows`, but with the item's fingerprint at its own row and 0 at its
    variants'. Variants whose parent is nowhere are yielded too.
    """
    if "parent_id" not in table.columns:
        yield from table.unknown_rows(known, unseen, seed)
        return
    families = _Families(table, seed)
    yield from families.unknown_rows(known, unseen)


class _Families:
    """What a first pass learnt of the rows that are not known by themselves."""

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._seed = seed
        self._id_at = table.columns["external_id"]
        self._parent_at = table.columns["parent_id"]
        self._heads: dict[str, int] = {}  # item id -> fingerprint of its own row
        self._variants: dict[str, int] = {}  # item id -> fingerprint of its variants' rows
        self._loose: set[int] = set()  # rows without an id, or with one that a row above has
        self._kept: list[_Row] | None = []

    def unknown_rows(self, known: AbstractSet[int], unseen: set[int]) -> Iterator[_Row]:
        """Yield as `unknown_rows_of_items` says."""
        for numbered in _distinct(self._table.unknown_rows(known, unseen, self._seed)):
            self._note(numbered)
        new = self._new_heads(known, unseen)
        # Their own row was known by itself, as an item without variants; or it is not there.
        late = self._variants.keys() - self._heads.keys()
        if late or self._kept is None:
            rows = _distinct(self._table.unknown_rows(frozenset(), set(), self._seed))
        else:
            rows = iter(self._kept)
        for number, row, fingerprint in rows:
            external_id, parent_id = self._ids(row)
            if parent_id:
                if parent_id in new or parent_id in late:
                    yield number, row, 0
            elif number in self._loose:
                yield number, row, fingerprint
            elif external_id in new and self._heads[external_id] == fingerprint:
                yield number, row, new[external_id]
            elif external_id in late:
                unseen.add(fingerprint)  # the item without variants is not there any more
                yield number, row, _mixed(fingerprint, self._variants[external_id])

    def _note(self, numbered: _Row) -> None:
        number, row, fingerprint = numbered
        external_id, parent_id = self._ids(row)
        if parent_id:
            above = self._variants.get(parent_id, 0)
            self._variants[parent_id] = _mixed(above, fingerprint)
        elif external_id and external_id not in self._heads:
            self._heads[external_id] = fingerprint
        else:
            self._loose.add(number)
        if self._kept is not None:
            self._kept.append(numbered)
            if len(self._kept) > _FEW_ROWS:
                self._kept = None

    def _new_heads(self, known: AbstractSet[int], unseen: set[int]) -> dict[str, int]:
        new: dict[str, int] = {}
        for external_id, own in self._heads.items():
            variants = self._variants.get(external_id)
            whole = own if variants is None else _mixed(own, variants)
            if whole in known:
                unseen.discard(whole)
            else:
                new[external_id] = whole
        return new

    def _ids(self, row: Sequence[str]) -> tuple[str, str]:
        try:
            return cells.plain(row[self._id_at]), cells.plain(row[self._parent_at])
        except IndexError:
            return cells.plain(row[self._id_at]) if self._id_at < len(row) else "", ""


def _distinct(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Yield each row once: one that stands there again says nothing new."""
    seen: set[int] = set()
    for row in rows:
        if row[2] not in seen:
            seen.add(row[2])
            yield row


def _mixed(first: int, second: int) -> int:
    """Return one fingerprint of two, which are evenly spread already."""
    return ((first * _ODD + second) & _64_BITS) - _TO_SIGNED
