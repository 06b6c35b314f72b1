"""Pushes that a person asks for, or an order that tells of other prices."""

import json
from pathlib import Path

import pytest

from tests.support.catalogue_house import CatalogueHouse, catalogue_house
from tests.support.catalogues import dishes
from tillbridge.core.errors import ServiceDown


async def pushed(house: CatalogueHouse) -> None:
    house.pos.menu = dishes(3)
    await house.flow.push_again()
    assert await house.calls() == ["POST menus"]


async def test_a_full_push_by_hand_tells_that_it_pushed(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await pushed(house)
        report = await house.flow.push_full()
        assert report is not None
        assert report.kind == "full"
        assert report.calls
        assert await house.calls() == ["POST menus"]


async def test_a_push_by_hand_tells_that_the_service_was_away(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await pushed(house)
        await house.linked.fault("error", "", status=503, count=20)
        house.pos.menu = dishes(3, p1={"price": 150})
        with pytest.raises(ServiceDown):
            await house.flow.push_again()


async def test_other_prices_at_the_storefront_are_mended_though_the_ledger_knows_none(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        await pushed(house)
        house.flow.resync()
        await house.flow._menu.step()
        assert await house.calls() == ["POST menus"]


async def test_what_a_partial_answer_says_is_told_until_a_full_push_is_taken_whole(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        answer = {
            "status": "partial",
            "message": "the picture of Dish 1 is missing",
            "data": {"menus": 1, "items": 3},
        }
        await house.linked.fault(
            "garbage", "/menus$", method="POST", when="after", status=200, body=json.dumps(answer)
        )
        await pushed(house)
        assert house.tracker.opened["menu.taken_in_part", ""] == {
            "detail": "the picture of Dish 1 is missing"
        }
        house.pos.menu = dishes(3, p2={"price": 150})
        await house.flow.push_again()
        assert house.tracker.codes == {"menu.taken_in_part"}
        await house.flow.push_full()
        assert not house.tracker.opened


async def test_a_push_by_hand_sends_what_was_refused_and_removes_nothing(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await pushed(house)
        await house.linked.fault("error", "", method="PATCH", status=400, count=1)
        house.pos.menu = dishes(3, p1={"price": 150})
        await house.flow.push_again()
        assert await house.calls() == ["PATCH items/p1"]
        report = await house.flow.push_again()
        assert report is not None
        assert await house.calls() == ["PATCH items/p1"]
        storefront = (await house.linked.driver.state())["stores"]["st_main"]["integrations"][0]
        assert storefront["items"]["p1"]["price"] == 150
