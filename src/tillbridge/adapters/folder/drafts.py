"""Items in the making: rows come one by one, and at the end each item has its variants."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tillbridge.adapter import BadRow, Catalogue, Category, Item, Menu, Variant
from tillbridge.adapters.folder.cells import BadCell, BrokenRow
from tillbridge.adapters.folder.menu_rows import MenuRow, MenuRowReader

_MAX_SWALLOWED = 1_000


class TakenId(BadCell):
    """A second row with an id that a row above has."""


@dataclass(slots=True)
class Drafts:
    """Gathers rows; the first with an id counts, a later one is a bad row."""

    reader: MenuRowReader
    _items: dict[str, Item] = field(default_factory=dict)
    _fingerprints: dict[str, int] = field(default_factory=dict)
    _variants: dict[str, list[tuple[int, Variant]]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)  # id -> the row that has it
    _unpriced: dict[str, int] = field(default_factory=dict)
    _bad_items: set[str] = field(default_factory=set)  # whose own row is bad
    _incomplete: set[str] = field(default_factory=set)  # items with a variant that is bad
    _bad_rows: list[BadRow] = field(default_factory=list)

    def take(self, number: int, row: Sequence[str], fingerprint: int) -> None:
        """Add row `number`; never raises."""
        named = self.reader.row(row)
        try:
            self.reader.check(row)
            if named.parent_id:
                self._take_variant(number, named)
            else:
                self._take_item(number, named, fingerprint)
        except BadCell as bad:
            item_id = self._stands_for(named, bad)
            (self._incomplete if named.parent_id else self._bad_items).add(item_id)
            self._add_bad(number, bad, item_id)
            if isinstance(bad, BrokenRow):
                for swallowed in self.reader.swallowed(row)[:_MAX_SWALLOWED]:
                    self._add_bad(number, bad, swallowed)

    def catalogue(self, menu: Menu) -> Catalogue:
        """Return all that was taken, as items of `menu`."""
        for item_id, variants in self._variants.items():
            self._join(item_id, variants)
        for item_id in self._incomplete:
            # Without one of its variants the item would lose that variant: it stays as it was.
            self._drop(item_id)
        for item_id, number in self._unpriced.items():
            if item_id in self._items and item_id not in self._variants:
                self._refuse(
                    item_id, number, "price", "", "price is empty.", "Fill in price in the till."
                )
        categories = dict.fromkeys(
            name for item in self._items.values() for name in item.categories
        )
        return Catalogue(
            items=self._items,
            categories={name: Category(name, name) for name in categories},
            menus={menu.external_id: menu},
            bad_rows=tuple(self._bad_rows),
            fingerprints=self._fingerprints,
        )

    def _stands_for(self, row: MenuRow, bad: BadCell) -> str:
        """Return the item that keeps its last good state because of this row, "" for none."""
        if isinstance(bad, TakenId) or (not row.parent_id and row.external_id in self._items):
            return ""  # the first row of that id is the item, and it is good
        return row.parent_id or row.external_id

    def _take_item(self, number: int, row: MenuRow, fingerprint: int) -> None:
        item = self.reader.item(row)
        self._claim(item.external_id, number)
        self._items[item.external_id] = item
        self._fingerprints[item.external_id] = fingerprint
        if not row.has_price:
            self._unpriced[item.external_id] = number

    def _take_variant(self, number: int, row: MenuRow) -> None:
        variant = self.reader.variant(row)
        self._claim(variant.external_id, number)
        self._variants.setdefault(row.parent_id, []).append((number, variant))

    def _claim(self, external_id: str, number: int) -> None:
        first = self._numbers.setdefault(external_id, number)
        if first != number:
            raise TakenId(
                "external_id",
                external_id,
                f"external_id {external_id!r} stands in row {first} already.",
                "Give each item an id of its own; the first row counts.",
            )

    def _join(self, item_id: str, variants: list[tuple[int, Variant]]) -> None:
        if item_id in self._items:
            item = self._items[item_id]
            lowest = min(variant.price for _, variant in variants)
            self._items[item_id] = replace(
                item,
                price=lowest if item_id in self._unpriced else item.price,
                variants=tuple(variant for _, variant in variants),
            )
        elif item_id not in self._bad_items:
            for number, _ in variants:
                self._refuse(
                    item_id,
                    number,
                    "parent_id",
                    item_id,
                    f"parent_id {item_id!r} is no item of this export.",
                    "Export the item too, or empty parent_id to sell the row as an item.",
                )

    def _refuse(self, item_id: str, number: int, *bad: str) -> None:
        self._drop(item_id)
        self._add_bad(number, BadCell(*bad), item_id)

    def _drop(self, item_id: str) -> None:
        self._items.pop(item_id, None)
        self._fingerprints.pop(item_id, None)

    def _add_bad(self, number: int, bad: BadCell, external_id: str) -> None:
        place = self.reader.table.place(number)
        self._bad_rows.append(bad.at(place, external_id=external_id))
