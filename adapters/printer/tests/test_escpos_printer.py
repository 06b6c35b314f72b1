"""An ESC/POS printer on a real socket: what it prints, and what becomes of its troubles."""

import os
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from tillbridge.adapter import PosOffline, Ticket, TicketMark, TicketOutcomeUnknown
from tillbridge_printer.emulated.escpos import Machine
from tillbridge_printer.emulated.escpos_server import EscPosServer
from tillbridge_printer.emulated.trying import opened, order_of, until

DUPLICATE = frozenset({TicketMark.POSSIBLE_DUPLICATE})


@pytest.fixture
def server() -> Iterator[EscPosServer]:
    printer = EscPosServer()
    yield printer
    printer.switch_off()


def place(server: EscPosServer) -> str:
    return f"tcp://127.0.0.1:{server.port}"


def papers(machine: Machine) -> list[str]:
    return [sheet.text for sheet in machine.sheets]


def test_an_order_comes_out_once_and_is_cut(server: EscPosServer, tmp_path: Path) -> None:
    pos = opened(tmp_path, place(server), tickets=["kitchen", "customer"])
    assert pos.find_ticket("ord_1") is None
    ticket = pos.write_ticket(order_of(), "ord_1")
    assert pos.write_ticket(order_of(), "ord_1") == ticket
    assert opened(tmp_path, place(server)).find_ticket("ord_1") == ticket
    assert len(papers(server.machine)) == 2
    assert "2 x Soup" in papers(server.machine)[0]
    assert server.machine.strange == []


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"cover_open": True}, "cover is open"),
        ({"lines_left": 0}, "out of paper"),
        ({"cutter_error": True}, "an error of its cutter"),
    ],
)
def test_a_printer_in_trouble_gets_nothing(
    server: EscPosServer, tmp_path: Path, trouble: dict[str, object], words: str
) -> None:
    for name, value in trouble.items():
        setattr(server.machine, name, value)
    pos = opened(tmp_path, place(server))
    assert not pos.health().online
    assert words in pos.health().detail
    with pytest.raises(PosOffline, match=words):
        pos.write_ticket(order_of(), "ord_1")
    assert pos.find_ticket("ord_1") is None, "surely nothing was printed"


def test_paper_that_runs_low_is_told_before_it_is_out(server: EscPosServer, tmp_path: Path) -> None:
    server.machine.paper_low = True
    health = opened(tmp_path, place(server)).health()
    assert health.online
    assert "nearly at its end" in health.detail


def test_a_roll_that_ends_in_the_middle_is_told_at_once_and_the_next_is_marked(
    server: EscPosServer, tmp_path: Path
) -> None:
    server.machine.lines_left = 3
    pos = opened(tmp_path, place(server), timeout_s=60)
    with pytest.raises(TicketOutcomeUnknown, match="out of paper"):
        pos.write_ticket(order_of(), "ord_1")
    with pytest.raises(TicketOutcomeUnknown):
        pos.find_ticket("ord_1")
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    with pytest.raises(PosOffline, match="out of paper"):
        pos.write_marked_ticket(order_of(), "ord_1", DUPLICATE)
    with pytest.raises(TicketOutcomeUnknown):
        pos.find_ticket("ord_1")  # being offline at the second try makes the first no better known
    server.close_cover()
    ticket = pos.write_marked_ticket(order_of(), "ord_1", DUPLICATE)
    assert ticket == Ticket("paper, possible duplicate")
    first, second = papers(server.machine)
    assert "POSSIBLE DUPLICATE" not in first
    assert second.startswith("POSSIBLE DUPLICATE")


def test_a_printer_that_dies_in_the_middle_may_have_printed(
    server: EscPosServer, tmp_path: Path
) -> None:
    server.machine.dies_after = 60
    pos = opened(tmp_path, place(server))
    with pytest.raises(TicketOutcomeUnknown, match="broke off"):
        pos.write_ticket(order_of(), "ord_1")
    pos.write_marked_ticket(order_of(), "ord_1", DUPLICATE)
    assert papers(server.machine)[-1].startswith("POSSIBLE DUPLICATE")


def test_a_confirmation_that_is_lost_leaves_the_outcome_open(
    server: EscPosServer, tmp_path: Path
) -> None:
    server.loses_answer = True
    pos = opened(tmp_path, place(server))
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    assert len(papers(server.machine)) == 1
    marked = pos.write_marked_ticket(order_of(), "ord_1", frozenset({TicketMark.NOT_IN_TILL}))
    assert marked.reference == "paper, possible duplicate"
    assert papers(server.machine)[1].splitlines()[:2] == ["POSSIBLE DUPLICATE", "NOT IN TILL"]
    assert pos.write_marked_ticket(order_of(), "ord_1", DUPLICATE) == marked, "once"


def test_newer_printers_confirm_by_a_number_of_ours(server: EscPosServer, tmp_path: Path) -> None:
    pos = opened(tmp_path, place(server), confirmed_by="process_id")
    pos.write_ticket(order_of(), "ord_1")
    assert len(papers(server.machine)) == 1
    assert server.machine.strange == []


def test_a_printer_that_cannot_answer_is_sent_to_blindly(
    server: EscPosServer, tmp_path: Path
) -> None:
    server.mute = True
    with pytest.raises(PosOffline, match="does not say how it is") as raised:
        opened(tmp_path, place(server)).write_ticket(order_of(), "ord_1")
    assert "status = false" in raised.value.fix
    pos = opened(tmp_path, place(server), status=False)
    assert pos.health().online
    pos.write_ticket(order_of(), "ord_1")
    until(lambda: len(papers(server.machine)) == 1)


def test_a_cancelled_order_is_told_on_paper_once(server: EscPosServer, tmp_path: Path) -> None:
    pos = opened(tmp_path, place(server))
    pos.cancel_ticket(order_of("ord_9"), "ord_9", "never printed")
    pos.write_ticket(order_of(), "ord_1")
    for _time in range(2):
        pos.cancel_ticket(order_of(), "ord_1", "Sold out")
    assert [("CANCELLED" in paper) for paper in papers(server.machine)] == [False, True]
    assert "Sold out" in papers(server.machine)[1]


def test_an_order_that_may_have_come_out_is_cancelled_on_paper_too(
    server: EscPosServer, tmp_path: Path
) -> None:
    server.loses_answer = True
    pos = opened(tmp_path, place(server))
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    pos.cancel_ticket(order_of(), "ord_1", "")
    assert "CANCELLED" in papers(server.machine)[1]


def test_without_its_journal_nothing_is_printed(server: EscPosServer, tmp_path: Path) -> None:
    (tmp_path / ".tillbridge-printer").write_text("in the way")
    pos = opened(tmp_path, place(server))
    with pytest.raises(PosOffline, match="journal"):
        pos.write_ticket(order_of(), "ord_1")
    assert papers(server.machine) == []


def test_tickets_go_to_a_file_too(tmp_path: Path) -> None:
    pos = opened(tmp_path, "file:spool/out.prn")
    assert "not there" in pos.health().detail
    with pytest.raises(PosOffline):
        pos.write_ticket(order_of(), "ord_1")
    (tmp_path / "spool").mkdir()
    pos.write_ticket(order_of("ord_1"), "ord_1")
    pos.write_ticket(order_of("ord_2"), "ord_2")
    machine = Machine()
    machine.feed((tmp_path / "spool/out.prn").read_bytes())
    assert len(papers(machine)) == 2
    assert machine.strange == []


def test_a_pipe_that_nobody_reads_is_offline(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pos = opened(tmp_path, "file:pipe")
    with pytest.raises(PosOffline, match="cannot be opened"):
        pos.write_ticket(order_of(), "ord_1")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        pos.write_ticket(order_of(), "ord_1")
        assert b"Soup" in os.read(reader, 65_536)
    finally:
        os.close(reader)


def test_tickets_go_through_a_device_file(tmp_path: Path) -> None:
    """A pseudo terminal stands for /dev/usb/lp0: bytes go both ways, and reads may find nothing."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    machine = Machine()

    def work() -> None:
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:
                return
            os.write(ours, machine.feed(data))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    pos = opened(tmp_path, f"usb:{os.ttyname(theirs)}")
    assert pos.health().online
    pos.write_ticket(order_of(special_instructions="寿司 " * 60), "ord_1")
    assert len(papers(machine)) == 1
    assert machine.strange == []
    machine.cover_open = True
    assert "cover" in pos.health().detail
    os.close(theirs)
    thread.join(5)
    os.close(ours)


def test_a_device_that_is_not_there_is_offline(tmp_path: Path) -> None:
    health = opened(tmp_path, f"usb:{tmp_path}/lp0").health()
    assert not health.online
    assert "cannot be opened" in health.detail
