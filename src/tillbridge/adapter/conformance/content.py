"""What is on a ticket: read back from the till, and compared with the order field by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tillbridge.adapter.conformance.rig import CannotDo, Rig, RigTicket, TicketLine
from tillbridge.adapter.conformance.subject import (
    Subject,
    Violation,
    items_to_order,
    made_order,
    one_ticket,
    order_line,
    writer,
)
from tillbridge.model.catalogue import AddOn, AddOnGroup, Catalogue, Item, Variant
from tillbridge.model.order import Order

# What a till may not keep; quality.toml then says why, under [not_kept].
KEPT = ("note", "order_type", "unit_price", "total", "tax")

SAMPLE_MENU = Catalogue.of(
    (
        Item(
            "sku-pizza",
            "Pizza Crème fraîche",
            950,
            addon_groups=("grp-extras",),
            variants=(
                Variant("sku-pizza-s", "Small", 950),
                Variant("sku-pizza-l", "Large", 1235),
            ),
        ),
        Item("sku-soup", "Борщ 寿司", 725),
        Item("sku-fish", "Fish & Chips", 1115, addon_groups=("grp-extras",)),
    ),
    add_ons=(AddOn("add-cheese", "Extra cheese", 115), AddOn("add-olives", "Olives", 80)),
    addon_groups=(
        AddOnGroup(
            "grp-extras", "Extras", min_select=0, max_select=5, add_ons=("add-cheese", "add-olives")
        ),
    ),
)
_ORDERS = (
    (
        "ord_content_delivery",
        "delivery",
        "Ring twice: 2nd floor, «Müller», no onions, allergy!",
    ),
    ("ord_content_pickup", "pickup", "玉ねぎ抜き (no onions)"),
    ("ord_content_table", "dine_in", "Table 7. Nut allergy"),
)
_VAT = 7  # percent
_FEES = {"delivery_fee": 290, "tip": 150, "discount": 60}


def writes_what_was_ordered(subject: Subject) -> str:
    """Write orders that differ in everything: each ticket has exactly what was ordered."""
    with subject.till() as rig:
        menu = _menu_to_order(rig)
        pos = writer(rig.open())
        orders = [
            made_order(
                order_id,
                [_line(menu, each, place, turn) for place, each in enumerate(menu.items.values())],
                _VAT,
                _FEES,
                order_number=f"{1001 + turn}",
                order_type=kind,
                special_instructions=_plain(note) if rig.ascii_only else note,
            )
            for turn, (order_id, kind, note) in enumerate(_ORDERS)
        ]
        unsaid: list[str] = []
        for order in orders:
            pos.write_ticket(order, order.id)
            ticket = one_ticket(
                rig,
                order.id,
                "writing it once",
                fix="Write it once, under its key.",
                also=[each.id for each in orders],
            )
            unsaid += _compare(subject, order, ticket)
        if unsaid:
            names = ", ".join(dict.fromkeys(unsaid))
            raise Violation(
                f"The tickets lack: {names}.",
                fix="Write it, and let the rig's tickets() return it; or, if the till cannot store"
                " it, say why in quality.toml, [not_kept].",
            )
        parts = ["quantities"]
        parts += ["variants"] if any(item.variants for item in menu.items.values()) else []
        parts += ["add-ons"] if menu.add_ons else []
        parts += [name for name in KEPT if name not in subject.not_kept]
        return f"{len(orders)} orders: {', '.join(parts)}"


def _line(menu: Catalogue, item: Item, place: int, turn: int) -> Mapping[str, Any]:
    """Return a line for an item: another size, number and add-ons in each place and turn."""
    variant = item.variants[(place + turn + 1) % len(item.variants)] if item.variants else None
    offered = [menu.add_ons[each] for key in item.addon_groups for each in _offered(menu, key)]
    chosen = [(add_on, number) for number, add_on in enumerate(offered[:2], 1 + turn % 2)]
    return order_line(place, item, 2 + (place + turn) % 3, variant, chosen, _VAT)


def _plain(text: str) -> str:
    return text.encode("ascii", "ignore").decode().strip()


def _offered(menu: Catalogue, group: str) -> Sequence[str]:
    return menu.addon_groups[group].add_ons if group in menu.addon_groups else ()


def _menu_to_order(rig: Rig) -> Catalogue:
    """Return what the till sells now, with all that its rig can sell."""
    try:
        return rig.sell_menu(SAMPLE_MENU, "EUR")
    except CannotDo:
        plain = [replace(item, variants=(), addon_groups=()) for item in SAMPLE_MENU.items.values()]
        sold = items_to_order(rig, plain)
        # Where nothing can be sold, whatever is ordered is taken: also variants and add-ons.
        return SAMPLE_MENU if sold is plain else Catalogue.of(sold)


def _compare(subject: Subject, order: Order, ticket: RigTicket) -> Sequence[str]:
    """Return what the rig does not say. Raises Violation for what differs."""
    wanted = RigTicket.of(order.payload)
    lines = _lines_of(ticket)
    if len(lines) != len(ticket.lines):
        raise CannotDo(
            "The rig says ids and quantities of a ticket, and nothing else: let tickets() return"
            " RigTicket(key, lines=(TicketLine(...), ...), note=..., order_type=..., total=...,"
            " tax=...)."
        )
    stored = [name for name in KEPT if name not in subject.not_kept]
    unsaid: list[str] = []
    wrong = list(_in_lines(order, wanted, lines, stored, unsaid))
    for name in ("note", "order_type", "total", "tax"):
        ordered, found = getattr(wanted, name), getattr(ticket, name)
        if name not in stored:
            if found is not None:
                wrong.append(
                    f"quality.toml says that {name} is not kept, and the till has it ({found!r})"
                )
        elif found is None:
            unsaid.append(name)
        elif (ordered not in found) if name == "note" else (ordered != found):
            wrong.append(f"{name}: ordered {ordered!r}, on the ticket {found!r}")
    if wrong:
        raise Violation(
            f"The ticket of {order.id} ({order.order_type}) differs: {'; '.join(wrong)}.",
            fix="Write all of order.lines (external_id, variant_external_id, quantity, options) and"
            " the order's note, type and amounts; amounts are minor units.",
        )
    return unsaid


def _lines_of(ticket: RigTicket) -> list[TicketLine]:
    return [each for each in ticket.lines if isinstance(each, TicketLine)]


def _in_lines(
    order: Order,
    wanted: RigTicket,
    lines: Sequence[TicketLine],
    stored: Sequence[str],
    unsaid: list[str],
) -> Iterator[str]:
    left = list(lines)
    pairs = zip(_lines_of(wanted), order.lines, strict=True)
    for number, (line, ordered) in enumerate(pairs, 1):
        name = f"line {number} ({ordered.product_name!r}, {line.external_id})"
        found = _take(line, left)
        if found is None:
            yield f"{name} is missing"
            continue
        yield from (f"{name}: {each}" for each in _in_line(line, found))
        if "unit_price" not in stored:
            continue
        if found.unit_price is None:
            unsaid.append("unit_price of the lines")
        elif found.unit_price != line.unit_price:
            yield f"{name}: unit_price: ordered {line.unit_price}, on the ticket {found.unit_price}"
    for line in left:
        yield f"a line of {line.external_id} ({line.quantity} x) was not ordered"


def _in_line(wanted: TicketLine, found: TicketLine) -> Iterator[str]:
    if _sold(found) != _sold(wanted):
        what = "variant" if wanted.variant_external_id else "item"
        yield f"{what}: ordered {_sold(wanted)}, on the ticket {_sold(found)}"
    if found.quantity != wanted.quantity:
        yield f"quantity: ordered {wanted.quantity}, on the ticket {found.quantity}"
    if dict(found.options) != dict(wanted.options):
        yield (f"options: ordered {_shown(wanted.options)}, on the ticket {_shown(found.options)}")


def _take(wanted: TicketLine, left: list[TicketLine]) -> TicketLine | None:
    """Take the line that is meant: of the same thing, else of the same item, else the next."""
    for same in (
        lambda each: _sold(each) == _sold(wanted),
        lambda each: each.external_id == wanted.external_id,
    ):
        if (found := next(filter(same, left), None)) is not None:
            left.remove(found)
            return found
    return None


def _sold(line: TicketLine) -> str:
    return line.variant_external_id or line.external_id


def _shown(options: Mapping[str, int]) -> str:
    return ", ".join(f"{number} x {key}" for key, number in options.items()) or "none"
