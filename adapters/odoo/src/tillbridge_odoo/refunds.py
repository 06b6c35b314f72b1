"""Gives back, in Odoo, what an order of ours was paid with: by a refund, as staff would make one.

Odoo makes a refund as a second order with the same receipt number, open until it is paid out. Both
steps are looked for before they are done, so that cancelling twice pays out once.
"""

from tillbridge.adapter import PosFailure
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.reference import Reference
from tillbridge_odoo.register import text

_ORDER = "pos.order"
_WIZARD = "pos.make.payment"
_PAID = {"paid", "done", "invoiced"}


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
    refund = _refund_of(odoo, order)
    if refund is None:
        odoo.call(_ORDER, "refund", [order["id"]], changes=True)
        refund = _refund_of(odoo, order)
    if refund is not None and refund["state"] == "draft":
        method = payments[0]["payment_method_id"][0] if payments else False
        _pay_out(odoo, refund, method)
        refund = _refund_of(odoo, order)
    if refund is None or refund["state"] not in _PAID:
        raise PosFailure(f"Odoo has not given back the order {reference.digits}: refund it there.")


def _refund_of(odoo: Odoo, order: Record) -> Record | None:
    domain = [
        ["pos_reference", "=", order["pos_reference"]],
        ["id", ">", order["id"]],
        ["amount_total", "<=", 0],
        ["state", "!=", "cancel"],
    ]
    found = odoo.read(_ORDER, domain, ["state", "amount_total", "config_id"], limit=1)
    return found[0] if found else None


def _pay_out(odoo: Odoo, refund: Record, method: object) -> None:
    """Pay the refund the way its order was paid."""
    values = {
        "config_id": refund["config_id"][0],
        "amount": float(refund["amount_total"]),
        "payment_method_id": method,
    }
    context = {"active_id": refund["id"], "active_ids": [refund["id"]], "active_model": _ORDER}
    wizard = odoo.call(_WIZARD, "create", values, changes=True, context=context)
    odoo.call(_WIZARD, "check", [wizard], changes=True, context=context)
