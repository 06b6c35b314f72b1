"""A restaurant with Odoo: its menu is sold, its orders land there once, whatever goes wrong."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.world import World
from tillbridge_odoo.emulated.shop import Shop
from tillbridge_odoo.emulated.till import DATABASE, KEY, LOGIN
from tillbridge_odoo.rig import OdooRig


@pytest.fixture(params=[17, 19])
async def odoo(request: pytest.FixtureRequest, world: World) -> AsyncIterator[Shop]:
    """Run an Odoo of that version, and let the store's till be it."""
    kind = type("OdooOfVersion", (OdooRig,), {"version": request.param})
    (world.folder / "odoo").mkdir()
    shop = Shop(kind(world.folder / "odoo"))
    shop.store.set("res.currency", 1, name="USD")
    config = world.config.read_text("utf-8")
    folder = config[config.index('adapter = "folder"') : config.index("[stores.main.orders]")]
    till = f"""adapter = "odoo"
url = "{shop.server.url}"
database = "{DATABASE}"
login = "{LOGIN}"
api_key = {{ env = "ODOO_KEY" }}
online_table = "Online"
timeout_s = 2
late_s = 1
poll_s = 0.3
health_s = 0.5

"""
    world.config.write_text(config.replace(folder, till), "utf-8")
    world.bridge.env["ODOO_KEY"] = KEY
    yield shop
    shop.close()


async def on_sale(world: World, **prices: int | None) -> None:
    """Wait until the storefront sells these at these prices; None for what it does not sell."""

    async def look() -> bool:
        items: dict[str, Any] = await world.storefront()
        sold = {key: each["price"] for key, each in items.items() if each["available"]}
        return all(sold.get(key.replace("_", "-")) == price for key, price in prices.items())

    await until(f"on sale: {prices}", look)


async def test_odoos_menu_is_sold_and_its_orders_are_written_once(world: World, odoo: Shop) -> None:
    soup, bread = odoo.product("Soup", 4.5), odoo.product("Bread", 2.0)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await on_sale(world, tmpl_1=450, tmpl_2=200)

    first = await world.order(f"tmpl-{soup}", f"tmpl-{bread}")
    await until("the draft is there", lambda: odoo.state() == ["draft"])
    await world.reaches(first, "accepted")
    odoo.odoo.sales.pay(1, 2)
    await world.reaches(first, "ready")

    odoo.server.lose_next = True
    second = await world.order(f"tmpl-{soup}", wait=False)
    await world.reaches(second, "accepted")
    assert odoo.state() == ["paid", "draft"]

    odoo.store.set("product.template", bread, sale_ok=False)
    odoo.store.set("product.template", soup, list_price=5.0)
    await on_sale(world, tmpl_1=500, tmpl_2=None)

    odoo.odoo.close_sessions()
    third = await world.order(f"tmpl-{soup}", wait=False, unchecked=True)
    await world.reaches(third, "cancelled")
    cancels = [call for call in await world.calls(third) if call["path"].endswith("/cancel")]
    assert "STORE_CLOSED" in str(cancels)
    assert odoo.state() == ["paid", "draft"]
    await world.problem("store.closed_in_till")
    odoo.odoo.open_session()
    await world.problem("store.closed_in_till", open_=False)


async def test_orders_wait_for_an_odoo_that_is_away(world: World, odoo: Shop) -> None:
    soup = odoo.product("Soup", 4.5)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await on_sale(world, tmpl_1=450)

    odoo.server.stop()
    await world.problem("pos.offline")
    order = await world.order(f"tmpl-{soup}", wait=False, unchecked=True)

    async def waits() -> bool:
        return bool((await world.status())["stores"]["main"]["orders"]["waiting"])

    await until("the order waits", waits)
    await world.bridge.kill()
    await world.bridge.start()
    odoo.server.start()
    await world.problem("pos.offline", open_=False)
    await world.reaches(order, "accepted")
    assert odoo.state() == ["draft"]
