"""A ledger whose server dies, restarts or is cut off: nothing that was acknowledged is lost.

What is acknowledged is in the database; what is not is refused, so that its sender sends it again;
and the bridge goes on by itself.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import Connection, select, text
from sqlmodel import col

from tests.support.ledger_harness import StoppedClock, delivery
from tests.support.postgresql import new_database, on_postgresql, server
from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.ledger import facts, leases
from tillbridge.ledger.ledger import Ledger, Storage, published
from tillbridge.ledger.models import Delivery, NewDelivery

pytestmark = on_postgresql()

SOON_S = 60.0
END_ALL = (
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
    " WHERE starts_with(application_name, 'tillbridge') AND datname = '{name}'"
)
END_THIS = text("SELECT pg_terminate_backend(pg_backend_pid())")


@contextlib.asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(folder, clock=StoppedClock(), url=url)
    try:
        yield ledger
    finally:
        await ledger.close()


def stored(connection: Connection) -> set[str]:
    return set(connection.scalars(select(col(Delivery.event_id))))


def end_sessions(url: str) -> None:
    server().run(END_ALL.format(name=urlsplit(url).path[1:]))


def run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement)


async def in_one_commit(ledger: Ledger, *works: NewDelivery | Callable[[Connection], None]) -> list:
    """Write these in one batch; return what each writer hears."""
    go_on = threading.Event()
    busy = ledger.write(lambda _connection: go_on.wait(SOON_S))
    waiting = [ledger.write(each) for each in works]
    go_on.set()
    await busy
    return await asyncio.gather(*waiting, return_exceptions=True)


async def works_again(ledger: Ledger) -> None:
    async with asyncio.timeout(SOON_S):
        while not ledger.writable:
            await asyncio.sleep(0.02)


async def test_sessions_that_ended_between_two_writes_are_replaced(tmp_path: Path) -> None:
    url = new_database()
    async with opened(tmp_path, url) as ledger:
        await ledger.put_fact("main", "before", 1, at=0)
        assert await ledger.get_fact("main", "before") == 1
        end_sessions(url)
        assert await ledger.write(delivery("evt"))
        assert await ledger.get_fact("main", "before") == 1
        assert ledger.writable


async def test_a_session_that_ends_in_a_transaction_takes_all_of_it_with_it(tmp_path: Path) -> None:
    seen: list[Storage] = []

    def dying(connection: Connection) -> None:
        facts.put_fact(connection, "main", "half", 1, at=0)
        connection.execute(END_THIS)

    def beside(connection: Connection) -> None:
        facts.put_fact(connection, "main", "beside", 1, at=0)

    async with opened(tmp_path, new_database()) as ledger:
        ledger.on_writable_changed(seen.append)
        await ledger.write(delivery("before"))
        answers = await in_one_commit(ledger, delivery("evt"), beside, dying)
        assert [type(each) for each in answers] == [LedgerUnwritable] * 3
        assert not ledger.writable
        await works_again(ledger)
        assert [bool(each.failure) for each in seen] == [True, False]
        assert await ledger.read(stored) == {"before"}
        assert await ledger.get_fact("main", "half") is None
        assert await ledger.get_fact("main", "beside") is None


async def test_a_bridge_that_was_frozen_in_a_transaction_connects_again(tmp_path: Path) -> None:
    def frozen(connection: Connection) -> None:
        run(connection, "SET LOCAL idle_in_transaction_session_timeout = '50ms'")
        with psycopg.connect(plain) as other:  # the server has ended the session by then
            mine = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            while other.execute(alive, (mine,)).fetchone() != (0,):
                other.rollback()
        connection.execute(text("SELECT 1"))

    url = new_database()
    plain = url.replace("+psycopg", "")
    async with opened(tmp_path, url) as ledger:
        with pytest.raises(LedgerError):
            await ledger.read(frozen)
        with pytest.raises(LedgerUnwritable):
            await ledger.write(frozen)
        await works_again(ledger)
        assert await ledger.write(delivery("evt"))


async def test_who_writes_is_declared_again_after_a_lost_session(tmp_path: Path) -> None:
    """Without it, the fence would refuse the writes for the stores that this bridge serves."""
    url = new_database()
    async with opened(tmp_path, url) as ledger:
        await ledger.write(leases._declare, "me")
        end_sessions(url)
        declared = await ledger.write(lambda connection: connection.scalar(HOLDER))
        assert declared == "me"


HOLDER = text(f"SELECT current_setting('{leases.SESSION}', true)")
SLOW_COMMIT = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON facts DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.name = 'slow') EXECUTE FUNCTION slow()
"""
IS_COMMITTING = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")


async def test_a_session_that_ends_in_the_middle_of_a_commit_is_not_confirmed(
    tmp_path: Path,
) -> None:
    url = new_database()

    def slow(connection: Connection) -> None:
        facts.put_fact(connection, "main", "slow", 1, at=0)

    async with opened(tmp_path, url) as ledger:
        await ledger.write(run, SLOW_COMMIT)
        writes = asyncio.create_task(in_one_commit(ledger, delivery("evt"), slow))
        async with asyncio.timeout(SOON_S):
            while not await ledger.read(lambda connection: connection.scalar(IS_COMMITTING)):
                await asyncio.sleep(0.02)
        end_sessions(url)
        answers = await writes
        assert [type(each) for each in answers] == [LedgerUnwritable] * 2
        await works_again(ledger)
        assert await ledger.read(stored) == set()
        assert await ledger.write(delivery("evt"))


class Wire:
    """Between the bridge and the server, and breaks."""

    def __init__(self, url: str) -> None:
        self._to = ("127.0.0.1", urlsplit(url).port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = url.replace(f":{self._to[1]}/", f":{port}/")
        # Which request is the last one that the server gets, and answers in vain.
        self.is_unanswered: Callable[[bytes], bool] = lambda _sent: False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                upstream = socket.create_connection(self._to)
                self._sockets += [client, upstream]
                muted = threading.Event()
                for way in ((client, upstream, True), (upstream, client, False)):
                    threading.Thread(target=self._copy, args=(*way, muted), daemon=True).start()

    def _copy(
        self, source: socket.socket, sink: socket.socket, asks: bool, muted: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if asks and self.is_unanswered(data):
                    self.is_unanswered = lambda _sent: False
                    muted.set()
                if asks or not muted.is_set():
                    sink.sendall(data)
                    continue
                break  # the answer is lost, and the connection breaks
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire() -> Iterator[Wire]:
    between = Wire(new_database())
    yield between
    between.close()


async def test_a_commit_without_an_answer_is_not_confirmed_but_followed(
    tmp_path: Path, wire: Wire
) -> None:
    events: list[object] = []

    def work(connection: Connection) -> None:
        facts.put_fact(connection, "main", "done", 1, at=0)
        published(connection).append("it is done")
        wire.is_unanswered = lambda sent: b"COMMIT" in sent

    async with opened(tmp_path, wire.url) as ledger:
        ledger.on_event(events.append)
        await ledger.write(delivery("before"))
        answers = await in_one_commit(ledger, delivery("evt"), work)
        assert [type(each) for each in answers] == [LedgerUnwritable] * 2
        assert events == []
        await works_again(ledger)
        # It was committed all the same: whoever follows what happens must know.
        assert await ledger.get_fact("main", "done") == 1
        assert events == ["it is done"]
        assert not await ledger.write(delivery("evt")), "the sender sends it again"


async def test_an_unreachable_server_is_an_answer_and_no_wait(tmp_path: Path, wire: Wire) -> None:
    async with opened(tmp_path, wire.url) as ledger:
        await ledger.write(delivery("before"))
        wire.close()
        for _ in range(20):
            with pytest.raises(LedgerUnwritable, match=r"PostgreSQL server.*Nothing was saved"):
                await ledger.write(delivery())
        with pytest.raises(LedgerError, match="PostgreSQL server"):
            await ledger.read(stored)


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_what_is_acknowledged_while_the_server_restarts_is_there(
    tmp_path: Path, end: str
) -> None:
    url = new_database()
    acknowledged: set[str] = set()
    refused: set[str] = set()
    over = asyncio.Event()

    async def pour(ledger: Ledger, sender: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            event_id = f"evt_{sender}_{number}"
            while True:
                try:
                    await ledger.write(delivery(event_id))
                    break
                except LedgerUnwritable:  # the receiver answers 503, the sender tries again
                    refused.add(event_id)
                    await asyncio.sleep(0.05)
            acknowledged.add(event_id)

    async with opened(tmp_path, url) as ledger:
        senders = [asyncio.create_task(pour(ledger, number)) for number in range(16)]
        async with asyncio.timeout(SOON_S):
            while len(acknowledged) < 100:
                await asyncio.sleep(0.01)
        await asyncio.to_thread(getattr(server(), end))
        async with asyncio.timeout(SOON_S):
            while len(refused) < 16:
                await asyncio.sleep(0.01)
        await asyncio.to_thread(server().start)
        await works_again(ledger)
        before = len(acknowledged)
        async with asyncio.timeout(SOON_S):
            while len(acknowledged) < before + 100:
                await asyncio.sleep(0.01)
        over.set()
        await asyncio.gather(*senders)
        assert await ledger.read(stored) == acknowledged


async def test_a_server_that_refuses_writes_is_left_until_one_takes_them(tmp_path: Path) -> None:
    url = new_database()
    name = urlsplit(url).path[1:]
    async with opened(tmp_path, url) as ledger:
        await ledger.write(delivery("before"))
        server().run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await ledger.write(run, READ_ONLY)
        with pytest.raises(LedgerUnwritable, match="read-only"):
            await ledger.write(delivery("evt"))
        server().run(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        await works_again(ledger)
        assert await ledger.write(delivery("evt"))


READ_ONLY = "SET default_transaction_read_only = on"
