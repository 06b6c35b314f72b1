"""A menu whose file was UTF-8 and is not any more waits for a person, also after a restart."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes
from tillbridge.model.catalogue import Catalogue
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding

UTF_8 = FileEncoding("utf-8")
WESTERN = FileEncoding("cp1252", bad_byte=412, bad_line=17)
TWICE = FileEncoding("utf-8", encoded_twice=True)


def menu(encoding: FileEncoding, *, price: int = 100, name: str = "menu.csv") -> Catalogue:
    facts = ExportFacts(encodings={name: encoding})
    return replace(dishes(12, p1={"price": price}), facts=facts)


async def exported(harness: CatalogueHarness, catalogue: Catalogue) -> list[str]:
    await harness.calls()
    harness.pos.menu = catalogue
    harness.flow._menu.request()
    await harness.flow._menu.step()
    return await harness.calls()


@pytest.mark.parametrize("broken", [WESTERN, TWICE], ids=["western", "twice"])
async def test_an_export_that_is_not_utf_8_any_more_is_held(
    tmp_path: Path, broken: FileEncoding
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        assert await exported(harness, menu(UTF_8)) == ["POST menus"]
        assert await exported(harness, menu(broken, price=110)) == []
        problem = harness.tracker.opened["menu.held", ""]
        assert "menu.csv used to be UTF-8" in str(problem["detail"])
        harness.flow = harness.rebuild()  # a restart forgets nothing of it
        assert await exported(harness, menu(broken, price=110)) == []
        assert await exported(harness, menu(UTF_8, price=110)) == ["PATCH items/p1"]
        assert not harness.tracker.opened


async def test_an_encoding_that_an_option_names_is_taken(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await exported(harness, menu(UTF_8))
        named = replace(WESTERN, chosen=True)
        assert await exported(harness, menu(named, price=110)) == ["PATCH items/p1"]
        assert await exported(harness, menu(WESTERN, price=120)) == ["PATCH items/p1"]


async def test_a_file_of_plain_ascii_does_not_make_the_next_one_suspect(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await exported(harness, menu(FileEncoding("ascii")))
        assert await exported(harness, menu(WESTERN, price=110)) == ["PATCH items/p1"]


async def test_a_file_of_plain_ascii_does_not_hide_that_the_next_one_is_garbled(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await exported(harness, menu(UTF_8))
        assert await exported(harness, menu(FileEncoding("ascii"), price=110)) == ["PATCH items/p1"]
        assert await exported(harness, menu(WESTERN, price=120)) == []
        assert "menu.held" in harness.tracker.codes


async def test_a_menu_that_waits_is_not_an_accepted_one(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await exported(harness, menu(WESTERN))
        held = replace(dishes(1), facts=ExportFacts(encodings={"menu.csv": UTF_8}))
        await exported(harness, held)
        assert "menu.held" in harness.tracker.codes
        assert await exported(harness, menu(WESTERN, price=110)) == ["PATCH items/p1"]


async def test_what_is_odd_in_an_export_is_a_problem_until_it_is_not(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        odd = ExportWarning("menu.csv", "No item is in Raw.", "Correct it.")
        await exported(harness, replace(dishes(12), facts=ExportFacts(warnings=(odd,))))
        problem = harness.tracker.opened["export.warnings", "menu"]
        assert problem["detail"] == "menu.csv: No item is in Raw."
        assert len(await harness.on_sale()) == 12
        await exported(harness, dishes(12))
        assert not harness.tracker.opened
