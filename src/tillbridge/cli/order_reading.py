"""Reads orders from the ledger's file, with and without a daemon; nothing is written."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.ledger.community import parent_of
from tillbridge.ledger.database import LEDGER_FILE, reader_engine
from tillbridge.ledger.models import CommunityOrder, Delivery, LogEntry, OrderRow
from tillbridge.ledger.orders import (
    delivery_of,
    event_of,
    find_called,
    handled_entry,
    latest_orders,
    read_log,
)
from tillbridge.ledger.snapshot import StoreFigures, take_figures
from tillbridge.orders.views import single_order

T = TypeVar("T")


def latest(data_dir: Path, stores: Collection[str] | None, limit: int) -> list[OrderRow]:
    """Return the orders received last, newest first. Raises LedgerError."""
    return _read(data_dir, lambda connection: latest_orders(connection, stores, limit))


@dataclass(frozen=True, slots=True)
class FoundOrder:
    """An order, its log, its delivery, and the community order that it is a part of, if of any."""

    row: OrderRow
    life: list[LogEntry]
    parent: CommunityOrder | None
    delivery: Delivery | None = None
    handled: LogEntry | None = None


def one(data_dir: Path, name: str) -> FoundOrder:
    """Return the order with this id or number.

    Raises BridgeError where there is none, or more than one; LedgerError.
    """

    def find(connection: Connection) -> FoundOrder:
        row = single_order(find_called(connection, name), name)
        store, order_id = row.store, row.order_id
        # A ledger that this version has never opened has no communities yet.
        there = inspect(connection).has_table("community_orders")
        parent = parent_of(connection, order_id) if there else None
        entries = read_log(connection, store, order_id)
        event_id = event_of(entries)
        return FoundOrder(
            row,
            entries,
            parent,
            delivery_of(connection, store, event_id) if event_id else None,
            handled_entry(connection, row),
        )

    return _read(data_dir, find)


def all_figures(data_dir: Path) -> dict[str, StoreFigures]:
    """Return the orders' figures by store, as they are now. Raises LedgerError."""
    now_ms = Clock().now_ms()
    return _read(data_dir, lambda connection: take_figures(connection, now_ms))


def _read(data_dir: Path, query: Callable[[Connection], T]) -> T:
    path = data_dir / LEDGER_FILE
    if not path.exists():
        raise LedgerError(
            _("There is no ledger at {path} yet.").format(path=path),
            fix=_("Check data_dir in [bridge]; the bridge makes it when it first runs."),
        )
    engine = reader_engine(path)
    try:
        with engine.connect() as connection:
            return query(connection)
    except DBAPIError as failure:
        raise LedgerError(
            _("The ledger {path} cannot be read: {detail}.").format(path=path, detail=failure.orig),
            fix=_("Run the command as the bridge's user; a damaged ledger is mended at its start."),
        ) from failure
    finally:
        engine.dispose()
