"""What the receiver answers, and what is on disk when it does."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from tests.support.receiver_house import SECRET, answer, event, head, receiving
from tillbridge.config import ReceiverSettings
from tillbridge.core.errors import ConfigError, LedgerUnwritable
from tillbridge.ledger.models import Delivery
from tillbridge.ledger.writer import Storage
from tillbridge.receiver.receiver import Receiver


async def test_a_delivery_is_on_disk_when_it_is_acknowledged(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        body = event(event_id="evt_1", event_type="unheard.of")
        given = await house.send(body, headers={"X-Service-Delivery-Id": "dlv_1"})
        assert (given.status, given.body) == (200, b"")
        rows = await house.ledger.read(
            lambda connection: connection.execute(select(Delivery)).mappings().all()
        )
        assert [dict(row) for row in rows] == [
            {
                "id": 1,
                "store": "main",
                "delivery_id": "dlv_1",
                "event_id": "evt_1",
                "event_type": "unheard.of",
                "received_at": house.clock.at_ms,
                "body": body,
                "handled_at": None,
                "outcome": "",
            }
        ]
        assert house.woken == ["main"]


async def test_a_redelivery_is_acknowledged_and_wakes_nobody(tmp_path: Path) -> None:
    async with receiving(tmp_path, success_status=204) as house:
        body = event(event_id="evt_1")
        for delivery in ("dlv_1", "dlv_1", "dlv_2"):
            given = await house.send(body, headers={"X-Service-Delivery-Id": delivery})
            assert given.status == 204
        assert await house.kept() == ["evt_1"]
        assert house.woken == ["main"]
        given = await house.send(
            event(event_id="evt_2"), headers={"X-Service-Delivery-Id": "dlv_1"}
        )
        assert given.status == 204
        assert await house.kept() == ["evt_1", "evt_2"]


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
        (200, {"headers": {"Content-Type": None}}),
        (200, {"headers": {"X-Service-Delivery-Id": None}}),
        (200, {"headers": {"X-Service-Delivery-Id": "\udcff" * 300}}),
        (200, {"headers": {"Expect": "100-continue"}}),
    ],
)
async def test_each_delivery_gets_the_answer_of_the_contract(
    status: int, how: dict, tmp_path: Path
) -> None:
    async with receiving(tmp_path) as house:
        given = await house.send(event(), **how)
        assert given.status == status
        assert bool(await house.kept()) == (status == 200)
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
    async with receiving(tmp_path) as house:
        assert (await house.send(body)).status == status
        assert bool(await house.kept()) == (status == 200)


async def test_the_signature_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        assert (await house.send(b"[" * 200_000, secret="wrong")).status == 401


async def test_a_body_without_length_is_refused(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        for extra in ({}, {"Transfer-Encoding": "chunked"}):
            given = await house.send(b"", headers={"Content-Length": None, **extra})
            assert given.status == 411


async def test_a_body_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    async with receiving(tmp_path, max_body_bytes=2048) as house:
        assert (await house.send(event(data="x" * 1000))).status == 200
        assert (await house.send(event(data="x" * 3000))).status == 413
        given = await house.send(b"", headers={"Content-Length": str(10**12)})
        assert given.status == 413
        assert given.headers["connection"] == "close"


async def test_the_secret_before_counts_after_a_rotation(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        now = house.clock.at_ms
        secrets = [{"secret": "whsec_new", "since_ms": now}, {"secret": SECRET, "since_ms": 0}]
        house.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        assert (await house.send(event(), secret="whsec_new")).status == 401
        await house.receiver.refresh("main")
        assert (await house.send(event(), secret="whsec_new")).status == 200
        assert (await house.send(event())).status == 200
        house.clock.forward(24 * 3600)
        assert (await house.send(event())).status == 401
        assert (await house.send(event(), secret="whsec_new")).status == 200


async def test_a_delivery_waits_for_a_secret_that_is_on_its_way(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        house.receiver.expect("main")
        waiting = asyncio.create_task(house.send(event(), secret="whsec_new"))
        assert (await house.send(event())).status == 200  # what is known waits for nothing
        assert not waiting.done()
        secrets = [{"secret": "whsec_new", "since_ms": 5}, {"secret": SECRET, "since_ms": 0}]
        house.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        await house.receiver.refresh("main")
        assert (await waiting).status == 200
        assert (await house.send(event(), secret="whsec_wrong")).status == 401


async def test_a_delivery_of_a_community_waits_for_its_secret_too(tmp_path: Path) -> None:
    async with receiving(tmp_path, communities={"communities/hall": "com_1"}) as house:
        house.receiver.expect("communities/hall")
        body = event(community_id="com_1", store_id=..., location_id=...)
        waiting = asyncio.create_task(
            house.send(body, path="/webhooks/communities/hall", secret="whsec_hall")
        )
        await asyncio.sleep(0.05)
        assert not waiting.done()
        secrets = [{"secret": "whsec_hall", "since_ms": 5}]
        house.ledger.vault.put("communities/hall/webhook_secrets", json.dumps(secrets))
        await house.receiver.refresh_community("communities/hall")
        assert (await waiting).status == 200


async def test_a_secret_speaks_for_the_location_of_its_integration(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        secrets = [
            {"secret": "whsec_new", "since_ms": house.clock.at_ms, "location_id": "loc-9"},
            {"secret": SECRET, "since_ms": 0, "location_id": "loc-0"},
        ]
        house.ledger.vault.put("main/webhook_secrets", json.dumps(secrets))
        await house.receiver.refresh("main")
        for secret, location, status in (
            ("whsec_new", "loc-9", 200),
            ("whsec_new", "loc-0", 401),
            (SECRET, "loc-0", 200),
            (SECRET, "loc-9", 401),
        ):
            given = await house.send(event(location_id=location), secret=secret)
            assert given.status == status, (secret, location)


async def test_nothing_is_acknowledged_that_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving(tmp_path) as house:

        async def refuse(delivery: Delivery) -> bool:
            raise LedgerUnwritable("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(house.ledger, "deliver", refuse)
            given = await house.send(event())
        assert given.status == 503
        assert "disk" not in repr(given)
        assert house.woken == []


async def test_health_tells_whether_deliveries_can_be_kept(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        assert (await house.send(b"", method="GET", path="/healthz")).status == 200
        house.ledger._storage_changed(Storage("disk I/O error"))
        assert (await house.send(b"", method="GET", path="/healthz")).status == 503
        assert (await house.send(b"", path="/healthz")).status == 405


async def test_several_bad_signatures_are_a_problem_until_a_good_one(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        with capture_logs() as logs:
            for _ in range(2):
                await house.send(b"strange", secret="wrong")
                house.clock.forward(400)
            await house.send(b"strange", secret="wrong")
            assert not house.tracker.is_open("receiver.bad_signature", "main"), "too long apart"
            await house.send(b"strange", secret="wrong")
            house.clock.forward(100)
            await house.send(b"strange", secret="wrong")
            assert house.tracker.is_open("receiver.bad_signature", "main")
            await house.send(event(), store="other", secret="wrong")
            assert not house.tracker.is_open("receiver.bad_signature", "other")
            await house.send(event())
            assert not house.tracker.is_open("receiver.bad_signature", "main")
        refused = [line for line in logs if line["event"] == "delivery.refused"]
        assert {(line["store"], line["reason"]) for line in refused} == {
            ("main", "signature"),
            ("other", "signature"),
        }
        assert len(refused) < 6, "a flood of them is not a flood of lines"


async def test_when_all_of_the_last_deliveries_are_refused_no_order_arrives(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        for _hour in range(3):
            assert house.tracker.current() == ()
            await house.send(event(), secret="wrong")
            house.clock.forward(3600)
        (told,) = house.tracker.current()
        assert told.code == "receiver.all_refused"
        assert "All of the last 3 deliveries were refused" in told.text
        assert "rotate-secret main" in told.fix
        await house.send(event(), secret="wrong")
        (told,) = house.tracker.current()
        assert told.detail["count"] == 4
        await house.send(event())
        assert house.tracker.current() == ()


async def test_strangers_who_do_not_come_again_are_let_go_after_a_day(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        for _ in range(3):
            await house.send(b"strange", secret="wrong")
        await house.receiver.refusals.close_stale()
        assert house.tracker.is_open("receiver.bad_signature", "main")
        house.clock.forward(86_401)
        await house.receiver.refusals.close_stale()
        assert house.tracker.current() == ()


async def test_what_the_internet_invents_does_not_reach_the_log(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        with capture_logs() as logs:
            await house.send(event(), store="evil-name")
            async with house.connection() as (reader, writer):
                writer.write(b"\x16\x03\x01 this is TLS\r\n\r\n")
                assert (await answer(reader)).status == 400
        assert "evil" not in repr(logs)
        assert "TLS" not in repr(logs)


async def test_one_connection_may_carry_many_deliveries(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house, house.connection() as (reader, writer):
        for _ in range(3):
            body = event()
            writer.write(head(body))
            await writer.drain()
            writer.write(body)
            assert (await answer(reader)).status == 200
        assert len(await house.kept()) == 3


async def test_deliveries_under_way_are_finished_when_it_stops(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        sent = [asyncio.ensure_future(house.send(event())) for _ in range(20)]
        while not house.woken:
            await asyncio.sleep(0)
        await house.receiver.stop(5)
        given = await asyncio.gather(*sent, return_exceptions=True)
        acknowledged = [each for each in given if not isinstance(each, BaseException)]
        assert acknowledged
        assert all(each.status == 200 for each in acknowledged)
        assert len(await house.kept()) >= len(acknowledged)


async def test_an_address_that_is_taken_is_told_with_the_remedy(tmp_path: Path) -> None:
    async with receiving(tmp_path) as house:
        settings = ReceiverSettings(
            listen=f"127.0.0.1:{house.receiver.port}", public_url="https://store.example"
        )
        second = Receiver(
            settings, {}, house.ledger, house.tracker, clock=house.clock, wake=lambda store: None
        )
        with pytest.raises(ConfigError, match=r"\[receiver\]"):
            await second.start()
