"""Accepting connections: a cap that counts handshakes, and a machine without file descriptors."""

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.test_receiver_tls import connected, serving
from tests.support.receiver_harness import answer, event, head
from tillbridge.core.network import Acceptor, listening_sockets


@contextlib.asynccontextmanager
async def strangers(port: int, count: int) -> AsyncIterator[None]:
    """Hold bare TCP connections open, and open each again whenever it is closed."""

    async def one() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await reader.read()
                finally:
                    writer.close()
            await asyncio.sleep(0.1)

    running = [asyncio.ensure_future(one()) for _ in range(count)]
    try:
        await asyncio.sleep(0.3)
        yield
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await asyncio.sleep(0)  # what was cancelled while it connected is closed in the next turn


async def test_handshakes_that_never_end_keep_no_delivery_out(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections=30) as harness:
        async with strangers(harness.receiver.port, 40):
            for _ in range(5):
                async with connected(harness) as (reader, writer, _shown):
                    body = event()
                    writer.write(head(body) + body)
                    assert (await answer(reader)).status == 200
        assert len(await harness.kept()) == 5


async def test_handshakes_count_as_connections() -> None:
    """Else whoever begins handshakes and never ends them takes every file descriptor there is."""
    surplus: list[str] = []
    sockets = await listening_sockets("127.0.0.1", 0)

    class Slow(asyncio.Protocol):
        """What a handshake under way is: a connection that nobody has been told of yet."""

    acceptor = Acceptor(
        sockets,
        Slow,
        max_connections=4,
        connections=lambda: 4,
        free_slot=lambda: False,
        on_surplus=surplus.append,
    )
    acceptor.start()
    try:
        reader, writer = await asyncio.open_connection(*sockets[0].getsockname()[:2])
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert surplus == ["refused"]
    finally:
        await acceptor.close()


async def test_an_accept_without_descriptors_is_logged_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sockets = await listening_sockets("127.0.0.1", 0)
    protocols: list[asyncio.Protocol] = []

    def made() -> asyncio.Protocol:
        protocols.append(asyncio.Protocol())
        return protocols[-1]

    monkeypatch.setattr("tillbridge.core.network._BREATHER_S", 0.01)
    acceptor = Acceptor(
        sockets, made, max_connections=4, connections=lambda: 0, free_slot=lambda: False
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    acceptor.start()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with socket.socket() as client:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                client.connect(sockets[0].getsockname())
                await asyncio.sleep(0.2)
                assert not protocols
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            async with asyncio.timeout(10):
                while not protocols:
                    await asyncio.sleep(0.01)
    finally:
        await acceptor.close()
    assert capsys.readouterr().out.count("listener.exhausted") == 1


def test_the_limit_of_open_files_is_raised_as_far_as_it_goes() -> None:
    program = (
        "import resource as r; from tillbridge.core.network import raise_file_limit;"
        "r.setrlimit(r.RLIMIT_NOFILE, (256, 4096)); raise_file_limit();"
        "print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(4096, 4096)"
