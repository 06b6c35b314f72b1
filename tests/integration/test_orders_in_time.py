"""Orders the POS does not take in time end with the code that fits; others never do."""

import asyncio
from pathlib import Path

import pytest

from tests.support.order_harness import STORE, Harness
from tillbridge.adapter import Advice, PosOffline, TicketOutcomeUnknown
from tillbridge.ledger import menu
from tillbridge.ledger.menu_codec import AcceptedItem, PushContent
from tillbridge.ledger.models import TicketState
from tillbridge.model.catalogue import Item
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.repository import see


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path, accept_within_s=1)


async def test_an_order_the_till_was_offline_for_is_cancelled_when_its_time_is_up(
    harness: Harness,
) -> None:
    harness.till.online = False
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "cancelled")
        assert row.closed_at is not None
        assert row.ticket is TicketState.REFUSED
        harness.till.online = True
        await life.until(lambda: life.flow.presence.online)
    assert harness.till.written == []
    assert harness.service.cancels[0][1] is ReasonCode.POS_OFFLINE


async def test_a_till_that_has_the_ticket_after_all_keeps_it_although_time_is_up(
    harness: Harness,
) -> None:
    async def no_answer(_order: Order) -> None:
        raise TicketOutcomeUnknown("no answer")

    harness.till.on_written = no_answer
    harness.till.find_fails = TicketOutcomeUnknown("still no answer")
    harness.order_settings["retry_s"] = 60
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.till.find_fails = None
        await life.until_told("ord_1", "accepted")
    assert harness.service.cancels == []
    assert harness.till.written == ["ord_1"]


async def test_a_ticket_of_unknown_outcome_is_taken_back_once_the_till_can_say(
    harness: Harness,
) -> None:
    async def no_answer(_order: Order) -> None:
        harness.till.online = False
        raise TicketOutcomeUnknown("no answer")

    harness.till.on_written = no_answer
    harness.till.find_fails = PosOffline("off")
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "cancelled")
        assert row.closed_at is None, "the till may have it"
        harness.till.find_fails = None
        harness.till.online = True
        await life.until(lambda: harness.till.withdrawn == ["ord_1"])
    assert harness.service.cancels[0][1] is ReasonCode.POS_OFFLINE


async def test_an_order_the_kitchen_confirms_is_accepted_then(harness: Harness) -> None:
    harness.order_settings["accept"] = "when_confirmed"
    harness.order_settings["accept_within_s"] = 60
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        assert harness.service.calls == []
        harness.till.tells("ord_1", "accepted")
        await life.until_told("ord_1", "accepted")


async def test_an_order_the_kitchen_does_not_confirm_is_cancelled_and_taken_back(
    harness: Harness,
) -> None:
    harness.order_settings |= {"accept": "when_confirmed", "unconfirmed_reason": "CAPACITY"}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: harness.till.withdrawn == ["ord_1"])
    assert harness.till.written == ["ord_1"]
    assert harness.service.cancels[0][1] is ReasonCode.CAPACITY


async def test_a_clock_that_jumps_ahead_while_the_bridge_runs_cancels_nothing(
    tmp_path: Path,
) -> None:
    harness = Harness(tmp_path, accept_within_s=60)
    harness.till.online = False
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
        harness.clock.wall_s = 100_000
        await asyncio.sleep(0.2)  # several rounds of everything
        harness.till.online = True
        await life.until_told("ord_1", "accepted")


@pytest.mark.parametrize("jump_s", [100_000, -100_000])
async def test_a_clock_that_jumped_while_the_bridge_was_down_cancels_nothing_at_once(
    tmp_path: Path, jump_s: float
) -> None:
    harness = Harness(tmp_path, accept_within_s=60)
    harness.till.online = False
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
    harness.clock.wall_s = jump_s
    harness.till.online = True
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")


async def test_an_order_the_till_stays_offline_for_is_cancelled_in_the_next_life(
    harness: Harness,
) -> None:
    harness.order_settings["accept_within_s"] = 60
    harness.till.online = False
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
    harness.clock.wall_s = -100_000
    harness.order_settings["accept_within_s"] = 0.3
    async with harness.life() as life:
        await life.until_told("ord_1", "cancelled")


async def accepted_menu(harness: Harness) -> None:
    harness.order_settings["accept_within_s"] = 60
    async with harness.life() as life:
        soup = Item("soup", "Soup", 450)
        content = PushContent(items=(AcceptedItem.of(soup, soup, None),))
        at = harness.clock.now_ms()
        await life.ledger.write(lambda each: menu.acknowledge(each, STORE, content, at=at))


def line(external_id: str, price: int) -> dict:
    thing = {"product_name": "Thing", "external_id": external_id, "unit_price": price}
    return thing | {"quantity": 1}


async def test_odd_items_and_prices_are_written_and_warned_of(harness: Harness) -> None:
    await accepted_menu(harness)
    async with harness.life() as life:
        await life.order("ord_1", items=[line("soup", 450)], currency="USD")
        await life.until_told("ord_1", "accepted")
        assert life.problems() == set()
        await life.order("ord_2", items=[line("lobster", 1), line("soup", 1)])
        await life.until_told("ord_2", "accepted")
        assert life.problems() == {"order.unknown_item", "order.price_differs"}
        assert "order.check_found" in await life.events("ord_2")
    assert harness.till.written == ["ord_1", "ord_2"]


async def test_odd_items_and_prices_are_cancelled_where_the_policy_says_so(
    harness: Harness,
) -> None:
    await accepted_menu(harness)
    harness.order_settings |= {"unknown_item": "cancel", "price_differs": "cancel"}
    async with harness.life() as life:
        await life.order("ord_1", items=[line("lobster", 1)])
        await life.order("ord_2", items=[line("soup", 1)])
        await life.until_told("ord_1", "cancelled")
        row = await life.until_told("ord_2", "cancelled")
        assert row.closed_at is not None
    assert {order: code for order, code, _ in harness.service.cancels} == {
        "ord_1": ReasonCode.ITEM_OUT_OF_STOCK,
        "ord_2": ReasonCode.PRICE_MISMATCH,
    }
    assert harness.till.written == []
    assert harness.effects.resyncs == 1


async def test_another_currency_is_told_once_for_all_orders_until_it_is_mended(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await life.order("ord_1", order_number="1001", currency="EUR")
        await life.until_told("ord_1", "accepted")
        (problem,) = life.tracker.current()
        assert problem.text == (
            "Order 1001 is in EUR, but the store is set up in USD. Its prices cannot be checked."
        )
        assert "change the currency of main on the page Set-up" in problem.fix
        await life.order("ord_2", order_number="1002", currency="EUR")
        await life.until_told("ord_2", "accepted")
        (problem,) = life.tracker.current()
        assert problem.text.startswith("2 orders are in EUR")
        assert "(1001, 1002)" in problem.text
    harness.currency = "EUR"
    async with harness.life() as life:
        await life.until(lambda: life.problems() == set())


@pytest.mark.parametrize("how", ["seen", "a day later"])
async def test_another_currency_that_somebody_has_seen_is_no_problem(
    harness: Harness, how: str
) -> None:
    async with harness.life() as life:
        await life.order("ord_1", currency="EUR")
        await life.until_told("ord_1", "accepted")
        if how == "seen":
            present = life.tracker.current()
            await life.ledger.write(lambda each: see(each, present, 1, by="anna"))
        else:
            harness.clock.both_s = 25 * 3600
            await life.flow.tidy()
        assert life.problems() == set()


async def test_an_order_nobody_heard_of_for_a_day_is_closed(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.tidy()
        row = await life.row("ord_1")
        assert row is not None
        assert row.closed_at is None
        harness.clock.both_s = 25 * 3600
        await life.flow.tidy()
        row = await life.row("ord_1")
        assert row is not None
        assert row.closed_at is not None
        assert row.desired_state is OrderState.ACCEPTED


@pytest.mark.parametrize(
    ("news", "known"), [("ready", "ready"), ("rejected", "cancelled"), ("accepted", "")]
)
async def test_a_till_is_heard_of_an_order_that_a_jumping_clock_has_closed(
    harness: Harness, news: str, known: str
) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "accepted")
        await life.until(lambda: not harness.till.news)
        harness.clock.wall_s = 25 * 3600
        await life.flow.tidy()
        harness.till.tells("ord_1", news)
        if known:
            row = await life.until_told("ord_1", known)
            assert (row.closed_at is None) is (known == "ready")
        else:
            await life.until(lambda: not harness.till.news)
            row = await life.until_closed("ord_1")
            assert row.desired_state is OrderState.ACCEPTED, "that is no news"


async def test_a_till_reopens_no_order_that_was_left_to_a_person(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.done("ord_1", "settled")
        harness.till.tells("ord_1", "ready")
        await life.until(lambda: not harness.till.news)
        row = await life.row("ord_1")
        assert row is not None
        assert row.closed_at is not None
        assert harness.service.calls == [("ord_1", "accept")]


async def test_a_clock_does_not_close_an_order_that_waits_for_the_kitchen(
    harness: Harness,
) -> None:
    harness.order_settings |= {"accept": "when_confirmed", "accept_within_s": 60}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.clock.wall_s = 25 * 3600
        await life.flow.tidy()
        harness.till.tells("ord_1", "accepted")
        await life.until_told("ord_1", "accepted")


async def test_what_the_till_says_of_itself_is_handed_on_once(harness: Harness) -> None:
    harness.till.closed = "Hall has no open session."
    harness.till.advice = (Advice("Tips get lost.", "Switch Tips on."),)
    async with harness.life() as life:
        await life.until(lambda: harness.effects.closed == ["Hall has no open session."])
        (problem,) = life.tracker.current()
        assert (problem.code, problem.fix) == ("pos.setup", "Switch Tips on.")
        assert "Tips get lost." in problem.text
        harness.till.closed, harness.till.advice = "", ()
        await life.until(lambda: harness.effects.closed == ["Hall has no open session.", ""])
        await life.until(lambda: not life.problems())
