"""The Caddyfile of `tillbridge reach`: Caddy takes it, and lets deliveries through."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from tests.support.bridge_process import free_port, until
from tests.support.receiver_harness import event, receiving, sign
from tests.unit.test_reach import PLACE
from tillbridge.diagnostics.reach import Place, caddy

CADDY = shutil.which("caddy") or ""
needs_caddy = pytest.mark.skipif(not CADDY, reason="the system has no Caddy")


def caddyfile(place: Place) -> str:
    return next(step.content for step in caddy(place).steps if step.file)


@needs_caddy
@pytest.mark.parametrize("port", [443, 8443])
@pytest.mark.parametrize("prefix", ["", "/bridge"])
@pytest.mark.parametrize("tls", [False, True])
def test_caddy_takes_the_file(tmp_path: Path, port: int, prefix: str, tls: bool) -> None:
    file = tmp_path / "Caddyfile"
    file.write_text(caddyfile(replace(PLACE, port=port, prefix=prefix, tls=tls)))
    asked = [CADDY, "validate", "--adapter", "caddyfile", "--config", str(file)]
    done = subprocess.run(
        asked, capture_output=True, text=True, timeout=60, env={"HOME": str(tmp_path)}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Valid configuration" in done.stdout + done.stderr


@asynccontextmanager
async def served(folder: Path, text: str) -> AsyncIterator[None]:
    file = folder / "Caddyfile"
    # Without its own control port, which all Caddys of a machine would share; and its authority of
    # its own, which signs for addresses of this machine, stays in this folder.
    file.write_text(
        "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n" + text
    )
    process = await asyncio.create_subprocess_exec(
        CADDY,
        *("run", "--adapter", "caddyfile", "--config", str(file)),
        env={"HOME": str(folder)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 20)


def session() -> aiohttp.ClientSession:
    """Return a session that trusts the authority which Caddy has made up."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False))


@needs_caddy
@pytest.mark.parametrize("prefix", ["", "/bridge"])
async def test_a_delivery_comes_through_and_nothing_else_is_open(
    tmp_path: Path, prefix: str
) -> None:
    async with receiving(tmp_path / "data") as harness, session() as http:
        place = replace(
            PLACE,
            host="127.0.0.1",
            port=free_port(),
            prefix=prefix,
            at_port=harness.receiver.port,
        )
        url = place.public

        async def status(path: str) -> int:
            try:
                async with http.get(url + path) as answer:
                    return answer.status
            except aiohttp.ClientError:
                return 0

        async with served(tmp_path, caddyfile(place)):

            async def up() -> bool:
                return await status(f"{prefix}/webhooks/healthz") == 200

            await until("Caddy leads to the receiver", up)
            body = event()
            headers = {"X-Service-Signature": sign(body), "Content-Type": "application/json"}
            async with http.post(
                f"{url}{prefix}/webhooks/main", data=body, headers=headers
            ) as answer:
                assert answer.status == 200
            assert len(await harness.kept()) == 1
            for path in ("/", "/healthz", f"{prefix}/healthz", "/webhooksx/main", "/api/status"):
                assert await status(path) == 404, path
