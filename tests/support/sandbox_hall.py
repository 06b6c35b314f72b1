"""A sandbox with a food hall of two stores, both connected, and an app-level token for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.support.sandbox_driver import Answer, Driver, Json, driven, item
from tillbridge.sandbox import CommunitySeed, MerchantSeed, SandboxSettings, StoreSeed

HALL = "/communities/com_food_hall"
APP = {"client_id": "app_123", "client_secret": "sandbox-secret"}
SEEDS = SandboxSettings(
    merchants=(MerchantSeed(stores=(StoreSeed(), StoreSeed("st_tea", "Tea Room"))),),
    communities=(
        CommunitySeed(store_ids=("st_main", "st_tea")),
        CommunitySeed("com_other", "Another app's", client_id="app_other"),
    ),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ALL_DAY = {"open": "00:00", "close": "24:00"}


class Hall:
    """A driver of the sandbox, and of its community."""

    def __init__(self, bridge: Driver) -> None:
        self.bridge = bridge
        self.token = ""

    async def call(self, method: str, path: str, body: Json = None) -> Answer:
        return await self.bridge.call(method, path, body, token=self.token)

    async def mint(self, **fields: str) -> Answer:
        body = {"grant_type": "client_credentials", **APP, **fields}
        return await self.bridge.call("POST", "/oauth2/token", body, token="")

    async def catalogue(self, query: str = "") -> dict[str, Any]:
        answer = await self.call("GET", f"{HALL}/catalogue{query}")
        assert answer.status == 200, answer.body
        return dict(answer.body)

    async def item(self, external_id: str, query: str = "") -> dict[str, Any]:
        items = (await self.catalogue(query))["items"]
        return dict(next(found for found in items if found["external_id"] == external_id))

    async def patch(self, external_id: str, body: Json) -> Answer:
        found = await self.item(external_id)
        return await self.call("PATCH", f"{HALL}/catalogue/items/{found['item_id']}", body)

    async def set_hours(self, store_id: str, body: Json) -> Answer:
        return await self.call("PUT", f"{HALL}/stores/{store_id}/hours", body)

    async def subscribe(self, **fields: Json) -> dict[str, Any]:
        body = {"name": "Till", "url": self.bridge.receiver.url, **fields}
        answer = await self.call("POST", f"{HALL}/webhooks", body)
        assert answer.status == 201, answer.body
        return dict(answer.body)

    async def try_order(self, *lines: Json, **fields: Json) -> Answer:
        body = {"items": list(lines), "wait": True, **fields}
        return await self.bridge.try_control("POST", f"{HALL}/orders", body)

    async def order(self, *lines: Json, **fields: Json) -> dict[str, Any]:
        answer = await self.try_order(*lines, **fields)
        assert answer.status == 200, answer.body
        return dict(answer.body)

    async def pos(self, order_id: str, step: str) -> None:
        """A POS moves its order on."""
        body = {"status": "preparing"} if step == "status" else None
        answer = await self.bridge.call("POST", f"/pos/orders/{order_id}/{step}", body)
        assert answer.status == 200, answer.body


def at(store_id: str, external_id: str, **more: Json) -> dict[str, Any]:
    return {"store_id": store_id, "external_id": external_id, **more}


def week(**days: Json) -> dict[str, Any]:
    """Open always, but for the days that are given."""
    return {"timezone": "UTC", "weekly": {day: [ALL_DAY] for day in WEEKDAYS} | days}


@asynccontextmanager
async def hall_of(settings: SandboxSettings = SEEDS) -> AsyncIterator[Hall]:
    async with driven(replace(settings, merchants=SEEDS.merchants)) as bridge:
        await bridge.integrate()
        body = {
            "webhook_url": bridge.receiver.url,
            "menu_sync_direction": "pos_to_quiqqy",
            "external_store_id": "loc-2",
        }
        assert (await bridge.call("POST", "/pos/integrate-store/st_tea", body)).status == 200
        await bridge.push(
            item("toast", 700, categories=["food"], addon_groups=["on-top"]),
            item("soup", 500),
            item("egg-item", 10, product_type="addon"),
            categories=[{"external_id": "food", "name": "Food"}],
            add_ons=[{"external_id": "egg", "name": "Egg", "price": 150}],
            addon_groups=[{"external_id": "on-top", "name": "On top", "add_ons": ["egg"]}],
        )
        tea = {"menu_name": "Tea", "items": [item("tea", 300), item("soup", 450)]}
        assert (await bridge.call("POST", "/pos/stores/st_tea/menus", tea)).status == 200
        hall = Hall(bridge)
        minted = await hall.mint(audience=settings.community_audience)
        hall.token = minted.body["access_token"]
        yield hall
