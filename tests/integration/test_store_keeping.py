"""Who keeps a store closed, its settings and its taxes: a real ledger and a strict service."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.integration.test_stores_standing import Bench, standing
from tests.support.bridge_process import until
from tillbridge.core.errors import ConfigError, Refused, ServiceDown
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.menu import acknowledge
from tillbridge.ledger.menu_codec import AcceptedItem, PushContent
from tillbridge.ledger.models import OrderRow
from tillbridge.model.catalogue import Item, ItemTax, TaxComponent
from tillbridge.model.order import OrderState
from tillbridge.orders.repository import save
from tillbridge.orders.state import Change
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.types import Store
from tillbridge.stores.closure import Planned, Who
from tillbridge.stores.reconciler import StoreStatusReconciler
from tillbridge.stores.settings import SettingsFlow
from tillbridge.stores.taxes import TaxMonitor


async def paused(keeper: StoreStatusReconciler, until_ms: int | None = None) -> None:
    closed = await keeper.pause(by="anna", reason=" too\n busy ", until_ms=until_ms)
    assert closed.reason == "too busy"


async def test_a_persons_pause_is_not_undone_by_the_till_that_comes_back(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await paused(keeper)
        await keeper.pos_away()
        await keeper.pos_back()
        assert await bench.status() == "inactive"
        after = bench.keeper()  # a restart
        await after.pos_back()
        assert (await after.closure()).by == "anna"
        assert await bench.status() == "inactive"
        assert bench.tracker.is_open("store.paused_by_staff", "main")
        assert (await after.resume(by="anna")).who is None
        assert await bench.status() == "active"


async def test_the_bridges_pause_is_not_lost_when_a_person_resumes(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await paused(keeper)
        await keeper.pos_away()
        assert (await keeper.resume(by="anna")).who is Who.POS_AWAY
        assert await bench.status() == "inactive"
        await keeper.pos_back()
        assert await bench.status() == "active"


async def test_a_store_that_a_cancel_paused_is_the_bridges_to_open(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await keeper.settle()
        # The service does this by itself when an order is cancelled with POS_OFFLINE.
        await bench.service.client.set_store_status("st_main", "inactive")
        await keeper.pos_away(by="cancel")
        assert (await keeper.closure()).who is Who.POS_AWAY
        await keeper.pos_back()
        assert await bench.status() == "active"


async def test_a_till_that_goes_away_closes_what_others_have_opened_meanwhile(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper, service = bench.keeper(), bench.service.client
        await keeper.settle()
        await service.set_store_status("st_main", "inactive")
        keeper.look()
        await keeper.settle()
        assert (await keeper.closure()).who is Who.OTHERS
        await service.set_store_status("st_main", "active")  # and nobody tells the bridge
        await keeper.pos_away()
        assert await bench.status() == "inactive"
        assert (await keeper.closure()).who is Who.POS_AWAY
        await keeper.pos_back()
        assert await bench.status() == "active"


async def test_a_pause_with_an_end_ends_though_the_bridge_was_down_then(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await paused(bench.keeper(), bench.service.clock.now_ms() + 60_000)
        assert await bench.status() == "inactive"
        bench.service.clock.pass_s(61)
        await bench.keeper().settle()
        assert await bench.status() == "active"


async def test_a_look_that_is_asked_for_during_a_read_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper, client = bench.keeper(), bench.service.client
        await keeper.settle()
        read = client.stores

        async def overtaken() -> list[Store]:
            found = await read()
            await client.set_store_status("st_main", "inactive")  # by somebody else,
            keeper.look()  # and the event that says so
            return found

        monkeypatch.setattr(client, "stores", overtaken)
        keeper.look()
        await keeper.settle()
        monkeypatch.setattr(client, "stores", read)
        await keeper.settle()
        assert (await keeper.closure()).who is Who.OTHERS


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_while_the_service_is_told_takes_nobody_for_somebody_else(
    tmp_path: Path, when: str
) -> None:
    async with standing(tmp_path, attempts=1) as bench:
        await bench.service.integrate()
        await bench.keeper().settle()
        await bench.service.fault("error", "/st_main/status", status=503, when=when)
        with pytest.raises(ServiceDown):
            await paused(bench.keeper())
        after = bench.keeper()
        await after.settle()
        assert await bench.status() == "inactive"
        assert "others" not in await bench.fact("standing")
        await after.resume(by="anna")
        assert await bench.status() == "active"


async def test_the_schedule_opens_and_closes_and_yields_to_a_person(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper, clock = bench.keeper(), bench.service.clock
        opens = clock.now_ms() + 3_600_000

        def plan(now: int) -> Planned:
            if now < opens:
                return Planned(closed=True, until_ms=opens, reason="outside opening hours")
            return Planned(until_ms=opens + 3_600_000)

        keeper.follow(plan)
        await keeper.settle()
        assert await bench.status() == "inactive"
        assert bench.tracker.current() == ()
        assert (await keeper.resume(by="anna")).who is None
        await keeper.settle()
        assert await bench.status() == "active"
        await paused(keeper)
        clock.pass_s(3601)
        await keeper.settle()
        assert (await keeper.closure()).who is Who.PERSON
        assert await bench.status() == "inactive"


async def test_a_clock_that_jumps_back_closes_the_store_again(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper, clock = bench.keeper(), bench.service.clock
        opens = clock.now_ms() + 3_600_000
        keeper.follow(
            lambda now: Planned(closed=now < opens, until_ms=opens if now < opens else None)
        )
        await keeper.settle()
        assert await bench.status() == "inactive"
        clock.wall_ms += 7_200_000  # the wall clock alone: somebody set it
        await keeper.settle()
        assert await bench.status() == "active"
        clock.wall_ms -= 7_200_000
        await keeper.settle()
        assert await bench.status() == "inactive"


async def test_the_running_keeper_ends_a_pause_by_itself(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await paused(keeper, bench.service.clock.now_ms() + 60_000)
        running = asyncio.create_task(keeper.worker.run())
        bench.service.clock.pass_s(61)
        keeper.look()  # instead of waiting for the wall clock to be looked at
        try:
            await until("the store is open", lambda: is_open(bench))
        finally:
            running.cancel()


async def test_what_somebody_else_reads_of_the_store_is_not_asked_again(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        clock, keeper = bench.service.clock, bench.keeper()
        await keeper.settle()
        keeper.look(within_s=5)
        await keeper.noticed("inactive", asked_at=clock.monotonic())
        assert (await keeper.closure()).who is Who.OTHERS
        clock.pass_s(6)
        await keeper.settle()
        assert (await keeper.closure()).who is Who.OTHERS, "it would have found it active"
        keeper.look(within_s=5)
        await keeper.settle()
        assert (await keeper.closure()).who is Who.OTHERS
        clock.pass_s(6)
        await keeper.settle()
        assert (await keeper.closure()).who is None, "nobody else has told"


async def test_what_was_read_before_a_change_of_our_own_says_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        clock, keeper = bench.service.clock, bench.keeper()
        await keeper.settle()
        asked_at = clock.monotonic()
        clock.pass_s(1)
        await paused(keeper, None)
        await keeper.noticed("active", asked_at=asked_at)
        assert (await keeper.closure()).who is Who.PERSON
        assert await bench.status() == "inactive"


async def is_open(bench: Bench) -> bool:
    return await bench.status() == "active"


async def test_a_ledger_of_an_older_version_remembers_the_bridges_pause(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await bench.service.client.set_store_status("st_main", "inactive")
        fact = {"by": "bridge", "since_ms": 1, "told": True}
        await bench.ledger.write(lambda db: put_fact(db, "main", "pause", fact, at=1))
        keeper = bench.keeper()
        assert (await keeper.closure()).who is Who.POS_AWAY
        await keeper.pos_back()
        assert await bench.status() == "active"
        assert await bench.fact("pause") is None


# -- settings


def settings_flow(
    bench: Bench,
    folder: Path,
    on_schedule: Callable[[Callable[[int], Planned]], None] | None = None,
    **schedule: Any,  # noqa: ANN401 -- settings by name
) -> SettingsFlow:
    return SettingsFlow(
        bench.context(
            settings_file=str(folder / "store.toml"),
            currency="EUR",
            timezone="Europe/Rome",
            schedule=schedule,
        ),
        lambda: "st_main",
        on_schedule=(lambda _plan: None) if on_schedule is None else on_schedule,
    )


async def test_only_what_changed_is_sent_and_a_restart_sends_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path / "data") as bench:
        await bench.service.integrate()
        path = tmp_path / "store.toml"
        path.write_text('name = "A"\nphone = "+39 02 1234"\n', "utf-8")
        assert set((await settings_flow(bench, tmp_path).push()).part) == {"name", "contactDetails"}
        assert (await settings_flow(bench, tmp_path).push()).part == {}
        path.write_text('name = "B"\n', "utf-8")
        plan = await settings_flow(bench, tmp_path).push()
        assert (plan.part, plan.unsaid) == ({"name": "B"}, ("contactDetails",))
        assert (await bench.remote())["settings"]["contactDetails"] == {"phone": "+39 02 1234"}
        fact = await bench.fact("store_settings")
        assert (fact["pending"], fact["sent_at"]) == ([], bench.service.clock.now_ms())
        assert await bench.fact("service_store_name") == "B"  # shown without another look


async def test_settings_that_are_refused_stay_to_be_sent(tmp_path: Path) -> None:
    strict = SandboxSettings(settings_accept_unknown=False)
    async with standing(tmp_path / "data", strict) as bench:
        await bench.service.integrate()
        (tmp_path / "store.toml").write_text("[pass_through]\nwhatIsThis = true\n", "utf-8")
        flow = settings_flow(bench, tmp_path)
        with pytest.raises(Refused, match="whatIsThis"):
            await flow.push()
        assert (await bench.fact("store_settings"))["pending"] == ["whatIsThis"]
        assert (await flow.plan()).part == {"whatIsThis": True}


async def test_a_file_that_cannot_be_read_sends_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path / "data") as bench:
        await bench.service.integrate()
        (tmp_path / "store.toml").write_text('name = "A"\nimage = "front.jpg"\n', "utf-8")
        with pytest.raises(ConfigError, match="line 2: image"):
            await settings_flow(bench, tmp_path).push()
        assert await bench.service.asked("/settings") == []


async def test_the_hours_of_the_last_life_count_while_the_file_is_bad(tmp_path: Path) -> None:
    async with standing(tmp_path / "data") as bench:
        await bench.service.integrate()
        path = tmp_path / "store.toml"
        days = "monday tuesday wednesday thursday friday saturday sunday".split()
        path.write_text("[hours]\n" + "".join(f"{day} = []\n" for day in days), "utf-8")
        plans: list[Callable[[int], Planned]] = []
        first = settings_flow(bench, tmp_path, plans.append, follow_hours=True)
        await first._step()
        path.write_text("[hours]\nmonday = 7\n", "utf-8")
        second = settings_flow(bench, tmp_path, plans.append, follow_hours=True)
        await second.recall()
        await second._step()
        assert [plan(bench.service.clock.now_ms()).closed for plan in plans] == [True, True]
        assert bench.tracker.is_open("store.file_unreadable", "main")


# -- taxes


def tax_rounds(bench: Bench) -> TaxMonitor:
    return TaxMonitor(bench.context(), lambda: "st_main")


async def accepted(bench: Bench, **rates: str) -> None:
    """Let the service have accepted items, each with a tax of that rate."""
    rows = [
        AcceptedItem(
            Item(name, name, 100, tax=ItemTax("Sales tax", (TaxComponent("State", rate),))),
            fingerprint=0,
            pos_available=True,
        )
        for name, rate in rates.items()
    ]
    content = PushContent(items=tuple(rows))
    await bench.ledger.write(lambda db: acknowledge(db, "main", content, at=1))


async def test_items_whose_taxes_differ_are_told_until_they_agree(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await accepted(bench, tea="8.25", margherita="7", calzone="7")
        fact = await tax_rounds(bench).check()
        (told,) = fact.differences
        assert told.startswith("the till says 7 % on 2 items, the service says 8.25 %; first: ")
        assert bench.tracker.is_open("tax.differs", "main")
        await accepted(bench, margherita="8.25", calzone="8.25")
        assert (await tax_rounds(bench).check()).differences == []
        assert not bench.tracker.is_open("tax.differs", "main")


async def test_orders_count_until_the_taxes_change_or_newer_ones_agree(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        rounds = tax_rounds(bench)
        await rounds.check()
        bad, good = (
            {"prices_include_tax": False, "tax_breakdown": [{"rate": rate, "amount": 5}]}
            for rate in (9.5, 2)
        )
        rounds.order_arrived(bad, "17")
        await rounds._step()
        assert bench.tracker.is_open("tax.differs", "main")
        for number in range(5):
            rounds.order_arrived(good, str(number))
        await rounds._step()
        assert not bench.tracker.is_open("tax.differs", "main")


async def test_taxes_are_read_once_a_day_not_at_every_start(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()

        async def start() -> float | None:
            rounds = tax_rounds(bench)
            rounds.service_back()
            return await rounds._step()

        assert await start() == 30
        await tax_rounds(bench).check()
        assert await start() is None
        bench.service.clock.pass_s(25 * 3600)
        assert await start() == 30


async def test_what_the_bridge_does_by_itself_is_told_with_why(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await keeper.pos_away()
        await keeper.pos_away()
        await keeper.pos_back()
        assert await bench.own() == [
            ("store.pause", "the till is offline", ""),
            ("store.resume", "the till is back", ""),
        ]
        closed = True
        keeper.follow(lambda _now: Planned(closed, None, "Closing day" if closed else ""))
        await keeper.settle()
        closed = False
        keeper.follow(lambda _now: Planned(closed))
        await keeper.settle()
        assert await bench.own() == [
            ("store.pause", "the schedule", "Closing day"),
            ("store.resume", "the schedule", ""),
        ]


async def test_what_a_person_or_somebody_else_does_is_not_the_bridges_doing(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper, service = bench.keeper(), bench.service.client
        await paused(keeper)
        await keeper.resume(by="anna")
        await service.set_store_status("st_main", "inactive")
        keeper.look()
        await keeper.settle()
        await keeper.resume(by="anna")
        assert await bench.own() == []


async def test_the_end_of_a_persons_pause_is_the_bridges_doing_after_a_restart_too(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await paused(bench.keeper(), bench.service.clock.now_ms() + 60_000)
        bench.service.clock.pass_s(61)
        await bench.keeper().settle()
        assert await bench.own() == [("store.resume", "the pause is over", "")]


async def test_the_cause_that_ended_last_is_the_reason(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        keeper = bench.keeper()
        await paused(keeper)
        await keeper.pos_away()
        await keeper.resume(by="anna")
        await keeper.pos_back()
        assert await bench.own() == [("store.resume", "the till is back", "")]


MINUTE_MS = 60_000


async def test_a_timed_pause_survives_a_restart_and_ends_by_itself(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        clock = bench.service.clock
        keeper = bench.keeper()
        await paused(keeper, clock.now_ms() + 15 * MINUTE_MS)
        assert await bench.status() == "inactive"
        clock.pass_s(10 * 60)
        again = bench.keeper()  # the bridge was restarted meanwhile
        await again.settle()
        closure = await again.closure()
        assert (closure.who, closure.by) == (Who.PERSON, "anna")
        assert closure.until_ms is not None
        assert (closure.until_ms - clock.now_ms()) // 1000 == pytest.approx(300, abs=2)
        assert await bench.status() == "inactive"
        clock.pass_s(5 * 60 + 1)
        await again.settle()
        assert await bench.status() == "active", "nobody had to do anything"
        resumed = ("store.resume", "the pause is over", "")
        assert (await bench.own())[-1] == resumed, "it is in the trail"
        assert not bench.tracker.is_open("store.paused_by_staff", "main")


async def test_a_timed_pause_that_ended_while_the_bridge_was_off_is_over(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        await paused(bench.keeper(), bench.service.clock.now_ms() + 15 * MINUTE_MS)
        bench.service.clock.pass_s(3600)
        await bench.keeper().settle()
        assert await bench.status() == "active"


def arrive(number: int, at: int, *, cancelled: bool = False) -> Callable[[Connection], object]:
    state = OrderState.CANCELLED if cancelled else OrderState.CREATED
    row = OrderRow(
        store="main",
        order_id=f"ord_{number}",
        received_at=at,
        payload="",
        desired_state=state,
        service_state=OrderState.CREATED,
    )
    return lambda connection: save(connection, Change(None, row), at)


async def test_busy_mode_pauses_a_store_that_is_full_until_there_is_room(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await bench.service.integrate()
        clock = bench.service.clock
        first = clock.now_ms()
        for number in range(2):
            await bench.ledger.write(arrive(number, first))
        await bench.ledger.write(arrive(9, first, cancelled=True))
        keeper = bench.keeper()
        await keeper.be_busy(by="anna", orders=3, until_ms=None)
        assert await bench.status() == "active", "what was cancelled does not count"
        clock.pass_s(60)
        await bench.ledger.write(arrive(3, clock.now_ms()))
        keeper.order_arrived()
        await keeper.settle()
        closure = await keeper.closure()
        assert (closure.who, await bench.status()) == (Who.BUSY, "inactive")
        assert closure.until_ms == first + 15 * MINUTE_MS
        assert (await bench.own())[-1][:2] == ("store.pause", "as many orders as busy mode allows")
        again = bench.keeper()
        clock.pass_s(14 * 60 + 1)
        await again.settle()
        assert await bench.status() == "active", "a restart later, with room again"
        assert (await bench.own())[-1][:2] == ("store.resume", "room for another order")
        assert (await again.closure()).busy is not None
        await again.be_busy_no_more(by="anna")
        assert (await again.closure()).busy is None
