"""What people call an order, and which order they mean by it."""

from collections.abc import Sequence

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.ledger.orders import OrderRow
from tillbridge.model.instant import to_iso

_LONGEST_NUMBER = 32
_LISTED = 10


def called(row: OrderRow) -> str:
    """Return what people call the order: its number, or its id where it has none."""
    number = row.order_number.strip()
    printable = number.isprintable() and len(number) <= _LONGEST_NUMBER
    return number if number and printable else row.order_id


def the_one(rows: Sequence[OrderRow], name: str) -> OrderRow:
    """Return the order that is meant by an id or a number.

    Raises BridgeError where there is none, or where several have that number: it lists them.
    """
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise BridgeError(
            _("There is no order {order}.").format(order=name),
            fix=_("See which there are with: tillbridge orders list"),
        )
    listed = [f"{row.order_id} ({row.store}, {to_iso(row.received_at)})" for row in rows[:_LISTED]]
    more = len(rows) - len(listed)
    if more:
        listed.append(_("and {count} more").format(count=more))
    raise BridgeError(
        _("Several orders have the number {order}: {orders}.").format(
            order=name, orders=", ".join(listed)
        ),
        fix=_("Name the one you mean by its id."),
    )
