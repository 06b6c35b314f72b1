"""Reading what can still be read of a damaged ledger, row by row, into a new one."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Integer, LargeBinary

from tillbridge.ledger.schema import metadata

# What no one else can tell us again. The menu comes back from the POS and the service.
_WORTH_SAVING = (
    "inbox",
    "orders",
    "order_log",
    "overrides",
    "facts",
    "holds",
    "audit",
    "community_words",
    "community_orders",
    "community_children",
)
_ORDERS = ("inbox", "orders")
_GAP_LIMIT = 20_000  # row ids tried one by one between the readable ends of a table

_NEWER_DELIVERY = "ON CONFLICT (store, event_id) DO UPDATE SET {values}"
_NEWER_ORDER = (
    "ON CONFLICT (store, order_id) DO UPDATE SET {values}"
    " WHERE excluded.updated_at >= orders.updated_at"
)

_Row = tuple[Any, ...]
_Columns = Sequence[Column[Any]]


class Salvage:
    """Copies rows into `connection`, a new ledger inside a transaction.

    `counts`: rows saved, by table.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.counts: dict[str, int] = {}

    def take_all_from(self, damaged: Path) -> None:
        """Take what can be read of everything that is worth saving."""
        self._take(damaged, _WORTH_SAVING)

    def take_orders_from(self, saved: Path) -> None:
        """Take the deliveries and orders of a back-up that are missing so far."""
        self._take(saved, _ORDERS)

    def take_newer_orders_from(self, present: Path) -> None:
        """Take what a later ledger knows of deliveries and orders: it is asked first.

        Rows of the inbox and the log get numbers of their own, since the two may have gone on
        differently from the same number.
        """
        known_until = self._connection.execute("SELECT coalesce(max(at), 0) FROM order_log")
        (log_until,) = known_until.fetchone()
        with contextlib.closing(_open(present)) as opened:
            for table, conflict in (("inbox", _NEWER_DELIVERY), ("orders", _NEWER_ORDER)):
                columns = [each for each in _columns(opened, table) if each.name != "id"]
                changed = conflict.format(
                    values=", ".join(f'"{each.name}" = excluded."{each.name}"' for each in columns)
                )
                for row in _readable(opened, table, columns):
                    if all(map(_fits, columns, row)):
                        self._insert(table, columns, row, conflict=changed)
            columns = [each for each in _columns(opened, "order_log") if each.name != "id"]
            at = next((n for n, each in enumerate(columns) if each.name == "at"), 0)
            for row in _readable(opened, "order_log", columns):
                if all(map(_fits, columns, row)) and row[at] > log_until:
                    self._insert("order_log", columns, row)

    def ask_the_pos_first(self, damaged: str, at: int) -> None:
        """See to it that no order is written before the POS was asked whether it has it.

        Orders whose row was lost come again out of the inbox or from the service: the fact
        `rebuilt` {at_ms, set_aside} tells that everything received or placed before then must be
        asked for.
        """
        self._connection.execute("UPDATE orders SET ticket = 'writing' WHERE ticket = 'waiting'")
        self._connection.execute(
            "INSERT INTO facts (store, name, value, at) VALUES ('', 'rebuilt', ?, ?)"
            " ON CONFLICT (store, name) DO UPDATE SET value = excluded.value, at = excluded.at",
            (json.dumps({"at_ms": at, "set_aside": damaged}), at),
        )

    def _take(self, source: Path, tables: Sequence[str]) -> None:
        with contextlib.closing(_open(source)) as opened:
            for table in tables:
                columns = _columns(opened, table)
                for row in _readable(opened, table, columns):
                    if all(map(_fits, columns, row)):
                        self._insert(table, columns, row)

    def _insert(
        self, table: str, columns: _Columns, row: _Row, conflict: str = "ON CONFLICT DO NOTHING"
    ) -> None:
        marks = ", ".join("?" * len(columns))
        done = self._connection.execute(
            f'INSERT INTO "{table}" ({_names(columns)}) VALUES ({marks}) {conflict}',  # noqa: S608 -- names of our schema
            row,
        )
        self.counts[table] = self.counts.get(table, 0) + done.rowcount


def _open(source: Path) -> sqlite3.Connection:
    """Open for reading only: the damaged file stays as it was found."""
    uri = source.absolute().as_uri()
    for how in ("mode=ro", "immutable=1"):  # the second leaves a -wal that cannot be used alone
        connection = sqlite3.connect(f"{uri}?{how}", uri=True)
        connection.text_factory = _text
        with contextlib.suppress(sqlite3.DatabaseError):
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return connection
        connection.close()
    return sqlite3.connect(":memory:")  # nothing can be read: no table is found


def _text(value: bytes) -> str | bytes:
    # What is no text stays bytes, and then does not fit its column.
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _columns(opened: sqlite3.Connection, table: str) -> _Columns:
    """Return the columns that both ledgers have: the damaged one may be of an older version."""
    there: set[Any] = set()
    with contextlib.suppress(sqlite3.DatabaseError):
        there = {row[1] for row in opened.execute(f'PRAGMA table_info("{table}")')}
    return [column for column in metadata.tables[table].columns if column.name in there]


def _names(columns: _Columns) -> str:
    return ", ".join(f'"{column.name}"' for column in columns)


def _fits(column: Column[Any], value: object) -> bool:
    """Whether the value is of its column's kind: a damaged page may read as anything."""
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Integer | Boolean):
        return isinstance(value, int)
    if isinstance(column.type, LargeBinary):
        return isinstance(value, bytes)
    return isinstance(value, str)


def _readable(opened: sqlite3.Connection, table: str, columns: _Columns) -> Iterator[_Row]:
    """Yield the rows that can be read: from the start, from the end, then between the two."""
    if not columns:
        return
    select = f'SELECT rowid, {_names(columns)} FROM "{table}"'  # noqa: S608 -- names of our schema
    last = 0
    with contextlib.suppress(sqlite3.DatabaseError):
        for row in opened.execute(f"{select} ORDER BY rowid"):
            last = row[0]
            yield row[1:]
        return
    after = last + _GAP_LIMIT
    with contextlib.suppress(sqlite3.DatabaseError):
        for row in opened.execute(f"{select} WHERE rowid > ? ORDER BY rowid DESC", (last,)):
            after = row[0]
            yield row[1:]
        return
    for rowid in range(last + 1, min(after, last + _GAP_LIMIT)):
        with contextlib.suppress(sqlite3.DatabaseError):
            for row in opened.execute(f"{select} WHERE rowid = ?", (rowid,)):
                yield row[1:]
