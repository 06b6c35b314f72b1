"""A change that a person does not want is not offered again, until the till tells another one."""

from pathlib import Path

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes
from tillbridge.ledger.pushes import get_hold, push_page


async def held(harness: CatalogueHarness, *, left: int = 5) -> None:
    harness.pos.menu = dishes(20)
    await harness.flow.push_again()
    await harness.calls()
    harness.pos.menu = dishes(left)
    await harness.flow.push_again()
    assert "menu.held" in harness.tracker.codes


async def test_a_dismissed_change_is_not_offered_again(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await held(harness)
        hold = await harness.flow.dismiss(by="page:anna")
        assert hold is not None
        assert "menu.held" not in harness.tracker.codes
        await harness.flow.push_again()
        assert "menu.held" not in harness.tracker.codes, "the same export is the same change"
        assert len(await harness.on_sale()) == 20
        assert await harness.calls() == []


async def test_another_change_is_looked_at_anew(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await held(harness)
        await harness.flow.dismiss(by="page:anna")
        harness.pos.menu = dishes(4)
        await harness.flow.push_again()
        assert "menu.held" in harness.tracker.codes


async def test_what_was_dismissed_may_be_released_after_all(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await held(harness)
        await harness.flow.dismiss(by="page:anna")
        assert await harness.flow.approve() is not None
        await harness.flow.push_again()
        assert len(await harness.on_sale()) == 5
        assert await harness.ask(get_hold) is None


async def test_nothing_is_dismissed_where_nothing_waits(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.menu = dishes(3)
        await harness.flow.push_again()
        assert await harness.flow.dismiss(by="page:anna") is None


async def test_pushes_are_listed_page_by_page(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        for count in (3, 4, 5):
            harness.pos.menu = dishes(count)
            await harness.flow.push_again()
        pushes = await harness.ask(push_page, 2)
        assert [each.state for each in pushes] == ["success", "success"]
        earlier = await harness.ledger.read(
            lambda connection: push_page(connection, "main", 2, before=pushes[-1].id)
        )
        assert [each.kind for each in earlier] == ["full"]
