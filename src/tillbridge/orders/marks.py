"""What the ledger keeps of an order's life. Each function is one job for the ledger's writer.

Every job looks at the row before it changes it: a customer's or a person's cancel, the POS's own
news and order.delivered may have come first.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sqlalchemy import Connection

from tillbridge.ledger import order_log, orders
from tillbridge.ledger.orders import UNWRITTEN, OrderRow, TicketState, is_on_paper
from tillbridge.model.order import OrderState
from tillbridge.orders.closing import close_if_done, is_to_be_withdrawn
from tillbridge.orders.lifecycle import is_final, merge_wanted
from tillbridge.orders.reasons import Cancellation

HowEnded = Literal["never_written", "taken_back", "left_to_person"]
# What a person has done: typed the order into the till, or seen to it in some other way.
ByHand = Literal["typed", "settled"]
BY_HAND = "by hand"  # the reference of a ticket that a person typed


def mark_writing(connection: Connection, store: str, order_id: str, now_ms: int) -> bool:
    """Note that a write begins, before the POS is called (invariant 2).

    False where there is nothing to write: closed, cancelled, or in the POS already.
    """
    row = orders.get_order(connection, store, order_id)
    if row is None or row.closed_at is not None or row.wanted is OrderState.CANCELLED:
        return False
    if row.ticket is TicketState.WAITING:
        orders.update_order(
            connection, store, order_id, now_ms, ticket=TicketState.WRITING, attempts=1
        )
    return row.ticket in UNWRITTEN


def mark_written(
    connection: Connection, order: OrderRow, reference: str, now_ms: int, *, accepts: bool
) -> OrderRow | None:
    """Note that the POS has the ticket; with `accepts` that is enough to accept the order.

    Returns the row as it is now.
    """
    store, order_id = order.store, order.order_id
    row = orders.get_order(connection, store, order_id)
    if row is None:
        return None
    wanted = merge_wanted(row.wanted, OrderState.ACCEPTED) if accepts else row.wanted
    first = row.ticket in UNWRITTEN
    orders.update_order(
        connection,
        store,
        order_id,
        now_ms,
        ticket=TicketState.WRITTEN if first else row.ticket,
        ticket_reference=reference or row.ticket_reference,
        written_at=row.written_at or now_ms,
        wanted=wanted,
        last_failure="",
    )
    if first:
        order_log.log_event(
            connection, store, order_id, "order.written", now_ms, reference=reference
        )
    return orders.get_order(connection, store, order_id)


def mark_on_paper(
    connection: Connection, order: OrderRow, reference: str, why: str, now_ms: int, *, accepts: bool
) -> None:
    """Note that the order was printed because the till could not take it."""
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or row.ticket not in UNWRITTEN:
        return
    orders.update_order(
        connection,
        row.store,
        row.order_id,
        now_ms,
        ticket=TicketState.WRITTEN,
        ticket_reference=reference,
        written_at=now_ms,
        wanted=merge_wanted(row.wanted, OrderState.ACCEPTED) if accepts else row.wanted,
    )
    order_log.log_event(connection, row.store, row.order_id, "order.on_paper", now_ms, why=why)


def mark_failed(connection: Connection, order: OrderRow, failure: str, now_ms: int) -> bool:
    """Note why the POS does not have the ticket yet; it stays begun.

    False where it waits for the POS no more: a person has seen to it meanwhile.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or row.ticket not in UNWRITTEN:
        return False
    orders.update_order(
        connection,
        row.store,
        row.order_id,
        now_ms,
        attempts=row.attempts + 1,
        last_failure=failure,
    )
    if row.last_failure != failure:
        order_log.log_event(
            connection, row.store, row.order_id, "order.wait", now_ms, reason=failure
        )
    return row.closed_at is None


def mark_held(connection: Connection, order: OrderRow, note: str, now_ms: int) -> bool:
    """Note that the order waits for a person before it is written; told once.

    False where a person has seen to it meanwhile.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or row.ticket not in UNWRITTEN:
        return False
    orders.update_order(connection, row.store, row.order_id, now_ms, last_failure=note)
    if row.last_failure.partition(":")[0] != "held":
        order_log.log_event(connection, row.store, row.order_id, "order.held", now_ms)
    return row.closed_at is None


def cancel(
    connection: Connection,
    order: OrderRow,
    cancellation: Cancellation,
    now_ms: int,
    *,
    pos_has_none: bool,
    by: str = "",
) -> OrderRow | None:
    """Note that the order is to be cancelled; `pos_has_none` where the POS surely has no ticket.

    `by` names the person who asks for it, "" for the bridge itself. A person may cancel what the
    POS calls completed, as long as the service does not. Returns the row as it is now.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or row.closed_at is not None or is_final(row.told):
        return row
    ticket = TicketState.REFUSED if pos_has_none else row.ticket
    if row.ticket is TicketState.WAITING:
        ticket = TicketState.REFUSED
    may = bool(by) or merge_wanted(row.wanted, OrderState.CANCELLED) is OrderState.CANCELLED
    if not may or row.wanted is OrderState.CANCELLED:
        orders.update_order(connection, row.store, row.order_id, now_ms, ticket=ticket)
        close_if_done(connection, row.store, row.order_id, now_ms)
        return replace(row, ticket=ticket)
    orders.update_order(
        connection,
        row.store,
        row.order_id,
        now_ms,
        wanted=OrderState.CANCELLED,
        reason_code=cancellation.code,
        message=cancellation.message,
        ticket=ticket,
    )
    order_log.log_event(
        connection,
        row.store,
        row.order_id,
        "order.to_cancel",
        now_ms,
        code=cancellation.code,
        message=cancellation.message,
        **({"by": by} if by else {}),
    )
    return orders.get_order(connection, row.store, row.order_id)


def mark_withdrawn(connection: Connection, order: OrderRow, now_ms: int, *, how: HowEnded) -> None:
    """Note that nothing more is done about the ticket of a cancelled order.

    Nothing is noted where a person has had the order taken up again meanwhile.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or not is_to_be_withdrawn(row):
        return
    orders.update_order(
        connection,
        row.store,
        row.order_id,
        now_ms,
        ticket=TicketState.REFUSED if how == "never_written" else TicketState.WITHDRAWN,
    )
    order_log.log_event(connection, row.store, row.order_id, "order.withdrawn", now_ms, how=how)
    close_if_done(connection, row.store, row.order_id, now_ms)


def mark_told(
    connection: Connection,
    order: OrderRow,
    told: OrderState,
    event: str,
    now_ms: int,
    detail: Mapping[str, object],
) -> bool:
    """Note what the service has been told; return whether that closes the order.

    Nothing is noted where the service has completed it meanwhile.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    if row is None or row.told is OrderState.COMPLETED:
        return True
    order_log.log_event(connection, row.store, row.order_id, event, now_ms, **detail)
    orders.update_order(connection, row.store, row.order_id, now_ms, told=told)
    return close_if_done(connection, row.store, row.order_id, now_ms)


def mark_closed(
    connection: Connection, order: OrderRow, now_ms: int, detail: Mapping[str, object]
) -> None:
    """Close an order of which the service hears nothing more."""
    orders.update_order(connection, order.store, order.order_id, now_ms, closed_at=now_ms)
    order_log.log_event(connection, order.store, order.order_id, "order.closed", now_ms, **detail)


def mark_handled(
    connection: Connection, order: OrderRow, how: ByHand, now_ms: int, *, by: str
) -> OrderRow | None:
    """Note that the person `by` has seen to the order, so that the till is not tried any more.

    Typed into the till it is accepted like any order that is written; settled it is closed. One
    that is on paper may be over meanwhile. Why the till did not have it (`last_failure`) stays.
    Returns the row as it is now.
    """
    row = orders.get_order(connection, order.store, order.order_id)
    on_paper = row is not None and is_on_paper(row)
    if row is None or (row.closed_at is not None and not on_paper):
        return row
    if on_paper:
        _take_over(connection, row, how, now_ms)
    elif how == "typed" and row.ticket in UNWRITTEN:
        orders.update_order(
            connection,
            row.store,
            row.order_id,
            now_ms,
            ticket=TicketState.WRITTEN,
            ticket_reference=BY_HAND,
            written_at=now_ms,
            wanted=merge_wanted(row.wanted, OrderState.ACCEPTED),
        )
    else:
        orders.update_order(connection, row.store, row.order_id, now_ms, closed_at=now_ms)
    order_log.log_event(
        connection, row.store, row.order_id, "order.handled", now_ms, how=how, by=by
    )
    return orders.get_order(connection, row.store, row.order_id)


def _take_over(connection: Connection, row: OrderRow, how: ByHand, now_ms: int) -> None:
    """Note that somebody has seen to an order that is on paper."""
    typed = how == "typed"
    open_still = row.closed_at is None
    orders.update_order(
        connection,
        row.store,
        row.order_id,
        now_ms,
        ticket_reference=BY_HAND,
        wanted=merge_wanted(row.wanted, OrderState.ACCEPTED) if typed else row.wanted,
        closed_at=now_ms if open_still and not typed else row.closed_at,
    )
