"""Making items of the rows of an export: rows with one handle belong together. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter

from tillbridge.adapter import BadRow, Item, Variant
from tillbridge.adapter.claimed_ids import (
    ClaimedIds,
    Clash,
    all_differ,
    distinct_rows,
)
from tillbridge.adapter.csv_export import CsvTable
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
from tillbridge.adapter.sale_options import NotForSale, SaleRules, is_sold_out
from tillbridge.adapter.texts import _, one_line, plain_text
from tillbridge_loyverse.columns import (
    CATEGORY,
    HANDLE,
    NAME,
    SKU,
    Columns,
)
from tillbridge_loyverse.options import LoyverseOptions

_VARIABLE = "variable"


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


_Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes items of rows."""

    reading: Reading
    modifiers: Modifiers
    rules: SaleRules
    table: CsvTable


def amounts_of(table: CsvTable, columns: Columns) -> Sequence[str]:
    """Return all that stands in columns of money."""
    return [
        fields[position]
        for position in columns.money
        for _number, fields in table.rows
        if position < len(fields)
    ]


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
) -> FoundItems:
    """Return items, categories and bad rows of the records that are new, in the export's order."""
    found = FoundItems()
    maker = _Maker(reading, modifiers, rules, table)
    read: Callable[[Sequence[str]], Iterable[str]] = itemgetter(*reading.columns.read)
    width = reading.columns.width
    families = list(_families(table.rows, reading.columns))
    handles = [rows[0][1][HANDLE] for rows in families]
    skus = [fields[SKU] for _number, fields in table.rows if len(fields) > SKU]
    if not all_differ([*handles, *skus]):
        families = list(_unclashing(table, maker, records, found))
    for rows, fingerprint in records.new_items(families, read, width):
        identity = _identity(rows[0][1], reading)
        try:
            item = _item(rows, maker)
        except RowError as wrong:
            found.bad_rows.append(wrong.at(table.place(wrong.row or rows[0][0]), identity))
            continue
        if item is not None:
            found.add(item, fingerprint, table.place(rows[0][0]))
    return found


def _unclashing(
    table: CsvTable, maker: _Maker, records: KnownRecords, found: FoundItems
) -> Iterator[list[_Row]]:
    """Yield the rows of each item, but of those sold here with an id of another: a bad row each."""
    reading, columns = maker.reading, maker.reading.columns
    claimed = ClaimedIds()
    for rows in _families(distinct_rows(table.rows), columns):
        identity = _identity(rows[0][1], reading)
        whole = all(len(fields) == columns.width for _number, fields in rows)
        if whole and identity and _sold_here(rows, columns):
            values = [fields[at] for _number, fields in rows for at in columns.read]
            ids = _ids(rows, identity, columns)
            clash = claimed.claim(ids, records.fingerprint(values))
            if clash is not None:
                if not clash.is_same:
                    found.bad_rows.append(_twice(table, rows, clash, reading))
                continue
        yield rows


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
        text=_('"{name}" has the id {external_id!r} of row {first_row}.').format(
            name=one_line(rows[0][1][NAME] or fields[NAME]),
            external_id=clash.external_id,
            first_row=clash.first_row,
        ),
        fix=_("Give each item its own handle and SKU in the Back Office."),
        external_id=identity,
        field=reading.columns.label(HANDLE if is_handle else SKU),
        value=clash.external_id,
    )


def _families(rows: Sequence[_Row], columns: Columns) -> Iterator[list[_Row]]:
    """Yield the rows of each item: the one with its name, and its variants below."""
    width, included_sku = columns.width, columns.included_sku
    family: list[_Row] = []
    handle = ""
    for row in rows:
        fields = row[1]
        whole = len(fields) == width
        if whole and fields[included_sku] and _is_component(fields, columns):
            continue
        if family and fields[HANDLE] == handle and len(fields) > NAME:
            # A list that was filled in by hand may say the name again beside each variant.
            first = family[0][1]  # ... or it is broken off before its name
            named = whole and len(first) > NAME and fields[NAME] == first[NAME]
            again = named and _options(fields, columns)
            if again or not fields[NAME].strip():
                family.append(row)
                continue
        if family:
            yield family
        family, handle = [row], fields[HANDLE]
    if family:
        yield family


def _is_component(fields: Sequence[str], columns: Columns) -> bool:
    """Return whether the row only says what a composite item is made of."""
    return bool(fields[columns.included_sku].strip()) and not (
        fields[NAME].strip() or fields[SKU].strip()
    )


def _item(rows: Sequence[_Row], maker: _Maker) -> Item | None:
    """Return the item, or None where it is not sold online. Raises RowError."""
    reading, columns = maker.reading, maker.reading.columns
    for number, fields in rows:
        _check(number, fields, columns)
    first_number, first = rows[0]
    name = one_line(first[NAME])
    if not name:
        raise RowError(
            columns.label(NAME),
            "",
            _("It has no name."),
            _("Give the item a name in the Back Office."),
            row=first_number,
        )
    identity = _identity(first, reading)
    if not identity:
        raise RowError(
            columns.label(HANDLE),
            "",
            _('"{name}" has no id.').format(name=name),
            _("Give the item a handle, and an SKU, in the Back Office."),
            row=first_number,
        )
    here = [row for row in rows if not _is_elsewhere(row[1], columns)]
    if not here:
        return None
    offered = [
        (columns.label(position), first[position], modifier)
        for position, modifier in columns.modifiers
        if first[position] and _yes(first[position])
    ]
    groups = groups_of(name, offered, maker.modifiers, row=first_number)
    in_choice = maker.rules.have_priced_choice(groups)
    variants: tuple[Variant, ...] = ()
    if len(rows) > 1 or _options(first, columns):
        variants = _sizes(here, identity, name, maker, price_in_choice=in_choice)
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
        tax=tax_of([tax.component for tax in columns.taxes if _yes(first[tax.position])]),
        menus=(MENU_ID,),
    )
    try:
        return maker.rules.offered(item, maker.table.place(first_number))
    except NotForSale as refused:
        label = columns.label(columns.price if columns.price is not None else columns.default_price)
        raise RowError(label, "", refused.text, refused.fix, row=first_number) from refused


def _check(number: int, fields: Sequence[str], columns: Columns) -> None:
    """Raise RowError for a row that is no whole row, or holds what could not be decoded."""
    if len(fields) != columns.width:
        raise RowError(
            "",
            "",
            _("It has {n} fields, not {width}.").format(n=len(fields), width=columns.width),
            _("Look for a missing quotation mark, and export again."),
            row=number,
        )
    for position in columns.read:
        if UNREADABLE in fields[position]:
            label = columns.label(position)
            raise RowError(
                label,
                fields[position],
                _("{what} holds a character that cannot be read.").format(what=label),
                _("Type it again in the Back Office and export again, as UTF-8."),
                row=number,
            )


def _sizes(
    rows: Sequence[_Row], identity: str, name: str, maker: _Maker, *, price_in_choice: bool
) -> tuple[Variant, ...]:
    reading = maker.reading

    def size(row: _Row) -> Variant:
        number, fields = row
        options = _options(fields, reading.columns)
        called = " / ".join(options)
        return Variant(
            external_id=one_line(fields[SKU]) or "/".join((identity, *options)),
            variant_name=called,
            price=_price(
                number, fields, f"{name} ({called})", reading, price_in_choice=price_in_choice
            ),
            available=_is_for_sale(number, fields, name, reading),
        )

    return sizes_of(rows, size, lambda row: maker.table.place(row[0]), maker.rules)


def _is_for_sale(number: int, fields: Sequence[str], name: str, reading: Reading) -> bool:
    columns = reading.columns
    if columns.for_sale is not None and _no(fields[columns.for_sale]):
        return False
    return not is_sold_out(reading.options, _stock(number, fields, name, columns))


def _stock(number: int, fields: Sequence[str], name: str, columns: Columns) -> Decimal | None:
    """Return how much is left; None where the till does not count it, or stock is not read."""
    if columns.stock is None or columns.tracked is None or not _yes(fields[columns.tracked]):
        return None
    written = fields[columns.stock]
    try:
        return stock_of(written)
    except ValueError as wrong:
        label = columns.label(columns.stock)
        raise RowError(
            label,
            written.strip(),
            _('The stock of "{name}" is wrong: {label} is {written!r}, which is no number.').format(
                name=name, label=label, written=written.strip()
            ),
            _("Correct the stock in the Back Office, or remove the option sold_out_at_stock."),
            row=number,
        ) from wrong


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
    """Return the price; 0 for a variable one that a required choice makes. Raises RowError."""
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
        raise VariablePrice(
            name,
            label,
            written,
            _('"{name}" has a variable price: a storefront cannot sell it.').format(name=name),
            _("Give it a price in the Back Office, or sell it at the counter only."),
            row=number,
        )
    try:
        return reading.prices.read(written, column=label, name=name)
    except BadPrice as bad:
        raise RowError(bad.column, bad.value, bad.text, bad.fix, row=number) from bad


def _identity(fields: Sequence[str], reading: Reading) -> str:
    if len(fields) <= SKU:
        return ""
    wanted, other = (SKU, HANDLE) if reading.by_sku else (HANDLE, SKU)
    return one_line(fields[wanted]) or one_line(fields[other])


def _yes(text: str) -> bool:
    return text.strip().upper() == "Y"


def _no(text: str) -> bool:
    return text != "Y" and text.strip().upper() in {"N", "NO"}
