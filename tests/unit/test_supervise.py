"""A background task that dies takes the bridge down, loudly."""

import asyncio

import pytest

from tillbridge.core.errors import BridgeError
from tillbridge.core.worker import supervise


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("forever")


async def nothing() -> None:
    return


async def test_stop_ends_every_task_after_what_is_to_be_done_first() -> None:
    ended: list[str] = []

    async def drain() -> None:
        ended.append("drained")

    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    await supervise({"work": forever(ended)}, stop, on_stop=drain)
    assert ended == ["drained", "forever"]


async def test_a_task_that_raises_ends_the_others_and_the_bridge() -> None:
    ended: list[str] = []

    async def dies() -> None:
        raise RuntimeError("lost")

    with pytest.raises(BridgeError, match=r"dies stopped unexpectedly: lost"):
        await supervise({"work": forever(ended), "dies": dies()}, asyncio.Event(), on_stop=nothing)
    assert ended == ["forever"]


async def test_a_task_that_returns_counts_as_dead() -> None:
    async def returns() -> None:
        return

    with pytest.raises(BridgeError, match=r"returns stopped unexpectedly"):
        await supervise({"returns": returns()}, asyncio.Event(), on_stop=nothing)


async def test_the_failure_of_a_group_is_told_by_its_first_member() -> None:
    async def dies() -> None:
        raise RuntimeError("lost")

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dies())

    with pytest.raises(BridgeError, match=r"stopped unexpectedly: lost"):
        await supervise({"group": group()}, asyncio.Event(), on_stop=nothing)
