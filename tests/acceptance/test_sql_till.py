"""A till that is a database: the menu by NOTIFY, orders in one transaction, a server that dies."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from tests.support.bridge_process import until
from tests.support.tills import close_database, database_settings, telling_database
from tests.support.world import World
from tillbridge.adapter.conformance.subject import plain_items
from tillbridge_sql.rig_marks import marks_of
from tillbridge_sql.rig_profiles import UnicentaOnPostgresql
from tillbridge_sql.rig_servers import PASSWORD

pytestmark = marks_of(UnicentaOnPostgresql)


@pytest.fixture
async def till(world: World) -> AsyncIterator[UnicentaOnPostgresql]:
    rig = await asyncio.to_thread(telling_database, world.folder / "till", plain_items())
    yield rig
    await world.bridge.kill()
    await asyncio.to_thread(close_database, rig)


def configure(world: World, till: UnicentaOnPostgresql) -> None:
    world.write_config()
    text = world.config.read_text("utf-8")
    text = re.sub(
        r"\[stores\.main\.pos\].*?(?=\[stores\.main\.orders\])",
        lambda _match: f"[stores.main.pos]\n{database_settings(till)}\n",
        text,
        flags=re.DOTALL,
    )
    world.config.write_text(text, "utf-8")


async def test_a_database_is_a_till(world: World, till: UnicentaOnPostgresql) -> None:
    configure(world, till)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err

    async def on_sale() -> bool:
        return {key: item["price"] for key, item in (await world.storefront()).items()} == {
            item.external_id: item.price for item in plain_items()
        }

    await until("the storefront has the till's menu", on_sale)

    # The bridge asks once a minute: sooner, it has heard.
    till.rename("sku-1", "Soup of the day")

    async def renamed() -> bool:
        return bool((await world.storefront())["sku-1"]["name"] == "Soup of the day")

    await until("the new name is there", renamed)
    till.sell_out("sku-3")

    async def sold_out() -> bool:
        return not (await world.storefront())["sku-3"]["available"]

    await until("what is sold out is off sale", sold_out)

    first = await world.order("sku-1", "sku-2")
    await world.reaches(first, "accepted")
    assert [ticket.key for ticket in till.tickets()] == [first]

    till.server.kill()
    await world.problem("pos.offline")
    second = await world.order("sku-1", wait=False)
    await asyncio.to_thread(till.server.start)
    await world.problem("pos.offline", open_=False)
    await world.reaches(second, "accepted")
    assert sorted(ticket.key for ticket in till.tickets()) == sorted([first, second])

    assert await world.bridge.stop() == 0
    seen = "".join(
        path.read_text("utf-8", "replace")
        for path in world.folder.rglob("*")
        if path.is_file() and path.name != "password" and path.suffix in {".log", ".toml", ".jsonl"}
    )
    assert PASSWORD not in seen
    assert PASSWORD not in world.bridge.log_path.read_text("utf-8")
