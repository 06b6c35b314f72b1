"""Orders, one row each: how far the ticket is, what is wanted, what the service was told."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Select, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import order_log, orders
from tillbridge.model.order import OrderState, ReasonCode

# -- orders


class TicketState(StrEnum):
    """How far an order's ticket is.

    A row that was once `writing` never goes back to `waiting`: the POS may have the ticket, and is
    asked before it is written again (invariant 2).
    """

    WAITING = "waiting"
    WRITING = "writing"
    WRITTEN = "written"
    REFUSED = "refused"  # the POS does not have it, and never will
    WITHDRAWN = "withdrawn"  # it was taken back out of the POS, or is left to a person


UNWRITTEN = frozenset({TicketState.WAITING, TicketState.WRITING})


# How the reference of a ticket begins that was printed because the till could not take it.
ON_PAPER = "not in till"
PERHAPS_ON_PAPER_ONLY = "perhaps not in till"  # the till did not say whether it has it too
BY_HAND = "by hand"  # the reference of a ticket that a person typed


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order as the ledger has it. Instants are ms since the epoch.

    `payload` is the event's data as JSON ("" once pruned); `last_failure` is "kind" or
    "kind: the POS's words"; `reason_code` and `message` belong to a cancel. `refused` holds the
    calls that the service refused for good, each with its words; `unseen` what a person has not
    seen yet, by problem code, each with `at` (ms) and what the problem tells.
    """

    store: str
    order_id: str
    received_at: int
    payload: str = field(repr=False)
    wanted: OrderState
    told: OrderState
    ticket: TicketState = TicketState.WAITING
    order_number: str = ""
    placed_at: int | None = None
    ticket_reference: str = ""
    written_at: int | None = None
    attempts: int = 0
    last_failure: str = ""
    reason_code: ReasonCode | None = None
    message: str = ""
    closed_at: int | None = None
    updated_at: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def is_on_paper(row: OrderRow) -> bool:
    """Return whether the order is on paper instead of in the till, and nobody has seen to it."""
    return row.ticket is TicketState.WRITTEN and row.ticket_reference in {
        ON_PAPER,
        PERHAPS_ON_PAPER_ONLY,
    }


def insert_order(connection: Connection, row: OrderRow) -> bool:
    """Insert the order; False where the store has one with that id already: the first stays."""
    statement = insert(orders).values(
        **{column.name: _plain(getattr(row, column.name)) for column in orders.columns}
    )
    inserted = connection.execute(
        statement.on_conflict_do_nothing().returning(orders.c.order_id)
    ).first()
    return inserted is not None


def get_order(connection: Connection, store: str, order_id: str) -> OrderRow | None:
    """Return the order, None where it is not known."""
    row = connection.execute(
        select(orders).where(orders.c.store == store, orders.c.order_id == order_id)
    ).first()
    return None if row is None else order_row(row)


def find_orders(connection: Connection, order_id: str) -> list[OrderRow]:
    """Return the order with this id, of whichever store."""
    return _all(connection, select(orders).where(orders.c.order_id == order_id))


def find_by_number(connection: Connection, order_number: str, limit: int = 20) -> list[OrderRow]:
    """Return the orders that people know by this number, of any store, newest first."""
    return _all(
        connection,
        select(orders)
        .where(orders.c.order_number == order_number)
        .order_by(orders.c.received_at.desc(), orders.c.order_id)
        .limit(limit),
    )


def find_called(connection: Connection, name: str) -> list[OrderRow]:
    """Return the order with this id, or else all that people know by this number, newest first."""
    return find_orders(connection, name) or find_by_number(connection, name)


def unseen_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something that a person has not seen, oldest first."""
    return _all(
        connection,
        select(orders)
        .where(orders.c.store == store, orders.c.unseen != "{}")
        .order_by(orders.c.received_at, orders.c.order_id),
    )


def open_orders(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders with something left to do, in the order they were received."""
    return _all(
        connection,
        select(orders)
        .where(orders.c.store == store, orders.c.closed_at.is_(None))
        .order_by(orders.c.received_at, orders.c.order_id),
    )


def cancelled_among(connection: Connection, store: str, order_ids: Collection[str]) -> set[str]:
    """Return those of the orders that are cancelled."""
    found: set[str] = set()
    ids = list(order_ids)
    for start in range(0, len(ids), 500):
        found.update(
            connection.scalars(
                select(orders.c.order_id).where(
                    orders.c.store == store,
                    orders.c.order_id.in_(ids[start : start + 500]),
                    orders.c.wanted == OrderState.CANCELLED.value,
                )
            )
        )
    return found


def never_written_since(connection: Connection, store: str, since_ms: int) -> list[OrderRow]:
    """Return cancelled orders closed since then whose write was begun and left nothing in the POS.

    A write whose outcome is unknown may take effect after that.
    """
    return _all(
        connection,
        select(orders).where(
            orders.c.store == store,
            orders.c.closed_at >= since_ms,
            orders.c.ticket == TicketState.REFUSED.value,
            orders.c.wanted == OrderState.CANCELLED.value,
            orders.c.attempts > 0,
        ),
    )


def orders_on_paper(connection: Connection, store: str) -> list[OrderRow]:
    """Return the store's orders that are on paper and that nobody has seen to, over or not."""
    references = (ON_PAPER, PERHAPS_ON_PAPER_ONLY)
    return _all(
        connection,
        select(orders).where(
            orders.c.store == store,
            orders.c.ticket == TicketState.WRITTEN.value,
            orders.c.ticket_reference.in_(references),
        ),
    )


def latest_orders(
    connection: Connection, stores: Collection[str] | None = None, limit: int = 100
) -> list[OrderRow]:
    """Return the orders received last, newest first; of all stores where none are named."""
    query = select(orders).order_by(orders.c.received_at.desc(), orders.c.order_id).limit(limit)
    return _all(connection, query if stores is None else query.where(orders.c.store.in_(stores)))


def update_order(connection: Connection, store: str, order_id: str, at: int, **values: Any) -> None:  # noqa: ANN401 -- columns of several types
    """Set the named columns of the order."""
    connection.execute(
        update(orders)
        .where(orders.c.store == store, orders.c.order_id == order_id)
        .values(updated_at=at, **{name: _plain(value) for name, value in values.items()})
    )


def _all(connection: Connection, query: Select[Any]) -> list[OrderRow]:
    return [order_row(row) for row in connection.execute(query)]


def _plain(value: Any) -> Any:  # noqa: ANN401 -- columns of several types
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True)
    return value.value if isinstance(value, StrEnum) else value


def order_row(row: Row[Any]) -> OrderRow:
    """Return the order of a whole row of the table."""
    return OrderRow(
        **{
            **row._mapping,  # noqa: SLF001 -- the documented way to read a row by name
            "ticket": TicketState(row.ticket),
            "wanted": OrderState(row.wanted),
            "told": OrderState(row.told),
            "reason_code": None if row.reason_code is None else ReasonCode(row.reason_code),
            "refused": _mapping(row.refused),
            "unseen": _mapping(row.unseen),
        }
    )


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:  # saved from a damaged ledger
        return {}
    return value if isinstance(value, dict) else {}


# -- the log of an order, for people: dotted events, never a customer's data


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One thing that happened to an order; `at` in ms since the epoch."""

    at: int
    event: str
    detail: Mapping[str, Any]


def log_event(
    connection: Connection, store: str, order_id: str, event: str, at: int, **detail: object
) -> None:
    """Add to the order's life."""
    connection.execute(
        insert(order_log).values(
            store=store,
            order_id=order_id,
            at=at,
            event=event,
            detail=json.dumps(detail, default=str),
        )
    )


def life(connection: Connection, store: str, order_id: str) -> list[LogEntry]:
    """Return all that happened to the order, oldest first."""
    rows = connection.execute(
        select(order_log.c.at, order_log.c.event, order_log.c.detail)
        .where(order_log.c.store == store, order_log.c.order_id == order_id)
        .order_by(order_log.c.id)
    )
    return [log_entry(row.at, row.event, row.detail) for row in rows]


def log_entry(at: int, event: str, detail: str) -> LogEntry:
    """Return the entry of its columns."""
    return LogEntry(at, event, json.loads(detail))


def event_of(entries: Sequence[LogEntry]) -> str:
    """Return the id of the event that brought the order, "" where its life does not tell."""
    found = (each.detail.get("event_id") for each in entries)
    return next((each for each in found if isinstance(each, str)), "")


def last_at(connection: Connection, store: str, order_id: str, event: str) -> int | None:
    """Return when `event` last happened to the order (ms since the epoch); None: never."""
    at = connection.execute(
        select(order_log.c.at)
        .where(
            order_log.c.store == store,
            order_log.c.order_id == order_id,
            order_log.c.event == event,
        )
        .order_by(order_log.c.id.desc())
        .limit(1)
    ).scalar()
    return None if at is None else int(at)


def has_event(connection: Connection, store: str, order_id: str, event: str) -> bool:
    """Return whether `event` has happened to the order."""
    found = connection.execute(
        select(order_log.c.id)
        .where(
            order_log.c.store == store,
            order_log.c.order_id == order_id,
            order_log.c.event == event,
        )
        .limit(1)
    ).first()
    return found is not None
