"""The writer: what is acknowledged is committed, what fails fails alone, nobody waits for ever."""

import asyncio
import threading
import time
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select, text

from tests.support.ledger_harness import delivery, opened
from tillbridge.core.errors import LedgerError
from tillbridge.ledger import facts, orders
from tillbridge.ledger import ledger as writer
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import Delivery, Fact, NewDelivery

pytestmark = pytest.mark.usefixtures("each_database")


def count(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(Delivery)) or 0


def commits(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(Fact)) or 0


async def test_a_delivery_is_new_once_and_known_after_that(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        assert await ledger.write(delivery("evt_1")) is True
        assert await ledger.write(delivery("evt_1")) is False
        assert await ledger.read(count) == 1


async def test_the_same_event_twice_in_one_commit_is_new_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        news = await asyncio.gather(*(ledger.write(delivery("evt_1")) for _ in range(5)))
        assert sorted(news) == [False, False, False, False, True]
        assert await ledger.read(count) == 1


async def test_two_stores_may_have_an_event_of_the_same_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        assert await ledger.write(delivery("evt_1", store="a"))
        assert await ledger.write(delivery("evt_1", store="b"))


async def test_another_event_under_a_known_delivery_id_is_kept(tmp_path: Path) -> None:
    """The delivery id is not signed: losing an order for it would be worse than asking twice."""
    async with opened(tmp_path) as ledger:
        assert await ledger.write(delivery("evt_1", delivery_id="dlv"))
        assert await ledger.write(delivery("evt_2", delivery_id="dlv"))


@settings(max_examples=settings().max_examples // 3)  # each opens a ledger
@given(
    rounds=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=30), max_size=6
    )
)
def test_whatever_comes_together_each_event_is_new_exactly_once(
    rounds: list[list[tuple[str, int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def check() -> None:
        async with opened(tmp_path_factory.mktemp("ledger")) as ledger:
            new: list[tuple[str, int]] = []
            for asked in rounds:
                made = [delivery(f"evt_{number}", store=store) for store, number in asked]
                news = await asyncio.gather(*map(ledger.write, made))
                new += [key for key, is_new in zip(asked, news, strict=True) if is_new]
            assert sorted(new) == sorted({key for asked in rounds for key in asked})
            assert await ledger.read(count) == len(new)

    asyncio.run(check())


async def test_jobs_and_deliveries_of_one_commit_see_each_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        _, seen = await asyncio.gather(ledger.write(delivery()), ledger.write(count))
        assert seen == 1


async def test_a_job_that_raises_is_undone_alone(tmp_path: Path) -> None:
    def fail(connection: Connection) -> None:
        facts.put_fact(connection, "main", "bad", 1, at=0)
        raise ZeroDivisionError

    def work(connection: Connection) -> str:
        facts.put_fact(connection, "main", "good", 1, at=0)
        return "done"

    async with opened(tmp_path) as ledger:
        failed, done, new = await asyncio.gather(
            ledger.write(fail),
            ledger.write(work),
            ledger.write(delivery()),
            return_exceptions=True,
        )
        assert isinstance(failed, ZeroDivisionError)
        assert (done, new) == ("done", True)
        assert await ledger.read(facts.all_facts) == {"main": {"good": 1}}


async def test_a_delivery_no_database_takes_costs_its_neighbours_nothing(
    tmp_path: Path, each_database: str
) -> None:
    async with opened(tmp_path) as ledger:
        good, bad, odd = await asyncio.gather(
            ledger.write(delivery()),
            ledger.write(delivery(received_at=2**70)),
            ledger.write(delivery("half a pair \ud800")),
            return_exceptions=True,
        )
        assert good is True
        assert isinstance(bad, LedgerError)
        # PostgreSQL's driver is told what to store instead.
        assert odd is True if each_database == "postgresql" else isinstance(odd, LedgerError)
        assert await ledger.write(delivery())
        assert ledger.writable


async def test_a_caller_who_is_cancelled_undoes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        waiting = [asyncio.ensure_future(ledger.write(delivery())) for _ in range(10)]
        await asyncio.sleep(0)
        for each in waiting[::2]:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await ledger.write(count) == 10


async def test_closing_writes_what_was_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        waiting = [asyncio.ensure_future(ledger.write(delivery())) for _ in range(200)]
        await asyncio.sleep(0)
        await ledger.close()
        assert all(await asyncio.gather(*waiting))
        with pytest.raises(LedgerError):
            await ledger.write(count)
        with pytest.raises(LedgerError):
            await ledger.read(count)
    async with opened(tmp_path) as ledger:
        assert await ledger.read(count) == 200


async def test_a_reader_sees_one_state_and_cannot_write(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        with pytest.raises(LedgerError, match="cannot be read"):
            await ledger.read(lambda connection: facts.put_fact(connection, "", "x", 1, at=0))


async def test_open_deliveries_come_in_order_until_they_are_handled(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        sent = [delivery(body=b'{"n": %d}' % number) for number in range(5)]
        for each in sent:
            await ledger.write(each)
        waiting = await ledger.read(lambda connection: orders.open_deliveries(connection, 3))
        assert [each.event_id for each in waiting] == [each.event_id for each in sent[:3]]
        await ledger.write(
            lambda connection: orders.handled(connection, waiting[0].id, "order.received", 5)
        )
        waiting = await ledger.read(lambda connection: orders.open_deliveries(connection, 10))
        assert [attrgetter(*NewDelivery._fields)(each) for each in waiting] == sent[1:]


async def test_concurrent_deliveries_share_commits(tmp_path: Path, each_database: str) -> None:
    """A WAL frame that ends a commit names the size of the database: count those."""
    wal = tmp_path / "ledger.db-wal"
    async with opened(tmp_path) as ledger:
        await ledger.write(delivery())
        before = committed(wal) if each_database == "sqlite" else 1
        await asyncio.gather(*(ledger.write(delivery()) for _ in range(64)))
        commits = committed(wal) if each_database == "sqlite" else await ledger.read(transactions)
        assert commits - before <= 3


def transactions(connection: Connection) -> int:
    """Return how many transactions of PostgreSQL have inserted the deliveries."""
    return connection.scalar(text("SELECT count(DISTINCT xmin::text) FROM inbox")) or 0


def committed(wal: Path) -> int:
    content = wal.read_bytes()
    frame = 24 + int.from_bytes(content[8:12], "big")
    return sum(
        content[start + 4 : start + 8] != bytes(4) for start in range(32, len(content), frame)
    )


async def test_a_writer_that_is_stuck_can_be_told_from_an_idle_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(count)
        assert ledger.writing_since is None
        go_on = threading.Event()
        before = time.monotonic()
        waiting = asyncio.ensure_future(ledger.write(lambda _connection: go_on.wait(10)))
        await asyncio.sleep(0)
        assert ledger.writing_since is not None
        assert before <= ledger.writing_since <= time.monotonic()
        go_on.set()
        assert await waiting
        assert ledger.writing_since is None


class Script:
    """Jobs that say when they run; each waits until it may go on, which all but `held` may."""

    def __init__(self, *held: str) -> None:
        self.ran: list[str] = []
        self.began = {name: threading.Event() for name in held}
        self.may_end = {name: threading.Event() for name in held}

    def job(self, connection: Connection, name: str) -> list[str]:
        """Return what ran before, once that may be."""
        before = [*self.ran]
        self.ran.append(name)
        facts.put_fact(connection, "", name, True, at=0)
        if name in self.began:
            self.began[name].set()
            assert self.may_end[name].wait(10)
        return before

    async def until_it_runs(self, name: str) -> None:
        assert await asyncio.to_thread(self.began[name].wait, 10)


async def two_in_one_batch(ledger: Ledger, script: Script) -> Sequence[asyncio.Future[list[str]]]:
    """Return once the first of two jobs of a batch runs."""
    alone = ledger.write(script.job, "alone")
    await script.until_it_runs("alone")
    both = [ledger.write(script.job, name) for name in ("one", "two")]
    script.may_end["alone"].set()
    await alone
    await script.until_it_runs("one")
    return both


async def test_a_delivery_waits_for_a_part_of_a_long_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PART_S", 0.0)
    async with opened(tmp_path) as ledger:
        script = Script("alone", "one", "two")
        one, two = await two_in_one_batch(ledger, script)
        came = ledger.write(delivery("evt_1"))
        script.may_end["one"].set()
        await one
        await script.until_it_runs("two")  # the rest comes with what came meanwhile
        script.may_end["two"].set()
        assert await came
        assert await two == ["alone", "one"]


async def test_a_ledger_that_is_closed_in_the_middle_of_a_batch_writes_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PART_S", 0.0)
    async with opened(tmp_path) as ledger:
        script = Script("alone", "one")
        both = await two_in_one_batch(ledger, script)
        last = ledger.write(script.job, "last")
        closing = asyncio.create_task(ledger.close())
        await asyncio.sleep(0)
        script.may_end["one"].set()
        await closing
        assert script.ran == ["alone", "one", "two", "last"]
        await asyncio.gather(*both, last)
