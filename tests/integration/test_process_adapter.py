"""An adapter that is a program of its own: killed, hung, silent, talking rubbish, and well."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import odd_program
from tillbridge.adapter import (
    AdapterContext,
    Advice,
    AvailabilityReading,
    Change,
    ExportUnreadable,
    Health,
    Item,
    ItemUnavailable,
    ListedTicket,
    ListsTickets,
    Order,
    PosFailure,
    PosOffline,
    RejectReason,
    Source,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
    TicketStatus,
    TicketUpdate,
    WritesLate,
)
from tillbridge.adapter.conformance import capabilities_of
from tillbridge.core.errors import ConfigError
from tillbridge.model.order import parse_order
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.process import program as program_module
from tillbridge.pos.process.adapter import NotUnderstood
from tillbridge.pos.runner import PosRunner

ORDER: Order = parse_order({"id": "ord_1", "note": "Ünïcode, für Änne"})
SOUP = Item("1", "Soup", 450)

Open = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Open]:
    opened: list[Any] = []

    def make(*, limits: dict[str, Any] | None = None, **options: Any) -> Any:  # noqa: ANN401 -- whatever methods the program declares
        pos = open_adapter(
            "process",
            {
                "command": [sys.executable, "-S", odd_program.__file__],
                "options": {"folder": str(tmp_path), **options},
                **(limits or {}),
            },
            AdapterContext("main", "EUR", "loc-1", tmp_path),
        )
        opened.append(pos)
        return pos

    yield make
    for pos in opened:
        pos.close()


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + 20
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def starts(folder: Path) -> list[int]:
    return [int(each) for each in (folder / "starts").read_text().split()]


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends meanwhile
        return False
    return state != "Z"


def test_it_has_the_capabilities_that_the_program_declares(start: Open) -> None:
    pos = start()
    assert capabilities_of(pos) == {"catalogue", "tickets", "health"}
    assert dict(pos.read_catalogue().items) == {"1": SOUP}
    assert pos.write_ticket(ORDER, "ord_1") == Ticket("#1")
    assert pos.find_ticket("ord_1") is None
    assert pos.health().online
    assert pos.trouble() == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"protocol": 2}, "version 2 of the protocol; this bridge speaks 1"),
        ({"refuse": "options.server is missing"}, "options.server is missing"),
    ],
)
def test_a_program_that_cannot_work_so_is_a_fault_of_the_configuration(
    start: Open, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=r"\[stores\.main\.pos\]") as caught:
        start(**options)
    assert says in str(caught.value)


def test_a_program_that_is_not_there_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be started"):
        open_adapter(
            "process",
            {"command": ["no-such-program-4711"]},
            AdapterContext("main", "EUR", "loc-1", tmp_path),
        )


def test_a_program_that_may_not_be_started_yet_is_a_till_that_is_away(tmp_path: Path) -> None:
    program = tmp_path / "till"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -S {odd_program.__file__}\n", "utf-8")
    pos: Any = open_adapter(
        "process",
        {"command": [str(program)], "options": {"folder": str(tmp_path)}},
        AdapterContext("main", "EUR", "loc-1", tmp_path),
    )
    try:
        assert "Permission denied" in pos.health().detail
        program.chmod(0o755)
        until(lambda: pos.health().online)
    finally:
        pos.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "StoreClosed", "message": "closed"}, StoreClosed),
        ({"kind": "ItemUnavailable", "message": "no", "external_ids": ["17"]}, ItemUnavailable),
        ({"kind": "PosOffline", "message": "off"}, PosOffline),
        ({"kind": "TicketOutcomeUnknown", "message": "?"}, TicketOutcomeUnknown),
        ({"kind": "PosFailure", "message": "printer on fire"}, PosFailure),
    ],
)
def test_what_the_program_says_went_wrong_is_the_adapters_failure(
    start: Open, error: dict[str, Any], kind: type[PosFailure]
) -> None:
    pos = start(how={"write_ticket": {"answer": {"error": error}}})
    with pytest.raises(kind) as caught:
        pos.write_ticket(ORDER, "ord_1")
    assert type(caught.value) is kind
    assert caught.value.message == error["message"]
    assert getattr(caught.value, "external_ids", ()) == tuple(error.get("external_ids", ()))


def test_a_remedy_that_the_program_knows_reaches_a_person(start: Open) -> None:
    error = {"kind": "StoreClosed", "message": "No session.", "fix": "Open a session."}
    pos = start(how={"write_ticket": {"answer": {"error": error}}})
    with pytest.raises(StoreClosed) as caught:
        pos.write_ticket(ORDER, "ord_1")
    assert caught.value.fix == "Open a session."


def test_a_program_that_lists_its_tickets_and_writes_late_says_so(start: Open) -> None:
    second = {"key": "ord_1", "reference": "A-2", "record": "row 18", "live": False}
    first = {"key": "ord_1", "reference": "A-1", "record": "row 17"}
    pos = start(
        capabilities=["tickets", "list", "late_writes"],
        hello={"late_write_s": 45},
        how={
            "list_tickets": {"answer": {"result": {"tickets": [first, second]}}},
            "cancel_listed_ticket": {"answer": {"result": None}},
        },
    )
    assert capabilities_of(pos) == {"tickets", "list", "late_writes", "health"}
    assert pos.late_write_s() == 45
    listed = pos.list_tickets()
    assert listed == (
        ListedTicket("ord_1", "A-1", "row 17"),
        ListedTicket("ord_1", "A-2", "row 18", live=False),
    )
    pos.cancel_listed_ticket(listed[1], ORDER, "The order is in the till twice")


def test_a_program_of_before_has_none_of_it(start: Open) -> None:
    pos = start()
    assert not isinstance(pos, ListsTickets | WritesLate)
    assert pos.health() == Health(online=True)
    assert pos.read_catalogue().source == Source()


def test_a_till_that_is_closed_and_one_that_is_set_up_badly_say_so(start: Open) -> None:
    advice = {"text": "Orders print on no printer.", "fix": "Give the online menu a printer."}
    health = {"online": True, "closed": "No session is open.", "advice": [advice]}
    pos = start(how={"health": {"answer": {"result": health}}})
    assert pos.health() == Health(
        online=True, closed="No session is open.", advice=(Advice(advice["text"], advice["fix"]),)
    )


async def test_a_row_that_is_refused_late_has_the_place_and_the_column_that_the_program_names(
    start: Open,
) -> None:
    menu = {
        "items": [{"external_id": "17", "name": "Soup", "price": 10**30}],
        "source": {"places": {"17": "menu.dbf, row 3"}, "columns": {"price": "PRICE1"}},
    }
    sold_out = {
        "items": {"17": {"available": False, "until": 5}},
        "source": {"places": {"17": "stock.dbf, row 4"}},
    }
    pos = start(
        capabilities=["catalogue", "availability"],
        how={
            "read_catalogue": {"answer": {"result": menu}},
            "read_availability": {"answer": {"result": sold_out}},
        },
    )
    runner = PosRunner(pos, store="main", adapter="process", ticket_timeout_s=20)
    (bad,) = (await runner.read_catalogue()).bad_rows
    assert (bad.place, bad.field) == ("menu.dbf, row 3", "PRICE1")
    (bad,) = (await runner.read_availability()).bad_rows
    assert bad.place == "stock.dbf, row 4"


def test_an_export_that_cannot_be_read_is_told_with_place_and_remedy(start: Open) -> None:
    error = {
        "kind": "ExportUnreadable",
        "message": "half",
        "place": "menu.dbf",
        "fix": "wait",
        "passing": True,
    }
    pos = start(how={"read_catalogue": {"answer": {"error": error}}})
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    said = (caught.value.text, caught.value.place, caught.value.fix, caught.value.passing)
    assert said == ("half", "menu.dbf", "wait", True)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"result": {"itmes": []}}, "itmes"),
        ({"result": {"items": [{"external_id": "1", "name": "x", "price": "4.50"}]}}, "price"),
        ({"result": {"items": [{"external_id": "1", "name": "x", "price": 4.5}]}}, "price"),
        ({"result": {"items": [{"external_id": "1", "name": "geheim"}]}}, "price"),
        ({}, "neither result nor error"),
        ({"error": {"kind": "Oops"}}, "kind"),
        ({"error": {"kind": "CannotDo"}}, "no failure of a till"),
    ],
)
def test_an_answer_that_is_none_is_the_programs_defect_and_tells_no_values(
    start: Open, answer: dict[str, Any], says: str
) -> None:
    pos = start(how={"read_catalogue": {"answer": answer}})
    with pytest.raises(NotUnderstood, match=says) as caught:
        pos.read_catalogue()
    assert "geheim" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_program_that_dies_over_an_order_leaves_its_outcome_unknown_and_comes_back(
    start: Open, tmp_path: Path
) -> None:
    pos = start(how={"write_ticket": {"exit": 3}}, odd_starts=1)
    with pytest.raises(TicketOutcomeUnknown, match="exit code 3"):
        pos.write_ticket(ORDER, "ord_1")
    until(lambda: pos.health().online)
    assert pos.write_ticket(ORDER, "ord_1") == Ticket("#1")
    assert len(set(starts(tmp_path))) == 2


def test_while_it_is_away_nothing_is_asked_and_so_surely_nothing_written(start: Open) -> None:
    pos = start(how={"health": {"exit": 1}})
    assert not pos.health().online
    with pytest.raises(PosOffline):  # it rests half a second before it is started again
        pos.write_ticket(ORDER, "ord_1")
    assert "exit code 1" in pos.health().detail


def test_a_program_that_hangs_is_ended_with_all_it_has_started(start: Open, tmp_path: Path) -> None:
    pos = start(
        limits={"answer_s": 0.5},
        how={"write_ticket": {"grandchild": True, "hang": True}},
        odd_starts=1,
    )
    with pytest.raises(TicketOutcomeUnknown, match=r"did not answer write_ticket within 0\.5 s"):
        pos.write_ticket(ORDER, "ord_1")
    grandchild = int((tmp_path / "grandchild").read_text())
    until(lambda: not runs(starts(tmp_path)[0]) and not runs(grandchild))
    until(lambda: pos.health().online)


def test_one_that_does_not_read_its_input_holds_nobody_up(start: Open) -> None:
    pos = start(limits={"answer_s": 0.5}, how={"health": {"hang": True}})
    large = parse_order({"id": "ord_2", "note": "x" * 500_000})
    began = time.monotonic()
    thread = threading.Thread(target=pos.health)
    thread.start()
    with pytest.raises(PosFailure):  # it waits for its turn, and then there is no program
        pos.write_ticket(large, "ord_2")
    thread.join()
    assert time.monotonic() - began < 10


def test_a_reading_that_hangs_is_read_again_soon(start: Open) -> None:
    pos = start(limits={"read_s": 0.5}, how={"read_catalogue": {"hang": True}}, odd_starts=1)
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert caught.value.passing
    until(lambda: pos.health().online)
    assert len(pos.read_catalogue().items) == 1


def test_rubbish_between_answers_is_left_alone(
    start: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = '{"type":"answer","id":99,"result":{}}\n{"type":"answer","id":true}\n'
    rubbish = "Loading drivers...\n\n\x00\xff{\n[1,2]\nnull\n" + '{"type":"answer"}\n{"type":7}\n'
    pos = start(
        before=[rubbish, '{"type":"event","event":"no_such"}\n'],
        how={"read_catalogue": {"write": f"{rubbish}{odd}"}},
    )
    assert len(pos.read_catalogue().items) == 1
    assert len(pos.read_catalogue().items) == 1
    logged = capsys.readouterr()
    assert (logged.out + logged.err).count("adapter.rubbish") == 1
    assert "Loading drivers" not in logged.out + logged.err


def test_half_a_line_at_its_end_is_no_answer(start: Open) -> None:
    half = '{"type":"answer","id":1,"result":{"reference":"#1"}}'
    pos = start(how={"write_ticket": {"write": half, "exit": 0}})
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(ORDER, "ord_1")


def test_an_answer_to_another_question_is_no_answer(start: Open) -> None:
    pos = start(limits={"answer_s": 0.5}, how={"write_ticket": {"off_by": 1}})
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(ORDER, "ord_1")


def test_a_line_of_ten_megabytes_is_a_menu_like_any_other(start: Open) -> None:
    pos = start(how={"read_catalogue": {"large": 10_000}})
    assert len(pos.read_catalogue().items) == 10_000


def test_a_line_without_an_end_is_not_kept(
    start: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program_module, "LONGEST_LINE", 1 << 20)
    pos = start(how={"read_catalogue": {"endless": True}}, odd_starts=1)
    with pytest.raises(ExportUnreadable, match="a line of more than 1 MB"):
        pos.read_catalogue()
    until(lambda: not runs(starts(tmp_path)[0]))


def test_what_it_pushes_is_heard_and_its_news_read_until_handled(start: Open) -> None:
    news = {"key": "n1", "order_id": "ord_1", "status": "rejected", "reason": "item_unavailable"}
    heard: list[Change] = []
    pos = start(
        capabilities=["catalogue", "tickets", "availability", "updates", "changes"],
        events=[
            {"event": "availability_changed"},
            {"event": "order_status", "update": {**news, "external_ids": ["17"]}},
        ],
    )
    pos.on_change(heard.append)
    until(lambda: len(pos.read_updates()) == 1)
    update = TicketUpdate(
        "n1", "ord_1", TicketStatus.REJECTED, RejectReason.ITEM_UNAVAILABLE, ("17",)
    )
    assert tuple(pos.read_updates()) == (update,)
    pos.update_handled(update)
    assert tuple(pos.read_updates()) == ()
    assert not pos.read_availability().items["1"].available
    assert isinstance(pos.read_availability(), AvailabilityReading)


def test_a_program_that_was_started_again_is_read_anew(start: Open) -> None:
    heard: list[Change] = []
    pos = start(
        capabilities=["catalogue", "tickets", "changes", "health"],
        how={"health": {"exit": 1}},
        odd_starts=1,
    )
    pos.on_change(heard.append)
    assert not pos.health().online
    until(lambda: set(heard) == set(Change))


def test_one_that_keeps_ending_is_trouble_until_it_has_run_well_for_a_while(
    start: Open, tmp_path: Path
) -> None:
    pos = start(deadly_starts=4, limits={"restart_cap_s": 0.05, "steady_s": 1})
    until(lambda: "exit code 3" in pos.trouble())
    until(lambda: len(starts(tmp_path)) == 5)
    assert pos.trouble()
    until(lambda: pos.health().online and not pos.trouble())


def test_it_rests_longer_after_each_end(start: Open, tmp_path: Path) -> None:
    start(deadly_starts=99, limits={"restart_cap_s": 60})
    until(lambda: len(starts(tmp_path)) == 3)  # after half a second, and one more
    time.sleep(0.6)  # by now a program that is started every half second would be there again
    assert len(starts(tmp_path)) == 3


def test_one_that_says_nothing_at_first_is_waited_for_and_then_expected(
    start: Open, tmp_path: Path
) -> None:
    pos = start(silent_starts=1, limits={"start_s": 0.5})
    assert capabilities_of(pos) == {"catalogue", "tickets", "health"}
    assert "did not send its hello within 0.5 seconds" in pos.health().detail
    with pytest.raises(ExportUnreadable):
        pos.read_catalogue()


def test_it_is_asked_one_thing_at_a_time_unless_it_can_do_two(start: Open) -> None:
    pos = start(parallel=True, how={"read_catalogue": {"wait_for": True}})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(pos.read_catalogue()))
    thread.start()
    until(lambda: pos.health().online and found)
    thread.join()
    assert len(found[0].items) == 1


def test_it_sees_of_the_environment_only_what_is_named(
    start: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILLBRIDGE_CLIENT_SECRET", "s3cret")
    monkeypatch.setenv("ODBCINI", "/etc/odbc.ini")
    pos = start(environment=True, limits={"env": ["ODBCINI"]})
    assert pos.health().online
    until((tmp_path / "environment").exists)
    until(lambda: (tmp_path / "environment").stat().st_size)
    seen = json.loads((tmp_path / "environment").read_text())
    assert seen["ODBCINI"] == "/etc/odbc.ini"
    assert seen["PATH"] == os.environ["PATH"]
    assert "TILLBRIDGE_CLIENT_SECRET" not in seen


def test_what_it_says_on_stderr_is_logged_without_secrets_and_not_without_end(
    start: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    from tillbridge.core.log import configure

    configure("json", "info")
    pos = start(words=500)
    assert pos.health().online
    logged = ""

    def all_said() -> bool:
        nonlocal logged
        logged += capsys.readouterr().err
        return logged.count("adapter.said") >= 40

    until(all_said)
    pos.close()
    logged += capsys.readouterr().err
    assert "word 0 " in logged
    assert "abcdefghijkl" not in logged
    assert logged.count('"adapter.said"') == 40


def test_it_is_asked_to_end_and_ended_where_it_does_not(start: Open, tmp_path: Path) -> None:
    well, deaf = start(), start(deaf=True)
    pids = starts(tmp_path)
    assert all(map(runs, pids))
    for pos in (well, deaf):
        pos.close()
        pos.close()
    assert not any(map(runs, pids))
    with pytest.raises(PosOffline):
        well.write_ticket(ORDER, "ord_1")
    assert len(starts(tmp_path)) == 2
