"""An Epson printer with its ePOS-Print service, on a real socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge_printer.emulated.epos_server import EposServer
from tillbridge_printer.emulated.trying import opened, order_of
from tillbridge_printer.epos import answer_of


@pytest.fixture
def server() -> Iterator[EposServer]:
    printer = EposServer()
    yield printer
    printer.switch_off()


def place(server: EposServer) -> str:
    return f"epos://127.0.0.1:{server.port}"


def test_an_order_comes_out_once(server: EposServer, tmp_path: Path) -> None:
    pos = opened(tmp_path, place(server), tickets=["kitchen", "customer"])
    order = order_of(special_instructions="<text>&amp; 寿司\x1b@")
    for _time in range(2):
        pos.write_ticket(order, "ord_1")
    kitchen, _customer = server.machine.sheets
    assert "2 x Soup" in kitchen.text
    assert any(line.picture for line in kitchen.lines), "the note is drawn"
    assert server.machine.strange == []


@pytest.mark.parametrize(
    ("trouble", "words"), [("cover_open", "cover is open"), ("paper_out", "out of paper")]
)
def test_a_printer_in_trouble_gets_nothing(
    server: EposServer, tmp_path: Path, trouble: str, words: str
) -> None:
    setattr(server.machine, trouble, True)
    pos = opened(tmp_path, place(server))
    assert words in pos.health().detail
    with pytest.raises(PosOffline, match=words):
        pos.write_ticket(order_of(), "ord_1")
    assert pos.find_ticket("ord_1") is None


@pytest.mark.parametrize("code", ["EPTR_REC_EMPTY", "EX_TIMEOUT", "PrintSystemError", "NewCode"])
def test_a_code_in_the_middle_of_a_ticket_leaves_the_outcome_open(
    server: EposServer, tmp_path: Path, code: str
) -> None:
    server.machine.fails_with = code
    pos = opened(tmp_path, place(server))
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    with pytest.raises(TicketOutcomeUnknown):
        pos.find_ticket("ord_1")
    pos.write_marked_ticket(order_of(), "ord_1", frozenset())
    assert server.machine.sheets[-1].text.startswith("POSSIBLE DUPLICATE")


@pytest.mark.parametrize("code", ["SchemaError", "EX_SPOOLER", "TooManyRequests"])
def test_a_code_that_says_nothing_was_printed_is_believed(
    server: EposServer, tmp_path: Path, code: str
) -> None:
    server.machine.fails_with = code
    pos = opened(tmp_path, place(server))
    with pytest.raises(PosOffline, match=code):
        pos.write_ticket(order_of(), "ord_1")
    assert pos.find_ticket("ord_1") is None


def test_another_device_is_told_by_name(server: EposServer, tmp_path: Path) -> None:
    pos = opened(tmp_path, f"{place(server)}/bar")
    assert "knows no device" in pos.health().detail
    server.machine.device = "bar"
    assert pos.health().online


def test_a_printer_that_says_nothing_of_a_ticket_may_have_it(
    server: EposServer, tmp_path: Path
) -> None:
    server.loses_answer = True
    pos = opened(tmp_path, place(server))
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    assert len(server.machine.sheets) == 1


def test_nobody_on_that_port_is_offline(tmp_path: Path) -> None:
    pos = opened(tmp_path, "epos://127.0.0.1:1")
    assert "does not answer" in pos.health().detail


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"<a/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><response success="true" code="" status="2"/>',
    ],
)
def test_an_answer_that_is_none_is_refused(answer: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        answer_of(answer)
