import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.support.folder_till import menu_till, open_till
from tillbridge.adapter import (
    Advice,
    AvailabilityReading,
    Catalogue,
    CatalogueChanges,
    Change,
    ExportUnreadable,
    Health,
    ItemUnavailable,
    ListedTicket,
    PosFailure,
    PosOffline,
    TablesReading,
    Ticket,
    TicketOutcomeUnknown,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.core.problems import PROBLEMS, Found, Scope
from tillbridge.model.order import Order, parse_order
from tillbridge.pos.runner import PosRunner

ORDER = parse_order({"id": "ord_1"})


class Till:
    """A POS that does what it is told to, and notes in which thread."""

    def __init__(self, write: Callable[[], object] = lambda: Ticket("1")) -> None:
        self.write = write
        self.threads: dict[str, int] = {}
        self.written: list[str] = []

    def read_catalogue(self) -> Catalogue:
        self.threads["read"] = threading.get_ident()
        return Catalogue()

    def write_ticket(self, order: Order, key: str) -> Ticket:
        self.threads["write"] = threading.get_ident()
        ticket = self.write()
        self.written.append(key)
        return cast("Ticket", ticket)  # or whatever else a careless vendor returns

    def find_ticket(self, key: str) -> Ticket | None:
        self.threads["find"] = threading.get_ident()
        return Ticket(key) if key in self.written else None

    def health(self) -> Health:
        return Health(online=True)


class Faults:
    """What is open now, by code and subject, and what of `adapter.failed` has changed."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []
        self.reports: list[tuple[str, ...]] = []
        self.open: dict[tuple[str, str], Found] = {}

    def __call__(self, scope: Scope, found: Iterable[Found]) -> None:
        """Note what changes; that an operation works is reported at first, too."""
        now = {(each.code, each.subject): each for each in found}
        assert all(scope.covers(code, "main", subject) for code, subject in now)
        for key in [each for each in self.open if scope.covers(each[0], "main", each[1])]:
            del self.open[key]
        self.open |= now
        self.reports.append(tuple(each.detail.get("detail", "") for each in now.values()))
        for each in now.values():
            PROBLEMS[each.code].text.format(store="main", **each.detail)
        if "adapter.failed" in scope.codes:
            operation = (scope.subject or "").removeprefix("test.")
            failed = any(code == "adapter.failed" for code, _subject in now)
            before = [each for each in self.told if each[0] == operation]
            if failed or (before and before[-1][1]):
                self.told.append((operation, failed))

    @property
    def hanging(self) -> list[str]:
        return [
            subject.removeprefix("test.") for code, subject in self.open if code == "adapter.hangs"
        ]


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def run(faults: Faults) -> AsyncIterator[Callable[..., PosRunner]]:
    runners: list[PosRunner] = []

    def make(
        pos: object,
        timeout_s: float = 20,
        hangs_after_s: float = 60,
    ) -> PosRunner:
        runner = PosRunner(
            pos,
            store="main",
            adapter="test",
            ticket_timeout_s=timeout_s,
            hangs_after_s=hangs_after_s,
            report=faults,
        )
        runners.append(runner)
        return runner

    yield make
    for runner in runners:
        await runner.close()


Run = Callable[..., PosRunner]


def failing(failure: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise failure

    return fail


async def test_neither_reading_nor_tickets_run_in_the_loop(run: Run) -> None:
    till = Till()
    pos = run(till)
    await pos.read_catalogue()
    assert await pos.write_ticket(ORDER, "ord_1") == Ticket("1")
    assert await pos.find_ticket("ord_1") == Ticket("ord_1")
    assert await pos.find_ticket("ord_2") is None
    assert till.threads.keys() == {"read", "write", "find"}
    assert threading.get_ident() not in till.threads.values()


async def test_a_ticket_does_not_wait_for_a_reading(run: Run) -> None:
    till, read_on = Till(), threading.Event()
    read = till.read_catalogue
    till.read_catalogue = lambda: (read_on.wait(10), read())[1]  # type: ignore[method-assign]  # slow
    pos = run(till)
    reading = asyncio.create_task(pos.read_catalogue())
    await asyncio.sleep(0)
    assert await pos.write_ticket(ORDER, "ord_1") == Ticket("1")
    assert not reading.done()
    read_on.set()
    await reading


async def test_what_the_adapter_can_do_is_known_before_it_is_asked(run: Run) -> None:
    pos = run(Till())
    assert pos.reads_catalogue
    assert pos.writes_tickets
    assert pos.reports_health
    assert not pos.reads_changes
    assert not pos.reads_tables
    assert not pos.cancels_tickets
    assert pos.catalogue_files() == ()
    assert await pos.unreadable_updates() == ()
    with pytest.raises(TypeError):
        await pos.read_tables()


@pytest.mark.parametrize(
    "failure", [ItemUnavailable("gone", external_ids=["1"]), PosOffline("off"), PosFailure("no")]
)
async def test_a_failure_that_an_adapter_states_arrives_as_it_is(
    run: Run, faults: Faults, failure: PosFailure
) -> None:
    with pytest.raises(PosFailure) as caught:
        await run(Till(failing(failure))).write_ticket(ORDER, "ord_1")
    assert caught.value is failure
    assert faults.told == []


@pytest.mark.parametrize(
    "write",
    [failing(KeyError("x")), failing(SystemExit(1)), failing(StopIteration()), lambda: None],
    ids=["bug", "exit", "stop", "no ticket"],
)
async def test_an_adapter_that_breaks_off_a_write_leaves_its_outcome_unknown(
    run: Run, faults: Faults, write: Callable[[], object]
) -> None:
    till = Till(write)
    pos = run(till)
    for _ in range(2):
        with pytest.raises(TicketOutcomeUnknown):
            await pos.write_ticket(ORDER, "ord_1")
    assert faults.told == [("write_ticket", True)], "told once, not at every try"
    till.write = lambda: Ticket("1")
    await pos.write_ticket(ORDER, "ord_1")
    assert faults.told == [("write_ticket", True), ("write_ticket", False)]


async def test_a_reader_that_breaks_off_is_an_export_that_cannot_be_read(
    run: Run, faults: Faults
) -> None:
    class Broken(Till):
        def read_catalogue(self) -> Catalogue:
            raise ZeroDivisionError

    with pytest.raises(ExportUnreadable):
        await run(Broken()).read_catalogue()
    assert faults.told == [("read_catalogue", True)]


async def test_a_write_that_takes_too_long_may_still_come_and_the_next_call_waits_for_it(
    run: Run,
) -> None:
    go_on = threading.Event()

    def slow() -> object:
        assert go_on.wait(30)
        return Ticket("1")

    till = Till(slow)
    pos = run(till, timeout_s=0.05)
    with pytest.raises(TicketOutcomeUnknown):
        await pos.write_ticket(ORDER, "ord_1")
    with pytest.raises(PosOffline):
        await pos.find_ticket("ord_1")
    assert not (await pos.health()).online
    go_on.set()
    async with asyncio.timeout(30):
        while not till.written:
            await asyncio.sleep(0.01)
    assert await run(till).find_ticket("ord_1") == Ticket("ord_1")
    async with asyncio.timeout(30):
        while not (await pos.health()).online:
            await asyncio.sleep(0.01)


async def test_a_write_that_never_got_its_turn_has_surely_not_happened(run: Run) -> None:
    go_on = threading.Event()

    def slow() -> object:
        assert go_on.wait(30)
        return Ticket("1")

    till = Till(slow)
    pos = run(till, timeout_s=0.05)
    writes = [pos.write_ticket(ORDER, key) for key in ("ord_1", "ord_2")]
    first, second = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(first, TicketOutcomeUnknown)
    assert isinstance(second, PosOffline)
    go_on.set()
    async with asyncio.timeout(30):
        while not (await pos.health()).online:
            await asyncio.sleep(0.01)
    assert till.written == ["ord_1"]


async def test_health_of_a_pos_that_says_nothing_of_it_is_good(run: Run) -> None:
    assert (await run(object()).health()).online


async def test_health_never_raises(run: Run) -> None:
    class Broken(Till):
        def health(self) -> Health:
            raise OSError("no")

    health = await run(Broken()).health()
    assert not health.online
    assert "no" in health.detail


@pytest.mark.parametrize(
    "health",
    [
        Health(online=True, closed="no\ud800"),
        Health(online=True, closed=cast("str", 10**5000)),
        Health(online=True, advice=(Advice("x\udc00", cast("str", None)),)),
        Health(online=True, advice=(Advice("x" * 10**6, "y" * 10**6),) * 10_000),
        Health(online=False, detail=cast("str", None), fix="\ud800" * 10_000),
    ],
)
async def test_what_health_says_can_be_stored_and_shown_whatever_it_is(
    run: Run, faults: Faults, health: Health
) -> None:
    class Says(Till):
        def health(self) -> Health:
            return health

    found = await run(Says()).health()
    assert found.online is health.online
    assert faults.told == []
    texts = [found.detail, found.closed, found.fix]
    texts += [part for each in found.advice for part in (each.text, each.fix)]
    for text in texts:
        text.encode()
        assert len(text) <= 2000
    assert len(found.advice) <= 20


@pytest.mark.parametrize("advice", [7, "off", ("off",), None])
async def test_advice_that_is_none_is_a_fault_of_the_adapter(
    run: Run, faults: Faults, advice: object
) -> None:
    class Says(Till):
        def health(self) -> Health:
            return Health(online=True, advice=cast("tuple[Advice, ...]", advice))

    assert not (await run(Says()).health()).online
    assert faults.told == [("health", True)]


async def test_a_remedy_of_a_failure_can_be_stored_whatever_it_is(run: Run) -> None:
    failure = PosFailure("no", fix="\ud800" * 10_000)
    with pytest.raises(PosFailure) as caught:
        await run(Till(failing(failure))).write_ticket(ORDER, "ord_1")
    caught.value.fix.encode()
    assert len(caught.value.fix) <= 2000


@pytest.mark.parametrize("named", [None, 7, "17", ("17", 7, "\ud800", "")])
async def test_items_that_are_not_named_rightly_make_no_other_failure(
    run: Run, named: object
) -> None:
    failure = ItemUnavailable("gone")
    failure.external_ids = cast("tuple[str, ...]", named)
    with pytest.raises(ItemUnavailable) as caught:
        await run(Till(failing(failure))).write_ticket(ORDER, "ord_1")
    assert caught.value.external_ids == (("17",) if isinstance(named, tuple) else ())


async def test_a_cancelled_call_that_waits_is_never_made(run: Run) -> None:
    go_on = threading.Event()

    def slow() -> object:
        assert go_on.wait(30)
        return Ticket("1")

    till = Till(slow)
    pos = run(till)
    first = asyncio.ensure_future(pos.write_ticket(ORDER, "ord_1"))
    second = asyncio.ensure_future(pos.write_ticket(ORDER, "ord_2"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go_on.set()
    await first
    assert (await pos.health()).online
    assert till.written == ["ord_1"]


async def test_the_folder_adapter_runs(run: Run, tmp_path: Path) -> None:
    pos = run(menu_till(tmp_path, "external_id,name,price\n1,Soup,1\n"))
    catalogue = await pos.read_catalogue()
    told = await pos.read_changes(frozenset(catalogue.fingerprints.values()))
    assert not told.fresh.items
    assert pos.catalogue_files() == (tmp_path / "menu.csv",)
    pos = run(open_till(tmp_path, orders_dir="orders", updates_dir="news"))
    await pos.write_ticket(ORDER, "ord_1")
    (tmp_path / "news" / "a.json").write_text('{"order_id": "ord_1", "status": "ready"}')
    news: Sequence[TicketUpdate] = await pos.read_updates()
    await pos.update_handled(news[0])
    await pos.cancel_ticket(ORDER, "ord_1", "Sold out")
    assert await pos.unreadable_updates() == ()
    assert pos.update_folders() == (tmp_path / "news",)


async def test_what_the_pos_tells_from_a_thread_of_its_own_is_heard_in_the_loop(run: Run) -> None:
    heard: asyncio.Queue[tuple[Change, int]] = asyncio.Queue()

    class Talks(Till):
        def on_change(self, hear: Callable[[Change], None]) -> None:
            threading.Timer(0.1, hear, args=(Change.AVAILABILITY,)).start()

    pos = run(Talks())
    assert pos.notifies_changes
    pos.on_change(lambda change: heard.put_nowait((change, threading.get_ident())))
    async with asyncio.timeout(10):
        assert await heard.get() == (Change.AVAILABILITY, threading.get_ident())
    both: list[Change] = []
    one = run(Talks())
    one.on_change(lambda _change: both.append(Change.TABLES))
    one.on_change(both.append)
    async with asyncio.timeout(10):
        while len(both) < 2:
            await asyncio.sleep(0.01)
    assert both == [Change.TABLES, Change.AVAILABILITY]
    assert not run(Till()).notifies_changes
    run(Till()).on_change(lambda _change: None)  # nothing to hear, and nothing wrong


async def test_trouble_of_the_adapter_itself_is_told_when_it_comes_and_goes(
    run: Run, faults: Faults
) -> None:
    class Ails(Till):
        ailment = ""

        def trouble(self) -> str:
            return self.ailment

    till = Ails()
    pos = run(till)
    for ailment in ("", "It ends at once.", "It ends at once.", ""):
        till.ailment = ailment
        await pos.health()
        await pos.read_catalogue()
        kept = [each.detail["detail"] for each in faults.open.values()]
        assert kept == ([ailment] if ailment else [])
    assert len([each for each in faults.reports if each]) == 1, "reported once"


async def test_an_adapter_is_let_go_of_at_the_end_and_cannot_break_it(
    run: Run, faults: Faults
) -> None:
    class Holds(Till):
        def close(self) -> None:
            raise ValueError("stuck")

    await run(Holds()).close()
    assert faults.told == [("close", True)]


class Stuck:
    """A POS with every capability whose methods all wait until it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in _ANSWERS and name not in _AT_ONCE:
            raise AttributeError(name)

        def wait(*_arguments: object) -> object:
            self.asked.set()
            assert self.let_go.wait(60)
            return _ANSWERS.get(name, 1)

        return wait


_AT_ONCE = ("late_write_s", "hold_older_than_s", "catalogue_files", "on_change")
_LISTED = ListedTicket("k", "r", "1")
_UPDATE = TicketUpdate("k", "ord_1", TicketStatus.READY)
_ANSWERS: dict[str, object] = {
    "read_catalogue": Catalogue(),
    "read_changes": CatalogueChanges(Catalogue(), frozenset(), 0),
    "read_availability": AvailabilityReading(),
    "read_tables": TablesReading(),
    "write_ticket": Ticket("1"),
    "write_marked_ticket": Ticket("1"),
    "find_ticket": None,
    "cancel_ticket": None,
    "list_tickets": (_LISTED,),
    "cancel_listed_ticket": None,
    "read_updates": (),
    "update_handled": None,
    "unreadable_updates": (),
    "health": Health(online=True),
}
_CALLS: dict[str, Callable[[PosRunner], Awaitable[object]]] = {
    "read_catalogue": lambda pos: pos.read_catalogue(),
    "read_changes": lambda pos: pos.read_changes(frozenset()),
    "read_availability": lambda pos: pos.read_availability(),
    "read_tables": lambda pos: pos.read_tables(),
    "write_ticket": lambda pos: pos.write_ticket(ORDER, "k"),
    "write_marked_ticket": lambda pos: pos.write_marked_ticket(ORDER, "k", frozenset()),
    "find_ticket": lambda pos: pos.find_ticket("k"),
    "cancel_ticket": lambda pos: pos.cancel_ticket(ORDER, "k", "why"),
    "list_tickets": lambda pos: pos.list_tickets(),
    "cancel_listed_ticket": lambda pos: pos.cancel_listed_ticket(_LISTED, ORDER, "why"),
    "read_updates": lambda pos: pos.read_updates(),
    "update_handled": lambda pos: pos.update_handled(_UPDATE),
    "unreadable_updates": lambda pos: pos.unreadable_updates(),
    "health": lambda pos: pos.health(),
}


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def test_every_method_of_an_adapter_is_tried_for_hanging() -> None:
    rows = {name for name in dir(PosRunner) if name.startswith(("read_", "write_", "cancel_"))}
    assert {name for name in rows if callable(getattr(PosRunner, name))} <= _CALLS.keys()
    assert _CALLS.keys() == _ANSWERS.keys()


@pytest.mark.parametrize("operation", _CALLS)
async def test_a_call_that_hangs_is_a_problem_until_it_returns(
    run: Run, faults: Faults, operation: str
) -> None:
    till = Stuck()
    pos = run(till, timeout_s=0.25, hangs_after_s=0.1)
    asked = asyncio.ensure_future(_CALLS[operation](pos))
    waits = asyncio.ensure_future(_CALLS[operation](pos))  # behind it: it does not hang itself
    await eventually(lambda: faults.hanging == [operation])
    detail = faults.open["adapter.hangs", f"test.{operation}"].detail
    assert (detail["adapter"], detail["operation"]) == ("test", operation)
    assert detail["since"].endswith(" UTC")
    till.let_go.set()
    await eventually(lambda: not faults.hanging)
    await asyncio.gather(asked, waits, return_exceptions=True)
    await _CALLS[operation](pos)
    assert faults.open == {}


async def test_a_call_that_nobody_waits_for_any_more_hangs_all_the_same(
    run: Run, faults: Faults
) -> None:
    till = Stuck()
    pos = run(till, hangs_after_s=0.1)
    asked = asyncio.ensure_future(pos.read_catalogue())
    await eventually(till.asked.is_set)
    asked.cancel()
    await eventually(lambda: faults.hanging == ["read_catalogue"])
    till.let_go.set()
    await eventually(lambda: not faults.hanging)


async def test_what_must_answer_at_once_holds_nobody_up_for_long(
    run: Run, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tillbridge.pos.runner._AT_ONCE_S", 0.05)
    till = Stuck()
    pos = run(till)
    assert pos.late_write_s == 0
    assert pos.late_write_s == 0, "and it is not asked again"
    assert pos.hold_older_than_s == 0
    assert sorted(faults.hanging) == ["hold_older_than_s", "late_write_s"]
    till.let_go.set()
    await eventually(lambda: not faults.hanging)
    assert pos.late_write_s == 1


async def test_an_adapter_that_does_not_let_go_is_left_behind(
    run: Run, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tillbridge.pos.runner._END_WITHIN_S", 0.05)
    go_on = threading.Event()

    class Holds(Till):
        def close(self) -> None:
            go_on.wait(60)

    await run(Holds()).close()
    go_on.set()
    assert faults.open == {}, "who is closed reports nothing more"
