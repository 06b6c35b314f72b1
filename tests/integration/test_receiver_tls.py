"""The receiver with a certificate of its own: renewed live, and never lost to a broken pair."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.certificates import make_pair
from tests.support.receiver_harness import ReceiverHarness, answer, event, head, receiving
from tillbridge.core.errors import ConfigError

DAY_MS = 86_400_000


@contextlib.asynccontextmanager
async def serving(
    folder: Path, *, max_connections: int = 256, **pair: object
) -> AsyncIterator[ReceiverHarness]:
    certificate, key = make_pair(folder, **pair)  # type: ignore[arg-type]  # options by name
    async with receiving(
        folder / "data",
        tls_cert=str(certificate),  # type: ignore[arg-type]  # settings are mostly numbers
        tls_key=str(key),  # type: ignore[arg-type]  # (as above)
        max_connections=max_connections,
    ) as harness:
        yield harness


@contextlib.asynccontextmanager
async def connected(
    harness: ReceiverHarness,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]]:
    """A TLS connection, and the certificate that it was shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", harness.receiver.port, ssl=context)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        yield reader, writer, shown
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def look(harness: ReceiverHarness) -> None:
    certificate = harness.receiver._certificate
    assert certificate is not None
    await certificate.look()


async def deliver(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    body = event()
    writer.write(head(body) + body)
    return (await answer(reader)).status


async def test_a_renewed_certificate_is_served_and_open_connections_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness, connected(harness) as (reader, writer, before):
        body = event()
        writer.write(head(body) + body[:10])  # a delivery that is under way
        make_pair(tmp_path)
        await look(harness)
        async with connected(harness) as (other_reader, other_writer, after):
            assert after != before
            assert await deliver(other_reader, other_writer) == 200
        writer.write(body[10:])
        assert (await answer(reader)).status == 200
        assert await deliver(reader, writer) == 200
        assert len(await harness.kept()) == 3


@pytest.mark.parametrize("broken", ["half", "foreign key", "gone"])
async def test_a_broken_pair_keeps_the_old_one_and_is_told(tmp_path: Path, broken: str) -> None:
    async with serving(tmp_path) as harness:
        async with connected(harness) as (_reader, _writer, before):
            pass
        path = tmp_path / "server.pem"
        if broken == "half":
            path.write_bytes(path.read_bytes()[:200])
        elif broken == "gone":
            path.unlink()
        else:
            other, _key = make_pair(tmp_path, name="other")
            path.write_bytes(other.read_bytes())
        await look(harness)
        assert harness.tracker.is_open("receiver.certificate_broken")
        async with connected(harness) as (reader, writer, after):
            assert after == before
            assert await deliver(reader, writer) == 200

        make_pair(tmp_path)
        await look(harness)
        assert not harness.tracker.is_open("receiver.certificate_broken")
        async with connected(harness) as (_reader, _writer, renewed):
            assert renewed != before


async def test_the_end_of_the_certificate_is_told_two_weeks_before(tmp_path: Path) -> None:
    async with serving(tmp_path, days=20_000) as harness:
        certificate = harness.receiver._certificate
        assert certificate is not None
        for left, ending, expired in ((20, False, False), (13, True, False), (-1, False, True)):
            harness.clock.at_ms = certificate._ends_ms - left * DAY_MS
            await look(harness)
            assert harness.tracker.is_open("receiver.certificate_ending") is ending
            assert harness.tracker.is_open("receiver.certificate_expired") is expired


async def test_a_receiver_does_not_start_with_a_broken_pair(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(ConfigError, match=r"tls_cert.*PEM"):
        async with receiving(
            tmp_path / "data",
            tls_cert=str(tmp_path / "no.pem"),  # type: ignore[arg-type]  # settings are mostly numbers
            tls_key=str(tmp_path / "no.pem"),  # type: ignore[arg-type]  # (as above)
        ):
            pass


async def test_somebody_who_speaks_plain_http_is_dropped(tmp_path: Path) -> None:
    async with serving(tmp_path) as harness, harness.connection() as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" not in await asyncio.wait_for(reader.read(), 10)
