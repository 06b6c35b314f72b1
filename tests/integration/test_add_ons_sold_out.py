"""An add-on that is sold out is left out of its groups, and comes back with them."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes, without
from tillbridge.adapter import ExportUnreadable
from tillbridge.core.errors import ServiceError
from tillbridge.ledger import menu
from tillbridge.ledger.menu_codec import part_from, part_text
from tillbridge.menu.board import board_view
from tillbridge.menu.views import is_item, items_found, items_off_sale
from tillbridge.model.catalogue import AddOn, AddOnGroup, Availability, Catalogue, CatalogueChanges

OFF = Availability(available=False)
SAUCES = AddOnGroup("g-sauce", "Sauces", add_ons=("a-mayo", "a-curry"))
BUN = AddOnGroup("g-bun", "Bun", 1, 1, required=True, add_ons=("a-white", "a-rye"))
ADD_ONS = (
    AddOn("a-mayo", "Mayonnaise", 80),
    AddOn("a-curry", "Curry sauce", 90),
    AddOn("a-white", "White bun", 0),
    AddOn("a-rye", "Rye bun", 50),
)


def sold(**changes: dict[str, object]) -> Catalogue:
    """Twelve dishes: the first with sauces, the second with sauces and a bun."""
    of_groups = {"p1": ("g-sauce",), "p2": ("g-sauce", "g-bun")}
    with_groups = {
        key: {"addon_groups": groups, **changes.get(key, {})} for key, groups in of_groups.items()
    }
    found = dishes(12, **{**changes, **with_groups})
    return replace(
        found,
        add_ons={each.external_id: each for each in ADD_ONS},
        addon_groups={each.external_id: each for each in (SAUCES, BUN)},
    )


async def sync(harness: CatalogueHarness, catalogue: Catalogue | None = None) -> list[str]:
    """Read what the till says, make the rounds that follow, and return the calls made."""
    if catalogue is not None:
        harness.pos.menu = catalogue
    harness.flow.availability_changed()
    with suppress(ServiceError):
        await harness.flow.push_again()
    await harness.flow._availability.step()
    return await harness.calls()


async def offered(harness: CatalogueHarness, group: str) -> list[str]:
    """Return what guests can choose in the group."""
    return list((await harness.linked.driver.catalogue())["addon_groups"][group]["add_ons"])


async def off_sale(harness: CatalogueHarness) -> dict[str, tuple[str, bool]]:
    """Return what the page lists as sold out: who says so, and whether guests still see it."""
    listed = await harness.ask(items_off_sale, harness.clock.now_ms())
    return {each["name"]: (each["how"], each["reached_ms"] is not None) for each in listed}


async def test_what_the_till_has_sold_out_leaves_its_group_and_comes_back(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        harness.pos.words = {"a-mayo": OFF}
        assert await sync(harness) == ["POST menus/batch"]
        assert await offered(harness, "g-sauce") == ["a-curry"]
        assert await offered(harness, "g-bun") == ["a-white", "a-rye"]
        assert await off_sale(harness) == {"Mayonnaise": ("till", False)}
        assert await sync(harness) == []

        harness.pos.words = {"a-mayo": Availability(available=True)}
        assert await sync(harness) == ["POST menus/batch"]
        assert await offered(harness, "g-sauce") == ["a-mayo", "a-curry"]
        assert await off_sale(harness) == {}
        assert await sync(harness) == []


async def test_the_availability_lane_asks_for_it_once(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        await harness.flow.take_off_sale("a-curry", until=None, by="staff")
        assert await off_sale(harness) == {"Curry sauce": ("staff", False)}
        await harness.flow._availability.step()
        assert await harness.calls() == []
        await harness.flow._menu.step()
        assert await harness.calls() == ["POST menus/batch"]
        assert await offered(harness, "g-sauce") == ["a-mayo"]
        assert await off_sale(harness) == {"Curry sauce": ("staff", True)}

        await harness.flow.restore("a-curry")
        await harness.flow._availability.step()
        await harness.flow._menu.step()
        assert await offered(harness, "g-sauce") == ["a-mayo", "a-curry"]


async def test_it_comes_back_when_its_time_is_over(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        until = harness.clock.now_ms() + 60_000
        await harness.flow.take_off_sale("a-mayo", until=until, by="staff")
        await sync(harness)
        assert await offered(harness, "g-sauce") == ["a-curry"]
        harness.clock.ahead_ms += 61_000
        await sync(harness)
        assert await offered(harness, "g-sauce") == ["a-mayo", "a-curry"]


async def test_an_optional_group_may_be_sold_out_altogether(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        harness.pos.words = {"a-mayo": OFF, "a-curry": OFF}
        await sync(harness)
        assert await offered(harness, "g-sauce") == []
        assert all(each["available"] for each in (await harness.on_sale()).values())


async def test_items_are_off_sale_while_nothing_is_left_to_choose_for_them(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        harness.pos.words = {"a-white": OFF, "a-rye": OFF}
        await sync(harness)
        on_sale = await harness.on_sale()
        assert [key for key, each in on_sale.items() if not each["available"]] == ["p2"]
        assert await offered(harness, "g-bun") == ["a-white", "a-rye"]
        assert await sync(harness) == []

        harness.pos.words = {"a-white": OFF}
        await sync(harness)
        assert (await harness.on_sale())["p2"]["available"]
        assert await offered(harness, "g-bun") == ["a-rye"]


async def test_it_goes_out_while_the_menu_waits_or_cannot_be_read(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        await sync(harness, replace(sold(), items=dict(list(sold().items.items())[:2])))
        assert "menu.held" in harness.tracker.codes
        harness.pos.words = {"a-mayo": OFF}
        assert await sync(harness) == ["POST menus/batch"]
        assert await offered(harness, "g-sauce") == ["a-curry"]
        assert len(await harness.on_sale()) == 12

        harness.pos.menu = ExportUnreadable("It is locked.", fix="Close it.")
        harness.pos.words = {"a-curry": OFF}
        await sync(harness)
        assert await offered(harness, "g-sauce") == ["a-mayo"]


async def test_many_that_are_sold_out_do_not_hold_the_menu(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        groups = {f"g{n}": AddOnGroup(f"g{n}", "Extra", add_ons=(f"x{n}", "y")) for n in range(12)}
        extras = {f"x{n}": AddOn(f"x{n}", f"Extra {n}", 50) for n in range(12)}
        items = dishes(12, **{f"p{n}": {"addon_groups": (f"g{n - 1}",)} for n in range(1, 13)})
        add_ons = {**extras, "y": AddOn("y", "Salt", 0)}
        await sync(harness, replace(items, add_ons=add_ons, addon_groups=groups))
        harness.pos.words = {f"x{n}": OFF for n in range(12)}
        await sync(harness)
        assert harness.tracker.opened == {}
        assert await offered(harness, "g7") == ["y"]


async def test_an_approval_stands_when_something_sells_out(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        fewer = without(sold(), *(f"p{number}" for number in range(3, 13)))
        await sync(harness, fewer)
        await harness.flow.approve()
        harness.pos.words = {"a-mayo": OFF}
        await sync(harness)
        assert (await harness.on_sale()).keys() == {"p1", "p2"}
        assert await offered(harness, "g-sauce") == ["a-curry"]


async def test_nothing_comes_back_while_the_tills_word_is_not_known(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        harness.pos.words = {"a-mayo": OFF}
        await sync(harness)
        harness.pos.words = ExportUnreadable("It is locked.", fix="Close it.")
        flow = harness.flow
        harness.flow = harness.rebuild()  # as after a restart
        assert harness.flow is not flow
        assert await sync(harness, sold(p3={"price": 333})) == ["PATCH items/p3"]
        assert await offered(harness, "g-sauce") == ["a-curry"]


@pytest.mark.usefixtures("each_database")
async def test_a_reading_of_changes_alone_finds_it(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())

        async def nothing_new(known: Iterable[int]) -> CatalogueChanges:
            return CatalogueChanges(Catalogue(), frozenset(), 12)

        harness.pos.reads_changes = True
        harness.pos.read_changes = nothing_new  # type: ignore[method-assign] # a till without news
        harness.pos.words = {"a-mayo": OFF, "a-white": OFF, "a-rye": OFF}
        await sync(harness)
        assert await offered(harness, "g-sauce") == ["a-curry"]
        assert not (await harness.on_sale())["p2"]["available"]
        harness.pos.words = {}
        await sync(harness)
        assert await offered(harness, "g-sauce") == ["a-mayo", "a-curry"]
        assert (await harness.on_sale())["p2"]["available"]


@pytest.mark.usefixtures("each_database")
async def test_people_find_it_by_its_name(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        assert await harness.ask(is_item, "a-mayo")
        found = await harness.ledger.read(items_found, "main", "mayo", "USD", limit=5)
        assert [(each["external_id"], each["on_sale"]) for each in found["items"]] == [
            ("a-mayo", True)
        ]
        await harness.flow.take_off_sale("a-mayo", until=None, by="staff")
        await sync(harness)
        board = await harness.ledger.read(
            board_view, "main", text="mayo", category="", page=1, currency="USD", now=0
        )
        (tile,) = board["sections"][0]["tiles"]
        assert (tile["name"], tile["state"]) == ("Mayonnaise", "off")


async def test_the_ledger_has_the_whole_group_and_what_is_sold_out(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, sold())
        harness.pos.words = {"a-mayo": OFF}
        await sync(harness)
        groups = (await harness.ask(menu.parts)).addon_groups
        assert groups == {"g-bun": BUN, "g-sauce": replace(SAUCES, sold_out=("a-mayo",))}


def test_a_group_is_stored_as_before_while_nothing_of_it_is_sold_out() -> None:
    assert part_text(SAUCES) == '["g-sauce","Sauces",0,0,false,["a-mayo","a-curry"]]'
    off = replace(SAUCES, sold_out=("a-mayo",))
    assert part_from("addon_groups", part_text(off)) == off
    later = part_text(off)[:-1] + ',"of a later version"]'
    assert part_from("addon_groups", later) == off
