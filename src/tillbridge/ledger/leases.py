"""Several bridges on one ledger: who they are, who serves what, and what one asks of another.

Imported only for a ledger on PostgreSQL. Instants are the database's (ms), so that all bridges mean
the same ones. A bridge is identified by its run (`holder`), which a bridge that was declared dead
never is again: whatever it still believes, it holds nothing.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, delete, exists, insert, inspect, select, text
from sqlmodel import col

from tillbridge.core.clock import Clock
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Supervisor, Worker, in_thread
from tillbridge.ledger.database import JsonText, Row, among, first_row, json_text
from tillbridge.ledger.models import BridgeRequest, BridgeRow, Lease
from tillbridge.ledger.server import connect

R = TypeVar("R", bound=Row)

log = get_logger()

CHANNEL = "tillbridge"
SESSION = "tillbridge.holder"  # whose session it is, for the fence
DECLARE = (
    f"SELECT set_config('{SESSION}', %(holder)s, false),"
    " set_config('application_name', 'tillbridge ' || %(holder)s, false)"
)
"""Says in a session whose it is: for the fence, and for whoever has to end it."""

_FORGET_MS = 7 * 86_400_000  # a bridge that has not been seen for so long
_REQUEST_MS = 180_000  # nobody waits so long for an answer


# The whole state in one statement: on a slow network, or a busy machine, each more takes its time.
_STATE = """
SELECT
    (SELECT coalesce(json_agg(b ORDER BY name), '[]') FROM bridges b) AS bridges,
    (SELECT coalesce(json_agg(l ORDER BY store), '[]') FROM leases l) AS leases,
    (SELECT coalesce(json_agg(DISTINCT store), '[]') FROM inbox WHERE handled_at IS NULL) AS inbox,
    (SELECT coalesce(json_agg(r ORDER BY at), '[]') FROM requests r
        WHERE holder = :me AND done_at IS NULL) AS requests,
    (SELECT coalesce(json_object_agg(store, value), '{}') FROM facts
        WHERE name = 'service_store_id') AS store_ids,
"""
_CLOCK = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_LOOK = text(f"{_STATE} CAST('[]' AS json) AS buried, {_CLOCK} AS now")
# Rows of others that are late are locked: either they have renewed before, or they will see that
# they were declared dead.
_BEAT = text(
    f"""
WITH renewed AS (
    UPDATE bridges SET seen_at = {_CLOCK}, detail = :detail WHERE name = :name AND holder = :me
    RETURNING seen_at
), late AS (
    SELECT b.name, b.holder FROM bridges b, renewed
    WHERE b.holder NOT IN ('', :me) AND b.seen_at < renewed.seen_at - CAST(:dead_ms AS bigint)
    FOR UPDATE OF b SKIP LOCKED
), buried AS (
    UPDATE bridges SET holder = '' FROM late WHERE bridges.name = late.name
    RETURNING late.name, late.holder
)
{_STATE}
    (SELECT coalesce(json_agg(buried), '[]') FROM buried) AS buried,
    (SELECT seen_at FROM renewed) AS now
"""  # noqa: S608 -- our own words
)


class NameTaken(Exception):
    """Another bridge that is alive has this name; `seen_at` is when it was last seen (ms)."""

    def __init__(self, name: str, seen_at: int) -> None:
        super().__init__(name)
        self.seen_at = seen_at


@dataclass(frozen=True, slots=True)
class Cluster:
    """The state as one bridge has read it, in the transaction that renewed its leases.

    `holder` is the id of its run. `inbox` are the stores with deliveries that are not handled yet.
    `store_ids` are the ids of connected stores at the service. `died` are the bridges that it has
    just declared dead.
    """

    holder: str
    now_ms: int
    bridges: tuple[BridgeRow, ...]
    leases: tuple[Lease, ...]
    inbox: frozenset[str]
    requests: tuple[BridgeRequest, ...]
    store_ids: Mapping[str, str]
    died: tuple[str, ...] = ()

    @property
    def held(self) -> frozenset[str]:
        """The keys that this bridge holds."""
        return frozenset(each.store for each in self.leases if each.holder == self.holder)

    def server_of(self, key: str) -> BridgeRow | None:
        """Return the bridge that serves a store or community; None: nobody does."""
        holder = next((each.holder for each in self.leases if each.store == key), "")
        return next((each for each in self.bridges if holder and each.holder == holder), None)


Decide = Callable[[Cluster], Collection[str]]
"""Returns the keys to take."""


def join(connection: Connection, me: BridgeRow, keys: Collection[str], dead_ms: int) -> str:
    """Register this bridge under its name, and the keys that it can serve; return its new holder.

    `me.detail["serve"]` are the keys that it alone may serve. Raises NameTaken.
    """
    now = _now(connection)
    known = first_row(connection, select(BridgeRow).filter_by(name=me.name).with_for_update())
    if known is not None and known.holder not in {"", me.holder} and now - known.seen_at < dead_ms:
        raise NameTaken(me.name, known.seen_at)
    holder = secrets.token_hex(16)
    connection.execute(
        text(
            "INSERT INTO bridges (name, holder, url, version, started_at, seen_at, detail)"
            " VALUES (:name, :holder, :url, :version, :started_at, :now, :detail)"
            " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, url = excluded.url,"
            " version = excluded.version, started_at = excluded.started_at,"
            " seen_at = excluded.seen_at, detail = excluded.detail"
        ),
        {
            **me.model_dump(include={"name", "url", "version", "started_at"}),
            "holder": holder,
            "now": now,
            "detail": json_text(me.detail),
        },
    )
    connection.execute(
        text(
            "INSERT INTO leases (store, holder, token, since)"
            " SELECT key, '', 0, :now FROM unnest(CAST(:keys AS text[])) AS key"
            " ON CONFLICT DO NOTHING"
        ),
        {"keys": sorted(keys), "now": now},
    )
    pinned = sorted(me.detail.get("serve") or ())
    connection.execute(
        text(
            "UPDATE leases SET pinned = CASE WHEN store = ANY(:pinned) THEN :name ELSE '' END"
            " WHERE (store = ANY(:pinned)) <> (pinned = :name)"
        ),
        {"pinned": pinned, "name": me.name},
    )
    old = (col(BridgeRow.seen_at) < now - _FORGET_MS) & (col(BridgeRow.holder) == "")
    connection.execute(delete(BridgeRow).where(old))
    _declare(connection, holder)
    notify(connection, "lease")
    return holder


def beat(
    connection: Connection,
    me: BridgeRow,
    decide: Decide,
    *,
    dead_ms: int | None,
    renewed: Callable[[], None] = lambda: None,
) -> Cluster | None:
    """Renew this run's leases, take what `decide` returns of what nobody has, and return the state.

    Bridges that were not seen for `dead_ms` are declared dead (None: not now), and their sessions
    ended. None: others have declared this one dead: it holds nothing, and has to join again.
    `renewed` is called as soon as the leases are.

    Each statement may commit by itself: a bridge that is frozen between two of them locks nothing.
    """
    found = connection.execute(
        _BEAT,
        {
            "name": me.name,
            "me": me.holder,
            "detail": json_text(me.detail),
            "dead_ms": dead_ms,
        },
    ).one()
    if found.now is None:
        return None
    renewed()
    cluster = _cluster(me.holder, found)
    if found.buried:
        _end_sessions(connection, [each["holder"] for each in found.buried])
    if wanted := sorted(decide(cluster)):
        taken = text(
            "UPDATE leases SET holder = :holder, token = token + 1, since = :now"
            " WHERE store IN (SELECT store FROM leases WHERE store = ANY(:wanted)"
            " AND holder NOT IN (SELECT holder FROM bridges WHERE holder <> '')"
            " FOR UPDATE SKIP LOCKED)"
            # A bridge may have been frozen, and declared dead, since it has renewed.
            " AND EXISTS (SELECT 1 FROM bridges WHERE bridges.holder = :holder)"
            " RETURNING store, token"
        )
        values = {"holder": me.holder, "now": cluster.now_ms, "wanted": wanted}
        tokens = {row.store: row.token for row in connection.execute(taken, values)}
        cluster = replace(
            cluster,
            leases=tuple(
                each.replace(holder=me.holder, token=tokens[each.store], since=cluster.now_ms)
                if each.store in tokens
                else each
                for each in cluster.leases
            ),
        )
    return cluster


def release(connection: Connection, holder: str, keys: Iterable[str]) -> None:
    """Give these leases back, for others to take at once."""
    connection.execute(
        text(
            f"UPDATE leases SET holder = '', token = token + 1, since = {_CLOCK}"  # noqa: S608 -- our own words
            " WHERE holder = :holder AND store = ANY(:keys)"
        ),
        {"holder": holder, "keys": sorted(keys)},
    )
    notify(connection, "lease")


def leave(connection: Connection, name: str, holder: str) -> None:
    """Take note that this run has ended; what it still holds is free."""
    connection.execute(
        text("UPDATE bridges SET holder = '', seen_at = :now WHERE name = :name AND holder = :old"),
        {"now": _now(connection), "name": name, "old": holder},
    )
    notify(connection, "lease")


def bury(connection: Connection, dead_ms: int) -> None:
    """Declare bridges dead that were not seen for so long, and free what no bridge holds."""
    connection.execute(
        text("UPDATE bridges SET holder = '' WHERE seen_at < :limit"),
        {"limit": _now(connection) - dead_ms},
    )
    connection.execute(
        text(
            "UPDATE leases SET holder = '', token = token + 1, since = :now WHERE holder <> ''"
            " AND holder NOT IN (SELECT holder FROM bridges)"
        ),
        {"now": _now(connection)},
    )


def notify(connection: Connection, word: str) -> None:
    """Send a word to all bridges that listen, at the commit."""
    connection.execute(
        text("SELECT pg_notify(:channel, :word)"), {"channel": CHANNEL, "word": word}
    )


def read_cluster(connection: Connection, holder: str = "") -> Cluster:
    """Return the state as it is, for whoever looks."""
    return _cluster(holder, connection.execute(_LOOK, {"me": holder}).one())


def _cluster(holder: str, found: Any) -> Cluster:  # noqa: ANN401 -- a row of _STATE
    died = {each["name"]: each["holder"] for each in found.buried}
    bridges = [
        # The statement has read the rows as they were before it.
        each.replace(holder="")
        if each.name in died
        else each.replace(seen_at=found.now)
        if each.holder == holder
        else each
        for each in _rows(BridgeRow, found.bridges)
    ]
    return Cluster(
        holder,
        found.now,
        tuple(bridges),
        tuple(_rows(Lease, found.leases)),
        frozenset(found.inbox),
        tuple(_rows(BridgeRequest, found.requests)),
        {store: json.loads(value) for store, value in found.store_ids.items()},
        tuple(died),
    )


def _rows(table: type[R], listed: Iterable[Mapping[str, Any]]) -> Iterator[R]:
    """Yield rows that the database has listed as JSON; some of their columns are JSON in text."""
    texts = [each.name for each in inspect(table).columns if isinstance(each.type, JsonText)]
    for each in listed:
        plain = {name: each[name] and json.loads(each[name]) for name in texts}
        yield table.of_columns({**each, **plain})


def _now(connection: Connection) -> int:
    return int(connection.scalar(text(f"SELECT {_CLOCK}")) or 0)


def _declare(connection: Connection, holder: str) -> None:
    # After a lost connection, the next one of the writer declares the same.
    connection.engine.update_execution_options(holder=holder)
    connection.exec_driver_sql(DECLARE, {"holder": holder})


def _end_sessions(connection: Connection, holders: Iterable[str]) -> None:
    # A bridge that was frozen between two statements of a pipeline (executemany) is not idle for
    # the server, however long that lasts, and its transaction would keep its stores from everybody.
    ending = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user"
        " AND datname = current_database() AND application_name = ANY(:names)"
    )
    connection.execute(ending, {"names": [f"tillbridge {each}" for each in holders]})


# -- what one bridge asks of another


def ask(
    connection: Connection,
    holder: str,
    name: str,
    arguments: Mapping[str, Any],
    actor: Mapping[str, Any],
) -> str | None:
    """Ask a run of a bridge to perform an operation; return the request's id.

    None if that run is gone: its stores are on their way to another.
    """
    if not connection.scalar(select(exists().where(col(BridgeRow.holder) == holder))):
        return None
    request_id, now = secrets.token_hex(16), _now(connection)
    connection.execute(delete(BridgeRequest).where(col(BridgeRequest.at) < now - _REQUEST_MS))
    row = BridgeRequest(
        id=request_id, holder=holder, name=name, arguments=arguments, actor=actor, at=now
    )
    connection.execute(insert(BridgeRequest).values(row.model_dump()))
    notify(connection, f"request {holder}")
    return request_id


def answer(
    connection: Connection,
    request_id: str,
    *,
    answer: Any = None,  # noqa: ANN401 -- any JSON value
    failure: Mapping[str, Any] | None = None,
) -> None:
    """Answer a request."""
    values = {
        "answer": json_text(answer),
        "failure": None if failure is None else json_text(failure),
    }
    connection.execute(
        text(
            "UPDATE requests SET answer = :answer, failure = :failure, done_at = :now"
            " WHERE id = :id"
        ),
        {**values, "now": _now(connection), "id": request_id},
    )
    notify(connection, f"answer {request_id}")


def take_answers(connection: Connection, ids: Collection[str]) -> list[BridgeRequest]:
    """Return those of these requests that are answered, and remove them."""
    is_done = among(col(BridgeRequest.id), ids) & col(BridgeRequest.done_at).is_not(None)
    # In one statement: a second one would also remove what was answered after the first.
    taken = delete(BridgeRequest).where(is_done).returning(BridgeRequest)
    return [BridgeRequest.of_columns({**row}) for row in connection.execute(taken).mappings()]


def withdraw(connection: Connection, request_id: str) -> None:
    """Remove a request that nobody waits for any more."""
    connection.execute(delete(BridgeRequest).filter_by(id=request_id))


# -- notifications (NOTIFY) of other bridges, over a connection for them alone
#
# One may be lost with the connection, so nothing depends on it: who listens looks for itself every
# few seconds, too.

_LISTEN_AGAIN_S = 2.0


class Notifications:
    """Calls `on_notification` with the text of each, in the event loop, and with "" at its start.

    That is each time it listens again: some may have been lost. Run `worker`; then `close`.
    """

    def __init__(
        self, url: str, on_notification: Callable[[str], None], supervisor: Supervisor, clock: Clock
    ) -> None:
        self._url = url
        self._on_notification = on_notification
        self._connection: psycopg.Connection[Any] | None = None
        self._failing = False
        self.worker = Worker("notifications", self._listen, supervisor, clock)
        self.worker.wake()

    def close(self) -> None:
        """Listen no more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            asyncio.get_running_loop().remove_reader(connection.fileno())
            connection.close()

    async def _listen(self) -> float | None:
        """Connect and listen; where that fails, return in how many seconds to try again."""
        try:
            connection = await in_thread(lambda: _listening(self._url))
        except psycopg.Error as failure:
            if not self._failing:
                log.warning("notifications.none", detail=" ".join(str(failure).split()))
            self._failing = True
            return _LISTEN_AGAIN_S
        try:
            asyncio.get_running_loop().add_reader(connection.fileno(), self._read)
        except NotImplementedError:  # Windows: whoever listens looks by itself
            connection.close()
            return None
        if self._failing:
            log.info("notifications.listening")
        self._failing = False
        self._connection = connection
        self._on_notification("")
        return None

    def _read(self) -> None:
        """Pass on what has come; without blocking."""
        if self._connection is None:
            return
        try:
            self._connection.pgconn.consume_input()
        except psycopg.OperationalError:
            log.warning("notifications.lost")
            with suppress(psycopg.Error):
                self.close()
            self.worker.wake()
            return
        while (notice := self._connection.pgconn.notifies()) is not None:
            self._on_notification(notice.extra.decode("utf-8", "replace"))


def _listening(url: str) -> psycopg.Connection[Any]:
    connection = connect(url)
    connection.execute(f"LISTEN {CHANNEL}")
    return connection
