"""A workbook that would end its reader: the bridge goes on, with orders and after a restart."""

import re
import zipfile
from pathlib import Path

from tests.support.bridge_process import until
from tests.support.world import World
from tillbridge.adapter.conformance.workbook import write_workbook

HEADER = ["Clover ID", "Name", "Price"]
STRAY = b"<row r='1048576'><c r='XFD1048576'><v>1</v></c></row></sheetData>"


def export(world: World, *rows: list[str], stray: bool = False) -> None:
    path = world.till.export / "inventory.xlsx"
    write_workbook(path, {"Items": [HEADER, *rows]})
    if stray:
        reach_far(path)


def reach_far(path: Path) -> None:
    """Put a cell into the last row and the last column, which would take half a terabyte."""
    fresh = path.with_suffix(".fresh")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(fresh, "w") as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name).replace(b"</sheetData>", STRAY))
    fresh.replace(path)


def configure(world: World) -> None:
    world.write_config()
    said = '[stores.main.pos]\nadapter = "clover"\nexport = "export/inventory.xlsx"\n\n'
    text = re.sub(
        r"\[stores\.main\.pos\].*?\[stores\.main\.orders\]\n",
        f'{said}[stores.main.orders]\nadapter = "folder"\norders_dir = "orders"\n',
        world.config.read_text("utf-8"),
        flags=re.DOTALL,
    )
    world.config.write_text(text, "utf-8")


async def test_a_workbook_that_aborts_its_reader_ends_nothing_else(world: World) -> None:
    configure(world)
    export(world, ["p1", "Soup", "4.50"])
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err

    async def sells(*names: str) -> bool:
        return sorted(item["name"] for item in (await world.storefront()).values()) == list(names)

    await until("the menu is there", lambda: sells("Soup"))
    export(world, ["p1", "Soup", "4.50"], ["p2", "Tea", "2.00"], stray=True)
    await world.problem("export.unreadable")
    (told,) = [
        each for each in (await world.status())["problems"] if each["code"] == "export.unreadable"
    ]
    assert "inventory.xlsx needs more than 320 MB of memory to be read" in told["text"]
    assert "Delete all rows below the table" in told["fix"]

    order = await world.order("p1")
    await world.reaches(order, "accepted")
    assert await world.bridge.stop() == 0
    await world.bridge.start()
    await world.problem("export.unreadable")
    order = await world.order("p1")
    await world.reaches(order, "accepted")

    export(world, ["p1", "Soup", "4.50"], ["p2", "Tea", "2.00"])
    await until("the new dish is there", lambda: sells("Soup", "Tea"))
    await world.problem("export.unreadable", open_=False)
    assert len(world.till.tickets()) == 2
