"""A community kept in step: catalogue, availability, subscription, orders, against the sandbox."""

import asyncio
import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlmodel import col

from tests.support.community_harness import KEY, CommunityHarness, community_harness
from tests.support.sandbox_driver import item, until
from tests.support.sandbox_hall import HALL, SEEDS, at
from tillbridge.communities import catalogue
from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown, ServiceError
from tillbridge.ledger.community import get_parent, get_records, parent_of, tied_children
from tillbridge.ledger.models import CommunityRecord, Delivery, OrderRow
from tillbridge.ledger.orders import insert_order
from tillbridge.model.community import Record
from tillbridge.model.order import OrderState


async def mirrored(harness: CommunityHarness) -> dict[str, Record]:
    records = await harness.ledger.read(lambda connection: get_records(connection, KEY))
    return {str(each.external_id): each for each in records if each.kind == "item"}


async def outcomes(harness: CommunityHarness) -> list[str]:
    rows = await harness.ledger.read(
        lambda connection: [
            row.outcome for row in connection.execute(select(Delivery).order_by(col(Delivery.id)))
        ]
    )
    return list(rows)


async def status_of(harness: CommunityHarness, order_id: str) -> str | None:
    known = await harness.ledger.read(lambda connection: get_parent(connection, KEY, order_id))
    return None if known is None else known.status


# The catalogue


async def test_the_mirror_is_whole_at_first_and_then_follows_what_changes(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        state = await harness.flow.mirror.state()
        assert (state["stores"], state["categories"], state["items"]) == (2, 1, 4)
        toast = (await mirrored(harness))["toast"]
        assert toast.body["modifier_groups"][0]["modifiers"][0]["name"] == "Egg"

        await harness.hall.bridge.jump(60)
        await harness.flow.mirror.round()
        await harness.hall.bridge.jump(60)
        tea = {"menu_name": "Tea", "items": [item("tea", 350)]}
        await harness.hall.bridge.call("POST", "/pos/stores/st_tea/menus", tea)
        await harness.hall.bridge.call(
            "POST", "/pos/stores/st_tea/menus/batch", {"delete": ["soup"]}
        )
        await harness.flow.mirror.round()
        now = await mirrored(harness)
        assert now["tea"].price == 350
        assert [each.store_id for each in now.values() if each.name == "Item soup"] == ["st_main"]
        log = (await harness.hall.bridge.control("GET", "/requests")).body["requests"]
        queries = [each["query"] for each in log if each["path"].endswith("/catalogue")]
        assert [bool(query) for query in queries] == [False, True, True]


async def test_what_silently_goes_is_noticed_by_the_daily_whole_read(tmp_path: Path) -> None:
    settings = replace(SEEDS, community_tells_removed=False)
    async with community_harness(tmp_path, settings) as harness:
        await harness.flow.mirror.round()
        await harness.hall.bridge.call(
            "POST", "/pos/stores/st_tea/menus/batch", {"delete": ["tea"]}
        )
        await harness.flow.mirror.round()
        assert "tea" in await mirrored(harness)
        harness.clock.ahead_ms = 86_400_000
        await harness.flow.mirror.round()
        assert "tea" not in await mirrored(harness)


async def test_a_mirror_that_was_lost_is_read_whole_again(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        await harness.ledger.write(lambda connection: connection.execute(delete(CommunityRecord)))
        await harness.flow.mirror.round()
        assert len(await mirrored(harness)) == 3  # two stores have a soup


# Our word on items


async def test_an_item_is_off_in_the_community_alone_until_it_is_restored(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        tea = (await mirrored(harness))["tea"].record_id
        await harness.flow.overrides.set(tea, available=False, until=None, by="staff")
        await harness.flow.overrides.push()
        detail = await harness.flow.context.calls.item(tea)
        assert (detail.body["merchant_available"], detail.community_available) == (True, False)
        assert (await harness.flow.overrides.all())[tea].sent_at is not None
        await harness.flow.overrides.push()
        assert await harness.calls(f"/catalogue/items/{tea}", "PATCH") == 1  # told once

        await harness.flow.overrides.set(tea, available=True, until=None, by="staff")
        await harness.flow.overrides.push()
        assert (await harness.flow.context.calls.item(tea)).community_available is True
        assert await harness.flow.overrides.all() == {}


async def test_a_word_outlives_a_service_that_is_down(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        tea = (await mirrored(harness))["tea"].record_id
        await harness.hall.bridge.control(
            "POST", "/faults", {"action": "error", "status": 503, "method": "PATCH", "count": 1}
        )
        await harness.flow.overrides.set(tea, available=False, until=None, by="staff")
        with pytest.raises(ServiceDown):
            await harness.flow.overrides.push()
        await harness.flow.overrides.push()
        assert (await harness.service())["items_off"] == ["tea"]


async def test_a_call_that_arrives_after_the_next_one_puts_no_item_on_sale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with community_harness(tmp_path) as harness:
        overrides = harness.flow.overrides
        await harness.flow.mirror.round()
        tea = (await mirrored(harness))["tea"].record_id
        lost = {"action": "error", "status": 504, "when": "after", "method": "PATCH", "count": 1}
        await harness.hall.bridge.control("POST", "/faults", lost)
        await overrides.set(tea, available=True, until=None, by="staff")
        with contextlib.suppress(OutcomeUnknown):
            await overrides.push()
        await overrides.set(tea, available=False, until=None, by="staff")
        await overrides.push()
        await harness.hall.patch("tea", {"available": True})  # the first call, once more
        await harness.flow.mirror.whole()
        assert (await overrides.all())[tea].sent_at is None, "it is sent again"
        monkeypatch.setattr(catalogue, "LATE_S", 0.0)
        await overrides.push()
        assert (await overrides.all())[tea].sent_at is not None
        assert (await harness.service())["items_off"] == ["tea"]


async def test_an_item_that_somebody_else_restored_is_restored_here(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        tea = (await mirrored(harness))["tea"].record_id
        await harness.flow.overrides.set(tea, available=False, until=None, by="staff")
        await harness.flow.overrides.push()
        await harness.flow.mirror.whole()
        assert tea in await harness.flow.overrides.all()
        await harness.hall.bridge.jump(5)
        await harness.hall.patch("tea", {"available": True})
        await asyncio.sleep(0.01)  # the wall clock's milliseconds tell the order
        await harness.flow.mirror.whole()
        assert await harness.flow.overrides.all() == {}


async def test_a_word_on_an_item_that_is_gone_is_let_go(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.overrides.set("prd_gone", available=False, until=None, by="staff")
        await harness.flow.overrides.push()
        assert await harness.flow.overrides.all() == {}


# The subscription


async def test_a_subscription_is_made_once_and_its_secret_is_kept_first(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        await harness.flow.subscriber.reconcile()
        made = await harness.subscription()
        assert (made["name"], made["events"]) == ("tillbridge", ["*"])
        assert made["url"] == f"{harness.receiver.url}/webhooks/{KEY}"
        assert harness.flow.subscriber.webhook_id == made["webhook_id"]
        stored = b"".join(path.read_bytes() for path in tmp_path.glob("ledger*"))
        assert made["secret"].encode() not in stored


async def test_a_test_delivery_arrives_and_is_seen_on_both_sides(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        tested = await harness.flow.subscriber.test()
        assert tested is not None
        assert tested.ok
        await harness.flow.orders.process_deliveries()
        assert await outcomes(harness) == ["kept"]
        assert harness.woken == [KEY]


async def test_a_subscription_is_brought_in_line_by_what_differs(tmp_path: Path) -> None:
    async with community_harness(
        tmp_path, events=["order.created"], webhook_name="Till 2"
    ) as harness:
        await harness.flow.subscriber.reconcile()
        made = await harness.subscription()
        assert (made["name"], made["events"]) == ("Till 2", ["order.created"])
        await harness.hall.call(
            "PUT", f"/webhooks/{made['webhook_id']}", {"is_active": False, "events": ["*"]}
        )
        await harness.flow.subscriber.reconcile()
        now = await harness.subscription()
        assert (now["is_active"], now["events"]) == (True, ["order.created"])
        log = (await harness.hall.bridge.control("GET", "/requests")).body["requests"]
        (_by_hand, ours) = [each["body"] for each in log if each["method"] == "PUT"][-2:]
        assert sorted(ours) == ["events", "is_active"]


async def test_a_subscription_that_is_gone_is_made_again(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        first = await harness.subscription()
        await harness.hall.call("DELETE", f"/webhooks/{first['webhook_id']}")
        await harness.flow.subscriber.reconcile()
        second = await harness.subscription()
        assert second["webhook_id"] != first["webhook_id"]
        tested = await harness.flow.subscriber.test()
        assert tested is not None
        assert tested.ok


async def test_a_lost_secret_means_a_new_subscription(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        await asyncio.to_thread(harness.ledger.vault.drop, f"{KEY}/webhook_secrets")
        await harness.flow.subscriber.reconcile()
        assert len((await harness.service())["webhooks"]) == 2
        tested = await harness.flow.subscriber.test()
        assert tested is not None
        assert tested.ok


async def test_remaking_leaves_one_subscription_with_another_secret(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        first = await harness.subscription()
        await harness.flow.subscriber.remake()
        second = await harness.subscription()
        assert second["secret"] != first["secret"]
        assert await harness.send("order.created", {}) == "200"


async def test_events_that_do_not_arrive_are_a_problem_until_they_do(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        webhook_id = (await harness.subscription())["webhook_id"]
        subscriber = harness.flow.subscriber
        wrong = replace(subscriber.wanted, url=f"{harness.receiver.url}/webhooks/nowhere")
        right, subscriber.wanted = subscriber.wanted, wrong
        await subscriber.reconcile()
        await harness.send("order.created", {})
        await subscriber.reconcile()
        (problem,) = harness.tracker.current()
        assert problem.code == "community.deliveries_failing"
        assert "404" in problem.text
        assert wrong.url in problem.fix
        subscriber.wanted = right
        await subscriber.reconcile()  # the test that follows the change arrives
        assert harness.problems() == []
        assert (await harness.subscription())["webhook_id"] == webhook_id


# Orders


async def placed(harness: CommunityHarness) -> dict[str, Any]:
    order = await harness.hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    await harness.flow.orders.process_deliveries()
    return order


async def test_an_order_is_kept_with_its_children_tied_to_the_stores_orders(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        order = await placed(harness)
        ours = next(c["order_id"] for c in order["child_orders"] if c["store_id"] == "st_main")
        row = OrderRow(
            store="main",
            order_id=ours,
            received_at=1,
            payload="{}",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        await harness.ledger.write(lambda connection: insert_order(connection, row))
        children = await harness.ledger.read(
            lambda connection: tied_children(connection, KEY, order["order_id"])
        )
        assert {each.child.store_id: each.local_store for each in children} == {
            "st_main": "main",
            "st_tea": None,
        }
        parent = await harness.ledger.read(lambda connection: parent_of(connection, ours))
        assert parent is not None
        assert (parent.order_id, parent.status) == (order["order_id"], "pending")


async def test_events_twice_late_and_out_of_turn_end_with_what_the_service_says(
    tmp_path: Path,
) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        await harness.hall.bridge.control("POST", "/webhooks/pause")
        order = await harness.hall.order(at("st_main", "soup"), wait=False)
        (child,) = order["child_orders"]
        for step in ("accept", "status", "ready"):
            await harness.hall.pos(child["order_id"], step)
        await harness.hall.bridge.control("POST", "/webhooks/resume")
        await until(lambda: len(harness.woken) == 4)
        await harness.flow.orders.process_deliveries()
        assert await status_of(harness, order["order_id"]) == "ready"

        stale = {"previous_status": "pending", "order": {**order, "status": "confirmed"}}
        assert await harness.send("order.status_changed", stale) == "200"
        assert await harness.send("order.created", {"order": order}, event_id="evt_again") == "200"
        assert await harness.send("order.created", {"order": order}, event_id="evt_again") == "200"
        reads = await harness.calls(f"/orders/{order['order_id']}")
        await harness.flow.orders.process_deliveries()
        assert await status_of(harness, order["order_id"]) == "ready"
        assert (await outcomes(harness))[-2:] == ["read", "read"]  # the third is the second
        assert await harness.calls(f"/orders/{order['order_id']}") == reads + 2


async def test_a_late_event_waits_until_the_order_can_be_read(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        order = await placed(harness)
        stale = {"previous_status": "ready", "order": {**order, "status": "delivered"}}
        await harness.send("order.status_changed", stale)
        rule = {"action": "error", "status": 503, "path": "/orders/", "count": 1}
        await harness.hall.bridge.control("POST", "/faults", rule)
        with pytest.raises(ServiceDown):
            await harness.flow.orders.process_deliveries()
        assert await status_of(harness, order["order_id"]) == "pending"
        await harness.flow.orders.process_deliveries()
        assert await status_of(harness, order["order_id"]) == "pending"
        assert (await outcomes(harness))[-1] == "read"


async def test_an_event_without_an_order_is_kept_and_said(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        await harness.send("order.created", {"order": {"status": "pending"}})
        await harness.send("store.joined", {"store_id": "st_x"})
        await harness.flow.orders.process_deliveries()
        assert await outcomes(harness) == ["unreadable", "kept"]


async def test_a_part_of_ours_that_never_arrives_is_a_problem(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        order = await placed(harness)
        ours = next(c["order_id"] for c in order["child_orders"] if c["store_id"] == "st_main")
        harness.clock.ahead_ms = 3_600_000
        await harness.flow.orders.look_for_children()
        assert harness.problems() == [("community.order_missing", ours)]
        row = OrderRow(
            store="main",
            order_id=ours,
            received_at=1,
            payload="{}",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        await harness.ledger.write(lambda connection: insert_order(connection, row))
        await harness.flow.orders.look_for_children()
        assert harness.problems() == []


# The receiver


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"signature": "wrong"}, "401"),
        ({"signature": "none"}, "401"),
        ({"secret": "another"}, "401"),
        ({"body_community_id": "com_other"}, "401"),
        ({"raw_body": "[1]"}, "400"),
        ({"headers": {"Content-Encoding": "gzip"}}, "415"),
        ({}, "200"),
    ],
)
async def test_the_receiver_takes_what_the_subscriptions_secret_signed(
    tmp_path: Path, more: dict[str, object], status: str
) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        assert await harness.send("order.created", {}, **more) == status
        assert len(await outcomes(harness)) == (status == "200")


async def test_bad_signatures_are_the_communitys_problem(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.subscriber.reconcile()
        for _number in range(3):
            await harness.send("order.created", {}, signature="wrong")
        (problem,) = harness.tracker.current()
        assert (problem.code, problem.store) == ("community.bad_signature", KEY)
        assert "remake hall" in problem.fix
        await harness.send("order.created", {})
        assert harness.problems() == []


# All together


async def test_the_running_flow_keeps_all_of_it_and_tells_what_fails(tmp_path: Path) -> None:
    async with community_harness(tmp_path, sync_s=0.2, check_s=0.2) as harness:
        days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
        always = "".join(f'{each} = ["00:00-24:00"]\n' for each in days)  # an order is placed
        write_hours(tmp_path, f'timezone = "Europe/Prague"\n[weekly]\n{always}')
        running = [asyncio.create_task(each.run()) for each in harness.flow.workers]
        try:
            await until(lambda: harness.flow.subscriber.webhook_id is not None)
            order = await harness.hall.order(at("st_main", "soup"))
            harness.flow.deliveries_arrived()

            async def there() -> bool:
                return await status_of(harness, order["order_id"]) == "pending"

            async with asyncio.timeout(10):
                while not (await there() and await mirrored(harness)):
                    await asyncio.sleep(0.02)
            rule = {"action": "error", "status": 403, "path": "/catalogue$", "count": 1}
            await harness.hall.bridge.control("POST", "/faults", rule)
            await until(lambda: ("community.unavailable", "catalogue") in harness.problems())
            await until(lambda: harness.problems() == [])
            assert (await hours_there(harness))["timezone"] == "Europe/Prague"
        finally:
            for each in running:
                each.cancel()
            await asyncio.wait(running)


async def test_an_unanswered_availability_is_read_before_it_is_sent_again(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        await harness.flow.mirror.round()
        tea = (await mirrored(harness))["tea"].record_id
        rule = {"action": "drop", "when": "after", "method": "PATCH", "count": 1}
        await harness.hall.bridge.control("POST", "/faults", rule)
        await harness.flow.overrides.set(tea, available=False, until=None, by="staff")
        await harness.flow.overrides.push()
        assert (await harness.service())["items_off"] == ["tea"]
        told = (await harness.hall.bridge.control("GET", "/requests")).body["requests"]
        assert [each["method"] for each in told].count("PATCH") == 1


async def test_another_community_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        with pytest.raises(Refused) as refused:
            await harness.flow.context.calls.order("ord_no")
        assert refused.value.status == 404
        answer = await harness.hall.call("GET", f"{HALL}/orders/ord_no")
        assert answer.status == 404


# Opening hours

WEEK = """timezone = "Europe/Prague"
[weekly]
monday = ["11:00-15:00"]
tuesday = ["11:00-15:00"]
wednesday = ["11:00-15:00"]
thursday = ["11:00-15:00"]
friday = ["11:00-24:00"]
saturday = ["11:00-24:00"]
sunday = []
"""


def write_hours(folder: Path, text: str) -> None:
    """Write the file as if it had been there for a while."""
    path = folder / "hours.toml"
    path.write_text(text, "utf-8")
    os.utime(path, ns=(0, time.time_ns() - 5_000_000_000))


async def hours_there(harness: CommunityHarness) -> Any:  # noqa: ANN401 -- any JSON value
    stores = (await harness.hall.catalogue())["stores"]
    return next(each["hours"] for each in stores if each["store_id"] == "st_main")


async def test_hours_are_pushed_once_and_again_when_their_file_changes(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        write_hours(tmp_path, WEEK)
        await harness.flow.hours.round()
        there = await hours_there(harness)
        assert there["timezone"] == "Europe/Prague"
        assert there["weekly"]["friday"] == [{"open": "11:00", "close": "24:00"}]
        assert there["weekly"]["sunday"] == []
        await harness.flow.hours.round()
        assert await harness.calls("/stores/st_main/hours", "PUT") == 1

        closed = WEEK + '[[overrides]]\ndate = 2099-12-24\nclosed = true\nreason = "Eve"\n'
        write_hours(tmp_path, closed)
        await harness.flow.hours.round()
        assert (await hours_there(harness))["overrides"] == [
            {"date": "2099-12-24", "closed": True, "reason": "Eve"}
        ]
        (listed,) = await harness.flow.hours.listed()
        assert listed.pushed_at is not None


async def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        (tmp_path / "hours.toml").write_text("timezone =", "utf-8")
        await harness.flow.hours.round()
        assert harness.problems() == []


async def test_hours_that_cannot_be_read_leave_those_that_were_pushed(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        write_hours(tmp_path, WEEK)
        await harness.flow.hours.round()
        write_hours(tmp_path, WEEK.replace("11:00-15:00", "25:00-26:00"))
        await harness.flow.hours.round()
        (problem,) = harness.tracker.current()
        assert (problem.code, problem.subject) == ("community.hours_not_pushed", "main")
        assert "main" in problem.text
        assert (await hours_there(harness))["weekly"]["monday"] == [
            {"open": "11:00", "close": "15:00"}
        ]
        write_hours(tmp_path, WEEK)
        await harness.flow.hours.round()
        assert harness.problems() == []


async def test_hours_that_the_service_refuses_are_not_sent_again_and_again(tmp_path: Path) -> None:
    async with community_harness(tmp_path) as harness:
        write_hours(tmp_path, WEEK)
        rule = {"action": "error", "status": 400, "path": "/hours$", "count": 5}
        await harness.hall.bridge.control("POST", "/faults", rule)
        for _round in range(3):
            await harness.flow.hours.round()
        assert await harness.calls("/stores/st_main/hours", "PUT") == 1
        assert harness.problems() == [("community.hours_not_pushed", "main")]
        await harness.hall.bridge.control("DELETE", "/faults")
        await harness.flow.hours.push_all()
        assert harness.problems() == []


# A secret on its way


async def test_deliveries_may_come_before_the_answer_that_shows_their_secret(
    tmp_path: Path,
) -> None:
    async with community_harness(tmp_path) as harness:
        seen: list[str] = []
        harness.flow.subscriber.on_secret_expected = lambda key: seen.append(f"expected {key}")

        async def there(key: str) -> None:
            seen.append(f"there {key}")

        harness.flow.subscriber.on_secret = there
        rule = {"action": "error", "status": 403, "path": "/webhooks$", "count": 1}
        await harness.hall.bridge.control("POST", "/faults", rule)
        with pytest.raises(ServiceError):
            await harness.flow.subscriber.reconcile()
        await harness.flow.subscriber.reconcile()
        assert seen == [f"expected {KEY}", f"there {KEY}"] * 2
