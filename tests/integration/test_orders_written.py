"""Each order becomes one ticket, whatever happens between the inbox and the till."""

import asyncio
from pathlib import Path

import pytest

from tests.support.order_harness import STORE, Harness
from tillbridge.adapter import (
    ItemUnavailable,
    PosOffline,
    PriceMismatch,
    TicketOutcomeUnknown,
)
from tillbridge.core.errors import LedgerUnwritable
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.models import TicketState
from tillbridge.model.order import Order, OrderState, ReasonCode


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


async def test_an_order_becomes_a_ticket_and_is_accepted(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "accepted")
        assert harness.till.written == ["ord_1"]
        assert row.ticket_reference == "#1"
        assert row.closed_at is None
        assert await life.events("ord_1") == ["order.received", "order.written", "order.accepted"]


async def test_orders_are_written_in_the_order_they_were_received(harness: Harness) -> None:
    ids = [f"ord_{number}" for number in range(30)]
    async with harness.life() as life:
        for order_id in ids:
            await life.order(order_id)
        await life.until_told("ord_29", "accepted")
    assert harness.till.written == ids


async def test_what_was_committed_before_the_start_is_written(harness: Harness) -> None:
    async with harness.life() as life:
        life.task.cancel()
        await life.order("ord_1")
    assert harness.till.written == []
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")


async def test_a_redelivered_order_is_written_once(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.order("ord_1", total_amount=99)  # another event, the same order
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        row = await life.row("ord_1")
        assert row is not None
        assert "total_amount" not in row.payload
    assert harness.till.written == ["ord_1", "ord_2"]


async def test_a_crash_between_the_tills_write_and_its_mark_writes_no_second_ticket(
    harness: Harness,
) -> None:
    async def die(_order: Order) -> None:
        asyncio.get_running_loop().call_soon(written.set)
        await asyncio.sleep(60)

    written = asyncio.Event()
    harness.till.on_written = die
    async with harness.life() as life:
        await life.order("ord_1")
        await written.wait()
    harness.till.on_written = None
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]
    assert harness.till.asked == ["ord_1"]


async def test_a_crash_before_the_tills_write_loses_no_order(harness: Harness) -> None:
    async def die(_order: Order) -> None:
        asyncio.get_running_loop().call_soon(begun.set)
        await asyncio.sleep(60)

    begun = asyncio.Event()
    harness.till.on_write = die
    async with harness.life() as life:
        await life.order("ord_1")
        await begun.wait()
    harness.till.on_write = None
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]


async def test_a_write_whose_outcome_is_unknown_is_asked_for_first(harness: Harness) -> None:
    async def times_out_once(_order: Order) -> None:
        harness.till.on_written = None
        raise TicketOutcomeUnknown("no answer in 20 s")

    harness.till.on_written = times_out_once
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "accepted")
        assert row.last_failure == ""
        assert "order.wait" in await life.events("ord_1")
    assert harness.till.written == ["ord_1"]


async def test_one_order_in_trouble_does_not_hold_up_those_behind_it(harness: Harness) -> None:
    async def only_the_first(order: Order) -> None:
        if order.id == "ord_1":
            raise TicketOutcomeUnknown("slow")

    harness.till.on_write = only_the_first
    async with harness.life() as life:
        await life.order("ord_1")
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until(lambda: "order.not_written" in life.problems())
        harness.till.on_write = None
        await life.until_told("ord_1", "accepted")
        await life.until(lambda: "order.not_written" not in life.problems())


async def test_an_order_that_alone_fails_as_offline_does_not_hold_up_the_others(
    harness: Harness,
) -> None:
    async def only_the_first(order: Order) -> None:
        if order.id == "ord_1":
            raise PosOffline("locked file")

    harness.till.on_write = only_the_first
    async with harness.life() as life:
        for number in range(1, 5):
            await life.order(f"ord_{number}")
        for number in range(2, 5):
            await life.until_told(f"ord_{number}", "accepted")


async def test_while_the_till_is_offline_orders_wait_and_then_come_in_order(
    harness: Harness,
) -> None:
    harness.till.online = False
    async with harness.life() as life:
        for order_id in ("ord_1", "ord_2", "ord_3"):
            await life.order(order_id)
        await life.until(lambda: life.row("ord_3"))
        await life.until(lambda: "pos.offline" in life.problems())
        assert not life.flow.presence.online
        assert harness.till.written == []
        harness.till.online = True
        await life.until_told("ord_3", "accepted")
        await life.until(lambda: life.flow.presence.online)
        await life.until(lambda: "pos.offline" not in life.problems())
        health = await life.ledger.read(lambda each: get_fact(each, STORE, "pos_health"))
        assert health["online"] is True
    assert harness.till.written == ["ord_1", "ord_2", "ord_3"]
    assert harness.effects.presence == ["offline", "online"]


async def test_a_write_that_finds_the_till_offline_is_told_although_probes_are_good(
    harness: Harness,
) -> None:
    async def folder_is_gone(_order: Order) -> None:
        raise PosOffline("no such folder", fix="Mount the share.")

    harness.till.on_write = folder_is_gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "pos.offline" in life.problems())
        await asyncio.sleep(0.15)  # three good probes
        (told,) = [each for each in life.tracker.current() if each.code == "pos.offline"]
        assert told.text == "The till is not taking orders: no such folder"
        assert told.fix.startswith("Mount the share. Waiting orders are written"), (
            "the cause's own remedy"
        )
        assert harness.effects.presence == ["online", "offline"]
        harness.till.on_write = None
        await life.until_told("ord_1", "accepted")
    assert harness.effects.presence == ["online", "offline", "online"]
    assert harness.till.written == ["ord_1"]


async def test_an_item_that_is_out_cancels_the_order_and_is_taken_off_sale(
    harness: Harness,
) -> None:
    async def sold_out(_order: Order) -> None:
        raise ItemUnavailable("soup is out", external_ids=["soup"])

    harness.till.on_write = sold_out
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "cancelled")
        assert row.closed_at is not None
        assert row.ticket is TicketState.REFUSED
    assert harness.service.cancels == [("ord_1", ReasonCode.ITEM_OUT_OF_STOCK, "soup is out")]
    assert harness.effects.out == ["soup"]
    assert harness.till.withdrawn == []


async def test_a_price_the_till_does_not_share_cancels_and_resyncs(harness: Harness) -> None:
    async def other_price(_order: Order) -> None:
        raise PriceMismatch

    harness.till.on_write = other_price
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "cancelled")
    assert harness.effects.resyncs == 1


async def test_after_a_lost_ledger_the_till_is_asked_before_anything_is_written(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        at = harness.clock.now_ms()
        await life.ledger.write(
            lambda each: put_fact(each, "", "rebuilt", {"at_ms": at, "set_aside": "x"}, at=at)
        )
        harness.till.tickets["ord_1"] = "#old"
        await life.order("ord_1")
        row = await life.until_told("ord_1", "accepted")
        assert row.ticket_reference == "#old"
    assert harness.till.written == []


async def test_an_order_that_was_delivered_before_it_arrived_is_not_cooked(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await life.deliver("order.delivered", {"id": "ord_1"})
        await life.order("ord_1")
        row = await life.until(lambda: life.row("ord_1"))
        assert row.service_state is OrderState.COMPLETED
        assert row.closed_at is not None
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
    assert harness.till.written == ["ord_2"]


async def test_odd_deliveries_hold_up_nothing(harness: Harness) -> None:
    async with harness.life() as life:
        await life.deliver("order.created", {"no": "id"})
        await life.deliver("order.created", None)
        await life.deliver("order.delivered", 7)
        await life.deliver("store.status_changed", {"status": "inactive"})
        await life.deliver("something.new", {})
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert "order.unreadable" in life.problems()
        outcomes = await life.ledger.read(
            lambda each: (
                each.exec_driver_sql("SELECT outcome FROM inbox ORDER BY id").scalars().all()
            )
        )
        assert outcomes == ["unreadable"] * 3 + ["kept"] * 2 + ["order"]


async def test_nothing_is_written_to_the_till_that_the_ledger_could_not_note_before(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_job: object, **_more: object) -> None:
        refusals.append(1)
        raise LedgerUnwritable("disk full")

    refusals: list[int] = []
    async with harness.life() as life:
        harness.till.online = False
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
        await life.until(lambda: not life.flow.presence.online)
        with monkeypatch.context() as full_disk:
            full_disk.setattr(life.ledger, "write", refuse)
            harness.till.online = True
            await life.until(lambda: len(refusals) > 2)
            assert harness.till.written == []
        await life.until_told("ord_1", "accepted")


async def test_a_disk_that_is_full_after_the_write_costs_no_second_ticket(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill_the_disk(_order: Order) -> None:
        full_disk.setattr(life.ledger, "write", refuse)

    async def refuse(*_job: object, **_more: object) -> None:
        refusals.append(1)
        raise LedgerUnwritable("disk full")

    refusals: list[int] = []
    harness.till.on_written = fill_the_disk
    async with harness.life() as life:
        with monkeypatch.context() as full_disk:
            await life.order("ord_1")
            await life.until(lambda: len(refusals) > 2)
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]


async def test_a_drain_lets_the_write_under_way_end_and_begins_no_other(harness: Harness) -> None:
    async def slow(_order: Order) -> None:
        begun.set()
        await go_on.wait()

    begun, go_on = asyncio.Event(), asyncio.Event()
    harness.till.on_write = slow
    async with harness.life() as life:
        await life.order("ord_1")
        await life.order("ord_2")
        await begun.wait()
        draining = asyncio.create_task(life.flow.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        go_on.set()
        await draining
        row = await life.row("ord_1")
        assert row is not None
        assert row.ticket is TicketState.WRITTEN
    assert harness.till.written == ["ord_1"]
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
        await life.until_told("ord_2", "accepted")
    assert harness.till.written == ["ord_1", "ord_2"]
