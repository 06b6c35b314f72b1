"""A nonce through the receiver: only this bridge can answer it, and nothing else is exposed."""

from pathlib import Path

import pytest

from tests.support.receiver_harness import receiving
from tillbridge.receiver import Echo


@pytest.mark.parametrize("at", ["/healthz", "/webhooks/healthz"])
async def test_a_nonce_comes_back_proven(tmp_path: Path, at: str) -> None:
    async with receiving(tmp_path) as harness:
        echo = harness.receiver.echo
        nonce = echo.new_nonce()
        given = await harness.send(b"", method="GET", path=f"{at}?nonce={nonce}")
        text = given.body.decode()
        assert given.status == 200
        assert text.startswith("ok\n")
        assert echo.proves(nonce, text)
        assert not echo.proves(echo.new_nonce(), text)
        assert not Echo(b"another").proves(nonce, text)


@pytest.mark.parametrize("nonce", ["", "short", "x" * 65, "a" * 20 + "%0d%0a", "a" * 20 + "<b>"])
async def test_what_is_no_nonce_gets_no_proof(tmp_path: Path, nonce: str) -> None:
    async with receiving(tmp_path) as harness:
        given = await harness.send(b"", method="GET", path=f"/healthz?nonce={nonce}")
        assert (given.status, given.body) == (200, b"ok\n")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/control/status",
        "/api/status",
        "/metrics",
        "/static/style.css",
        "/webhooks",
        "/healthz/x",
    ],
)
async def test_the_internet_sees_nothing_but_webhooks_and_health(tmp_path: Path, path: str) -> None:
    async with receiving(tmp_path) as harness:
        for method in ("GET", "POST"):
            assert (await harness.send(b"", method=method, path=path)).status == 404
