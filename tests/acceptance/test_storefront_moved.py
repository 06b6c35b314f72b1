"""From the practice service to the real one: the storefront there is empty, and gets the menu."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.world import World, make_world
from tillbridge.sandbox import SandboxSettings, start
from tillbridge.sandbox.settings import MerchantSeed, StoreSeed

pytestmark = pytest.mark.timeout(120)


async def in_step(world: World) -> dict[str, Any]:
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale()
    part: dict[str, Any] = (await world.status())["stores"]["main"]["menu"]
    return part


async def test_another_service_gets_the_whole_menu_after_a_restart(tmp_path: Path) -> None:
    other = await start(SandboxSettings(auto_consent=True, job_duration_s=0.3))
    try:
        async with make_world(tmp_path) as world:
            await in_step(world)
            assert await world.bridge.stop() == 0
            world.url = other.url
            world.write_config()
            await world.bridge.start()

            async def forgotten() -> bool:
                menu = (await world.status())["stores"]["main"]["menu"]
                return menu["acknowledged_items"] == 0 and menu["pending"] > 0

            await until("it is known that nothing is there", forgotten)
            assert (await world.connect())[0] == 0
            await world.menu_is_on_sale()

            async def counted() -> bool:
                menu = (await world.status())["stores"]["main"]["menu"]
                return (menu["acknowledged_items"], menu["pending"]) == (12, 0)

            await until("it is counted so", counted)
    finally:
        await other.stop()


async def test_another_store_gets_the_whole_menu(tmp_path: Path) -> None:
    stores = (StoreSeed("st_main", "Harbour"), StoreSeed("st_two", "Station"))
    async with make_world(tmp_path, merchants=(MerchantSeed(stores=stores),)) as world:
        world.write_config(store='store_id = "st_main"')
        await in_step(world)
        assert await world.bridge.stop() == 0
        world.write_config(store='store_id = "st_two"')
        await world.bridge.start()
        assert (await world.connect())[0] == 0

        async def there() -> bool:
            links = (await world.state())["stores"]["st_two"]["integrations"]
            return bool(links) and len(links[0]["items"]) == 12

        await until("the other storefront has the menu", there)


async def test_a_service_that_forgot_the_store_is_told_all_again(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        await in_step(world)
        await world.control("reset", {})
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()
