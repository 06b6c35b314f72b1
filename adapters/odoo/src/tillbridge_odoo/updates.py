"""How orders of ours go on in Odoo, which keeps a state and no news: it is looked at each time.

| in Odoo | written as draft | written as paid |
| sent to the kitchen | preparing | preparing |
| paid | completed | accepted |
| posted, invoiced | completed | completed |
| cancelled | rejected | rejected |

One that was deleted leaves nothing here; the core misses it among the tickets that are listed.
"""

import json
from collections.abc import Sequence

from tillbridge.adapter import ListedTicket, RejectReason, TicketStatus, TicketUpdate
from tillbridge.adapter.texts import _
from tillbridge_odoo.failures import asking
from tillbridge_odoo.listing import ORDER, Listed, Listing
from tillbridge_odoo.odoo import Odoo
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.register import text

PREPARATION = "last_order_preparation_change"


class Updates:
    """The news of orders that Odoo has, each told until it is handled."""

    def __init__(self, odoo: Odoo, options: OdooOptions) -> None:
        self._odoo = odoo
        self._listing = Listing(odoo, options)
        self._paid = options.orders == "paid"
        self._handled: set[str] = set()

    def tickets(self) -> Sequence[ListedTicket]:
        """Return all orders of the last two days, refunds apart. Raises PosOffline."""
        with asking():
            return self._listing.tickets()

    def read(self) -> Sequence[TicketUpdate]:
        """Return what is not handled yet, oldest order first. Raises PosOffline."""
        with asking():
            orders = _one_of_each(self._listing.orders())
            prepared = self._prepared(orders)
        found = []
        for order in orders:
            status = _status(order.state, paid=self._paid)
            if status in {None, TicketStatus.ACCEPTED} and order.id in prepared:
                status = TicketStatus.PREPARING
            if status is not None:
                found.append(_update(order.key, status))
        return [update for update in found if update.key not in self._handled]

    def handled(self, update: TicketUpdate) -> None:
        """Take note that a piece of news is kept."""
        self._handled.add(update.key)

    def _prepared(self, orders: Sequence[Listed]) -> set[int]:
        """Return the orders whose lines have been sent to the kitchen."""
        open_ = [each.id for each in orders if each.state in {"draft", "paid"}]
        if not open_:
            return set()
        found = self._odoo.read_ids(ORDER, open_, [PREPARATION])
        return {each for each, record in found.items() if is_sent(text(record.get(PREPARATION)))}


def _one_of_each(orders: Sequence[Listed]) -> list[Listed]:
    """Return the oldest order of each key; of several, the oldest that staff has not cancelled."""
    found: dict[str, Listed] = {}
    for order in orders:
        known = found.get(order.key)
        if known is None or (known.state == "cancel" and order.state != "cancel"):
            found[order.key] = order
    return list(found.values())


def _status(state: object, *, paid: bool) -> TicketStatus | None:
    match state:
        case "paid":
            return TicketStatus.ACCEPTED if paid else TicketStatus.COMPLETED
        case "done" | "invoiced":
            return TicketStatus.COMPLETED
        case "cancel":
            return TicketStatus.REJECTED
        case _:
            return None


def _update(key: str, status: TicketStatus) -> TicketUpdate:
    rejected = status is TicketStatus.REJECTED
    return TicketUpdate(
        key=f"{key} {status}",
        order_id=key,
        status=status,
        reason=RejectReason.OTHER if rejected else None,
        message=_("It was cancelled in Odoo.") if rejected else "",
    )


def is_sent(changes: str) -> bool:
    """Return whether the last preparation names lines: by key in 17, under `lines` since."""
    try:
        document = json.loads(changes or "{}")
    except ValueError:
        return False
    if not isinstance(document, dict):
        return False
    lines = document.get("lines", document)
    return isinstance(lines, dict) and bool(lines)
