"""Pushes that a person asks for, or an order that tells of other prices."""

import json
from pathlib import Path

import pytest

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes
from tillbridge.core.errors import ServiceDown


async def pushed(harness: CatalogueHarness) -> None:
    harness.pos.menu = dishes(3)
    await harness.flow.push_again()
    assert await harness.calls() == ["POST menus"]


async def test_a_full_push_by_hand_tells_that_it_pushed(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await pushed(harness)
        report = await harness.flow.push_again(full=True)
        assert report is not None
        assert report["kind"] == "full"
        assert report["calls"]
        assert await harness.calls() == ["POST menus"]


async def test_a_push_by_hand_tells_that_the_service_was_away(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await pushed(harness)
        await harness.linked.fault("error", "", status=503, count=20)
        harness.pos.menu = dishes(3, p1={"price": 150})
        with pytest.raises(ServiceDown):
            await harness.flow.push_again()


async def test_other_prices_at_the_storefront_are_mended_though_the_ledger_knows_none(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await pushed(harness)
        harness.flow.resync()
        await harness.flow._menu.step()
        assert await harness.calls() == ["POST menus"]


async def test_what_a_partial_answer_says_is_told_until_a_full_push_is_taken_whole(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        answer = {
            "status": "partial",
            "message": "the picture of Dish 1 is missing",
            "data": {"menus": 1, "items": 3},
        }
        await harness.linked.fault(
            "garbage", "/menus$", method="POST", when="after", status=200, body=json.dumps(answer)
        )
        await pushed(harness)
        assert harness.tracker.opened["menu.taken_in_part", ""] == {
            "detail": "the picture of Dish 1 is missing"
        }
        harness.pos.menu = dishes(3, p2={"price": 150})
        await harness.flow.push_again()
        assert harness.tracker.codes == {"menu.taken_in_part"}
        await harness.flow.push_again(full=True)
        assert not harness.tracker.opened


async def test_a_push_by_hand_sends_what_was_refused_and_removes_nothing(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await pushed(harness)
        await harness.linked.fault("error", "", method="PATCH", status=400, count=1)
        harness.pos.menu = dishes(3, p1={"price": 150})
        await harness.flow.push_again()
        assert await harness.calls() == ["PATCH items/p1"]
        report = await harness.flow.push_again()
        assert report is not None
        assert await harness.calls() == ["PATCH items/p1"]
        storefront = (await harness.linked.driver.state())["stores"]["st_main"]["integrations"][0]
        assert storefront["items"]["p1"]["price"] == 150
