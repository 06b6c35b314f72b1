"""Categories, modifier groups and tax rates of a workbook. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Literal

from tillbridge.adapter import BadRow, Category, TaxComponent
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import chosen_taxes
from tillbridge.adapter.texts import _
from tillbridge.adapter.xlsx_export import Sheet
from tillbridge.model.money import DecimalSign
from tillbridge.model.numbers import parse_decimal
from tillbridge_clover.groups import Groups, groups_of
from tillbridge_clover.options import CloverOptions
from tillbridge_clover.workbook import (
    Record,
    cells_of,
    find_sheet,
    is_transposed,
    records,
    transposed,
)

TaxUnit = Literal["auto", "fraction", "percent", "hundredth"]
_FACTORS = {"fraction": 100, "percent": 1, "hundredth": 10_000}
# No tax is a fifth of a percent: an export whose rates all are has divided by a hundred twice.
_NO_REAL_RATE = Decimal("0.002")


@dataclass(slots=True)
class Parts:
    """What items refer to by name; of `tax_names` only `taxes` are charged online."""

    categories: dict[str, Category] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)  # item name: category ids
    groups: Groups = field(default_factory=Groups)
    tax_names: set[str] = field(default_factory=set)
    taxes: dict[str, TaxComponent] = field(default_factory=dict)
    default_taxes: list[str] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)


def parts_of(
    sheets: Mapping[str, Sheet], export: str, prices: PriceReader, options: CloverOptions
) -> Parts:
    """Return the parts of the workbook `export`; a sheet that is missing has none.

    Raises ExportUnreadable for a tax of the options that the workbook does not have.
    """
    parts = Parts()
    if (sheet := find_sheet(sheets, "categories")) is not None:
        _categories(sheet, parts)
    if (sheet := find_sheet(sheets, "modifier groups", "modifiers")) is not None:
        parts.groups = groups_of(sheet, prices)
    sheet = find_sheet(sheets, "tax rates", "taxes")
    rates = [] if sheet is None else records(sheet, key=("name",), first="name")
    named = [(record["name"], record["name"].casefold()) for record in rates]
    parts.tax_names = {key for _name, key in named}
    counted = chosen_taxes(options, named, export=export)
    if sheet is not None:
        _taxes(sheet, rates, counted, options.tax_rates, parts)
    return parts


def names_in(written: str, known: Collection[str]) -> Sequence[str]:
    """Return the name that a cell says, or the names with commas between, if all are known."""
    if written.casefold() in known:
        return (written,)
    names = [name.strip() for name in written.split(",")]
    return names if all(name.casefold() in known for name in names) else (written,)


def prices_of(
    sheets: Mapping[str, Sheet], currency: str, decimal: DecimalSign | None
) -> PriceReader:
    """Return how the prices of a workbook are read: those that are text may be of any land."""
    written = [cell for sheet in sheets.values() for cell in cells_of(sheet, "price")]
    return PriceReader.of(written, currency, decimal)


def category_of(parts: Parts, name: str) -> str:
    """Return the id of the category of that name, which an item may be the first to name."""
    key = name.casefold()
    if key not in parts.categories:
        parts.categories[key] = Category(name, name)
    return parts.categories[key].external_id


def _categories(sheet: Sheet, parts: Parts) -> None:
    if is_transposed(sheet):
        for column in transposed(sheet, "items in category"):
            name = (column.get("category name") or [""])[0]
            identity = (column.get("category id") or [name])[0]
            items: Sequence[str] = column.get("items in category", [])
            _take_category(identity, name, items, parts)
        return
    for record in records(sheet, key=("category id", "category name"), first="category name"):
        items = record.all("item sort order") or record.all("items in category")
        name = record["category name"]
        _take_category(record["category id"] or name, name, items, parts)


def _take_category(identity: str, name: str, items: Sequence[str], parts: Parts) -> None:
    if not name:
        return
    parts.categories.setdefault(name.casefold(), Category(identity, name))
    for item in items:
        parts.members.setdefault(item.casefold(), []).append(
            parts.categories[name.casefold()].external_id
        )


def _taxes(
    sheet: Sheet,
    taxes: Sequence[Record],
    counted: Collection[str],
    unit: TaxUnit,
    parts: Parts,
) -> None:
    rates: dict[str, Decimal] = {}
    for record in taxes:
        written = record["tax rate"]
        if not written:  # a flat amount, which an item's tax cannot hold
            continue
        try:
            rates[record["name"]] = _rate(written)
        except InvalidOperation:
            parts.bad_rows.append(
                BadRow(
                    place=sheet.place(record.number),
                    text=_('The tax rate of "{name}" is {written!r}, which is no number.').format(
                        name=record["name"], written=written
                    ),
                    fix=_("Correct it in Clover, and export again."),
                    external_id=record["tax rate id"] or record["name"],
                    field="Tax Rate",
                    value=written,
                )
            )
            continue
        if record["default"].casefold() == "yes" and record["name"].casefold() in counted:
            parts.default_taxes.append(record["name"])
    factor = _percent_of(unit, list(rates.values()))
    for name, rate in rates.items():
        if name.casefold() in counted:
            percent = (rate * factor).normalize()
            parts.taxes[name.casefold()] = TaxComponent(agency=name, rate=format(percent, "f"))


def _rate(written: str) -> Decimal:
    """Return the number. Raises InvalidOperation for what is none, or no rate."""
    try:
        rate = parse_decimal(written.rstrip("% "))
    except ValueError:
        raise InvalidOperation from None
    if rate < 0:
        raise InvalidOperation
    return rate / 100 if written.endswith("%") else rate


def _percent_of(unit: TaxUnit, rates: Sequence[Decimal]) -> int:
    """Return what a rate is multiplied by to be percent."""
    if unit == "auto":
        highest = max(rates, default=Decimal(0))
        unit = "hundredth" if 0 < highest < _NO_REAL_RATE else "fraction"
        if highest >= 1:  # the whole price once more, and no tax is that
            unit = "percent"
    return _FACTORS[unit]
