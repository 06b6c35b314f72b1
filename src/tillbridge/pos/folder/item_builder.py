"""Items in the making: rows come one by one, and at the end each item has its variants."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tillbridge.adapter import BadRow, Catalogue, Category, Item, Menu, Source, Variant
from tillbridge.adapter.sale_options import NotForSale, SaleOptions, SaleRules
from tillbridge.pos.folder.cells import BadCell, BrokenRow, DoubtfulCell, TakenId
from tillbridge.pos.folder.menu_rows import MenuRow, MenuRowReader, RowValues

_MAX_SWALLOWED = 1_000


@dataclass(frozen=True, slots=True)
class _Places(Mapping[str, str]):
    """Where items stand, by their ids; put into words for the few that are asked for."""

    numbers: Mapping[str, int]
    place: Callable[[int], str]

    def __getitem__(self, external_id: str) -> str:
        return self.place(self.numbers[external_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(slots=True)
class ItemBuilder:
    """Gathers rows; the first with an id counts, a later one that differs is a bad row."""

    values: RowValues
    place: Callable[[int], str]
    rules: SaleRules
    doubtful: bool = False  # whether a price was refused that can be read in two ways
    _items: dict[str, Item] = field(default_factory=dict)
    _fingerprints: dict[str, int] = field(default_factory=dict)
    _variants: dict[str, list[tuple[int, Variant]]] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)  # id -> the row that has it
    _unpriced: dict[str, int] = field(default_factory=dict)
    _bad_items: set[str] = field(default_factory=set)  # whose own row is bad
    _incomplete: set[str] = field(default_factory=set)  # items with a variant that is bad
    _bad_rows: list[BadRow] = field(default_factory=list)

    def take(
        self, reader: MenuRowReader, number: int, row: Sequence[str], fingerprint: int
    ) -> None:
        """Add row `number` of a table; never raises."""
        named = reader.row(row)
        try:
            reader.check(row)
        except BrokenRow as bad:
            self.take_bad(number, named, bad, reader.swallowed(row))
        else:
            self.take_row(number, named, fingerprint)

    def take_row(self, number: int, row: MenuRow, fingerprint: int) -> None:
        """Add an item or a variant that stands in row `number`; never raises."""
        try:
            if row.parent_id:
                self._take_variant(number, row)
            else:
                self._take_item(number, row, fingerprint)
        except BadCell as bad:
            self.take_bad(number, row, bad)

    def take_bad(
        self, number: int, row: MenuRow, bad: BadCell, swallowed: Sequence[str] = ()
    ) -> None:
        """Add a row that cannot be used, and the ids of items that stand inside of it."""
        self.doubtful = self.doubtful or isinstance(bad, DoubtfulCell)
        item_id = self._stands_for(row, bad)
        (self._incomplete if row.parent_id else self._bad_items).add(item_id)
        self._add_bad(number, bad, item_id)
        for each in swallowed[:_MAX_SWALLOWED]:
            self._add_bad(number, bad, each)

    def catalogue(self, menu: Menu) -> Catalogue:
        """Return all that was taken, as items of `menu`."""
        for item_id, variants in self._variants.items():
            self._join(item_id, variants)
        for item_id in self._incomplete:
            # Without one of its variants the item would lose that variant: it stays as it was.
            self._drop(item_id)
        for item_id, number in self._unpriced.items():
            if item_id in self._items and item_id not in self._variants:
                price = self.values.name_of("price")
                self._refuse(
                    item_id,
                    number,
                    price,
                    "",
                    f"{price} is empty.",
                    f"Fill in {price} in the till.",
                )
        if sells_less(self.rules.options):
            self._leave_out()
        categories = dict.fromkeys(
            name for item in self._items.values() for name in item.categories
        )
        return Catalogue(
            items=self._items,
            categories={name: Category(name, name) for name in categories},
            menus={menu.external_id: menu},
            bad_rows=tuple(self._bad_rows),
            fingerprints=self._fingerprints,
            source=Source(_Places(self._numbers, self.place), self.values.shown),
        )

    def _stands_for(self, row: MenuRow, bad: BadCell) -> str:
        """Return the item that keeps its last good state because of this row, "" for none."""
        if isinstance(bad, TakenId) or (not row.parent_id and row.external_id in self._items):
            return ""  # the first row of that id is the item, and it is good
        return row.parent_id or row.external_id

    def _take_item(self, number: int, row: MenuRow, fingerprint: int) -> None:
        item = self.values.item(row)
        if self._fingerprints.get(item.external_id) == fingerprint:
            return  # the same row once more
        self._claim(item.external_id, number)
        self._items[item.external_id] = item
        self._fingerprints[item.external_id] = fingerprint
        if not row.has_price:
            self._unpriced[item.external_id] = number

    def _take_variant(self, number: int, row: MenuRow) -> None:
        variant = self.values.variant(row)
        self._claim(variant.external_id, number)
        self._variants.setdefault(row.parent_id, []).append((number, variant))

    def _claim(self, external_id: str, number: int) -> None:
        first = self._numbers.setdefault(external_id, number)
        if first != number:
            name = self.values.name_of("external_id")
            raise TakenId(
                name,
                external_id,
                f"{name} {external_id!r} stands in {self.place(first)} already.",
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
                parent = self.values.name_of("parent_id")
                self._refuse(
                    item_id,
                    number,
                    parent,
                    item_id,
                    f"{parent} {item_id!r} is no item of this export.",
                    f"Export the item too, or empty {parent} to sell the row as an item.",
                )

    def _leave_out(self) -> None:
        """Drop what the options say is not sold online."""
        for item_id, item in list(self._items.items()):
            number = self._numbers[item_id]
            try:
                offered = self.rules.offered(item, self.place(number))
            except NotForSale as refused:
                price = self.values.name_of("price")
                self._refuse(item_id, number, price, "", refused.text, refused.fix)
                continue
            if offered is None:
                self._drop(item_id)
            else:
                self._items[item_id] = offered

    def _refuse(self, item_id: str, number: int, *bad: str) -> None:
        self._drop(item_id)
        self._add_bad(number, BadCell(*bad), item_id)

    def _drop(self, item_id: str) -> None:
        self._items.pop(item_id, None)
        self._fingerprints.pop(item_id, None)

    def _add_bad(self, number: int, bad: BadCell, external_id: str) -> None:
        self._bad_rows.append(bad.at(self.place(number), external_id=external_id))


def sells_less(options: SaleOptions) -> bool:
    """Return whether the options leave anything of an export out."""
    return options.zero_prices != "sell" or bool(options.leave_out_categories)


def meaning_of(rules: SaleRules) -> tuple[object, ...]:
    """Return all that decides, beside a row, whether and how its item is sold."""
    if not sells_less(rules.options):
        return ()
    options = rules.options
    choices = (rules.groups, rules.add_ons) if options.zero_prices != "sell" else ()
    return (options.zero_prices, options.leave_out_categories, choices)
