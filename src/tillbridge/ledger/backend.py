"""What a ledger needs of its database, and the default one: SQLite in the data directory.

The other one is in `postgresql.py`.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Protocol, cast

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DBAPIError
from sqlmodel import col

from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.ledger import sqlite
from tillbridge.ledger.backup import bring_up_to_date
from tillbridge.ledger.database import LEDGER_FILE, as_the_folder_is
from tillbridge.ledger.models import Delivery, NewDelivery
from tillbridge.ledger.orders import which_are_new
from tillbridge.ledger.reading import Place, need_driver, refuse_missing
from tillbridge.ledger.recover import rebuild_if_damaged
from tillbridge.ledger.sqlite import driver_error
from tillbridge.ledger.vault import Vault


class Backend(Protocol):
    """A database with a ledger. `begin` and `begin_reading` are SQL that begins a transaction."""

    begin: str
    begin_reading: str

    def prepare(self, key: str | None, now_ms: int) -> tuple[Vault, Path | None]:
        """Check, repair, create and migrate the ledger; open its secrets with the configured key.

        Returns the secrets, and the damaged file that was set aside or None. Raises LedgerError,
        ConfigError if the ledger cannot be used.
        """
        ...

    def writer(self) -> Connection:
        """Connect the only writer of this process, which begins and ends transactions itself."""
        ...

    def is_lost(self, connection: Connection) -> bool:  # noqa: ARG002 -- a file is not lost
        """Return whether the connection is useless, and the writer needs another."""
        return False

    def give_up(self, connection: Connection, *, is_storage_failure: bool) -> None:
        """Roll back a transaction that has failed."""
        ...

    def was_committed(self, connection: Connection) -> bool:  # noqa: ARG002 -- a file answers
        """Return whether the writer's last transaction took place, whose end was not answered.

        `connection` is a new one. Raises a storage failure while that is not known.
        """
        return False

    def readers(self) -> Engine:
        """Return the engine of the readers, whose connections are not used to write."""
        ...

    def say(self, connection: Connection, words: Sequence[str]) -> None:
        """Run statements without parameters, such as SAVEPOINT, one after the other."""
        ...

    def record(self, connection: Connection, deliveries: Sequence[NewDelivery]) -> list[bool]:
        """Insert the new deliveries in one statement; return, in the same order, which were new."""
        ...

    def is_storage_failure(self, failure: BaseException) -> bool:
        """Return whether the database itself is at fault, never a single statement."""
        ...

    def is_damage(self, failure: BaseException) -> bool:
        """Return whether `failure` means that the next start must repair the database."""
        ...

    def refusal(self, failure: Exception) -> Exception:
        """Return what whoever waits for a job that failed is told."""
        return failure

    def reason(self, failure: BaseException) -> str:
        """Return the database's words for the failure, without values of any row."""
        ...

    def unwritable(self, failure: BaseException) -> LedgerUnwritable:
        """Return what whoever waits for the write is told."""
        ...

    def unreadable(self, failure: BaseException) -> LedgerError:
        """Return what whoever waits for the read is told."""
        ...


class SQLite(Backend):
    """A file in the data directory."""

    begin = "BEGIN IMMEDIATE"
    begin_reading = "BEGIN"
    is_storage_failure = staticmethod(sqlite.is_storage_failure)
    is_damage = staticmethod(sqlite.is_damage)

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._path = data_dir / LEDGER_FILE

    def prepare(self, key: str | None, now_ms: int) -> tuple[Vault, Path | None]:
        """Open the secrets; check, repair, create and migrate the file."""
        vault = Vault(self._data_dir, key=key)
        rebuilt_from = rebuild_if_damaged(self._data_dir, at=now_ms)
        self._make_file()
        bring_up_to_date(self._data_dir, at=now_ms)
        return vault, rebuilt_from

    def writer(self) -> Connection:
        """Connect the only writer."""
        return sqlite.writer_engine(self._path).connect()

    def give_up(self, connection: Connection, *, is_storage_failure: bool) -> None:
        """Roll back a transaction that has failed."""
        del is_storage_failure  # the file is still there
        connection.exec_driver_sql("ROLLBACK")

    def readers(self) -> Engine:
        """Return the engine of the readers; their connections refuse to write."""
        return sqlite.reader_engine(self._path)

    def say(self, connection: Connection, words: Sequence[str]) -> None:
        """Run statements without parameters."""
        for each in words:
            connection.exec_driver_sql(each)

    @staticmethod
    def record(connection: Connection, deliveries: Sequence[NewDelivery]) -> list[bool]:
        """Insert the new deliveries in one statement; return, in the same order, which were new.

        Without rows to fetch, because each SQLite step releases the interpreter lock and then waits
        for the busy event loop to get it back.
        """
        parameters = tuple(chain.from_iterable(deliveries))
        # Straight to the driver: every acknowledgement waits for this statement.
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        done = driver.execute(_insert_sql(len(deliveries)), parameters)
        if done.rowcount == len(deliveries):
            return [True] * len(deliveries)
        new: set[tuple[str, str]] = set()
        if done.rowcount:
            last = done.lastrowid or 0  # ids within one insert have no gaps
            inserted = col(Delivery.id).between(last - done.rowcount + 1, last)
            rows = connection.execute(
                select(col(Delivery.store), col(Delivery.event_id)).where(inserted)
            )
            new = {(store, event_id) for store, event_id in rows}
        return which_are_new(deliveries, new)

    def reason(self, failure: BaseException) -> str:
        """Return SQLite's words."""
        return str(driver_error(failure) or failure)

    def unwritable(self, failure: BaseException) -> LedgerUnwritable:
        """Return what whoever waits for the write is told."""
        if sqlite.is_read_only(failure):
            fix = _(
                "Give the bridge's user permission to write to the data directory and its {file} "
                "files, then restart the bridge. Nothing was saved."
            ).format(file=LEDGER_FILE)
        else:
            fix = _("Free disk space, or repair the disk. Nothing was saved.")
        return LedgerUnwritable(
            _("The database cannot be written: {detail}.").format(detail=self.reason(failure)),
            fix=fix,
        )

    def unreadable(self, failure: BaseException) -> LedgerError:
        """Return what whoever waits for the read is told."""
        return LedgerError(
            _("The database cannot be read: {detail}.").format(detail=self.reason(failure)),
            fix=_(
                "Check the disk, then restart the bridge: it repairs a damaged database when "
                "it starts."
            ),
        )

    def _make_file(self) -> None:
        """Create the file for the owner only; SQLite's other files inherit its mode."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            as_the_folder_is(self._data_dir, file)
        finally:
            os.close(file)


@lru_cache(maxsize=128)
def _insert_sql(rows: int) -> str:
    """Return the SQL to insert `rows` deliveries. Text: compiling 64 rows takes milliseconds."""
    columns = ", ".join(NewDelivery._fields)
    row = f"({', '.join('?' * len(NewDelivery._fields))})"
    return (
        f"INSERT INTO inbox ({columns}) VALUES {', '.join([row] * rows)}"  # noqa: S608 -- our own names
        " ON CONFLICT DO NOTHING"
    )


# -- without a daemon


@contextlib.contextmanager
def connected(place: Place) -> Iterator[Connection]:
    """Connect to a ledger to read it. Raises the same as `reading`."""
    if place.url is None:
        refuse_missing(place.path)
        engine = sqlite.reader_engine(place.path)
    else:
        need_driver()
        from tillbridge.ledger import postgresql  # noqa: PLC0415 -- if a URL is configured

        engine = postgresql.engine_of(place.url, own=place.own)
    try:
        with engine.connect() as connection:
            yield connection
    except DBAPIError as failure:
        if place.url is not None:
            from tillbridge.ledger.server import name_of, refusal_of  # noqa: PLC0415 -- (as above)

            raise refusal_of(failure.orig or failure, name_of(place.url)) from failure
        raise LedgerError(
            _("The database {path} cannot be read: {detail}.").format(
                path=place.path, detail=failure.orig
            ),
            fix=_(
                "Run the command as the bridge's user. If the database is damaged, restart the "
                "bridge: it repairs it."
            ),
        ) from failure
    finally:
        engine.dispose()


def stored_secrets(data_dir: Path, url: str | None, key: str | None) -> Vault | None:
    """Return the secrets, None where none were ever stored. Raises ConfigError, LedgerError."""
    if url is None:
        return Vault.existing(data_dir, key=key)
    need_driver()
    from tillbridge.ledger.postgresql import engine_of  # noqa: PLC0415 -- if a URL is configured

    return Vault.existing(data_dir, key=key, database=engine_of(url))
