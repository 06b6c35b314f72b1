"""What the ledger remembers belongs to one storefront: another one is told everything."""

from pathlib import Path
from random import Random

import pytest

from tests.integration.test_catalogue_flow import matches, sync
from tests.support.catalogue_harness import CatalogueHarness, catalogue_harness
from tests.support.catalogues import dishes, without
from tests.support.forgetful_service import ForgetfulService
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import refused_items
from tillbridge.ledger.pushes import Kinship, Storefront, get_tables, kinship
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


async def service_lost_all(harness: CatalogueHarness) -> None:
    await harness.linked.driver.control("POST", "/reset", {})
    await harness.linked.integrate()
    await harness.calls()


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_fresh_integration_is_told_the_whole_menu(tmp_path: Path, restarted: bool) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.integrated("int_1")
        await sync(harness, dishes(6))
        await service_lost_all(harness)
        await harness.integrated("int_2")
        if restarted:
            harness.flow = harness.rebuild()
        assert await sync(harness) == ["POST menus"]
        await matches(harness, dishes(6))
        assert await sync(harness) == []
        assert not harness.tracker.opened


async def test_the_guard_still_compares_after_a_fresh_integration(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.integrated("int_1")
        await sync(harness, dishes(40))
        await harness.integrated("int_2")
        assert await sync(harness, dishes(10)) == []
        assert "menu.held" in harness.tracker.codes
        assert await harness.ask(get_fact, "last_synced_at") is None
        assert await harness.ask(get_fact, "menu_pending") == 40


@pytest.mark.parametrize("what", ["address", "store"])
async def test_another_address_or_store_forgets_what_the_storefront_has(
    tmp_path: Path, what: str
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.integrated("int_1")
        reject = {"external_ids": ["p2"], "reason": "not for this market"}
        await harness.linked.driver.control("POST", "/items/reject", reject)
        await sync(harness, dishes(6))
        assert await harness.ask(refused_items)
        service = ForgetfulService()
        if what == "address":
            harness.flow = harness.rebuild("http://127.0.0.1:1/v2", service)
        else:
            harness.flow = harness.rebuild(service=service)
            await harness.integrated("int_2", "st_other")
        service.away = True
        await sync(harness)
        assert await harness.ask(menu.item_count) == 0
        assert await harness.ask(get_fact, "last_synced_at") is None
        assert (await harness.ask(get_fact, "menu_pending")) >= 6
        service.away = False
        await sync(harness)
        assert service.items.keys() == dishes(6).items.keys()
        assert await harness.ask(get_fact, "menu_pending") == 0
        assert not harness.tracker.opened


async def test_an_integration_that_is_the_same_costs_nothing(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))  # by a version that remembered no storefront
        await harness.integrated("int_1")
        harness.flow = harness.rebuild(harness.linked.driver.running.base_url + "/")
        assert await sync(harness) == []


async def test_tables_are_told_anew_too(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await harness.integrated("int_1")
        harness.pos.tables = (Table("t1", "One", 4, "hall"), Table("t2", "Two"))
        await harness.flow.tables.step()
        assert await harness.calls() == ["POST tables"]
        await service_lost_all(harness)
        await harness.integrated("int_2")
        harness.flow = harness.rebuild()
        await harness.flow.tables.step()
        await harness.flow.tables.step()
        assert await harness.calls() == ["POST tables"]
        service = ForgetfulService()
        service.away = True
        harness.flow = harness.rebuild("http://127.0.0.1:1/v2", service)
        await harness.flow.tables.step()
        assert await harness.ask(get_tables) == ()
        harness.flow = harness.rebuild("http://127.0.0.1:1/v2", service)  # and it stops meanwhile
        service.away = False
        await harness.flow.tables.step()
        assert service.tables.keys() == {"t1", "t2"}


async def test_a_table_that_lost_its_zone_is_sent_without_one(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.tables = (Table("t1", "One", 4, "hall"), Table("t2", "Two"))
        await harness.flow.tables.step()
        harness.pos.tables = (Table("t1", "One", 4), Table("t2", "Two"))
        await harness.linked.driver.control("DELETE", "/requests")
        await harness.flow.tables.step()
        log = (await harness.linked.driver.control("GET", "/requests")).body["requests"]
        (push,) = [each for each in log if each["path"].endswith("/tables")]
        assert [each.get("zone") for each in push["body"]["tables"]] == ["", None]


async def test_a_change_refused_for_a_category_the_service_lost_leads_to_a_full_push(
    tmp_path: Path,
) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        service = ForgetfulService()
        harness.flow = harness.rebuild(service=service)
        changed = dishes(7, p1={"price": 110})
        await sync(harness, changed)
        assert await harness.ask(get_fact, "menu_pending"), "nobody says that it is in step"
        assert not await harness.ask(refused_items), "no item is to blame"
        await sync(harness)
        assert service.items.keys() == changed.items.keys()
        assert service.calls == ["batch", "full"]
        assert not harness.tracker.opened


async def test_a_batch_refused_whole_leads_to_one_full_push(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        fault = {"action": "error", "path": "/menus/batch$", "method": "POST", "status": 422}
        await harness.linked.driver.control("POST", "/faults", fault)
        changed = dishes(6, p1={"price": 110}, p2={"price": 210})
        await sync(harness, changed)
        assert "POST menus" in await sync(harness)
        await matches(harness, changed)
        assert not harness.tracker.opened


@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(
            pytest.param(seed, marks=pytest.mark.slow(reason="other orders of the same"))
            for seed in range(4, 12)
        ),
    ],
)
async def test_a_service_that_loses_its_menu_has_it_again_in_the_end(
    tmp_path: Path, seed: int
) -> None:
    """A simulation: exports, 86s, losses, outages, restarts and integrations in any order."""
    random = Random(seed)
    async with catalogue_harness(tmp_path) as harness:
        service = ForgetfulService()
        harness.flow = harness.rebuild(service=service)
        integration = 1
        await harness.integrated("int_1")
        menus = [dishes(8), dishes(9), dishes(8, p1={"price": 110}), without(dishes(8), "p3")]
        harness.pos.menu = menus[0]
        for _step in range(25):
            match random.randrange(7):
                case 0 | 1:
                    harness.pos.menu = random.choice(menus)
                case 2:
                    await harness.flow.take_off_sale("p2", until=None, by="staff")
                case 3:
                    await harness.flow.restore("p2")
                case 4:
                    service.lose()
                    integration += 1
                    await harness.integrated(f"int_{integration}")
                case 5:
                    service.away = not service.away
                case _:
                    harness.flow = harness.rebuild(service=service)
            await sync(harness)
        service.away = False
        service.lose()  # without a word
        harness.pos.menu = _with_other_prices(random.choice(menus))
        for _round in range(4):
            await sync(harness)
        expected = harness.pos.menu
        assert service.items.keys() == expected.items.keys()
        for external_id, item in expected.items.items():
            assert service.items[external_id]["price"] == item.price
        assert await harness.ask(get_fact, "menu_pending") == 0


def _with_other_prices(catalogue: Catalogue) -> Catalogue:
    changed = {key: {"price": item.price + 1} for key, item in catalogue.items.items()}
    return dishes(9, **changed) if "p9" in catalogue.items else dishes(8, **changed)


async def test_a_plan_that_is_only_looked_at_knows_of_another_storefront(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        harness.flow = harness.rebuild("http://127.0.0.1:1/v2", ForgetfulService())
        report = await harness.flow.plan_only()
        assert report["counts"]["added"] == 6
        assert report["first_import_lines"][0].startswith("6 items")
        harness.flow = harness.rebuild("http://127.0.0.1:1/v2", ForgetfulService())
        assert (await harness.flow.plan_only())["kind"] == "full"


async def test_nobody_says_that_it_is_in_step_while_a_full_push_is_due(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        await sync(harness, dishes(6))
        service = ForgetfulService()
        harness.flow = harness.rebuild(service=service)
        await sync(harness, dishes(6, p1={"available": False}))  # the service knows no p1
        service.away = True
        await sync(harness, dishes(6))
        assert await harness.ask(get_fact, "menu_pending")
        harness.flow = harness.rebuild(service=service)
        await sync(harness)
        assert await harness.ask(get_fact, "menu_pending")
        service.away = False
        await sync(harness)
        assert service.items.keys() == dishes(6).items.keys()
        assert await harness.ask(get_fact, "menu_pending") == 0
