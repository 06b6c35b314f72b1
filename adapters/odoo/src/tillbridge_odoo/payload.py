"""An order as Odoo's own point of sale sends it: in the words of 17, and of 18 and later. Pure."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tillbridge_odoo.amounts import rounded
from tillbridge_odoo.basket import TicketLine
from tillbridge_odoo.reference import Reference
from tillbridge_odoo.register import Register, Session
from tillbridge_odoo.taxes import LineAmounts, together

Json = dict[str, Any]
_LINE = "pos.order.line"


@dataclass(frozen=True, slots=True)
class Sale:
    """Everything there is to say of an order. `paid_by` is None for one that staff settles.

    `once` says that the company rounds taxes once an order, and not each line's. `table` is the
    table's number where the order may be put on it; `label` is what staff calls the order by,
    `note` what the customer says. `number` is the order's within its session. `notes_to_kitchen`
    says that lines have a note that kitchens' printers print. `at` is UTC, as Odoo writes it.
    """

    reference: Reference
    register: Register
    session: Session
    user: int
    lines: Sequence[TicketLine]
    at: str
    paid_by: int | None = None
    once: bool = False
    table: int | None = None
    label: str = ""
    note: str = ""
    number: int = 1
    notes_to_kitchen: bool = False

    @property
    def total(self) -> Decimal:
        """With taxes, in major units."""
        return self._amounts.included

    @property
    def tax(self) -> Decimal:
        """The taxes alone."""
        return self._amounts.included - self._amounts.excluded

    @property
    def _amounts(self) -> LineAmounts:
        currency, lines = self.register.currency, [line.amounts for line in self.lines]
        if self.once:
            return together(lines, currency)
        return LineAmounts(
            rounded(sum((each.excluded for each in lines), Decimal(0)), currency),
            rounded(sum((each.included for each in lines), Decimal(0)), currency),
        )


@dataclass(frozen=True, slots=True)
class OdooFields:
    """Which fields this Odoo has; what it does not have must not be sent since 18."""

    order: Mapping[str, object]
    line: Mapping[str, object]
    payment: Mapping[str, object]
    maps_relations: bool = True


def for_17(sale: Sale) -> Json:
    """Return the order for `create_from_ui`."""
    lines: list[list[Any]] = []
    for place, line in enumerate(sale.lines):
        values = _line(sale, place, line)
        if _has_family(sale, place):
            values |= {"id": place + 1, **_family(sale, place)}
        lines.append([0, 0, values])
    if lines and sale.note:
        lines[0][2]["customer_note"] = sale.note
    if sale.notes_to_kitchen:
        for command, note in zip(lines, kitchen_notes(sale.lines, sale.note), strict=True):
            command[2]["note"] = note
    return order_of_17(
        reference=sale.reference,
        session=sale.session.id,
        user=sale.user,
        at=sale.at,
        number=sale.number,
        amounts=_amounts(sale),
        lines=lines,
        payments=[[0, 0, each] for each in _payments(sale)],
        pricelist=sale.register.pricelist,
        table=sale.table,
    )


def order_of_17(  # noqa: PLR0913 -- an order has that many parts
    *,
    reference: Reference,
    session: int,
    user: int,
    at: str,
    number: int,
    amounts: Json,
    lines: Sequence[Any],
    payments: Sequence[Any],
    pricelist: int | None,
    table: int | None = None,
) -> Json:
    """Return an order, or a refund, as the screen of 17 sends it."""
    data = {
        "name": reference.text,
        "uid": reference.digits,
        **amounts,
        "lines": list(lines),
        "statement_ids": list(payments),
        "pos_session_id": session,
        "pricelist_id": pricelist or False,
        "partner_id": False,
        "user_id": user,
        "sequence_number": number,
        "date_order": at,
        "fiscal_position_id": False,
        "server_id": False,
        "to_invoice": False,
        "is_tipped": False,
        "tip_amount": 0,
        "access_token": str(uuid.uuid4()),
        "table_id": table or False,
        "customer_count": 1,
        "last_order_preparation_change": "{}",
        "ticket_code": "",
    }
    return {"id": reference.digits, "to_invoice": False, "data": data}


def kitchen_notes(lines: Sequence[TicketLine], note: str) -> list[str]:
    """Return the note of each line for the kitchen.

    The order's note stands with the first line of each category: a printer that prints some
    categories then has it with the first line that it prints.
    """
    seen: set[int] = set()
    notes = []
    for place, line in enumerate(lines):
        first = place == 0 or not seen.issuperset(line.categories)
        seen.update(line.categories)
        notes.append(" - ".join(each for each in (note if first else "", line.note) if each))
    return notes


def for_18(sale: Sale, fields: OdooFields) -> Json:
    """Return the order for `sync_from_ui`."""
    lines, parents = [], {}
    for place, line in enumerate(sale.lines):
        values = _line(sale, place, line) | {"price_type": "original"}
        if line.combo_item is not None:
            values["combo_item_id"] = line.combo_item
        values = {name: value for name, value in values.items() if name in fields.line}
        if line.parent is not None and fields.maps_relations:
            parent = sale.reference.uuid(f"line {line.parent}")
            parents[values["uuid"]] = {"combo_parent_id": parent}
        elif _has_family(sale, place) and not fields.maps_relations:
            values |= {"id": place + 1, **_family(sale, place)}
        lines.append([0, 0, values])
    values = {
        "uuid": sale.reference.uuid(),
        "name": sale.reference.text,
        "pos_reference": sale.reference.text,
        "access_token": str(uuid.uuid4()),
        "state": "draft" if sale.paid_by is None else "paid",
        **_amounts(sale),
        "lines": lines,
        "payment_ids": [
            [0, 0, {name: value for name, value in each.items() if name in fields.payment}]
            for each in _payments(sale)
        ],
        "session_id": sale.session.id,
        "company_id": sale.register.company,
        "pricelist_id": sale.register.pricelist or False,
        "partner_id": False,
        "user_id": sale.user,
        "sequence_number": sale.number,
        "tracking_number": str(sale.session.id % 10 * 100 + sale.number % 100),
        "date_order": sale.at,
        "fiscal_position_id": False,
        "to_invoice": False,
        "is_tipped": False,
        "tip_amount": 0,
        "floating_order_name": sale.label,
        _note_field(fields): sale.note,
        "customer_count": 1,
    }
    if sale.table is not None:
        values["table_id"] = sale.table
    order = {name: value for name, value in values.items() if _is_stored(fields.order.get(name))}
    if parents:
        order["relations_uuid_mapping"] = {_LINE: parents}
    return order


def _amounts(sale: Sale) -> Json:
    total = float(sale.total)
    return {
        "amount_paid": 0 if sale.paid_by is None else total,
        "amount_total": total,
        "amount_tax": float(sale.tax),
        "amount_return": 0,
    }


def _line(sale: Sale, place: int, line: TicketLine) -> Json:
    return {
        "qty": line.quantity,
        "price_unit": float(line.unit),
        "price_subtotal": float(line.amounts.excluded),
        "price_subtotal_incl": float(line.amounts.included),
        "discount": 0,
        "product_id": line.product,
        "tax_ids": [[6, False, list(line.taxes)]],
        "pack_lot_ids": [],
        "attribute_value_ids": [[6, False, list(line.values)]],
        "full_product_name": line.name,
        "price_extra": float(line.extra),
        "customer_note": "",
        "uuid": sale.reference.uuid(f"line {place}"),
    }


def _payments(sale: Sale) -> list[Json]:
    if sale.paid_by is None:
        return []
    return [
        {
            "name": sale.at,
            "payment_date": sale.at,
            "payment_method_id": sale.paid_by,
            "amount": float(sale.total),
            "payment_status": "",
            "ticket": "",
            "card_type": "",
            "cardholder_name": "",
            "transaction_id": sale.reference.key,
            "uuid": sale.reference.uuid("payment"),
        }
    ]


def _has_family(sale: Sale, place: int) -> bool:
    return sale.lines[place].parent is not None or any(each.parent == place for each in sale.lines)


def _family(sale: Sale, place: int) -> Json:
    """Return how a combo's line and its parts name each other: by their place, from 1."""
    parent = sale.lines[place].parent
    if parent is not None:
        return {"combo_parent_id": parent + 1, "combo_line_ids": []}
    children = [at + 1 for at, each in enumerate(sale.lines) if each.parent == place]
    return {"combo_parent_id": False, "combo_line_ids": children}


def _note_field(fields: OdooFields) -> str:
    for name in ("general_customer_note", "general_note", "note"):
        if name in fields.order:
            return name
    return "note"


def _is_stored(field: object) -> bool:
    return isinstance(field, Mapping) and field.get("store", True) is not False
