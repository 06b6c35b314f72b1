"""The two places of a ledger, for a copy: the data folder, and a database server.

Each is held while it is copied, so that no bridge uses it: the folder by its lock, which whoever
copies has taken, the server by a lock that every bridge shares.
"""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import TableClause

from tillbridge import ledger_schemas
from tillbridge.core.errors import ConfigError, LedgerError, LedgerLocked
from tillbridge.core.files import sync_folder
from tillbridge.core.i18n import _
from tillbridge.ledger.backup import bring_up_to_date
from tillbridge.ledger.copying import Side
from tillbridge.ledger.database import LEDGER_FILE, as_the_folder_is
from tillbridge.ledger.facts import mark_of
from tillbridge.ledger.models import metadata
from tillbridge.ledger.reading import BRIDGES
from tillbridge.ledger.recover import put_aside
from tillbridge.ledger.sqlite import find_damage, writer_engine
from tillbridge.ledger.vault import Vault

_WORKPLACE = ".copy"
_SINGLE_FILE = "PRAGMA journal_mode = DELETE"  # everything is in one file, without a -wal


@contextlib.contextmanager
def present_file(data_dir: Path, key: str | None, *, at: int) -> Iterator[Side]:
    """Open the ledger of a data folder, to be copied. Raises ConfigError, LedgerError."""
    path = data_dir / LEDGER_FILE
    if not path.exists():
        raise ConfigError(
            _("There is no database in {folder} yet.").format(folder=data_dir),
            fix=_("There is nothing to copy: set url in [ledger], and start the bridge."),
        )
    if damage := find_damage(path):
        raise LedgerError(
            _("The database {path} is damaged: {damage}.").format(path=path, damage=damage),
            fix=_("Start the bridge once: it saves what can be read. Then copy."),
        )
    bring_up_to_date(data_dir, at=at)
    with _opened_file(path) as connection:
        yield Side(str(path), connection, "BEGIN IMMEDIATE", lambda: Vault(data_dir, key=key))


@contextlib.contextmanager
def new_file(data_dir: Path, key: str | None, *, at: int) -> Iterator[Side]:
    """Make a ledger beside that of a data folder, which it replaces at the end.

    The one that is replaced is kept as a backup is: `ledger.db.replaced-<instant>`.
    """
    folder = data_dir / _WORKPLACE
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        as_the_folder_is(data_dir, folder)
    path, present = folder / LEDGER_FILE, data_dir / LEDGER_FILE
    bring_up_to_date(folder, at=at)
    as_the_folder_is(data_dir, path)
    path.chmod(0o600)
    with _opened_file(path) as connection:

        def put_in_place() -> None:
            connection.exec_driver_sql(_SINGLE_FILE)
            connection.close()
            put_aside(present, at)
            path.replace(present)
            sync_folder(data_dir)
            shutil.rmtree(folder, ignore_errors=True)

        yield Side(
            str(present),
            connection,
            "BEGIN IMMEDIATE",
            lambda: Vault(data_dir, key=key),
            finish=put_in_place,
        )


@contextlib.contextmanager
def _opened_file(path: Path) -> Iterator[Connection]:
    engine = writer_engine(path)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@contextlib.contextmanager
def present_server(url: str, data_dir: Path, key: str | None, *, name: str = "") -> Iterator[Side]:
    """Open the ledger on a server, to be copied; `name` is the bridge's, whose own rows count.

    Raises ConfigError, LedgerError.
    """
    from tillbridge.ledger.server import look_at, refuse_unfit  # noqa: PLC0415 -- needs the driver

    server = look_at(url)
    refuse_unfit(server)
    if server.schema != ledger_schemas()[-1]:
        raise ConfigError(
            _("The database {name} has no ledger of this version.").format(name=server.name),
            fix=_("Start the bridge with it once, or run: tillbridge migrate"),
        )
    with _alone(url, data_dir, key, name) as side:
        yield side


@contextlib.contextmanager
def new_on_server(url: str, data_dir: Path, key: str | None, *, name: str = "") -> Iterator[Side]:
    """Make a ledger on a server, or go on with one that is half a copy.

    One that was copied elsewhere before is replaced. `name` is the bridge's, under which it has its
    own rows. Raises ConfigError for any other ledger.
    """
    from tillbridge.ledger.postgresql import prepare_schema  # noqa: PLC0415 -- needs the driver
    from tillbridge.ledger.server import look_at, refuse_unfit  # noqa: PLC0415 -- (as above)

    server = look_at(url)
    refuse_unfit(server)
    with _alone(url, data_dir, key, name) as side:
        if server.schema:
            mark = mark_of(side.connection)
            if not mark:
                raise ConfigError(
                    _("There is a ledger in the database {name} already.").format(name=server.name),
                    fix=_("Choose an empty database, or delete that one and create it anew."),
                )
            if "moved_to" in mark:
                _empty(side)
        prepare_schema(url)
        yield side


@contextlib.contextmanager
def _alone(url: str, data_dir: Path, key: str | None, name: str) -> Iterator[Side]:
    """Connect while no bridge is connected. Raises LedgerLocked."""
    from tillbridge.ledger.postgresql import driver_of, engine_of  # noqa: PLC0415 -- (as above)
    from tillbridge.ledger.server import name_of, take_alone  # noqa: PLC0415 -- (as above)

    engine = engine_of(url)
    try:
        with engine.connect() as connection:
            if not take_alone(driver_of(connection)):
                raise LedgerLocked(
                    _("A bridge, or another copy, is using the database {name}.").format(
                        name=name_of(url)
                    ),
                    fix=_("Stop every bridge that uses it; tillbridge doctor says which do."),
                )
            yield Side(
                name_of(url),
                connection,
                "BEGIN",
                lambda: Vault(data_dir, key=key, database=engine),
                own=f"{BRIDGES}{name}" if name else "",
                insert=_insert_rows,
                as_stored=_as_stored,
            )
    finally:
        engine.dispose()


def _insert_rows(
    connection: Connection, into: TableClause, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows in one statement, for which the fence of the table is asked once."""
    import psycopg  # noqa: PLC0415 -- needs the driver
    from psycopg import sql  # noqa: PLC0415 -- (as above)

    from tillbridge.ledger.postgresql import driver_of  # noqa: PLC0415 -- (as above)

    names = sql.SQL(", ").join(sql.Identifier(each.name) for each in into.columns)
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(into.name), names)
    try:
        with driver_of(connection).cursor() as cursor, cursor.copy(statement) as copying:
            for row in rows:
                copying.write_row(row)
    except psycopg.Error as failure:
        raise DBAPIError("COPY", None, failure) from failure


def _as_stored(value: str) -> str:
    """Return a text as PostgreSQL can store it."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _empty(side: Side) -> None:
    sql = side.connection.exec_driver_sql
    sql(side.begin)
    metadata.drop_all(side.connection)
    sql("DROP TABLE alembic_version")
    sql("COMMIT")
