"""Connections to the ledger's file: how each is set up, and what its failures mean."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, NullPool, Pool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError

LEDGER_FILE = "ledger.db"

# Result codes (their low byte) that speak of the file or the disk, never of one statement.
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
    "PRAGMA secure_delete = FAST",  # what pruning removes is not left in free pages
    "PRAGMA journal_size_limit = 16777216",
    "PRAGMA temp_store = MEMORY",
)
_READER_PRAGMAS = ("PRAGMA busy_timeout = 5000", "PRAGMA query_only = ON")


def writer_engine(path: Path) -> Engine:
    """Return the engine of the one writer: the caller begins and ends transactions itself."""
    return _engine(path, _WRITER_PRAGMAS, NullPool)


def reader_engine(path: Path) -> Engine:
    """Return the engine of the readers; their connections refuse to write."""
    return _engine(path, _READER_PRAGMAS, QueuePool)


def _engine(path: Path, pragmas: tuple[str, ...], pool: type[Pool]) -> Engine:
    return create_engine("sqlite://", creator=_opener(path, pragmas), poolclass=pool)


def _opener(path: Path, pragmas: tuple[str, ...]) -> Callable[[], sqlite3.Connection]:
    def connect() -> sqlite3.Connection:
        # No isolation level: the driver begins nothing by itself, so DDL and savepoints obey us.
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
    """Return the driver's own connection, for a statement that SQLAlchemy would slow down."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def driver_error(failure: BaseException) -> sqlite3.Error | None:
    """Return the driver's own error in `failure`, where there is one."""
    cause: Any = failure.orig if isinstance(failure, DBAPIError) else failure
    return cause if isinstance(cause, sqlite3.Error) else None


def is_storage_failure(failure: BaseException) -> bool:
    """Whether `failure` speaks of the file or the disk: full, read-only, failing, damaged."""
    return _primary_code(failure) in _STORAGE_CODES


def is_damage(failure: BaseException) -> bool:
    """Whether `failure` says that the file is no sound database."""
    return _primary_code(failure) in _DAMAGE_CODES


def is_read_only(failure: BaseException) -> bool:
    """Whether the system lets us read the file, or something beside it, but not write there."""
    return _primary_code(failure) in _READ_ONLY_CODES


def is_read_failure(failure: BaseException) -> bool:
    """Whether the disk failed, which says nothing about what is in the file."""
    return _primary_code(failure) == sqlite3.SQLITE_IOERR


def _primary_code(failure: BaseException) -> int:
    error = driver_error(failure)
    code = getattr(error, "sqlite_errorcode", None)  # absent where the driver itself complains
    return code & 0xFF if isinstance(code, int) else -1
