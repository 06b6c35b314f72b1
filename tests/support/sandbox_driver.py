"""Drives a running sandbox in tests: as a bridge, as its operator, and as a receiver."""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web
from yarl import URL

from tillbridge.sandbox import RunningSandbox, SandboxSettings, start

#: Whatever JSON holds.
Json: TypeAlias = Any

STORE = "/pos/stores/st_main"


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Json

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


@dataclass(slots=True)
class Received:
    headers: dict[str, str]
    raw: bytes
    json: Any


@dataclass(slots=True)
class Receiver:
    """A POS's end of the line: answers with `statuses` in turn, then with the last one."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    received: list[Received] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append(Received(headers, raw, await request.json() if raw else None))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=status, text="noted")


class Driver:
    def __init__(
        self, running: RunningSandbox, session: aiohttp.ClientSession, receiver: Receiver
    ) -> None:
        self.running = running
        self.session = session
        self.receiver = receiver
        self.token = ""
        self.secret = ""

    async def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """A call to the API, with the merchant's token unless told otherwise."""
        sent = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if token == "":
            sent = {}
        return await self._send(
            method, self.running.base_url + path, body, sent | (headers or {}), raw
        )

    async def control(self, method: str, path: str, body: Json = None) -> Answer:
        """A call to the control API, which must work."""
        answer = await self.try_control(method, path, body)
        assert answer.status < 300, answer.body
        return answer

    async def try_control(self, method: str, path: str, body: Json = None) -> Answer:
        return await self._send(method, f"{self.running.url}/_control{path}", body, {}, None)

    async def _send(
        self, method: str, url: str, body: Json, headers: dict[str, str], raw: bytes | None
    ) -> Answer:
        kwargs: dict[str, Any] = {"json": body} if body is not None else {}
        if raw is not None:
            kwargs = {"data": io.BytesIO(raw)}
            headers = {"Content-Type": "application/json"} | headers
        target = URL(url, encoded=True)
        async with self.session.request(
            method, target, headers=headers, allow_redirects=False, **kwargs
        ) as response:
            text = await response.text()
            parsed = await response.json() if response.content_type == "application/json" else text
            return Answer(response.status, dict(response.headers), parsed)

    async def page(self, path: str, form: dict[str, str] | None = None) -> tuple[int, str, str]:
        """A page as a browser gets it: status, HTML, and where it ended."""
        method = "GET" if form is None else "POST"
        async with self.session.request(method, self.running.url + path, data=form) as response:
            return response.status, await response.text(), response.url.path

    async def sign_in(self) -> None:
        self.token = (await self.control("POST", "/tokens/mint", {})).body["access_token"]

    async def integrate(self, **changes: Json) -> None:
        await self.sign_in()
        body = {
            "webhook_url": self.receiver.url,
            "menu_sync_direction": "pos_to_quiqqy",
            "external_store_id": "loc-1",
        } | changes
        answer = await self.call("POST", "/pos/integrate-store/st_main", body)
        assert answer.status == 200, answer.body
        self.secret = answer.body["webhook_secret"]

    async def push(self, *items: dict[str, Any], **more: Json) -> Answer:
        return await self.call(
            "POST", f"{STORE}/menus", {"menu_name": "Main", "items": list(items), **more}
        )

    async def place(self, *items: dict[str, Any], **more: Json) -> dict[str, Any]:
        body = {"store_id": "st_main", "items": list(items), "wait": True, **more}
        order: dict[str, Any] = (await self.control("POST", "/orders", body)).body
        return order

    async def state(self) -> dict[str, Any]:
        state: dict[str, Any] = (await self.control("GET", "/state")).body
        return state

    async def catalogue(self) -> dict[str, Any]:
        link: dict[str, Any] = (await self.state())["stores"]["st_main"]["integrations"][0]
        return link

    async def jump(self, seconds: float) -> None:
        await self.control("POST", "/clock", {"jump_s": seconds})


def item(external_id: str, price: Json = 450, **more: Json) -> dict[str, Any]:
    return {"external_id": external_id, "name": f"Item {external_id}", "price": price, **more}


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for something that another task does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def driven(settings: SandboxSettings | None = None) -> AsyncIterator[Driver]:
    """A sandbox, a receiver and somebody who drives them."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/hook", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    running = await start(settings)
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, not of a name
    try:
        async with aiohttp.ClientSession(trust_env=False, cookie_jar=jar) as session:
            driver = Driver(running, session, receiver)
            yield driver
            running = driver.running  # a test may have started another
    finally:
        await running.stop()
        await runner.cleanup()
