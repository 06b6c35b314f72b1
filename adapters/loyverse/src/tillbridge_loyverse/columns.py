"""Finding the columns of an items export, in whatever language the Back Office speaks. Pure.

The words differ by language, the pattern does not: handle, SKU, name, category, description (which
exports of some years ago lack) and sold by weight, then names and values of options 1 to 3, a few
of the account (two of them only with some features on), then for each store `word [Store]`, of
which the first is whether it is for sale and the second its price, then `word - "Modifier"` and
`word - "Tax" (8%)`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tillbridge.adapter import ExportUnreadable, TaxComponent
from tillbridge.adapter.csv_export import CsvTable
from tillbridge.adapter.export_files import still_being_written
from tillbridge.adapter.sale_options import chosen_taxes
from tillbridge.adapter.texts import _
from tillbridge_loyverse.options import LoyverseOptions

HANDLE, SKU, NAME, CATEGORY = range(4)
_DESCRIPTION = 4
_OPTION_DIGITS = "112233"  # name and value of each option, in whatever language
_OF_STORE = re.compile(r"^.+ \[(?P<store>.+)\]$")
_NAMED = re.compile(r'^[^"]+ - "(?P<name>.+)"(?: \((?P<rate>[0-9]+(?:[.,][0-9]+)?)\s*%\))?$')
# Between the options and the stores: cost, barcode, component, its quantity, stock; with production
# on also use, supplier, purchase cost. A default price comes first where prices differ by store.
_WITH_DEFAULT_PRICE = {6, 9}
_STOCK = 2  # among the columns of a store
_TRACKED = 4  # behind the cost


@dataclass(frozen=True, slots=True)
class Tax:
    """A tax column: its name, and its rate in percent as decimal text."""

    position: int
    name: str
    rate: str

    @property
    def component(self) -> TaxComponent:
        """Return the tax as a part of an item's tax."""
        return TaxComponent(agency=self.name, rate=self.rate)


@dataclass(frozen=True, slots=True)
class Columns:
    """Where things stand in a row; `for_sale` and `price` are the store's own, None without one.

    `stock` is the store's column of what is left, and `tracked` the one that says whether the till
    counts it; None where stock is not looked at.
    """

    header: tuple[str, ...]
    width: int
    description: int | None
    option_values: tuple[int, ...]
    cost: int
    included_sku: int
    default_price: int | None
    for_sale: int | None
    price: int | None
    tracked: int | None
    stock: int | None
    modifiers: tuple[tuple[int, str], ...]
    taxes: tuple[Tax, ...]

    @property
    def names(self) -> Mapping[str, str]:
        """Return what the file calls the fields of an item."""
        known = {
            "external_id": HANDLE,
            "name": NAME,
            "categories": CATEGORY,
            "description": self.description,
            "price": self.default_price if self.price is None else self.price,
        }
        return {
            field: self.header[position]
            for field, position in known.items()
            if position is not None and position < len(self.header)
        }

    @property
    def read(self) -> tuple[int, ...]:
        """Return the columns that an item is made of."""
        may_lack = (
            *(self.description, self.default_price, self.for_sale, self.price),
            *(self.tracked, self.stock),
        )
        return (
            *(HANDLE, SKU, NAME, CATEGORY, *self.option_values),
            *(position for position in may_lack if position is not None),
            *(position for position, _modifier in self.modifiers),
            *(tax.position for tax in self.taxes),
        )

    @property
    def money(self) -> tuple[int, ...]:
        """Return the columns of amounts: what they look like is how the file writes amounts."""
        may_lack = (self.cost, self.default_price, self.price)
        return tuple(position for position in may_lack if position is not None)

    def label(self, position: int | None) -> str:
        """Return a column as the file calls it, "" for one that it lacks."""
        return "" if position is None else self.header[position]


def columns_of(table: CsvTable, wanted: LoyverseOptions) -> Columns:
    """Return the columns of an export that the options want. Raises ExportUnreadable."""
    name, header = table.name, table.header
    stores: dict[str, list[int]] = {}
    modifiers, taxes = [], []
    options = _options_at(header)
    fixed = len(header) if options is None else options + len(_OPTION_DIGITS)
    first_of_stores = len(header)
    for position, label in enumerate(header[fixed:], fixed):
        if found := _OF_STORE.match(label):
            stores.setdefault(found["store"], []).append(position)
            first_of_stores = min(first_of_stores, position)
        elif found := _NAMED.match(label):
            first_of_stores = min(first_of_stores, position)
            if found["rate"] is None:
                modifiers.append((position, found["name"]))
            else:
                taxes.append(Tax(position, found["name"], found["rate"].replace(",", ".")))
    between = first_of_stores - fixed
    default_price = fixed if between in _WITH_DEFAULT_PRICE else None
    if options is None or (not stores and default_price is None):
        if table.may_grow:
            raise still_being_written(name, _("ends inside its header"))
        raise ExportUnreadable(
            _("{name} is no items export of Loyverse. Its columns are: {names}, ...").format(
                name=name, names=", ".join(header[:8])
            ),
            place=_("{file}, row {row}").format(file=name, row=1),
            fix=_("In the Back Office: Items, Item list, Export."),
        )
    of_store = _of_store(stores, wanted.store, name)
    of_default = 0 if default_price is None else 1
    stock = _STOCK if wanted.sold_out_at_stock is not None else len(of_store)
    return Columns(
        header=header,
        width=len(header),
        # Without a description sold by weight stands next to the category.
        description=_DESCRIPTION if options > _DESCRIPTION + 1 else None,
        option_values=tuple(range(options + 1, fixed, 2)),
        cost=fixed + of_default,
        included_sku=fixed + of_default + 2,
        default_price=default_price,
        for_sale=_at(of_store, 0),
        price=_at(of_store, 1),
        tracked=fixed + of_default + _TRACKED if stock < len(of_store) else None,
        stock=_at(of_store, stock),
        modifiers=tuple(modifiers),
        taxes=chosen_taxes(wanted, [(tax.name, tax) for tax in taxes], export=name),
    )


def _at(of_store: Sequence[int], place: int) -> int | None:
    return of_store[place] if place < len(of_store) else None


def _options_at(header: Sequence[str]) -> int | None:
    """Return where the name of the first option stands, None where there is no such block."""
    for start in range(CATEGORY + 1, len(header) - len(_OPTION_DIGITS) + 1):
        labels = header[start : start + len(_OPTION_DIGITS)]
        if all(digit in label for digit, label in zip(_OPTION_DIGITS, labels, strict=True)):
            return start
    return None


def _of_store(stores: dict[str, list[int]], wanted: str | None, name: str) -> Sequence[int]:
    """Return the columns of the store: for sale, price, in stock and what follows."""
    if not stores:
        return ()
    listed = ", ".join(f'"{store}"' for store in stores)
    if wanted is None:
        if len(stores) > 1:
            raise ExportUnreadable(
                _("{name} has several stores: {listed}.").format(name=name, listed=listed),
                place=_("{file}, row {row}").format(file=name, row=1),
                fix=_("Say which one it is, with the option {option}.").format(option="store"),
            )
        wanted = next(iter(stores))
    by_name = {store.casefold(): positions for store, positions in stores.items()}
    positions = by_name.get(wanted.casefold())
    if positions is None:
        raise ExportUnreadable(
            _('{name} has no store "{wanted}"; it has {listed}.').format(
                name=name, wanted=wanted, listed=listed
            ),
            place=_("{file}, row {row}").format(file=name, row=1),
            fix=_("Correct the option {option}.").format(option="store"),
        )
    return positions
