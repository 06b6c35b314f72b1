"""Tills that cannot be asked (paper): written again with a mark, and old orders only on request."""

from pathlib import Path

import pytest

from tests.support.order_harness import Harness, Life
from tillbridge.adapter import PosOffline, TicketMark, TicketOutcomeUnknown
from tillbridge.ledger.models import TicketState
from tillbridge.model.order import Order, ReasonCode

DUPLICATE = frozenset({TicketMark.POSSIBLE_DUPLICATE})
HALF_AN_HOUR = 1800.0


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path)
    harness.till.marks_tickets = True
    harness.till.hold_older_than_s = HALF_AN_HOUR
    return harness


async def unheard(_order: Order) -> None:
    raise TicketOutcomeUnknown("The connection broke off in the middle of a ticket.")


async def gone(_order: Order) -> None:
    raise PosOffline("no paper")


async def an_hour_goes_by(harness: Harness, life: Life) -> None:
    """Let an hour pass within one write that fails, so that none is under way when it is over."""

    async def an_hour_later(_order: Order) -> None:
        harness.clock.both_s, harness.till.on_write = 3600, None
        raise PosOffline("no paper")

    harness.till.on_write = an_hour_later
    await life.until(lambda: harness.clock.both_s)


async def test_a_ticket_of_which_nobody_knows_is_written_again_with_a_mark(
    harness: Harness,
) -> None:
    harness.till.on_written = unheard
    harness.till.find_fails = TicketOutcomeUnknown("nobody knows")
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.marked)
        harness.till.on_written = None
        await life.until_told("ord_1", "accepted")
        assert set(harness.till.marked) == {("ord_1", DUPLICATE)}


async def test_a_till_without_marks_is_not_written_to_again(harness: Harness) -> None:
    harness.till.marks_tickets = False
    harness.till.on_written = unheard
    harness.till.find_fails = TicketOutcomeUnknown("nobody knows")
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.not_written" in life.problems())
        assert harness.till.written == ["ord_1"]


async def test_after_a_crash_a_ticket_that_was_begun_is_marked(harness: Harness) -> None:
    harness.till.on_written = unheard
    harness.order_settings["retry_s"] = 30.0
    harness.order_settings["retry_cap_s"] = 30.0
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
    harness.till.on_written = None
    harness.till.find_fails = TicketOutcomeUnknown("nobody knows")
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
        assert harness.till.marked == [("ord_1", DUPLICATE)]


async def test_an_old_order_waits_until_somebody_asks_for_it(harness: Harness) -> None:
    async with harness.life() as life:
        harness.clock.wall_s = -2400  # the order is placed forty minutes before it is delivered
        data = life.data("ord_1")
        harness.clock.wall_s = 0
        harness.service.states["ord_1"] = "created"
        await life.deliver("order.created", data)
        await life.until(lambda: "order.held" in life.problems())
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        assert harness.till.written == ["ord_2"], "one that is old keeps nobody else waiting"
        row = await life.row("ord_1")
        assert row is not None
        assert row.ticket is TicketState.WAITING
        assert "order.held" in await life.events("ord_1")
        await life.flow.retry("ord_1", by="page:anna")
        await life.until_told("ord_1", "accepted")
        await life.until(lambda: "order.held" not in life.problems())
        assert harness.till.written == ["ord_2", "ord_1"]


async def test_a_backlog_does_not_come_out_when_the_printer_is_back(harness: Harness) -> None:
    harness.order_settings["accept_within_s"] = 86_400
    harness.till.on_write = gone
    async with harness.life() as life:
        for number in range(3):
            await life.order(f"ord_{number}")
        await life.until(lambda: "offline" in harness.effects.presence)
        await an_hour_goes_by(harness, life)
        await life.order("ord_new")
        await life.until_told("ord_new", "accepted")

        async def all_held() -> bool:
            lives = [await life.events(f"ord_{number}") for number in range(3)]
            return all("order.held" in each for each in lives)

        await life.until(all_held)
        assert harness.till.written == ["ord_new"]


async def test_held_orders_do_not_keep_the_till_offline(harness: Harness) -> None:
    harness.order_settings["accept_within_s"] = 86_400
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "offline" in harness.effects.presence)
        await an_hour_goes_by(harness, life)
        await life.until(lambda: harness.effects.presence[-1] == "online")
        assert harness.till.written == []


async def test_what_nobody_asks_for_is_cancelled_when_its_time_is_up(harness: Harness) -> None:
    async with harness.life() as life:
        harness.clock.wall_s = -2400
        data = life.data("ord_1")
        harness.clock.wall_s = 0
        harness.service.states["ord_1"] = "created"
        await life.deliver("order.created", data)
        await life.until(lambda: "order.held" in life.problems())
        harness.clock.both_s = 121
        await life.order("ord_2")
        row = await life.until_closed("ord_1")
        assert row.service_state == "cancelled"
        assert harness.service.cancels[0][1] is ReasonCode.OTHER
        assert "minutes old" in harness.service.cancels[0][2]
        await life.until(lambda: "order.held" not in life.problems())


async def test_an_old_order_that_is_found_needs_nobody(harness: Harness) -> None:
    """It came out after all: a printer's word may come late."""
    harness.till.on_written = unheard
    harness.order_settings |= {"retry_s": 30.0, "retry_cap_s": 30.0, "accept_within_s": 86_400}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
    harness.clock.both_s = 3600
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
        assert harness.till.marked == []


async def test_the_ticket_of_a_cancelled_order_is_told_though_nobody_knows_of_it(
    harness: Harness,
) -> None:
    harness.till.on_written = unheard
    harness.order_settings |= {"retry_s": 30.0, "retry_cap_s": 30.0}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.till.find_fails = TicketOutcomeUnknown("nobody knows")
        await life.flow.cancel("ord_1", ReasonCode.OTHER, by="page:anna")
        await life.until_closed("ord_1")
        assert harness.till.withdrawn == ["ord_1"]
