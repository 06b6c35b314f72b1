"""Finding the columns of an items export, in whatever language the Back Office speaks. Pure.

The words differ by language, the pattern does not: handle, SKU, name, category, description (which
exports of some years ago lack) and sold by weight, then names and values of options 1 to 3, a few
of the account (two of them only with some features on), then for each store `word [Store]`, of
which the first is whether it is for sale and the second its price, then `word - "Modifier"` and
`word - "Tax" (8%)`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tillbridge.adapter import ExportUnreadable, TaxComponent

HANDLE, SKU, NAME, CATEGORY = range(4)
_DESCRIPTION = 4
_OPTION_DIGITS = "112233"  # name and value of each option, in whatever language
_OF_STORE = re.compile(r"^.+ \[(?P<store>.+)\]$")
_NAMED = re.compile(r'^[^"]+ - "(?P<name>.+)"(?: \((?P<rate>[0-9]+(?:[.,][0-9]+)?)\s*%\))?$')
# Between the options and the stores: cost, barcode, component, its quantity, stock; with production
# on also use, supplier, purchase cost. A default price comes first where prices differ by store.
_WITH_DEFAULT_PRICE = {6, 9}


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
    """Where things stand in a row; `for_sale` and `price` are the store's own, None without one."""

    width: int
    description: int | None
    option_values: tuple[int, ...]
    included_sku: int
    default_price: int | None
    for_sale: int | None
    price: int | None
    modifiers: tuple[tuple[int, str], ...]
    taxes: tuple[Tax, ...]

    @property
    def read(self) -> tuple[int, ...]:
        """Return the columns that an item is made of; what is in stock, say, is not read."""
        may_lack = (self.description, self.default_price, self.for_sale, self.price)
        return (
            *(HANDLE, SKU, NAME, CATEGORY, *self.option_values),
            *(position for position in may_lack if position is not None),
            *(position for position, _modifier in self.modifiers),
            *(tax.position for tax in self.taxes),
        )


def columns_of(header: Sequence[str], wanted_store: str | None, name: str) -> Columns:
    """Return the columns of the export called `name`. Raises ExportUnreadable."""
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
        raise ExportUnreadable(
            f"{name} is no items export of Loyverse. Its columns are: {', '.join(header[:8])}, ...",
            place=f"{name}, row 1",
            fix="In the Back Office: Items, Item list, Export.",
        )
    for_sale, price = _of_store(stores, wanted_store, name)
    return Columns(
        width=len(header),
        # Without a description sold by weight stands next to the category.
        description=_DESCRIPTION if options > _DESCRIPTION + 1 else None,
        option_values=tuple(range(options + 1, fixed, 2)),
        included_sku=fixed + (3 if default_price is not None else 2),
        default_price=default_price,
        for_sale=for_sale,
        price=price,
        modifiers=tuple(modifiers),
        taxes=tuple(taxes),
    )


def _options_at(header: Sequence[str]) -> int | None:
    """Return where the name of the first option stands, None where there is no such block."""
    for start in range(CATEGORY + 1, len(header) - len(_OPTION_DIGITS) + 1):
        labels = header[start : start + len(_OPTION_DIGITS)]
        if all(digit in label for digit, label in zip(_OPTION_DIGITS, labels, strict=True)):
            return start
    return None


def _of_store(
    stores: dict[str, list[int]], wanted: str | None, name: str
) -> tuple[int | None, int | None]:
    if not stores:
        return None, None
    listed = ", ".join(f'"{store}"' for store in stores)
    if wanted is None:
        if len(stores) > 1:
            raise ExportUnreadable(
                f"{name} has several stores: {listed}.",
                place=f"{name}, row 1",
                fix="Say which one it is, with the option store.",
            )
        wanted = next(iter(stores))
    by_name = {store.casefold(): positions for store, positions in stores.items()}
    positions = by_name.get(wanted.casefold())
    if positions is None:
        raise ExportUnreadable(
            f'{name} has no store "{wanted}"; it has {listed}.',
            place=f"{name}, row 1",
            fix="Correct the option store.",
        )
    return positions[0], positions[1] if len(positions) > 1 else None
