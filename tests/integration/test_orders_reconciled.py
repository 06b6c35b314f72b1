"""A till whose writes hang while its reads answer: waited out, found, taken back, and reported."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.order_harness import Harness, Life
from tillbridge.adapter import ListedTicket, PosFailure, TicketOutcomeUnknown
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.reconciler import surplus_of
from tillbridge.orders.repository import see
from tillbridge.orders.state import Phase
from tillbridge.orders.ticket_writer import QueuedOrder


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path)
    harness.till.late_write_s = 100.0
    return harness


class HangingWrites:
    """Every write is sent and never answered; `tried` are the instants (monotonic, s)."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.tried: list[float] = []
        harness.till.on_write = self

    async def __call__(self, _order: Order) -> None:
        self.tried.append(self.harness.clock.monotonic())
        raise TicketOutcomeUnknown("The till has not answered for 6 seconds.")

    async def reached(self, life: Life, count: int) -> None:
        await life.until(lambda: len(self.tried) == count)


async def asked_again(life: Life) -> None:
    """Wait until the till has been asked for the ticket a few times more."""
    till = life.harness.till
    before = len(till.asked)
    await life.until(lambda: len(till.asked) > before + 3)


def record(number: int, *, key: str = "ord_1", live: bool = True) -> ListedTicket:
    return ListedTicket(key, "40281-937-0552", f"record {number}", live)


async def test_nothing_is_written_again_while_the_first_write_may_take_effect(
    harness: Harness,
) -> None:
    writes = HangingWrites(harness)
    async with harness.life() as life:
        await life.order("ord_1")
        await asked_again(life)
        assert len(writes.tried) == 1
        harness.till.tickets["ord_1"] = "#late"
        row = await life.until_told("ord_1", "accepted")
    assert row.ticket_reference == "#late"
    assert len(writes.tried) == 1


async def test_after_each_unknown_outcome_the_wait_is_twice_as_long(tmp_path: Path) -> None:
    harness = Harness(tmp_path, accept_within_s=1000)
    harness.till.late_write_s = 100.0
    writes = HangingWrites(harness)
    async with harness.life() as life:
        await life.order("ord_1")
        for count, wait_s in ((1, 100), (2, 200), (3, 400)):
            await writes.reached(life, count)
            await asked_again(life)
            harness.clock.both_s += wait_s - 20
            await asked_again(life)
            assert len(writes.tried) == count
            harness.clock.both_s += 30


async def test_a_restart_does_not_write_while_the_last_write_may_take_effect(
    harness: Harness,
) -> None:
    begun = asyncio.Event()

    async def hang(_order: Order) -> None:
        begun.set()
        await asyncio.sleep(60)

    harness.till.on_write = hang
    async with harness.life() as life:
        await life.order("ord_1")
        await begun.wait()
    harness.till.on_write = None
    async with harness.life() as life:
        await asked_again(life)
        assert harness.till.written == []
        harness.clock.both_s += 101
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]


async def test_a_ticket_that_comes_after_the_deadline_is_taken_back(harness: Harness) -> None:
    harness.till.late_write_s = 1000.0
    HangingWrites(harness)
    async with harness.life() as life:
        await life.order("ord_1")
        await asked_again(life)
        harness.clock.both_s += 130
        await life.until_told("ord_1", "cancelled")
        row = await life.row("ord_1")
        assert row is not None
        assert row.closed_at is None, "the till may still write it"
        harness.till.tickets["ord_1"] = "#late"
        harness.clock.both_s += 1
        row = await life.until_closed("ord_1")
    assert row.ticket is TicketState.WITHDRAWN
    assert harness.till.withdrawn == ["ord_1"]


async def test_a_ticket_that_comes_after_all_waiting_is_found_and_taken_back(
    harness: Harness,
) -> None:
    harness.till.late_write_s = 0.0
    writes = HangingWrites(harness)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: writes.tried)
        harness.clock.both_s += 130
        await life.until_closed("ord_1")
        harness.till.tickets["ord_1"] = "#late"
        harness.clock.both_s += 60
        await life.until(lambda: harness.till.withdrawn == ["ord_1"])
        await life.until(lambda: "order.ticket_taken_back" in life.problems())
        assert "ticket.taken_back" in await life.events("ord_1")
        harness.clock.both_s += 600
        await asyncio.sleep(0.3)
    assert harness.till.withdrawn == ["ord_1"], "once"


async def test_the_younger_of_two_tickets_is_cancelled_and_reported(harness: Harness) -> None:
    harness.till.lists_tickets = True
    harness.till.listed = [record(1)]
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.listed = [record(1), record(2)]
        await life.until(lambda: "order.ticket_taken_back" in life.problems())
        assert [each.live for each in harness.till.listed] == [True, False]
        (problem,) = (each for each in life.tracker.current() if each.code.startswith("order."))
        assert "record 2" in problem.text
        await life.ledger.write(lambda db: see(db, [problem], harness.clock.now_ms(), by="anna"))
        await life.until(lambda: "order.ticket_taken_back" not in life.problems())
        assert (await life.row("ord_1")).ticket is TicketState.WRITTEN  # type: ignore[union-attr] # it is known


async def test_a_second_ticket_that_staff_has_begun_is_left_to_a_person(harness: Harness) -> None:
    harness.till.lists_tickets = True
    harness.till.listed = [record(1), record(2)]
    harness.till.cancel_listed_fails = PosFailure("The kitchen has it.")
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.duplicate" in life.problems())
        (problem,) = (each for each in life.tracker.current() if each.code == "order.duplicate")
        for part in ("record 1", "record 2", "The kitchen has it."):
            assert part in problem.text
        assert "record 2" in problem.fix
        assert "record 1" not in problem.fix
        harness.till.listed = [record(1), record(2, live=False)]
        await life.until(lambda: "order.duplicate" not in life.problems())


async def test_every_ticket_of_a_cancelled_order_is_cancelled(harness: Harness) -> None:
    harness.till.lists_tickets = True
    harness.till.late_write_s = 0.0
    writes = HangingWrites(harness)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: writes.tried)
        harness.clock.both_s += 130
        await life.until_closed("ord_1")
        harness.till.listed = [record(number) for number in (1, 2, 3)]
        await life.until(lambda: not any(each.live for each in harness.till.listed))


async def test_an_order_whose_ticket_was_deleted_meanwhile_is_cancelled(harness: Harness) -> None:
    harness.till.lists_tickets = True
    harness.till.listed = [record(1)]
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
    harness.till.listed, harness.till.tickets = [], {}
    async with harness.life() as life:
        await life.until_told("ord_1", "cancelled")
    assert harness.service.cancels == [("ord_1", "OTHER", "The ticket was deleted in the till.")]


async def test_orders_that_are_all_gone_are_left_to_a_person(harness: Harness) -> None:
    harness.till.lists_tickets = True
    harness.till.listed = [record(number, key=f"ord_{number}") for number in (1, 2)]
    async with harness.life() as life:
        for number in (1, 2):
            await life.order(f"ord_{number}")
            await life.until_told(f"ord_{number}", "accepted")
        harness.till.tickets, kept = {}, harness.till.tickets
        harness.till.listed, listed = [], harness.till.listed
        await life.until(lambda: "pos.tickets_missing" in life.problems())
        assert harness.service.cancels == []
        harness.till.tickets, harness.till.listed = kept, listed
        await life.until(lambda: "pos.tickets_missing" not in life.problems())
        harness.till.tickets.pop("ord_2")
        harness.till.listed = listed[:1]
        await life.until_told("ord_2", "cancelled")
    assert [each[0] for each in harness.service.cancels] == ["ord_2"]


async def test_an_older_ticket_that_is_not_listed_any_more_is_not_deleted(harness: Harness) -> None:
    harness.till.lists_tickets = True
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await asked_again(life)
        row = await life.row("ord_1")
    assert row is not None
    assert row.desired_state is OrderState.ACCEPTED


async def test_a_ticket_that_the_till_does_not_give_back_is_told_in_its_own_words(
    harness: Harness,
) -> None:
    async def refuse(order: Order, key: str, reason: str) -> None:
        assert order.id == key, reason
        raise PosFailure("Staff has settled it.", fix="Give the money back in Odoo.")

    harness.till.cancel_ticket = refuse  # type: ignore[method-assign] # a till that refuses
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        await life.until(lambda: "order.not_withdrawn" in life.problems())
        (problem,) = (e for e in life.tracker.current() if e.code == "order.not_withdrawn")
        assert problem.text.endswith("may still have its ticket: Staff has settled it.")
        assert problem.fix == "Tell the kitchen not to make it. Give the money back in Odoo."


_ROWS = st.builds(
    OrderRow,
    store=st.just("main"),
    order_id=st.just("ord_1"),
    received_at=st.just(0),
    payload=st.just("{}"),
    desired_state=st.sampled_from(OrderState),
    service_state=st.sampled_from(OrderState),
    ticket=st.sampled_from(TicketState),
)
_HOW = st.sampled_from([[], ["never_written"], ["taken_back"], ["left_to_person"]])


@given(row=_ROWS, how=_HOW, count=st.integers(0, 5))
def test_one_live_ticket_stays_of_an_order_and_none_of_a_cancelled_one(
    row: OrderRow, how: list[str], count: int
) -> None:
    entries = [
        LogEntry(
            at=0, event="order.withdrawn", detail={"how": each}, store="main", order_id="ord_1"
        )
        for each in how
    ]
    live = [record(number) for number in range(count)]
    surplus = surplus_of(row, entries, live).tickets
    stays = [each for each in live if each not in surplus]
    if row.desired_state is not OrderState.CANCELLED:
        assert stays == live[:1]
    elif row.ticket in {TicketState.WRITING, TicketState.WRITTEN}:
        assert stays == live, "the writer takes it back"
    else:
        assert stays == (live[:1] if how == ["left_to_person"] else [])


@given(late_s=st.floats(0, 300), gaps=st.lists(st.floats(0, 1000), min_size=1, max_size=8))
def test_the_time_in_which_a_write_may_land_never_shrinks(late_s: float, gaps: list[float]) -> None:
    row = OrderRow(
        store="main",
        order_id="ord_1",
        received_at=0,
        payload="",
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
    )
    entry, now, before = QueuedOrder(row, 1, Phase.WRITE, 0.0), 0.0, 0.0
    for count, gap in enumerate(gaps):
        now += gap
        entry.outcome_unknown(now, late_s)
        assert entry.may_land_until >= max(before, now + late_s * 2**count)
        before = entry.may_land_until
