"""Making items of the rows of an export: rows with one handle belong together. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter

from tillbridge.adapter import BadRow, Category, Item, ItemTax, Variant
from tillbridge.adapter.claimed_ids import (
    ClaimedIds,
    Clash,
    all_differ,
    cells_of_record,
    distinct_rows,
)
from tillbridge.adapter.csv_export import CsvTable
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.modifier_file import Modifiers, UnreadableModifier
from tillbridge.adapter.prices import BadPrice, PriceReader
from tillbridge.adapter.sale_options import NotForSale, SaleRules, is_sold_out
from tillbridge.adapter.texts import one_line, plain_text
from tillbridge.model.export_facts import LeftOut
from tillbridge.model.menu_summary import costs_something
from tillbridge_loyverse.columns import (
    CATEGORY,
    HANDLE,
    NAME,
    SKU,
    Columns,
)
from tillbridge_loyverse.options import LoyverseOptions

MENU_ID = "menu"
_VARIABLE = "variable"
_STOCK = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?")
_UNREADABLE = "\ufffd"


class _Slip(Exception):
    """What is wrong with a row: its number, the column, what stands there, and what to do."""

    def __init__(self, number: int, column: str, value: str, text: str, fix: str) -> None:
        super().__init__(text)
        self.number = number
        self.bad = (column, value, text, fix)


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows become items, as values: another reading gives other items of the same rows."""

    columns: Columns
    prices: PriceReader
    options: LoyverseOptions

    @property
    def by_sku(self) -> bool:
        """Return whether the SKU is an item's id."""
        return self.options.identity == "sku"


@dataclass(slots=True)
class Found:
    """What was made of the rows so far; `fingerprints` are those of the items' records."""

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    categories: dict[str, Category] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)


_Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes items of rows."""

    reading: Reading
    modifiers: Modifiers
    rules: SaleRules
    table: CsvTable


def amounts_of(table: CsvTable, columns: Columns) -> Iterator[str]:
    """Yield all that stands in columns of money."""
    for position in columns.money:
        yield from [fields[position] for _number, fields in table.rows if position < len(fields)]


def modifiers_of(table: CsvTable, columns: Columns) -> Mapping[str, Sequence[str]]:
    """Return the modifiers that the export names, each with the names of the items that have it."""
    return {
        modifier: [
            one_line(fields[NAME])
            for _number, fields in table.rows
            if len(fields) == columns.width and _yes(fields[position]) and fields[NAME].strip()
        ]
        for position, modifier in columns.modifiers
    }


def items_of(
    table: CsvTable, reading: Reading, records: KnownRecords, modifiers: Modifiers, rules: SaleRules
) -> Found:
    """Return items, categories and bad rows of the records that are new, in the export's order."""
    found = Found()
    maker = _Maker(reading, modifiers, rules, table)
    read: Callable[[Sequence[str]], Iterable[str]] = itemgetter(*reading.columns.read)
    width = reading.columns.width
    families = list(_families(table.rows, reading.columns))
    handles = [rows[0][1][HANDLE] for rows in families]
    skus = [fields[SKU] for _number, fields in table.rows if len(fields) > SKU]
    claimed = None if all_differ([*handles, *skus]) else ClaimedIds()
    if claimed is not None:
        families = list(_families(distinct_rows(table.rows), reading.columns))
    for rows in families:
        fingerprint = 0  # of rows that are bad by themselves
        record = cells_of_record(rows, read, width)
        if record is not None:
            fingerprint = records.fingerprint(record)
            clash = None if claimed is None else _claim(claimed, rows, fingerprint, reading)
            if clash is not None:
                if not clash.is_same:
                    found.bad_rows.append(_twice(table, rows, clash, reading))
                continue
            if records.is_known(fingerprint):
                continue
        identity = _identity(rows[0][1], reading)
        try:
            item = _item(rows, maker)
        except _Slip as slip:
            column, value, text, fix = slip.bad
            place = table.place(slip.number)
            found.bad_rows.append(BadRow(place, text, fix, identity, column, value))
            continue
        if item is None:
            continue
        found.items[item.external_id] = item
        found.fingerprints[item.external_id] = fingerprint
        found.places[item.external_id] = table.place(rows[0][0])
        for category in item.categories:
            found.categories.setdefault(category, Category(category, category))
    return found


def _claim(
    claimed: ClaimedIds, rows: Sequence[_Row], fingerprint: int, reading: Reading
) -> Clash | None:
    """Claim the ids of an item that is sold here; return which of them is taken."""
    identity = _identity(rows[0][1], reading)
    if not identity or not _sold_here(rows, reading.columns):
        return None
    return claimed.claim(_ids(rows, identity, reading.columns), fingerprint)


def _ids(rows: Sequence[_Row], identity: str, columns: Columns) -> Iterator[tuple[str, int]]:
    """Yield the ids of an item and of its sizes, with their rows."""
    yield identity, rows[0][0]
    if len(rows) > 1 or _options(rows[0][1], columns):
        for number, fields in rows:
            if sku := one_line(fields[SKU]):
                yield sku, number


def _twice(table: CsvTable, rows: Sequence[_Row], clash: Clash, reading: Reading) -> BadRow:
    identity = _identity(rows[0][1], reading)
    fields = next(fields for number, fields in rows if number == clash.row)
    is_handle = clash.external_id == identity and not reading.by_sku
    return BadRow(
        place=table.place(clash.row),
        text=f'"{one_line(rows[0][1][NAME] or fields[NAME])}" has the id {clash.external_id!r} '
        f"of row {clash.first_row}.",
        fix="Give each item its own handle and SKU in the Back Office.",
        external_id=identity,
        field=reading.columns.label(HANDLE if is_handle else SKU),
        value=clash.external_id,
    )


def _families(rows: Sequence[_Row], columns: Columns) -> Iterator[list[_Row]]:
    """Yield the rows of each item: the one with its name, and its variants below."""
    family: list[_Row] = []
    for row in rows:
        fields = row[1]
        whole = len(fields) == columns.width
        if whole and fields[columns.included_sku] and _is_component(fields, columns):
            continue
        if family and len(fields) > NAME and fields[HANDLE] == family[0][1][HANDLE]:
            # A list that was filled in by hand may say the name again beside each variant.
            again = whole and fields[NAME] == family[0][1][NAME] and _options(fields, columns)
            if again or not fields[NAME].strip():
                family.append(row)
                continue
        if family:
            yield family
        family = [row]
    if family:
        yield family


def _is_component(fields: Sequence[str], columns: Columns) -> bool:
    """Return whether the row only says what a composite item is made of."""
    return bool(fields[columns.included_sku].strip()) and not (
        fields[NAME].strip() or fields[SKU].strip()
    )


def _item(rows: Sequence[_Row], maker: _Maker) -> Item | None:
    """Return the item, or None where it is not sold online. Raises _Slip."""
    reading, columns = maker.reading, maker.reading.columns
    for number, fields in rows:
        _check(number, fields, columns)
    first_number, first = rows[0]
    name = one_line(first[NAME])
    if not name:
        raise _Slip(
            *(first_number, columns.label(NAME), "", "It has no name."),
            "Give the item a name in the Back Office.",
        )
    identity = _identity(first, reading)
    if not identity:
        raise _Slip(
            *(first_number, columns.label(HANDLE), "", f'"{name}" has no id.'),
            "Give the item a handle, and an SKU, in the Back Office.",
        )
    here = [row for row in rows if not _is_elsewhere(row[1], columns)]
    if not here:
        return None
    groups = _groups(first_number, name, first, maker)
    in_choice = any(
        costs_something(maker.modifiers.groups[group], maker.modifiers.add_ons) for group in groups
    )
    variants: tuple[Variant, ...] = ()
    if len(rows) > 1 or _options(first, columns):
        variants = _variants(here, identity, name, maker, price_in_choice=in_choice)
        price = min([variant.price for variant in variants])
        available = any(variant.available for variant in variants)
    else:
        price = _price(first_number, first, name, reading, price_in_choice=in_choice)
        available = _is_for_sale(first_number, first, name, reading)
    category = one_line(first[CATEGORY])
    item = Item(
        external_id=identity,
        name=name,
        price=price,
        description="" if columns.description is None else plain_text(first[columns.description]),
        available=available,
        categories=(category,) if category else (),
        addon_groups=groups,
        variants=variants,
        tax=_tax(first, columns) if columns.taxes else None,
        menus=(MENU_ID,),
    )
    try:
        return maker.rules.offered(item, maker.table.place(first_number))
    except NotForSale as refused:
        label = columns.label(columns.price if columns.price is not None else columns.default_price)
        raise _Slip(first_number, label, "", refused.text, refused.fix) from refused


def _check(number: int, fields: Sequence[str], columns: Columns) -> None:
    """Raise _Slip for a row that is no whole row, or holds what could not be decoded."""
    if len(fields) != columns.width:
        raise _Slip(
            number,
            "",
            "",
            f"It has {len(fields)} fields, not {columns.width}.",
            "Look for a missing quotation mark, and export again.",
        )
    for position in columns.read:
        if _UNREADABLE in fields[position]:
            label = columns.label(position)
            raise _Slip(
                number,
                label,
                fields[position],
                f"{label} holds a character that cannot be read.",
                "Type it again in the Back Office and export again, as UTF-8.",
            )


def _groups(number: int, name: str, fields: Sequence[str], maker: _Maker) -> tuple[str, ...]:
    found = []
    columns = maker.reading.columns
    for position, modifier in columns.modifiers:
        if not (fields[position] and _yes(fields[position])):
            continue
        try:
            group = maker.modifiers.group_of(modifier)
        except UnreadableModifier as unreadable:
            raise _Slip(
                number,
                columns.label(position),
                fields[position],
                f'"{name}" offers "{modifier}", which cannot be read ({unreadable.place}).',
                f"Correct {unreadable.place}. The item stays as it was until then.",
            ) from unreadable
        if group is not None:
            found.append(group.external_id)
    return tuple(found)


def _variants(
    rows: Sequence[_Row], identity: str, name: str, maker: _Maker, *, price_in_choice: bool
) -> tuple[Variant, ...]:
    """Return the sizes. One without a fixed price is sold at the counter only. Raises _Slip."""
    reading = maker.reading
    variants, left_out = [], []
    variable: _Slip | None = None
    for number, fields in rows:
        options = _options(fields, reading.columns)
        called = " / ".join(options)
        try:
            price = _price(
                number, fields, f"{name} ({called})", reading, price_in_choice=price_in_choice
            )
        except _VariablePrice as slip:
            variable = variable or slip
            place = maker.table.place(number)
            left_out.append(LeftOut(f"{name} ({called})", "variable_price", place=place))
            continue
        variants.append(
            Variant(
                external_id=one_line(fields[SKU]) or "/".join((identity, *options)),
                variant_name=called,
                price=price,
                available=_is_for_sale(number, fields, name, reading),
            )
        )
    if not variants and variable is not None:
        raise variable
    for each in left_out:
        maker.rules.leave_out(each)
    return tuple(variants)


class _VariablePrice(_Slip):
    """A price that is asked for at the counter."""


def _is_for_sale(number: int, fields: Sequence[str], name: str, reading: Reading) -> bool:
    columns = reading.columns
    if columns.for_sale is not None and _no(fields[columns.for_sale]):
        return False
    return not is_sold_out(reading.options, _stock(number, fields, name, columns))


def _stock(number: int, fields: Sequence[str], name: str, columns: Columns) -> Decimal | None:
    """Return how much is left; None where the till does not count it, or stock is not read."""
    if columns.stock is None or columns.tracked is None or not _yes(fields[columns.tracked]):
        return None
    written = fields[columns.stock].strip()
    if not written:
        return None
    if _STOCK.fullmatch(written) is None:
        label = columns.label(columns.stock)
        raise _Slip(
            number,
            label,
            written,
            f'The stock of "{name}" is wrong: {label} is {written!r}, which is no number.',
            "Correct the stock in the Back Office, or remove the option sold_out_at_stock.",
        )
    return Decimal(written.replace(",", "."))


def _sold_here(rows: Sequence[_Row], columns: Columns) -> bool:
    return any(not _is_elsewhere(fields, columns) for _number, fields in rows)


def _is_elsewhere(fields: Sequence[str], columns: Columns) -> bool:
    """Return whether only other stores sell it: it is not for sale here, and has no price."""
    if columns.for_sale is None or not _no(fields[columns.for_sale]):
        return False
    cells = (columns.price, columns.default_price)
    return not any(fields[cell].strip() for cell in cells if cell is not None)


def _options(fields: Sequence[str], columns: Columns) -> tuple[str, ...]:
    written = [fields[position] for position in columns.option_values if fields[position]]
    return tuple(value for value in map(one_line, written) if value) if written else ()


def _price(
    number: int, fields: Sequence[str], name: str, reading: Reading, *, price_in_choice: bool
) -> int:
    """Return the price; 0 for a variable one that a required choice makes. Raises _Slip."""
    columns = reading.columns
    at = columns.price
    written = "" if at is None else fields[at].strip()
    if not written and columns.default_price is not None:
        at = columns.default_price
        written = fields[at].strip()
    label = columns.label(at)
    if not written or written.casefold() == _VARIABLE:
        if price_in_choice:
            return 0
        raise _VariablePrice(
            number,
            label,
            written,
            f'"{name}" has a variable price: a storefront cannot sell it.',
            "Give it a price in the Back Office, or sell it at the counter only.",
        )
    try:
        return reading.prices.read(written, column=label, name=name)
    except BadPrice as bad:
        raise _Slip(number, bad.column, bad.value, bad.text, bad.fix) from bad


def _identity(fields: Sequence[str], reading: Reading) -> str:
    if len(fields) <= SKU:
        return ""
    wanted, other = (SKU, HANDLE) if reading.by_sku else (HANDLE, SKU)
    return one_line(fields[wanted]) or one_line(fields[other])


def _tax(fields: Sequence[str], columns: Columns) -> ItemTax | None:
    taxes = [tax for tax in columns.taxes if _yes(fields[tax.position])]
    if not taxes:
        return None
    return ItemTax(
        name=" + ".join(tax.name for tax in taxes),
        components=tuple(tax.component for tax in taxes),
    )


def _yes(text: str) -> bool:
    return text.strip().upper() == "Y"


def _no(text: str) -> bool:
    return text != "Y" and text.strip().upper() in {"N", "NO"}
