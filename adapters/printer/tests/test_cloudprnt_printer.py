"""A Star printer that polls: it is handed each job once, and its word counts, late or not."""

import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tillbridge.adapter import PosOffline, Ticket, TicketOutcomeUnknown
from tillbridge_printer.adapter import PrinterAdapter
from tillbridge_printer.cloud_listener import listen, release
from tillbridge_printer.cloud_queue import state_of_code
from tillbridge_printer.emulated.cloud_client import CloudClient
from tillbridge_printer.emulated.trying import opened, order_of, until
from tillbridge_printer.places import CloudPlace

TOKEN = "sixteen-letters-or-more"  # noqa: S105 -- of an emulated printer
BAR_TOKEN = "the-token-of-the-bar"  # noqa: S105 -- of an emulated printer


@pytest.fixture
def client() -> Iterator[CloudClient]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        printer = CloudClient(free.getsockname()[1], TOKEN)
    yield printer
    printer.stop()


@pytest.fixture
def pos(client: CloudClient, tmp_path: Path) -> Iterator[PrinterAdapter]:
    adapter = opened(tmp_path, f"cloudprnt://127.0.0.1:{client.port}", token=TOKEN, timeout_s=2)
    yield adapter
    adapter.close()


def test_a_printer_that_polls_gets_each_ticket_once(
    client: CloudClient, pos: PrinterAdapter
) -> None:
    client.start()
    assert pos.health().online
    for _time in range(2):
        pos.write_ticket(order_of(), "ord_1")
    pos.write_ticket(order_of("ord_2"), "ord_2")
    assert len(client.tickets) == 2
    assert client.cuts == ["partial; feed=true"] * 2
    polls = client.polls
    until(lambda: client.polls > polls + 3)
    assert len(client.tickets) == 2


def test_two_tickets_are_two_jobs_so_that_each_is_cut(client: CloudClient, tmp_path: Path) -> None:
    client.start()
    place = f"cloudprnt://127.0.0.1:{client.port}"
    pos = opened(tmp_path, place, token=TOKEN, tickets=["kitchen", "customer"])
    pos.write_ticket(order_of(), "ord_1")
    assert len(client.tickets) == 2
    assert pos.find_ticket("ord_1") == Ticket("paper")
    pos.close()


def test_a_ticket_that_is_not_fetched_in_time_is_taken_back(
    client: CloudClient, pos: PrinterAdapter
) -> None:
    client.start()
    assert pos.health().online
    client.silent = True
    with pytest.raises(PosOffline, match="not fetched"):
        pos.write_ticket(order_of(), "ord_1")
    assert pos.find_ticket("ord_1") is None
    client.silent = False
    polls = client.polls
    until(lambda: client.polls > polls + 3)
    assert client.tickets == []


def test_a_ticket_that_is_fetched_and_not_confirmed_is_never_handed_out_again(
    client: CloudClient, pos: PrinterAdapter
) -> None:
    client.confirms_with, client.confirms_again = "", False
    client.start()
    with pytest.raises(TicketOutcomeUnknown, match="fetched the ticket"):
        pos.write_ticket(order_of(), "ord_1")
    with pytest.raises(TicketOutcomeUnknown):
        pos.find_ticket("ord_1")
    polls = client.polls
    until(lambda: client.polls > polls + 3)
    assert len(client.tickets) == 1
    job = f"{b'ord_1'.hex()}-1-1"
    assert client.ask("GET", f"?type=image/png&token={job}")[0] == 404


def test_a_confirmation_that_comes_late_is_heard(client: CloudClient, pos: PrinterAdapter) -> None:
    client.confirms_with, client.confirms_again = "", False
    client.start()
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(order_of(), "ord_1")
    status, _body = client.ask("DELETE", f"?code=200%20OK&token={b'ord_1'.hex()}-1-1")
    assert status == 200
    assert pos.find_ticket("ord_1") == Ticket("paper")


def test_the_word_of_a_printer_outlives_the_bridge(client: CloudClient, tmp_path: Path) -> None:
    """The bridge dies between the fetch and the word; the next life hears it all the same."""
    place = f"cloudprnt://127.0.0.1:{client.port}"
    first = opened(tmp_path, place, token=TOKEN, timeout_s=1)
    client.confirms_with, client.confirms_again = "", False
    client.start()
    with pytest.raises(TicketOutcomeUnknown):
        first.write_ticket(order_of(), "ord_1")
    first.close()
    second = opened(tmp_path, place, token=TOKEN)
    second.health()
    client.ask("DELETE", f"?code=OK&token={b'ord_1'.hex()}-1-1")
    assert second.find_ticket("ord_1") == Ticket("paper")
    second.close()


@pytest.mark.parametrize(("code", "kind"), [("410", TicketOutcomeUnknown), ("511", PosOffline)])
def test_what_a_printer_says_of_a_ticket_counts(
    client: CloudClient, pos: PrinterAdapter, code: str, kind: type[Exception]
) -> None:
    client.confirms_with, client.confirms_again = code, False
    client.start()
    with pytest.raises(kind):
        pos.write_ticket(order_of(), "ord_1")


@pytest.mark.parametrize(
    ("code", "text"), [("410 Out of paper", "out of paper"), ("420%20Cover%20open", "cover")]
)
def test_a_printer_in_trouble_gets_nothing(
    client: CloudClient, pos: PrinterAdapter, code: str, text: str
) -> None:
    client.code = code
    client.start()
    assert text in pos.health().detail
    with pytest.raises(PosOffline, match=text):
        pos.write_ticket(order_of(), "ord_1")
    assert client.tickets == []


def test_codes_are_read_by_their_first_digits() -> None:
    assert state_of_code("200 OK").prints
    assert state_of_code("211 Paper low").prints
    assert "nearly" in state_of_code("211 Paper low").text
    assert "paper jam" in state_of_code("411 Paper jam").text
    assert not state_of_code("499").prints
    assert not state_of_code("").prints


def test_whoever_does_not_know_the_token_learns_nothing(
    client: CloudClient, pos: PrinterAdapter
) -> None:
    client.start()
    assert pos.health().online
    stranger = CloudClient(client.port, "another-token-entirely")
    assert stranger.ask("POST", body=b'{"statusCode": "200"}')[0] == 404
    assert stranger.ask("GET")[0] == 404
    assert stranger.ask("DELETE", "?code=200")[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"{}", 400), (b'{"statusCode": 7}', 400), (b"x" * 70_000, 413)],
)
def test_polls_that_are_none_are_refused(
    client: CloudClient, pos: PrinterAdapter, body: bytes, status: int
) -> None:
    thread = threading.Thread(target=pos.health)
    thread.start()  # opens the port, and waits for a first poll

    def answers() -> bool:
        try:
            return client.ask("GET")[0] == 404
        except OSError:
            return False

    until(answers)
    assert client.ask("POST", body=body)[0] == status
    client.poll()
    thread.join(10)
    assert client.ask("GET", f"?type={quote('application/pdf')}")[0] == 415


def test_slow_callers_keep_no_printer_out(client: CloudClient, pos: PrinterAdapter) -> None:
    client.start()
    assert pos.health().online
    callers = []
    try:
        for number in range(100):
            caller = socket.create_connection(("127.0.0.1", client.port), 5)
            callers.append(caller)
            if number % 2:
                caller.sendall(b"POST /guess HTTP/1.1\r\nHost: x\r\n")
            else:
                caller.sendall(f"POST /{TOKEN} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{{".encode())
        for _ in range(5):
            assert client.ask("POST", body=b'{"statusCode": "200 OK"}')[0] == 200
    finally:
        for caller in callers:
            caller.close()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"cloudprnt://127.0.0.1:{taken.getsockname()[1]}"
        health = opened(tmp_path, place, token=TOKEN).health()
    assert not health.online
    assert "cannot be opened" in health.detail


def test_two_printers_share_a_port(client: CloudClient, tmp_path: Path) -> None:
    place = f"cloudprnt://127.0.0.1:{client.port}"
    bar = CloudClient(client.port, BAR_TOKEN)
    kitchen_side = opened(tmp_path / "a", place, token=TOKEN)
    bar_side = opened(tmp_path / "b", place, token=BAR_TOKEN)
    client.start()
    bar.start()
    try:
        kitchen_side.write_ticket(order_of(), "ord_1")
        bar_side.write_ticket(order_of("ord_2"), "ord_2")
        assert (len(client.tickets), len(bar.tickets)) == (1, 1)
    finally:
        bar.stop()
        kitchen_side.close()
        bar_side.close()


def test_a_port_that_closes_lets_go_of_callers_who_came_that_moment() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = CloudPlace(*free.getsockname())
    over = threading.Event()

    def call() -> None:
        while not over.is_set():
            with suppress(OSError), socket.create_connection((place.host, place.port), 1):
                pass

    callers = [threading.Thread(target=call) for _caller in range(4)]
    for caller in callers:
        caller.start()
    for _time in range(20):
        listen(place, TOKEN)
        for _visit in range(20):
            socket.create_connection((place.host, place.port)).close()
        release(place, TOKEN)
    over.set()
    for caller in callers:
        caller.join()
    gc.collect()  # what was not closed says so
