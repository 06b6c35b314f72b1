"""Slow and surplus senders are cut off, and cost the others nothing."""

import asyncio
import contextlib
import time
from pathlib import Path

from tests.support.receiver_harness import answer, event, head, receiving


async def closed_within(reader: asyncio.StreamReader, seconds: float) -> float:
    """Wait until the other side closes; return after how many seconds."""
    started = time.monotonic()
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), seconds)
    return time.monotonic() - started


async def test_a_connection_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.2) as harness,
        harness.connection() as (reader, _writer),
    ):
        assert await closed_within(reader, 20) >= 0.15


async def test_a_head_that_drips_is_cut_off(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.4) as harness,
        harness.connection() as (reader, writer),
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
        assert (await harness.send(event())).status == 200


async def test_the_second_head_of_a_connection_has_the_same_deadline(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.3, keepalive_s=60) as harness,
        harness.connection() as (reader, writer),
    ):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await answer(reader)).status == 200
        writer.write(b"POST /webhooks/main HT")
        assert await closed_within(reader, 20) >= 0.2


async def test_an_idle_connection_is_kept_between_deliveries_and_no_longer(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, head_timeout_s=0.2, keepalive_s=3) as harness,
        harness.connection() as (reader, writer),
    ):
        for _ in range(2):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await answer(reader)).status == 200
            await asyncio.sleep(0.4)  # longer than a head may take
        assert await closed_within(reader, 20) >= 0.3


async def test_a_body_that_drips_is_cut_off_and_told_so(tmp_path: Path) -> None:
    async with receiving(tmp_path, body_timeout_s=0.3) as harness:
        body = event()
        async with harness.connection() as (reader, writer):
            writer.write(head(body) + body[:-1])
            started = time.monotonic()
            assert (await answer(reader)).status == 408
            assert time.monotonic() - started >= 0.2
            await closed_within(reader, 20)
        assert await harness.kept() == []


async def test_a_sender_who_hangs_up_within_the_body_leaves_nothing(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness, harness.connection() as (_reader, writer):
        writer.write(b"POST /webhooks/main HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        assert (await harness.send(event())).status == 200
        assert len(await harness.kept()) == 1


async def test_an_idle_stranger_makes_room_for_a_delivery(tmp_path: Path) -> None:
    async with receiving(tmp_path, max_connections=3, head_timeout_s=30) as harness:
        async with (
            harness.connection() as (oldest, to_oldest),
            harness.connection() as (newer, to_newer),
            harness.connection(),
        ):
            for reader, writer in ((oldest, to_oldest), (newer, to_newer)):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await answer(reader)).status == 200
            assert (await harness.send(event())).status == 200
            assert await closed_within(oldest, 20) < 10
            to_newer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await answer(newer)).status == 200
        assert len(await harness.kept()) == 1


async def test_connections_renewed_all_the_time_keep_no_delivery_out(tmp_path: Path) -> None:
    """Each stranger asks for something cheap, over and over, and comes again when closed."""
    async with receiving(tmp_path, max_connections=24, head_timeout_s=30) as harness:
        over = False

        async def stranger() -> None:
            while not over:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, OSError):
                    async with harness.connection() as (reader, writer):
                        while not over:
                            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                            await answer(reader)
                            await asyncio.sleep(0.05)
                await asyncio.sleep(0.2)

        strangers = [asyncio.ensure_future(stranger()) for _ in range(36)]
        try:
            await asyncio.sleep(0.3)
            for _ in range(20):
                assert (await harness.send(event())).status == 200
            assert harness.tracker.is_open("receiver.crowded")
        finally:
            over = True
            await asyncio.gather(*strangers)


async def test_whoever_has_brought_a_delivery_stays_while_strangers_come(tmp_path: Path) -> None:
    async with (
        receiving(tmp_path, max_connections=4, head_timeout_s=30) as harness,
        harness.connection() as (reader, writer),
    ):
        body = event()
        writer.write(head(body) + body)
        assert (await answer(reader)).status == 200
        for _ in range(10):
            async with harness.connection() as (theirs, to_them):
                to_them.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await answer(theirs)).status == 200
        crowd = [
            await asyncio.open_connection("127.0.0.1", harness.receiver.port) for _ in range(9)
        ]
        body = event()
        writer.write(head(body) + body)
        assert (await answer(reader)).status == 200
        for _reader, each in crowd:
            each.close()


async def test_a_delivery_under_way_is_never_closed_for_another(tmp_path: Path) -> None:
    async with receiving(tmp_path, max_connections=2, head_timeout_s=30) as harness:
        body = event()
        async with harness.connection() as (reader, writer), harness.connection() as (_other, slow):
            for each in (writer, slow):
                each.write(head(body) + body[:-1])
                await each.drain()
            await asyncio.sleep(0.1)  # both are known to have a request under way
            async with harness.connection() as (refused, _writer):
                assert await closed_within(refused, 20) < 10
            writer.write(body[-1:])
            assert (await answer(reader)).status == 200


async def test_whoever_reads_no_answer_is_cut_off(tmp_path: Path) -> None:
    async with receiving(tmp_path, head_timeout_s=0.4, keepalive_s=0.4) as harness:
        _reader, writer = await asyncio.open_connection("127.0.0.1", harness.receiver.port, limit=1)
        asks = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
        gone = False
        for _ in range(2000):
            try:
                writer.write(asks)
                async with asyncio.timeout(0.05):
                    await writer.drain()
            except TimeoutError:
                continue
            except ConnectionError:
                gone = True
                break
        assert gone
        writer.close()


async def test_large_bodies_of_strangers_have_a_budget(tmp_path: Path) -> None:
    async with receiving(tmp_path, body_timeout_s=30) as harness:
        senders = [
            await asyncio.open_connection("127.0.0.1", harness.receiver.port) for _ in range(40)
        ]
        for _reader, writer in senders:
            writer.write(
                b"POST /webhooks/main HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"
            )
        refused = [asyncio.ensure_future(answer(reader)) for reader, _writer in senders]
        done, waiting = await asyncio.wait(refused, timeout=2)
        assert {each.result().status for each in done} == {503}
        assert len(waiting) == 32  # of 1 MiB each
        assert (await harness.send(event())).status == 200
        for each in waiting:
            each.cancel()
        for _reader, writer in senders:
            writer.close()


async def test_a_hundred_slow_senders_do_not_delay_a_delivery(tmp_path: Path) -> None:
    async with receiving(tmp_path, head_timeout_s=30) as harness:
        slow = [
            await asyncio.open_connection("127.0.0.1", harness.receiver.port) for _ in range(100)
        ]
        for _reader, writer in slow:
            writer.write(b"POST /webhooks/main HTTP/1.1\r\nContent-Length: 500\r\nX")
        given = await asyncio.wait_for(harness.send(event()), 20)
        assert given.status == 200
        for _reader, writer in slow:
            writer.close()
