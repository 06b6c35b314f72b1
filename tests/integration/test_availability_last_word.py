"""What is sold out while a menu is read, planned or pushed stays sold out, and is told once."""

import asyncio
from pathlib import Path
from typing import Any

from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes, without
from tillbridge.menu.push import recall_again
from tillbridge.model.catalogue import Availability, Catalogue

OFF = Availability(available=False)


class Gate:
    """Holds up the next reading of the menu until it is opened."""

    def __init__(self, harness: CatalogueHarness) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()
        self._read = harness.pos.read_catalogue
        harness.pos.read_catalogue = self._held_up  # type: ignore[method-assign] # a slow till

    async def _held_up(self) -> Catalogue:
        self.reached.set()
        await self._opened.wait()
        return await self._read()

    def open(self) -> None:
        self._opened.set()


async def started(harness: CatalogueHarness, count: int = 4) -> None:
    """Put the first menu on sale."""
    harness.pos.menu = dishes(count)
    await harness.flow.push_again()
    await harness.flow._availability.step()
    await harness.calls()


async def said(harness: CatalogueHarness, external_id: str) -> list[bool]:
    """Return what the bridge said of an item's availability, in order."""
    log = (await harness.linked.driver.control("GET", "/requests")).body["requests"]
    return [
        item["available"]
        for each in log
        if each["method"] != "GET"
        for item in _items_in(each["body"] or {})
        if item.get("external_id") == external_id and "available" in item
    ]


def _items_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    listed = [*body.get("items", []), *body.get("add", []), *body.get("update", [])]
    return listed + [item for menu in body.get("menus", []) for item in menu["items"]]


async def under_way(harness: CatalogueHarness, external_id: str) -> None:
    """Wait until a menu call that says something of the item is on its way."""
    async with asyncio.timeout(20):
        while not any(external_id in each for each in harness.flow._ctx.calls._menu):
            await asyncio.sleep(0.005)


async def sold_out(harness: CatalogueHarness, external_id: str) -> None:
    """Let the POS say that an item is sold out, and the availability lane hear of it."""
    harness.pos.words = {external_id: OFF}
    harness.flow.availability_changed()
    await harness.flow._availability.step()


async def test_what_sells_out_while_the_menu_is_read_does_not_come_back_with_it(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        harness.pos.menu = dishes(4, p1={"name": "New"}, p2={"name": "New"})
        gate = Gate(harness)
        pushing = asyncio.create_task(harness.flow._menu.step())
        await gate.reached.wait()
        await sold_out(harness, "p1")
        gate.open()
        await pushing
        assert set(await said(harness, "p1")) == {False}
        await harness.calls()
        await harness.flow._availability.step()
        assert await harness.calls() == []


async def test_what_is_back_while_the_menu_is_read_is_told_once(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await sold_out(harness, "p1")
        await harness.calls()
        gate = Gate(harness)
        reading = asyncio.create_task(harness.flow._menu.step())
        await gate.reached.wait()
        harness.pos.words = {}
        harness.flow.availability_changed()
        telling = asyncio.create_task(harness.flow._availability.step())
        gate.open()
        await asyncio.gather(reading, telling)
        await harness.flow._availability.step()
        assert await said(harness, "p1") == [True]


async def test_what_sells_out_between_two_calls_of_a_plan_is_right_in_the_later_one(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path, batch_max_items=10) as harness:
        await started(harness, 30)
        delay = {"path": "/batch$", "action": "delay", "delay_s": 0.3, "count": 1}
        await harness.linked.driver.control("POST", "/faults", delay)
        names: dict[str, dict[str, object]] = {
            f"p{number}": {"description": "New"} for number in range(1, 31)
        }
        harness.pos.menu = dishes(30, **names)
        pushing = asyncio.create_task(harness.flow._menu.step())
        await under_way(harness, "p1")
        await sold_out(harness, "p30")  # which the third call is about
        assert await said(harness, "p30") == [False]
        await pushing
        assert (await harness.on_sale())["p30"]["description"] == "New"
        assert await said(harness, "p30") == [False, False]
        await harness.calls()
        await harness.flow._availability.step()
        assert await harness.calls() == []


async def test_a_word_that_clashes_with_a_push_under_way_is_told_again_after_it(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        delay = {"path": "/batch$", "action": "delay", "delay_s": 0.3, "count": 1}
        await harness.linked.driver.control("POST", "/faults", delay)
        harness.pos.menu = dishes(4, p1={"name": "New"}, p2={"name": "New"})
        pushing = asyncio.create_task(harness.flow._menu.step())
        await under_way(harness, "p1")
        await sold_out(harness, "p1")
        await pushing
        await harness.flow._availability.step()
        assert not (await harness.on_sale())["p1"]["available"]
        assert (await said(harness, "p1"))[-1] is False


async def test_availability_is_looked_at_after_a_round_from_which_it_may_follow(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        flow = harness.rebuild()  # after a restart: what the till says is not known yet
        followed: list[bool] = []
        flow._availability.request = lambda *_: followed.append(True)  # type: ignore[method-assign] # counted

        async def follows(menu: Catalogue) -> bool:
            followed.clear()
            harness.pos.menu = menu
            await flow._menu.now()
            return bool(followed)

        assert await follows(dishes(4, p1={"price": 111}))
        await flow._availability.read()
        assert not await follows(dishes(4, p1={"price": 112}))
        assert await follows(dishes(5, p1={"price": 112}))
        assert await follows(dishes(5, p1={"price": 112, "available": False}))
        assert await follows(dishes(5))
        flow._ctx.calls.unconfirmed.add("p2")
        assert await follows(dishes(5, p1={"price": 113}))


async def unanswered(harness: CatalogueHarness, path: str) -> None:
    """Let the next call be applied, and its answer be lost: the bridge makes it again."""
    lost = {"path": path, "action": "error", "status": 504, "when": "after", "count": 1}
    await harness.linked.driver.control("POST", "/faults", lost)


async def a_minute_later(harness: CatalogueHarness) -> None:
    """Let the time be over in which a call without an answer may arrive."""
    calls = harness.flow._ctx.calls
    assert "p1" in calls.again
    await harness.flow._availability.step()
    assert "p1" in calls.again, "its time has not come"
    calls.again, calls.whole_again = (
        dict.fromkeys(calls.again, 0),
        dict.fromkeys(calls.whole_again, 0),
    )
    await harness.flow._availability.step()


async def test_a_call_that_arrives_after_the_next_one_does_not_have_the_last_word(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await unanswered(harness, "/availability$")
        await sold_out(harness, "p1")
        assert await said(harness, "p1") == [False, False]
        harness.pos.words = {}
        harness.flow.availability_changed()
        await harness.flow._availability.step()
        late = [{"external_id": "p1", "available": False}]
        await harness.linked.client.set_availability("st_main", late)
        assert not (await harness.on_sale())["p1"]["available"]
        await harness.calls()
        await a_minute_later(harness)
        assert (await harness.on_sale())["p1"]["available"]
        assert await harness.calls() == ["POST items/availability"], "of p1, and of nothing else"
        await harness.flow._menu.step()
        await harness.flow._availability.step()
        assert await harness.calls() == []


async def test_a_price_that_arrives_after_the_next_one_is_not_the_last(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await unanswered(harness, "/items/p1$")
        for price in (101, 102):
            harness.pos.menu = dishes(4, p1={"price": price})
            await harness.flow._menu.step()
        late = {"external_id": "p1", "price": 101}
        await harness.linked.client.patch_item("st_main", "p1", late)
        assert (await harness.on_sale())["p1"]["price"] == 101
        await a_minute_later(harness)
        await harness.flow._menu.step()
        assert (await harness.on_sale())["p1"]["price"] == 102
        await harness.calls()
        await harness.flow._menu.step()
        assert await harness.calls() == []


async def test_a_call_that_was_answered_is_made_once(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await unanswered(harness, "/availability$")
        await sold_out(harness, "p1")
        await sold_out(harness, "p2")
        calls = harness.flow._ctx.calls
        assert set(calls.again) == {"p1"}, "on sale again, which the first call said otherwise"
        harness.pos.words = {"p2": OFF, "p3": OFF}
        harness.flow.availability_changed()
        await harness.flow._availability.step()
        assert set(calls.again) == {"p1"}, "of p2 and p3, nothing was said otherwise before"


async def test_what_is_removed_before_it_is_sent_once_more_is_forgotten(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await unanswered(harness, "/availability$")
        await sold_out(harness, "p1")
        harness.pos.words = {}
        harness.flow.availability_changed()
        await harness.flow._availability.step()
        harness.pos.menu = without(dishes(4), "p1")
        await harness.flow._menu.step()
        assert "p1" not in await harness.on_sale()
        await a_minute_later(harness)
        calls = harness.flow._ctx.calls
        assert (calls.again, calls.unconfirmed) == ({}, set())


async def test_what_is_to_be_sent_once_more_outlives_a_restart(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await started(harness)
        await unanswered(harness, "/items/p1$")
        for price in (101, 102):
            harness.pos.menu = dishes(4, p1={"price": price})
            await harness.flow._menu.step()
        await harness.linked.client.patch_item("st_main", "p1", {"external_id": "p1", "price": 101})
        harness.flow = harness.rebuild()
        await recall_again(harness.flow._ctx)
        await a_minute_later(harness)
        await harness.flow._menu.step()
        assert (await harness.on_sale())["p1"]["price"] == 102
        harness.clock.ahead_ms += 700_000
        harness.flow = harness.rebuild()
        await recall_again(harness.flow._ctx)
        assert not harness.flow._ctx.calls.again, "that is long over"
