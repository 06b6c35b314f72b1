"""Making items of the rows of an export: rows with one handle belong together. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from tillbridge.adapter import BadRow, Category, Item, ItemTax, Variant
from tillbridge.adapter.csv_export import CsvTable
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.texts import one_line, plain_text
from tillbridge.model.money import to_minor
from tillbridge_loyverse.columns import (
    CATEGORY,
    HANDLE,
    NAME,
    SKU,
    Columns,
)

MENU_ID = "menu"
_VARIABLE = "variable"


class _Slip(Exception):
    """What is wrong with a row, in which field, and what to do."""

    def __init__(self, field_name: str, value: str, text: str, fix: str) -> None:
        super().__init__(text)
        self.bad = (field_name, value, text, fix)


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows become items: `groups` are the add-on groups by the name of their modifier."""

    columns: Columns
    currency: str
    by_sku: bool
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """What was made of the rows so far; `fingerprints` are those of the items' records."""

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    categories: dict[str, Category] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)


def items_of(table: CsvTable, reading: Reading, records: KnownRecords) -> Found:
    """Return items, categories and bad rows of the records that are new, in the export's order."""
    found = Found()
    read = itemgetter(*reading.columns.read)
    width = reading.columns.width
    for rows in _families(table.rows, reading.columns):
        fingerprint: int | None = 0  # of rows that are bad by themselves
        if len(rows) == 1:
            if len(rows[0][1]) == width:
                fingerprint = records.new(read(rows[0][1]))
        elif all(len(fields) == width for _number, fields in rows):
            fingerprint = records.new(chain(*[read(fields) for _number, fields in rows]))
        if fingerprint is None:
            continue
        try:
            item = _item(rows, reading)
        except _Slip as slip:
            field_name, value, text, fix = slip.bad
            found.bad_rows.append(
                BadRow(
                    place=table.place(rows[0][0]),
                    text=text,
                    fix=fix,
                    external_id=_identity(rows[0][1], reading) if len(rows[0][1]) > SKU else "",
                    field=field_name,
                    value=value,
                )
            )
            continue
        if item is None:
            continue
        if item.external_id in found.items:
            found.bad_rows.append(
                BadRow(
                    place=table.place(rows[0][0]),
                    text=f'"{item.name}" has the id of "{found.items[item.external_id].name}".',
                    fix="Give each item its own handle and SKU in the Back Office.",
                    external_id=item.external_id,
                )
            )
            continue
        found.items[item.external_id] = item
        found.fingerprints[item.external_id] = fingerprint
        for category in item.categories:
            found.categories.setdefault(category, Category(category, category))
    return found


_Row = tuple[int, list[str]]


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


def _item(rows: Sequence[_Row], reading: Reading) -> Item | None:
    """Return the item, or None where the store does not sell it. Raises _Slip."""
    columns = reading.columns
    for _number, fields in rows:
        if len(fields) != columns.width:
            raise _Slip(
                "",
                "",
                f"It has {len(fields)} fields, not {columns.width}.",
                "Look for a missing quotation mark, and export again.",
            )
    first = rows[0][1]
    name = one_line(first[NAME])
    if not name:
        raise _Slip("Name", "", "It has no name.", "Give the item a name in the Back Office.")
    identity = _identity(first, reading)
    if not identity:
        raise _Slip(
            "Handle",
            "",
            f'"{name}" has no id.',
            "Give the item a handle, and an SKU, in the Back Office.",
        )
    here = [fields for _number, fields in rows if not _is_elsewhere(fields, columns)]
    if not here:
        return None
    variants: tuple[Variant, ...] = ()
    if len(rows) > 1 or _options(first, columns):
        variants = tuple([_variant(fields, identity, name, reading) for fields in here])
        price = min([variant.price for variant in variants])
        available = any(variant.available for variant in variants)
    else:
        price = _price(first, name, reading)
        available = _is_for_sale(first, columns)
    category = one_line(first[CATEGORY])
    return Item(
        external_id=identity,
        name=name,
        price=price,
        description="" if columns.description is None else plain_text(first[columns.description]),
        available=available,
        categories=(category,) if category else (),
        addon_groups=tuple(
            [
                reading.groups[modifier]
                for position, modifier in columns.modifiers
                if first[position] and _yes(first[position]) and modifier in reading.groups
            ]
        )
        if columns.modifiers
        else (),
        variants=variants,
        tax=_tax(first, columns) if columns.taxes else None,
        menus=(MENU_ID,),
    )


def _variant(fields: Sequence[str], identity: str, name: str, reading: Reading) -> Variant:
    options = _options(fields, reading.columns)
    return Variant(
        external_id=one_line(fields[SKU]) or "/".join((identity, *options)),
        variant_name=" / ".join(options),
        price=_price(fields, name, reading),
        available=_is_for_sale(fields, reading.columns),
    )


def _is_for_sale(fields: Sequence[str], columns: Columns) -> bool:
    return columns.for_sale is None or not _no(fields[columns.for_sale])


def _is_elsewhere(fields: Sequence[str], columns: Columns) -> bool:
    """Return whether only other stores sell it: it is not for sale here, and has no price."""
    cells = (columns.price, columns.default_price)
    return (
        columns.for_sale is not None
        and _no(fields[columns.for_sale])
        and not any(fields[cell].strip() for cell in cells if cell is not None)
    )


def _options(fields: Sequence[str], columns: Columns) -> tuple[str, ...]:
    written = [fields[position] for position in columns.option_values if fields[position]]
    return tuple(value for value in map(one_line, written) if value) if written else ()


def _price(fields: Sequence[str], name: str, reading: Reading) -> int:
    columns = reading.columns
    written = "" if columns.price is None else fields[columns.price].strip()
    if not written and columns.default_price is not None:
        written = fields[columns.default_price].strip()
    if not written or written.casefold() == _VARIABLE:
        raise _Slip(
            "Price",
            written,
            f'"{name}" has a variable price: a storefront cannot sell it.',
            "Give it a price in the Back Office, or sell it at the counter only.",
        )
    try:
        price = to_minor(written, reading.currency)
    except ValueError as failure:
        raise _Slip(
            "Price",
            written,
            f'The price of "{name}" is wrong: {failure}.',
            f"Correct the price, or the store's currency ({reading.currency}) in bridge.toml.",
        ) from failure
    if price < 0:
        raise _Slip("Price", written, f'"{name}" has a price below zero.', "Correct the price.")
    return price


def _identity(fields: Sequence[str], reading: Reading) -> str:
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
