"""Gives back, in Odoo, what an order of ours was paid with: by a refund, as staff would make one.

A refund is a second order whose lines each name the line that they take back. 17 gets it whole and
paid, as its own screen sends one: the right Point of Sale: User is enough for that, and no half of
it is left if something fails. 18 and 19 make it by a method of the order, open until it is paid
out. What is refunded already is looked for before anything is done, so that cancelling twice pays
out once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tillbridge.adapter import PosFailure
from tillbridge.adapter.texts import _
from tillbridge_odoo.amounts import decimal_of, rounded
from tillbridge_odoo.listing import LINE, ORDER, left_of
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.payload import order_of_17
from tillbridge_odoo.reference import Reference
from tillbridge_odoo.register import Register, next_number, number, open_session, text

_REFUND = ("uuid", "access_token", "session_id", "amount_total", "amount_tax")
_SOLD = (
    "product_id",
    "qty",
    "price_unit",
    "price_extra",
    "price_subtotal",
    "price_subtotal_incl",
    "discount",
    "tax_ids",
    "attribute_value_ids",
    "full_product_name",
)


@dataclass(frozen=True, slots=True)
class Paid:
    """An order of ours that is paid, and the method it was paid with."""

    id: int
    reference: Reference
    method: object


def paid_by_us(odoo: Odoo, order: int, reference: Reference) -> Paid:
    """Return the order. Raises PosFailure for one that staff has settled."""
    payments = odoo.read(
        "pos.payment",
        [["pos_order_id", "=", order]],
        ["payment_method_id", "transaction_id"],
    )
    if any(text(each["transaction_id"]) != reference.key for each in payments):
        raise PosFailure(
            _("Staff has settled the order {digits} in Odoo.").format(digits=reference.digits),
            fix=_("Give the money of the order {digits} back in Odoo.").format(
                digits=reference.digits
            ),
        )
    method = payments[0]["payment_method_id"] if payments else False
    return Paid(order, reference, number(method) or False)


def give_back(odoo: Odoo, paid: Paid) -> None:
    """Refund an order of 18 or 19. Raises PosFailure where Odoo leaves the refund open."""
    refunds = _open_refunds(odoo, paid.id)
    if not refunds and left_of(odoo, [paid.id]):
        odoo.call(ORDER, "refund", [paid.id], changes=True)
        refunds = _open_refunds(odoo, paid.id)
    for refund in refunds:
        _pay_out(odoo, refund, paid)
    if _open_refunds(odoo, paid.id) or left_of(odoo, [paid.id]):
        raise _not_given_back(paid)


def give_back_17(odoo: Odoo, paid: Paid, register: Register, at: str) -> None:
    """Refund an order of 17, at the moment `at` (UTC, as Odoo writes it).

    A refund that is open, of staff or of an earlier version of the bridge, is cancelled first.
    Raises PosFailure where no session is open, or where it is not given back.
    """
    left = left_of(odoo, [paid.id])
    drafts = [each["id"] for each in _open_refunds(odoo, paid.id)]
    if not left and not drafts:
        return
    session = open_session(odoo, register)
    if session is None:
        raise PosFailure(
            _("To give money back you need to open a session: {name} has none.").format(
                name=register.name
            ),
            fix=_("Open {name} in Odoo and refund {digits} there.").format(
                name=register.name, digits=paid.reference.digits
            ),
        )
    if drafts:
        context = {"active_ids": drafts, "active_model": ORDER}
        odoo.call(ORDER, "action_pos_order_cancel", drafts, changes=True, context=context)
        left = left_of(odoo, [paid.id])
    lines = _taken_back(odoo, left.get(paid.id, {}), paid, register)
    total, net = (
        rounded(sum((Decimal(str(line[name])) for line in lines), Decimal(0)), register.currency)
        for name in ("price_subtotal_incl", "price_subtotal")
    )
    payment = {
        "name": at,
        "payment_date": at,
        "payment_method_id": paid.method,
        "amount": float(total),
        "transaction_id": paid.reference.key,
    }
    refund = order_of_17(
        reference=paid.reference.refund(paid.id),
        session=session.id,
        user=odoo.uid,
        at=at,
        number=next_number(odoo, session),
        amounts={
            "amount_paid": float(total),
            "amount_total": float(total),
            "amount_tax": float(total - net),
            "amount_return": 0,
        },
        lines=[[0, 0, line] for line in lines],
        payments=[[0, 0, payment]],
        pricelist=register.pricelist,
    )
    context = dict(register.context)
    odoo.call(ORDER, "create_from_ui", [refund], False, changes=True, context=context)  # noqa: FBT003 -- as Odoo has it
    if left_of(odoo, [paid.id]):
        raise _not_given_back(paid)


def _taken_back(
    odoo: Odoo, left: Mapping[int, float], paid: Paid, register: Register
) -> list[dict[str, Any]]:
    """Return a line for what is left of each, with its share of the amounts below zero."""
    sold = odoo.read_ids(LINE, sorted(left), _SOLD)
    lines = []
    for each, line in sold.items():
        quantity = Decimal(str(left[each]))
        share = -quantity / decimal_of(line["qty"])
        amounts = {
            name: float(rounded(decimal_of(line[name]) * share, register.currency))
            for name in ("price_subtotal", "price_subtotal_incl")
        }
        lines.append(
            {
                "qty": -float(quantity),
                "price_unit": float(line["price_unit"]),
                "price_extra": float(line.get("price_extra") or 0),
                "discount": float(line.get("discount") or 0),
                "product_id": number(line["product_id"]),
                "tax_ids": [[6, False, list(line.get("tax_ids") or ())]],
                "attribute_value_ids": [[6, False, list(line.get("attribute_value_ids") or ())]],
                "full_product_name": text(line.get("full_product_name")),
                "pack_lot_ids": [],
                "refunded_orderline_id": each,
                "uuid": paid.reference.refund(paid.id).uuid(f"line {each}"),
                **amounts,
            }
        )
    return lines


def _not_given_back(paid: Paid) -> PosFailure:
    return PosFailure(
        _("Odoo has not given back the order {digits}.").format(digits=paid.reference.digits),
        fix=_("Refund the order {digits} in Odoo, or settle its open refund there.").format(
            digits=paid.reference.digits
        ),
    )


def _open_refunds(odoo: Odoo, order: int) -> list[Record]:
    lines = odoo.search(LINE, [["order_id", "=", order]])
    taken_back = odoo.read(LINE, [["refunded_orderline_id", "in", lines]], ["order_id"])
    ids = sorted({number(line["order_id"]) or 0 for line in taken_back})
    domain = [["id", "in", ids], ["state", "=", "draft"]]
    return odoo.read(ORDER, domain, _REFUND)


def _pay_out(odoo: Odoo, refund: Record, paid: Paid) -> None:
    """Pay the refund the way its order was paid, as the point of sale of 18 and 19 does.

    It is the one way that a user with the right Point of Sale: User has there.
    """
    amount = float(refund["amount_total"])
    payment = {
        "amount": amount,
        "payment_method_id": paid.method,
        "uuid": paid.reference.uuid(f"refund {refund['id']}"),
    }
    asked = {
        "uuid": refund["uuid"],
        "access_token": refund["access_token"],
        "session_id": number(refund["session_id"]),
        "state": "paid",
        "lines": [],
        "payment_ids": [[0, 0, payment]],
        "amount_total": amount,
        "amount_tax": float(refund["amount_tax"]),
        "amount_paid": amount,
        "amount_return": 0,
    }
    odoo.call(ORDER, "sync_from_ui", [asked], changes=True)
