"""A newer version is noticed once a day, from an address that may answer anything."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.integration.test_settings_saved import TEXT, settings_of
from tillbridge.setup.updates import FACT, is_newer, newest_version


class Index:
    """What the address answers next, and what it was asked with."""

    def __init__(self) -> None:
        self.answer = web.Response()
        self.asked: list[web.Request] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        return self.answer


@pytest.fixture
async def index() -> AsyncIterator[Index]:
    made = Index()
    application = web.Application()
    application.router.add_get("/{any:.*}", made.handle)
    async with TestServer(application) as server:
        made.url = str(server.make_url("/tillbridge/json"))
        yield made


@pytest.mark.parametrize(
    "body", [{"version": "1.4.0", "more": 1}, {"info": {"version": "1.4.0"}, "urls": []}]
)
async def test_a_version_is_read_and_nothing_is_told(index: Index, body: Any) -> None:  # noqa: ANN401 -- JSON
    index.answer = web.json_response(body)
    assert await newest_version(index.url) == "1.4.0"
    (asked,) = index.asked
    assert not asked.query
    assert set(asked.headers) <= {"Host", "Accept", "Accept-Encoding", "User-Agent"}


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(text="<html>Sign in to the network</html>"),
        lambda: web.Response(body=b"\xff\xfe\x00"),
        lambda: web.json_response([1]),
        lambda: web.json_response({"info": {"version": 14}}),
        lambda: web.json_response({"version": "1.4.0 <b>now</b>"}),
        lambda: web.Response(body=b'{"version": "1.4.0"}' + b" " * (1 << 20)),
        lambda: web.Response(text="[" * 100_000),
        lambda: web.Response(status=302, headers={"Location": "/elsewhere"}),
        lambda: web.Response(status=500),
    ],
)
async def test_rubbish_is_no_version(index: Index, answer: Any) -> None:  # noqa: ANN401 -- a function
    index.answer = answer()
    assert await newest_version(index.url) is None
    assert len(index.asked) == 1


async def test_nobody_there_is_no_version(unused_tcp_port: int) -> None:
    assert await newest_version(f"http://127.0.0.1:{unused_tcp_port}/") is None


def test_a_release_is_newer_by_its_numbers() -> None:
    assert is_newer("1.10.0", "1.9.9")
    assert is_newer("0.1.1", "0.1")
    assert not is_newer("0.1.0", "0.1")
    assert not is_newer("1.4.0rc1", "1.3.0")
    assert not is_newer("", "1.3.0")


async def test_settings_say_so_only_while_it_is_asked_for(tmp_path: Path) -> None:
    wanted = TEXT.replace("[bridge]", '[bridge]\nupdate_url = "https://example.com/newest"')
    async with settings_of(tmp_path, wanted) as page:
        assert (await page.ask("config.show"))["newer_version"] == ""
        await page.ledger.put_fact("", FACT, {"version": "999.0"}, at=1)
        assert (await page.ask("config.show"))["newer_version"] == "999.0"
        await page.ledger.put_fact("", FACT, {"version": "0.0.1"}, at=2)
        assert (await page.ask("config.show"))["newer_version"] == ""
    (tmp_path / "other").mkdir()
    async with settings_of(tmp_path / "other") as page:
        await page.ledger.put_fact("", FACT, {"version": "999.0"}, at=1)
        assert (await page.ask("config.show"))["newer_version"] == ""
