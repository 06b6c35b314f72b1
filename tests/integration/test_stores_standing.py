"""A store's integration, its pauses and its problems, with a real ledger and a strict service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.service_link import Linked, linked
from tests.support.store_context import store_context
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext, StoreContext
from tillbridge.core.errors import (
    BridgeError,
    ConsentLost,
    LedgerUnwritable,
    Refused,
    ServiceDown,
    Unauthorised,
)
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Supervisor
from tillbridge.daemon.checks import count_down
from tillbridge.ledger import audit
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.vault import store_webhook_secret, webhook_secrets
from tillbridge.sandbox import MerchantSeed, SandboxSettings, StoreSeed
from tillbridge.service.answers import Limits
from tillbridge.service.caller import Contact
from tillbridge.service.types import Store
from tillbridge.stores.closure import Who
from tillbridge.stores.integration import Integrator
from tillbridge.stores.integration_plan import choose_store
from tillbridge.stores.integration_reconciler import IntegrationReconciler
from tillbridge.stores.link import LinkMonitor, ServiceReach
from tillbridge.stores.reconciler import PosPause, StoreStatusReconciler


@dataclass(slots=True)
class Bench:
    service: Linked
    ledger: Ledger
    tracker: ProblemTracker
    seen: int = 0  # the last entry of the trail that `own` has returned

    def context(
        self,
        *,
        assumptions: AssumptionSettings | None = None,
        reintegrate_quiet_s: float = 0.0,
        **changes: Any,  # noqa: ANN401 -- settings by name
    ) -> StoreContext:
        settings = StoreSettings.model_validate(
            {
                "location_id": "loc-1",
                "currency": "USD",
                "notification_email": "owner@example.net",
                "pos": {"adapter": "folder"},
                "orders": {"max_pauses_per_hour": 2},
                **changes,
            }
        )
        return store_context(
            settings,
            pos=None,
            service=self.service.client,
            ledger=self.ledger,
            problems=self.tracker,
            clock=self.service.clock,
            assumptions=assumptions,
            reintegrate_quiet_s=reintegrate_quiet_s,
            public_url="http://127.0.0.1:8088/",
        )

    def integrator(self, **changes: Any) -> Integrator:  # noqa: ANN401 -- (as above)
        context = self.context(**changes)
        return Integrator(context, self.link(context.bridge))

    def link(self, bridge: BridgeContext) -> LinkMonitor:
        return LinkMonitor("main", bridge, ServiceReach(self.tracker, clock=bridge.clock))

    def keeper(self, **changes: Any) -> StoreStatusReconciler:  # noqa: ANN401 -- (as above)
        return StoreStatusReconciler(self.context(**changes), lambda: "st_main")

    async def own(self) -> list[tuple[str, str, str]]:
        """Return what the trail says that the bridge has done by itself, since last asked."""
        found = await self.ledger.read(audit.latest, limit=100, who="bridge")
        new = [each for each in reversed(found) if each.id > self.seen]
        self.seen = max([self.seen, *(each.id for each in new)])
        return [(each.action, each.details["why"], each.details["reason"]) for each in new]

    def pauser(self, keeper: StoreStatusReconciler | None = None) -> PosPause:
        return PosPause(keeper or self.keeper())

    async def fact(self, name: str) -> Any:  # noqa: ANN401 -- any JSON value
        return await self.ledger.read(lambda db: get_fact(db, "main", name))

    async def remote(self) -> dict[str, Any]:
        state: dict[str, Any] = (await self.service.driver.state())["stores"]["st_main"]
        return state

    async def status(self) -> str | None:
        return (await self.service.client.stores())[0].status

    def secrets(self) -> list[str]:
        return [each.secret for each in webhook_secrets(self.ledger.vault, "main")]


@asynccontextmanager
async def standing(
    folder: Path, settings: SandboxSettings | None = None, *, attempts: int = 5
) -> AsyncIterator[Bench]:
    async with linked(settings, limits=Limits(max_attempts=attempts)) as service:
        ledger = await Ledger.open(folder, clock=service.clock)
        tracker = await ProblemTracker.start(ledger, clock=service.clock)
        try:
            await service.sign_in()
            yield Bench(service, ledger, tracker)
        finally:
            await tracker.settle()
            await ledger.close()


# -- integration


async def test_a_store_is_integrated_and_its_secret_kept(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        done = await bench.integrator().integrate()
        assert (done.store_id, done.created) == ("st_main", True)
        now = await bench.service.client.integration("st_main")
        assert now.webhook_url == "http://127.0.0.1:8088/webhooks/main"
        assert now.external_store_id == "loc-1"
        assert now.notification_email == "owner@example.net"
        assert len(bench.secrets()) == 1
        assert await bench.fact("service_store_id") == "st_main"
        fact = await bench.fact("integration")
        assert fact["integration_id"] == now.integration_id
        assert (fact["status"], fact["auto_accept_orders"]) == ("active", False)


async def test_integrating_again_changes_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()
        secrets = bench.secrets()
        done = await bench.integrator().integrate()
        assert (done.created, done.changed) == (False, ())
        assert bench.secrets() == secrets
        calls = await bench.service.asked("/pos/integrations/st_main")
        assert [method for method, _path, _status in calls] == ["GET"]


async def test_integrating_again_changes_only_what_differs(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()
        done = await bench.integrator(
            auto_accept_orders=True, menu_sync_direction="bidirectional"
        ).integrate()
        assert done.changed == ("auto_accept_orders", "menu_sync_direction")
        assert (await bench.fact("integration"))["auto_accept_orders"] is True


async def test_another_location_takes_a_new_integration(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()
        done = await bench.integrator(location_id="loc-2").integrate()
        assert (done.created, done.changed) == (True, ("external_store_id",))
        assert (await bench.service.client.integration("st_main")).external_store_id == "loc-2"


async def test_a_new_integration_keeps_the_secret_before(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()
        (first,) = bench.secrets()
        for _time in range(2):
            await bench.integrator().reintegrate()
        third, second, oldest = bench.secrets()
        assert oldest == first
        assert len({first, second, third}) == 3


async def test_an_integration_made_elsewhere_is_taken_over_without_its_secret(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()  # by another bridge
        done = await bench.integrator().integrate()
        assert (done.created, done.secret_known) == (False, False)
        assert done.changed == ("webhook_url",)
        assert bench.secrets() == []
        rotated = await bench.integrator().rotate()
        assert (rotated.created, len(bench.secrets())) == (True, 1)
        assert (await bench.integrator().integrate()).secret_known


async def test_a_secret_of_an_older_integration_is_known_as_such(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()
        await bench.service.client.remove_integration("st_main")
        await bench.service.integrate()
        assert not (await bench.integrator().integrate()).secret_known


async def test_a_lost_answer_to_our_own_integration_is_mended_at_once(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.fault("drop", "/integrate-store", when="after")
        assert (await bench.integrator().integrate()).created
        assert len(bench.secrets()) == 1


async def test_no_secret_is_asked_for_where_none_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path) as bench:

        def full(*_args: object) -> None:
            raise LedgerUnwritable("the disk is full")

        monkeypatch.setattr(bench.ledger.vault, "put", full)
        with pytest.raises(LedgerUnwritable):
            await bench.integrator().integrate()
        assert await bench.service.asked("/integrate-store/st_main") == []


async def test_of_several_stores_one_must_be_named(tmp_path: Path) -> None:
    merchant = MerchantSeed(stores=(StoreSeed(), StoreSeed("st_two", "Second")))
    async with standing(tmp_path, SandboxSettings(merchants=(merchant,))) as bench:
        with pytest.raises(BridgeError, match=r"st_two \(Second\).*store_id"):
            await bench.integrator().integrate()
        done = await bench.integrator(store_id="st_two").integrate()
        assert done.store_id == "st_two"


async def test_another_store_in_the_configuration_than_the_connected_one_is_a_problem(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.integrator().integrate()

        async def look(store_id: str) -> list[tuple[str, object]]:
            context = bench.context(store_id=store_id)
            link = bench.link(context.bridge)
            keeper = IntegrationReconciler(
                context, Integrator(context, link), link, bench.service.store.tokens
            )
            await keeper._step()
            return [(each.code, each.detail["detail"]) for each in bench.tracker.current()]

        ((code, detail),) = await look("st_other")
        assert code == "integration.differs"
        assert "st_other" in str(detail)
        assert await look("st_main") == []


def test_a_store_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(BridgeError, match=r"st_9.*st_1"):
        choose_store([Store("st_1")], "main", configured="st_9")
    with pytest.raises(BridgeError, match="no store yet"):
        choose_store([], "main")


def test_the_newest_secret_stands_first_and_only_a_few_are_kept() -> None:
    kept: dict[str, str] = {}

    class Memory:
        def get(self, name: str) -> str | None:
            return kept.get(name)

        def put(self, name: str, value: str) -> None:
            kept[name] = value

    vault: Any = Memory()
    for at, secret in enumerate(["a", "b", "c", "c"]):
        store_webhook_secret(vault, "main", secret, at_ms=at)
    assert kept["main/webhook_secrets"].startswith(
        '[{"secret": "c", "since_ms": 3}, {"secret": "b", "since_ms": 1}, '
    )
    for at in range(10, 20):
        store_webhook_secret(vault, "main", f"later {at}", at_ms=at)
    assert [each.since_ms for each in webhook_secrets(vault, "main")] == [19, 18, 17, 16, 15]


# -- pausing


async def test_an_absent_pos_pauses_the_store_and_its_return_resumes_it(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        pauser = bench.pauser()
        await pauser.pos_is(online=False)
        bench.service.clock.pass_s(29)
        await pauser.pos_is(online=False)
        assert await bench.status() == "active"
        bench.service.clock.pass_s(2)
        await pauser.pos_is(online=False)
        assert await bench.status() == "inactive"
        assert bench.tracker.is_open("store.paused", "main")
        assert (await bench.fact("standing"))["pos_away"]["by"] == "bridge"
        await pauser.pos_is(online=True)
        bench.service.clock.pass_s(6)
        await pauser.pos_is(online=True)
        assert await bench.status() == "active"
        assert not bench.tracker.is_open("store.paused", "main")
        assert "pos_away" not in await bench.fact("standing")


async def test_an_order_lost_to_an_absent_pos_pauses_the_store_without_waiting(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        pauser = bench.pauser()
        pauser.order_lost()
        await pauser.pos_is(online=False)
        assert await bench.status() == "inactive"
        await pauser.pos_is(online=True)
        bench.service.clock.pass_s(6)
        await pauser.pos_is(online=True)
        assert await bench.status() == "active"
        await pauser.pos_is(online=False)
        assert await bench.status() == "active"


async def test_a_restart_remembers_who_paused_the_store(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        before = bench.pauser()
        await before.pos_is(online=False)
        bench.service.clock.pass_s(31)
        await before.pos_is(online=False)
        after = bench.pauser()
        await after.pos_is(online=True)
        bench.service.clock.pass_s(6)
        await after.pos_is(online=True)
        assert await bench.status() == "active"


async def test_a_store_the_merchant_closed_stays_closed(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await bench.service.client.set_store_status("st_main", "inactive")
        pauser = bench.pauser()
        await pauser.pos_is(online=False)
        bench.service.clock.pass_s(60)
        await pauser.pos_is(online=False)
        await pauser.pos_is(online=True)
        bench.service.clock.pass_s(60)
        await pauser.pos_is(online=True)
        assert await bench.status() == "inactive"
        assert "pos_away" not in await bench.fact("standing")
        assert bench.tracker.is_open("store.paused_elsewhere", "main")


async def test_a_pause_that_could_not_be_told_is_told_later(tmp_path: Path) -> None:
    async with standing(tmp_path, attempts=1) as bench:
        await bench.service.integrate()
        pauser = bench.pauser()
        await pauser.pos_is(online=False)
        bench.service.clock.pass_s(31)
        await bench.service.fault("error", "/st_main/status", method="PUT", status=503)
        await pauser.pos_is(online=False)
        assert (await bench.fact("standing"))["telling"] == "inactive"
        assert not bench.tracker.is_open("store.paused", "main")
        await pauser.pos_is(online=False)  # not hammered
        assert await bench.status() == "active"
        restarted = bench.keeper()
        await restarted.settle()
        assert await bench.status() == "inactive"
        assert (await bench.fact("standing"))["told"] == "inactive"


async def test_a_pos_that_comes_and_goes_keeps_the_store_paused(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        pauser = bench.pauser()

        async def probes(*, online: bool, seconds: int) -> None:
            for _second in range(seconds):
                await pauser.pos_is(online=online)
                bench.service.clock.pass_s(1)

        for _time in range(2):
            await probes(online=False, seconds=40)
            await probes(online=True, seconds=10)
        assert await bench.status() == "inactive"
        await probes(online=True, seconds=595)
        assert await bench.status() == "active"


# -- problems


async def test_a_person_opens_a_store_whose_pos_came_and_went(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        pauser = bench.pauser(keeper)
        for _time in range(2):
            await pauser.pos_is(online=False)
            bench.service.clock.pass_s(31)
            await pauser.pos_is(online=False)
            await pauser.pos_is(online=True)
            bench.service.clock.pass_s(6)
            await pauser.pos_is(online=True)
        assert await bench.status() == "inactive"
        assert "is unstable" in (await keeper.closure()).reason
        (problem,) = bench.tracker.current()
        assert "is unstable" in problem.text
        await keeper.resume(by="anna")
        await pauser.opened_by_person()
        assert await bench.status() == "active"


async def test_a_person_does_not_open_a_store_whose_pos_is_away(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        pauser = bench.pauser()
        await pauser.pos_is(online=False)
        bench.service.clock.pass_s(31)
        await pauser.pos_is(online=False)
        await pauser.opened_by_person()
        assert await bench.status() == "inactive"


async def test_a_till_that_is_closed_closes_the_store_until_it_opens(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        pauser = bench.pauser(keeper)
        await pauser.pos_is(online=True, closed="Hall has no open session.")
        assert await bench.status() == "inactive"
        stands = await keeper.closure()
        assert (stands.who, stands.reason) == (Who.POS_CLOSED, "Hall has no open session.")
        (problem,) = bench.tracker.current()
        assert problem.code == "store.closed_in_till"
        assert "Hall has no open session." in problem.text
        await pauser.pos_is(online=False)
        assert await bench.status() == "inactive", "a till that is away may still be closed"
        after = bench.pauser()
        await after.pos_is(online=True)
        assert await bench.status() == "active"
        assert not bench.tracker.current()


async def test_a_closed_till_never_closes_a_store_that_is_never_to_be_paused(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        pauser = PosPause(bench.keeper(orders={"pause_after_s": 0}))
        await pauser.pos_is(online=True, closed="Hall has no open session.")
        assert await bench.status() == "active"


def service_watch(bench: Bench) -> LinkMonitor:
    return bench.link(bench.context().bridge)


async def test_calls_open_and_close_the_problems_of_the_link(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        watch = service_watch(bench)
        down = ServiceDown("ill", status=503)
        gone = Refused("no", code="store.not_integrated", status=404)
        revoked = ConsentLost("no", code="auth.consent_revoked", status=403)
        watch.seen(Contact("stores.list", ok=False, failure=down))
        assert bench.tracker.is_open("service.unreachable")
        watch.seen(Contact("menus.push", ok=True, failure=gone))
        assert not bench.tracker.is_open("service.unreachable")
        assert bench.tracker.is_open("integration.missing", "main")
        watch.seen(Contact("menus.push", ok=True, failure=revoked))
        assert bench.tracker.is_open("consent.revoked", "main")
        ended = ConsentLost("no", code="auth.invalid_grant", status=400)
        watch.seen(Contact("menus.push", ok=False, failure=ended))
        assert not bench.tracker.is_open("consent.revoked", "main")
        assert bench.tracker.is_open("consent.expired", "main")
        watch.seen(Contact("stores.list", ok=True))
        assert not bench.tracker.is_open("consent.expired", "main")
        assert bench.tracker.is_open("integration.missing", "main")
        watch.seen(Contact("integrations.create", ok=True))
        assert bench.tracker.current() == ()
        await watch.close()
        contact = {"ok_at": bench.service.clock.now_ms(), "took_ms": 0}
        assert await bench.fact("service_contact") == contact


async def test_a_store_is_read_once_nothing_was_called_for_a_while(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        clock = Clock()
        watch = bench.link(replace(bench.context().bridge, clock=clock))
        reads: list[float] = []
        revoked = ConsentLost("no", code="auth.consent_revoked", status=403)

        async def read() -> None:
            reads.append(clock.monotonic())
            watch.seen(Contact("integrations.read", ok=True, failure=revoked))
            raise revoked

        began = clock.monotonic()
        scheduler = Scheduler(clock, Supervisor("", bench.tracker))
        scheduler.every("idle_read", 0.3, partial(watch.read_if_idle, read, 0.3), first_s=0.3)
        scheduler.start()
        for _call in range(4):  # a busy store is not read
            await asyncio.sleep(0.1)
            watch.seen(Contact("items.change", ok=True))
        assert reads == []
        assert not bench.tracker.is_open("consent.revoked", "main")
        called = clock.monotonic()
        await asyncio.sleep(0.8)
        scheduler.stop()
        assert 2 <= len(reads) <= 3, "and goes on after a failure"
        assert 0.2 < reads[0] - called < 0.6, began
        assert bench.tracker.is_open("consent.revoked", "main")
        await watch.close()


async def test_a_fresh_token_that_is_refused_is_a_problem_until_a_call_works(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        watch = service_watch(bench)
        refused = Unauthorised("no", code="auth.invalid_token", status=401)
        watch.seen(Contact("menus.push", ok=True, failure=refused))
        assert bench.tracker.is_open("service.token_refused", "main")
        watch.seen(Contact("menus.push", ok=True))
        assert bench.tracker.current() == ()
        await watch.close()


async def test_a_contact_is_noted_once_a_minute(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        watch = service_watch(bench)
        first = bench.service.clock.now_ms()
        for _second in range(50):
            watch.seen(Contact("stores.list", ok=True))
            bench.service.clock.pass_s(1)
        await watch.close()
        assert await bench.fact("service_contact") == {"ok_at": first, "took_ms": 0}
        bench.service.clock.pass_s(15)
        watch.seen(Contact("stores.list", ok=True))
        await watch.close()
        assert (await bench.fact("service_contact"))["ok_at"] > first


# -- how long the consent lasts


@pytest.mark.parametrize(
    ("days", "warned"), [(0.0, False), (4.0, False), (6.0, True), (7.05, True), (30.0, True)]
)
async def test_a_consent_whose_days_are_over_is_a_problem_also_while_it_is_honoured(
    days: float, warned: bool, tmp_path: Path
) -> None:
    async with standing(tmp_path) as bench:
        bench.service.clock.wall_ms += int(days * 86_400_000)
        keeper = bench.service.store.tokens
        assert await keeper.access_token()  # the service refreshes it all the same
        await count_down(bench.context().bridge, "main", keeper)
        assert bench.tracker.is_open("consent.ending", "main") is warned
        assert not bench.tracker.is_open("consent.expired", "main")
