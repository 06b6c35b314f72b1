"""Leases, and the fence of each table, on a real PostgreSQL: what a stale bridge is refused."""

import asyncio
import threading
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, event, insert, inspect, text
from sqlalchemy.pool import NullPool

from tests.support.bridge_process import until
from tests.support.postgresql import new_database, on_postgresql
from tillbridge.cli import control
from tillbridge.core.actor import Actor
from tillbridge.core.clock import Clock
from tillbridge.core.errors import (
    BridgeError,
    LeaseLost,
    LedgerUnwritable,
    NotServedHere,
    ServedElsewhere,
)
from tillbridge.core.problems import Found, Scope
from tillbridge.daemon import peers
from tillbridge.daemon.leases import DEAD_AFTER_MS
from tillbridge.daemon.peers import Peers, ask_alone
from tillbridge.ledger import audit, leases
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.leases import Cluster, NameTaken
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import BridgeRow, NewDelivery, metadata
from tillbridge.ledger.postgresql import driver_of
from tillbridge.ledger.problems import (
    acknowledge,
    close_problem,
    open_problem,
    open_problems,
    report,
)
from tillbridge.ledger.prune import CutOffs, prune
from tillbridge.ledger.snapshot import ACKNOWLEDGED

pytestmark = on_postgresql()

KEYS = ("main", "bar")
_KEY = urlsafe_b64encode(bytes(32)).decode()


@pytest.fixture
def url() -> str:
    return new_database()


@asynccontextmanager
async def opened(url: str, folder: Path, name: str) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(folder / name, clock=Clock(), url=url, key=_KEY, name=name)
    try:
        yield ledger
    finally:
        await ledger.close()


def row(name: str, holder: str = "", **detail: Any) -> BridgeRow:  # noqa: ANN401 -- any JSON value
    return BridgeRow(name=name, holder=holder, started_at=1, seen_at=0, detail=detail)


def everything(_cluster: Cluster) -> tuple[str, ...]:
    return KEYS


def nothing(_cluster: Cluster) -> tuple[str, ...]:
    return ()


async def joined(ledger: Ledger, name: str, take: leases.Decide = everything) -> BridgeRow:
    """Join, and take what `take` says."""
    me = row(name, await ledger.write(leases.join, row(name), KEYS, DEAD_AFTER_MS))
    await ledger.write(leases.beat, me, take, dead_ms=None)
    return me


def run_sql(connection: Connection, sql: str) -> None:
    connection.execute(text(sql))


async def was_not_seen(ledger: Ledger, name: str) -> None:
    """Let it look as if a bridge had not been seen for long."""
    await ledger.write(run_sql, f"UPDATE bridges SET seen_at = 1 WHERE name = '{name}'")


async def sessions_end(ledger: Ledger, holder: str) -> None:
    """Wait for the end of a dead bridge's sessions: what it writes meanwhile fails as unsaved."""
    name = f"tillbridge {holder}"
    left = text("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = :name)")
    look = partial(Connection.scalar, statement=left, parameters={"name": name})
    await until("its sessions are ended", lambda: ledger.read(look))


async def test_only_one_bridge_takes_a_store_and_others_take_it_from_the_dead_alone(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a, b = await joined(of_a, "a"), await joined(of_b, "b")
        seen = await of_b.write(leases.beat, b, everything, dead_ms=DEAD_AFTER_MS)
        assert seen is not None
        assert not seen.held
        assert seen.server_of("main") == seen.bridges[0]
        await was_not_seen(of_b, "a")
        seen = await of_b.write(leases.beat, b, everything, dead_ms=None)
        assert seen is not None
        assert not seen.held, "nobody has declared it dead"
        seen = await of_b.write(leases.beat, b, everything, dead_ms=DEAD_AFTER_MS)
        assert seen is not None
        assert seen.held == set(KEYS)
        assert seen.died == ("a",)
        assert {each.token for each in seen.leases} == {2}
        await sessions_end(of_b, a.holder)
        assert await of_a.write(leases.beat, a, everything, dead_ms=None) is None, "it is told"
        again = await joined(of_a, "a")
        assert again.holder != a.holder
        await of_b.write(leases.release, b.holder, ["bar"])
        seen = await of_a.write(leases.beat, again, everything, dead_ms=None)
        assert seen is not None
        assert seen.held == {"bar"}


async def test_a_name_is_one_bridge_s_until_it_is_gone(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a = await joined(of_a, "a")
        with pytest.raises(NameTaken):
            await of_b.write(leases.join, row("a"), KEYS, DEAD_AFTER_MS)
        await of_a.write(leases.leave, "a", a.holder)
        assert await of_b.write(leases.join, row("a"), KEYS, DEAD_AFTER_MS) != a.holder


def _inserts(store: str) -> Iterator[tuple[str, Callable[[Connection], object]]]:
    """Yield, for each table with a store, what writes a row into it."""
    for table in metadata.sorted_tables:
        names = {each.name for each in table.columns}
        if not names & {"store", "community"} or table.name in {"audit", "inbox", "leases"}:
            continue
        values: dict[str, Any] = {}
        for column in table.columns:
            if column.name in {"store", "community"}:
                values[column.key] = store
            elif column.nullable or column.server_default is not None or column.name == "id":
                continue
            elif column.type.python_type is int:
                values[column.key] = 1
            elif column.type.python_type is bool:
                values[column.key] = True
            else:
                values[column.key] = next(iter(getattr(column.type, "kind", ["x"])))

        def write(connection: Connection, table: Any = table, values: Any = values) -> object:  # noqa: ANN401 -- of any table
            return connection.execute(insert(table).values(values))

        yield table.name, write


async def test_the_fence_of_every_table_refuses_a_bridge_that_does_not_serve_the_store(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        await joined(of_a, "a")
        await joined(of_b, "b", nothing)
        tables = 0
        for name, write in _inserts("main"):
            with pytest.raises(LeaseLost):
                await of_b.write(write)
            await of_a.write(write)
            for change in (f'UPDATE "{name}" SET {_any(name)}', f'DELETE FROM "{name}"'):
                with pytest.raises(LeaseLost):
                    await of_b.write(run_sql, change)
            await of_a.write(run_sql, f'DELETE FROM "{name}"')
            tables += 1
        assert tables >= 18
        # Any bridge receives any store's deliveries; who serves it handles them.
        delivery = NewDelivery(
            store="main", delivery_id="d", event_id="e", event_type="x", received_at=1, body=b"{}"
        )
        assert await of_b.write(delivery)
        with pytest.raises(LeaseLost):
            await of_b.write(run_sql, "UPDATE inbox SET handled_at = 1")
        await of_a.write(run_sql, "UPDATE inbox SET handled_at = 1")


def _any(table: str) -> str:
    """Return an assignment that changes nothing."""
    column = next(each.name for each in metadata.tables[table].columns)
    return f'"{column}" = "{column}"'


async def test_a_refused_write_takes_no_other_one_with_it(url: str, tmp_path: Path) -> None:
    lost: list[str] = []
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        await joined(of_a, "a", lambda _cluster: ["main"])
        await joined(of_b, "b", lambda _cluster: ["bar"])
        of_b.on_lease_lost = lambda: lost.append("lost")
        waiters = [
            of_b.write(put_fact, "bar", "one", 1, at=1),
            of_b.write(put_fact, "main", "two", 2, at=1),
            of_b.write(put_fact, "bar", "three", 3, at=1),
        ]
        await waiters[0]
        with pytest.raises(LeaseLost, match="another bridge serves main"):
            await waiters[1]
        await waiters[2]
        assert await of_a.get_fact("bar", "three") == 3
        assert lost
        assert of_b.writable, "it is not the disk's fault"


@contextmanager
def session(url: str, holder: str = "") -> Iterator[Connection]:
    """A session of no ledger, which declares this holder."""
    with create_engine(url, poolclass=NullPool).connect() as connection:
        connection.execute(text("SELECT set_config('tillbridge.holder', :h, false)"), {"h": holder})
        connection.commit()
        yield connection


async def test_a_write_under_way_keeps_others_from_taking_its_store(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a, b = await joined(of_a, "a"), await joined(of_b, "b", nothing)
        with session(url, a.holder) as frozen:
            put_fact(frozen, "main", "one", 1, at=1)  # and here it is frozen
            await was_not_seen(of_b, "a")
            seen = await of_b.write(leases.beat, b, everything, dead_ms=DEAD_AFTER_MS)
            assert seen is not None
            assert seen.held == {"bar"}
            frozen.rollback()
            seen = await of_b.write(leases.beat, b, everything, dead_ms=DEAD_AFTER_MS)
            assert seen is not None
            assert seen.held == set(KEYS)
            with pytest.raises(Exception, match="another bridge serves main") as refused:
                put_fact(frozen, "main", "one", 1, at=1)
            assert isinstance(refused.value.__cause__, psycopg.Error)
            assert refused.value.__cause__.sqlstate == "TB001"


async def test_the_sessions_of_a_bridge_that_was_declared_dead_are_ended(
    url: str, tmp_path: Path
) -> None:
    """Frozen in a pipeline, it is not idle for the server, and would keep its store for ever."""
    go_on = threading.Event()

    def freeze(connection: Connection) -> None:
        driver = driver_of(connection)
        with driver.pipeline():
            change = b"INSERT INTO facts (store, name, value, at) VALUES ('main', 'one', '1', 1)"
            driver.pgconn.send_query_params(change, [])
            driver.pgconn.send_flush_request()
            driver.pgconn.flush()
            go_on.wait(600)

    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a, b = await joined(of_a, "a"), await joined(of_b, "b", nothing)
        frozen = of_a.write(freeze)
        try:
            await until("the lease is locked", lambda: of_b.read(_somebody_waits_in_a_pipeline))
            await was_not_seen(of_b, "a")

            async def has_both() -> bool:
                seen = await of_b.write(leases.beat, b, everything, dead_ms=DEAD_AFTER_MS)
                return seen is not None and seen.held == set(KEYS)

            await until("its stores are taken over", has_both)
        finally:
            go_on.set()
        with pytest.raises(LedgerUnwritable):
            await frozen
        await until("it connects again", lambda: asyncio.sleep(0, of_a.writable))
        assert await of_a.write(leases.beat, a, nothing, dead_ms=None) is None, "it is told"
        assert await of_b.get_fact("main", "one") is None


def _somebody_waits_in_a_pipeline(connection: Connection) -> bool:
    """Return whether a session has changed something, and waits for what follows."""
    waits = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state = 'active' AND wait_event = 'ClientRead' AND query LIKE 'INSERT INTO facts%'"
    )
    return bool(connection.scalar(text(waits)))


async def test_a_command_may_write_for_a_store_that_nobody_serves(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a = await joined(of_a, "a", lambda _cluster: ["main"])
        await of_b.write(put_fact, "bar", "one", 1, at=1)
        await of_b.write(put_fact, "new", "one", 1, at=1)
        with pytest.raises(LeaseLost):
            await of_b.write(put_fact, "main", "one", 1, at=1)
        await was_not_seen(of_b, "a")
        await of_b.write(leases.bury, DEAD_AFTER_MS)
        await of_b.write(put_fact, "main", "one", 1, at=1)
        with pytest.raises(LeaseLost):
            await of_a.write(put_fact, "main", "one", 1, at=1)
        assert await of_a.write(leases.beat, a, nothing, dead_ms=None) is None


async def test_each_bridge_has_facts_and_problems_of_its_own(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        for number, ledger in enumerate((of_a, of_b)):
            await ledger.put_fact("", "running", number, at=1)
            await ledger.put_fact("", "orders_seen", number, at=1)
            found = [Found("disk.low", detail={"n": number})]
            await ledger.write(report, Scope("", frozenset({"disk.low"})), found, 1)
        assert (await of_a.get_fact("", "running"), await of_b.get_fact("", "running")) == (0, 1)
        assert await of_a.get_fact("", "orders_seen") == 1, "people look at all bridges"
        for number, ledger in enumerate((of_a, of_b)):
            (problem,) = await ledger.read(open_problems)
            assert (problem.store, problem.detail) == ("", {"n": number})
        await of_a.write(report, Scope("", frozenset({"disk.low"})), (), 2)
        assert not await of_a.read(open_problems)
        assert len(await of_b.read(open_problems)) == 1


async def test_history_is_removed_by_the_bridge_that_serves_the_store(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        await joined(of_a, "a", lambda _cluster: ["main"])
        await joined(of_b, "b", lambda _cluster: ["bar"])
        for store, ledger in (("main", of_a), ("bar", of_b)):
            delivery = NewDelivery(
                store=store, delivery_id="", event_id="e", event_type="x", received_at=1, body=b"{}"
            )
            await ledger.write(delivery)
            await ledger.write(run_sql, f"UPDATE inbox SET handled_at = 1 WHERE store = '{store}'")
        before = CutOffs(personal_data=10, history=10)
        with pytest.raises(LeaseLost):
            await of_b.write(prune, before)
        assert (await of_b.write(prune, before, only=["bar"])).forgotten == 1
        left = await of_b.read(lambda c: list(c.scalars(text("SELECT store FROM inbox"))))
        assert left == ["main"]


async def test_every_table_of_a_store_has_its_fence(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as ledger:
        fenced = await ledger.read(
            lambda c: set(
                c.scalars(
                    text("SELECT DISTINCT event_object_table FROM information_schema.triggers")
                )
            )
        )
        tables = await ledger.read(lambda c: set(inspect(c).get_table_names()))
    free = {"alembic_version", "audit", "bridges", "leases", "requests", "secrets"}
    assert fenced == tables - free


async def test_facts_are_read_whoever_serves_the_store(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        await joined(of_a, "a")
        await of_a.put_fact("main", "service_store_id", "st_1", at=1)
        assert await of_b.read(get_fact, "main", "service_store_id", str) == "st_1"
        assert (await of_b.read(leases.read_cluster)).store_ids == {"main": "st_1"}


async def test_a_bridge_that_was_declared_dead_since_it_renewed_takes_nothing(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        a, b = await joined(of_a, "a", nothing), await joined(of_b, "b", nothing)

        def frozen_meanwhile(_cluster: Cluster) -> tuple[str, ...]:
            with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as others:
                others.execute("UPDATE bridges SET holder = '' WHERE holder = %s", [a.holder])
            return KEYS

        seen = await of_a.write_beside(leases.beat, a, frozen_meanwhile, dead_ms=None)
        assert seen is not None
        assert not seen.held
        seen = await of_b.write_beside(leases.beat, b, everything, dead_ms=None)
        assert seen is not None
        assert {each.token for each in seen.leases} == {1}, "nobody had them before"


async def test_a_bridge_that_is_gone_is_asked_nothing(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a:
        await joined(of_a, "a")
        async with peers_of(of_a) as running:
            for ask in (partial(ask_alone, of_a), running.ask):
                with pytest.raises(NotServedHere, match="does not answer"):
                    await ask(ServedElsewhere("b serves it", holder="gone"), "x", {}, Actor())
        assert await of_a.read(lambda c: c.exec_driver_sql("SELECT * FROM requests").all()) == []


async def test_another_bridge_is_asked_for_as_long_as_it_lives(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a, opened(url, tmp_path, "b") as of_b:
        await joined(of_a, "a")
        b = await joined(of_b, "b")
        elsewhere = ServedElsewhere("b serves it", holder=b.holder)

        async def asked() -> str | None:
            cluster = await of_b.read(leases.read_cluster, b.holder)
            return cluster.requests[0].id if cluster.requests else None

        async def is_forgotten() -> bool:
            return await asked() is None

        async with peers_of(of_a) as running:
            for ask in (partial(ask_alone, of_a), running.ask):
                asking = asyncio.create_task(ask(elsewhere, "item.86", {}, Actor()))
                request = await until("the request has come", asked)
                assert request is not None
                await of_b.write(leases.answer, request, answer={"ok": True})
                assert await asking == {"ok": True}
                asking = asyncio.create_task(ask(elsewhere, "item.86", {}, Actor()))
                await until("another one has come", asked)
                await was_not_seen(of_a, "b")
                with pytest.raises(BridgeError, match="does not answer"):
                    await asking
                await until("nobody does it any more", is_forgotten)
                await of_b.write(leases.beat, b, nothing, dead_ms=None)  # it lives again


async def test_an_answer_that_comes_while_answers_are_taken_is_taken_later(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a:
        me = await joined(of_a, "a")
        request = await of_a.write(leases.ask, me.holder, "item.86", {}, {"who": "anna"})
        assert request is not None
        engine = create_engine(url, poolclass=NullPool)

        def answer(*_executed: object) -> None:
            with engine.begin() as other:
                leases.answer(other, request, answer={"ok": True})

        with engine.begin() as taking:
            event.listen(taking, "after_cursor_execute", answer, once=True)
            assert not leases.take_answers(taking, [request])
        with engine.begin() as taking:
            (done,) = leases.take_answers(taking, [request])
            assert not leases.take_answers(taking, [request])
        assert (done.name, done.actor, done.answer) == ("item.86", {"who": "anna"}, {"ok": True})
        engine.dispose()


async def test_the_first_acts_at_two_bridges_are_both_recorded(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path, "a") as of_a:
        with session(url) as other:
            audit.append(other, audit.Act("item.86", "page:anna"), at=1)
            waiting = of_a.write(audit.append, audit.Act("item.86", "page:ben"), at=2)
            await asyncio.sleep(0.3)
            assert not waiting.done()
            other.commit()
        assert (await waiting).id == 2
        assert (await of_a.read(audit.check)).broken is None


async def test_what_is_acknowledged_at_two_bridges_at_once_is_both_kept(
    url: str, tmp_path: Path
) -> None:
    async with opened(url, tmp_path, "a") as of_a:
        for code in ("disk.low", "clock.wrong"):
            await of_a.write(open_problem, code, "", "", {}, 1)
        one, another = await of_a.read(open_problems)
        with session(url) as other:  # what "a" has itself is not among what this one has
            acknowledge(other, [one], by="anna", at=2)
            waiting = of_a.write(acknowledge, [another], by="ben", at=3)
            await asyncio.sleep(0.3)
            assert not waiting.done()
            other.commit()
        await waiting
        noted = await of_a.get_fact("", ACKNOWLEDGED)
        assert {(each["code"], each["by"]) for each in noted} == {
            (one.code, "anna"),
            (another.code, "ben"),
        }
        await of_a.write(close_problem, *one.key)
        await of_a.write(acknowledge, [another], by="anna", at=4)
        (left,) = await of_a.get_fact("", ACKNOWLEDGED)
        assert (left["code"], left["by"]) == (another.code, "ben")


def test_who_asks_waits_longer_than_the_bridge_that_is_asked() -> None:
    assert peers._PATIENCE_S < control._ANSWER_S
    assert peers._PATIENCE_S * 1000 < leases._REQUEST_MS


@asynccontextmanager
async def peers_of(ledger: Ledger) -> AsyncIterator[Peers]:
    """Make what asks other bridges, and let it look for answers, as each renewal does."""
    bridge = SimpleNamespace(ledger=ledger, problems=Mock(), clock=Clock(), stores={}, cluster=None)
    served = Mock(keys=(), read_secrets=AsyncMock())
    made = Peers(cast("Any", bridge), Mock(), served, Mock())

    async def look() -> None:
        while True:
            bridge.cluster = await ledger.read(leases.read_cluster)
            made.worker.wake()
            await asyncio.sleep(0.05)

    looking = [asyncio.create_task(each) for each in (look(), made.worker.run())]
    try:
        yield made
    finally:
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
