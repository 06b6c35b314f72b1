"""A background task that dies takes the bridge down, loudly."""

import asyncio

import pytest

from tillbridge.daemon.supervise import supervise
from tillbridge.errors import BridgeError


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("forever")


async def test_stop_ends_every_task() -> None:
    ended: list[str] = []
    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    await supervise({"work": forever(ended)}, stop)
    assert ended == ["forever"]


async def test_a_task_that_raises_ends_the_others_and_the_bridge() -> None:
    ended: list[str] = []

    async def dies() -> None:
        raise RuntimeError("lost")

    with pytest.raises(BridgeError, match=r"dies ended unexpectedly: lost"):
        await supervise({"work": forever(ended), "dies": dies()}, asyncio.Event())
    assert ended == ["forever"]


async def test_a_task_that_returns_counts_as_dead() -> None:
    async def returns() -> None:
        return

    with pytest.raises(BridgeError, match=r"returns ended unexpectedly"):
        await supervise({"returns": returns()}, asyncio.Event())
