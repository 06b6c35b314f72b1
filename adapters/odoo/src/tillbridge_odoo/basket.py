"""What an order asks for, in Odoo's numbers, and the lines that Odoo is given for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tillbridge.adapter import ItemUnavailable, Order, OrderLine, PosFailure, PriceMismatch
from tillbridge.adapter.texts import _, joined
from tillbridge.model.money import major
from tillbridge_odoo.amounts import decimal_of, minor, plain, rounded
from tillbridge_odoo.names import Kind, number_of
from tillbridge_odoo.odoo import Record
from tillbridge_odoo.prices import Prices, Unpriced
from tillbridge_odoo.records import Combo, ComboItem
from tillbridge_odoo.register import number, text
from tillbridge_odoo.taxes import LineAmounts, Taxes


@dataclass(frozen=True, slots=True)
class Chosen:
    """An add-on of a line by its number: a value of an attribute, or an item of a combo."""

    number: int
    quantity: int
    price: int | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A line of an order: a product, or the only product of a template. Prices in minor units."""

    external_id: str
    name: str
    quantity: int
    price: int | None
    template: int | None
    product: int | None
    values: tuple[Chosen, ...] = ()
    parts: tuple[Chosen, ...] = ()


@dataclass(frozen=True, slots=True)
class Goods:
    """What Odoo has of it: products and values by number, combos and what is chosen in them."""

    products: Mapping[int, Record]
    templates: Mapping[int, Sequence[int]]
    values: Mapping[int, Record]
    combos: Mapping[int, Combo]
    parts: Mapping[int, Record]
    taxes: Taxes


@dataclass(frozen=True, slots=True)
class TicketLine:
    """A line as Odoo gets it, in major units. `parent` is the place of a combo's line, if any.

    `note` is what the kitchen has to know of this line, `categories` are those of the product in
    the point of sale, by which kitchens' printers divide an order.
    """

    product: int
    name: str
    quantity: int
    unit: Decimal
    extra: Decimal
    amounts: LineAmounts
    taxes: tuple[int, ...]
    values: tuple[int, ...] = ()
    note: str = ""
    categories: tuple[int, ...] = ()
    parent: int | None = None
    combo: int | None = None
    combo_item: int | None = None


def wanted_of(order: Order) -> tuple[Wanted, ...]:
    """Return what the order asks for. Raises ItemUnavailable for what is none of Odoo's."""
    wanted = [_wanted(line) for line in order.lines]
    strange = [line for line, each in zip(order.lines, wanted, strict=True) if each is None]
    if strange:
        unnamed = _("an item without a name")
        names = joined(", ", [line.product_name or unnamed for line in strange])
        raise ItemUnavailable(
            _("Odoo does not have: {names}.").format(names=names),
            external_ids=[line.external_id for line in strange if line.external_id],
        )
    if not wanted or any(each is not None and each.quantity < 1 for each in wanted):
        raise PosFailure(_("The order has no lines, or one with a quantity below 1."))
    return tuple(each for each in wanted if each is not None)


@dataclass(frozen=True, slots=True)
class Till:
    """How the lines of a point of sale are made up: its currency, how prices are shown, checked."""

    currency: str
    mode: str
    prices: Prices
    check: bool = False


def lines_of(wanted: Sequence[Wanted], goods: Goods, till: Till) -> list[TicketLine]:
    """Return the lines for Odoo. Raises ItemUnavailable (all that is not sold), PriceMismatch."""
    gone = [each for each in wanted if not _is_sold(each, goods)]
    if gone:
        names = ", ".join(each.name or each.external_id for each in gone)
        raise ItemUnavailable(
            _("Odoo does not sell now: {names}.").format(names=names),
            external_ids=dict.fromkeys(each.external_id for each in gone),
        )
    found: list[TicketLine] = []
    for each in wanted:
        product = goods.products[_product(each, goods) or 0]
        if till.check:
            _check(each, product, goods, till)
        if product.get("combo_ids"):
            found += _combo_lines(each, product, goods, till, at=len(found))
        else:
            found.append(_plain_line(each, product, goods, till))
    return found


def _wanted(line: OrderLine) -> Wanted | None:
    template = number_of(line.external_id, Kind.TEMPLATE)
    product = number_of(line.variant_external_id or line.external_id, Kind.PRODUCT)
    values: list[Chosen] = []
    parts: list[Chosen] = []
    for option in line.options:
        for kind, found in ((Kind.VALUE, values), (Kind.COMBO_ITEM, parts)):
            each = number_of(option.external_id, kind)
            if each is not None:
                found.append(Chosen(each, max(option.quantity, 1), option.unit_price))
    known = template is not None or product is not None
    if not known or len(values) + len(parts) != len(line.options):
        return None
    return Wanted(
        external_id=line.variant_external_id or line.external_id or "",
        name=line.product_name,
        quantity=line.quantity,
        price=line.unit_price,
        template=template,
        product=product,
        values=tuple(values),
        parts=tuple(parts),
    )


def _product(wanted: Wanted, goods: Goods) -> int | None:
    """Return the product of a line; a template stands for its only one."""
    if wanted.product is not None:
        return wanted.product if wanted.product in goods.products else None
    there = goods.templates.get(wanted.template or 0, ())
    return there[0] if len(there) == 1 else None


def _is_sold(wanted: Wanted, goods: Goods) -> bool:
    product = goods.products.get(_product(wanted, goods) or 0)
    if product is None or not (product["available_in_pos"] and product["sale_ok"]):
        return False
    template = number(product["product_tmpl_id"])
    if any(
        number(goods.values[each.number]["product_tmpl_id"]) != template
        if each.number in goods.values
        else True
        for each in wanted.values
    ):
        return False
    offered = {
        item.id
        for combo in product.get("combo_ids") or ()
        for item in (goods.combos[combo].items if combo in goods.combos else ())
        if item.product in goods.parts
    }
    return all(each.number in offered for each in wanted.parts)


def _plain_line(wanted: Wanted, product: Record, goods: Goods, till: Till) -> TicketLine:
    taxes = goods.taxes.known(product["taxes_id"])
    extra = sum(
        (_extra(each, goods.values[each.number]["price_extra"], till) for each in wanted.values),
        Decimal(0),
    )
    base = _base(wanted, product, goods, till)
    unit = goods.taxes.listed(base + extra, taxes, till.mode)
    names = [
        text(goods.values[each.number]["name"])
        + (f" x{each.quantity}" if each.quantity > 1 else "")
        for each in wanted.values
    ]
    chosen = f" ({', '.join(names)})" if names else ""
    return TicketLine(
        product=product["id"],
        name=f"{text(product['display_name'])}{chosen}",
        quantity=wanted.quantity,
        unit=unit,
        extra=extra,
        amounts=goods.taxes.amounts(unit, wanted.quantity, taxes, till.currency),
        taxes=tuple(taxes),
        values=tuple(each.number for each in wanted.values),
        note=", ".join(
            f"{each.quantity}x {text(goods.values[each.number]['name'])}"
            for each in wanted.values
            if each.quantity > 1
        ),
        categories=_categories(product),
    )


def _combo_lines(
    wanted: Wanted, product: Record, goods: Goods, till: Till, *, at: int
) -> list[TicketLine]:
    """Return a line of nothing for the combo, and one for each of its parts, which bear its price.

    The price is shared out by the base prices of the choices, and the last one gets the rest, as
    Odoo's own point of sale does.
    """
    chosen = [
        (each, combo, item)
        for each in wanted.parts
        for combo in (goods.combos[number_] for number_ in product["combo_ids"])
        for item in combo.items
        if item.id == each.number
    ]
    taxes = tuple(goods.taxes.known(product["taxes_id"]))
    nothing = LineAmounts(Decimal(0), Decimal(0))
    found = [
        TicketLine(
            product=product["id"],
            name=text(product["display_name"]),
            quantity=wanted.quantity,
            unit=Decimal(0),
            extra=Decimal(0),
            amounts=nothing,
            taxes=taxes,
            categories=_categories(product),
        )
    ]
    price = _base(wanted, product, goods, till)
    included = [(each, combo) for each, combo, _item in chosen if combo.free]
    shares = _shares(
        price,
        [decimal_of(combo.base_price) * each.quantity for each, combo in included],
        till.currency,
    )
    if not included:
        found[0] = _plain_line(wanted, product, goods, till)
    for each, combo, item in chosen:
        share = shares.pop(0) if combo.free else decimal_of(0)
        found.append(_part(each, combo, item, share, wanted, goods, till, at))
    return found


def _part(
    chosen: Chosen,
    combo: Combo,
    item: ComboItem,
    share: Decimal,
    wanted: Wanted,
    goods: Goods,
    till: Till,
    parent: int,
) -> TicketLine:
    product = goods.parts[item.product]
    taxes = goods.taxes.known(product["taxes_id"])
    listed_extra = decimal_of(item.extra) + (0 if combo.free else decimal_of(combo.base_price))
    extra = _extra(chosen, listed_extra, till) / chosen.quantity
    quantity = wanted.quantity * chosen.quantity
    unit = goods.taxes.listed(share / chosen.quantity + extra, taxes, till.mode)
    return TicketLine(
        product=item.product,
        name=text(product["display_name"]),
        quantity=quantity,
        unit=unit,
        extra=extra,
        amounts=goods.taxes.amounts(unit, quantity, taxes, till.currency),
        taxes=tuple(taxes),
        categories=_categories(product),
        parent=parent,
        combo=combo.id,
        combo_item=item.id,
    )


def _categories(product: Record) -> tuple[int, ...]:
    return tuple(product.get("pos_categ_ids") or ())


def _shares(price: Decimal, weights: Sequence[Decimal], currency: str) -> list[Decimal]:
    total = sum(weights, Decimal(0))
    if not weights:
        return []
    if not total:
        weights, total = [Decimal(1)] * len(weights), Decimal(len(weights))
    found = [rounded(price * weight / total, currency) for weight in weights[:-1]]
    return [*found, price - sum(found, Decimal(0))]


def _base(wanted: Wanted, product: Record, goods: Goods, till: Till) -> Decimal:
    """Return the price of one, as it was shown."""
    if wanted.price is not None:
        return major(wanted.price, till.currency)
    return _shown(product, goods, till)


def _shown(product: Record, goods: Goods, till: Till) -> Decimal:
    """Return Odoo's price of a product as the menu shows it. Raises PosFailure."""
    try:
        listed = till.prices.of(product, product)
    except Unpriced as failure:
        raise PosFailure(
            joined(": ", (text(product["display_name"]), failure.text)),
            fix=_("Correct the pricelist in Odoo."),
        ) from failure
    return goods.taxes.shown(listed, goods.taxes.known(product["taxes_id"]), till.mode)


def _extra(chosen: Chosen, listed: object, till: Till) -> Decimal:
    one = decimal_of(listed) if chosen.price is None else major(chosen.price, till.currency)
    return one * chosen.quantity


def _check(wanted: Wanted, product: Record, goods: Goods, till: Till) -> None:
    shown = _shown(product, goods, till)
    if wanted.price is not None and wanted.price != minor(shown, till.currency):
        raise PriceMismatch(
            _("{name} costs {now} in Odoo now, and {ordered} in the order.").format(
                name=text(product["display_name"]),
                now=plain(shown),
                ordered=plain(major(wanted.price, till.currency)),
            )
        )
