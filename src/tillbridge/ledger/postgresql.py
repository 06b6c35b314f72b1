"""A ledger on PostgreSQL: connections, what their failures mean, its schema, its statements.

Imported only if a URL is configured. In the connections of `engine_of` statements commit by
themselves unless a transaction is begun.
"""

import selectors
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, Engine, NullPool, Pool, QueuePool, Table, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError

from tillbridge import ledger_schemas
from tillbridge.core.errors import LeaseLost, LedgerError, LedgerLocked, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import schema
from tillbridge.ledger.leases import DECLARE, SESSION
from tillbridge.ledger.models import Delivery, NewDelivery, metadata
from tillbridge.ledger.orders import which_are_new
from tillbridge.ledger.server import (
    connect,
    look_at,
    name_of,
    refusal_of,
    refuse_unfit,
    take_part,
)
from tillbridge.ledger.vault import Vault

log = get_logger()

_OUR_LOCK = 7_118_552  # of bridges that create or migrate the schema at the same time
_REFUSED_S = 1.0
# Classes of states that concern the server, its disk or the connection, never a single statement.
_STORAGE_CLASSES = frozenset({"08", "53", "57", "58", "XX"})
_LOCK_NOT_AVAILABLE = "55P03"
_SESSION_ENDED = "25P03"  # this process was frozen in a transaction
# It became a standby, or the role has lost its rights.
_READ_ONLY_STATES = frozenset({"25006", "42501"})


def engine_of(url: str, pool: type[Pool] = NullPool, *, own: str = "") -> Engine:
    """Return an engine of such connections; its errors contain no values.

    `own`: see `facts.own_key`.
    """
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect(url),
        isolation_level="AUTOCOMMIT",
        poolclass=pool,
        hide_parameters=True,
        execution_options={"own": own},
    )


def driver_of(connection: Connection) -> psycopg.Connection[Any]:
    """Return the driver's connection."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def prepare_schema(url: str, *, dry_run: bool = False) -> None:
    """Look whether the ledger may be there; create and migrate it, one bridge at a time.

    `dry_run`: it is rolled back. Raises ConfigError, LedgerError.
    """
    refuse_unfit(look_at(url))
    engine, known = engine_of(url), ledger_schemas()
    try:
        with engine.connect() as connection:
            sql = driver_of(connection).execute
            sql(f"BEGIN; SELECT pg_advisory_xact_lock({_OUR_LOCK})".encode())
            current, _tables = schema.state(connection)
            if current == known[-1]:
                return
            sql(FUNCTIONS_FILE.read_bytes())
            if current:
                schema.upgrade(connection, "head")
            else:
                schema.create(connection)
            sql(fence_sql())
            sql("ROLLBACK" if dry_run else "COMMIT")
    except (DBAPIError, psycopg.Error) as failure:
        raise refusal_of(_driver_error(failure) or failure, name_of(url)) from failure
    finally:
        engine.dispose()
    if current and not dry_run:
        log.info("ledger.migrated", schema_from=current, schema_to=known[-1])


class PostgreSQL:
    """A database of its own for the ledger, on a server that writes commits to disk."""

    begin = "BEGIN; SELECT pg_current_xact_id()"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, data_dir: Path, url: str, own: str = "") -> None:
        self._data_dir = data_dir
        self._url = url
        self._own = own
        self._pool = engine_of(url, QueuePool, own=own)  # for reading, and for the secrets
        event.listen(self._pool, "checkout", _checked_out)
        self._writers = engine_of(url, own=own)
        self._transaction = ""  # the id of the writer's last one
        self._refusal: Exception | None = None  # of a connection, and until when that counts
        self._refused_until = 0.0

    def prepare(self, key: str | None, now_ms: int) -> tuple[Vault, Path | None]:
        """Look whether the ledger may be there; create and migrate it, one bridge at a time."""
        del now_ms
        prepare_schema(self._url)
        try:
            return Vault(self._data_dir, key=key, database=self._pool), None
        except BaseException:
            self._pool.dispose()
            raise

    def writer(self) -> Connection:
        """Connect the only writer of this process. Raises LedgerLocked while it is copied.

        Fails at once for a moment after a failure: a connection may take seconds to fail, and
        whoever waits for several of them waits too long.
        """
        if self._refusal is not None and time.monotonic() < self._refused_until:
            raise self._refusal.with_traceback(None)
        try:
            connection = self._writers.connect()
            if holder := self._writers.get_execution_options().get("holder"):
                driver_of(connection).execute(DECLARE, {"holder": holder})
        except (DBAPIError, psycopg.Error) as failure:
            self._refusal, self._refused_until = failure, time.monotonic() + _REFUSED_S
            raise
        if not take_part(driver_of(connection)):
            connection.close()
            raise LedgerLocked(
                _("The database {name} is being copied.").format(name=name_of(self._url)),
                fix=_("Wait for “tillbridge ledger copy” to end, then start the bridge again."),
            )
        return connection

    def is_lost(self, connection: Connection) -> bool:
        """Return whether the server has ended the session, or the connection broke."""
        gone = connection.closed or connection.invalidated
        return gone or _is_lost(driver_of(connection))

    def give_up(self, connection: Connection, *, is_storage_failure: bool) -> None:
        """Roll back. Another server may have taken over: a failed one is left for good."""
        if is_storage_failure:
            connection.invalidate()
            connection.close()
        else:
            self.say(connection, ["ROLLBACK"])

    def was_committed(self, connection: Connection) -> bool:
        """Ask the server how the writer's last transaction ended."""
        try:
            row = (
                driver_of(connection)
                .execute("SELECT pg_xact_status(%s::xid8)", [self._transaction])
                .fetchone()
            )
        except psycopg.DataError:  # it never came to the server that has taken over
            return False
        state = None if row is None else row[0]
        if state == "in progress":
            raise psycopg.OperationalError("the server has not finished a transaction yet")
        return bool(state == "committed")

    def readers(self) -> Engine:
        """Return the engine of the readers."""
        return self._pool

    def say(self, connection: Connection, words: Sequence[str]) -> None:
        """Run statements without parameters, all in one round trip."""
        said = driver_of(connection).execute("; ".join(words))
        if words[0] == self.begin and said.nextset() and (row := said.fetchone()):
            self._transaction = str(row[0])

    def record(self, connection: Connection, deliveries: Sequence[NewDelivery]) -> list[bool]:
        """Insert the new deliveries in one statement; return, in the same order, which were new."""
        if len(deliveries) == 1:  # without arrays and rows, this takes a third of the time
            return [driver_of(connection).execute(_RECORD_ONE, deliveries[0]).rowcount == 1]
        columns = [list(column) for column in zip(*deliveries, strict=True)]
        rows = driver_of(connection).execute(_RECORD, columns).fetchall()
        if len(rows) == len(deliveries):
            return [True] * len(deliveries)
        return which_are_new(deliveries, set(rows))

    def is_storage_failure(self, failure: BaseException) -> bool:
        """Return whether the server, its disk or the connection is at fault."""
        error = _driver_error(failure)
        if error is None:
            return False
        state = error.sqlstate
        if state is None:  # from the driver, which lost the connection or got none
            return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if state in _READ_ONLY_STATES or state in {_LOCK_NOT_AVAILABLE, _SESSION_ENDED}:
            return True
        return state[:2] in _STORAGE_CLASSES

    def is_damage(self, failure: BaseException) -> bool:
        """Return False: a start of the bridge cannot repair a server."""
        del failure
        return False

    def refusal(self, failure: Exception) -> Exception:
        """Return LeaseLost where the fence has refused the write."""
        error = _driver_error(failure)
        if error is None or error.sqlstate != _FENCED:
            return failure
        return LeaseLost(
            _("Another bridge serves this store now: {detail}.").format(detail=self.reason(failure))
        )

    def reason(self, failure: BaseException) -> str:
        """Return the server's words, without the values in its details."""
        error = _driver_error(failure)
        if error is None:
            return str(failure)
        words = error.diag.message_primary or str(error)
        return " ".join(words.split()).rstrip(".")

    def unwritable(self, failure: BaseException) -> LedgerUnwritable:
        """Return what whoever waits for the write is told."""
        return LedgerUnwritable(
            _("The database cannot be written: {detail}.").format(detail=self.reason(failure)),
            fix=_(
                "Check that the PostgreSQL server runs, accepts writes, can be reached, and has "
                "free disk space. Nothing was saved."
            ),
        )

    def unreadable(self, failure: BaseException) -> LedgerError:
        """Return what whoever waits for the read is told."""
        return LedgerError(
            _("The database cannot be read: {detail}.").format(detail=self.reason(failure)),
            fix=_("Check that the PostgreSQL server runs and can be reached."),
        )


def _driver_error(failure: BaseException) -> psycopg.Error | None:
    cause: Any = failure.orig if isinstance(failure, DBAPIError) else failure
    return cause if isinstance(cause, psycopg.Error) else None


def _is_lost(driver: psycopg.Connection[Any]) -> bool:
    if driver.closed:
        return True
    # Between two statements, a server says something only because it ends the session.
    with _Selector() as waiting:
        waiting.register(driver.fileno(), selectors.EVENT_READ)
        return bool(waiting.select(0))


_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


def _checked_out(driver: psycopg.Connection[Any], _record: object, _proxy: object) -> None:
    if _is_lost(driver):
        raise DisconnectionError  # the pool connects again


_RECORD_ONE = (
    f"INSERT INTO inbox ({', '.join(NewDelivery._fields)})"  # noqa: S608 -- our own names
    " VALUES (%s, %s, %s, %s, %s, %b) ON CONFLICT DO NOTHING"
)
_RECORD = (
    f"INSERT INTO inbox ({', '.join(NewDelivery._fields)})"  # noqa: S608 -- our own names
    " SELECT * FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::bigint[],"
    " %b::bytea[]) ON CONFLICT DO NOTHING RETURNING store, event_id"
)

FUNCTIONS_FILE = Path(__file__).with_name("functions.sql")  # those of SQLite that queries use


# -- the fence
#
# The database refuses a write for a store that another bridge serves.
#
# A trigger of each table compares the lease of each store that a statement has changed with the
# holder that the session has declared (`leases.SESSION`). It locks the lease against a take-over
# until the transaction ends, so a bridge that was stopped in the middle cannot write afterwards. A
# store without a lease, or one that nobody serves, may be written by a session that declares
# nobody: a command, or a copy. Free for all: new deliveries, the audit trail, and what is the
# bridge's own.

_FENCED = "TB001"  # the SQLSTATE of a refusal

_UNFENCED = {"audit", "bridges", "leases", "requests", "secrets"}
_CHANGES = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}

_FUNCTION = """
CREATE OR REPLACE FUNCTION fence_{column}() RETURNS trigger LANGUAGE plpgsql AS $fence$
DECLARE
    mine text := coalesce(current_setting('{session}', true), '');
    changed_store text;
    server text;
BEGIN
    FOR changed_store IN SELECT DISTINCT {column} FROM changed LOOP
        CONTINUE WHEN changed_store = '' OR starts_with(changed_store, 'bridges/');
        SELECT holder INTO server FROM leases WHERE store = changed_store FOR SHARE;
        IF FOUND AND server <> mine THEN
            RAISE EXCEPTION 'another bridge serves %', changed_store USING ERRCODE = '{state}';
        END IF;
    END LOOP;
    RETURN NULL;
END $fence$;
"""
_TRIGGER = """
CREATE OR REPLACE TRIGGER fence_{change} AFTER {change} ON {table}
REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fence_{column}();
"""


def fence_sql() -> str:
    """Return the SQL that makes the fence of every table, or makes it anew."""
    functions = {
        column: _FUNCTION.format(column=column, session=SESSION, state=_FENCED)
        for column in ("store", "community")
    }
    triggers = [
        _TRIGGER.format(table=f'"{table.name}"', column=_column(table), change=change, rows=rows)
        for table in metadata.sorted_tables
        if table.name not in _UNFENCED
        for change, rows in _CHANGES.items()
        if (table.name, change) != (Delivery.__tablename__, "INSERT")
    ]
    return "".join([*functions.values(), *triggers])


def _column(table: Table) -> str:
    """Return the column with the store or the community; StopIteration for a table without one."""
    return next(each.name for each in table.columns if each.name in {"store", "community"})
