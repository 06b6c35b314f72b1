"""What the receiver answers, and what is on disk when it does."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from tests.support.receiver_harness import SECRET, answer, event, head, receiving
from tillbridge.config.bridge import ReceiverSettings
from tillbridge.core.errors import ConfigError, LedgerUnwritable
from tillbridge.ledger.ledger import Storage
from tillbridge.ledger.models import Delivery, NewDelivery
from tillbridge.receiver import Receiver


async def test_a_delivery_is_on_disk_when_it_is_acknowledged(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        body = event(event_id="evt_1", event_type="unheard.of")
        given = await harness.send(body, headers={"X-Service-Delivery-Id": "dlv_1"})
        assert (given.status, given.body) == (200, b"")
        rows = await harness.ledger.read(
            lambda connection: connection.execute(select(Delivery)).mappings().all()
        )
        assert [dict(row) for row in rows] == [
            {
                "id": 1,
                "store": "main",
                "delivery_id": "dlv_1",
                "event_id": "evt_1",
                "event_type": "unheard.of",
                "received_at": harness.clock.at_ms,
                "body": body,
                "handled_at": None,
                "outcome": "",
            }
        ]
        assert harness.woken == ["main"]


async def test_a_connection_goes_on_after_an_answer_unless_its_sender_ends_it(
    tmp_path: Path,
) -> None:
    async with (
        receiving(tmp_path) as harness,
        harness.connection() as (reader, writer),
    ):
        first, second, last = event(), event(), event()
        ending = head(last).replace(b"Host:", b"Connection: close\r\nHost:")
        writer.write(head(first) + first + head(second) + second + ending + last)
        answers = [await answer(reader) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 200]
        assert [each.headers.get("connection") for each in answers] == [None, None, "close"]
        assert {each.headers["server"] for each in answers} == {"tillbridge"}
        assert all("date" in each.headers for each in answers)
        assert await reader.read() == b""
        assert len(await harness.kept()) == 3


async def test_a_redelivery_is_acknowledged_and_wakes_nobody(tmp_path: Path) -> None:
    async with receiving(tmp_path, success_status=204) as harness:
        body = event(event_id="evt_1")
        for delivery in ("dlv_1", "dlv_1", "dlv_2"):
            given = await harness.send(body, headers={"X-Service-Delivery-Id": delivery})
            assert given.status == 204
        assert await harness.kept() == ["evt_1"]
        assert harness.woken == ["main"]
        given = await harness.send(
            event(event_id="evt_2"), headers={"X-Service-Delivery-Id": "dlv_1"}
        )
        assert given.status == 204
        assert await harness.kept() == ["evt_1", "evt_2"]


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (401, {"headers": {"X-Service-Signature": None}}),
        (401, {"headers": {"X-Service-Signature": ""}}),
        (401, {"headers": {"X-Service-Signature": "0" * 64}}),
        (401, {"headers": {"X-Service-Signature": "no hex \udcff"}}),
        (401, {"headers": {"X-Service-Signature": "A" * 4000}}),
        (401, {"secret": "whsec_other"}),
        (401, {"secret": ""}),
        (401, {"store": "other"}),
        (401, {"store": "new"}),
        (404, {"store": "nobody"}),
        (404, {"store": "main/"}),
        (404, {"store": "communities"}),
        (404, {"store": "communities/"}),
        (404, {"store": "communities/main"}),
        (404, {"store": ""}),
        (404, {"path": "/"}),
        (404, {"path": "/webhooks"}),
        (405, {"method": "PUT"}),
        (415, {"headers": {"Content-Encoding": "gzip"}}),
        (415, {"headers": {"Content-Type": "text/plain"}}),
        (200, {"headers": {"Content-Type": "application/json; charset=utf-8"}}),
        (200, {"headers": {"Content-Type": "Application/Vnd.Orders+JSON ; v=1"}}),
        (200, {"headers": {"Content-Type": "application/json; charset *"}}),
        (415, {"headers": {"Content-Type": "; charset *"}}),
        (200, {"headers": {"Content-Type": None}}),
        (200, {"headers": {"X-Service-Delivery-Id": None}}),
        (200, {"headers": {"X-Service-Delivery-Id": "\udcff" * 300}}),
        (200, {"headers": {"Expect": "100-continue"}}),
    ],
)
async def test_each_delivery_gets_the_answer_of_the_contract(
    status: int, how: dict, tmp_path: Path
) -> None:
    async with receiving(tmp_path) as harness:
        given = await harness.send(event(), **how)
        assert given.status == status
        assert bool(await harness.kept()) == (status == 200)
        assert given.headers.get("server", "tillbridge") == "tillbridge"


BODIES: dict[str, tuple[int, bytes]] = {
    "whose": (200, event(store_id=..., location_id=...)),
    "old": (200, event(timestamp="1999-01-01T00:00:00.000Z")),
    "another store": (401, event(store_id="st_other")),
    "another location": (401, event(location_id="loc-2")),
    "no JSON": (400, b"no JSON"),
    "nothing": (400, b""),
    "no object": (400, b"[1]"),
    "no event id": (400, event(event_id=...)),
    "no event type": (400, event(event_type=...)),
    "no data": (400, event(data=...)),
    "deep": (400, b"[" * 200_000),
    "no text": (400, b"\xff\xff"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_signed_body_gets_the_answer_of_the_contract(name: str, tmp_path: Path) -> None:
    status, body = BODIES[name]
    async with receiving(tmp_path) as harness:
        assert (await harness.send(body)).status == status
        assert bool(await harness.kept()) == (status == 200)


async def test_the_signature_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        assert (await harness.send(b"[" * 200_000, secret="wrong")).status == 401


async def test_a_body_without_length_is_refused(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        for extra in ({}, {"Transfer-Encoding": "chunked"}):
            given = await harness.send(b"", headers={"Content-Length": None, **extra})
            assert given.status == 411


async def test_a_body_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    async with receiving(tmp_path, max_body_bytes=2048) as harness:
        assert (await harness.send(event(data="x" * 1000))).status == 200
        assert (await harness.send(event(data="x" * 3000))).status == 413
        given = await harness.send(b"", headers={"Content-Length": str(10**12)})
        assert given.status == 413
        assert given.headers["connection"] == "close"


async def test_the_secret_before_counts_after_a_rotation(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        now = harness.clock.at_ms
        secrets = [{"secret": "whsec_new", "since_ms": now}, {"secret": SECRET, "since_ms": 0}]
        harness.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        assert (await harness.send(event(), secret="whsec_new")).status == 401
        await harness.receiver.refresh("main")
        assert (await harness.send(event(), secret="whsec_new")).status == 200
        assert (await harness.send(event())).status == 200
        harness.clock.forward(24 * 3600)
        assert (await harness.send(event())).status == 401
        assert (await harness.send(event(), secret="whsec_new")).status == 200


async def test_a_delivery_waits_for_a_secret_that_is_on_its_way(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        harness.receiver.expect("main")
        waiting = asyncio.create_task(harness.send(event(), secret="whsec_new"))
        assert (await harness.send(event())).status == 200  # what is known waits for nothing
        assert not waiting.done()
        secrets = [{"secret": "whsec_new", "since_ms": 5}, {"secret": SECRET, "since_ms": 0}]
        harness.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        await harness.receiver.refresh("main")
        assert (await waiting).status == 200
        assert (await harness.send(event(), secret="whsec_wrong")).status == 401


async def test_a_delivery_of_a_community_waits_for_its_secret_too(tmp_path: Path) -> None:
    async with receiving(tmp_path, communities={"communities/hall": "com_1"}) as harness:
        harness.receiver.expect("communities/hall")
        body = event(community_id="com_1", store_id=..., location_id=...)
        waiting = asyncio.create_task(
            harness.send(body, path="/webhooks/communities/hall", secret="whsec_hall")
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        secrets = [{"secret": "whsec_hall", "since_ms": 5}]
        harness.ledger.vault.put("communities/hall/webhook_secrets", json.dumps(secrets))
        await harness.receiver.refresh("communities/hall")
        assert (await waiting).status == 200


async def test_a_secret_speaks_for_the_location_of_its_integration(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        secrets = [
            {"secret": "whsec_new", "since_ms": harness.clock.at_ms, "location_id": "loc-9"},
            {"secret": SECRET, "since_ms": 0, "location_id": "loc-0"},
        ]
        harness.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        await harness.receiver.refresh("main")
        for secret, location, status in (
            ("whsec_new", "loc-9", 200),
            ("whsec_new", "loc-0", 401),
            (SECRET, "loc-0", 200),
            (SECRET, "loc-9", 401),
        ):
            given = await harness.send(event(location_id=location), secret=secret)
            assert given.status == status, (secret, location)


async def test_nothing_is_acknowledged_that_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving(tmp_path) as harness:

        async def refuse(delivery: NewDelivery) -> bool:
            raise LedgerUnwritable("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(harness.ledger, "write", refuse)
            given = await harness.send(event())
        assert given.status == 503
        assert "disk" not in repr(given)
        assert harness.woken == []


async def test_health_tells_whether_deliveries_can_be_kept(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        assert (await harness.send(b"", method="GET", path="/healthz")).status == 200
        harness.ledger._storage_changed(Storage("disk I/O error"))
        assert (await harness.send(b"", method="GET", path="/healthz")).status == 503
        assert (await harness.send(b"", path="/healthz")).status == 405


async def test_several_bad_signatures_are_a_problem_until_a_good_one(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        with capture_logs() as logs:
            for _ in range(2):
                await harness.send(b"strange", secret="wrong")
                harness.clock.forward(400)
            await harness.send(b"strange", secret="wrong")
            assert not harness.tracker.is_open("receiver.bad_signature", "main"), "too long apart"
            await harness.send(b"strange", secret="wrong")
            harness.clock.forward(100)
            await harness.send(b"strange", secret="wrong")
            assert harness.tracker.is_open("receiver.bad_signature", "main")
            await harness.send(event(), store="other", secret="wrong")
            assert not harness.tracker.is_open("receiver.bad_signature", "other")
            await harness.send(event())
            assert not harness.tracker.is_open("receiver.bad_signature", "main")
        refused = [line for line in logs if line["event"] == "delivery.refused"]
        assert {(line["store"], line["reason"]) for line in refused} == {
            ("main", "signature"),
            ("other", "signature"),
        }
        assert len(refused) < 6, "a flood of them is not a flood of lines"


async def test_when_all_of_the_last_deliveries_are_refused_no_order_arrives(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        for _hour in range(3):
            assert harness.tracker.current() == ()
            await harness.send(event(), secret="wrong")
            harness.clock.forward(3600)
        (told,) = harness.tracker.current()
        assert told.code == "receiver.all_refused"
        assert "the last 3 deliveries were refused" in told.text
        assert "rotate-secret main" in told.fix
        await harness.send(event(), secret="wrong")
        (told,) = harness.tracker.current()
        assert told.detail["count"] == 4
        await harness.send(event())
        assert harness.tracker.current() == ()


async def test_strangers_who_do_not_come_again_are_let_go_after_a_day(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        for _ in range(3):
            await harness.send(b"strange", secret="wrong")
        await harness.receiver.refusals.close_stale()
        assert harness.tracker.is_open("receiver.bad_signature", "main")
        harness.clock.forward(86_401)
        await harness.receiver.refusals.close_stale()
        assert harness.tracker.current() == ()


async def test_what_the_internet_invents_does_not_reach_the_log(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        with capture_logs() as logs:
            await harness.send(event(), store="evil-name")
            async with harness.connection() as (reader, writer):
                writer.write(b"\x16\x03\x01 this is TLS\r\n\r\n")
                assert (await answer(reader)).status == 400
        assert "evil" not in repr(logs)
        assert "TLS" not in repr(logs)


async def test_one_connection_may_carry_many_deliveries(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness, harness.connection() as (reader, writer):
        for _ in range(3):
            body = event()
            writer.write(head(body))
            await writer.drain()
            writer.write(body)
            assert (await answer(reader)).status == 200
        assert len(await harness.kept()) == 3


async def test_large_deliveries_may_follow_each_other_without_a_pause(tmp_path: Path) -> None:
    large = [event(data={"note": "x" * 300_000}) for _ in range(20)]
    async with receiving(tmp_path) as harness, harness.connection() as (reader, writer):
        for body in large:
            writer.write(head(body) + body)
        assert [(await answer(reader)).status for _ in large] == [200] * len(large)
        assert len(await harness.kept()) == len(large)


async def test_an_old_sender_gets_its_answer_and_the_end(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness, harness.connection() as (reader, writer):
        body = event()
        writer.write(head(body).replace(b"HTTP/1.1", b"HTTP/1.0") + body)
        assert (await answer(reader)).status == 200
        assert await reader.read() == b""
        assert len(await harness.kept()) == 1


async def test_an_upgrade_is_declined_and_the_connection_goes_on(tmp_path: Path) -> None:
    upgrading = b"Connection: upgrade\r\nUpgrade: websocket\r\nHost:"
    async with receiving(tmp_path) as harness, harness.connection() as (reader, writer):
        first, second = event(), event()
        writer.write(head(first).replace(b"Host:", upgrading) + first + head(second) + second)
        assert [(await answer(reader)).status for _ in range(2)] == [200, 200]
        assert len(await harness.kept()) == 2


async def test_deliveries_under_way_are_finished_when_it_stops(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        sent = [asyncio.ensure_future(harness.send(event())) for _ in range(20)]
        while not harness.woken:
            await asyncio.sleep(0)
        await harness.receiver.stop(5)
        given = await asyncio.gather(*sent, return_exceptions=True)
        acknowledged = [each for each in given if not isinstance(each, BaseException)]
        assert acknowledged
        assert all(each.status == 200 for each in acknowledged)
        assert len(await harness.kept()) >= len(acknowledged)


async def test_an_address_that_is_taken_is_told_with_the_remedy(tmp_path: Path) -> None:
    async with receiving(tmp_path) as harness:
        settings = ReceiverSettings(
            listen=f"127.0.0.1:{harness.receiver.port}", public_url="https://store.example"
        )
        second = Receiver(
            settings,
            {},
            harness.ledger,
            harness.tracker,
            clock=harness.clock,
            wake=lambda store: None,
        )
        with pytest.raises(ConfigError, match=r"\[receiver\]"):
            await second.start()
