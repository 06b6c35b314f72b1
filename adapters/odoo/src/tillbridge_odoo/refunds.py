"""Gives back, in Odoo, what an order of ours was paid with: by a refund, as staff would make one.

Odoo makes a refund as a second order, open until it is paid out. It has its order's receipt number
up to 18, and one of its own since 19, so that it is known by its lines: each names the line that it
takes back. What is refunded already, or has a refund that is still open, is looked for before
anything is done, so that cancelling twice pays out once.
"""

from tillbridge.adapter import PosFailure
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.reference import Reference
from tillbridge_odoo.register import number, text

_ORDER = "pos.order"
_LINE = "pos.order.line"
_REFUND = (
    "uuid",
    "access_token",
    "session_id",
    "config_id",
    "amount_total",
    "amount_tax",
)
_WIZARD = "pos.make.payment"


def give_back(odoo: Odoo, order: Record, reference: Reference) -> None:
    """Refund an order that the bridge has paid.

    Raises PosFailure for one that staff has settled, and where Odoo leaves the refund open.
    """
    payments = odoo.read(
        "pos.payment",
        [["pos_order_id", "=", order["id"]]],
        ["payment_method_id", "transaction_id"],
    )
    if any(text(each["transaction_id"]) != reference.key for each in payments):
        raise PosFailure(
            f"Staff has settled the order {reference.digits} in Odoo: give the money back there."
        )
    refunds = _open_refunds(odoo, order)
    if not refunds and _is_left(odoo, order):
        odoo.call(_ORDER, "refund", [order["id"]], changes=True)
        refunds = _open_refunds(odoo, order)
    method = payments[0]["payment_method_id"][0] if payments else False
    for refund in refunds:
        if "uuid" in refund:
            _pay_out(odoo, refund, method, reference)
        else:
            _pay_out_17(odoo, refund, method)
    if _open_refunds(odoo, order) or _is_left(odoo, order):
        raise PosFailure(f"Odoo has not given back the order {reference.digits}: refund it there.")


def _is_left(odoo: Odoo, order: Record) -> bool:
    """Return whether a part of the order is in no refund, open or paid out."""
    lines = odoo.read(_LINE, [["order_id", "=", order["id"]]], ["qty", "refunded_qty"])
    return any(line["refunded_qty"] < line["qty"] for line in lines)


def _open_refunds(odoo: Odoo, order: Record) -> list[Record]:
    lines = odoo.search(_LINE, [["order_id", "=", order["id"]]])
    taken_back = odoo.read(_LINE, [["refunded_orderline_id", "in", lines]], ["order_id"])
    ids = sorted({number(line["order_id"]) or 0 for line in taken_back})
    domain = [["id", "in", ids], ["state", "=", "draft"]]
    return odoo.read(_ORDER, domain, _REFUND)


def _pay_out(odoo: Odoo, refund: Record, method: object, reference: Reference) -> None:
    """Pay the refund the way its order was paid, as the point of sale of 18 and 19 does.

    It is the one way that a user with the right Point of Sale: User has there.
    """
    amount = float(refund["amount_total"])
    payment = {
        "amount": amount,
        "payment_method_id": method,
        "uuid": reference.uuid(f"refund {refund['id']}"),
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
    odoo.call(_ORDER, "sync_from_ui", [asked], changes=True)


def _pay_out_17(odoo: Odoo, refund: Record, method: object) -> None:
    """Pay the refund the way its order was paid, by the wizard of the back office."""
    values = {
        "config_id": refund["config_id"][0],
        "amount": float(refund["amount_total"]),
        "payment_method_id": method,
    }
    context = {"active_id": refund["id"], "active_ids": [refund["id"]], "active_model": _ORDER}
    wizard = odoo.call(_WIZARD, "create", values, changes=True, context=context)
    odoo.call(_WIZARD, "check", [wizard], changes=True, context=context)
