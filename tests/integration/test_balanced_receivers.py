"""Deliveries through deploy/haproxy.cfg: to any receiver that can store them."""

import asyncio
import contextlib
import hmac
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.support.bridge_process import free_port, until
from tests.support.receiver_harness import SECRET, ReceiverHarness, receiving
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.ledger.ledger import Storage

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")


@contextlib.asynccontextmanager
async def balanced(folder: Path, ports: list[int]) -> AsyncIterator[str]:
    """Run HAProxy in front of receivers on these ports; return its address for deliveries."""
    orders, pages = free_port(), free_port()
    places = dict(zip(("bridge-a:8088", "bridge-b:8088", "bridge-c:8088"), ports, strict=True))
    text = CONFIGURATION.read_text("utf-8")
    text = re.sub(r"bridge-[abc]:8088", lambda found: f"127.0.0.1:{places[found[0]]}", text)
    text = re.sub(r"bridge-[abc]:8089", "127.0.0.1:9", text)
    text = text.replace("bind :8080", f"bind 127.0.0.1:{orders}")
    text = text.replace("bind :8081", f"bind 127.0.0.1:{pages}").replace("inter 2s", "inter 100ms")
    (folder / "haproxy.cfg").write_text(text)
    assert HAPROXY is not None
    process = await asyncio.create_subprocess_exec(
        HAPROXY, "-db", "-f", folder / "haproxy.cfg", stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{orders}"
    finally:
        process.kill()
        await process.wait()


async def deliver(http: aiohttp.ClientSession, url: str, number: int) -> int:
    body = json.dumps({"event_type": "order.created", "event_id": f"evt_{number}", "data": {}})
    signature = hmac.digest(SECRET.encode(), body.encode(), "sha256").hex()
    headers = {"Content-Type": "application/json", "X-Service-Signature": signature}
    async with http.post(f"{url}/webhooks/main", data=body, headers=headers) as answer:
        return answer.status


def loses_its_database(each: ReceiverHarness) -> None:
    """Let the ledger fail as one whose server is gone."""

    def fail(*_work: object, **_more: object) -> asyncio.Future[bool]:
        failed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        failed.set_exception(LedgerUnwritable("gone"))
        return failed

    each.ledger.write = fail  # type: ignore[method-assign, assignment]  # for this test
    each.ledger.storage = Storage("gone")


async def test_deliveries_go_to_receivers_that_have_their_database(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        receivers = []
        for name in "abc":
            (tmp_path / name).mkdir()
            receivers.append(await stack.enter_async_context(receiving(tmp_path / name)))
        ports = [each.receiver.port for each in receivers]
        url = await stack.enter_async_context(balanced(tmp_path, ports))
        # HAProxy closes a connection after an answer of its own, perhaps while it is used again.
        connector = aiohttp.TCPConnector(force_close=True)
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

        async def is_up() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{url}/webhooks/healthz") as answer:
                    return answer.status == 200
            return False

        await until("HAProxy serves", is_up)
        assert {await deliver(http, url, number) for number in range(9)} == {200}

        loses_its_database(receivers[0])
        # Before its health was asked for again, too: what it refuses goes to another one.
        assert {await deliver(http, url, number) for number in range(9, 30)} == {200}
        await receivers[1].receiver.stop(0.1)
        assert {await deliver(http, url, number) for number in range(30, 50)} == {200}
        loses_its_database(receivers[2])
        assert {await deliver(http, url, number) for number in range(50, 53)} == {503}

        kept = [event for each in receivers for event in await each.kept()]
        assert {f"evt_{number}" for number in range(50)} == set(kept)
