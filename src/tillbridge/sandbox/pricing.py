"""What an order costs: from a basket to priced lines, taxes and totals. Pure, in minor units.

The specification shows the fields and not the arithmetic. Here a line's `subtotal` is quantity
times the unit price and its options; each tax component is rounded half up per line; the breakdown
adds the lines up, so all sums agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any

from pydantic import Field, create_model

from tillbridge.sandbox.catalogue import (
    find_add_on,
    find_sellable,
    groups_of,
    is_available,
    is_orderable,
    live_variants,
)
from tillbridge.sandbox.state import AddOnGroup, Catalogue, Item, Link, Variant, new_id, plain
from tillbridge.sandbox.validation import (
    NO_LIST,
    Body,
    Count,
    Id,
    OptionalText,
    ServiceError,
    Text,
)

# What a customer wants: the body of the control API's calls, and what a basket holds


class Option(Body):
    """An add-on that was chosen, so many per one of the line."""

    external_id: Id
    quantity: Annotated[int, Field(ge=1)] = 1


_REPLACED: dict[str, Any] = dict.fromkeys(
    "product_id product_variant_id product_name unit_price external_id variant_external_id".split(),
    (Any, None),
)


class _Replaced(Body):
    nullable = frozenset(_REPLACED)


#: Fields of a delivered line that are replaced, by whatever it is: orders odd on purpose.
LineOverrides: Any = create_model("LineOverrides", __base__=_Replaced, **_REPLACED)


class BaseLine(Body):
    """What every line of a basket has."""

    nullable = frozenset(("external_id", "variant_external_id"))
    external_id: Id | None = None
    variant_external_id: Id | None = None
    quantity: int = 1
    options: list[Option] = NO_LIST


class Line(BaseLine):
    """A line of a store's order."""

    overrides: LineOverrides = LineOverrides()


class Basket(Body):
    """What a customer orders of one store."""

    items: list[Line]
    order_type: Text = "delivery"
    tip: Count = 0
    discount: Count = 0
    special_instructions: OptionalText = ""
    customer_id: Text | None = None


class PlacementError(ServiceError):
    """The order cannot be placed; the message is for the customer."""

    def __init__(self, message: str) -> None:
        super().__init__("control.refused", message)


# What it costs


@dataclass(frozen=True, slots=True)
class Component:
    """One tax: `rate` in percent; a `compound` one is levied on the taxes before it too."""

    agency: str
    rate: Decimal
    compound: bool


@dataclass(frozen=True, slots=True)
class PricedOption:
    """An add-on of a line. `unit_price` in minor units."""

    product_id: str
    product_name: str
    quantity: int
    unit_price: int
    external_id: str | None


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A line before tax. `quantity` of an option is per one of the line."""

    product_id: str
    product_variant_id: str | None
    product_name: str
    quantity: int
    unit_price: int
    external_id: str | None
    variant_external_id: str | None
    options: tuple[PricedOption, ...] = ()
    components: tuple[Component, ...] = field(default=())

    @property
    def subtotal(self) -> int:
        """Before tax, or with it where prices include it; minor units."""
        extras = sum(option.unit_price * option.quantity for option in self.options)
        return self.quantity * (self.unit_price + extras)

    def body(self, tax_amount: int) -> dict[str, Any]:
        """As the order shows it."""
        own = ("external_id", "variant_external_id", "options")
        return {
            **plain(self, "components", *own),
            "subtotal": self.subtotal,
            "tax_amount": tax_amount,
            **{name: plain(getattr(self, name)) for name in own},
        }


def components_of(
    tax_config: Mapping[str, Any], item_tax: Mapping[str, Any] | None
) -> tuple[Component, ...]:
    """The taxes of an item: its own where taxes are per product, else the store's default."""
    if not tax_config.get("enabled"):
        return ()
    if tax_config.get("tax_level") == "product" and item_tax is not None:
        chosen: Mapping[str, Any] | None = item_tax
    else:
        default = tax_config.get("default_tax_id")
        chosen = next(
            (tax for tax in tax_config.get("taxes", ()) if tax["tax_id"] == default), None
        )
    if chosen is None:
        return ()
    return tuple(
        Component(entry["agency"], Decimal(str(entry["rate"])), bool(entry.get("compound")))
        for entry in chosen["components"]
    )


def line_taxes(amount: int, components: Iterable[Component], *, inclusive: bool) -> list[int]:
    """The tax of each component on `amount`; inclusive prices hold the tax already."""
    factors: list[Decimal] = []
    for component in components:
        base = 1 + sum(factors, Decimal(0)) if component.compound else Decimal(1)
        factors.append(base * component.rate / 100)
    net = amount / (1 + sum(factors, Decimal(0))) if inclusive else Decimal(amount)
    return [int((net * factor).quantize(Decimal(1), ROUND_HALF_UP)) for factor in factors]


def price_order(
    lines: Sequence[PricedLine], *, inclusive: bool, fee: int = 0, discount: int = 0, tip: int = 0
) -> dict[str, Any]:
    """The money fields and `items` of an order."""
    items: list[dict[str, Any]] = []
    breakdown: dict[tuple[str, Decimal], int] = {}
    for line in lines:
        taxes = line_taxes(line.subtotal, line.components, inclusive=inclusive)
        items.append(line.body(sum(taxes)))
        for component, amount in zip(line.components, taxes, strict=True):
            key = (component.agency, component.rate)
            breakdown[key] = breakdown.get(key, 0) + amount
    subtotal = sum(line.subtotal for line in lines)
    tax = sum(breakdown.values())
    return {
        "subtotal": subtotal,
        "tax": tax,
        "delivery_fee": fee,
        "discount": discount,
        "tip": tip,
        "total_amount": subtotal + fee + tip - discount + (0 if inclusive else tax),
        "prices_include_tax": inclusive,
        "tax_breakdown": [
            {"name": agency, "rate": _plain(rate), "amount": amount}
            for (agency, rate), amount in breakdown.items()
        ],
        "items": items,
    }


def _plain(rate: Decimal) -> int | float:
    """A rate as JSON has it: 20, not 20.0."""
    return int(rate) if rate == rate.to_integral_value() else float(rate)


# From a basket to priced lines


def priced_lines(link: Link, wanted: Sequence[BaseLine], now_ms: int) -> list[PricedLine]:
    """Lines of what is on the menu and can be had now. Raises `PlacementError`."""
    if not wanted:
        raise PlacementError("The basket is empty")
    return [_line(link, line, now_ms) for line in wanted]


def unchecked_lines(link: Link, wanted: Sequence[Line]) -> list[PricedLine]:
    """Lines as asked for; what is not on the menu costs nothing, unless an override says so."""
    lines = []
    for line in wanted:
        item = link.catalogue.items.get(line.external_id or "")
        variant = item.variants.get(line.variant_external_id or "") if item else None
        options = tuple(
            _priced_option(find_sellable(link.catalogue, option.external_id), option)
            for option in line.options
        )
        priced = _priced(link, line, item, variant, options)
        lines.append(replace(priced, **line.overrides.sent()))
    return lines


def _line(link: Link, line: BaseLine, now_ms: int) -> PricedLine:
    item = link.catalogue.items.get(line.external_id or "")
    if item is None or item.is_add_on:
        raise PlacementError(f"{line.external_id} is not on the menu")
    if line.quantity < 1:
        raise PlacementError(f"Order at least one {item.name}")
    if not is_orderable(item, now_ms):
        raise PlacementError(f"{item.name} is sold out")
    variant = _variant(item, line.variant_external_id)
    options = _options(link.catalogue, item, line.options, now_ms)
    return _priced(link, line, item, variant, options)


def _variant(item: Item, external_id: str | None) -> Variant | None:
    live = {variant.external_id: variant for variant in live_variants(item)}
    if external_id is None and not live:
        return None
    variant = live.get(external_id or "")
    if variant is None:
        raise PlacementError(f"Choose one of the kinds of {item.name}")
    if not variant.available:
        raise PlacementError(f"{item.name}, {variant.variant_name}, is sold out")
    return variant


def _options(
    catalogue: Catalogue, item: Item, wanted: Sequence[Option], now_ms: int
) -> tuple[PricedOption, ...]:
    groups = groups_of(catalogue, item)
    offered = {external_id for group in groups for external_id in group.add_ons}
    priced = []
    for option in wanted:
        thing = find_add_on(catalogue, option.external_id)
        if thing is None or option.external_id not in offered or option.quantity < 1:
            raise PlacementError(f"{option.external_id} does not go with {item.name}")
        if not is_available(thing, now_ms):
            raise PlacementError(f"{thing.name} is sold out")
        priced.append(_priced_option(thing, option))
    for group in groups:
        chosen = sum(option.quantity for option in wanted if option.external_id in group.add_ons)
        if not group.min_select <= chosen <= group.max_select:
            raise PlacementError(f"{item.name}, {group.name}: choose {choice_of(group)}")
    return tuple(priced)


def choice_of(group: AddOnGroup) -> str:
    """How many to choose, in words."""
    if group.min_select == group.max_select:
        return f"{group.min_select}"
    if group.min_select == 0:
        return f"up to {group.max_select}"
    return f"{group.min_select} to {group.max_select}"


def _priced_option(thing: Item | None, option: Option) -> PricedOption:
    key = option.external_id
    if thing is None:
        return PricedOption(new_id("prd"), key, option.quantity, 0, key)
    return PricedOption(thing.product_id, thing.name, option.quantity, thing.price, key)


def _priced(
    link: Link,
    line: BaseLine,
    item: Item | None,
    variant: Variant | None,
    options: tuple[PricedOption, ...],
) -> PricedLine:
    name = item.name if item else str(line.external_id)
    if variant is not None:
        name = f"{name} ({variant.variant_name})"
    return PricedLine(
        product_id=item.product_id if item else new_id("prd"),
        product_variant_id=variant.variant_id if variant else None,
        product_name=name,
        quantity=line.quantity,
        unit_price=variant.price if variant else item.price if item else 0,
        external_id=line.external_id,
        variant_external_id=line.variant_external_id,
        options=options,
        components=components_of(link.store.tax_config, item.fields.get("tax") if item else None),
    )
