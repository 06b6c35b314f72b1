"""Reading a ledger without its daemon: the same SQL on either database, without changing it.

Needs only the driver, so that `tillbridge status` answers immediately while the daemon is down.
Queries that are made with SQLAlchemy have `backend.connected`.
"""

import contextlib
import socket
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings  # only for a type

BRIDGES = "bridges/"  # prefix of where each of several bridges has its own rows

Query = Callable[..., Iterable[Any]]
"""Runs SQL with `?` for its parameters; returns the rows."""


class Place(NamedTuple):
    """Where a ledger is: a file, or the database of a URL.

    `own` is where the rows of the bridge itself are in a database, see `facts.own_key`.
    """

    path: Path
    url: str | None = None
    own: str = ""


def place_of(file: Path, data_dir: Path, configured: Mapping[str, Any]) -> Place:
    """Return where the ledger of a configuration is that nobody has checked. Raises ConfigError."""
    path = data_dir / "ledger.db"
    if not isinstance(configured.get("ledger"), Mapping):
        return Place(path)
    from tillbridge.config.secrets import ledger_url_of  # noqa: PLC0415 -- most have no such table

    url, bridge = ledger_url_of(file, configured), configured.get("bridge")
    name = bridge.get("name") if isinstance(bridge, Mapping) else None
    return Place(path, url, f"{BRIDGES}{name or socket.gethostname()}" if url else "")


def place_in(loaded: "LoadedSettings") -> Place:
    """Return where the ledger of a configuration is. Raises ConfigError."""
    url = loaded.ledger_url()
    own = f"{BRIDGES}{loaded.settings.bridge.known_as}" if url else ""
    return Place(loaded.data_dir / "ledger.db", url, own)


@contextlib.contextmanager
def reading(path: Path, url: str | None = None, *, patience_s: float = 1) -> Iterator[Query]:
    """Read `ledger.db`, or the database of the URL, in one committed state.

    Raises LedgerError if there is none yet, or if it cannot be read; ConfigError for a wrong URL.
    """
    if url is not None:
        with _reading_server(url) as query:
            yield query
        return
    refuse_missing(path)
    try:
        with contextlib.closing(opened_to_read(path, patience_s)) as connection:
            yield connection.execute
    except sqlite3.Error as failure:
        raise LedgerError(
            _("The database {path} cannot be read: {detail}.").format(path=path, detail=failure),
            fix=_("Start the bridge: it repairs a damaged database when it starts."),
        ) from failure


def opened_to_read(path: Path, patience_s: float) -> sqlite3.Connection:
    """Return a connection in a transaction that only reads. Raises sqlite3.Error."""
    # Without permission to create a -shm file SQLite cannot read the WAL: use the file alone then.
    for how in ("mode=ro", "immutable=1"):
        uri = f"{path.absolute().as_uri()}?{how}"
        connection = None
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=patience_s)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except sqlite3.Error:
            if connection is not None:
                connection.close()
            if how == "immutable=1":
                raise
        else:
            return connection
    raise AssertionError  # the last one has returned or raised


@contextlib.contextmanager
def _reading_server(url: str) -> Iterator[Query]:
    need_driver()
    import psycopg  # noqa: PLC0415 -- imported only if a URL is configured

    from tillbridge.ledger.server import connect, name_of, refusal_of  # noqa: PLC0415 -- (as above)

    try:
        with contextlib.closing(connect(url)) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield lambda sql, *values: connection.execute(sql.replace("?", "%s"), *values)
    except psycopg.errors.UndefinedTable as failure:
        raise LedgerError(
            _("There is no database at {path}.").format(path=name_of(url)),
            fix=_("The bridge creates its tables when it first starts."),
        ) from failure
    except psycopg.Error as failure:
        raise refusal_of(failure, name_of(url)) from failure


def refuse_missing(path: Path) -> None:
    """Raise LedgerError if there is no such file: opening it would make one."""
    if not path.exists():
        raise LedgerError(
            _("There is no database at {path}.").format(path=path),
            fix=_(
                "Check data_dir in [bridge]. The bridge creates the database at its first start."
            ),
        )


def need_driver() -> None:
    """Raise LedgerError if the driver for database servers cannot be imported."""
    try:
        import psycopg  # noqa: F401, PLC0415 -- imported only if a URL is configured
    except ImportError as failure:
        raise LedgerError(
            _("A database server needs psycopg, which cannot be imported: {detail}.").format(
                detail=failure
            ),
            fix=_("Install it: pip install 'tillbridge[postgresql]'"),
        ) from failure
