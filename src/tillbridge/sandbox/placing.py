"""From what a customer asked for to priced lines, or a refusal that says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tillbridge.sandbox.catalogue import find_sellable, is_available, is_orderable, live_variants
from tillbridge.sandbox.pricing import Component, PricedLine, PricedOption, components_of
from tillbridge.sandbox.state import AddOn, AddOnGroup, Catalogue, Item, Link, Variant, new_id


class PlacementError(Exception):
    """The order cannot be placed; the message is for the customer."""


@dataclass(frozen=True, slots=True)
class WantedOption:
    """An add-on that was chosen, so many per one of the line."""

    external_id: str
    quantity: int = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """One line of a basket.

    `overrides` replaces fields of the delivered line, to make orders that are odd on purpose.
    """

    external_id: str | None
    quantity: int = 1
    variant_external_id: str | None = None
    options: tuple[WantedOption, ...] = ()
    overrides: tuple[tuple[str, Any], ...] = ()


def priced_lines(link: Link, wanted: Sequence[Wanted], now_ms: int) -> list[PricedLine]:
    """Lines of what is on the menu and can be had now. Raises `PlacementError`."""
    if not wanted:
        raise PlacementError("The basket is empty")
    return [_line(link, line, now_ms) for line in wanted]


def unchecked_lines(link: Link, wanted: Sequence[Wanted]) -> list[PricedLine]:
    """Lines as asked for; what is not on the menu costs nothing, unless an override says so."""
    lines = []
    for line in wanted:
        item = link.catalogue.items.get(line.external_id or "")
        variant = item.variants.get(line.variant_external_id or "") if item else None
        options = tuple(_unchecked_option(link.catalogue, option) for option in line.options)
        lines.append(_priced(link, line, item, variant, options))
    return lines


def _line(link: Link, line: Wanted, now_ms: int) -> PricedLine:
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
        raise PlacementError(f"{item.name}, {variant.name}, is sold out")
    return variant


def _options(
    catalogue: Catalogue, item: Item, wanted: Sequence[WantedOption], now_ms: int
) -> tuple[PricedOption, ...]:
    groups = groups_of(catalogue, item)
    offered = {external_id for group in groups for external_id in group.add_ons}
    priced = []
    for option in wanted:
        thing = (
            find_add_on(catalogue, option.external_id) if option.external_id in offered else None
        )
        if thing is None or option.quantity < 1:
            raise PlacementError(f"{option.external_id} does not go with {item.name}")
        if not is_available(thing, now_ms):
            raise PlacementError(f"{thing.name} is sold out")
        priced.append(
            PricedOption(
                thing.product_id, thing.name, option.quantity, thing.price, thing.external_id
            )
        )
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


def groups_of(catalogue: Catalogue, item: Item) -> list[AddOnGroup]:
    """The item's add-on groups, in its order."""
    ids = item.fields.get("addon_groups", ())
    return [
        catalogue.addon_groups[external_id]
        for external_id in ids
        if external_id in catalogue.addon_groups
    ]


def find_add_on(catalogue: Catalogue, external_id: str) -> Item | AddOn | None:
    """An entry of add_ons[], or an item with product_type addon."""
    found = catalogue.add_ons.get(external_id)
    if found is not None:
        return found
    item = catalogue.items.get(external_id)
    return item if item is not None and item.is_add_on else None


def _unchecked_option(catalogue: Catalogue, option: WantedOption) -> PricedOption:
    thing = find_sellable(catalogue, option.external_id)
    if thing is None:
        return PricedOption(
            new_id("prd"), option.external_id, option.quantity, 0, option.external_id
        )
    return PricedOption(
        thing.product_id, thing.name, option.quantity, thing.price, option.external_id
    )


def _priced(
    link: Link,
    line: Wanted,
    item: Item | None,
    variant: Variant | None,
    options: tuple[PricedOption, ...],
) -> PricedLine:
    overrides = dict(line.overrides)
    name = item.name if item else str(line.external_id)
    if variant is not None:
        name = f"{name} ({variant.name})"
    price = variant.price if variant else item.price if item else 0
    taxes: tuple[Component, ...] = components_of(
        link.store.tax_config, item.fields.get("tax") if item else None
    )
    return PricedLine(
        product_id=overrides.get("product_id", item.product_id if item else new_id("prd")),
        product_variant_id=overrides.get(
            "product_variant_id", variant.variant_id if variant else None
        ),
        product_name=overrides.get("product_name", name),
        quantity=line.quantity,
        unit_price=overrides.get("unit_price", price),
        external_id=overrides.get("external_id", line.external_id),
        variant_external_id=overrides.get("variant_external_id", line.variant_external_id),
        options=options,
        components=taxes,
    )
