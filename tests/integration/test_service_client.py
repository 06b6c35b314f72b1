"""The client against a strict service: every call, and every way in which one can go wrong."""

import asyncio
from typing import Any

import pytest

from tests.support.sandbox_driver import item
from tests.support.service_link import INTEGRATION, Linked, linked
from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    OutcomeUnknown,
    Refused,
    ServiceDown,
    Unreachable,
)
from tillbridge.model.order import ReasonCode
from tillbridge.model.restaurant import Table
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.answers import Limits
from tillbridge.service.types import PushAccepted, PushDone


def menu(count: int = 2) -> dict[str, Any]:
    items = [item(f"i{number}") for number in range(count)]
    return {"menus": [{"external_id": "m", "name": "Main", "items": items}]}


async def test_a_store_is_found_integrated_changed_paused_and_removed() -> None:
    async with linked() as bench:
        await bench.sign_in()
        client = bench.client
        (store,) = await client.stores()
        assert (store.store_id, store.integration_status) == ("st_main", "not_integrated")
        made = await client.integrate("st_main", INTEGRATION)
        assert made.webhook_secret
        assert made.integration.external_store_id == "loc-1"
        changed = await client.change_integration("st_main", auto_accept_orders=True)
        assert changed.auto_accept_orders is True
        assert (await client.integration("st_main")).auto_accept_orders is True
        await client.set_store_status("st_main", "inactive")
        assert (await client.stores())[0].status == "inactive"
        await client.put_settings("st_main", {"name": "Main", "imageUrl": "http://127.0.0.1/x.png"})
        tax = await client.tax_config("st_main")
        assert [part.rate for part in tax.taxes[0].components] == ["6.25", "2.0"]
        await client.remove_integration("st_main")
        with pytest.raises(Refused) as refused:
            await client.integration("st_main")
        assert refused.value.code == "store.not_integrated"


async def test_a_menu_is_pushed_changed_and_86ed() -> None:
    async with linked() as bench:
        await bench.integrate()
        client = bench.client
        done = await client.push_menus("st_main", menu())
        assert isinstance(done, PushDone)
        assert (done.status, done.counts.items) == ("success", 2)
        batch = await client.batch("st_main", {"add": [item("i9")], "delete": ["i0"]})
        assert (batch.added, batch.deleted) == (1, 1)
        off = [{"external_id": "i1", "available": False}, {"external_id": "no", "available": True}]
        answer = await client.set_availability("st_main", off)
        assert (answer.updated, answer.not_found) == (1, ("no",))
        await client.patch_item("st_main", "i1", {"price": 999})
        with pytest.raises(Refused) as refused:
            await client.patch_item("st_main", "gone/../x", {"price": 999})
        assert refused.value.code == "menu.item_not_found"
        tables = await client.push_tables("st_main", [Table("t1", "Window", 4, "front")])
        assert tables[0].external_id == "t1"
        assert tables[0].qr_url.startswith("http")


async def test_a_large_menu_is_a_job_that_is_polled() -> None:
    async with linked(SandboxSettings(job_duration_s=10)) as bench:
        await bench.integrate()
        accepted = await bench.client.push_menus("st_main", menu(300))
        assert isinstance(accepted, PushAccepted)
        job = await bench.client.menu_job("st_main", accepted.job_id, poll_url=accepted.poll_url)
        assert not job.ended
        await bench.driver.jump(11)
        job = await bench.client.menu_job("st_main", accepted.job_id)
        assert (job.status, job.counts.items) == ("success", 300)
        await bench.driver.jump(4000)
        with pytest.raises(Refused) as refused:
            await bench.client.menu_job("st_main", accepted.job_id)
        assert refused.value.code == "menu.job_not_found"


async def test_a_poll_url_elsewhere_is_never_called_but_the_job_is_followed() -> None:
    async with linked() as bench:
        await bench.integrate()
        accepted = await bench.client.push_menus("st_main", menu(300))
        assert isinstance(accepted, PushAccepted)
        await bench.driver.jump(60)
        job = await bench.client.menu_job(
            "st_main", accepted.job_id, poll_url="//evil.example/pos/x"
        )
        assert job.status == "success"


async def placed(bench: Linked) -> str:
    await bench.integrate()
    await bench.client.push_menus("st_main", menu())
    order = await bench.driver.place({"external_id": "i1"}, wait=False)
    return str(order["order_id"])


async def test_an_order_is_told_on_its_way() -> None:
    async with linked() as bench:
        order_id = await placed(bench)
        await bench.client.accept(order_id)
        await bench.client.set_preparing(order_id)
        await bench.client.ready(order_id)
        with pytest.raises(Conflict) as conflict:
            await bench.client.accept(order_id)
        assert conflict.value.code == "order.invalid_transition"


async def test_an_order_is_cancelled_with_its_reason() -> None:
    async with linked() as bench:
        order_id = await placed(bench)
        await bench.client.cancel(order_id, "Sold out", ReasonCode.ITEM_OUT_OF_STOCK, "no buns")
        order = (await bench.driver.control("GET", f"/orders/{order_id}")).body
        assert order["state"] == "cancelled"
        assert order["cancellation"]["reason_code"] == "ITEM_OUT_OF_STOCK"


@pytest.mark.parametrize("fault", [{"action": "drop"}, {"action": "error", "status": 504}])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_acceptance_of_unknown_outcome_is_repeated_and_its_409_counts_as_done(
    fault: dict[str, Any], when: str
) -> None:
    async with linked() as bench:
        order_id = await placed(bench)
        await bench.fault(path="/accept", when=when, **fault)
        await bench.client.accept(order_id)
        await bench.client.set_preparing(order_id)
        assert len(await bench.asked("/accept")) == 2


async def test_a_doubt_is_remembered_until_the_next_call_of_the_same_transition() -> None:
    async with linked(limits=Limits(max_attempts=1)) as bench:
        order_id = await placed(bench)
        await bench.fault("drop", "/accept", when="after")
        with pytest.raises(OutcomeUnknown):
            await bench.client.accept(order_id)
        await bench.client.accept(order_id)
        with pytest.raises(Conflict):  # this one is a real conflict
            await bench.client.accept(order_id)


async def test_a_push_of_unknown_outcome_that_was_applied_is_not_repeated() -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.fault("error", "/menus$", status=504, when="after")
        done = await bench.client.push_menus("st_main", menu())
        assert done == PushDone("success", settled_by="status")
        assert [call[0] for call in await bench.asked("/menus")] == ["POST"]


async def test_a_push_that_became_a_job_is_not_pushed_again_where_its_answer_was_lost() -> None:
    async with linked(SandboxSettings(job_duration_s=0.2)) as bench:
        await bench.integrate()

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds / 20)

        bench.client._caller.sleep = sleep
        await bench.fault("error", "/menus$", status=504, when="after")
        items = [{"external_id": f"i{n}", "name": f"I {n}", "price": 100} for n in range(130)]
        done = await bench.client.push_menus("st_main", {"menu_name": "Main", "items": items})
        assert done == PushDone("success", settled_by="status")
        assert [call[0] for call in await bench.asked("/menus")] == ["POST"]


async def test_a_push_of_unknown_outcome_that_was_not_applied_is_repeated() -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.fault("error", "/menus$", status=504)
        done = await bench.client.push_menus("st_main", menu())
        assert isinstance(done, PushDone)
        assert done.settled_by == "answer"
        assert len(await bench.asked("/menus")) == 2


async def test_a_call_that_found_no_service_is_tried_once_until_it_is_back() -> None:
    async with linked(limits=Limits(max_attempts=4)) as bench:
        await bench.integrate()
        await bench.fault("error", "/menus/status$", status=503, count=6)
        await bench.driver.control("DELETE", "/requests")
        for _call in range(3):
            with pytest.raises(ServiceDown):
                await bench.client.menu_status("st_main")
        assert len(await bench.asked("/menus/status")) == 4 + 1 + 1
        assert bench.waits == [0.5, 1.0, 2.0]
        await bench.client.menu_status("st_main")  # it is back
        await bench.fault("error", "/menus/status$", status=503, count=1)
        await bench.client.menu_status("st_main")  # and tried again as ever


@pytest.mark.parametrize(("when", "posts"), [("before", 2), ("after", 1)])
async def test_a_batch_of_unknown_outcome_is_repeated_only_where_it_was_not_applied(
    when: str, posts: int
) -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.client.push_menus("st_main", menu())
        await bench.driver.control("DELETE", "/requests")
        await bench.fault("error", "/menus/batch$", status=504, when=when)
        body = {"add": [{"external_id": "i9", "name": "Nine", "price": 900}], "delete": ["i1"]}
        done = await bench.client.batch("st_main", {"update": [], **body})
        assert done.status == "success"
        assert [call[0] for call in await bench.asked("/menus/batch")] == ["POST"] * posts
        items = (await bench.driver.catalogue())["items"]
        assert "i9" in items
        assert "i1" not in items


@pytest.mark.parametrize("when", ["before", "after"])
async def test_availability_of_unknown_outcome_reads_the_status_and_is_repeated(when: str) -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.client.push_menus("st_main", menu())
        await bench.driver.control("DELETE", "/requests")
        await bench.fault("drop", "/availability", when=when)
        items = [{"external_id": "i1", "available": False}]
        assert (await bench.client.set_availability("st_main", items)).updated == 1
        paths = [path.rsplit("/", 1)[1] for _method, path, _status in await bench.asked()]
        assert paths == ["availability", "status", "availability"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_pause_of_unknown_outcome_reads_the_stores_first(when: str) -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.fault("drop", "/status", when=when)
        await bench.client.set_store_status("st_main", "inactive")
        assert (await bench.client.stores())[0].status == "inactive"
        puts = await bench.asked("/st_main/status")
        assert len(puts) == (1 if when == "after" else 2)


async def test_an_integration_whose_answer_is_lost_is_a_conflict() -> None:
    async with linked() as bench:
        await bench.sign_in()
        await bench.fault("drop", "/integrate-store", when="after")
        with pytest.raises(Conflict) as conflict:
            await bench.client.integrate("st_main", INTEGRATION)
        assert conflict.value.code == "integration.already_exists"


async def test_an_integration_that_was_not_made_is_made_by_the_repeat() -> None:
    async with linked() as bench:
        await bench.sign_in()
        await bench.fault("drop", "/integrate-store")
        assert (await bench.client.integrate("st_main", INTEGRATION)).webhook_secret


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_removal_of_unknown_outcome_ends_well(when: str) -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.fault("drop", "/pos/integrations", method="DELETE", when=when)
        await bench.client.remove_integration("st_main")
        assert (await bench.client.stores())[0].integration_status == "not_integrated"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_change_of_unknown_outcome_ends_well(when: str) -> None:
    async with linked() as bench:
        await bench.integrate()
        await bench.fault("garbage", "/pos/integrations", method="PUT", when=when)
        changed = await bench.client.change_integration("st_main", auto_accept_orders=True)
        assert changed.auto_accept_orders is True


async def test_a_redirect_is_not_followed() -> None:
    async with linked() as bench:
        await bench.sign_in()
        target = bench.driver.running.base_url + "/pos/stores"
        await bench.fault("redirect", "/tax-config", status=302, location=target)
        with pytest.raises(Refused):
            await bench.client.tax_config("st_main")
        assert await bench.asked("/pos/stores") == []


async def test_an_expired_token_is_refreshed_once_and_the_call_repeated() -> None:
    async with linked() as bench:
        await bench.sign_in()
        await bench.driver.control("POST", "/tokens/expire", {})
        assert all(await asyncio.gather(*[bench.client.stores() for _call in range(6)]))
        assert len(await bench.asked("/oauth2/refresh")) == 1
        assert len(bench.tokens.saved) == 2


async def test_an_expired_consent_is_told_once_and_not_hammered() -> None:
    async with linked() as bench:
        await bench.sign_in()
        await bench.driver.jump(8 * 24 * 3600)
        for _call in range(5):
            with pytest.raises(ConsentLost) as lost:
                await bench.client.stores()
            assert lost.value.code == "auth.invalid_grant"
        assert len(await bench.asked()) == 2
        await bench.sign_in()
        assert await bench.client.stores()


async def test_nobody_there_is_unreachable_and_nothing_was_sent() -> None:
    async with linked(limits=Limits(max_attempts=2)) as bench:
        order_id = await placed(bench)
        await bench.driver.running.stop()
        with pytest.raises(Unreachable):
            await bench.client.accept(order_id)
        assert [contact.ok for contact in bench.contacts[-1:]] == [False]


async def test_a_write_that_gets_no_answer_in_time_is_of_unknown_outcome() -> None:
    async with linked(limits=Limits(max_attempts=1), timeout_s=0.2) as bench:
        order_id = await placed(bench)
        await bench.fault("delay", "/accept", delay_s=1)
        with pytest.raises(OutcomeUnknown):
            await bench.client.accept(order_id)


async def test_an_unknown_outcome_is_told_even_where_the_last_try_made_no_connection() -> None:
    async with linked(limits=Limits(max_attempts=3)) as bench:
        order_id = await placed(bench)
        await bench.fault("drop", "/accept", when="after")
        await bench.fault("error", "/accept", status=503, count=9)
        with pytest.raises(OutcomeUnknown):
            await bench.client.accept(order_id)


async def test_a_page_that_is_no_json_is_not_the_service() -> None:
    async with linked(limits=Limits(max_attempts=2)) as bench:
        await bench.sign_in()
        await bench.fault("garbage", "/pos/stores", count=9)
        with pytest.raises(ServiceDown):
            await bench.client.stores()


async def test_contacts_tell_answers_and_failures() -> None:
    async with linked(limits=Limits(max_attempts=1)) as bench:
        await bench.sign_in()
        await bench.client.stores()
        with pytest.raises(Refused):
            await bench.client.integration("st_main")
        await bench.fault("error", "/pos/stores", status=503)
        with pytest.raises(ServiceDown):
            await bench.client.stores()
        told = [(contact.operation, contact.ok) for contact in bench.contacts]
        assert told == [
            ("stores.list", True),
            ("integrations.read", True),
            ("stores.list", False),
        ]
        assert bench.contacts[1].failure is not None
        assert bench.contacts[1].failure.code == "store.not_integrated"


async def test_orders_go_before_menus_when_the_service_limits_the_rate() -> None:
    async with linked() as bench:
        order_id = await placed(bench)
        await bench.fault("error", "/tax-config", status=429, retry_after_s=1)
        first = asyncio.create_task(bench.client.tax_config("st_main"))
        async with asyncio.timeout(5):
            while not await bench.asked("/tax-config"):
                await asyncio.sleep(0.01)
        await bench.driver.control("DELETE", "/requests")
        patch = asyncio.create_task(bench.client.patch_item("st_main", "i1", {"price": 5}))
        await asyncio.sleep(0)
        await asyncio.gather(first, patch, bench.client.accept(order_id))
        called = [path for _method, path, _status in await bench.asked()]
        assert called[0].endswith("/accept")
