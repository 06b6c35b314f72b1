"""A change that a person does not want is not offered again, until the till tells another one."""

from pathlib import Path

from tests.support.catalogue_house import CatalogueHouse, catalogue_house
from tests.support.catalogues import dishes
from tillbridge.ledger.pushes import get_hold, push_page


async def held(house: CatalogueHouse, *, left: int = 5) -> None:
    house.pos.menu = dishes(20)
    await house.flow.push_again()
    await house.calls()
    house.pos.menu = dishes(left)
    await house.flow.push_again()
    assert "menu.held" in house.tracker.codes


async def test_a_dismissed_change_is_not_offered_again(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await held(house)
        hold = await house.flow.dismiss(by="page:anna")
        assert hold is not None
        assert "menu.held" not in house.tracker.codes
        await house.flow.push_again()
        assert "menu.held" not in house.tracker.codes, "the same export is the same change"
        assert len(await house.on_sale()) == 20
        assert await house.calls() == []


async def test_another_change_is_looked_at_anew(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await held(house)
        await house.flow.dismiss(by="page:anna")
        house.pos.menu = dishes(4)
        await house.flow.push_again()
        assert "menu.held" in house.tracker.codes


async def test_what_was_dismissed_may_be_released_after_all(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await held(house)
        await house.flow.dismiss(by="page:anna")
        assert await house.flow.approve() is not None
        await house.flow.push_again()
        assert len(await house.on_sale()) == 5
        assert await house.ask(get_hold) is None


async def test_nothing_is_dismissed_where_nothing_waits(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        house.pos.menu = dishes(3)
        await house.flow.push_again()
        assert await house.flow.dismiss(by="page:anna") is None


async def test_pushes_are_listed_page_by_page(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        for count in (3, 4, 5):
            house.pos.menu = dishes(count)
            await house.flow.push_again()
        pushes = await house.ask(push_page, 2)
        assert [each.state for each in pushes] == ["success", "success"]
        earlier = await house.ledger.read(
            lambda connection: push_page(connection, "main", 2, before=pushes[-1].id)
        )
        assert [each.kind for each in earlier] == ["full"]
