"""A community kept in step: catalogue, availability, subscription, orders, against the sandbox."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlmodel import col

from tests.support.community_house import KEY, CommunityHouse, community_house
from tests.support.sandbox_driver import item, until
from tests.support.sandbox_hall import HALL, SEEDS, at
from tillbridge.core.errors import Refused, ServiceDown, ServiceError
from tillbridge.ledger.community import get_parent, get_records, parent_of, tied_children
from tillbridge.ledger.models import CommunityRecord, Delivery, OrderRow
from tillbridge.ledger.orders import insert_order
from tillbridge.model.community import Record
from tillbridge.model.order import OrderState


async def mirrored(house: CommunityHouse) -> dict[str, Record]:
    records = await house.ledger.read(lambda connection: get_records(connection, KEY))
    return {str(each.external_id): each for each in records if each.kind == "item"}


async def outcomes(house: CommunityHouse) -> list[str]:
    rows = await house.ledger.read(
        lambda connection: [
            row.outcome for row in connection.execute(select(Delivery).order_by(col(Delivery.id)))
        ]
    )
    return list(rows)


async def status_of(house: CommunityHouse, order_id: str) -> str | None:
    known = await house.ledger.read(lambda connection: get_parent(connection, KEY, order_id))
    return None if known is None else known.status


# The catalogue


async def test_the_mirror_is_whole_at_first_and_then_follows_what_changes(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        state = await house.flow.mirror.state()
        assert (state["stores"], state["categories"], state["items"]) == (2, 1, 4)
        toast = (await mirrored(house))["toast"]
        assert toast.body["modifier_groups"][0]["modifiers"][0]["name"] == "Egg"

        await house.hall.bridge.jump(60)
        await house.flow.mirror.round()
        await house.hall.bridge.jump(60)
        tea = {"menu_name": "Tea", "items": [item("tea", 350)]}
        await house.hall.bridge.call("POST", "/pos/stores/st_tea/menus", tea)
        await house.hall.bridge.call("POST", "/pos/stores/st_tea/menus/batch", {"delete": ["soup"]})
        await house.flow.mirror.round()
        now = await mirrored(house)
        assert now["tea"].price == 350
        assert [each.store_id for each in now.values() if each.name == "Item soup"] == ["st_main"]
        log = (await house.hall.bridge.control("GET", "/requests")).body["requests"]
        queries = [each["query"] for each in log if each["path"].endswith("/catalogue")]
        assert [bool(query) for query in queries] == [False, True, True]


async def test_what_silently_goes_is_noticed_by_the_daily_whole_read(tmp_path: Path) -> None:
    settings = replace(SEEDS, community_tells_removed=False)
    async with community_house(tmp_path, settings) as house:
        await house.flow.mirror.round()
        await house.hall.bridge.call("POST", "/pos/stores/st_tea/menus/batch", {"delete": ["tea"]})
        await house.flow.mirror.round()
        assert "tea" in await mirrored(house)
        house.clock.ahead_ms = 86_400_000
        await house.flow.mirror.round()
        assert "tea" not in await mirrored(house)


async def test_a_mirror_that_was_lost_is_read_whole_again(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        await house.ledger.write(lambda connection: connection.execute(delete(CommunityRecord)))
        await house.flow.mirror.round()
        assert len(await mirrored(house)) == 3  # two stores have a soup


# Our word on items


async def test_an_item_is_off_in_the_community_alone_until_it_is_restored(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        tea = (await mirrored(house))["tea"].record_id
        await house.flow.overrides.set(tea, available=False, until=None, by="staff")
        await house.flow.overrides.push()
        detail = await house.flow.context.calls.item(tea)
        assert (detail.merchant_available, detail.community_available) == (True, False)
        assert (await house.flow.overrides.all())[tea].sent_at is not None
        await house.flow.overrides.push()
        assert await house.calls(f"/catalogue/items/{tea}", "PATCH") == 1  # told once

        await house.flow.overrides.set(tea, available=True, until=None, by="staff")
        await house.flow.overrides.push()
        assert (await house.flow.context.calls.item(tea)).community_available is True
        assert await house.flow.overrides.all() == {}


async def test_a_word_outlives_a_service_that_is_down(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        tea = (await mirrored(house))["tea"].record_id
        await house.hall.bridge.control(
            "POST", "/faults", {"action": "error", "status": 503, "method": "PATCH", "count": 1}
        )
        await house.flow.overrides.set(tea, available=False, until=None, by="staff")
        with pytest.raises(ServiceDown):
            await house.flow.overrides.push()
        await house.flow.overrides.push()
        assert (await house.service())["items_off"] == ["tea"]


async def test_an_item_that_somebody_else_restored_is_restored_here(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        tea = (await mirrored(house))["tea"].record_id
        await house.flow.overrides.set(tea, available=False, until=None, by="staff")
        await house.flow.overrides.push()
        await house.flow.mirror.whole()
        assert tea in await house.flow.overrides.all()
        await house.hall.bridge.jump(5)
        await house.hall.patch("tea", {"available": True})
        await asyncio.sleep(0.01)  # the wall clock's milliseconds tell the order
        await house.flow.mirror.whole()
        assert await house.flow.overrides.all() == {}


async def test_a_word_on_an_item_that_is_gone_is_let_go(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.overrides.set("prd_gone", available=False, until=None, by="staff")
        await house.flow.overrides.push()
        assert await house.flow.overrides.all() == {}


# The subscription


async def test_a_subscription_is_made_once_and_its_secret_is_kept_first(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        await house.flow.subscriber.reconcile()
        made = await house.subscription()
        assert (made["name"], made["events"]) == ("tillbridge", ["*"])
        assert made["url"] == f"{house.receiver.url}/webhooks/{KEY}"
        assert house.flow.subscriber.webhook_id == made["webhook_id"]
        stored = b"".join(path.read_bytes() for path in tmp_path.glob("ledger*"))
        assert made["secret"].encode() not in stored


async def test_a_test_delivery_arrives_and_is_seen_on_both_sides(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        tested = await house.flow.subscriber.test()
        assert tested is not None
        assert tested.ok
        await house.flow.orders.take_in()
        assert await outcomes(house) == ["kept"]
        assert house.woken == [KEY]


async def test_a_subscription_is_brought_in_line_by_what_differs(tmp_path: Path) -> None:
    async with community_house(tmp_path, events=["order.created"], webhook_name="Till 2") as house:
        await house.flow.subscriber.reconcile()
        made = await house.subscription()
        assert (made["name"], made["events"]) == ("Till 2", ["order.created"])
        await house.hall.call(
            "PUT", f"/webhooks/{made['webhook_id']}", {"is_active": False, "events": ["*"]}
        )
        await house.flow.subscriber.reconcile()
        now = await house.subscription()
        assert (now["is_active"], now["events"]) == (True, ["order.created"])
        log = (await house.hall.bridge.control("GET", "/requests")).body["requests"]
        (_by_hand, ours) = [each["body"] for each in log if each["method"] == "PUT"][-2:]
        assert sorted(ours) == ["events", "is_active"]


async def test_a_subscription_that_is_gone_is_made_again(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        first = await house.subscription()
        await house.hall.call("DELETE", f"/webhooks/{first['webhook_id']}")
        await house.flow.subscriber.reconcile()
        second = await house.subscription()
        assert second["webhook_id"] != first["webhook_id"]
        tested = await house.flow.subscriber.test()
        assert tested is not None
        assert tested.ok


async def test_a_lost_secret_means_a_new_subscription(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        await asyncio.to_thread(house.ledger.vault.drop, f"{KEY}/webhook_secrets")
        await house.flow.subscriber.reconcile()
        assert len((await house.service())["webhooks"]) == 2
        tested = await house.flow.subscriber.test()
        assert tested is not None
        assert tested.ok


async def test_remaking_leaves_one_subscription_with_another_secret(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        first = await house.subscription()
        await house.flow.subscriber.remake()
        second = await house.subscription()
        assert second["secret"] != first["secret"]
        assert await house.send("order.created", {}) == "200"


async def test_events_that_do_not_arrive_are_a_problem_until_they_do(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        webhook_id = (await house.subscription())["webhook_id"]
        subscriber = house.flow.subscriber
        wrong = replace(subscriber.wanted, url=f"{house.receiver.url}/webhooks/nowhere")
        right, subscriber.wanted = subscriber.wanted, wrong
        await subscriber.reconcile()
        await house.send("order.created", {})
        await subscriber.reconcile()
        (problem,) = house.tracker.current()
        assert problem.code == "community.deliveries_failing"
        assert "404" in problem.text
        assert wrong.url in problem.fix
        subscriber.wanted = right
        await subscriber.reconcile()  # the test that follows the change arrives
        assert house.problems() == []
        assert (await house.subscription())["webhook_id"] == webhook_id


# Orders


async def placed(house: CommunityHouse) -> dict[str, Any]:
    order = await house.hall.order(at("st_main", "soup"), at("st_tea", "tea"))
    await house.flow.orders.take_in()
    return order


async def test_an_order_is_kept_with_its_children_tied_to_the_stores_orders(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        order = await placed(house)
        ours = next(c["order_id"] for c in order["child_orders"] if c["store_id"] == "st_main")
        row = OrderRow(
            store="main",
            order_id=ours,
            received_at=1,
            payload="{}",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        await house.ledger.write(lambda connection: insert_order(connection, row))
        children = await house.ledger.read(
            lambda connection: tied_children(connection, KEY, order["order_id"])
        )
        assert {each.child.store_id: each.local_store for each in children} == {
            "st_main": "main",
            "st_tea": None,
        }
        parent = await house.ledger.read(lambda connection: parent_of(connection, ours))
        assert parent is not None
        assert (parent.order_id, parent.status) == (order["order_id"], "pending")


async def test_events_twice_late_and_out_of_turn_end_with_what_the_service_says(
    tmp_path: Path,
) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        await house.hall.bridge.control("POST", "/webhooks/pause")
        order = await house.hall.order(at("st_main", "soup"), wait=False)
        (child,) = order["child_orders"]
        for step in ("accept", "status", "ready"):
            await house.hall.pos(child["order_id"], step)
        await house.hall.bridge.control("POST", "/webhooks/resume")
        await until(lambda: len(house.woken) == 4)
        await house.flow.orders.take_in()
        assert await status_of(house, order["order_id"]) == "ready"

        stale = {"previous_status": "pending", "order": {**order, "status": "confirmed"}}
        assert await house.send("order.status_changed", stale) == "200"
        assert await house.send("order.created", {"order": order}, event_id="evt_again") == "200"
        assert await house.send("order.created", {"order": order}, event_id="evt_again") == "200"
        reads = await house.calls(f"/orders/{order['order_id']}")
        await house.flow.orders.take_in()
        assert await status_of(house, order["order_id"]) == "ready"
        assert (await outcomes(house))[-2:] == ["read", "read"]  # the third is the second
        assert await house.calls(f"/orders/{order['order_id']}") == reads + 2


async def test_a_late_event_waits_until_the_order_can_be_read(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        order = await placed(house)
        stale = {"previous_status": "ready", "order": {**order, "status": "delivered"}}
        await house.send("order.status_changed", stale)
        rule = {"action": "error", "status": 503, "path": "/orders/", "count": 1}
        await house.hall.bridge.control("POST", "/faults", rule)
        with pytest.raises(ServiceDown):
            await house.flow.orders.take_in()
        assert await status_of(house, order["order_id"]) == "pending"
        await house.flow.orders.take_in()
        assert await status_of(house, order["order_id"]) == "pending"
        assert (await outcomes(house))[-1] == "read"


async def test_an_event_without_an_order_is_kept_and_said(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        await house.send("order.created", {"order": {"status": "pending"}})
        await house.send("store.joined", {"store_id": "st_x"})
        await house.flow.orders.take_in()
        assert await outcomes(house) == ["unreadable", "kept"]


async def test_a_part_of_ours_that_never_arrives_is_a_problem(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        order = await placed(house)
        ours = next(c["order_id"] for c in order["child_orders"] if c["store_id"] == "st_main")
        house.clock.ahead_ms = 3_600_000
        await house.flow.orders.look_for_children()
        assert house.problems() == [("community.order_missing", ours)]
        row = OrderRow(
            store="main",
            order_id=ours,
            received_at=1,
            payload="{}",
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        await house.ledger.write(lambda connection: insert_order(connection, row))
        await house.flow.orders.look_for_children()
        assert house.problems() == []


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
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        assert await house.send("order.created", {}, **more) == status
        assert len(await outcomes(house)) == (status == "200")


async def test_bad_signatures_are_the_communitys_problem(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.subscriber.reconcile()
        for _number in range(3):
            await house.send("order.created", {}, signature="wrong")
        (problem,) = house.tracker.current()
        assert (problem.code, problem.store) == ("community.bad_signature", KEY)
        assert "remake hall" in problem.fix
        await house.send("order.created", {})
        assert house.problems() == []


# All together


async def test_the_running_flow_keeps_all_of_it_and_tells_what_fails(tmp_path: Path) -> None:
    async with community_house(tmp_path, sync_s=0.2, check_s=0.2) as house:
        days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
        always = "".join(f'{each} = ["00:00-24:00"]\n' for each in days)  # an order is placed
        write_hours(tmp_path, f'timezone = "Europe/Prague"\n[weekly]\n{always}')
        running = [asyncio.create_task(each.run()) for each in house.flow.workers]
        try:
            await until(lambda: house.flow.subscriber.webhook_id is not None)
            order = await house.hall.order(at("st_main", "soup"))
            house.flow.deliveries_arrived()

            async def there() -> bool:
                return await status_of(house, order["order_id"]) == "pending"

            async with asyncio.timeout(10):
                while not (await there() and await mirrored(house)):
                    await asyncio.sleep(0.02)
            rule = {"action": "error", "status": 403, "path": "/catalogue$", "count": 1}
            await house.hall.bridge.control("POST", "/faults", rule)
            await until(lambda: ("community.unavailable", "catalogue") in house.problems())
            await until(lambda: house.problems() == [])
            assert (await hours_there(house))["timezone"] == "Europe/Prague"
        finally:
            for each in running:
                each.cancel()
            await asyncio.wait(running)


async def test_an_unanswered_availability_is_read_before_it_is_sent_again(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        await house.flow.mirror.round()
        tea = (await mirrored(house))["tea"].record_id
        rule = {"action": "drop", "when": "after", "method": "PATCH", "count": 1}
        await house.hall.bridge.control("POST", "/faults", rule)
        await house.flow.overrides.set(tea, available=False, until=None, by="staff")
        await house.flow.overrides.push()
        assert (await house.service())["items_off"] == ["tea"]
        told = (await house.hall.bridge.control("GET", "/requests")).body["requests"]
        assert [each["method"] for each in told].count("PATCH") == 1


async def test_another_community_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        with pytest.raises(Refused) as refused:
            await house.flow.context.calls.order("ord_no")
        assert refused.value.status == 404
        answer = await house.hall.call("GET", f"{HALL}/orders/ord_no")
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


async def hours_there(house: CommunityHouse) -> Any:  # noqa: ANN401 -- any JSON value
    stores = (await house.hall.catalogue())["stores"]
    return next(each["hours"] for each in stores if each["store_id"] == "st_main")


async def test_hours_are_pushed_once_and_again_when_their_file_changes(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        write_hours(tmp_path, WEEK)
        await house.flow.hours.round()
        there = await hours_there(house)
        assert there["timezone"] == "Europe/Prague"
        assert there["weekly"]["friday"] == [{"open": "11:00", "close": "24:00"}]
        assert there["weekly"]["sunday"] == []
        await house.flow.hours.round()
        assert await house.calls("/stores/st_main/hours", "PUT") == 1

        closed = WEEK + '[[overrides]]\ndate = 2099-12-24\nclosed = true\nreason = "Eve"\n'
        write_hours(tmp_path, closed)
        await house.flow.hours.round()
        assert (await hours_there(house))["overrides"] == [
            {"date": "2099-12-24", "closed": True, "reason": "Eve"}
        ]
        (listed,) = await house.flow.hours.listed()
        assert listed.pushed_at is not None


async def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        (tmp_path / "hours.toml").write_text("timezone =", "utf-8")
        await house.flow.hours.round()
        assert house.problems() == []


async def test_hours_that_cannot_be_read_leave_those_that_were_pushed(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        write_hours(tmp_path, WEEK)
        await house.flow.hours.round()
        write_hours(tmp_path, WEEK.replace("11:00-15:00", "25:00-26:00"))
        await house.flow.hours.round()
        (problem,) = house.tracker.current()
        assert (problem.code, problem.subject) == ("community.hours_not_pushed", "main")
        assert "main" in problem.text
        assert (await hours_there(house))["weekly"]["monday"] == [
            {"open": "11:00", "close": "15:00"}
        ]
        write_hours(tmp_path, WEEK)
        await house.flow.hours.round()
        assert house.problems() == []


async def test_hours_that_the_service_refuses_are_not_sent_again_and_again(tmp_path: Path) -> None:
    async with community_house(tmp_path) as house:
        write_hours(tmp_path, WEEK)
        rule = {"action": "error", "status": 400, "path": "/hours$", "count": 5}
        await house.hall.bridge.control("POST", "/faults", rule)
        for _round in range(3):
            await house.flow.hours.round()
        assert await house.calls("/stores/st_main/hours", "PUT") == 1
        assert house.problems() == [("community.hours_not_pushed", "main")]
        await house.hall.bridge.control("DELETE", "/faults")
        await house.flow.hours.push_all()
        assert house.problems() == []


# A secret on its way


async def test_deliveries_may_come_before_the_answer_that_shows_their_secret(
    tmp_path: Path,
) -> None:
    async with community_house(tmp_path) as house:
        seen: list[str] = []
        house.flow.subscriber.on_secret_expected = lambda key: seen.append(f"expected {key}")

        async def there(key: str) -> None:
            seen.append(f"there {key}")

        house.flow.subscriber.on_secret = there
        rule = {"action": "error", "status": 403, "path": "/webhooks$", "count": 1}
        await house.hall.bridge.control("POST", "/faults", rule)
        with pytest.raises(ServiceError):
            await house.flow.subscriber.reconcile()
        await house.flow.subscriber.reconcile()
        assert seen == [f"expected {KEY}", f"there {KEY}"] * 2
