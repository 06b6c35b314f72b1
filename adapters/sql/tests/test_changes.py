"""Changes are noticed without reading the menu, and none is missed."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import event

from tillbridge.adapter import AdapterContext, Change
from tillbridge.adapter.conformance import Rig
from tillbridge.adapter.conformance.subject import Subject, plain_items
from tillbridge.pos.runner import PosRunner
from tillbridge_sql.adapter import ADAPTER, SqlAdapter
from tillbridge_sql.rig import MariadbRig, PostgresqlRig, SqlRig
from tillbridge_sql.rig_marks import on_servers
from tillbridge_sql.unchanged import _READ_ANYWAY_S

both = pytest.mark.parametrize("till", on_servers(PostgresqlRig, MariadbRig), indirect=True)
postgresql_only = pytest.mark.parametrize("till", on_servers(PostgresqlRig), indirect=True)


@pytest.fixture
def till(request: pytest.FixtureRequest) -> Iterator[SqlRig]:
    with Subject(request.param).till() as rig:
        assert isinstance(rig, SqlRig)
        yield rig


class Ear:
    """Hears what a listener tells."""

    def __init__(self) -> None:
        self.heard: list[Change] = []
        self._news = threading.Condition()

    def __call__(self, change: Change) -> None:
        with self._news:
            self.heard.append(change)
            self._news.notify_all()

    def until(self, wanted: Callable[[list[Change]], bool]) -> None:
        with self._news:
            assert self._news.wait_for(lambda: wanted(self.heard), 20), self.heard

    def clear(self) -> None:
        with self._news:
            self.heard.clear()


def opened(rig: Rig, **options: object) -> SqlAdapter:
    checked = ADAPTER.options.model_validate({**rig.options(), **options})
    pos = ADAPTER.open(checked, rig.context())
    assert isinstance(pos, SqlAdapter)
    return pos


def asked(pos: SqlAdapter) -> list[str]:
    """Return a list that grows by each statement that is asked."""
    statements: list[str] = []
    event.listen(
        pos._database._reading,  # noqa: SLF001 -- what it asks is the point
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_rest: statements.append(statement),
    )
    return statements


@both
def test_an_unchanged_menu_costs_one_query(till: SqlRig) -> None:
    till.sell(plain_items(20), "EUR")
    pos = opened(till)
    first = pos.read_changes(frozenset())
    known = frozenset(first.fresh.fingerprints.values())
    assert (len(first.fresh.items), first.items_read) == (20, 20)

    statements = asked(pos)
    again = pos.read_changes(known)
    assert (dict(again.fresh.items), again.unseen, again.items_read) == ({}, frozenset(), 20)
    assert len(statements) == 1
    assert "count(*)" in statements[0]

    till.rename("sku-3", "Another name")
    changed = pos.read_changes(known)
    assert [item.name for item in changed.fresh.items.values()] == ["Another name"]
    assert changed.unseen == {first.fresh.fingerprints["sku-3"]}
    till.run("DELETE FROM items WHERE id = 'sku-4'")
    assert len(pos.read_changes(known).unseen) == 2
    pos.close()


@both
def test_a_memory_that_does_not_fit_what_is_known_is_not_used(till: SqlRig) -> None:
    till.sell(plain_items(3), "EUR")
    pos = opened(till)
    first = pos.read_changes(frozenset())
    # The service has not taken it yet: the same again.
    assert pos.read_changes(frozenset()).fresh == first.fresh
    pos.close()


@both
def test_an_unchanged_menu_is_read_all_the_same_now_and_then(
    till: SqlRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    till.sell(plain_items(3), "EUR")
    pos = opened(till)
    known = frozenset(pos.read_changes(frozenset()).fresh.fingerprints.values())
    statements = asked(pos)
    later = time.monotonic() + _READ_ANYWAY_S + 1
    monkeypatch.setattr("tillbridge_sql.unchanged.time.monotonic", lambda: later)
    assert not pos.read_changes(known).fresh.items
    assert len(statements) > 1
    pos.close()


@both
def test_one_reading_sees_one_moment(till: SqlRig) -> None:
    till.sell(plain_items(2), "EUR")
    queries = till.folder / "queries.sql"
    queries.write_text(
        "-- name: categories\nSELECT DISTINCT 'all' AS external_id, 'All' AS name FROM items\n"
        "-- name: items\nSELECT id AS external_id, name, price, 'all' AS category_id FROM items\n"
        "-- name: variants\nSELECT id AS item_id, id AS external_id, name AS variant_name, price"
        " FROM items\n"
        "-- name: find_order\nSELECT 1 AS reference FROM orders WHERE order_key = :key\n"
        "-- name: order\nINSERT INTO orders (order_key) VALUES (:key)\n",
        "utf-8",
    )
    pos = opened(till)
    seen = []

    def between(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)
        if len(seen) == 2:  # after the first query, before the one for the items
            till.run("DELETE FROM items WHERE id = 'sku-2'")

    event.listen(pos._database._reading, "before_cursor_execute", between)  # noqa: SLF001 -- as above
    menu = pos.read_catalogue()
    assert not menu.bad_rows
    assert [len(item.variants) for item in menu.items.values()] == [1, 1]
    assert len(pos.read_catalogue().items) == 1
    pos.close()


@postgresql_only
def test_a_notify_is_heard_and_one_that_was_lost_is_made_up_for(till: SqlRig) -> None:
    pos = opened(till, change="notify")
    ear = Ear()
    pos.on_change(ear)
    everything = {Change.CATALOGUE, Change.AVAILABILITY, Change.TABLES}
    ear.until(lambda heard: everything <= set(heard))  # it listens: who knows what was before

    ear.clear()
    till.run("NOTIFY tillbridge, 'availability'")
    ear.until(lambda heard: heard == [Change.AVAILABILITY])
    till.run("NOTIFY tillbridge, 'a message of the till''s own'")
    ear.until(lambda heard: set(Change) <= set(heard))

    till.wire.cut()
    ear.clear()
    till.run("NOTIFY tillbridge, 'catalogue'")  # nobody listens
    till.wire.open()
    ear.until(lambda heard: everything <= set(heard))

    ear.clear()
    till.run("NOTIFY tillbridge, 'tables'")
    ear.until(lambda heard: heard == [Change.TABLES])
    (listener,) = [each for each in threading.enumerate() if each.name == "sql-listener"]
    pos.close()
    listener.join(10)  # far less than what it would wait for something to hear
    assert not listener.is_alive()
    pos.close()


@postgresql_only
def test_the_triggers_of_the_readme_tell_of_changes(till: SqlRig) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    function, trigger = readme.split("```sql\n")[1].split("```")[0].strip().splitlines()
    till.run(function.replace(":", "\\:"), trigger)
    try:
        pos = opened(till, change="notify")
        ear = Ear()
        pos.on_change(ear)
        ear.until(lambda heard: Change.TABLES in heard)
        ear.clear()
        till.sell(plain_items(2), "EUR")
        ear.until(lambda heard: Change.CATALOGUE in heard)
        assert set(ear.heard) == {Change.CATALOGUE}
        pos.close()
    finally:
        till.run("DROP FUNCTION tillbridge_tell CASCADE")


@postgresql_only
def test_the_bridge_hears_of_a_change_in_its_own_loop(till: SqlRig) -> None:
    async def listen() -> None:
        heard: asyncio.Queue[Change] = asyncio.Queue()
        runner = PosRunner(
            opened(till, change="notify"),
            store="main",
            adapter="sql",
            ticket_timeout_s=10,
        )
        assert runner.notifies_changes
        runner.on_change(heard.put_nowait)
        async with asyncio.timeout(20):
            while await heard.get() is not Change.TABLES:
                pass
            till.run("NOTIFY tillbridge, 'availability'")
            assert await heard.get() is Change.AVAILABILITY
            assert (await runner.health()).online
        await runner.close()

    asyncio.run(listen())


@postgresql_only
def test_another_channel_is_not_heard(till: SqlRig) -> None:
    pos = opened(till, change="notify", channel="our_till")
    ear = Ear()
    pos.on_change(ear)
    ear.until(lambda heard: Change.TABLES in heard)
    ear.clear()
    till.run("NOTIFY tillbridge, 'catalogue'", "NOTIFY our_till, 'updates'")
    ear.until(lambda heard: heard == [Change.UPDATES])
    pos.close()


def test_without_a_query_that_tells_the_menu_is_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text("CREATE TABLE a (id TEXT); INSERT INTO a VALUES ('1')")
    (tmp_path / "queries.sql").write_text(
        "-- name: items\nSELECT id AS external_id, 'Soup' AS name, 4.5 AS price FROM a"
    )
    options = {"url": "sqlite://", "dump": "dump.sql", "queries": "queries.sql"}
    context = AdapterContext("main", "EUR", "loc", tmp_path)
    pos = ADAPTER.open(ADAPTER.options.model_validate(options), context)
    assert isinstance(pos, SqlAdapter)
    known = frozenset(pos.read_changes(frozenset()).fresh.fingerprints.values())
    statements = asked(pos)
    assert not pos.read_changes(known).fresh.items
    assert [each for each in statements if "FROM a" in each]
    pos.close()
