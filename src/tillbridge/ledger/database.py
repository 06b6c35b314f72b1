"""What every database of a ledger shares: rows, queries, column types, durable files, the lock."""

import contextlib
import json
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from filelock import FileLock, Timeout
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    Connection,
    CursorResult,
    Integer,
    Select,
    Text,
    TypeDecorator,
    bindparam,
    event,
    inspect,
    schema,
    select,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import registry
from sqlalchemy.orm.instrumentation import manager_of_class
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import SQLCoreOperations
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine
from sqlmodel import SQLModel

from tillbridge.core.errors import LedgerError, LedgerLocked
from tillbridge.core.files import create_new, sync_folder
from tillbridge.core.i18n import _, from_plain, to_plain

T = TypeVar("T")

LEDGER_FILE = "ledger.db"
VAULT_FILE = "ledger.vault"


# -- rows and queries of any table


class Row(SQLModel, registry=registry()):
    """The base of all rows. Its metadata contains the ledger's tables and no others."""

    @classmethod
    def of_columns(cls, values: Mapping[str, Any]) -> Self:
        """Return a row with these values, one for each column.

        The constructor sets each attribute through pydantic and SQLAlchemy, which takes nine times
        as long.
        """
        row: Self = manager_of_class(cls).new_instance()
        row.__dict__.update(values)
        return row

    def replace(self, **changes: object) -> Self:
        """Return a copy with these values; this row stays unchanged."""
        return self.of_columns({**dict(self), **changes})


_WHOLE = BigInteger().with_variant(Integer(), "sqlite")


@event.listens_for(Column, "before_parent_attach")
def _hold_64_bits(column: Column[Any], table: schema.Table) -> None:
    # Milliseconds and minor units need 64 bits: SQLite's INTEGER has them, PostgreSQL's has 32.
    if table.metadata is Row.metadata and isinstance(column.type, Integer):
        column.type = _WHOLE


def all_rows(connection: Connection, query: Select[T], **parameters: object) -> list[T]:
    """Return the rows found, of one table; `parameters` are of its `bindparam`s.

    Changing them does not change the ledger: no session is involved, which would take four times
    as long for one row.
    """
    table = query.column_descriptions[0]["entity"]
    names = _attributes(table)
    found = connection.execute(query, parameters)
    return [table.of_columns(dict(zip(names, row, strict=True))) for row in found]


def first_row(connection: Connection, query: Select[T], **parameters: object) -> T | None:
    """Return the first of a few rows, or None; see `all_rows`."""
    return next(iter(all_rows(connection, query, **parameters)), None)


@cache
def _attributes(table: type[object]) -> Sequence[str]:
    names: Sequence[str] = inspect(table).column_attrs.keys()
    return names


def among(column: SQLCoreOperations[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """Return whether the column has one of these values, with one parameter for any number."""
    whole = isinstance(cast("ColumnElement[Any]", column).type, Integer)
    kind = _WHOLE_NUMBERS if whole else _TEXTS
    listed = _Each(bindparam(None, list(values), kind)).table_valued("value")
    return column.in_(select(listed.c.value))


class _List(TypeDecorator[list[Any]]):
    """A parameter with a list of texts, or of whole numbers."""

    impl = Text
    cache_ok = True

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.whole = whole

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return an array where the database has them."""
        if dialect.name == "postgresql":
            return ARRAY(BigInteger() if self.whole else Text())
        return Text()

    def process_bind_param(self, value: list[Any] | None, dialect: Dialect) -> Any:  # noqa: ANN401 -- as the driver takes it
        """Return the array, or a JSON list."""
        return value if dialect.name == "postgresql" else json.dumps(value)


_WHOLE_NUMBERS, _TEXTS = _List(whole=True), _List(whole=False)


class _Each(FunctionElement[Any]):
    """The values of a list, as a table with the column `value`."""

    inherit_cache = True


@compiles(_Each)
def _each_of_json(element: _Each, compiler: SQLCompiler, **more: object) -> str:
    return f"json_each({compiler.process(element.clauses, **more)})"


@compiles(_Each, "postgresql")
def _each_of_array(element: _Each, compiler: SQLCompiler, **more: object) -> str:
    return f"(SELECT unnest({compiler.process(element.clauses, **more)}) AS value)"


class RowId(ColumnElement[int]):
    """The place of a row in its table, to find it again in the same transaction."""

    inherit_cache = True


@compiles(RowId)
def _rowid(_element: RowId, _compiler: SQLCompiler, **_more: object) -> str:
    return "rowid"


@compiles(RowId, "postgresql")
def _ctid(_element: RowId, _compiler: SQLCompiler, **_more: object) -> str:
    return "ctid"


@cache
def upsert(table: type[object], *columns: str) -> Insert:
    """Return an insert that sets these columns if the key already exists; SQLite has it, too."""
    statement = insert(table)
    return statement.on_conflict_do_update(
        index_elements=list(inspect(table).primary_key),
        set_={name: statement.excluded[name] for name in columns},
    )


def plain_query(connection: Connection) -> Callable[..., CursorResult[Any]]:
    """Return a function that runs SQL with `?` for its parameters, without compiling it."""
    if connection.dialect.paramstyle == "qmark":
        return connection.exec_driver_sql
    return lambda sql, *values: connection.exec_driver_sql(sql.replace("?", "%s"), *values)


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

    Raises LedgerLocked while another process has it. It is waited for a moment: if a bridge is
    killed while it starts a program, that has the lock too, until it is loaded.
    """

    waits_s = 1.0

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
            self._lock.acquire(timeout=self.waits_s)
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
                    "Check the disk and its free space, and that the bridge's user has permission "
                    "to write there."
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
