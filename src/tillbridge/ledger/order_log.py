"""The life of each order, for people: dotted events with details, never a customer's data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from tillbridge.ledger.schema import order_log


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
