"""Server-sent events: transitions only, bounded, and over at once when the bridge ends."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.page_harness import PageHarness, page_harness, users
from tillbridge.web.authenticator import AccessRules
from tillbridge.web.listener import LiveHub


@pytest.fixture
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        yield made


async def event(answer: aiohttp.ClientResponse) -> str:
    """The next event of a stream; "" where it has ended."""
    lines = []
    async with asyncio.timeout(10):
        while (line := (await answer.content.readline()).decode()) not in {"\n", ""}:
            lines.append(line)
    return "".join(lines)


async def test_a_change_is_told_and_nothing_else(harness: PageHarness) -> None:
    async with harness.session.get(harness.url + "/events") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert "event: hello" in await event(answer)
        (change,) = harness.changed
        change()
        change()
        assert "event: change" in await event(answer)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.6):
                await answer.content.readline()


async def test_an_idle_stream_is_kept_open_by_comments(
    harness: PageHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.listener._hub = LiveHub(beat_s=0.05)
    async with harness.session.get(harness.url + "/events") as answer:
        await event(answer)
        assert await event(answer) == ": here\n"


async def test_streams_are_bounded_and_the_rest_is_told_to_stop_asking(
    harness: PageHarness,
) -> None:
    opened = [await harness.session.get(harness.url + "/events") for _ in range(4)]
    async with harness.session.get(harness.url + "/events") as answer:
        assert answer.status == 204
    opened[0].close()
    hub = harness.listener._hub
    assert hub is not None
    async with asyncio.timeout(5):  # well before the next comment is due
        while hub.streams == 4:
            await asyncio.sleep(0.02)
    async with harness.session.get(harness.url + "/events") as answer:
        assert answer.status == 200
    for each in opened:
        each.close()


async def test_streams_end_with_the_bridge(harness: PageHarness) -> None:
    async with harness.session.get(harness.url + "/events") as answer:
        await event(answer)
        async with asyncio.timeout(3):
            await harness.listener.close()
        with pytest.raises((aiohttp.ClientError, AssertionError)):
            assert await event(answer)


async def test_nobody_listens_where_nobody_looks(harness: PageHarness) -> None:
    await harness.get("/healthz")
    await harness.get("/static/live.js")
    assert harness.changed == []
    assert harness.listener._hub.streams == 0


async def test_a_stream_says_whether_the_page_still_holds(harness: PageHarness) -> None:
    async def version() -> str:
        found = re.search(r'data-version="([0-9a-f]+-\d+)"', (await harness.get("/")).text)
        assert found is not None
        return found[1]

    before = await version()
    (change,) = harness.changed
    async with harness.session.get(harness.url + "/events") as answer:
        assert f"data: {before}\n" in await event(answer)
        change()
        assert f"data: {await version()}\n" in await event(answer)
    assert await version() != before


async def test_a_stream_ends_when_its_session_does() -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        await harness.sign_in("lou")
        async with harness.session.get(harness.url + "/events") as answer:
            await event(answer)
            harness.clock.forward(15_000)
            (change,) = harness.changed
            change()
            assert "event: ended" in await event(answer)
