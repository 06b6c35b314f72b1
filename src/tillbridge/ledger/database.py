"""Connections to the ledger's file, what their failures mean, and column types."""

import contextlib
import json
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from filelock import FileLock, Timeout
from sqlalchemy import (
    Connection,
    Engine,
    NullPool,
    Pool,
    QueuePool,
    Select,
    Text,
    TypeDecorator,
    create_engine,
    func,
    inspect,
    select,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.elements import SQLCoreOperations

from tillbridge.core.errors import LedgerError, LedgerLocked
from tillbridge.core.files import create_new, sync_folder
from tillbridge.core.i18n import _, from_plain, to_plain

T = TypeVar("T")

LEDGER_FILE = "ledger.db"
VAULT_FILE = "ledger.vault"

# Result codes (their low byte) that concern the file or the disk, never a single statement.
_STORAGE_CODES = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_READ_ONLY_CODES = frozenset(
    {sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)

_WRITER_PRAGMAS: tuple[str, ...] = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: a plain fsync stops at the drive's cache
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = FAST",  # do not leave deleted data in free pages
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA temp_store = MEMORY",
)
_READER_PRAGMAS = ("PRAGMA busy_timeout = 5000", "PRAGMA query_only = ON")


def writer_engine(path: Path) -> Engine:
    """Return the engine of the only writer: the caller begins and ends transactions itself."""
    return _engine(path, _WRITER_PRAGMAS, NullPool)


def reader_engine(path: Path) -> Engine:
    """Return the engine of the readers; their connections refuse to write."""
    return _engine(path, _READER_PRAGMAS, QueuePool)


def _engine(path: Path, pragmas: tuple[str, ...], pool: type[Pool]) -> Engine:
    return create_engine("sqlite://", creator=_opener(path, pragmas), poolclass=pool)


def _opener(path: Path, pragmas: tuple[str, ...]) -> Callable[[], sqlite3.Connection]:
    def connect() -> sqlite3.Connection:
        # No isolation level: the driver begins nothing on its own, so we control DDL and
        # savepoints.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in pragmas:
                connection.execute(pragma)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    return connect


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection, for a statement that SQLAlchemy would slow down."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def driver_error(failure: BaseException) -> sqlite3.Error | None:
    """Return the driver's error inside `failure`, or None."""
    cause: Any = failure.orig if isinstance(failure, DBAPIError) else failure
    return cause if isinstance(cause, sqlite3.Error) else None


def is_storage_failure(failure: BaseException) -> bool:
    """Return whether the file or the disk is at fault: full, read-only, failing, damaged."""
    return _primary_code(failure) in _STORAGE_CODES


def is_damage(failure: BaseException) -> bool:
    """Return whether `failure` means that the file is not a sound database."""
    return _primary_code(failure) in _DAMAGE_CODES


def is_read_only(failure: BaseException) -> bool:
    """Return whether we may read the file, or a file beside it, but not write there."""
    return _primary_code(failure) in _READ_ONLY_CODES


def is_read_failure(failure: BaseException) -> bool:
    """Return whether the disk failed, which does not mean that the file's content is damaged."""
    return _primary_code(failure) == sqlite3.SQLITE_IOERR


def _primary_code(failure: BaseException) -> int:
    error = driver_error(failure)
    # Missing if the error comes from the driver itself.
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1


# -- queries of any table


def all_rows(connection: Connection, query: Select[T], **parameters: object) -> list[T]:
    """Return the rows found, of one table; `parameters` are of its `bindparam`s.

    Changing them does not change the ledger: no session is involved, which would take four times
    as long for one row.
    """
    table, names = _table_of(query)
    found = connection.execute(query, parameters)
    return [table.of_columns(dict(zip(names, row, strict=True))) for row in found]


def first_row(connection: Connection, query: Select[T], **parameters: object) -> T | None:
    """Return the first row found, or None; see `all_rows`."""
    row = connection.execute(query, parameters).first()
    if row is None:
        return None
    table, names = _table_of(query)
    return cast("T", table.of_columns(dict(zip(names, row, strict=True))))


def _table_of(query: Select[Any]) -> tuple[Any, Sequence[str]]:
    """Return the class of a query's rows, and the attributes in the order of the columns."""
    table = query.column_descriptions[0]["entity"]
    return table, _attributes(table)


@cache
def _attributes(table: type[object]) -> Sequence[str]:
    names: Sequence[str] = inspect(table).column_attrs.keys()
    return names


def among(column: SQLCoreOperations[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """Return whether the column has one of these values, with one parameter for any number."""
    listed = func.json_each(json.dumps(list(values))).table_valued("value")
    return column.in_(select(listed.c.value))


@cache
def upsert(table: type[object], *columns: str) -> Insert:
    """Return an insert that sets these columns if the key already exists."""
    statement = insert(table)
    return statement.on_conflict_do_update(
        index_elements=list(inspect(table).primary_key),
        set_={name: statement.excluded[name] for name in columns},
    )


# -- files that survive a power cut: either the complete old or the complete new content


_OURS_ALONE = 0o600


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file's content atomically, readable only by its owner. Raises OSError."""
    beside = path.with_name(f"{path.name}.new")
    file = create_new(beside, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            as_the_folder_is(path.parent, file)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def as_the_folder_is(folder: Path, made: int | Path) -> None:
    """Give files that root created in this folder to the folder's owner, as SQLite does.

    A command run by root beside the service must not leave files that the service cannot read.
    """
    if sys.platform != "win32" and os.geteuid() == 0:
        about = folder.stat()
        os.chown(made, about.st_uid, about.st_gid)


def close_to_others(paths: Iterable[Path]) -> None:
    """Let only the owner read and write these files; files of other users stay as they are.

    If a file was read-only for a while, its -shm and -wal files are read-only, too.
    """
    if os.name != "posix":
        return
    for path in paths:
        # Missing files need nothing; another user's files cause an error when they are opened.
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != _OURS_ALONE:
                path.chmod(_OURS_ALONE)


# -- types of columns


class Enumerated(TypeDecorator[StrEnum]):
    """A text column that is read as an enumeration. Raises ValueError for any other text."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """Return the member for a text."""
        del dialect
        return None if value is None else self.kind(value)


def json_text(value: object) -> str:
    """Return the value as stored in a JSON column.

    Lone surrogates, which JSON allows and SQLite does not, become question marks.
    """
    return (
        json.dumps(to_plain(value), ensure_ascii=False, default=str)
        .encode("utf-8", "replace")
        .decode()
    )


class JsonText(TypeDecorator[Any]):
    """A text column with a JSON value; an empty mapping if a damaged ledger has no valid JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ANN401 -- any JSON value
        """Return the value as text."""
        del dialect
        return None if value is None else json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the value from its text."""
        del dialect
        try:
            return None if value is None else json.loads(value, object_hook=from_plain)
        except ValueError:
            return {}


# -- the lock that prevents a second daemon in a data directory


_LOCK_FILE = "ledger.lock"


class LedgerLock:
    """An exclusive lock on `ledger.lock`; the system releases it however the process ends.

    Raises LedgerLocked while another process has it.
    """

    def __init__(self, data_dir: Path) -> None:
        path = data_dir / _LOCK_FILE
        self._lock = FileLock(
            path,
            mode=0o600,
            thread_local=False,  # a ledger is opened and closed in different threads
            fallback_to_soft=False,
            preserve_lock_file=True,
            on_acquired=partial(_note_owner, data_dir),
        )
        try:
            self._lock.acquire(blocking=False)
        except Timeout as failure:
            raise LedgerLocked(
                _("Another tillbridge ({owner}) is using the database in {data_dir}.").format(
                    owner=_owner(path), data_dir=data_dir
                ),
                fix=_("Stop it first, or set a different data_dir for this one."),
            ) from failure
        except OSError as failure:
            raise LedgerError(
                _("{path} cannot be opened: {detail}.").format(path=path, detail=failure.strerror),
                fix=_(
                    "Give the bridge's user permission to write to the data directory, or change "
                    "data_dir."
                ),
            ) from failure

    def release(self) -> None:
        """Let another process have it."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()


def _note_owner(data_dir: Path, file: int) -> None:
    # The lock is held even if a full disk prevents us from writing who has it.
    with contextlib.suppress(OSError):
        as_the_folder_is(data_dir, file)
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, b"\n%d\n" % os.getpid())  # on Windows, nobody can read the first byte


def _owner(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(1)
            pid = file.read().strip().decode("ascii")
    except (OSError, ValueError):
        pid = ""
    return f"pid {pid}" if pid.isdigit() else _("unknown process")
