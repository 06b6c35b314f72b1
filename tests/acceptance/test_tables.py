"""Tables through the real daemon: a file of the till becomes codes to print, and stays in line."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_process import until
from tests.support.world import World, make_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        write_tables(made, 8)
        text = made.config.read_text("utf-8")
        made.config.write_text(
            text.replace(
                'updates_dir = "updates"', 'updates_dir = "updates"\ntables = "tables.csv"'
            )
        )
        await made.bridge.start()
        code, out, err = await made.connect()
        assert code == 0, out + err
        yield made


def write_tables(world: World, count: int, *more: str) -> None:
    rows = ["external_id,name,seats,zone"]
    rows += [f"t{n},Table {n},4,{'Hall' if n <= 4 else 'Garden'}" for n in range(1, count + 1)]
    fresh = world.folder / "tables.csv.new"
    fresh.write_text("\n".join([*rows, *more]) + "\n", encoding="utf-8")
    fresh.replace(world.folder / "tables.csv")


async def tables(world: World) -> dict[str, Any]:
    """The tables of the status page."""
    found: dict[str, Any] = (await world.status())["stores"]["main"]["tables"]
    return found


async def reaches(world: World, **wanted: object) -> None:
    async def look() -> bool:
        now = await tables(world)
        return all(now[key] == value for key, value in wanted.items())

    await until(f"tables are {wanted}", look)


async def asked(world: World, *arguments: str) -> Any:  # noqa: ANN401 -- any JSON value
    code, out, err = await world.bridge.run("tables", *arguments, "--json")
    assert code == 0, out + err
    return json.loads(out)


async def test_the_tills_tables_become_codes_to_print(world: World) -> None:
    await reaches(world, active=8, held=False, codes_changed=[])
    assert (await tables(world))["last_synced_at"]

    out = world.folder / "print"
    told = await asked(world, "qr", "main", "--out", str(out), "--zone", "garden")
    assert told["codes"] == 4
    html = (out / "tables-main-garden.html").read_text("utf-8")
    assert html.count("<article") == 4
    assert "Table 1<" not in html
    assert (await asked(world, "qr", "main", "--format", "png", "--out", str(out)))["codes"] == 8
    assert (out / "main-table-8.png").exists()

    # No token in the log.
    addresses = [each["qr_url"] for each in (await asked(world, "list", "main"))["tables"]]
    log = world.bridge.log_path.read_text("utf-8")
    assert all(url and url.rsplit("=", 1)[1] not in log for url in addresses)


async def test_codes_that_died_are_told_until_they_are_printed_again(world: World) -> None:
    await reaches(world, active=8)
    out = str(world.folder / "print")
    await asked(world, "qr", "main", "--out", out)
    await world.control("tables/st_main/rotate", {"external_ids": ["t4", "t5"]})
    await asked(world, "push", "main")
    await world.problem("tables.codes_changed")
    assert (await tables(world))["codes_changed"] == ["Table 4", "Table 5"]
    await asked(world, "qr", "main", "--out", out)
    await world.problem("tables.codes_changed", open_=False)


async def test_a_plan_that_loses_most_tables_is_held_until_it_is_approved(world: World) -> None:
    await reaches(world, active=8)
    write_tables(world, 1)
    await world.problem("tables.held")
    await reaches(world, active=8, held=True)
    code, _out, _err = await world.bridge.run("tables", "push", "main")
    assert code == 1
    assert "7 of 8 tables" in (await asked(world, "plan", "main"))["held"][0]
    await asked(world, "approve", "main")
    await reaches(world, active=1, held=False)
    await world.problem("tables.held", open_=False)


async def test_a_bad_row_is_told_with_file_row_and_remedy(world: World) -> None:
    await reaches(world, active=8)
    write_tables(world, 9, "t2,Twice,2,Hall", "t10,Table 10,many,Hall", "t11,,2,Hall")
    await reaches(world, active=9)
    plan = await asked(world, "plan", "main")
    assert [row["external_id"] for row in plan["bad_rows"]] == ["", "t10", "t11"]
    assert all("tables.csv" in row["place"] and row["fix"] for row in plan["bad_rows"])
    await world.problem("export.bad_rows")


@pytest.mark.skipif(os.name == "nt", reason="the daemon is stopped by a signal")
async def test_everything_works_while_no_bridge_runs(world: World) -> None:
    await reaches(world, active=8)
    assert await world.bridge.stop() == 0
    assert len((await asked(world, "list", "main"))["tables"]) == 8
    assert (await asked(world, "qr", "main", "--out", str(world.folder / "p")))["pages"] == 2
    write_tables(world, 7)
    assert (await asked(world, "plan", "main"))["changes"]["removed"][0]["external_id"] == "t8"
    assert "7 tables" in (await asked(world, "push", "main"))["text"]
    code, out, _err = await world.bridge.run("status", "--json")
    assert code == 2  # the bridge is stopped
    assert json.loads(out)["stores"]["main"]["tables"]["active"] == 7
