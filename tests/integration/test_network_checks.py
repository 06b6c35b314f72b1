"""The checks over real sockets: a firewall, a wrong target, a slow DNS, a clock that is off."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import free_port
from tests.support.certificates import authority, make_pair
from tests.support.receiver_harness import receiving
from tillbridge.config.bridge import Settings
from tillbridge.config.loading import LoadedSettings
from tillbridge.core.clock import Clock
from tillbridge.diagnostics.check import Check, Finding, Level, Subject
from tillbridge.diagnostics.checks import Checkup
from tillbridge.diagnostics.checks.public import check_names, check_public
from tillbridge.diagnostics.checks.service import check_clock, check_service
from tillbridge.diagnostics.checks.tls import check_tls
from tillbridge.diagnostics.network import resolve
from tillbridge.ledger.snapshot import Snapshot

NAME = "ordering.example.com"
ENVELOPE = b'{"error": {"code": "auth.invalid_token", "message": "no"}}'


def subject(
    folder: Path,
    *,
    base_url: str = "https://ordering.example.com/v2",
    public: str = "",
    **more: Any,  # noqa: ANN401 -- fields of the subject, by name
) -> Subject:
    settings = Settings.model_validate(
        {
            "service": {"base_url": base_url, "client_id": "a", "client_secret": "not-so-secret"},
            "receiver": {"public_url": public or "https://store.example.com"},
            "stores": {
                "main": {"location_id": "l", "currency": "USD", "pos": {"adapter": "folder"}}
            },
        }
    )

    async def snapshot() -> Snapshot:
        return Snapshot({}, (), {})

    return Subject(
        loaded=LoadedSettings(settings, folder / "bridge.toml", folder, folder),
        clock=Clock(),
        snapshot=snapshot,
        **more,
    )


@contextlib.asynccontextmanager
async def http_server(
    answer: Callable[[str], bytes], certificate: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Answers each request with what `answer` makes of its target; yields the port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, IndexError):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer(head.split()[1].decode()))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=certificate)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def response(status: int, body: bytes, *, off_s: float = 0, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Date: {formatdate(time.time() + off_s, usegmt=True)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def here(_host: str) -> list[str]:
    return ["127.0.0.1"]


def served(pair: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return context


# -- DNS


async def test_a_dns_that_does_not_answer_ends_with_the_time_limit(tmp_path: Path) -> None:
    let_go = threading.Event()

    def slow(_host: str) -> list[str]:
        let_go.wait(30)
        return []

    examined = subject(tmp_path, names=slow)
    checkup = Checkup(
        [Check("dns", "the service's name", lambda: check_names(examined, "service"), limit_s=0.2)],
        Clock(),
    )
    report = await asyncio.wait_for(checkup.run(), 5)
    let_go.set()
    assert report["results"][0]["level"] == "failed"
    assert "no answer within" in report["results"][0]["text"]


@pytest.mark.parametrize(
    ("number", "words"), [(socket.EAI_NONAME, "not known"), (socket.EAI_AGAIN, "no DNS server")]
)
async def test_no_name_and_no_dns_are_told_apart(tmp_path: Path, number: int, words: str) -> None:
    def fails(_host: str) -> list[str]:
        raise socket.gaierror(number, "the system's words")

    finding = await check_names(subject(tmp_path, names=fails), "public")
    assert finding.level is Level.FAILED
    assert words in finding.text


def test_a_name_is_really_looked_up() -> None:
    assert set(resolve("localhost")) & {"127.0.0.1", "::1"}


# -- TLS


async def tls_of(tmp_path: Path, issuer: str, *, known: bool, days: float = 90) -> Finding:
    """The finding for a server whose certificate is of `issuer`, known to this machine or not."""
    root = authority(issuer, issuer)
    trusted = ssl.create_default_context(cadata=root.pem.decode())
    other = ssl.create_default_context()
    made = make_pair(tmp_path, by=root, host=NAME, days=days)
    async with http_server(lambda _path: response(401, ENVELOPE), served(made)) as port:
        examined = subject(
            tmp_path,
            base_url=f"https://{NAME}:{port}/v2",
            names=here,
            trust=lambda: trusted if known else other,
        )
        return await check_tls(examined, "service")


async def test_a_public_certificate_is_well(tmp_path: Path) -> None:
    finding = await tls_of(tmp_path, "Let's Encrypt", known=True)
    assert finding.level is Level.OK
    assert finding.details["trusted"] is True
    assert finding.details["version"].startswith("TLSv1")


async def test_a_firewall_that_opens_the_encryption_is_named_trusted_or_not(
    tmp_path: Path,
) -> None:
    for known, level in ((True, Level.WARNING), (False, Level.FAILED)):
        finding = await tls_of(tmp_path, "Fortinet FortiGate CA", known=known)
        assert finding.level is level
        assert "Fortinet FortiGate CA" in finding.text
        assert f"Add an exception for {NAME}" in finding.fix
        assert finding.details["opened_by"] == "Forti" + "net"


async def test_an_authority_that_nobody_knows_is_probably_a_firewall(tmp_path: Path) -> None:
    finding = await tls_of(tmp_path, "Some Antivirus Ltd", known=False)
    assert finding.level is Level.FAILED
    assert f"Add an exception for {NAME}" in finding.fix


async def test_a_certificate_that_has_ended_is_told(tmp_path: Path) -> None:
    finding = await tls_of(tmp_path, "Let's Encrypt", known=True, days=-1)
    assert finding.level is Level.FAILED
    assert "not valid today" in finding.text


async def test_a_port_without_tls_is_told(tmp_path: Path) -> None:
    async with http_server(lambda _path: response(200, b"")) as port:
        examined = subject(tmp_path, base_url=f"https://{NAME}:{port}/v2", names=here)
        finding = await check_tls(examined, "service")
    assert finding.level is Level.FAILED
    assert finding.fix


# -- the service


@pytest.mark.parametrize(
    ("off_s", "level"), [(0, "ok"), (100, "warning"), (-100, "warning"), (4000, "warning")]
)
async def test_the_clock_is_compared_with_the_services(
    tmp_path: Path, off_s: float, level: str
) -> None:
    async with http_server(lambda _path: response(401, ENVELOPE, off_s=off_s)) as port:
        examined = subject(tmp_path, base_url=f"http://127.0.0.1:{port}/v2")
        finding = await check_clock(examined)
        assert finding.level == level
        assert (await check_service(examined)).level is Level.OK


async def test_a_wrong_clock_is_found_though_it_spoils_the_certificate(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, host=NAME)
    answer = response(401, ENVELOPE, off_s=90_000)
    async with http_server(lambda _path: answer, served(pair)) as port:
        examined = subject(tmp_path, base_url=f"https://{NAME}:{port}/v2", names=here)
        finding = await check_clock(examined)
        assert (await check_service(examined)).level is Level.FAILED
    assert finding.code == "clock.wrong"
    assert "25 hours behind" in finding.text


async def test_a_captive_portal_is_no_service(tmp_path: Path) -> None:
    page = response(200, b"<html>Welcome to our guest network")
    async with http_server(lambda _path: page) as port:
        finding = await check_service(subject(tmp_path, base_url=f"http://127.0.0.1:{port}/v2"))
    assert finding.level is Level.FAILED
    assert "captive portal" in finding.fix


# -- the public address


async def public_of(examined: Subject, port: int, **diagnostics: object) -> Finding:
    """The finding for a public name that leads to a port of this machine."""
    receiver = examined.loaded.settings.receiver.model_copy(
        update={"public_url": f"http://store.example.com:{port}"}
    )
    told = examined.loaded.settings.diagnostics.model_copy(update=diagnostics)
    settings = examined.loaded.settings.model_copy(
        update={"receiver": receiver, "diagnostics": told}
    )
    loaded = replace(examined.loaded, settings=settings)
    return await check_public(replace(examined, loaded=loaded, names=here))


async def test_the_nonce_comes_back_through_the_real_receiver(tmp_path: Path) -> None:
    async with receiving(tmp_path / "data") as harness:
        examined = subject(tmp_path, echo=harness.receiver.echo)
        finding = await public_of(examined, harness.receiver.port)
    assert (finding.level, finding.details["cause"]) == (Level.OK, "reached")


async def test_another_bridge_is_told_from_this_one(tmp_path: Path) -> None:
    async with receiving(tmp_path / "a") as ours, receiving(tmp_path / "b") as theirs:
        examined = subject(tmp_path, echo=ours.receiver.echo)
        finding = await public_of(examined, theirs.receiver.port)
    assert (finding.level, finding.details["cause"]) == (Level.FAILED, "other_bridge")


async def test_somebody_elses_server_is_told(tmp_path: Path) -> None:
    async with receiving(tmp_path / "a") as ours:
        page = response(200, b"Welcome to nginx!", Server="nginx")
        async with http_server(lambda _path: page) as port:
            finding = await public_of(subject(tmp_path, echo=ours.receiver.echo), port)
    assert (finding.level, finding.details["cause"]) == (Level.FAILED, "wrong_target")
    assert "nginx" in finding.text


async def test_a_dead_tunnel_is_told_by_its_providers_page(tmp_path: Path) -> None:
    async with receiving(tmp_path / "a") as ours:
        page = response(530, b"error code: 1033", Server="cloudflare", CF_RAY="8a1b")
        async with http_server(lambda _path: page) as port:
            finding = await public_of(subject(tmp_path, echo=ours.receiver.echo), port)
    assert (finding.level, finding.details["cause"]) == (Level.FAILED, "tunnel_down")
    assert "tillbridge reach" in finding.fix


async def test_a_prober_outside_decides_what_cannot_be_seen_from_inside(tmp_path: Path) -> None:
    """It fetches the address from a place where it works; here nobody listens at it."""
    async with receiving(tmp_path / "a") as ours:
        echo = ours.receiver.echo

        def prober(path: str) -> bytes:
            nonce = path.rpartition("nonce%3D")[2]
            return response(
                200, f'{{"status": 200, "body": "ok\\n{echo.answer(nonce)[:-1]}"}}'.encode()
            )

        async with http_server(prober) as port:
            examined = subject(tmp_path, echo=echo)
            url = f"http://127.0.0.1:{port}/fetch"
            finding = await public_of(examined, free_port(), outside_probe_url=url)
    assert (finding.level, finding.details["cause"]) == (Level.OK, "reached_outside")


async def test_a_prober_that_does_not_get_through_either_confirms_it(tmp_path: Path) -> None:
    async with receiving(tmp_path / "a") as ours:
        report = response(200, b'{"status": 0, "error": "connection refused"}')
        async with http_server(lambda _path: report) as port:
            url = f"http://127.0.0.1:{port}/fetch"
            examined = subject(tmp_path, echo=ours.receiver.echo)
            finding = await public_of(examined, free_port(), outside_probe_url=url)
    assert (finding.level, finding.details["outside"]) == (Level.FAILED, False)
