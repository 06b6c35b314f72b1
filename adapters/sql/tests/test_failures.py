"""What goes wrong with a real server: each ends in one ticket, or in none and the right failure."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tillbridge.adapter import (
    ExportUnreadable,
    Order,
    PosFailure,
    PosOffline,
    Ticket,
    TicketOutcomeUnknown,
)
from tillbridge.adapter.conformance import Rig
from tillbridge.adapter.conformance.subject import Subject, named_items, order_of, plain_items
from tillbridge.model.instant import is_never
from tillbridge_sql.adapter import SqlAdapter
from tillbridge_sql.rig import MariadbRig, PostgresqlRig, SqlRig
from tillbridge_sql.rig_marks import on_servers

both = pytest.mark.parametrize("till", on_servers(PostgresqlRig, MariadbRig), indirect=True)
postgresql_only = pytest.mark.parametrize("till", on_servers(PostgresqlRig), indirect=True)
mariadb_only = pytest.mark.parametrize("till", on_servers(MariadbRig), indirect=True)

ALWAYS = 10_000


@pytest.fixture
def till(request: pytest.FixtureRequest) -> Iterator[SqlRig]:
    with Subject(request.param).till() as rig:
        assert isinstance(rig, SqlRig)
        yield rig


def opened(rig: Rig) -> SqlAdapter:
    pos = rig.open()
    assert isinstance(pos, SqlAdapter)
    return pos


def ordered(rig: SqlRig, key: str = "ord_1", items: int = 2) -> Order:
    return order_of(key, rig.sell(plain_items(items), "EUR"))


def keys(rig: SqlRig) -> list[str]:
    return [ticket.key for ticket in rig.tickets()]


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.15)  # InnoDB answers from a cache to whoever asks more often


def waits(rig: SqlRig) -> str:
    """Return what finds rows while somebody waits for a lock."""
    if rig.is_postgresql:
        return "SELECT 1 FROM pg_locks WHERE NOT granted"
    return "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


def fail_with(rig: SqlRig, state: str, times: int) -> None:
    """Let the next inserts of lines fail as a transaction does that gives way to another."""
    rig.run("DROP SEQUENCE IF EXISTS tries", "CREATE SEQUENCE tries START WITH 1")
    if rig.is_postgresql:
        rig.run(
            "CREATE OR REPLACE FUNCTION gives_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'gave way' USING ERRCODE ="
            f" '{state}'; END IF; RETURN NEW; END $$",
            "CREATE OR REPLACE TRIGGER gives_way BEFORE INSERT ON order_lines"
            " FOR EACH ROW EXECUTE FUNCTION gives_way()",
        )
    else:
        number = {"40001": 1213, "40P01": 1205}[state]
        rig.run(
            "CREATE OR REPLACE TRIGGER gives_way BEFORE INSERT ON order_lines FOR EACH ROW"
            f" IF NEXT VALUE FOR tries <= {times} THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO ="
            f" {number}, MESSAGE_TEXT = 'gave way'; END IF",
        )


@pytest.fixture(autouse=True)
def _no_triggers(till: SqlRig) -> Iterator[None]:
    """Databases are used again."""
    yield
    with till.engine.begin() as connection:
        on = " ON order_lines CASCADE" if till.is_postgresql else ""
        connection.execute(text(f"DROP TRIGGER IF EXISTS gives_way{on}"))


@postgresql_only
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_an_end_that_no_calendar_has_ends_never_or_has_passed(till: SqlRig, kind: str) -> None:
    ends = ("infinity", "20000-01-01", "-infinity", "0044-03-15 BC")
    till.sell(plain_items(len(ends)), "EUR")
    till.run(f"ALTER TABLE items ALTER sold_out_until TYPE {kind}")
    try:
        for number, end in enumerate(ends, 1):
            till.run(
                f"UPDATE items SET sold_out = 1, sold_out_until = '{end}' WHERE id = :id",
                id=f"sku-{number}",
            )
        reading = opened(till).read_availability()
    finally:
        till.run(
            "UPDATE items SET sold_out_until = NULL",
            "ALTER TABLE items ALTER sold_out_until TYPE timestamp",
        )
    assert not reading.bad_rows
    until = [reading.items[f"sku-{number}"].until for number in range(1, 5)]
    assert [end is not None and is_never(end) for end in until[:2]] == [True, True]
    assert until[2:] == [0, 0]


@both
@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_transaction_that_gave_way_is_tried_again(till: SqlRig, state: str) -> None:
    order = ordered(till)
    fail_with(till, state, times=2)
    opened(till).write_ticket(order, order.id)
    assert keys(till) == [order.id]


@both
def test_one_that_always_gives_way_ends_soon_with_nothing_written(till: SqlRig) -> None:
    order = ordered(till)
    fail_with(till, "40001", times=ALWAYS)
    began = time.monotonic()
    with pytest.raises(PosOffline, match="gave way each time"):
        opened(till).write_ticket(order, order.id)
    assert time.monotonic() - began < 10
    assert till.rows("SELECT COUNT(*) FROM orders") == [(0,)]


@postgresql_only
def test_a_real_deadlock_is_lost_once_and_then_written(till: SqlRig) -> None:
    order = ordered(till)
    first, second = (line.external_id for line in order.lines)
    pos = opened(till)
    lock = text("SELECT 1 FROM items WHERE id = :id FOR UPDATE")
    with ThreadPoolExecutor() as pool, till.engine.connect() as other:
        other.execute(text("SET LOCAL deadlock_timeout = '10s'"))  # so that it is not the victim
        other.execute(lock, {"id": second})
        writing = pool.submit(pos.write_ticket, order, order.id)
        until(lambda: bool(till.rows(waits(till))))
        other.execute(lock, {"id": first})  # now each waits for the other
        other.rollback()
        assert writing.result(20).reference
    assert keys(till) == [order.id]


@both
def test_many_that_write_one_order_at_once_make_one_ticket(till: SqlRig) -> None:
    order = ordered(till)
    tills = [opened(till) for _each in range(4)]
    at_once = threading.Barrier(len(tills))

    def write(pos: SqlAdapter) -> Ticket:
        at_once.wait(10)
        return pos.write_ticket(order, order.id)

    with ThreadPoolExecutor() as pool:
        tickets = set(pool.map(write, tills))
    assert len(tickets) == 1
    assert keys(till) == [order.id]


@both
def test_a_server_that_dies_within_the_transaction_has_nothing(till: SqlRig) -> None:
    order = ordered(till)
    pos = opened(till)
    with ThreadPoolExecutor() as pool, till.engine.connect() as other:
        # The first line waits for this lock, with the head of the order written already.
        other.execute(text("SELECT 1 FROM items WHERE id = 'sku-1' FOR UPDATE"))
        writing = pool.submit(pos.write_ticket, order, order.id)
        until(lambda: bool(till.rows(waits(till))))
        till.server.kill()
        with pytest.raises(PosOffline):
            writing.result(30)
        other.invalidate()
    assert not pos.health().online
    with pytest.raises(PosOffline):
        pos.find_ticket(order.id)
    till.server.start()
    assert pos.find_ticket(order.id) is None
    pos.write_ticket(order, order.id)
    assert keys(till) == [order.id]


@both
def test_a_server_that_was_restarted_is_not_noticed(till: SqlRig) -> None:
    order = ordered(till)
    pos = opened(till)
    assert len(pos.read_catalogue().items) == 2
    assert pos.find_ticket(order.id) is None
    till.server.stop()
    till.server.start()
    assert len(pos.read_catalogue().items) == 2
    pos.write_ticket(order, order.id)
    assert pos.find_ticket(order.id) is not None


@both
def test_a_commit_that_never_arrived_is_unknown_until_it_is_looked_up(till: SqlRig) -> None:
    order = ordered(till)
    pos = opened(till)
    till.wire.swallow_commits = True
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order, order.id)
    assert pos.find_ticket(order.id) is None
    assert keys(till) == []
    pos.write_ticket(order, order.id)
    assert keys(till) == [order.id]


@both
def test_a_line_that_breaks_before_the_commit_has_written_nothing(till: SqlRig) -> None:
    order = ordered(till)
    pos = opened(till)
    pos.find_ticket(order.id)
    with ThreadPoolExecutor() as pool, till.engine.connect() as other:
        other.execute(text("SELECT 1 FROM items WHERE id = 'sku-1' FOR UPDATE"))
        writing = pool.submit(pos.write_ticket, order, order.id)
        until(lambda: bool(till.rows(waits(till))))
        till.wire.cut()
        with pytest.raises(PosOffline):
            writing.result(20)
        other.rollback()
    till.wire.open()
    assert pos.find_ticket(order.id) is None
    assert keys(till) == []


@both
def test_a_session_without_orders_cannot_change_anything(till: SqlRig) -> None:
    till.sell(plain_items(1), "EUR")
    options = {**till.options(), "orders": False}
    pos = till.adapter.open(till.adapter.options.model_validate(options), till.context())
    assert isinstance(pos, SqlAdapter)
    for statement in ("DELETE FROM items", "UPDATE items SET name = 'x'", "DROP TABLE payments"):
        with pytest.raises(DBAPIError, match=r"(?i)read.only"):
            pos._database.read(lambda connection, s=statement: connection.execute(text(s)))  # type: ignore[misc] # noqa: SLF001 -- past the check of statements, on purpose; a lambda's default
    assert pos._database._writing is None  # noqa: SLF001 -- that there is no other connection
    assert len(pos.read_catalogue().items) == 1
    pos.close()


@both
def test_what_may_not_be_read_is_told_with_what_to_do(till: SqlRig) -> None:
    till.run("ALTER TABLE items RENAME TO elsewhere")
    try:
        with pytest.raises(ExportUnreadable) as refused:
            opened(till).read_catalogue()
    finally:
        till.run("ALTER TABLE elsewhere RENAME TO items")
    assert refused.value.place.startswith("queries.sql, line")
    assert "right to read" in refused.value.fix


@both
def test_a_wrong_password_is_offline_and_shown_nowhere(till: SqlRig) -> None:
    (till.folder / "password").write_text("Wrong-and-secret-9\n")
    pos = opened(till)
    health = pos.health()
    assert not health.online
    assert "Wrong-and-secret-9" not in health.detail
    with pytest.raises(PosOffline) as refused:
        pos.read_catalogue()
    assert "Wrong-and-secret-9" not in f"{refused.value!r} {refused.value.__cause__!r}"
    assert refused.value.__suppress_context__


@both
def test_a_refusal_tells_nothing_of_the_customer(till: SqlRig) -> None:
    order = order_of("ord_x", till.sell(plain_items(1), "EUR"))
    till.run("ALTER TABLE orders ALTER COLUMN note SET DEFAULT ''")
    queries = till.folder / "queries.sql"
    spoilt = queries.read_text("utf-8").replace(
        "VALUES (:key, :session, :order_type, :order_note, :order_total",
        "VALUES (:key, :order_note, :order_type, :key, :key",
    )
    queries.write_text(spoilt, "utf-8")
    with pytest.raises(PosFailure) as refused:
        opened(till).write_ticket(order, order.id)
    assert "queries.sql, line" in refused.value.message
    assert "Ring twice" not in refused.value.message or till.is_postgresql
    assert "[parameters" not in refused.value.message


@mariadb_only
def test_a_table_without_transactions_is_refused(till: SqlRig) -> None:
    order = ordered(till)
    till.run("ALTER TABLE payments ENGINE=MyISAM")
    try:
        with pytest.raises(PosFailure, match="payments knows no transactions"):
            opened(till).write_ticket(order, order.id)
    finally:
        till.run("ALTER TABLE payments ENGINE=InnoDB")
    assert keys(till) == []


@pytest.mark.parametrize(
    ("currency", "total", "written"),
    [("JPY", 1500, 1500), ("KWD", 1250, 1.25), ("EUR", 1999, 19.99)],
)
@both
def test_amounts_are_written_in_major_units(
    till: SqlRig, currency: str, total: int, written: float
) -> None:
    item = plain_items(1)[0]
    sold = till.sell([type(item)(item.external_id, item.name, total)], currency)
    order = order_of("ord_money", sold, currency)
    pos = till.open(currency)
    assert isinstance(pos, SqlAdapter)
    pos.write_ticket(order, order.id)
    ((found, price),) = till.rows(
        "SELECT o.total, l.price FROM orders o JOIN order_lines l ON l.number = o.number"
    )
    assert (float(found), float(price)) == (written, written)


class Latin1OnPostgresql(PostgresqlRig):
    encoding: ClassVar[str] = "ENCODING 'LATIN1' TEMPLATE template0"


class Latin1OnMariadb(MariadbRig):
    encoding: ClassVar[str] = "CHARACTER SET latin1"


class OldUtf8OnMariadb(MariadbRig):
    encoding: ClassVar[str] = "CHARACTER SET utf8mb3"


@pytest.mark.parametrize(
    "till",
    on_servers(Latin1OnPostgresql, Latin1OnMariadb, OldUtf8OnMariadb),
    indirect=True,
)
def test_tables_that_cannot_hold_every_character_are_read_and_written(till: SqlRig) -> None:
    sold = till.sell(named_items(("Crème brûlée", "Smörgås")), "EUR")
    pos = opened(till)
    assert [item.name for item in pos.read_catalogue().items.values()] == [
        "Crème brûlée",
        "Smörgås",
    ]
    plain = order_of("ord_latin", sold)
    order = Order(
        **{
            name: getattr(plain, name)
            for name in Order.__dataclass_fields__
            if name != "special_instructions"
        },
        special_instructions="Für Ωmega 🍍",
    )
    pos.write_ticket(order, order.id)
    ((note,),) = till.rows("SELECT note FROM orders")
    old_utf8 = isinstance(till, OldUtf8OnMariadb)
    assert note == ("Für Ωmega ?" if old_utf8 else "Für ?mega ?")
