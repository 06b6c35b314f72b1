"""A damaged ledger: noticed at start, set aside, and as much of it as can be read carried over.

What the menu was comes back from the POS and the service. Orders must not be written twice: each
that is not known to be in the POS is marked as begun with an unknown outcome, so that the POS is
asked before anything is written (invariant 2).
"""

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Integer, LargeBinary

from tillbridge.core.errors import LedgerError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.backup import back_ups, stamp
from tillbridge.ledger.database import LEDGER_FILE, is_damage, is_read_failure
from tillbridge.ledger.migrate import bring_up_to_date
from tillbridge.ledger.models import metadata

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


log = get_logger()

# Checking the indexes too reads everything several times over: only where that is quick.
_FULL_CHECK_BELOW_BYTES = 16 * 1024 * 1024
_CHECKS = 3  # before what is found counts: a disk that failed once reads the next time
_READ_AT_ONCE = 1024 * 1024
_ERROR_CODE = re.compile(r"error code=(\d{1,6})\b")


def rebuild_if_damaged(data_dir: Path, *, at: int) -> Path | None:
    """Check the ledger; set a damaged one aside and begin a new one with what can be saved.

    Returns where the damaged one is, None where nothing was wrong. Raises LedgerError where the
    file cannot be opened at all, which says nothing about what is in it.
    """
    path = data_dir / LEDGER_FILE
    if not path.exists():
        return None
    damage = find_damage(path)
    if not damage:
        return None
    aside = set_aside(path, at)
    log.error("ledger.damaged", detail=damage, set_aside=aside.name)
    bring_up_to_date(data_dir, at=at)
    saved = _carry_over(data_dir, aside, at)
    log.warning("ledger.rebuilt", set_aside=aside.name, **saved)
    return aside


def find_damage(path: Path) -> str:
    """Return what is wrong with the database in one line, "" where it is sound.

    A disk that fails to read is no damage: SQLite then cannot say what is in the file. Raises
    LedgerError where the disk goes on failing, or where the file cannot be opened at all.
    """
    damage = _check(path)
    for _attempt in range(_CHECKS - 1):
        if not damage:
            break
        _read_through(path)
        first, damage = damage, _check(path)
        if damage == first and not _of_the_disk(damage):
            return damage
    if _of_the_disk(damage):
        raise _unread(path, damage)
    return damage


def _check(path: Path) -> str:
    try:
        # Read-only: looking must change nothing, the -wal file of a damaged ledger included.
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            small = path.stat().st_size < _FULL_CHECK_BELOW_BYTES
            check = "PRAGMA integrity_check(1)" if small else "PRAGMA quick_check(1)"
            (verdict,) = connection.execute(check).fetchone()
            if verdict != "ok":
                return str(verdict)
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
            # Our tables without our version: the page that held it is gone.
            return "no schema version" if names and "alembic_version" not in names else ""
    except sqlite3.Error as failure:
        if is_damage(failure):
            return str(failure)
        if is_read_failure(failure):
            # As the check itself puts it where it meets such a failure further on.
            return f"{failure}: error code={failure.sqlite_errorcode}"
        raise LedgerError(
            _("The ledger {path} cannot be opened: {detail}.").format(path=path, detail=failure),
            fix=_("Check the disk, its free space, and that the bridge's user may write there."),
        ) from failure


def _read_through(path: Path) -> None:
    """Read what the database is in from its first byte to its last. Raises LedgerError."""
    for kind in ("", "-wal"):
        try:
            with path.with_name(path.name + kind).open("rb") as file:
                while file.read(_READ_AT_ONCE):
                    pass
        except FileNotFoundError:
            continue
        except OSError as failure:
            raise _unread(path, reason_of(failure)) from failure


def _of_the_disk(damage: str) -> bool:
    """Whether the check speaks of a page that the system did not give it."""
    codes = [int(code) for code in _ERROR_CODE.findall(damage)]
    return any(code & 0xFF == sqlite3.SQLITE_IOERR for code in codes)


def _unread(path: Path, detail: str) -> LedgerError:
    return LedgerError(
        _("The disk failed to read the ledger {path}: {detail}.").format(path=path, detail=detail),
        fix=_(
            "The ledger is as it was. Start the bridge again; if this comes back, check the disk"
            " and its cable, and restore a back-up on a sound disk."
        ),
    )


def set_aside(path: Path, at: int) -> Path:
    """Give a damaged ledger, with what SQLite keeps beside it, another name; return it."""
    aside = path.with_name(f"{path.name}.damaged-{stamp(at)}")
    path.rename(aside)
    for kind in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + kind).rename(aside.with_name(aside.name + kind))
    return aside


def _carry_over(data_dir: Path, aside: Path, at: int) -> dict[str, int]:
    # Only for a ledger that broke.
    from tillbridge.ledger.recover import Salvage  # noqa: PLC0415 -- (as above)

    with contextlib.closing(
        sqlite3.connect(data_dir / LEDGER_FILE, isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        salvage = Salvage(connection)
        salvage.take_all_from(aside)
        for saved in back_ups(data_dir)[:1]:
            salvage.take_orders_from(saved)
        salvage.ask_the_pos_first(aside.name, at)
        connection.execute("COMMIT")
        return salvage.counts
