from collections.abc import AsyncIterator

import pytest

from tests.support.sandbox_driver import STORE, Driver, Json, driven
from tillbridge.sandbox import AppSeed, MerchantSeed, SandboxSettings, StoreSeed


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        await driver.sign_in()
        yield driver


def hook(**more: object) -> dict[str, object]:
    return {"webhook_url": "https://pos.example/hook", **more}


async def test_a_store_shows_its_integration_only_while_integrated(bridge: Driver) -> None:
    (store,) = (await bridge.call("GET", "/pos/stores")).body
    assert store == {
        "store_id": "st_main",
        "name": "Main Street",
        "description": "The sandbox's first store",
        "status": "active",
        "integration_status": "not_integrated",
        "integration": None,
    }
    await bridge.integrate()
    (store,) = (await bridge.call("GET", "/pos/stores")).body
    assert store["integration_status"] == "integrated"
    assert store["integration"].keys() == {
        "integration_id",
        "webhook_url",
        "menu_sync_direction",
        "auto_accept_orders",
        "external_store_id",
        "connected_at",
    }


async def test_the_webhook_secret_is_shown_once(bridge: Driver) -> None:
    body = hook(
        external_store_id="loc-1", auto_accept_orders=True, notification_email="a@b.example"
    )
    answer = await bridge.call("POST", "/pos/integrate-store/st_main", body)
    assert answer.status == 200
    assert answer.body["webhook_secret"]
    assert answer.body["status"] == "active"
    assert answer.body["app_id"] == "app_123"
    assert answer.body["auto_accept_orders"] is True
    again = await bridge.call("GET", "/pos/integrations/st_main")
    assert again.status == 200
    assert again.body == {k: v for k, v in answer.body.items() if k != "webhook_secret"}


async def test_integrating_twice_conflicts(bridge: Driver) -> None:
    await bridge.integrate()
    answer = await bridge.call("POST", "/pos/integrate-store/st_main", hook())
    assert (answer.status, answer.code) == (409, "integration.already_exists")


async def test_a_removed_integration_is_gone_and_a_new_one_has_a_new_secret(bridge: Driver) -> None:
    await bridge.integrate()
    first = bridge.secret
    answer = await bridge.call("DELETE", "/pos/integrations/st_main")
    assert (answer.status, answer.body["status"]) == (200, "success")
    for method, path in (("GET", "/pos/integrations/st_main"), ("GET", f"{STORE}/menus/status")):
        gone = await bridge.call(method, path)
        assert (gone.status, gone.code) == (404, "store.not_integrated")
    await bridge.integrate()
    assert bridge.secret != first


async def test_only_the_sent_fields_of_an_integration_change(bridge: Driver) -> None:
    await bridge.integrate()
    before = (await bridge.call("GET", "/pos/integrations/st_main")).body
    answer = await bridge.call("PUT", "/pos/integrations/st_main", {"auto_accept_orders": True})
    assert answer.body == before | {"auto_accept_orders": True}
    refused = await bridge.call("PUT", "/pos/integrations/st_main", {"external_store_id": "x"})
    assert (refused.status, refused.code) == (400, "request.unknown_field")


async def test_a_rotated_secret_is_not_shown(bridge: Driver) -> None:
    await bridge.integrate()
    body = {"rotate_webhook_secret": True}
    answer = await bridge.call("PUT", "/pos/integrations/st_main", body)
    assert answer.status == 200
    assert "webhook_secret" not in answer.body
    assert (await bridge.catalogue())["webhook_secret"] != bridge.secret


async def test_rotation_has_another_name_and_answer_when_set_so() -> None:
    settings = SandboxSettings(rotation_field="new_secret", rotation_returns_secret=True)
    async with driven(settings) as bridge:
        await bridge.integrate()
        answer = await bridge.call("PUT", "/pos/integrations/st_main", {"new_secret": True})
        assert answer.body["webhook_secret"] != bridge.secret
        old = await bridge.call("PUT", "/pos/integrations/st_main", {"rotate_webhook_secret": True})
        assert old.code == "request.unknown_field"


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "request.validation", "webhook_url"),
        (hook(app_id="app_123"), "request.unknown_field", "app_id"),
        (hook(colour="red"), "request.unknown_field", "colour"),
        (hook(menu_sync_direction="both"), "request.validation", "menu_sync_direction"),
        (hook(auto_accept_orders="yes"), "request.validation", "auto_accept_orders"),
        (hook(notification_email="nobody"), "request.validation", "notification_email"),
        ({"webhook_url": "ftp://x"}, "request.validation", "webhook_url"),
        ({"webhook_url": None}, "request.validation", "webhook_url"),
        ([], "request.validation", "body"),
    ],
)
async def test_a_refused_integration_names_the_field(
    bridge: Driver, body: object, code: str, field: str
) -> None:
    answer = await bridge.call("POST", "/pos/integrate-store/st_main", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")
    assert (await bridge.call("GET", "/pos/integrations/st_main")).status == 404


async def test_other_stores_are_out_of_reach() -> None:
    merchants = (
        MerchantSeed(),
        MerchantSeed("other@example.net", (StoreSeed("st_other", "Other"),)),
    )
    async with driven(SandboxSettings(merchants=merchants)) as bridge:
        await bridge.sign_in()
        for store_id in ("st_other", "st_nowhere"):
            answer = await bridge.call("POST", f"/pos/integrate-store/{store_id}", hook())
            assert (answer.status, answer.code) == (404, "store.not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", f"{STORE}/settings"),
        ("PUT", f"{STORE}/status"),
        ("GET", f"{STORE}/tax-config"),
        ("POST", f"{STORE}/menus"),
        ("GET", f"{STORE}/menus/jobs/job_1"),
        ("GET", f"{STORE}/menus/status"),
        ("POST", f"{STORE}/menus/batch"),
        ("POST", f"{STORE}/items/availability"),
        ("PATCH", f"{STORE}/items/a"),
        ("POST", f"{STORE}/tables"),
        ("PUT", "/pos/integrations/st_main"),
        ("DELETE", "/pos/integrations/st_main"),
    ],
)
async def test_a_store_without_integration_takes_no_calls(
    bridge: Driver, method: str, path: str
) -> None:
    body: Json = None if method in ("GET", "DELETE") else {}
    answer = await bridge.call(method, path, body)
    assert (answer.status, answer.code) == (404, "store.not_integrated")
    await bridge.integrate()
    await bridge.control("POST", "/integrations/st_main/disable")
    answer = await bridge.call(method, path, body)
    assert (answer.status, answer.code) == (404, "store.not_integrated")


async def test_the_status_call_opens_and_closes_the_store(bridge: Driver) -> None:
    await bridge.integrate()
    answer = await bridge.call("PUT", f"{STORE}/status", {"status": "inactive"})
    assert answer.body == {
        "status": "success",
        "store_id": "st_main",
        "store_status": "inactive",
    }
    assert (await bridge.state())["stores"]["st_main"]["status"] == "inactive"
    wrong = await bridge.call("PUT", f"{STORE}/status", {"status": "closed"})
    assert (wrong.status, wrong.code) == (400, "request.validation")


async def test_a_status_change_is_told_to_other_channels_only() -> None:
    apps = (AppSeed(), AppSeed("app_other", "x"))
    async with driven(SandboxSettings(apps=apps)) as bridge:
        await bridge.integrate()
        await bridge.call("PUT", f"{STORE}/status", {"status": "inactive"})
        state = await bridge.state()
        assert state["channel_events"][0]["data"]["status"] == "inactive"
        assert state["deliveries"] == []
        mine = bridge.token
        body = {"client_id": "app_other"}
        bridge.token = (await bridge.control("POST", "/tokens/mint", body)).body["access_token"]
        await bridge.call(
            "POST", "/pos/integrate-store/st_main", {"webhook_url": bridge.receiver.url}
        )
        bridge.token = mine
        await bridge.call("PUT", f"{STORE}/status", {"status": "active"})
        (delivery,) = (await bridge.state())["deliveries"]
        assert delivery["event_type"] == "store.status_changed"


async def test_settings_take_the_camel_case_body_and_show_on_the_storefront(bridge: Driver) -> None:
    await bridge.integrate()
    body: dict[str, Json] = {
        "name": "Corner & Co",
        "imageUrl": "https://img.example/a.png",
        "availability": {"monday": [{"open": "09:00", "close": "22:30"}]},
        "deliverySettings": {"enabled": True, "delivery_fee": 250, "radius_km": 3.5},
        "contactDetails": {"phone": "+1 555", "email": "c@d.example"},
    }
    answer = await bridge.call("PUT", f"{STORE}/settings", body)
    assert answer.status == 200
    assert answer.body.keys() == {"status", "message"}
    _, page, _ = await bridge.page("/store/st_main")
    assert "Corner &amp; Co" in page


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"app_id": "app_123"}, "request.unknown_field", "app_id"),
        ({"imageUrl": "x"}, "request.validation", "imageUrl"),
        (
            {"availability": {"friday": [{"open": "18:00", "close": "02:00"}]}},
            "request.validation",
            "availability.friday[0].close",
        ),
        (
            {
                "availability": {
                    "friday": [
                        {"open": "12:00", "close": "15:00"},
                        {"open": "14:00", "close": "16:00"},
                    ]
                }
            },
            "request.validation",
            "availability.friday[1]",
        ),
        (
            {"availability": {"Monday": []}},
            "request.unknown_field",
            "availability.Monday",
        ),
        (
            {"availability": {"monday": [{"open": "9", "close": "10:00"}]}},
            "request.validation",
            "availability.monday[0].open",
        ),
        (
            {"deliverySettings": {"delivery_fee": 2.5}},
            "request.validation",
            "deliverySettings.delivery_fee",
        ),
    ],
)
async def test_refused_settings_name_the_field(
    bridge: Driver, body: object, code: str, field: str
) -> None:
    await bridge.integrate()
    answer = await bridge.call("PUT", f"{STORE}/settings", body)
    assert (answer.status, answer.code) == (400, code)
    assert answer.message.startswith(f"{field}:")


async def test_unknown_toggles_pass_unless_set_otherwise(bridge: Driver) -> None:
    await bridge.integrate()
    answer = await bridge.call("PUT", f"{STORE}/settings", {"acceptsPreorders": True})
    assert answer.status == 200
    settings = (await bridge.state())["stores"]["st_main"]["settings"]
    assert settings["acceptsPreorders"] is True
    async with driven(SandboxSettings(settings_accept_unknown=False)) as strict:
        await strict.integrate()
        refused = await strict.call("PUT", f"{STORE}/settings", {"acceptsPreorders": True})
        assert (refused.status, refused.code) == (400, "request.unknown_field")


async def test_the_tax_configuration_has_the_specified_shape(bridge: Driver) -> None:
    await bridge.integrate()
    body = (await bridge.call("GET", f"{STORE}/tax-config")).body
    assert body.keys() == {"enabled", "tax_level", "pricing_mode", "default_tax_id", "taxes"}
    assert body["taxes"][0]["components"][0].keys() == {"agency", "rate", "compound"}


async def test_what_is_no_endpoint_says_so_in_the_envelope(bridge: Driver) -> None:
    missing = await bridge.call("GET", "/pos/nothing")
    assert (missing.status, missing.code) == (404, "request.not_found")
    method = await bridge.call("DELETE", "/pos/stores")
    assert (method.status, method.code) == (405, "request.method_not_allowed")


async def test_a_body_must_be_json(bridge: Driver) -> None:
    await bridge.integrate()
    path = f"{STORE}/status"
    broken = await bridge.call("PUT", path, raw=b'{"status": ')
    assert (broken.status, broken.code) == (400, "request.validation")
    headers = {"Content-Type": "text/plain"}
    plain = await bridge.call("PUT", path, raw=b'{"status": "active"}', headers=headers)
    assert (plain.status, plain.code) == (400, "request.validation")
    nan = await bridge.call("PUT", path, raw=b'{"status": NaN}')
    assert nan.code == "request.validation"


async def test_a_body_beyond_the_limit_is_refused() -> None:
    async with driven(SandboxSettings(max_body_bytes=1000)) as bridge:
        await bridge.integrate()
        answer = await bridge.call("PUT", f"{STORE}/settings", {"name": "x" * 2000})
        assert (answer.status, answer.code) == (413, "request.too_large")
