"""Options that adapters of exports share: what of an export is sold online, and how.

Derive an adapter's options from those that its export can answer, so that no option is offered
which nothing reads:

    class MyOptions(SaleOptions, StockOptions, TaxOptions, PriceOptions): ...

and pass every item through `SaleRules.offered` when it is made, before it is added to the
catalogue; give `SaleRules.facts()` to the catalogue.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, TypeVar

from pydantic import Field

from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.adapter.registration import AdapterOptions
from tillbridge.adapter.texts import _, one_line
from tillbridge.model.catalogue import (
    AddOn,
    AddOnGroup,
    Item,
    Variant,
    costs_something,
    has_priced_choice,
)
from tillbridge.model.export_facts import ExportFacts, ExportWarning, LeftOut

T = TypeVar("T")

ZeroPrices = Literal["sell", "leave_out", "refuse"]


class SaleOptions(AdapterOptions):
    """Which items of an export are sold online."""

    zero_prices: ZeroPrices = Field(
        "sell",
        title=_("Items at price zero"),
        description=_(
            'Items and sizes at zero: "sell" them for nothing, "leave_out" (not sold '
            'online) or "refuse" (a bad row each, for a person to mend).'
        ),
    )
    leave_out_categories: tuple[str, ...] = Field(
        (),
        title=_("Categories not sold online"),
        description=_("Categories whose items are not sold online, by their names."),
    )


class StockOptions(AdapterOptions):
    """When an item whose stock the till counts is sold out."""

    sold_out_at_stock: Decimal | None = Field(
        None,
        title=_("Sold out at a stock of"),
        description=_(
            "Items of which the till counts this many or fewer are sold out; "
            "without it stock is not looked at."
        ),
    )


class TaxOptions(AdapterOptions):
    """Which of the taxes that an export marks are charged online."""

    taxes: tuple[str, ...] | None = Field(
        None,
        title=_("Taxes"),
        description=_("The taxes that count online, by their names; without it all do."),
    )


class PriceOptions(AdapterOptions):
    """How the prices of an export are written."""

    decimal: Literal[".", ","] | None = Field(
        None,
        title=_("Decimal sign of prices"),
        description=_(
            "The sign before the cents of prices; without it, the file's prices show it."
        ),
    )


class NotForSale(ValueError):
    """An item that the options refuse; `text` and `fix` are for its bad row."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix


@dataclass(slots=True)
class SaleRules:
    """Applies the options to the items of one reading, and records what is left out.

    `groups` and `add_ons` are all that the export has; `category_names` has the names of categories
    whose ids differ from their names.
    """

    options: SaleOptions
    groups: Mapping[str, AddOnGroup] = field(default_factory=dict)
    add_ons: Mapping[str, AddOn] = field(default_factory=dict)
    category_names: Mapping[str, str] = field(default_factory=dict)
    _left_out: list[LeftOut] = field(default_factory=list, init=False)
    _found: set[str] = field(default_factory=set, init=False)

    def offered(self, item: Item, place: str = "") -> Item | None:
        """Return the item as it is sold, None if it is left out. Raises NotForSale.

        A size at zero is left out if other sizes of the item have a price.
        """
        if category := self._left_out_category(item):
            self.leave_out(LeftOut(item.name, "category", category, place))
            return None
        if self.options.zero_prices == "sell" or item.product_type == "addon":
            return item
        if has_priced_choice(item, self.groups, self.add_ons):
            return item
        free = [variant for variant in item.variants if variant.price == 0]
        if not free and (item.variants or item.price > 0):
            return item
        if self.options.zero_prices == "refuse":
            which = f"{item.name} ({free[0].variant_name})" if free else item.name
            raise NotForSale(
                _('"{which}" costs nothing, and zero_prices is "refuse".').format(which=which),
                _("Give it a price in the till, or set zero_prices to leave_out or sell."),
            )
        return self._without(item, free, place)

    @property
    def sells_less(self) -> bool:
        """Whether the options leave anything of an export out."""
        return self.options.zero_prices != "sell" or bool(self.options.leave_out_categories)

    def meaning(self) -> tuple[object, ...]:
        """Return what determines, besides an item's own record, whether it is sold.

        For `KnownRecords`, if `offered` is called for new records only.
        """
        priced = [name for name, each in self.groups.items() if costs_something(each, self.add_ons)]
        return (
            self.options.zero_prices,
            self.options.leave_out_categories,
            tuple(self.category_names.items()) if self.options.leave_out_categories else (),
            () if self.options.zero_prices == "sell" else tuple(priced),
        )

    def have_priced_choice(self, groups: Iterable[str]) -> bool:
        """Return whether these groups have a required choice with a price.

        Then the item's price may be in that choice.
        """
        return any(costs_something(self.groups[group], self.add_ons) for group in groups)

    def leave_out(self, left_out: LeftOut) -> None:
        """Record something that is not sold for a reason of the adapter."""
        self._left_out.append(left_out)

    def facts(self, export: str) -> ExportFacts:
        """Return what was left out, with a warning for each category that does not exist.

        Call it after the last item of the reading: items of a category that is left out are read
        every time, so a category that did not occur is not in the `export`.
        """
        missing = [
            name
            for name in self.options.leave_out_categories
            if one_line(name).casefold() not in self._found
        ]
        return ExportFacts(
            left_out=tuple(self._left_out),
            warnings=tuple(
                ExportWarning(
                    place=export,
                    text=_(
                        'No item is in a category "{name}", which the option leave_out_categories '
                        "names."
                    ).format(name=name),
                    fix=_("Correct the name as the till writes it, or remove it from the option."),
                )
                for name in missing
            ),
        )

    def _left_out_category(self, item: Item) -> str:
        if not self.options.leave_out_categories:
            return ""
        wanted = {one_line(name).casefold() for name in self.options.leave_out_categories}
        for category in item.categories:
            name = self.category_names.get(category, category)
            key = one_line(name).casefold()
            if key in wanted:
                self._found.add(key)
                return name
        return ""

    def _without(self, item: Item, free: Sequence[Variant], place: str) -> Item | None:
        paid = tuple(variant for variant in item.variants if variant.price > 0)
        if not paid:
            self.leave_out(LeftOut(item.name, "zero_price", place=place))
            return None
        for variant in free:
            name = f"{item.name} ({variant.variant_name})"
            self.leave_out(LeftOut(name, "zero_price", place=place))
        return replace(
            item,
            price=min(variant.price for variant in paid),
            available=any(variant.available for variant in paid),
            variants=paid,
        )


def chosen_taxes(
    options: TaxOptions, taxes: Iterable[tuple[str, T]], *, export: str
) -> tuple[T, ...]:
    """Return those of `taxes` (name and value) that apply online, in the export's order.

    Raises ExportUnreadable for a name that the export does not have: its tax would be lost.
    """
    there = [(one_line(name), value) for name, value in taxes]
    if options.taxes is None:
        return tuple(value for _name, value in there)
    wanted = {one_line(name).casefold(): name for name in options.taxes}
    missing = wanted.keys() - {name.casefold() for name, _value in there}
    if missing:
        listed = ", ".join(f'"{name}"' for name in dict(there)) or _("none")
        raise ExportUnreadable(
            _('{export} has no tax "{tax}"; it has {listed}.').format(
                export=export, tax=wanted[min(missing)], listed=listed
            ),
            place=export,
            fix=_("Correct the option taxes."),
        )
    return tuple(value for name, value in there if name.casefold() in wanted)


def is_sold_out(options: StockOptions, stock: Decimal | None) -> bool:
    """Return whether the stock is so low; `stock` is None if the till does not count it."""
    limit = options.sold_out_at_stock
    return limit is not None and stock is not None and stock <= limit
