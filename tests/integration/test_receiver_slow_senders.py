"""Slow and surplus senders are cut off, and cost the others nothing."""

import asyncio
import contextlib
import time
from pathlib import Path

from tests.support.receiver_house import answer, event, head, receiving


async def closed_within(reader: asyncio.StreamReader, seconds: float) -> float:
    """Wait until the other side closes; return after how many seconds."""
    started = time.monotonic()
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), seconds)
    return time.monotonic() - started


async def test_a_connection_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.2) as house,
        house.connection() as (reader, _writer),
    ):
        assert await closed_within(reader, 20) >= 0.15


async def test_a_head_that_drips_is_cut_off(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.4) as house,
        house.connection() as (reader, writer),
    ):

        async def drip() -> None:
            writer.write(b"POST /webhooks/main HTTP/1.1\r\nHost: x\r\n")
            while not writer.is_closing():
                writer.write(b"X-Drip: 1\r\n")
                await asyncio.sleep(0.02)

        dripping = asyncio.ensure_future(drip())
        try:
            assert await closed_within(reader, 20) >= 0.3
        finally:
            dripping.cancel()
        assert (await house.send(event())).status == 200


async def test_the_second_head_of_a_connection_has_the_same_deadline(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.3, keepalive_s=60) as house,
        house.connection() as (reader, writer),
    ):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await answer(reader)).status == 200
        writer.write(b"POST /webhooks/main HT")
        assert await closed_within(reader, 20) >= 0.2


async def test_an_idle_connection_is_kept_between_deliveries_and_no_longer(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.2, keepalive_s=3) as house,
        house.connection() as (reader, writer),
    ):
        for _ in range(2):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await answer(reader)).status == 200
            await asyncio.sleep(0.4)  # longer than a head may take
        assert await closed_within(reader, 20) >= 0.3


async def test_a_body_that_drips_is_cut_off_and_told_so(tmp_path: Path) -> None:
    async with receiving(tmp_path, body_timeout_s=0.3) as house:
        body = event()
        async with house.connection() as (reader, writer):
            writer.write(head(body) + body[:-1])
            started = time.monotonic()
            assert (await answer(reader)).status == 408
            assert time.monotonic() - started >= 0.2
            await closed_within(reader, 20)
        assert await house.kept() == []


async def test_a_sender_who_hangs_up_within_the_body_leaves_nothing(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house, house.connection() as (_reader, writer):
        writer.write(b"POST /webhooks/main HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        assert (await house.send(event())).status == 200
        assert len(await house.kept()) == 1


async def test_surplus_connections_are_closed_at_once_and_others_served(tmp_path: Path) -> None:
    async with receiving(tmp_path, max_connections=3, head_timeout_s=30) as house:
        async with (
            house.connection() as (first, to_first),
            house.connection(),
            house.connection(),
        ):
            to_first.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await answer(first)).status == 200
            for _ in range(5):
                async with house.connection() as (reader, _writer):
                    assert await closed_within(reader, 20) < 10
            to_first.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await answer(first)).status == 200
        while True:  # the places are free again
            try:
                assert (await house.send(event())).status == 200
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.01)


async def test_a_hundred_slow_senders_do_not_delay_a_delivery(tmp_path: Path) -> None:
    async with receiving(tmp_path, head_timeout_s=30) as house:
        slow = [await asyncio.open_connection("127.0.0.1", house.receiver.port) for _ in range(100)]
        for _reader, writer in slow:
            writer.write(b"POST /webhooks/main HTTP/1.1\r\nContent-Length: 500\r\nX")
        given = await asyncio.wait_for(house.send(event()), 20)
        assert given.status == 200
        for _reader, writer in slow:
            writer.close()
