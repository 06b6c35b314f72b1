"""The transport against servers that misbehave in ways the sandbox does not."""

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.service_link import HandClock
from tillbridge import __version__
from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceError, Unreachable
from tillbridge.service.answers import Kind
from tillbridge.service.transport import Request, Transport

TOKEN = "planted-t0ken-value"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[Transport]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2"
    transport = Transport(url, timeout_s=5, clock=HandClock())
    try:
        yield transport
    finally:
        await transport.close()
        await runner.cleanup()


@asynccontextmanager
async def served_raw(
    handler: Raw, certificate: ssl.SSLContext | None = None
) -> AsyncIterator[Transport]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=certificate)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/v2"
    url = f"https://{address}" if certificate else f"http://{address}"
    transport = Transport(url, timeout_s=5, clock=HandClock())
    try:
        yield transport
    finally:
        await transport.close()
        server.close()
        await server.wait_closed()


def homemade(folder: Path) -> ssl.SSLContext:
    """A certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "homemade.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def call(transport: Transport, method: str = "GET", body: bytes | None = None) -> Request:
    kind = Kind.READ if method == "GET" else Kind.WRITE
    return Request("a.test", method, transport.origin.url("pos/x"), kind, body)


async def failure_of(transport: Transport, request: Request) -> ServiceError:
    with pytest.raises(ServiceError) as failed:
        await transport.exchange(request, authorization=f"Bearer {TOKEN}")
    told = "".join(traceback.format_exception(failed.value))
    assert TOKEN not in told
    return failed.value


async def test_a_call_says_who_calls_and_what_it_carries() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.Response:
        assert await request.read() == b'{"a":1}'
        seen.append(request)
        return web.json_response({"ok": True})

    async with served(handler) as transport:
        answer = await transport.exchange(
            call(transport, "POST", b'{"a":1}'), authorization=f"Bearer {TOKEN}"
        )
    assert answer.body == {"ok": True}
    headers = seen[0].headers
    assert headers["User-Agent"] == f"tillbridge/{__version__}"
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Content-Type"] == "application/json"
    assert headers["Content-Length"] == "7"
    assert seen[0].path == "/v2/pos/x"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/v2/pos/x", "https://evil.example/", "http://127.0.0.1/", "https://x["],
)
async def test_no_token_is_sent_to_another_origin(url: str) -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response()

    async with served(handler) as transport:
        elsewhere = Request("a.test", "GET", url, Kind.READ)
        failure = await failure_of(transport, elsewhere)
    assert isinstance(failure, Refused)
    assert failure.code == "answer.foreign_url"


async def test_a_gateways_page_leaves_the_status_to_decide() -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(status=404, text="<html>nothing here</html>")

    async with served(handler) as transport:
        failure = await failure_of(transport, call(transport))
    assert isinstance(failure, Refused)
    assert (failure.status, failure.code) == (404, "")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int) -> None:
    calls: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        calls.append(request.path)
        return web.Response(status=status, headers={"Location": "/v2/pos/stolen"})

    async with served(handler) as transport:
        failure = await failure_of(transport, call(transport, "POST", b"{}"))
    assert isinstance(failure, Refused)
    assert calls == ["/v2/pos/x"]


async def test_an_endless_answer_is_cut_off() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 1_000_000)
        except (OSError, asyncio.CancelledError):
            return response

    async with served(handler) as transport:
        failure = await failure_of(transport, call(transport))
    assert failure.code == "answer.unreadable"


async def test_an_error_without_its_body_still_has_its_status() -> None:
    async def raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n{")
        await writer.drain()

    async with served_raw(raw) as transport:
        failure = await failure_of(transport, call(transport))
    assert isinstance(failure, Refused)
    assert failure.status == 404


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"\0" * 99]
)
@pytest.mark.parametrize(("method", "kind"), [("GET", Unreachable), ("PUT", OutcomeUnknown)])
async def test_a_line_that_breaks_after_the_request_is_unknown_for_a_write(
    answer: bytes, method: str, kind: type[ServiceError]
) -> None:
    async def raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with served_raw(raw) as transport:
        failure = await failure_of(transport, call(transport, method))
    assert type(failure) is kind


async def test_a_put_on_a_kept_connection_is_never_sent_twice_behind_our_back() -> None:
    requests: list[bytes] = []

    async def raw(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            requests.append(head.split(b" ")[0])
            if head.startswith(b"PUT"):
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async with served_raw(raw) as transport:
        await transport.exchange(call(transport), authorization="")
        failure = await failure_of(transport, call(transport, "PUT"))
    assert isinstance(failure, OutcomeUnknown)
    assert requests == [b"GET", b"PUT"]


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def raw(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served_raw(raw) as transport:
        quick = Transport(transport.origin.url("x")[: -len("/x")], timeout_s=0.1, clock=HandClock())
        try:
            assert isinstance(await failure_of(quick, call(quick)), Unreachable)
            assert isinstance(await failure_of(quick, call(quick, "POST")), OutcomeUnknown)
        finally:
            await quick.close()


async def test_a_certificate_nobody_vouches_for_is_said_so(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def raw(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read())

    async with served_raw(raw, homemade(tmp_path)) as transport:
        failure = await failure_of(transport, call(transport, "POST"))
    assert isinstance(failure, Unreachable)
    assert failure.code == "line.certificate"
    assert seen == []
