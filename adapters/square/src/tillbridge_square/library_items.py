"""Items of an item library: rows of one item name are the variations of one item. Pure."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter

from tillbridge.adapter import (
    BadRow,
    Category,
    ExportUnreadable,
    Item,
    ItemTax,
    TaxComponent,
    Variant,
)
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.texts import one_line, without_markup
from tillbridge.model.money import to_minor
from tillbridge_square.library import Cells, Library, Row

MENU_ID = "menu"
_VARIABLE = "variable"
# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 1
_OPTION_VALUES = tuple(f"option value {number}" for number in range(1, 7))
_READ = (
    *("token", "item name", "variation name", "customer-facing name", "description"),
    *("archived", "sellable", "square online item visibility", "price"),
    *("categories", "category", "reporting category"),
    *_OPTION_VALUES,
)
"""The columns that an item is made of, beside those of the location, modifier sets and taxes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows become items: `groups` are add-on groups by the name of their modifier set."""

    currency: str
    location: str | None
    follow_visibility: bool
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """What was made of the rows; `fingerprints` are those of the items' records."""

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    categories: dict[str, Category] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)


class _Slip(Exception):
    def __init__(self, row: Row, column: str, text: str, fix: str) -> None:
        super().__init__(text)
        self.row = row
        self.column = column
        self.text = text
        self.fix = fix


def changes_of(
    library: Library, reading: Reading, known: AbstractSet[int]
) -> tuple[Found, KnownRecords]:
    """Return what the records say that are not known, in the library's order.

    Raises ExportUnreadable.
    """
    location = _location(library, reading.location)
    meaning = (tuple(library.columns), tuple(library.modifier_sets), tuple(library.taxes.items()))
    records = KnownRecords(known, _READING_VERSION, reading, location, meaning)
    read = _cells_read(library, location)
    found = Found()
    width = len(library.header)
    for family in _families(library):
        fingerprint: int | None = 0  # of rows that are bad by themselves
        if len(family) == 1:
            if len(family[0][1]) == width:
                fingerprint = records.new(read(family[0][1]))
        elif all(len(cells) == width for _number, cells in family):
            fingerprint = records.new(chain(*[read(cells) for _number, cells in family]))
        if fingerprint is None:
            continue
        rows = [library.row(cells) for cells in family]
        sold = [row for row in rows if row.beyond or _is_sold(row, location)]
        if not sold:
            continue
        identity = _identity(rows)
        try:
            _check_widths(sold)
            item = _item(_Family(rows, sold), identity, library, reading, location)
        except _Slip as slip:
            value = slip.row[slip.column]
            found.bad_rows.append(
                BadRow(slip.row.place, slip.text, slip.fix, identity, slip.column, value)
            )
            continue
        if identity in found.items:
            text = f'"{item.name}" has the token of "{found.items[identity].name}".'
            fix = "Remove one of the two rows, or export again."
            found.bad_rows.append(BadRow(rows[0].place, text, fix, identity, "token"))
            continue
        found.items[identity] = item
        found.fingerprints[identity] = fingerprint
        for category in item.categories:
            found.categories.setdefault(category, Category(category, category))
    return found, records


def _cells_read(library: Library, location: str) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return what takes from a row the cells that an item is made of."""
    wanted = (
        *(*_READ, f"enabled {location}", f"price {location}"),
        *(*library.modifier_sets, *library.taxes),
    )
    return itemgetter(*[library.columns[each] for each in wanted if each in library.columns])


def _location(library: Library, wanted: str | None) -> str:
    """Return the location's name in small letters; "" where the library tells none apart."""
    listed = ", ".join(f'"{each}"' for each in library.locations)
    if wanted is not None:
        if wanted.casefold() not in {each.casefold() for each in library.locations}:
            raise ExportUnreadable(
                f'{library.name} has no location "{wanted}"; it has {listed or "none"}.',
                place=f"{library.name}, header",
                fix="Correct the option location.",
            )
        return wanted.casefold()
    if len(library.locations) > 1:
        raise ExportUnreadable(
            f"{library.name} has several locations: {listed}.",
            place=f"{library.name}, header",
            fix="Say which one it is, with the option location.",
        )
    return library.locations[0].casefold() if library.locations else ""


@dataclass(frozen=True, slots=True)
class _Family:
    """The rows of one item, and those of them that are sold."""

    rows: Sequence[Row]
    sold: Sequence[Row]

    def first(self, *columns: str) -> str:
        """Return what the first row says that says something: others may be blank."""
        for column in columns:
            for row in self.rows:
                if cell := row.get(column):
                    return cell
        return ""

    def has(self, column: str) -> bool:
        """Return whether a column says yes."""
        return any(_is(row[column], "y") for row in self.rows)


def _families(library: Library) -> list[list[Cells]]:
    """Return the rows of each item; a variation that a name has already begins another item."""
    families: dict[str, list[Cells]] = {}
    ordered: list[list[Cells]] = []
    token_at = library.columns["token"]
    name_at = library.columns.get("item name", token_at)
    for row in library.rows:
        cells = row[1]
        token = cells[token_at].strip()
        if not token:
            continue
        name = cells[name_at].strip() or token
        family = families.get(name)
        if family is None or _has_variation(family, row, library):
            families[name] = family = [row]
            ordered.append(family)
        else:
            family.append(row)
    return ordered


def _has_variation(family: Sequence[Cells], cells: Cells, library: Library) -> bool:
    variation = _variation_name(partial(library.cell, cells))
    return any(_variation_name(partial(library.cell, each)) == variation for each in family)


def _check_widths(rows: Sequence[Row]) -> None:
    """Raise _Slip for a row whose cells do not stand below their columns."""
    for row in rows:
        if row.beyond:
            raise _Slip(
                row,
                "",
                f'The row of "{row["item name"]}" goes on beyond the last column.',
                "Look for a missing quotation mark, and export again.",
            )


def _is_sold(row: Row, location: str) -> bool:
    return not (
        _is(row["archived"], "y")
        or _is(row["sellable"], "n")
        or _is(row[f"enabled {location}"], "n")
    )


def _identity(rows: Sequence[Row]) -> str:
    """Return the item's id: only variations have one, so it is made of theirs, sold or not."""
    first = min(row["token"] for row in rows)
    return first if len(rows) == 1 else f"item-{first}"


def _item(
    family: _Family, identity: str, library: Library, reading: Reading, location: str
) -> Item:
    name = one_line(family.first("customer-facing name", "item name"))
    if not name:
        raise _Slip(
            family.rows[0], "item name", "It has no name.", "Give the item a name in Square."
        )
    variants: tuple[Variant, ...] = ()
    if len(family.rows) > 1:
        variants = tuple([_variant(row, name, reading, location) for row in family.sold])
        price = min([variant.price for variant in variants])
        available = any(variant.available for variant in variants)
    else:
        price = _price(family.rows[0], name, reading.currency, location)
        available = _is_seen(family.rows[0], reading)
    return Item(
        external_id=identity,
        name=name,
        price=price,
        description=without_markup(family.first("description")),
        available=available,
        categories=_categories(family),
        addon_groups=tuple(
            [
                reading.groups[modifier_set]
                for column, modifier_set in library.modifier_sets.items()
                if modifier_set in reading.groups and family.has(column)
            ]
        )
        if reading.groups
        else (),
        variants=variants,
        tax=_tax([tax for column, tax in library.taxes.items() if family.has(column)])
        if library.taxes
        else None,
        menus=(MENU_ID,),
    )


def _variant(row: Row, item: str, reading: Reading, location: str) -> Variant:
    name = _variation_name(row.__getitem__)
    return Variant(
        external_id=row["token"],
        variant_name=name,
        price=_price(row, item, reading.currency, location),
        available=_is_seen(row, reading),
    )


def _is_seen(row: Row, reading: Reading) -> bool:
    seen = row["square online item visibility"]
    return not (reading.follow_visibility and _is(seen, "unavailable"))


def _variation_name(cell: Callable[[str], str]) -> str:
    """Return the name of a row's variation; `cell` tells what stands in a column."""
    return one_line(cell("variation name") or " / ".join(filter(None, map(cell, _OPTION_VALUES))))


def _price(row: Row, item: str, currency: str, location: str) -> int:
    column = f"price {location}"
    written = row[column]
    if not written:
        column, written = "price", row["price"]
    if not written or written.casefold() == _VARIABLE:
        raise _Slip(
            row,
            column,
            f'"{_full_name(row, item)}" has a variable price: a storefront cannot sell it.',
            "Give it a price in Square, archive it, or sell it at the counter only.",
        )
    try:
        price = to_minor(written, currency)
    except ValueError as failure:
        raise _Slip(
            row,
            column,
            f'The price of "{_full_name(row, item)}" is wrong: {failure}.',
            f"Correct the price, or the store's currency ({currency}) in bridge.toml.",
        ) from failure
    if price < 0:
        raise _Slip(
            row,
            column,
            f'"{_full_name(row, item)}" has a price below zero.',
            "Correct the price.",
        )
    return price


def _full_name(row: Row, item: str) -> str:
    variation = _variation_name(row.__getitem__)
    return f"{item} ({variation})" if variation else item


def _categories(family: _Family) -> tuple[str, ...]:
    written = family.first("categories", "category", "reporting category")
    if not written:
        return ()
    names = map(one_line, written.split(", "))
    return tuple(dict.fromkeys(name for name in names if name))


def _tax(components: Sequence[TaxComponent]) -> ItemTax | None:
    if not components:
        return None
    return ItemTax(" + ".join(each.agency for each in components), tuple(components))


def _is(cell: str, value: str) -> bool:
    return bool(cell) and cell.casefold() == value
