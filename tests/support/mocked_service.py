"""The bridge's own client against answers written down by a test: no socket, no waiting."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

from aiohttp import ClientResponse
from aioresponses import aioresponses
from yarl import URL

from tests.support.service_link import REDIRECT_URI, HandClock, MemoryTokens
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceClient, ServiceLink, StoreLink
from tillbridge.service.oauth import App
from tillbridge.service.types import Tokens

BASE_URL = "https://service.example/v2"


class _Response(ClientResponse):
    """aiohttp 3.14 asks for an argument that aioresponses 0.7.9 does not give (decision 53)."""

    def __init__(self, method: str, url: URL, **arguments: Any) -> None:  # noqa: ANN401 -- whatever aiohttp takes
        super().__init__(method, url, stream_writer=Mock(output_size=0), **arguments)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that reached the service: `GET /pos/stores`, its JSON body and its credential."""

    line: str
    body: Any
    authorization: str


@dataclass(slots=True)
class MockedService:
    """One store's link to a service whose answers `answer` queues, each given once."""

    store: StoreLink
    waits: list[float]
    calls: list[Call] = field(default_factory=list)
    _http: aioresponses = field(default_factory=aioresponses)
    _queued: int = 0

    @property
    def client(self) -> ServiceClient:
        return self.store.client

    @property
    def lines(self) -> list[str]:
        """The calls so far, in order, as `GET /pos/stores`."""
        return [call.line for call in self.calls]

    def answer(
        self,
        line: str,
        status: int = 200,
        body: object = None,
        *,
        code: str = "",
        headers: dict[str, str] | None = None,
        times: int = 1,
    ) -> None:
        """Answer the next `times` calls `line`; `code` makes the error envelope."""
        method, path = line.split(" ", 1)

        def note(_url: URL, **sent: Any) -> None:  # noqa: ANN401 -- whatever aiohttp is given
            raw = b"" if sent["data"] is None else sent["data"].read()
            credential = sent["headers"].get("Authorization", "")
            self.calls.append(Call(line, json.loads(raw) if raw else None, credential))

        envelope = {"error": {"code": code, "message": f"as the test says: {status}"}}
        for _time in range(times):
            self._queued += 1
            self._http.add(
                BASE_URL + path,
                method,
                status=status,
                body=json.dumps(envelope if status >= 400 else body),
                headers=headers,
                callback=note,
                response_class=_Response,
            )

    def check(self) -> None:
        """Fail where a call met no answer, or an answer was not asked for."""
        made = sum(len(each) for each in self._http.requests.values())
        assert made == len(self.calls), f"unexpected calls: {list(self._http.requests)}"
        assert self._queued == len(self.calls), f"answers left; calls: {self.lines}"


@asynccontextmanager
async def mocked_service(limits: Limits | None = None) -> AsyncIterator[MockedService]:
    """A link whose store has consented; its access token is `first`. No wait takes time."""
    clock, waits = HandClock(), list[float]()
    now_ms = clock.now_ms()
    tokens = MemoryTokens(Tokens("first", "refresh-me", now_ms + 3_600_000, now_ms))

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    app = App("app_123", lambda: "secret", REDIRECT_URI)
    async with ServiceLink(
        BASE_URL, app, clock=clock, limits=limits, sleep=sleep, jitter=lambda: 1.0
    ) as link:
        store = link.store(tokens)
        await store.tokens.tokens()  # read in a thread: not in the middle of a test
        service = MockedService(store, waits)
        with service._http:
            yield service
            service.check()
