import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.sandbox_driver import STORE, Driver, Json, driven, item
from tillbridge.sandbox import SandboxSettings


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.integrate()
        yield driver


def later(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def items(bridge: Driver) -> dict[str, Any]:
    found: dict[str, Any] = (await bridge.catalogue())["items"]
    return found


async def available(bridge: Driver, external_id: str) -> bool:
    return bool((await items(bridge))[external_id]["available"])


async def switch(bridge: Driver, *entries: dict[str, Any]) -> Json:
    return await bridge.call("POST", f"{STORE}/items/availability", {"items": list(entries)})


async def batch(bridge: Driver, **body: Json) -> Json:
    return await bridge.call("POST", f"{STORE}/menus/batch", body)


FULL: dict[str, Any] = {
    "menus": [
        {
            "external_id": "m1",
            "name": "Lunch",
            "description": "12 to 3",
            "categories": [{"external_id": "c1", "name": "Burgers"}],
            "items": [
                item(
                    "i1",
                    description="Good",
                    image_url="https://img.example/1.png",
                    available=True,
                    categories=["c1"],
                    addon_groups=["g1"],
                    variant_type="stand_alone",
                    variants=[
                        {"external_id": "v1", "variant_name": "Small", "price": 400},
                        {
                            "external_id": "v2",
                            "variant_name": "Big",
                            "price": 600,
                            "available": False,
                        },
                    ],
                    tax={"name": "VAT", "components": [{"agency": "State", "rate": 7.5}]},
                ),
                item("x1", 100, product_type="addon"),
            ],
        }
    ],
    "add_ons": [{"external_id": "a1", "name": "Cheese", "price": 50}],
    "addon_groups": [
        {
            "external_id": "g1",
            "name": "Extras",
            "min_select": 0,
            "max_select": 2,
            "required": False,
            "add_ons": ["a1", "x1"],
        }
    ],
}


async def test_a_small_menu_is_synced_at_once_and_counted(bridge: Driver) -> None:
    answer = await bridge.call("POST", f"{STORE}/menus", FULL)
    assert answer.status == 200
    assert answer.body["status"] == "success"
    assert answer.body["data"] == {
        "menus": 1,
        "categories": 1,
        "items": 2,
        "add_ons": 1,
        "addon_groups": 1,
    }
    assert (await items(bridge))["i1"]["variants"]["v2"]["available"] is False


async def test_the_flat_shape_is_taken_too(bridge: Driver) -> None:
    answer = await bridge.push(
        item("i1", categories=["c1"]), categories=[{"external_id": "c1", "name": "C"}]
    )
    assert answer.body["data"]["items"] == 1
    assert (await bridge.catalogue())["menus"] == {"Main": "Main"}


async def test_items_missing_from_a_push_remain_and_missing_variants_are_deactivated(
    bridge: Driver,
) -> None:
    await bridge.call("POST", f"{STORE}/menus", FULL)
    kept = {"external_id": "v1", "variant_name": "Small", "price": 420}
    await bridge.push(item("i1", variants=[kept]))
    found = await items(bridge)
    assert "x1" in found
    assert found["i1"]["variants"]["v1"]["price"] == 420
    assert found["i1"]["variants"]["v2"]["active"] is False


async def test_a_push_keeps_ids_and_availability_that_it_does_not_mention(bridge: Driver) -> None:
    await bridge.push(item("i1"))
    before = (await items(bridge))["i1"]["product_id"]
    await switch(bridge, {"external_id": "i1", "available": False})
    await bridge.push(item("i1", 500))
    after = (await items(bridge))["i1"]
    assert (after["product_id"], after["price"], after["available"]) == (before, 500, False)
    await bridge.push(item("i1", 500, available=True))
    assert await available(bridge, "i1")


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"items": [item("a", price=True)]}, "request.validation", "items[0].price"),
        ({"items": [item("a", price=4.5)]}, "request.validation", "items[0].price"),
        ({"items": [item("a", price="450")]}, "request.validation", "items[0].price"),
        ({"items": [item("a", price=-1)]}, "request.validation", "items[0].price"),
        ({"items": [item("a"), item("a")]}, "request.validation", "items[1].external_id"),
        ({"items": [{"external_id": "a", "price": 1}]}, "request.validation", "items[0].name"),
        ({"items": [item("")]}, "request.validation", "items[0].external_id"),
        ({"items": [item("a", description=None)]}, "request.validation", "items[0].description"),
        ({"items": [item("a", image_url="a.png")]}, "request.validation", "items[0].image_url"),
        ({"items": [item("a", sku="1")]}, "request.unknown_field", "items[0].sku"),
        ({"items": [item("a", app_id="1")]}, "request.unknown_field", "items[0].app_id"),
        ({"items": [item("a", categories=["no"])]}, "request.validation", "items[0].categories[0]"),
        (
            {"items": [item("a", addon_groups=["no"])]},
            "request.validation",
            "items[0].addon_groups[0]",
        ),
        (
            {"items": [item("a", variants=[{"external_id": "v", "name": "x"}])]},
            "request.unknown_field",
            "items[0].variants[0].name",
        ),
        (
            {"addon_groups": [{"external_id": "g", "name": "G", "add_ons": ["no"]}]},
            "request.validation",
            "addon_groups[0].add_ons[0]",
        ),
        (
            {"addon_groups": [{"external_id": "g", "name": "G", "min_select": 2, "max_select": 1}]},
            "request.validation",
            "addon_groups[0].min_select",
        ),
        ({"menu_name": 5}, "request.validation", "menu_name"),
        ({"app_id": "app_123"}, "request.unknown_field", "app_id"),
    ],
)
async def test_a_refused_push_names_the_field_and_changes_nothing(
    bridge: Driver, changes: dict[str, Any], code: str, field: str
) -> None:
    body = {"menu_name": "Main", "items": []} | changes
    answer = await bridge.call("POST", f"{STORE}/menus", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")
    assert await items(bridge) == {}


async def test_the_two_shapes_do_not_mix(bridge: Driver) -> None:
    answer = await bridge.call("POST", f"{STORE}/menus", FULL | {"items": []})
    assert (answer.status, answer.code) == (400, "request.unknown_field")


async def test_references_to_earlier_pushes_are_fine(bridge: Driver) -> None:
    await bridge.call("POST", f"{STORE}/menus", FULL)
    again = item("i2", categories=["c1"], addon_groups=["g1"])
    assert (await bridge.push(again)).status == 200


@pytest.mark.parametrize("direction", ["none", "quiqqy_to_pos"])
async def test_a_direction_that_does_not_push_is_told_so(bridge: Driver, direction: str) -> None:
    await bridge.push(item("i1"))
    await bridge.call("PUT", "/pos/integrations/st_main", {"menu_sync_direction": direction})
    for answer in (
        await bridge.push(item("i1")),
        await batch(bridge, delete=["i1"]),
        await switch(bridge, {"external_id": "i1", "available": False}),
        await bridge.call("PATCH", f"{STORE}/items/i1", {"price": 1}),
    ):
        assert (answer.status, answer.code) == (403, "menu.push_not_allowed")
    status = await bridge.call("GET", f"{STORE}/menus/status")
    assert status.body["menu_sync_direction"] == direction


async def test_the_sync_status_tells_of_the_last_full_push(bridge: Driver) -> None:
    status = await bridge.call("GET", f"{STORE}/menus/status")
    assert status.body == {
        "store_id": "st_main",
        "menu_sync_direction": "pos_to_quiqqy",
        "integration_status": "active",
        "last_synced_at": None,
    }
    await bridge.push(item("i1"))
    status = await bridge.call("GET", f"{STORE}/menus/status")
    assert status.body["last_synced_at"].endswith("Z")


async def test_rejected_items_make_a_push_partial(bridge: Driver) -> None:
    await bridge.control("POST", "/items/reject", {"external_ids": ["b"], "reason": "no photo"})
    answer = await bridge.push(item("a"), item("b"))
    assert answer.body["status"] == "partial"
    assert answer.body["data"]["items"] == 1
    assert "b (no photo)" in answer.body["message"]
    assert list(await items(bridge)) == ["a"]
    await bridge.control("POST", "/items/reject", {"external_ids": []})
    assert (await bridge.push(item("b"))).body["status"] == "success"


# Jobs


def many(count: int) -> list[dict[str, Any]]:
    return [item(f"i{number}") for number in range(count)]


async def test_a_hundred_items_are_small_and_one_more_is_a_job(bridge: Driver) -> None:
    assert (await bridge.push(*many(100))).status == 200
    answer = await bridge.push(*many(101))
    assert answer.status == 202
    assert answer.body["status"] == "accepted"
    job_id = answer.body["job_id"]
    assert answer.body["poll_url"] == f"/pos/stores/st_main/menus/jobs/{job_id}"
    job = (await bridge.call("GET", answer.body["poll_url"])).body
    assert job["status"] == "processing"
    assert (job["menus"], job["items"]) == (1, 101)
    await bridge.jump(5)
    job = (await bridge.call("GET", answer.body["poll_url"])).body
    assert job["status"] == "success"
    assert job["result"] == {"categories": 0, "items": 101, "add_ons": 0, "addon_groups": 0}
    assert len(await items(bridge)) == 101


async def test_a_job_is_forgotten_an_hour_after_its_last_update(bridge: Driver) -> None:
    url = (await bridge.push(*many(101))).body["poll_url"]
    await bridge.jump(5)
    assert (await bridge.call("GET", url)).body["status"] == "success"
    await bridge.jump(3590)
    assert (await bridge.call("GET", url)).status == 200
    await bridge.jump(11)
    await bridge.sign_in()  # the hour has ended the access token too
    answer = await bridge.call("GET", url)
    assert (answer.status, answer.code) == (404, "menu.job_not_found")


async def test_a_job_can_be_made_to_fail(bridge: Driver) -> None:
    await bridge.control("POST", "/jobs/next", {"fail": "catalogue is down", "duration_s": 0})
    url = (await bridge.push(*many(101))).body["poll_url"]
    await bridge.jump(1)
    job = (await bridge.call("GET", url)).body
    assert job["status"] == "failed"
    assert job["error"]["message"] == "catalogue is down"
    assert await items(bridge) == {}
    url = (await bridge.push(*many(101))).body["poll_url"]
    await bridge.jump(5)
    assert (await bridge.call("GET", url)).body["status"] == "success"


async def test_a_job_tells_of_rejected_items(bridge: Driver) -> None:
    await bridge.control("POST", "/items/reject", {"external_ids": ["i5"]})
    url = (await bridge.push(*many(101))).body["poll_url"]
    await bridge.jump(5)
    job = (await bridge.call("GET", url)).body
    assert job["result"]["items"] == 100
    assert job["result"]["status"] == "partial"
    assert "i5" in job["result"]["message"]


@pytest.mark.parametrize(("keep_work", "count"), [(True, 101), (False, 0)])
async def test_a_lost_job_may_or_may_not_have_done_its_work(
    bridge: Driver, keep_work: bool, count: int
) -> None:
    url = (await bridge.push(*many(101))).body["poll_url"]
    await bridge.control("POST", "/jobs/lose", {"keep_work": keep_work})
    assert (await bridge.call("GET", url)).code == "menu.job_not_found"
    await bridge.jump(5)
    assert len(await items(bridge)) == count


async def test_unknown_jobs_are_not_found(bridge: Driver) -> None:
    answer = await bridge.call("GET", f"{STORE}/menus/jobs/job_none")
    assert (answer.status, answer.code) == (404, "menu.job_not_found")


async def test_twenty_thousand_items_are_a_job_like_any_other(bridge: Driver) -> None:
    raw = json.dumps({"menu_name": "Big", "items": many(20_000)}).encode()
    answer = await bridge.call("POST", f"{STORE}/menus", raw=raw)
    assert answer.status == 202
    await bridge.jump(5)
    job = (await bridge.call("GET", answer.body["poll_url"])).body
    assert (job["status"], job["result"]["items"]) == ("success", 20_000)
    status, page, _ = await bridge.page("/store/st_main?page=3")
    assert status == 200
    assert "Page 3 of 334" in page
    assert len(page) < 200_000
    _, found, _ = await bridge.page("/store/st_main?q=i19999")
    assert "Item i19999" in found


# Batch, PATCH, availability


async def test_a_batch_adds_updates_and_deletes(bridge: Driver) -> None:
    await bridge.push(item("a"), item("b"))
    answer = await batch(
        bridge,
        add=[item("c", categories=["c1"])],
        update=[item("a", 999)],
        delete=["b", "never"],
        categories=[{"external_id": "c1", "name": "New"}],
    )
    assert answer.status == 200
    assert {k: answer.body[k] for k in ("added", "updated", "deleted")} == {
        "added": 1,
        "updated": 1,
        "deleted": 1,
    }
    found = await items(bridge)
    assert sorted(found) == ["a", "c"]
    assert found["a"]["price"] == 999


async def test_a_batch_update_of_an_unknown_item_is_refused_whole(bridge: Driver) -> None:
    answer = await batch(bridge, add=[item("a")], update=[item("never")])
    assert (answer.status, answer.code) == (404, "menu.item_not_found")
    assert "never" in answer.message
    assert await items(bridge) == {}


async def test_a_batch_update_of_an_unknown_item_upserts_when_set_so() -> None:
    async with driven(SandboxSettings(batch_update_unknown="upsert")) as bridge:
        await bridge.integrate()
        assert (await batch(bridge, update=[item("new")])).body["added"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"add": [item("a")], "update": [item("a")]}, "update[0].external_id"),
        ({"add": [item("a")], "delete": ["a"]}, "delete[0]"),
        ({"add": [item("a", categories=["no"])]}, "add[0].categories[0]"),
        ({"update": [{"external_id": "a"}]}, "update[0].name"),
        ({"delete": [5]}, "delete[0]"),
    ],
)
async def test_a_contradictory_batch_names_the_field(
    bridge: Driver, body: dict[str, Any], field: str
) -> None:
    answer = await batch(bridge, **body)
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith(f"{field}:")


async def test_a_patch_changes_only_what_it_sends(bridge: Driver) -> None:
    await bridge.push(item("a", description="Old"))
    answer = await bridge.call("PATCH", f"{STORE}/items/a", {"external_id": "a", "price": 1})
    assert answer.status == 200
    assert answer.body.keys() == {"status", "message"}
    found = (await items(bridge))["a"]
    assert (found["price"], found["description"]) == (1, "Old")


async def test_a_patch_finds_ids_that_need_quoting(bridge: Driver) -> None:
    await bridge.push(item("a/b ü"))
    answer = await bridge.call("PATCH", f"{STORE}/items/a%2Fb%20%C3%BC", {"price": 7})
    assert answer.status == 200
    assert (await items(bridge))["a/b ü"]["price"] == 7


async def test_a_patch_refuses_unknown_items_and_ids_that_disagree(bridge: Driver) -> None:
    missing = await bridge.call("PATCH", f"{STORE}/items/never", {"price": 1})
    assert (missing.status, missing.code) == (404, "menu.item_not_found")
    await bridge.push(item("a"))
    other = await bridge.call("PATCH", f"{STORE}/items/a", {"external_id": "b"})
    assert (other.status, other.code) == (400, "request.validation")
    unknown = await bridge.call("PATCH", f"{STORE}/items/a", {"categories": ["no"]})
    assert unknown.code == "request.validation"


async def test_availability_counts_hits_and_lists_misses(bridge: Driver) -> None:
    await bridge.call("POST", f"{STORE}/menus", FULL)
    entries = [{"external_id": key, "available": False} for key in ("i1", "a1", "never")]
    answer = await switch(bridge, *entries)
    assert answer.status == 200
    assert (answer.body["updated"], answer.body["not_found"]) == (2, ["never"])
    assert not await available(bridge, "i1")
    assert (await bridge.catalogue())["add_ons"]["a1"]["available"] is False


async def test_a_snoozed_item_comes_back_by_itself(bridge: Driver) -> None:
    await bridge.push(item("a"))
    await switch(bridge, {"external_id": "a", "available": False, "snooze_until": later(600)})
    await bridge.push(item("a", available=False))
    assert not await available(bridge, "a")
    await bridge.jump(601)
    assert await available(bridge, "a")
    await bridge.call("PATCH", f"{STORE}/items/a", {"available": False})
    assert not await available(bridge, "a")


async def test_a_snooze_does_not_end_when_set_so() -> None:
    async with driven(SandboxSettings(snooze_returns=False)) as bridge:
        await bridge.integrate()
        await bridge.push(item("a"))
        await switch(bridge, {"external_id": "a", "available": False, "snooze_until": later(1)})
        await bridge.jump(3600)
        assert not await available(bridge, "a")


@pytest.mark.parametrize("value", ["tonight", "2030-01-01", "2030-01-01T10:00:00", 5, None])
async def test_a_snooze_ends_at_an_instant_or_is_refused(bridge: Driver, value: object) -> None:
    await bridge.push(item("a"))
    entry = {"external_id": "a", "available": False, "snooze_until": value}
    answer = await switch(bridge, entry)
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith("items[0].snooze_until:")


# Tables


async def test_tables_keep_their_token_and_go_when_missing(bridge: Driver) -> None:
    body = {"tables": [{"external_id": "t1", "name": "1", "seats": 4, "zone": "Inside"}]}
    answer = await bridge.call("POST", f"{STORE}/tables", body)
    (table,) = answer.body["tables"]
    assert table.keys() == {"external_id", "table_id", "qr_token", "qr_url"}
    again = await bridge.call("POST", f"{STORE}/tables", body)
    assert again.body["tables"] == [table]
    other = {"tables": [{"external_id": "t2", "name": "2"}]}
    await bridge.call("POST", f"{STORE}/tables", other)
    tables = (await bridge.catalogue())["tables"]
    assert (tables["t1"]["active"], tables["t2"]["active"]) == (False, True)
    status, page, _ = await bridge.page(table["qr_url"].removeprefix(bridge.running.url))
    assert status == 404
    assert "not in use" in page


async def test_a_table_stands_once_in_a_push(bridge: Driver) -> None:
    body = {"tables": [{"external_id": "t1", "name": "1"}, {"external_id": "t1", "name": "2"}]}
    answer = await bridge.call("POST", f"{STORE}/tables", body)
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith("tables[1].external_id:")
