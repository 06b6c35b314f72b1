"""Making items of an export's records: what adapters of exports have in common.

`RowError` is what is wrong with a record; `sizes_of`, `groups_of`, `stock_of` and `tax_of` make the
parts of an item.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from tillbridge.adapter.failures import RowError
from tillbridge.adapter.modifier_file import Modifiers, UnreadableModifier
from tillbridge.adapter.sale_options import SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.catalogue import BadRow, Category, Item, ItemTax, TaxComponent, Variant
from tillbridge.model.export_facts import LeftOut

MENU_ID = "menu"
"""Of the one menu of an export that has none of its own."""

UNREADABLE = "\ufffd"
"""Stands for what could not be decoded."""

__all__ = [
    "MENU_ID",
    "UNREADABLE",
    "FoundItems",
    "RowError",
    "VariablePrice",
    "groups_of",
    "sizes_of",
    "stock_of",
    "tax_of",
]

_STOCK = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?")
_Row = TypeVar("_Row")


# -- what is wrong


class VariablePrice(RowError):
    """A price that is asked for at the counter; `name` is what of."""

    def __init__(
        self, name: str, column: str, value: str, text: str, fix: str, *, row: int | None = None
    ) -> None:
        super().__init__(column, value, text, fix, row=row)
        self.name = name


# -- parts of an item


@dataclass(slots=True)
class FoundItems:
    """What was made of the records so far; `fingerprints` are those of the items' records."""

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    categories: dict[str, Category] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)

    def add(self, item: Item, fingerprint: int, place: str) -> None:
        """Add an item with its categories, whose names are their ids."""
        self.items[item.external_id] = item
        self.fingerprints[item.external_id] = fingerprint
        self.places[item.external_id] = place
        for name in item.categories:
            self.categories.setdefault(name, Category(name, name))


def sizes_of(
    rows: Iterable[_Row],
    size: Callable[[_Row], Variant],
    place: Callable[[_Row], str],
    rules: SaleRules,
) -> tuple[Variant, ...]:
    """Return the sizes; one with a variable price is left out: it is sold at the counter only.

    Raises VariablePrice if no size has another, and what `size` raises.
    """
    sizes, left_out = [], []
    variable: VariablePrice | None = None
    for row in rows:
        try:
            sizes.append(size(row))
        except VariablePrice as asked:
            variable = variable or asked
            left_out.append(LeftOut(asked.name, "variable_price", place=place(row)))
    if variable is not None and not sizes:
        raise variable
    for each in left_out:
        rules.leave_out(each)
    return tuple(sizes)


def groups_of(
    item: str, named: Iterable[tuple[str, str, str]], modifiers: Modifiers, *, row: int
) -> tuple[str, ...]:
    """Return the groups of the modifiers that an item offers.

    `named` are column, value and modifier of each. Raises RowError for one that cannot be read.
    """
    found = []
    for column, value, modifier in named:
        try:
            group = modifiers.group_of(modifier)
        except UnreadableModifier as unreadable:
            raise RowError(
                column,
                value,
                _('"{item}" offers "{modifier}", which cannot be read ({place}).').format(
                    item=item, modifier=modifier, place=unreadable.place
                ),
                _("Correct {place}. The item stays as it was until then.").format(
                    place=unreadable.place
                ),
                row=row,
            ) from unreadable
        if group is not None:
            found.append(group.external_id)
    return tuple(found)


def stock_of(written: str) -> Decimal | None:
    """Return how much is left, None if nothing is stated. Raises ValueError for no number."""
    text = written.strip()
    if not text:
        return None
    if _STOCK.fullmatch(text) is None:
        msg = _("{text!r} is no number").format(text=text)
        raise ValueError(msg)
    return Decimal(text.replace(",", "."))


def tax_of(components: Sequence[TaxComponent]) -> ItemTax | None:
    """Return an item's tax of its components, None of none."""
    if not components:
        return None
    return ItemTax(" + ".join(each.agency for each in components), tuple(components))
