"""What the ledger remembers belongs to one storefront: another one is told everything."""

from pathlib import Path
from random import Random

import pytest

from tests.integration.test_catalogue_flow import matches, sync
from tests.support.catalogue_house import CatalogueHouse, catalogue_house
from tests.support.catalogues import dishes, without
from tests.support.forgetful_service import ForgetfulService
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import refused_items
from tillbridge.ledger.storefront import Kinship, Storefront, get_tables, kinship
from tillbridge.model.catalogue import Catalogue
from tillbridge.model.restaurant import Table

HERE = Storefront("http://a/v2", "st_1", "int_1")


@pytest.mark.parametrize(
    ("known", "now", "expected"),
    [
        (None, HERE, Kinship.SAME),
        (HERE, HERE, Kinship.SAME),
        (Storefront("http://a/v2", "st_1"), HERE, Kinship.SAME),
        (HERE, Storefront("http://a/v2", "st_1"), Kinship.SAME),
        (HERE, Storefront("http://a/v2", "st_1", "int_2"), Kinship.RENEWED),
        (HERE, Storefront("http://a/v2", "st_2", "int_1"), Kinship.OTHER),
        (HERE, Storefront("http://b/v2", "st_1", "int_1"), Kinship.OTHER),
        (HERE, Storefront("http://b/v2", "st_1"), Kinship.OTHER),
    ],
)
def test_a_storefront_is_known_by_address_store_and_integration(
    known: Storefront | None, now: Storefront, expected: Kinship
) -> None:
    assert kinship(known, now) is expected


async def service_lost_all(house: CatalogueHouse) -> None:
    await house.linked.driver.control("POST", "/reset", {})
    await house.linked.integrate()
    await house.calls()


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_fresh_integration_is_told_the_whole_menu(tmp_path: Path, restarted: bool) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.integrated("int_1")
        await sync(house, dishes(6))
        await service_lost_all(house)
        await house.integrated("int_2")
        if restarted:
            house.flow = house.rebuild()
        assert await sync(house) == ["POST menus"]
        await matches(house, dishes(6))
        assert await sync(house) == []
        assert not house.tracker.opened


async def test_the_guard_still_compares_after_a_fresh_integration(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.integrated("int_1")
        await sync(house, dishes(40))
        await house.integrated("int_2")
        assert await sync(house, dishes(10)) == []
        assert "menu.held" in house.tracker.codes
        assert await house.ask(get_fact, "last_synced_at") is None
        assert await house.ask(get_fact, "menu_pending") == 40


@pytest.mark.parametrize("what", ["address", "store"])
async def test_another_address_or_store_forgets_what_the_storefront_has(
    tmp_path: Path, what: str
) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.integrated("int_1")
        reject = {"external_ids": ["p2"], "reason": "not for this market"}
        await house.linked.driver.control("POST", "/items/reject", reject)
        await sync(house, dishes(6))
        assert await house.ask(refused_items)
        service = ForgetfulService()
        if what == "address":
            house.flow = house.rebuild("http://127.0.0.1:1/v2", service)
        else:
            house.flow = house.rebuild(service=service)
            await house.integrated("int_2", "st_other")
        service.away = True
        await sync(house)
        assert await house.ask(menu.item_count) == 0
        assert await house.ask(get_fact, "last_synced_at") is None
        assert (await house.ask(get_fact, "menu_pending")) >= 6
        service.away = False
        await sync(house)
        assert service.items.keys() == dishes(6).items.keys()
        assert await house.ask(get_fact, "menu_pending") == 0
        assert not house.tracker.opened


async def test_an_integration_that_is_the_same_costs_nothing(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))  # by a version that remembered no storefront
        await house.integrated("int_1")
        house.flow = house.rebuild(house.linked.driver.running.base_url + "/")
        assert await sync(house) == []


async def test_tables_are_told_anew_too(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await house.integrated("int_1")
        house.pos.tables = (Table("t1", "One", 4, "hall"), Table("t2", "Two"))
        await house.flow.tables.step()
        assert await house.calls() == ["POST tables"]
        await service_lost_all(house)
        await house.integrated("int_2")
        house.flow = house.rebuild()
        await house.flow.tables.step()
        await house.flow.tables.step()
        assert await house.calls() == ["POST tables"]
        service = ForgetfulService()
        service.away = True
        house.flow = house.rebuild("http://127.0.0.1:1/v2", service)
        await house.flow.tables.step()
        assert await house.ask(get_tables) == ()
        house.flow = house.rebuild("http://127.0.0.1:1/v2", service)  # and it stops meanwhile
        service.away = False
        await house.flow.tables.step()
        assert service.tables.keys() == {"t1", "t2"}


async def test_a_table_that_lost_its_zone_is_sent_without_one(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        house.pos.tables = (Table("t1", "One", 4, "hall"), Table("t2", "Two"))
        await house.flow.tables.step()
        house.pos.tables = (Table("t1", "One", 4), Table("t2", "Two"))
        await house.linked.driver.control("DELETE", "/requests")
        await house.flow.tables.step()
        log = (await house.linked.driver.control("GET", "/requests")).body["requests"]
        (push,) = [each for each in log if each["path"].endswith("/tables")]
        assert [each.get("zone") for each in push["body"]["tables"]] == ["", None]


async def test_a_change_refused_for_a_category_the_service_lost_leads_to_a_full_push(
    tmp_path: Path,
) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        service = ForgetfulService()
        house.flow = house.rebuild(service=service)
        changed = dishes(7, p1={"price": 110})
        await sync(house, changed)
        assert await house.ask(get_fact, "menu_pending"), "nobody says that it is in step"
        assert not await house.ask(refused_items), "no item is to blame"
        await sync(house)
        assert service.items.keys() == changed.items.keys()
        assert service.calls == ["batch", "full"]
        assert not house.tracker.opened


async def test_a_batch_refused_whole_leads_to_one_full_push(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        fault = {"action": "error", "path": "/menus/batch$", "method": "POST", "status": 422}
        await house.linked.driver.control("POST", "/faults", fault)
        changed = dishes(6, p1={"price": 110}, p2={"price": 210})
        await sync(house, changed)
        assert "POST menus" in await sync(house)
        await matches(house, changed)
        assert not house.tracker.opened


@pytest.mark.parametrize("seed", range(12))
async def test_a_service_that_loses_its_menu_has_it_again_in_the_end(
    tmp_path: Path, seed: int
) -> None:
    """A simulation: exports, 86s, losses, outages, restarts and integrations in any order."""
    random = Random(seed)
    async with catalogue_house(tmp_path) as house:
        service = ForgetfulService()
        house.flow = house.rebuild(service=service)
        integration = 1
        await house.integrated("int_1")
        menus = [dishes(8), dishes(9), dishes(8, p1={"price": 110}), without(dishes(8), "p3")]
        house.pos.menu = menus[0]
        for _step in range(25):
            match random.randrange(7):
                case 0 | 1:
                    house.pos.menu = random.choice(menus)
                case 2:
                    await house.flow.take_off("p2", until=None, by="staff")
                case 3:
                    await house.flow.restore("p2")
                case 4:
                    service.lose()
                    integration += 1
                    await house.integrated(f"int_{integration}")
                case 5:
                    service.away = not service.away
                case _:
                    house.flow = house.rebuild(service=service)
            await sync(house)
        service.away = False
        service.lose()  # without a word
        house.pos.menu = _with_other_prices(random.choice(menus))
        for _round in range(4):
            await sync(house)
        expected = house.pos.menu
        assert service.items.keys() == expected.items.keys()
        for external_id, item in expected.items.items():
            assert service.items[external_id]["price"] == item.price
        assert await house.ask(get_fact, "menu_pending") == 0


def _with_other_prices(catalogue: Catalogue) -> Catalogue:
    changed = {key: {"price": item.price + 1} for key, item in catalogue.items.items()}
    return dishes(9, **changed) if "p9" in catalogue.items else dishes(8, **changed)


async def test_a_plan_that_is_only_looked_at_knows_of_another_storefront(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        house.flow = house.rebuild("http://127.0.0.1:1/v2", ForgetfulService())
        report = await house.flow.plan_only()
        assert report.counts["added"] == 6
        assert report.first_import_lines[0].startswith("6 items")
        house.flow = house.rebuild("http://127.0.0.1:1/v2", ForgetfulService())
        assert (await house.flow.plan_only()).kind == "full"


async def test_nobody_says_that_it_is_in_step_while_a_full_push_is_due(tmp_path: Path) -> None:
    async with catalogue_house(tmp_path) as house:
        await sync(house, dishes(6))
        service = ForgetfulService()
        house.flow = house.rebuild(service=service)
        await sync(house, dishes(6, p1={"available": False}))  # the service knows no p1
        service.away = True
        await sync(house, dishes(6))
        assert await house.ask(get_fact, "menu_pending")
        house.flow = house.rebuild(service=service)
        await sync(house)
        assert await house.ask(get_fact, "menu_pending")
        service.away = False
        await sync(house)
        assert service.items.keys() == dishes(6).items.keys()
        assert await house.ask(get_fact, "menu_pending") == 0
