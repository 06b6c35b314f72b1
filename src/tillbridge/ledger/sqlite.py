"""A ledger in an SQLite file: connections to it, and what their failures mean."""

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, NullPool, Pool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError

from tillbridge.core.errors import LedgerError, reason_of
from tillbridge.core.i18n import _

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


# -- whether a file is sound

# Checking the indexes as well reads everything several times: only if that is quick.
_FULL_CHECK_BELOW_BYTES = 16 * 1024 * 1024
_CHECKS = 3  # before a result counts: a disk that failed once may work the next time
_READ_AT_ONCE = 1024 * 1024
_ERROR_CODE = re.compile(r"error code=(\d{1,6})\b")


def find_damage(path: Path) -> str:
    """Return what is wrong with the database in one line, "" if it is sound.

    A disk that fails to read is not damage: SQLite then cannot say what is in the file. Raises
    LedgerError if the disk keeps failing, or if the file cannot be opened at all.
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
        # Read-only: checking must change nothing, including the -wal file of a damaged ledger.
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            small = path.stat().st_size < _FULL_CHECK_BELOW_BYTES
            check = "PRAGMA integrity_check(1)" if small else "PRAGMA quick_check(1)"
            (verdict,) = connection.execute(check).fetchone()
            if verdict != "ok":
                return str(verdict)
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
            # Our tables without our version: the page that had it is lost.
            return "no schema version" if names and "alembic_version" not in names else ""
    except sqlite3.Error as failure:
        if is_damage(failure):
            return str(failure)
        if is_read_failure(failure):
            # As the check itself words it when it meets such a failure later on.
            return f"{failure}: error code={failure.sqlite_errorcode}"
        raise LedgerError(
            _("The database {path} cannot be opened: {detail}.").format(path=path, detail=failure),
            fix=_(
                "Check the disk and its free space, and that the bridge's user has permission to "
                "write there."
            ),
        ) from failure


def _read_through(path: Path) -> None:
    """Read the database's file from the first byte to the last. Raises LedgerError."""
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
    """Return whether the check complains about a page that the system could not read."""
    codes = [int(code) for code in _ERROR_CODE.findall(damage)]
    return any(code & 0xFF == sqlite3.SQLITE_IOERR for code in codes)


def _unread(path: Path, detail: str) -> LedgerError:
    return LedgerError(
        _("The disk failed while reading the database {path}: {detail}.").format(
            path=path, detail=detail
        ),
        fix=_(
            "The database was not changed. Start the bridge again. If this happens again, check "
            "the disk and its cable, and restore a backup to a working disk."
        ),
    )
