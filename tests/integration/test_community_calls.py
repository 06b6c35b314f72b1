"""The calls of a community against a strict service: each of the specification's, once at least."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.sandbox_driver import until
from tests.support.sandbox_hall import SEEDS, Hall, at, hall_of, week
from tests.support.service_link import HandClock
from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown
from tillbridge.model.community import SubscriptionRequest
from tillbridge.model.instant import from_iso
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceLink
from tillbridge.service.community_calls import CommunityCalls
from tillbridge.service.oauth import App

FAR_MS = from_iso("2099-01-01T00:00:00.000Z")


@dataclass
class Bench:
    hall: Hall
    calls: CommunityCalls
    other: CommunityCalls

    async def item_id(self, external_id: str) -> str:
        return str((await self.hall.item(external_id))["item_id"])

    async def fault(self, path: str, **more: Any) -> None:  # noqa: ANN401 -- fields of a rule
        rule = {"action": "error", "path": path, "count": 1, **more}
        await self.hall.bridge.control("POST", "/faults", rule)


@asynccontextmanager
async def opened(settings: SandboxSettings = SEEDS) -> AsyncIterator[Bench]:
    async with hall_of(settings) as hall:

        async def sleep(_seconds: float) -> None:
            """Wait for nothing."""

        link = ServiceLink(
            hall.bridge.running.base_url,
            App("app_123", lambda: "sandbox-secret", "http://127.0.0.1:1/"),
            clock=HandClock(),
            limits=Limits(max_attempts=3),
            sleep=sleep,
        )
        caller = link.app(audience=settings.community_audience).caller
        try:
            yield Bench(
                hall,
                CommunityCalls(
                    caller, "com_food_hall", secret_field=settings.subscription_secret_field
                ),
                CommunityCalls(caller, "com_other", secret_field="secret"),
            )
        finally:
            await link.close()


async def test_the_catalogue_is_read_whole_by_store_and_since_an_instant() -> None:
    async with opened() as bench:
        whole = await bench.calls.catalogue()
        kinds = [(each.kind, each.store_id, each.name) for each in whole.records]
        assert ("store", "st_tea", "Tea Room") in kinds
        assert ("item", "st_main", "Item toast") in kinds
        assert ("category", "st_main", "Food") in kinds
        toast = next(each for each in whole.records if each.external_id == "toast")
        assert (toast.available, toast.price, toast.snoozed_until) == (True, 700, None)
        tea = await bench.calls.catalogue(store_id="st_tea")
        assert {each.store_id for each in tea.records} == {"st_tea"}
        await bench.hall.bridge.jump(60)
        now = (await bench.calls.catalogue()).as_of
        await bench.hall.bridge.jump(60)
        await bench.calls.take_off(toast.record_id, until_ms=None)
        changed = await bench.calls.catalogue(updated_since=now)
        assert [(each.record_id, each.available) for each in changed.records] == [
            (toast.record_id, False)
        ]


async def test_an_item_is_taken_off_snoozed_and_restored() -> None:
    async with opened() as bench:
        soup = await bench.item_id("soup")
        await bench.calls.take_off(soup, until_ms=FAR_MS)
        detail = await bench.calls.item(soup)
        assert (detail.body["merchant_available"], detail.community_available) == (True, False)
        assert detail.snoozed_until == "2099-01-01T00:00:00.000Z"
        assert detail.body["currency"] == "USD"
        await bench.calls.restore(soup)
        detail = await bench.calls.item(soup)
        assert (detail.available, detail.snoozed_until) == (True, None)


async def test_hours_are_put() -> None:
    async with opened() as bench:
        await bench.calls.put_hours("st_main", week(monday=[]))
        (store, _tea) = (await bench.hall.catalogue())["stores"]
        assert store["hours"]["weekly"]["monday"] == []
        with pytest.raises(Refused) as refused:
            await bench.calls.put_hours("st_main", {"timezone": "Mars/Olympus", "weekly": {}})
        assert refused.value.code == "request.validation"


async def test_a_subscription_is_made_read_changed_tested_and_removed() -> None:
    async with opened() as bench:
        url = bench.hall.bridge.receiver.url
        made = await bench.calls.subscribe(SubscriptionRequest("Till", url))
        webhook_id = made.subscription.webhook_id
        (known,) = (await bench.hall.bridge.state())["communities"]["com_food_hall"]["webhooks"]
        assert made.secret == known["secret"]
        assert made.secret not in repr(made)
        await bench.calls.change_subscription(webhook_id, {"events": ["order.created"]})
        now = await bench.calls.subscription(webhook_id)
        assert now is not None
        assert (now.name, now.url, now.events, now.is_active) == (
            "Till",
            url,
            ("order.created",),
            True,
        )
        sent = await bench.calls.test_subscription(webhook_id)
        await until(lambda: len(bench.hall.bridge.receiver.received) == 1)
        (attempt,) = await bench.calls.deliveries(webhook_id)
        assert (attempt.delivery_id, attempt.response_status) == (sent, 200)
        assert (attempt.response_body, attempt.succeeded) == ("noted", True)
        await bench.calls.unsubscribe(webhook_id)
        await bench.calls.unsubscribe(webhook_id)
        assert await bench.calls.subscription(webhook_id) is None


async def test_the_secrets_field_has_the_name_that_is_set() -> None:
    async with opened(replace(SEEDS, subscription_secret_field="signing_key")) as bench:
        url = bench.hall.bridge.receiver.url
        assert (await bench.calls.subscribe(SubscriptionRequest("Till", url))).secret


async def test_an_order_is_read_with_its_children() -> None:
    async with opened() as bench:
        placed = await bench.hall.order(at("st_main", "soup"), at("st_tea", "tea"))
        order = await bench.calls.order(placed["order_id"])
        assert (order.status, order.community_id) == ("pending", "com_food_hall")
        assert [(child.store_id, child.status) for child in order.children] == [
            ("st_main", "pending"),
            ("st_tea", "pending"),
        ]
        assert order.updated_at == from_iso(placed["updated_at"])
        assert "customer" not in repr(order)


async def test_what_is_not_there_or_another_apps_is_refused() -> None:
    async with opened() as bench:
        for call in (
            bench.other.catalogue(),
            bench.calls.item("prd_no"),
            bench.calls.order("ord_no"),
            bench.calls.put_hours("st_no", week()),
        ):
            with pytest.raises(Refused) as refused:
                await call
            assert refused.value.status == 404


async def test_a_service_that_stumbles_is_asked_again_and_one_that_is_down_is_told_of() -> None:
    async with opened() as bench:
        await bench.fault("/catalogue$", status=503)
        assert (await bench.calls.catalogue()).records
        await bench.fault("/catalogue$", status=503, count=3)
        with pytest.raises(ServiceDown):
            await bench.calls.catalogue()


async def test_an_unanswered_removal_is_looked_up() -> None:
    async with opened() as bench:
        url = bench.hall.bridge.receiver.url
        made = await bench.calls.subscribe(SubscriptionRequest("Till", url))
        await bench.fault("^/webhooks/", method="DELETE", status=504, when="after")
        await bench.calls.unsubscribe(made.subscription.webhook_id)
        assert await bench.calls.subscription(made.subscription.webhook_id) is None


async def test_a_subscription_whose_answer_was_lost_is_not_made_again_at_once() -> None:
    async with opened() as bench:
        await bench.fault("/webhooks$", method="POST", status=504, when="after")
        with pytest.raises(OutcomeUnknown) as lost:
            await bench.calls.subscribe(SubscriptionRequest("Till", "http://127.0.0.1:1/hook"))
        assert "support" in lost.value.fix
        seen = (await bench.hall.bridge.control("GET", "/requests")).body["requests"]
        posts = [call for call in seen if call["method"] == "POST"]
        assert len([call for call in posts if call["path"].endswith("/webhooks")]) == 1


@pytest.mark.parametrize("write", ["off", "snooze", "restore", "hours", "webhook"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_after_a_504_the_state_is_read_before_a_write_is_repeated(
    write: str, when: str
) -> None:
    async with opened() as bench:
        tea = await bench.item_id("tea")
        url = bench.hall.bridge.receiver.url
        webhook = (await bench.calls.subscribe(SubscriptionRequest("Till", url))).subscription
        hours = week(monday=[{"open": "09:00", "close": "17:00"}])
        calls: dict[str, tuple[Callable[[], Awaitable[None]], str, str]] = {
            "off": (lambda: bench.calls.take_off(tea, until_ms=None), "PATCH", "/items/"),
            "snooze": (lambda: bench.calls.take_off(tea, until_ms=FAR_MS), "PATCH", "/items/"),
            "restore": (lambda: bench.calls.restore(tea), "PATCH", "/items/"),
            "hours": (lambda: bench.calls.put_hours("st_tea", hours), "PUT", "/hours$"),
            "webhook": (
                lambda: bench.calls.change_subscription(webhook.webhook_id, {"name": "Other"}),
                "PUT",
                "^/webhooks/",
            ),
        }
        call, method, path = calls[write]
        await bench.hall.bridge.control("DELETE", "/requests")
        await bench.fault(path, method=method, status=504, when=when)
        await call()
        seen = (await bench.hall.bridge.control("GET", "/requests")).body["requests"]
        methods = [each["method"] for each in seen]
        already = when == "after" or write == "restore"  # tea was on sale before
        assert methods == ([method, "GET"] if already else [method, "GET", method])
