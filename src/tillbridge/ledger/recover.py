"""Replacing the ledger by another one, without any order being written twice because of it.

A damaged ledger is noticed at the start and set aside; whatever can be read is copied. A backup is
restored by a person: it is out of date, so what the present ledger knows about orders is copied if
it can be read. Either way an order that is not known to be in the POS is marked as begun with an
unknown outcome, so that the POS is asked before anything is written (invariant 2), and the menu
comes back from the POS and the service.
"""

import contextlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Connection, Integer, LargeBinary
from sqlalchemy.exc import DBAPIError

from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.files import sync_folder
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import audit
from tillbridge.ledger.backup import (
    back_ups,
    bring_up_to_date,
    copy_database,
    forget,
    set_asides,
    stamp,
    vault_of,
)
from tillbridge.ledger.database import (
    LEDGER_FILE,
    VAULT_FILE,
    LedgerLock,
    as_the_folder_is,
    write_durably,
)
from tillbridge.ledger.facts import put_mark
from tillbridge.ledger.models import metadata
from tillbridge.ledger.reading import opened_to_read
from tillbridge.ledger.sqlite import (
    driver_error,
    driver_of,
    find_damage,
    writer_engine,
)
from tillbridge.ledger.vault import Vault

log = get_logger()

# -- copying what can be read from another ledger

# What cannot be read from anywhere else. The menu comes back from the POS and the service.
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
_PATIENCE_S = 5.0  # with a file that somebody else uses
_GAP_LIMIT = 20_000  # row ids tried one by one between the readable ends of a table

_KNOWN_STAYS = "ON CONFLICT DO NOTHING"
_NEWER_DELIVERY = "ON CONFLICT (store, event_id) DO UPDATE SET {values}"
_NEWER_ORDER = (
    "ON CONFLICT (store, order_id) DO UPDATE SET {values}"
    " WHERE excluded.updated_at >= orders.updated_at"
)

_Row = tuple[Any, ...]
_Columns = Sequence[Column[Any]]


class _Salvage:
    """Copies rows into `connection`, a new ledger inside a transaction.

    `counts`: rows copied, by table.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.counts: Counter[str] = Counter()

    def copy(self, source: Path, tables: Sequence[str]) -> None:
        """Copy everything readable and not yet known from these tables."""
        with contextlib.closing(_open(source)) as opened:
            for table in tables:
                self._copy(opened, table)

    def copy_newer_orders(self, present: Path) -> None:
        """Copy what a newer ledger knows about deliveries and orders; on conflict it wins.

        Rows of the inbox and the log get new numbers, since both may have used the same ones.
        """
        known_until = self._connection.execute("SELECT coalesce(max(at), 0) FROM order_log")
        (log_until,) = known_until.fetchone()
        with contextlib.closing(_open(present)) as opened:
            self._copy(opened, "inbox", _NEWER_DELIVERY, numbered=False)
            self._copy(opened, "orders", _NEWER_ORDER)
            self._copy(opened, "order_log", numbered=False, after=log_until)

    def ask_the_pos_first(self, source: str, at: int) -> None:
        """Make sure that no order is written before the POS was asked whether it has it.

        Orders whose row was lost come again from the inbox or the service: the fact `rebuilt`
        {at_ms, set_aside} says that the POS must be asked about everything received or placed
        before then.
        """
        self._connection.execute("UPDATE orders SET ticket = 'writing' WHERE ticket = 'waiting'")
        self._connection.execute(
            "INSERT INTO facts (store, name, value, at) VALUES ('', 'rebuilt', ?, ?)"
            " ON CONFLICT (store, name) DO UPDATE SET value = excluded.value, at = excluded.at",
            (json.dumps({"at_ms": at, "set_aside": source}), at),
        )

    def _copy(
        self,
        opened: sqlite3.Connection,
        table: str,
        conflict: str = _KNOWN_STAYS,
        *,
        numbered: bool = True,
        after: int | None = None,
    ) -> None:
        """Copy rows with their ids (`numbered`), and from a log those after that instant."""
        columns = [each for each in _columns(opened, table) if numbered or each.name != "id"]
        names = [f'"{each.name}"' for each in columns]
        values = ", ".join(f"{name} = excluded.{name}" for name in names)
        insert = (
            f'INSERT INTO "{table}" ({", ".join(names)}) VALUES ({", ".join("?" * len(names))})'  # noqa: S608 -- names of our schema
            f" {conflict.format(values=values)}"
        )
        for row in _readable(opened, table, names):
            is_new = after is None or row[names.index('"at"')] > after
            if all(map(_fits, columns, row)) and is_new:
                self.counts[table] += self._connection.execute(insert, row).rowcount


def _open(source: Path) -> sqlite3.Connection:
    """Open for reading only: the damaged file stays as it is."""
    try:
        connection = opened_to_read(source, _PATIENCE_S)
    except sqlite3.Error:
        return sqlite3.connect(":memory:")  # nothing can be read: no table is found
    connection.text_factory = _text
    return connection


def _text(value: bytes) -> str | bytes:
    # Invalid text stays bytes, and then does not fit its column.
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _columns(opened: sqlite3.Connection, table: str) -> _Columns:
    """Return the columns that both ledgers have: the damaged one may be an older version."""
    there: set[Any] = set()
    with contextlib.suppress(sqlite3.DatabaseError):
        there = {row[1] for row in opened.execute(f'PRAGMA table_info("{table}")')}
    return [column for column in metadata.tables[table].columns if column.name in there]


def _fits(column: Column[Any], value: object) -> bool:
    """Return whether the value has its column's type: a damaged page may read as anything."""
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Integer | Boolean):
        return isinstance(value, int)
    if isinstance(column.type, LargeBinary):
        return isinstance(value, bytes)
    return isinstance(value, str)


def _readable(opened: sqlite3.Connection, table: str, names: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows that can be read: from the start, from the end, then between the two."""
    if not names:
        return
    select = f'SELECT rowid, {", ".join(names)} FROM "{table}"'  # noqa: S608 -- names of our schema
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


@contextlib.contextmanager
def _transaction(path: Path) -> Iterator[Connection]:
    """Open a ledger that nobody else uses yet, and commit what is written to it."""
    engine = writer_engine(path)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.exec_driver_sql("COMMIT")
    finally:
        engine.dispose()


# -- a damaged ledger


def rebuild_if_damaged(data_dir: Path, *, at: int) -> Path | None:
    """Check the ledger; set a damaged one aside and create a new one with what can be saved.

    Returns where the damaged one is, None if it is sound. Raises LedgerError if the file cannot be
    opened at all, which says nothing about its content.
    """
    path = data_dir / LEDGER_FILE
    if not path.exists():
        return None
    damage = find_damage(path)
    if not damage:
        return None
    aside = _set_aside(path, at)
    log.error("ledger.damaged", detail=damage, set_aside=aside.name)
    bring_up_to_date(data_dir, at=at)
    with _transaction(path) as connection:
        salvage = _Salvage(driver_of(connection))
        salvage.copy(aside, _WORTH_SAVING)
        for saved in back_ups(data_dir)[:1]:
            salvage.copy(saved, _ORDERS)
        salvage.ask_the_pos_first(aside.name, at)
    log.warning("ledger.rebuilt", set_aside=aside.name, **salvage.counts)
    return aside


def _set_aside(path: Path, at: int) -> Path:
    """Rename a damaged ledger together with SQLite's files beside it; return the new path."""
    aside = path.with_name(f"{path.name}.damaged-{stamp(at)}")
    for kind in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + kind).rename(aside.with_name(aside.name + kind))
    return aside


# -- restoring a backup: prepared beside the ledger, put in place by one rename

_WORKPLACE = ".restore"
# What the service has accepted since the backup is unknown: it is sent again.
_ACCEPTED = ("menu_items", "menu_parts", "menu_refused", "tables")
_MOST_ASIDE = 3
_SINGLE_FILE = "PRAGMA journal_mode = DELETE"  # everything is in one file, without a -wal


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    `replaced` is the path of the previous ledger (None if there was none), `carried_over` the
    number of rows about orders copied from it, by table; `to_ask` the number of orders that the POS
    is asked about.
    """

    replaced: Path | None
    carried_over: dict[str, int]
    to_ask: int


def restore(data_dir: Path, saved: Path, *, at: int, who: str, key: str | None = None) -> Restored:
    """Make the backup `saved` the ledger of `data_dir`; `who` is for the audit trail.

    `key` is the configured key of the stored secrets, None for that in the folder.

    The present ledger is kept as `ledger.db.replaced-<instant>`.

    Raises ConfigError if `saved` is not a sound ledger of this program or an older version,
    LedgerLocked while a bridge runs, LedgerError if the disk refuses: the ledger is then unchanged.
    """
    refuse_unsound(saved)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with LedgerLock(data_dir):
            return _restore(data_dir, saved, at, who, key)
    except (OSError, sqlite3.Error, DBAPIError) as failure:
        raise LedgerError(
            _("The backup could not be restored: {detail}.").format(
                detail=driver_error(failure) or failure
            ),
            fix=_(
                "The database was not changed. Free disk space or repair the disk, then try again."
            ),
        ) from failure


def refuse_unsound(saved: Path) -> None:
    """Raise ConfigError if `saved` is not a sound ledger of this program or an older version."""
    another = _("Choose another backup: they are in the folder “backups” of the data folder.")
    if not saved.is_file():
        raise ConfigError(_("The backup {path} does not exist.").format(path=saved), fix=another)
    if damage := find_damage(saved):
        raise ConfigError(
            _("{path} is not an intact database: {damage}.").format(path=saved, damage=damage),
            fix=another,
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds, as far as it says so.

    `version` is the bridge's that wrote it, `stores` their names, `off_sale` what staff had taken
    off sale: store and external id.
    """

    version: str
    stores: tuple[str, ...]
    orders: int
    off_sale: frozenset[tuple[str, str]]


def look_into(saved: Path) -> Contents:
    """Return what a backup holds. Raises ConfigError as `restore` does."""
    refuse_unsound(saved)
    with contextlib.closing(_open(saved)) as opened:

        def rows(query: str) -> list[_Row]:
            # An older version may not have the table yet.
            with contextlib.suppress(sqlite3.DatabaseError):
                return opened.execute(query).fetchall()
            return []

        names = rows("SELECT value FROM facts WHERE name = 'service_store_name' ORDER BY store")
        running = rows("SELECT value FROM facts WHERE store = '' AND name = 'running'")
        written_by = json.loads(running[0][0]) if running else {}
        off_sale = rows("SELECT store, external_id FROM overrides WHERE \"by\" != 'order'")
        return Contents(
            str(written_by.get("version", "")),
            tuple(str(json.loads(value)) for (value,) in names),
            sum(count for (count,) in rows("SELECT count(*) FROM orders")),
            frozenset((store, external_id) for store, external_id in off_sale),
        )


def _restore(data_dir: Path, saved: Path, at: int, who: str, key: str | None) -> Restored:
    workplace = data_dir / _WORKPLACE
    shutil.rmtree(workplace, ignore_errors=True)
    workplace.mkdir(mode=0o700)
    try:
        as_the_folder_is(data_dir, workplace)
        if not (data_dir / VAULT_FILE).exists():  # existing secrets are newer
            with contextlib.suppress(FileNotFoundError):
                write_durably(data_dir / VAULT_FILE, vault_of(saved).read_bytes())
        Vault(data_dir, key=key)  # raises if the key is missing: better now than at the next start
        copy_database(saved, workplace / LEDGER_FILE)
        bring_up_to_date(workplace, at=at)
        present = data_dir / LEDGER_FILE
        act = audit.Act("ledger.restore", who, target=saved.name)
        carried_over, to_ask = _reconcile(workplace / LEDGER_FILE, present, act, at)
        replaced = put_aside(present, at)
        (workplace / LEDGER_FILE).replace(present)
        sync_folder(data_dir)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    log.warning("ledger.restored", back_up=saved.name, to_ask=to_ask, **carried_over)
    return Restored(replaced, carried_over, to_ask)


def _reconcile(ledger: Path, present: Path, act: audit.Act, at: int) -> tuple[dict[str, int], int]:
    """Copy what the present ledger knows, delete what is uncertain, and record the act."""
    with _transaction(ledger) as connection:
        driver = driver_of(connection)
        salvage = _Salvage(driver)
        if present.exists():
            salvage.copy_newer_orders(present)
        salvage.ask_the_pos_first(act.target, at)
        put_mark(connection, {}, at=at)  # of a ledger that was copied to a server, which is lost
        for table in _ACCEPTED:
            driver.execute(f'DELETE FROM "{table}"')  # noqa: S608 -- names of our schema
        driver.execute(
            "UPDATE pushes SET state = 'lost', finished_at = ? WHERE state = 'running'", (at,)
        )
        (to_ask,) = driver.execute(
            "SELECT count(*) FROM orders WHERE ticket = 'writing' AND closed_at IS NULL"
        ).fetchone()
        audit.append(connection, act, at=at)
    with contextlib.closing(sqlite3.connect(ledger, isolation_level=None)) as alone:
        alone.execute(_SINGLE_FILE)
    return salvage.counts, to_ask


def put_aside(present: Path, at: int) -> Path | None:
    """Keep a ledger under another name, and leave no -wal file beside it; None: there is none."""
    if not present.exists():
        return None
    if find_damage(present):
        return _set_aside(present, at)
    with contextlib.closing(sqlite3.connect(present, isolation_level=None)) as connection:
        connection.execute(_SINGLE_FILE)
    aside = present.with_name(f"{present.name}.replaced-{stamp(at)}")
    copy_database(present, aside)
    for older in set_asides(present.parent)[_MOST_ASIDE:]:
        forget(older)
    return aside
