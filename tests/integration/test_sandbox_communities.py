"""The sandbox's community endpoints: tokens, catalogue, availability, opening hours."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.sandbox_driver import STORE, Json, item
from tests.support.sandbox_hall import HALL, SEEDS, Hall, at, hall_of, week
from tillbridge.sandbox.clock import as_timestamp

FAR = "2099-01-01T00:00:00.000Z"


@pytest.fixture
async def hall() -> AsyncIterator[Hall]:
    async with hall_of() as opened:
        yield opened


# Tokens


async def test_an_app_level_token_has_its_own_lifetime() -> None:
    async with hall_of(replace(SEEDS, app_token_s=100)) as hall:
        answer = await hall.mint(audience="communities")
        assert answer.body.keys() == {"access_token", "expires_in"}
        assert answer.body["expires_in"] == 100
        await hall.bridge.jump(101)
        late = await hall.call("GET", f"{HALL}/catalogue")
        assert (late.status, late.code) == (401, "auth.token_expired")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "audience:"),
        ({"audience": "everything"}, "audience:"),
        ({"audience": "communities", "scope": "reports.read"}, "scope:"),
        ({"scope": "reports.read menu.write"}, "scope:"),
        ({"audience": "reporting", "scope": " "}, "scope:"),
    ],
)
async def test_a_token_request_that_makes_no_sense_names_the_field(
    hall: Hall, fields: dict[str, str], field: str
) -> None:
    answer = await hall.mint(**fields)
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith(field)


@pytest.mark.parametrize(
    ("fields", "scopes"),
    [
        ({"audience": "reporting"}, ["reports.read", "catalogue.write"]),
        ({"scope": "reports.read"}, ["reports.read"]),
        ({"audience": "reporting", "scope": "catalogue.write"}, ["catalogue.write"]),
    ],
)
async def test_a_reporting_token_has_its_scopes_and_opens_no_community(
    hall: Hall, fields: dict[str, str], scopes: list[str]
) -> None:
    answer = await hall.mint(**fields)
    assert answer.body.keys() == {"access_token", "expires_in"}
    assert (await hall.bridge.state())["tokens"][-1]["scopes"] == scopes
    hall.token = answer.body["access_token"]
    refused = await hall.call("GET", f"{HALL}/catalogue")
    assert (refused.status, refused.code) == (401, "auth.invalid_token")


async def test_the_audience_the_scope_field_and_the_refusal_are_settings() -> None:
    settings = replace(
        SEEDS,
        community_audience="hub",
        scope_field="scopes",
        wrong_audience_code="request.forbidden",
    )
    async with hall_of(settings) as hall:
        assert (await hall.call("GET", f"{HALL}/catalogue")).status == 200
        assert (await hall.mint(scope="reports.read")).code == "request.unknown_field"
        hall.token = (await hall.mint(scopes="reports.read")).body["access_token"]
        refused = await hall.call("GET", f"{HALL}/catalogue")
        assert (refused.status, refused.code) == (403, "request.forbidden")


async def test_a_wrong_secret_gets_no_app_level_token(hall: Hall) -> None:
    answer = await hall.mint(audience="communities", client_secret="x")
    assert (answer.status, answer.code) == (401, "auth.invalid_client")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{HALL}/catalogue"),
        ("GET", f"{HALL}/catalogue/items/prd_1"),
        ("PATCH", f"{HALL}/catalogue/items/prd_1"),
        ("PUT", f"{HALL}/stores/st_main/hours"),
        ("POST", f"{HALL}/webhooks"),
        ("GET", "/webhooks/whk_1"),
        ("PUT", "/webhooks/whk_1"),
        ("DELETE", "/webhooks/whk_1"),
        ("POST", "/webhooks/whk_1/test"),
        ("GET", "/webhooks/whk_1/deliveries"),
        ("GET", f"{HALL}/orders/ord_1"),
    ],
)
async def test_only_an_app_level_token_opens_the_community(
    hall: Hall, method: str, path: str
) -> None:
    for token in ("", hall.bridge.token):
        hall.token = token
        answer = await hall.call(method, path, {} if method != "GET" else None)
        assert (answer.status, answer.code) == (401, "auth.invalid_token")


@pytest.mark.parametrize("community_id", ["com_other", "com_nowhere"])
async def test_another_community_is_not_there(hall: Hall, community_id: str) -> None:
    for method, path in (("GET", "catalogue"), ("GET", "orders/ord_1"), ("POST", "webhooks")):
        body = {"name": "x", "url": "https://a.example/"} if method == "POST" else None
        answer = await hall.call(method, f"/communities/{community_id}/{path}", body)
        assert (answer.status, answer.code) == (404, "community.not_found")


# The catalogue


async def test_the_catalogue_mirrors_the_member_stores(hall: Hall) -> None:
    body = await hall.catalogue()
    assert [(store["store_id"], store["is_open"]) for store in body["stores"]] == [
        ("st_main", True),
        ("st_tea", True),
    ]
    assert [category["name"] for category in body["categories"]] == ["Food"]
    found = {(entry["store_id"], entry["external_id"]) for entry in body["items"]}
    assert found == {
        ("st_main", "toast"),
        ("st_main", "soup"),
        ("st_tea", "tea"),
        ("st_tea", "soup"),
    }
    toast = await hall.item("toast")
    assert (toast["price"], toast["available"]) == (700, True)
    assert toast["category_ids"] == [body["categories"][0]["category_id"]]
    (group,) = toast["modifier_groups"]
    assert group["modifiers"][0]["name"] == "Egg"
    assert len({entry["item_id"] for entry in body["items"]}) == 4


async def test_external_ids_are_left_out_when_set_so() -> None:
    async with hall_of(replace(SEEDS, community_external_ids=False)) as hall:
        assert "external_id" not in str(await hall.catalogue())


async def test_one_store_can_be_asked_for_and_must_be_a_member(hall: Hall) -> None:
    body = await hall.catalogue("?store_id=st_tea")
    assert {entry["store_id"] for entry in body["stores"] + body["items"]} == {"st_tea"}
    assert body["categories"] == []
    answer = await hall.call("GET", f"{HALL}/catalogue?store_id=st_nowhere")
    assert (answer.status, answer.code) == (404, "store.not_found")


async def test_an_incremental_read_tells_what_has_changed(hall: Hall) -> None:
    as_of = (await hall.catalogue())["as_of"]
    await hall.bridge.jump(60)
    later = (await hall.catalogue())["as_of"]
    assert (await hall.catalogue(f"?updated_since={later}"))["items"] == []
    await hall.bridge.call("PATCH", f"{STORE}/items/soup", {"price": 550})
    body = await hall.catalogue(f"?updated_since={later}")
    assert [(entry["external_id"], entry["price"]) for entry in body["items"]] == [("soup", 550)]
    assert body["stores"] == body["categories"] == []
    assert len((await hall.catalogue(f"?updated_since={as_of}"))["items"]) == 4
    both = await hall.catalogue(f"?updated_since={later}&store_id=st_tea")
    assert both["items"] == []


async def test_a_snooze_that_ends_is_news(hall: Hall) -> None:
    until = moment(hall, 100)
    await hall.patch("soup", {"snoozed_until": until})
    await hall.bridge.jump(1)
    as_of = (await hall.catalogue())["as_of"]
    await hall.bridge.jump(200)
    (back,) = (await hall.catalogue(f"?updated_since={as_of}"))["items"]
    assert (back["available"], back["snoozed_until"]) == (True, None)


async def test_what_was_removed_is_named_once_asked_for_incrementally(hall: Hall) -> None:
    as_of = (await hall.catalogue())["as_of"]
    await hall.bridge.jump(1)
    await hall.bridge.call("POST", f"{STORE}/menus/batch", {"delete": ["toast"]})
    assert {entry["external_id"] for entry in (await hall.catalogue())["items"]} == {"soup", "tea"}
    toast = await hall.item("toast", f"?updated_since={as_of}")
    assert (toast["removed"], toast["available"]) == (True, False)
    assert toast["updated_at"] > as_of


async def test_removals_are_not_told_when_set_so() -> None:
    async with hall_of(replace(SEEDS, community_tells_removed=False)) as hall:
        as_of = (await hall.catalogue())["as_of"]
        await hall.bridge.jump(1)
        await hall.bridge.call("POST", f"{STORE}/menus/batch", {"delete": ["toast"]})
        body = await hall.catalogue(f"?updated_since={as_of}")
        assert "toast" not in {entry["external_id"] for entry in body["items"]}


@pytest.mark.parametrize(
    ("query", "field"),
    [("?updated_since=yesterday", "updated_since:"), ("?since=1", "since:")],
)
async def test_a_wrong_query_names_its_field(hall: Hall, query: str, field: str) -> None:
    answer = await hall.call("GET", f"{HALL}/catalogue{query}")
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith(field)


# Items


def moment(hall: Hall, seconds: float) -> str:
    """An instant, so many seconds from the sandbox's now."""
    return as_timestamp(hall.bridge.running.sandbox.clock.now_ms() + round(seconds * 1000))


async def test_an_item_tells_both_sides_of_its_availability(hall: Hall) -> None:
    found = await hall.item("toast")
    answer = await hall.call("GET", f"{HALL}/catalogue/items/{found['item_id']}")
    assert answer.status == 200
    expected = {
        "price": 700,
        "currency": "USD",
        "available": True,
        "merchant_available": True,
        "community_available": True,
        "snoozed_until": None,
    }
    assert expected.items() <= answer.body.items()
    missing = await hall.call("GET", f"{HALL}/catalogue/items/prd_none")
    assert (missing.status, missing.code) == (404, "menu.item_not_found")


@pytest.mark.parametrize(
    ("merchant", "community"), [(True, True), (True, False), (False, True), (False, False)]
)
async def test_what_can_be_had_is_what_both_sides_allow(
    hall: Hall, merchant: bool, community: bool
) -> None:
    body = {"items": [{"external_id": "soup", "available": merchant}]}
    await hall.bridge.call("POST", f"{STORE}/items/availability", body)
    answer = await hall.patch("soup", {"available": community})
    sides = (answer.body["merchant_available"], answer.body["community_available"])
    assert sides == (merchant, community)
    assert answer.body["available"] is (merchant and community)
    ordered = await hall.try_order(at("st_main", "soup"))
    assert (ordered.status == 200) is (merchant and community)


async def test_the_communitys_say_leaves_the_stores_own_storefront_alone(hall: Hall) -> None:
    await hall.patch("soup", {"available": False})
    await hall.bridge.place({"external_id": "soup"})


async def test_a_snooze_ends_by_itself_and_available_clears_it(hall: Hall) -> None:
    answer = await hall.patch("tea", {"snoozed_until": moment(hall, 600)})
    assert (answer.body["available"], bool(answer.body["snoozed_until"])) == (False, True)
    assert (await hall.try_order(at("st_tea", "tea"))).message == "Item tea is sold out"
    await hall.bridge.jump(601)
    assert (await hall.item("tea"))["available"] is True
    await hall.patch("tea", {"available": False, "snoozed_until": FAR})
    answer = await hall.patch("tea", {"available": True})
    assert (answer.body["available"], answer.body["snoozed_until"]) == (True, None)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "request.validation", "body"),
        ({"available": 1}, "request.validation", "available"),
        ({"snoozed_until": None}, "request.validation", "snoozed_until"),
        ({"snoozed_until": "2030-01-01T10:00:00"}, "request.validation", "snoozed_until"),
        ({"available": True, "snoozed_until": FAR}, "request.validation", "snoozed_until"),
        ({"snooze_until": FAR}, "request.unknown_field", "snooze_until"),
        ({"available": True, "app_id": "a"}, "request.unknown_field", "app_id"),
    ],
)
async def test_a_refused_patch_names_the_field(
    hall: Hall, body: Json, code: str, field: str
) -> None:
    answer = await hall.patch("tea", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")


# Opening hours


async def test_a_closed_store_is_told_and_takes_no_orders(hall: Hall) -> None:
    closed = week(**{day: [] for day in week()["weekly"]})
    answer = await hall.set_hours("st_tea", closed)
    assert answer.body == {
        "store_id": "st_tea",
        "is_open": False,
        "hours": {**closed, "overrides": []},
    }
    (store,) = (await hall.catalogue("?store_id=st_tea"))["stores"]
    assert (store["is_open"], store["hours"]["timezone"]) == (False, "UTC")
    refused = await hall.try_order(at("st_main", "toast"), at("st_tea", "tea"))
    assert (refused.status, refused.message) == (409, "Tea Room is closed")
    assert (await hall.bridge.state())["orders"] == []
    await hall.set_hours("st_tea", week())
    await hall.order(at("st_main", "toast"), at("st_tea", "tea"))


async def test_an_override_closes_one_date(hall: Hall) -> None:
    today = moment(hall, 0)[:10]
    body = {**week(), "overrides": [{"date": today, "closed": True, "reason": "Wedding"}]}
    assert (await hall.set_hours("st_tea", body)).body["is_open"] is False
    await hall.bridge.jump(24 * 3600)
    hall.token = (await hall.mint(audience="communities")).body["access_token"]
    (store,) = (await hall.catalogue("?store_id=st_tea"))["stores"]
    assert store["is_open"] is True


async def test_an_inactive_or_disconnected_store_is_not_open(hall: Hall) -> None:
    await hall.bridge.call("PUT", f"{STORE}/status", {"status": "inactive"})
    await hall.bridge.call("DELETE", "/pos/integrations/st_tea")
    body = await hall.catalogue()
    assert [store["is_open"] for store in body["stores"]] == [False, False]


def broken(**changes: Json) -> dict[str, Json]:
    return {name: value for name, value in (week() | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (broken(timezone=None), "request.validation", "timezone"),
        (broken(timezone="Mars/Base"), "request.validation", "timezone"),
        (broken(timezone="../etc"), "request.validation", "timezone"),
        (broken(weekly={"monday": []}), "request.validation", "weekly.tuesday"),
        (week(funday=[]), "request.unknown_field", "weekly.funday"),
        (
            week(monday=[{"open": "9:00", "close": "10:00"}]),
            "request.validation",
            "weekly.monday[0].open",
        ),
        (
            week(monday=[{"open": "09:00", "close": "24:30"}]),
            "request.validation",
            "weekly.monday[0].close",
        ),
        (
            week(monday=[{"open": "18:00", "close": "02:00"}]),
            "request.validation",
            "weekly.monday[0].close",
        ),
        (
            week(monday=[{"open": "12:00", "close": "15:00"}, {"open": "14:00", "close": "18:00"}]),
            "request.validation",
            "weekly.monday[1]",
        ),
        (
            broken(overrides=[{"date": "2030-02-30", "closed": True}]),
            "request.validation",
            "overrides[0].date",
        ),
        (
            broken(overrides=[{"date": "2030-02-03", "closed": True}] * 2),
            "request.validation",
            "overrides[1].date",
        ),
        (
            broken(overrides=[{"date": "2030-02-03"}]),
            "request.validation",
            "overrides[0].closed",
        ),
        (
            broken(overrides=[{"date": "2030-02-03", "closed": True, "open": "10:00"}]),
            "request.unknown_field",
            "overrides[0].open",
        ),
    ],
)
async def test_refused_hours_name_the_field(hall: Hall, body: Json, code: str, field: str) -> None:
    answer = await hall.set_hours("st_main", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")


async def test_hours_are_for_members_only(hall: Hall) -> None:
    await hall.bridge.control("POST", "/stores", {"store_id": "st_new", "name": "New"})
    answer = await hall.set_hours("st_new", week())
    assert (answer.status, answer.code) == (404, "store.not_found")
    await hall.bridge.control("POST", f"{HALL}/members", {"store_id": "st_new"})
    assert (await hall.set_hours("st_new", week())).status == 200


async def test_a_rotated_app_secret_leaves_app_level_tokens_alone(hall: Hall) -> None:
    await hall.bridge.control("POST", "/apps/app_123/secret", {"client_secret": "fresh"})
    assert (await hall.mint(audience="communities")).code == "auth.invalid_client"
    assert (await hall.call("GET", f"{HALL}/catalogue")).status == 200


async def test_an_item_that_comes_back_is_news(hall: Hall) -> None:
    await hall.catalogue()
    await hall.bridge.call("POST", f"{STORE}/menus/batch", {"delete": ["toast"]})
    await hall.catalogue()
    await hall.bridge.jump(1)
    as_of = (await hall.catalogue())["as_of"]
    await hall.bridge.push(item("toast", 800))
    assert (await hall.item("toast", f"?updated_since={as_of}"))["price"] == 800
