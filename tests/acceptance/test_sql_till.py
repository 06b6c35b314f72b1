"""A till that is a database: the menu by NOTIFY, orders in one transaction, a server that dies."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from tests.support.bridge_process import until
from tests.support.world import World
from tillbridge.adapter.conformance.subject import plain_items
from tillbridge_sql.rig_marks import marks_of
from tillbridge_sql.rig_profiles import UnicentaOnPostgresql
from tillbridge_sql.rig_servers import PASSWORD

pytestmark = marks_of(UnicentaOnPostgresql)

FUNCTION = """
CREATE OR REPLACE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('tillbridge', TG_ARGV[0]); RETURN NULL; END $$
"""
TRIGGER = """
CREATE OR REPLACE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION tell('{what}')
"""


@pytest.fixture
async def till(world: World) -> AsyncIterator[UnicentaOnPostgresql]:
    folder = world.folder / "till"
    folder.mkdir()
    rig = await asyncio.to_thread(UnicentaOnPostgresql, folder)
    rig.run(
        FUNCTION,
        TRIGGER.format(table="products", what="catalogue"),
        TRIGGER.format(table="stockcurrent", what="availability"),
    )
    rig.sell(plain_items(), "USD")
    yield rig
    await world.bridge.kill()
    await asyncio.to_thread(rig.server.start)  # whatever has become of it
    rig.run("DROP FUNCTION tell CASCADE")
    rig.close()


def configure(world: World, till: UnicentaOnPostgresql) -> None:
    world.write_config()
    options = till.options()
    said = "\n".join(
        (
            'adapter = "sql"',
            f'profile = "{options["profile"]}"',
            f'url = "{options["url"]}"',
            'password = { file = "till/password" }',
            'parameters = { host = "till-1", stock_location = "0" }',
            "orders = true",
            'change = "notify"',
            "timeout_s = 2",
            "health_s = 0.5",
        )
    )
    text = world.config.read_text("utf-8")
    text = re.sub(
        r"\[stores\.main\.pos\].*?(?=\[stores\.main\.orders\])",
        lambda _match: f"[stores.main.pos]\n{said}\n\n",
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
