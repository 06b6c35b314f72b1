"""Items of an item library: rows of one item name are the variations of one item. Pure."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

from tillbridge.adapter import (
    BadRow,
    ExportUnreadable,
    Item,
    TaxComponent,
    Variant,
)
from tillbridge.adapter.claimed_ids import (
    ClaimedIds,
    Clash,
    all_differ,
    distinct_rows,
)
from tillbridge.adapter.export_items import (
    MENU_ID,
    UNREADABLE,
    FoundItems,
    RowError,
    VariablePrice,
    groups_of,
    sizes_of,
    stock_of,
    tax_of,
)
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.modifier_file import Modifiers
from tillbridge.adapter.prices import BadPrice, PriceReader
from tillbridge.adapter.sale_options import NotForSale, SaleRules, chosen_taxes, is_sold_out
from tillbridge.adapter.texts import _, one_line, without_markup
from tillbridge_square.library import Cells, Library, Row
from tillbridge_square.options import SquareOptions

_VARIABLE = "variable"
# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 3
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
    """How rows become items, as values; `location` is its name in small letters, "" for none."""

    prices: PriceReader
    location: str
    options: SquareOptions
    taxes: tuple[tuple[str, TaxComponent], ...]

    @classmethod
    def of(cls, library: Library, options: SquareOptions, currency: str) -> "Reading":
        """Return how the rows of a library are read. Raises ExportUnreadable."""
        location = _location(library, options.location)
        taxes = [(tax.agency, (column, tax)) for column, tax in library.taxes.items()]
        written = [
            cells[at]
            for column, at in library.columns.items()
            if column == "price" or column.startswith("price ")
            for _number, cells in library.rows
        ]
        return cls(
            prices=PriceReader.of(written, currency, options.decimal),
            location=location,
            options=options,
            taxes=chosen_taxes(options, taxes, export=library.name),
        )

    @property
    def price_column(self) -> str:
        """Return the column of the location's own prices."""
        return f"price {self.location}"

    @property
    def stock_column(self) -> str:
        """Return the column of what is left at the location."""
        return f"current quantity {self.location}".strip()


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes items of rows."""

    library: Library
    reading: Reading
    modifiers: Modifiers
    rules: SaleRules

    def shown(self, column: str) -> str:
        """Return a column as the file calls it."""
        return self.library.shown.get(column, column)

    def wrong(self, row: Row, column: str, text: str, fix: str) -> RowError:
        """Return what is wrong with a column of a row."""
        return RowError(self.shown(column), row[column], text, fix, row=row.number)


def sets_of(library: Library) -> Mapping[str, Sequence[str]]:
    """Return the modifier sets that a library names, each with the names of its items."""
    return {
        name: list(
            dict.fromkeys(
                one_line(library.cell(cells, "item name"))
                for cells in library.rows
                if _is(library.cell(cells, column), "y")
            )
        )
        for column, name in library.modifier_sets.items()
    }


def changes_of(
    library: Library,
    reading: Reading,
    known: AbstractSet[int],
    modifiers: Modifiers,
    rules: SaleRules,
) -> tuple[FoundItems, KnownRecords]:
    """Return what the records say that are not known, in the library's order."""
    location = reading.location
    meaning = (tuple(library.columns), tuple(library.modifier_sets), modifiers.meaning)
    records = KnownRecords(known, _READING_VERSION, reading, meaning)
    maker = _Maker(library, reading, modifiers, rules)
    read = _cells_read(library, reading)
    found = FoundItems()
    width = len(library.header)
    token_at = library.columns["token"]
    families = _families(library)
    if not all_differ([cells[token_at] for _number, cells in library.rows]):
        families = _unclashing(maker, read, records, found)
    for family, fingerprint in records.new_items(families, read, width):
        identity = _identity(family, library)
        rows = [library.row(cells) for cells in family]
        sold = [row for row in rows if row.beyond or _is_sold(row.__getitem__, location)]
        if not sold:
            continue
        try:
            item = _item(_Family(rows, sold), identity, maker)
        except RowError as wrong:
            place = _("{file}, row {row}").format(file=library.name, row=wrong.row)
            found.bad_rows.append(wrong.at(place, identity))
            continue
        if item is not None:
            found.add(item, fingerprint, rows[0].place)
    return found, records


def _unclashing(
    maker: _Maker,
    read: Callable[[Sequence[str]], tuple[str, ...]],
    records: KnownRecords,
    found: FoundItems,
) -> list[list[Cells]]:
    """Return the rows of each item, but of those sold with a token of another: a bad row each."""
    library, location = maker.library, maker.reading.location
    claimed = ClaimedIds()
    families = []
    for family in _families(replace(library, rows=distinct_rows(library.rows))):
        whole = all(len(cells) == len(library.header) for _number, cells in family)
        if whole and any(_is_sold(partial(library.cell, row), location) for row in family):
            values = [cell for _number, cells in family for cell in read(cells)]
            tokens = [(library.cell(row, "token"), row[0]) for row in family]
            clash = claimed.claim(tokens, records.fingerprint(values))
            if clash is not None:
                if not clash.is_same:
                    found.bad_rows.append(_twice(family, clash, maker))
                continue
        families.append(family)
    return families


def _twice(family: Sequence[Cells], clash: Clash, maker: _Maker) -> BadRow:
    row = maker.library.row(next(cells for cells in family if cells[0] == clash.row))
    return BadRow(
        place=row.place,
        text=_('"{name}" has the token {token!r} of row {first_row}.').format(
            name=one_line(row["item name"]), token=row["token"], first_row=clash.first_row
        ),
        fix=_("Remove one of the two rows, or export again."),
        external_id=_identity(family, maker.library),
        field=maker.shown("token"),
        value=row["token"],
    )


def _cells_read(library: Library, reading: Reading) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return what takes from a row the cells that an item is made of."""
    wanted = (
        *(*_READ, f"enabled {reading.location}", reading.price_column),
        *(*library.modifier_sets, *library.taxes),
        *([reading.stock_column] if reading.options.sold_out_at_stock is not None else ()),
    )
    return itemgetter(*[library.columns[each] for each in wanted if each in library.columns])


def _location(library: Library, wanted: str | None) -> str:
    """Return the location's name in small letters; "" where the library tells none apart."""
    listed = ", ".join(f'"{each}"' for each in library.locations)
    if wanted is not None:
        if wanted.casefold() not in {each.casefold() for each in library.locations}:
            raise ExportUnreadable(
                _('{name} has no location "{wanted}"; it has {listed}.').format(
                    name=library.name, wanted=wanted, listed=listed or _("none")
                ),
                place=_("{name}, header").format(name=library.name),
                fix=_("Correct the option {option}.").format(option="location"),
            )
        return wanted.casefold()
    if len(library.locations) > 1:
        raise ExportUnreadable(
            _("{name} has several locations: {listed}.").format(name=library.name, listed=listed),
            place=_("{name}, header").format(name=library.name),
            fix=_("Say which one it is, with the option {option}.").format(option="location"),
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


def _check(row: Row, maker: _Maker) -> None:
    """Raise RowError for a row that is out of its columns, or holds what could not be decoded."""
    if row.beyond:
        raise maker.wrong(
            row,
            "",
            _('The row of "{name}" goes on beyond the last column.').format(name=row["item name"]),
            _("Look for a missing quotation mark, and export again."),
        )
    for column, cell in row.items():
        if UNREADABLE in cell:
            raise maker.wrong(
                row,
                column,
                _('"{name}" holds a character that cannot be read.').format(name=row["item name"]),
                _("Type it again in Square and export again, as UTF-8."),
            )


def _is_sold(cell: Callable[[str], str], location: str) -> bool:
    """Return whether a row is sold at the location; `cell` tells what stands in a column."""
    return not (
        _is(cell("archived"), "y")
        or _is(cell("sellable"), "n")
        or _is(cell(f"enabled {location}"), "n")
    )


def _identity(family: Sequence[Cells], library: Library) -> str:
    """Return the item's id: only variations have one, so it is made of theirs, sold or not."""
    first = min([library.cell(cells, "token") for cells in family])
    return first if len(family) == 1 else f"item-{first}"


def _item(family: _Family, identity: str, maker: _Maker) -> Item | None:
    """Return the item, None where it is not sold online. Raises RowError."""
    reading, first = maker.reading, family.rows[0]
    for row in family.sold:
        _check(row, maker)
    name = one_line(family.first("customer-facing name", "item name"))
    if not name:
        raise maker.wrong(
            first, "item name", _("It has no name."), _("Give the item a name in Square.")
        )
    offered = [
        (maker.shown(column), first[column], modifier_set)
        for column, modifier_set in maker.library.modifier_sets.items()
        if family.has(column)
    ]
    groups = groups_of(name, offered, maker.modifiers, row=first.number)
    in_choice = maker.rules.have_priced_choice(groups)
    variants: tuple[Variant, ...] = ()
    if len(family.rows) > 1:
        variants = _variants(family, name, maker, price_in_choice=in_choice)
        price = min([variant.price for variant in variants])
        available = any(variant.available for variant in variants)
    else:
        price = _price(first, name, maker, price_in_choice=in_choice)
        available = _is_available(first, maker)
    item = Item(
        external_id=identity,
        name=name,
        price=price,
        description=without_markup(family.first("description")),
        available=available,
        categories=_categories(family),
        addon_groups=groups,
        variants=variants,
        tax=tax_of([tax for column, tax in reading.taxes if family.has(column)]),
        menus=(MENU_ID,),
    )
    try:
        return maker.rules.offered(item, first.place)
    except NotForSale as refused:
        raise maker.wrong(first, "price", refused.text, refused.fix) from refused


def _variants(
    family: _Family, item: str, maker: _Maker, *, price_in_choice: bool
) -> tuple[Variant, ...]:
    def variant(row: Row) -> Variant:
        return Variant(
            external_id=row["token"],
            variant_name=_variation_name(row.__getitem__) or item,  # as Square shows it
            price=_price(row, item, maker, price_in_choice=price_in_choice),
            available=_is_available(row, maker),
        )

    return sizes_of(family.sold, variant, lambda row: row.place, maker.rules)


def _is_available(row: Row, maker: _Maker) -> bool:
    reading = maker.reading
    seen = row["square online item visibility"]
    if reading.options.visibility == "follow" and _is(seen, "unavailable"):
        return False
    if reading.options.sold_out_at_stock is None:
        return True
    column = reading.stock_column
    try:
        return not is_sold_out(reading.options, stock_of(row[column]))
    except ValueError as wrong:
        raise maker.wrong(
            row,
            column,
            _('The quantity of "{name}" is {written!r}, which is no number.').format(
                name=row["item name"], written=row[column]
            ),
            _("Correct it in Square, or remove the option sold_out_at_stock."),
        ) from wrong


def _variation_name(cell: Callable[[str], str]) -> str:
    """Return the name of a row's variation; `cell` tells what stands in a column."""
    return one_line(cell("variation name") or " / ".join(filter(None, map(cell, _OPTION_VALUES))))


def _price(row: Row, item: str, maker: _Maker, *, price_in_choice: bool) -> int:
    """Return the price; 0 for a variable one that a required choice makes. Raises RowError."""
    column = maker.reading.price_column
    written = row[column]
    if not written:
        column, written = "price", row["price"]
    if not written or written.casefold() == _VARIABLE:
        if price_in_choice:
            return 0
        raise VariablePrice(
            _full_name(row, item),
            maker.shown(column),
            written,
            _('"{name}" has a variable price: a storefront cannot sell it.').format(
                name=_full_name(row, item)
            ),
            _("Give it a price in Square, archive it, or sell it at the counter only."),
            row=row.number,
        )
    try:
        return maker.reading.prices.read(
            written, column=maker.shown(column), name=_full_name(row, item)
        )
    except BadPrice as bad:
        raise maker.wrong(row, column, bad.text, bad.fix) from bad


def _full_name(row: Row, item: str) -> str:
    variation = _variation_name(row.__getitem__)
    return f"{item} ({variation})" if variation else item


def _categories(family: _Family) -> tuple[str, ...]:
    written = family.first("categories", "category", "reporting category")
    if not written:
        return ()
    # Of a category within another ("Drinks > Espresso") the lowest counts.
    names = (one_line(name.rsplit(" > ", 1)[-1]) for name in written.split(", "))
    return tuple(dict.fromkeys(name for name in names if name))


def _is(cell: str, value: str) -> bool:
    return bool(cell) and cell.casefold() == value
