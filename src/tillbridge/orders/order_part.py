"""An order as JSON: for `orders list`, `orders show` and the page. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tillbridge.core.actor import by_whom
from tillbridge.core.i18n import _
from tillbridge.ledger.models import Delivery, LogEntry, OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper
from tillbridge.model.instant import to_iso
from tillbridge.model.order import UNCLEAR, OrderLine, OrderState, parse_order
from tillbridge.orders.order_words import sentence

_DELIVERED = _(
    "Delivered by the service: its signature was right, and it was on disk before it was answered."
)
_FINAL = frozenset({OrderState.COMPLETED, OrderState.CANCELLED})


def order_part(row: OrderRow, handled: LogEntry | None = None) -> dict[str, Any]:
    """Return how far an order is; instants in ISO 8601.

    `handled` {by, how, at} is who has seen to it by hand, None for nobody.
    """
    return {
        "id": row.order_id,
        "store": row.store,
        "order_number": row.order_number,
        "state": row.service_state.value,
        "wanted": row.desired_state.value,
        "ticket": row.ticket.value,
        "ticket_reference": row.ticket_reference,
        "on_paper": is_on_paper(row),
        "placed_at": _iso(row.placed_at),
        "received_at": to_iso(row.received_at),
        "written_at": _iso(row.written_at),
        "closed_at": _iso(row.closed_at),
        "attempts": row.attempts,
        "last_failure": row.last_failure,
        "reason_code": None if row.reason_code is None else row.reason_code.value,
        "message": row.message,
        "refused_calls": dict(row.refused),
        "handled": None
        if handled is None
        else {
            "by": by_whom(handled.detail.get("by")),
            "how": handled.detail.get("how"),
            "at": to_iso(handled.at),
        },
    }


def may_be_done(row: OrderRow) -> dict[str, bool]:
    """Return which actions make sense for the order: `retry`, `cancel`, `typed`, `settled`."""
    over = row.service_state in _FINAL
    closed = row.closed_at is not None
    unwritten = row.ticket in UNWRITTEN
    cancelled = row.desired_state is OrderState.CANCELLED
    left = (
        unwritten or row.ticket is TicketState.REFUSED or row.desired_state is not row.service_state
    )
    not_cancelled = "cancel" in row.refused  # the service would not: one may ask it again
    return {
        "retry": not over
        and (row.ticket is not TicketState.WITHDRAWN or not_cancelled)
        and left
        and not (closed and row.ticket is TicketState.WRITTEN),
        "cancel": not (over or closed) and (not cancelled or not_cancelled),
        "typed": not cancelled and (is_on_paper(row) or (not closed and unwritten)),
        "settled": not closed or is_on_paper(row) or bool(row.unseen),
    }


def life_part(
    row: OrderRow, entries: Sequence[LogEntry], delivery: Delivery | None
) -> list[dict[str, Any]]:
    """Return all that happened to the order, oldest first.

    Each with `text` in a sentence and `after_ms`, the time since the one before (None for the
    first).
    """
    told = [
        (
            row.received_at,
            "delivery.kept",
            {}
            if delivery is None
            else {"event_id": delivery.event_id, "delivery_id": delivery.delivery_id},
            _DELIVERED,
        ),
        *((each.at, each.event, dict(each.detail), "") for each in entries),
    ]
    life = []
    before: int | None = None
    for at, event, detail, text in told:
        life.append(
            {
                "at": to_iso(at),
                "event": event,
                "detail": detail,
                "text": text or sentence(event, detail),
                "after_ms": None if before is None else max(0, at - before),
            }
        )
        before = at
    return life


def lines_part(row: OrderRow) -> dict[str, Any] | None:
    """Return what was ordered; None once it is forgotten, or where it cannot be read.

    `lines` each with `name`, `quantity` ("?" where it is not clear), `unit_price` (minor units or
    None), `external_id` and `options`; `total`, `currency`, `instructions`, `order_type`.
    """
    if not row.payload:
        return None
    try:
        order = parse_order(json.loads(row.payload))
    except ValueError:
        return None
    return {
        "lines": [_line(line) for line in order.lines],
        "total": order.total_amount,
        "currency": order.currency,
        "instructions": order.special_instructions,
        "order_type": order.order_type,
    }


def _line(line: OrderLine) -> Mapping[str, Any]:
    return {
        "name": line.product_name,
        "quantity": line.quantity if line.quantity_clear else UNCLEAR,
        "unit_price": line.unit_price,
        "external_id": line.external_id,
        "variant": line.variant_external_id,
        "options": [
            {
                "name": option.product_name,
                "quantity": option.quantity if option.quantity_clear else UNCLEAR,
                "unit_price": option.unit_price,
            }
            for option in line.options
        ],
    }


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else to_iso(at_ms)
