"""A PostgreSQL server: connections to it, and what a ledger needs of it.

It is looked at before it is used, and by `doctor`. Imported only if a URL is configured.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrBinaryDumper, StrDumper

from tillbridge import ledger_schemas
from tillbridge.core.errors import BridgeError, ConfigError, LedgerUnreachable
from tillbridge.core.i18n import _

# A connection through a cut network is given up in five seconds, before the sender of a delivery
# stops waiting for its answer. Of several hosts, the primary is used. Parameters of the URL win.
_CONNECTING = {
    "connect_timeout": "5",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "target_session_attrs": "read-write",
    "application_name": "tillbridge",
    "client_encoding": "utf8",
}
# A bridge that hangs in a transaction must not hold locks that keep others from its stores.
_SESSION = "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '5s'"


class _Text(StrDumper):
    """Stores text that PostgreSQL refuses, with U+FFFD for NUL and ? for half a character."""

    def dump(self, obj: str) -> Any:  # noqa: ANN401 -- a buffer, as the driver takes it
        if "\0" in obj:
            obj = obj.replace("\0", "\ufffd")
        return obj.encode("utf-8", "replace")


class _BinaryText(StrBinaryDumper):
    """The same in binary parameters."""

    dump = _Text.dump


def connect(url: str) -> psycopg.Connection[Any]:
    """Return a connection in which each statement commits by itself. Raises psycopg.Error."""
    written = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://", 1))
    parameters: dict[str, Any] = {**_CONNECTING, **written}
    connection: psycopg.Connection[Any] = psycopg.connect(autocommit=True, **parameters)
    try:
        connection.adapters.register_dumper(str, _BinaryText)
        connection.adapters.register_dumper(str, _Text)  # the last one is what `%s` takes
        connection.execute(_SESSION)
    except BaseException:
        connection.close()
        raise
    return connection


def name_of(url: str) -> str:
    """Return host and database for people, without user and password."""
    known = conninfo_to_dict(url.replace("postgresql+psycopg://", "postgresql://", 1))
    port = f":{known['port']}" if "port" in known else ""
    return f"{known.get('host', 'localhost')}{port}/{known.get('dbname', '')}"


# -- bridges that use a database, or one that copies it

_IN_USE = 7_118_553


def take_part(connection: psycopg.Connection[Any]) -> bool:
    """Let nobody copy the database while this session lasts; False if somebody does."""
    return _is_locked(connection, "SELECT pg_advisory_lock_shared(%s)")


def take_alone(connection: psycopg.Connection[Any]) -> bool:
    """Let no bridge use the database while this session lasts; False if one does."""
    return _is_locked(connection, "SELECT pg_advisory_lock(%s)")


def _is_locked(connection: psycopg.Connection[Any], query: LiteralString) -> bool:
    # A session that has just ended keeps its lock until the server has noticed.
    connection.execute("SET lock_timeout = '1s'")
    try:
        connection.execute(query, [_IN_USE])
    except psycopg.errors.LockNotAvailable:
        return False
    finally:
        connection.execute(_SESSION)
    return True


# -- what is known of it

OLDEST = 14  # the major version; older ones get no security fixes
CLOCK_LIMIT_S = 60.0
ALIVE_S = 8.0  # a bridge that was seen this long ago still runs
# A confirmed commit is on disk only with these; see docs/operate.md.
_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")
_LOOK = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
    current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
    pg_is_in_recovery(), has_schema_privilege(current_schema(), 'CREATE'),
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
_BRIDGES = """
SELECT name, holder, version, (extract(epoch FROM clock_timestamp()) * 1000)::bigint - seen_at
FROM bridges ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class OtherBridge:
    """A bridge that uses the database: the id of its run, and how long ago it was seen."""

    name: str
    holder: str
    version: str
    seen_s: float

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.seen_s < ALIVE_S


@dataclass(frozen=True, slots=True)
class Server:
    """What is known of a server and a database.

    `name` has host and database. `clock_ahead_s` is how far the server's clock is ahead of ours.
    `schema` is the ledger's version, "" without one; `is_foreign`: there are only tables of another
    program. `settings` are those that a confirmed commit depends on, `standbys` those that it waits
    for.
    """

    name: str
    version: int = OLDEST  # major
    encoding: str = "UTF8"
    settings: Mapping[str, str] = field(default_factory=dict)
    standbys: str = ""
    is_standby: bool = False
    may_create: bool = True
    clock_ahead_s: float = 0.0
    schema: str = ""
    is_foreign: bool = False
    bridges: Sequence[OtherBridge] = ()

    @property
    def unsafe(self) -> Mapping[str, str]:
        """The settings with which a confirmed commit may be lost."""
        return {name: value for name, value in self.settings.items() if value == "off"}


def look_at(url: str) -> Server:
    """Connect and look; nothing is changed. Blocks for some seconds at most.

    Raises ConfigError if the server refuses us, LedgerUnreachable if it does not answer.
    """
    name = name_of(url)
    try:
        with closing(connect(url)) as connection:
            return _look(connection, name)
    except psycopg.Error as failure:
        raise refusal_of(failure, name) from failure


def _look(connection: psycopg.Connection[Any], name: str) -> Server:
    before = time.time()
    row: Sequence[Any] = connection.execute(_LOOK).fetchone() or ()
    ahead_s = row[8] / 1000 - (before + time.time()) / 2
    tables = {table for (table,) in connection.execute(_TABLES)}
    schema, bridges = "", []
    if "alembic_version" in tables:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        schema = str(found[0]) if found else ""
    if "bridges" in tables:
        bridges = [
            OtherBridge(each, holder, version, ago_ms / 1000)
            for each, holder, version, ago_ms in connection.execute(_BRIDGES)
        ]
    return Server(
        name=name,
        version=row[0] // 10_000,
        encoding=row[1],
        settings=dict(zip(_DURABLE, row[2:5], strict=True)),
        standbys=row[5],
        is_standby=row[6],
        may_create=bool(row[7]),
        clock_ahead_s=ahead_s,
        schema=schema,
        is_foreign=bool(tables) and not (schema and "inbox" in tables),
        bridges=bridges,
    )


def refuse_unfit(server: Server) -> None:
    """Raise the BridgeError that `unfit` returns."""
    if (refusal := unfit(server)) is not None:
        raise refusal


def refusal_of(failure: BaseException, name: str) -> BridgeError:
    """Return what a connection that was not made means.

    The driver has only the words of the server, which are not English everywhere: what they do not
    tell apart counts as not reachable, with the words.
    """
    said = failure.diag.message_primary if isinstance(failure, psycopg.Error) else ""
    words = " ".join((said or str(failure)).split())
    # What was tried stands before it, and is in the sentence already.
    words = words.rsplit(" failed: ", 1)[-1].partition(" Is the server running")[0]
    words = words.removeprefix("FATAL: ").rstrip(".")
    low = words.lower()
    if "password" in low or "pg_hba.conf" in low or "role" in low or "authentication" in low:
        return ConfigError(
            _("The database server refuses the user of {name}: {detail}.").format(
                name=name, detail=words
            ),
            fix=_("Correct user and password in url of [ledger], or the server's pg_hba.conf."),
        )
    if "database" in low and "does not exist" in low:
        return ConfigError(
            _("The database {name} does not exist.").format(name=name),
            fix=_(
                "Create it (createdb --encoding=UTF8 --template=template0 NAME), or correct url in "
                "[ledger]."
            ),
        )
    return LedgerUnreachable(
        _("The database server of {name} cannot be reached: {detail}.").format(
            name=name, detail=words
        ),
        fix=_(
            "Check that it runs and can be reached from this machine, and url in [ledger]. The "
            "bridge loses nothing meanwhile: the service delivers again."
        ),
    )


def unfit(server: Server) -> BridgeError | None:
    """Return why a ledger must not be on this server, or why we must not use it; None if it may."""
    if server.version < OLDEST:
        return ConfigError(
            _("The database server is PostgreSQL {version}, which is too old.").format(
                version=server.version
            ),
            fix=_("Use PostgreSQL {oldest} or newer.").format(oldest=OLDEST),
        )
    if server.unsafe:
        shown = ", ".join(f"{name} = {value}" for name, value in server.unsafe.items())
        return ConfigError(
            _("The database server confirms what a power cut can lose: {settings}.").format(
                settings=shown
            ),
            fix=_(
                "Set {settings} to on in postgresql.conf (or for the role), and reload it."
            ).format(settings=", ".join(server.unsafe)),
        )
    if server.encoding != "UTF8":
        return ConfigError(
            _("The database {name} stores text as {encoding}, which has not every letter.").format(
                name=server.name, encoding=server.encoding
            ),
            fix=_("Create another: createdb --encoding=UTF8 --template=template0 NAME"),
        )
    return _not_ours(server) or _not_now(server)


def _not_ours(server: Server) -> ConfigError | None:
    if server.is_foreign:
        return ConfigError(
            _("The database {name} has tables of another program.").format(name=server.name),
            fix=_("Create a database for the bridge alone, and name it in url of [ledger]."),
        )
    if server.schema and server.schema not in ledger_schemas():
        return ConfigError(
            _("The database {name} was written by a newer tillbridge (schema {schema}).").format(
                name=server.name, schema=server.schema
            ),
            fix=_("Install that version again, or restore a backup made before it first ran."),
        )
    if not server.schema and not server.may_create:
        return ConfigError(
            _("The user of the database {name} may not create tables in it.").format(
                name=server.name
            ),
            fix=_("Make that user the owner of the database: ALTER DATABASE NAME OWNER TO USER"),
        )
    return None


def _not_now(server: Server) -> BridgeError | None:
    if server.is_standby:
        return LedgerUnreachable(
            _("The database server of {name} is a standby, which only reads.").format(
                name=server.name
            ),
            fix=_(
                "Name all servers of the cluster in url of [ledger], with "
                "target_session_attrs=read-write."
            ),
        )
    if abs(server.clock_ahead_s) > CLOCK_LIMIT_S:
        return ConfigError(
            _(
                "The clocks of this machine and of the database server differ by {seconds} seconds."
            ).format(seconds=round(abs(server.clock_ahead_s))),
            fix=_("Let both be set by a time server: timedatectl set-ntp true"),
        )
    return None
