"""HttpClient against real servers on this machine that cut, hang, drip, lie and refuse."""

import gc
import json
import re
import socket
import ssl
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import authority, make_pair
from tillbridge.adapter import PosFailure, PosOffline, StoreClosed, TicketOutcomeUnknown
from tillbridge.adapter import http_client as module
from tillbridge.adapter.http_client import HttpClient, HttpRefused
from tillbridge.core.redaction import learn_secret

KEY = "sk-verySecretKey-4711"
Answer = bytes | Callable[[bytes, socket.socket], bytes]


class Till:
    """Answers each request with raw bytes, and hangs up (unless `stays`)."""

    def __init__(self, answer: Answer, *, stays: bool, tls: ssl.SSLContext | None) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self.connections = 0
        self._stays = stays
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                taken, _address = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(taken,), daemon=True).start()

    def _serve(self, taken: socket.socket) -> None:
        try:
            if self._tls is not None:
                taken = self._tls.wrap_socket(taken, server_side=True)
            with taken:
                while request := self._request(taken):
                    self.asked.append(request)
                    answer = self.answer
                    taken.sendall(answer(request, taken) if callable(answer) else answer)
                    if not self._stays:
                        return
        except OSError:
            pass  # the client has hung up, as it should

    def _request(self, taken: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (more := taken.recv(65536)):
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        sizes = [line[15:] for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
        while sizes and len(body) < int(sizes[0]):
            body += taken.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self._listening.close()


@contextmanager
def till(
    answer: Answer,
    *,
    path: str = "",
    stays: bool = False,
    tls: ssl.SSLContext | None = None,
    **options: Any,  # noqa: ANN401 -- HttpClient's own
) -> Iterator[tuple[HttpClient, Till]]:
    server = Till(answer, stays=stays, tls=tls)
    address = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}{path}"
    usual: dict[str, Any] = {"headers": {"X-Api-Key": KEY}, "connect_s": 1.0, "answer_s": 5.0}
    client = HttpClient(address, **(usual | options))
    try:
        yield client, server
    finally:
        client.close()
        server.close()


def reply(status: int = 200, body: object = None, *more: str, raw: bytes | None = None) -> bytes:
    content = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(content)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def failure_of(call: Callable[[], object]) -> PosFailure:
    with pytest.raises(PosFailure) as caught:
        call()
    whole = "".join(traceback.format_exception(caught.value))
    assert KEY not in whole, "the key is in the traceback"
    assert caught.value.message
    return caught.value


def both(client: HttpClient) -> tuple[type[PosFailure], ...]:
    """Return what a read and a write raise."""
    reading = failure_of(lambda: client.get("/menu", {"key": KEY}))
    writing = failure_of(lambda: client.post("/tickets", {"key": KEY}))
    return type(reading), type(writing)


NOT_WRITTEN = (PosOffline, PosOffline)
PERHAPS_WRITTEN = (PosOffline, TicketOutcomeUnknown)
REFUSED = (PosOffline, HttpRefused)


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        pytest.param(b"", PERHAPS_WRITTEN, id="hangs up"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", PERHAPS_WRITTEN, id="cut in the head"),
        pytest.param(b"HTTP/1.1 201 Created\r\n", PERHAPS_WRITTEN, id="cut after a line"),
        pytest.param(reply(200, {"a": 1})[:-3], PERHAPS_WRITTEN, id="cut in the body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", PERHAPS_WRITTEN, id="half a number"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12",
            PERHAPS_WRITTEN,
            id="half a chunk",
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", PERHAPS_WRITTEN, id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, PERHAPS_WRITTEN, id="200 headers"),
        pytest.param(reply(raw=b"<html>Hi</html>"), PERHAPS_WRITTEN, id="a page"),
        pytest.param(reply(raw=b'{"a": NaN}'), PERHAPS_WRITTEN, id="NaN"),
        pytest.param(reply(raw=b"[" * 100_000), PERHAPS_WRITTEN, id="nested without an end"),
        pytest.param(reply(raw=b'{"a": "\xff"}'), PERHAPS_WRITTEN, id="no UTF-8"),
        pytest.param(reply(500, {"message": f"oops {KEY}"}), PERHAPS_WRITTEN, id="500"),
        pytest.param(reply(503), PERHAPS_WRITTEN, id="503"),
        pytest.param(reply(408), PERHAPS_WRITTEN, id="408"),
        pytest.param(reply(401, {"message": f"{KEY} is wrong"}), NOT_WRITTEN, id="401"),
        pytest.param(reply(403), NOT_WRITTEN, id="403"),
        pytest.param(reply(429), NOT_WRITTEN, id="429"),
        pytest.param(reply(307, None, "Location: http://127.0.0.1:1/"), NOT_WRITTEN, id="307"),
        pytest.param(reply(404, {"message": "no"}), REFUSED, id="404"),
        pytest.param(reply(409), REFUSED, id="409"),
        pytest.param(reply(422, raw=b"<p>no</p>"), REFUSED, id="422"),
        pytest.param(reply(423, {"message": "Closed."}), (StoreClosed, StoreClosed), id="423"),
    ],
)
def test_what_is_no_answer_and_every_status_is_the_failure_that_fits(
    answer: bytes, kinds: tuple[type[PosFailure], ...]
) -> None:
    learn_secret(KEY)
    with till(answer) as (client, server):
        assert both(client) == kinds
        writes = [each for each in server.asked if each.startswith(b"POST")]
        assert len(writes) == 1, "a write is never repeated"


def test_who_cannot_be_reached_has_surely_written_nothing(tmp_path: Path) -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    bound.close()
    assert both(HttpClient(f"http://127.0.0.1:{port}")) == NOT_WRITTEN
    unknown = HttpClient("http://till.invalid")
    assert both(unknown) == NOT_WRITTEN
    assert "name in the address of the till" in failure_of(lambda: unknown.get("/")).message


def test_a_certificate_that_is_not_trusted_is_refused_and_one_that_is_is_taken(
    tmp_path: Path,
) -> None:
    by = authority()
    certificate, key = make_pair(tmp_path, by=by)
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(by.pem)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with till(reply(200, {"a": 1}), tls=tls) as (client, server):
        assert both(client) == NOT_WRITTEN
        message = failure_of(lambda: client.get("/")).message
        assert "certificate of the till is not trusted" in message
        assert not server.asked, "the key went to a stranger"
    with till(reply(200, {"a": 1}), tls=tls, ca_file=trusted) as (client, _server):
        assert client.get("/") == {"a": 1}
    with pytest.raises(ValueError, match="cannot be used"):
        HttpClient("https://till.example.net", ca_file=tmp_path / "gone.pem")


@pytest.mark.parametrize(
    "drip", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", reply(200, raw=b"1" * 99)[:-50]]
)
def test_a_till_that_hangs_or_drips_byte_by_byte_is_given_up_in_time(drip: bytes) -> None:
    ended = threading.Event()

    def slowly(_asked: bytes, taken: socket.socket) -> bytes:
        taken.sendall(drip)
        while not ended.wait(0.05):
            if drip:
                taken.sendall(b"1")
        return b""

    with till(slowly, answer_s=0.4) as (client, _server):
        began = time.monotonic()
        assert both(client) == PERHAPS_WRITTEN
        assert time.monotonic() - began < 3
        message = failure_of(lambda: client.get("/", answer_s=0.1)).message
        assert message == "The till has not answered for 0.1 seconds."
        ended.set()


def test_money_is_exact_both_ways_and_an_empty_answer_is_none() -> None:
    with till(reply(201, raw=b'{"price": 4.10, "total": 1e400, "n": 7}')) as (client, server):
        found = client.post("/tickets", {"price": Decimal("12.35"), "note": "Crème \udc80"})
        assert found == {"price": Decimal("4.10"), "total": "1e400", "n": 7}
        assert isinstance(found["price"], Decimal)
        assert b'"price": 12.35' in server.asked[0]
        with pytest.raises(TypeError):
            client.post("/tickets", {"price": Decimal("1234567890.12345678")})
    with till(reply(204)) as (client, _server):
        assert client.delete("/events/1") is None


def test_what_is_sent_is_what_was_asked_for() -> None:
    with till(reply(200, []), path="/api/v1/") as (client, server):
        client.get("/tickets", {"reference": "ord 1&x=ü"})
        client.put("/tickets/a b", [1])
        assert server.asked[0].startswith(
            b"GET /api/v1/tickets?reference=ord+1%26x%3D%C3%BC HTTP/1.1\r\n"
        )
        assert f"X-Api-Key: {KEY}\r\n".encode() in server.asked[0]
        assert server.asked[1].startswith(b"PUT /api/v1/tickets/a%20b HTTP/1.1\r\n")
        assert server.asked[1].endswith(b"\r\n\r\n[1]")


def test_a_refusal_has_the_tills_words_its_status_and_its_body() -> None:
    body = {"errors": [{"detail": "Sold out:\n17"}], "products": ["17"]}
    with till(reply(422, body)) as (client, _server):
        refused = failure_of(lambda: client.post("/tickets", {}))
        assert isinstance(refused, HttpRefused)
        assert (refused.status, refused.body, refused.message) == (422, body, "Sold out: 17")
    with till(reply(404)) as (client, _server):
        assert client.get("/tickets/1", missing=None) is None
        assert "address" in failure_of(lambda: client.get("/tickets/1")).fix


def test_health_is_one_question() -> None:
    with till(reply(200, {})) as (client, _server):
        assert client.health("/status").online
    with till(reply(423, {"message": "No session."})) as (client, _server):
        assert (client.health("/status").online, client.health("/").closed) == (True, "No session.")
    with till(reply(401)) as (client, _server):
        health = client.health("/status")
        assert (health.online, "login" in health.detail, "key" in health.fix) == (False, True, True)


def test_reads_use_a_connection_again_and_a_dead_one_is_replaced() -> None:
    with till(reply(200, 1), stays=True) as (client, server):
        assert [client.get("/"), client.get("/"), client.post("/", {}), client.get("/")] == [1] * 4
        assert server.connections == 2, "a write has a connection of its own"
    with till(reply(200, 1)) as (client, server):  # which hangs up after each answer
        assert [client.get("/"), client.get("/")] == [1, 1]
        assert server.connections == 2


def test_an_answer_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    with till(reply(200, raw=b"1" * 200)) as (client, _server):
        assert both(client) == PERHAPS_WRITTEN


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with till(reply(200, 1)) as (client, _server):
        assert client.get("/") == 1


@pytest.mark.parametrize(
    "address",
    ["till", "ftp://till", "http://", "http://till:port", "http://till/?a=1", "http://u:pw1@till"],
)
def test_an_address_that_cannot_work_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address") as refused:
        HttpClient(address)
    assert "pw1" not in str(refused.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}é"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ValueError, match="X-Api-Key") as refused:
        HttpClient("http://till", headers={"X-Api-Key": key})
    assert KEY not in "".join(traceback.format_exception(refused.value))


def test_the_page_tells_what_each_status_raises() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/adapters/writing.md").read_text("utf-8")
    table = page.split("<!-- http:", 1)[1].split("<!-- /http -->", 1)[0]
    rows = [row.split("|")[1:4] for row in table.splitlines() if row[2:5].isdigit()]
    for statuses, reading, writing in rows:
        for status in statuses.split(","):
            with till(reply(int(status))) as (client, _server):
                told = tuple(re.findall(r"`(\w+)`", cell)[0] for cell in (reading, writing))
                assert told == tuple(kind.__name__ for kind in both(client)), status
    assert len(rows) >= 6


def test_an_answer_that_breaks_off_leaves_no_connection_behind() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12"
    with till(cut) as (client, _server), warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        both(client)
        gc.collect()
    assert [each for each in left if each.category is ResourceWarning] == []
