"""The connections: read-only for all that looks, and others only where orders are written."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from tillbridge.adapter.sharing import open_shared, read_shared
from tillbridge.adapter.texts import _
from tillbridge_sql.deadline import Deadline
from tillbridge_sql.trouble import Trouble, trouble_of

T = TypeVar("T")

_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "mysql+pymysql": "mysql+pymysql",
    "mariadb+pymysql": "mariadb+pymysql",
    "sqlite": "sqlite",
}
# What a pooled connection may have died of unnoticed shows at once; then a fresh one is tried.
_STALE_S = 1.0
_PAST, _NEVER = datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class OfflineError(Exception):
    """Nobody answers; `error` is the driver's."""

    def __init__(self, error: SQLAlchemyError) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is: its URL with the password in it, never shown."""

    url: URL
    dump: Path | None = None

    @property
    def database(self) -> str:
        """Return which kind of database it is, as query files name it."""
        name = self.url.get_backend_name()
        return "mysql" if name == "mariadb" else name

    def __str__(self) -> str:
        """Return it for people, without user and password."""
        url = self.url
        where = url.host or ""
        return f"{self.database} {where}{':' if url.port else ''}{url.port or ''}/{url.database}"


def place_of(text: str, password: str | None, base_dir: Path, dump: Path | None) -> Place:
    """Return what a URL says. Raises ValueError with a text for a person, never with the URL."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise ValueError(
            _("url is no database URL. Write it as postgresql://user@host:5432/name.")
        ) from None
    if url.password is not None:
        raise ValueError(
            _(
                "url holds a password, and would be seen by everybody who sees the file. Leave it "
                'out there, and write password = { file = "..." }.'
            )
        )
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise ValueError(
            _(
                "url begins with {drivername}, which this adapter does not know. It "
                "knows postgresql, mysql, mariadb and sqlite."
            ).format(drivername=url.drivername)
        )
    url = url.set(drivername=driver)
    in_memory = driver == "sqlite" and url.database in {None, "", ":memory:"}
    if dump is not None and not in_memory:
        raise ValueError(
            _('dump is only for trying queries, with url = "sqlite://". Leave it out.')
        )
    if in_memory and dump is None:
        raise ValueError(_("url names no file: write sqlite:///till.db."))
    if driver == "sqlite" and not in_memory:
        url = url.set(database=str(base_dir / (url.database or "")))
    if password is not None:
        url = url.set(password=password)
    return Place(url, None if dump is None else base_dir / dump)


class Database:
    """Connections to one database. Used from the threads of reading and of tickets."""

    def __init__(self, place: Place, *, timeout_s: float, writes: bool) -> None:
        self.place = place
        self.name = place.database
        self._timeout_s = timeout_s
        self._reading = self._engine(writes=False)
        self._writing = self._engine(writes=True) if writes else None

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads, all of it from one moment's state of the database.

        Raises OfflineError, SQLAlchemyError.
        """
        return self._fresh(self._reading, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` does in a transaction, which it must commit itself.

        Raises SQLAlchemyError as it comes.
        """
        if self._writing is None:
            raise RuntimeError("orders are not switched on")
        with self._session(self._writing) as connection:
            return work(connection)

    def close(self) -> None:
        """Close the connections that wait."""
        for engine in (self._reading, self._writing):
            if engine is not None:
                engine.dispose()

    def _fresh(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        began = time.monotonic()
        while True:
            try:
                with self._session(engine) as connection:
                    return work(connection)
            except SQLAlchemyError as failure:
                error = getattr(failure, "error", failure)  # of a statement that failed
                if trouble_of(error) is not Trouble.OFFLINE:
                    raise
                stale = getattr(error, "connection_invalidated", False)
                if not stale or time.monotonic() - began > _STALE_S:
                    raise OfflineError(error) from None

    @contextlib.contextmanager
    def _session(self, engine: Engine) -> Iterator[Connection]:
        connection = engine.connect()
        with contextlib.ExitStack() as stack:
            if self.name == "postgresql":
                raw = connection.connection.dbapi_connection
                stack.enter_context(Deadline(raw, 2 * self._timeout_s))
            stack.callback(connection.close)
            yield connection

    def _engine(self, *, writes: bool) -> Engine:
        options: dict[str, Any] = {
            "hide_parameters": True,  # whatever raises: no customer's data in it
            "poolclass": QueuePool,
            "pool_size": 1,
            "max_overflow": 3,
            "pool_timeout": self._timeout_s,
            "pool_recycle": 1800,
        }
        match self.name:
            case "postgresql":
                options["connect_args"] = self._of_postgresql(writes=writes)
                options["isolation_level"] = "SERIALIZABLE" if writes else "REPEATABLE READ"
            case "mysql":
                options["connect_args"] = {
                    "charset": "utf8mb4",
                    "connect_timeout": max(1, round(self._timeout_s)),
                    "read_timeout": max(1, round(self._timeout_s)),
                    "write_timeout": max(1, round(self._timeout_s)),
                    "program_name": "tillbridge",
                }
                options["isolation_level"] = "SERIALIZABLE" if writes else "REPEATABLE READ"
            case _:
                options["connect_args"] = {"timeout": self._timeout_s, "check_same_thread": False}
                if self.place.dump is not None:
                    del options["pool_size"], options["max_overflow"], options["pool_timeout"]
                    options["poolclass"] = StaticPool
        try:
            engine = create_engine(self.place.url, **options)
        except (NoSuchModuleError, ImportError) as failure:
            raise ValueError(_no_driver(self.name, failure)) from None
        event.listen(engine, "connect", self._on_connect(writes=writes))
        return engine

    def _of_postgresql(self, *, writes: bool) -> dict[str, Any]:
        limit_ms = round(self._timeout_s * 1000)
        settings = {
            "statement_timeout": limit_ms,
            "lock_timeout": max(1, limit_ms // 2),
            "idle_in_transaction_session_timeout": 4 * limit_ms,
            "default_transaction_read_only": "off" if writes else "on",
        }
        return {
            "connect_timeout": max(2, round(self._timeout_s)),
            "client_encoding": "utf8",
            "application_name": "tillbridge",
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "keepalives_idle": 30,
            "tcp_user_timeout": 2 * limit_ms,
        }

    def _on_connect(self, *, writes: bool) -> Callable[[Any, Any], None]:
        statements: tuple[str, ...] = ()
        if self.name == "mysql":
            wait_s = max(1, round(self._timeout_s / 2))
            strict = "CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES')"
            statements = (
                f"SET SESSION sql_mode = {strict}",  # a key that is too long is refused, not cut
                f"SET SESSION innodb_lock_wait_timeout = {wait_s}",
                *(() if writes else ("SET SESSION TRANSACTION READ ONLY",)),
            )
        elif self.name == "sqlite" and not writes and self.place.dump is None:
            statements = ("PRAGMA query_only = ON",)

        def connected(raw: Any, _record: Any) -> None:  # noqa: ANN401 -- a driver's connection
            if self.name == "postgresql":
                _read_all_times(raw)
            if self.place.dump is not None:
                _load(raw, self.place.dump)
            elif self.name == "sqlite":
                # Raises OSError where a link leads to a database of the bridge's own.
                open_shared(Path(str(self.place.url.database))).close()
            cursor = raw.cursor()
            for statement in statements:
                cursor.execute(statement)
            cursor.close()

        return connected


def _read_all_times(raw: Any) -> None:  # noqa: ANN401 -- a driver's connection
    """Read `infinity`, and years that Python does not have, as its last time, or as a past one.

    The driver refuses such a value, and with it the rest of the reading.
    """
    from psycopg import DataError  # noqa: PLC0415 -- installed where a till is on PostgreSQL
    from psycopg.types import datetime as types  # noqa: PLC0415 -- (as above)

    def reading(kind: type[Any]) -> type[Any]:
        def load(self: Any, data: bytes) -> object:  # noqa: ANN401 -- a loader of this kind
            try:
                return kind.load(self, data)
            except DataError:
                text = bytes(data)
                return _PAST if text.startswith(b"-") or text.endswith(b"BC") else _NEVER

        return type(kind.__name__, (kind,), {"load": load})

    for name in ("Date", "Timestamp", "Timestamptz"):
        loader = reading(getattr(types, f"{name}Loader"))
        raw.adapters.register_loader(name.lower(), loader)


def _load(raw: sqlite3.Connection, dump: Path) -> None:
    try:
        raw.executescript(read_shared(dump).decode("utf-8"))
    except ValueError as failure:
        raise sqlite3.DataError(
            _("{name} is no text: {failure}").format(name=dump.name, failure=str(failure))
        ) from failure
    raw.execute("PRAGMA query_only = ON")


def _no_driver(name: str, failure: Exception) -> str:
    text = str(failure).splitlines()[0]
    libpq = _(", and on Debian: apt-get install libpq5") if name == "postgresql" else ""
    return _(
        "The driver for {name} cannot be loaded ({text}). Install it beside "
        'the bridge: pip install "tillbridge-sql[{name}]"{libpq}.'
    ).format(name=name, text=text, libpq=libpq)
