"""The service is told in order, later where it must be, and the POS's news counts once."""

import asyncio
from pathlib import Path

import pytest

from tests.support.order_house import House
from tillbridge.adapter import BadRow, PosOffline, RejectReason
from tillbridge.errors import ConsentLost, OutcomeUnknown, Refused, ServiceDown
from tillbridge.ledger.orders import TicketState
from tillbridge.model.order import Order, OrderState, ReasonCode


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_a_till_that_jumps_to_ready_is_walked_there(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.till.tells("ord_1", "ready")
        life.flow.updates_changed()
        await life.until_told("ord_1", "ready")
        await life.deliver("order.delivered", {"id": "ord_1"})
        row = await life.until_told("ord_1", "completed")
        assert row.closed_at is not None
    assert [call for _, call in house.service.calls] == ["accept", "preparing", "ready"]
    assert house.service.refused == []


async def test_an_order_the_till_completed_waits_for_the_services_word(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.till.tells("ord_1", "completed")
        row = await life.until_told("ord_1", "ready")
        assert row.closed_at is None
        assert row.wanted is OrderState.COMPLETED


async def test_a_late_preparing_after_ready_is_ignored(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.till.tells("ord_1", "ready")
        house.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "ready")
        await life.until(lambda: not house.till.news)
    assert [call for _, call in house.service.calls] == ["accept", "preparing", "ready"]


async def test_news_is_kept_before_the_till_is_told_that_it_was_handled(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.service.fails = ServiceDown("down", status=503)
        house.till.tells("ord_1", "preparing")
        await life.until(lambda: house.till.handled)
        row = await life.row("ord_1")
        assert row is not None
        assert row.wanted is OrderState.PREPARING
    house.service.fails = None
    async with house.life() as life:
        await life.until_told("ord_1", "preparing")


async def test_news_told_again_changes_nothing(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        for _ in range(3):
            house.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "preparing")
        await life.until(lambda: not house.till.news)
        assert (await life.events("ord_1")).count("ticket.preparing") == 1
    assert [call for _, call in house.service.calls] == ["accept", "preparing"]


async def test_news_of_an_order_nobody_knows_is_told_to_a_person_once(house: House) -> None:
    async with house.life() as life:
        house.till.tells("ord_unknown", "ready")
        await life.until(lambda: house.till.handled)
        assert "pos.update_unknown" in life.problems()
        assert house.till.news == {}
    assert house.service.calls == []


async def test_news_that_cannot_be_read_is_told_to_a_person_while_it_lies_there(
    house: House,
) -> None:
    async with house.life() as life:
        house.till.unreadable = [BadRow("bad/1.json", "not JSON", "see bad/1.json.error")]
        await life.until(lambda: "pos.update_unreadable" in life.problems())
    async with house.life() as life:
        house.till.unreadable = []
        await life.until(lambda: "pos.update_unreadable" not in life.problems())


async def test_a_rejected_ticket_is_cancelled_with_the_tills_reason(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.till.tells(
            "ord_1",
            "rejected",
            reason=RejectReason.ITEM_UNAVAILABLE,
            external_ids=("soup",),
            message="the soup is burnt",
        )
        row = await life.until_told("ord_1", "cancelled")
        assert row.closed_at is not None
    assert house.service.cancels == [("ord_1", ReasonCode.ITEM_OUT_OF_STOCK, "the soup is burnt")]
    assert house.effects.out == ["soup"]
    assert house.till.withdrawn == [], "the till has rejected it itself"


async def test_orders_reach_the_till_while_the_service_is_gone_and_are_told_later(
    house: House,
) -> None:
    house.service.fails = ConsentLost("gone", code="auth.consent_revoked", status=403)
    async with house.life() as life:
        for number in range(5):
            await life.order(f"ord_{number}")
        await life.until(lambda: len(house.till.written) == 5)
        house.clock.both_s = 40
        life.flow.service_back()
        await life.until(lambda: "order.untold" in life.problems())
        house.clock.both_s = 10_000  # written orders are never cancelled for the service's sake
        house.service.fails = None
        life.flow.service_back()
        for number in range(5):
            await life.until_told(f"ord_{number}", "accepted")
        await life.until(lambda: "order.untold" not in life.problems())
    assert house.service.cancels == []


async def test_what_waits_to_be_told_survives_a_restart(house: House) -> None:
    house.service.fails = ServiceDown("down", status=503)
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: house.till.written)
    house.service.fails = None
    async with house.life() as life:
        await life.until_told("ord_1", "accepted")
    assert house.till.written == ["ord_1"]


async def test_an_accept_whose_answer_was_lost_is_not_taken_for_a_refusal(house: House) -> None:
    house.service.loses_answers = [OutcomeUnknown("dropped")]
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: house.service.calls)
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")
        house.till.tells("ord_1", "ready")
        await life.until_told("ord_1", "ready")
        assert life.problems() == set()


async def test_an_order_the_service_has_closed_is_closed_here_and_a_person_is_told(
    house: House,
) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        house.service.states["ord_1"] = "cancelled"
        house.till.tells("ord_1", "ready")
        await life.until_closed("ord_1")
        await life.until(lambda: "order.closed_by_service" in life.problems())
    assert house.service.refused == [("ord_1", "preparing"), ("ord_1", "ready")]


async def test_an_order_the_service_does_not_know_does_not_loop(house: House) -> None:
    async with house.life() as life:
        await life.deliver("order.created", life.data("ord_1"))
        await life.until(lambda: "order.closed_by_service" in life.problems())
    assert house.till.written == ["ord_1"]


async def test_a_call_that_can_never_succeed_is_told_to_a_person_and_not_repeated(
    house: House,
) -> None:
    house.service.fails = Refused("bad body", code="request.validation", status=400)
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "service.refused" in life.problems())
        house.service.fails = None
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until(lambda: "service.refused" not in life.problems())
    assert house.service.calls == [("ord_2", "accept")]


async def test_a_store_that_is_integrated_again_hears_what_waited(house: House) -> None:
    house.service.fails = Refused("no", code="store.not_integrated", status=404)
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: house.till.written)
        house.service.fails = None
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")


async def test_an_order_accepted_by_the_service_itself_is_not_accepted_again(
    house: House,
) -> None:
    house.auto_accept = True
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: house.till.written)
        house.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "preparing")
    assert house.service.calls == [("ord_1", "preparing")]


async def test_a_person_cancels_an_order_and_its_ticket_is_taken_back(house: House) -> None:
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert await life.flow.cancel("ord_1", ReasonCode.CAPACITY)
        row = await life.until_closed("ord_1")
        assert row.told is OrderState.CANCELLED
        assert row.ticket is TicketState.WITHDRAWN
    assert house.till.withdrawn == ["ord_1"]
    assert house.service.cancels[0][1] is ReasonCode.CAPACITY


async def test_a_till_that_cannot_take_a_ticket_back_has_a_person_told(house: House) -> None:
    house.till.cancels_tickets = False
    async with house.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: "order.not_withdrawn" in life.problems())


async def test_an_order_cancelled_while_it_is_being_written_is_taken_back(house: House) -> None:
    async def slow(_order: Order) -> None:
        begun.set()
        await go_on.wait()

    begun, go_on = asyncio.Event(), asyncio.Event()
    house.till.on_write = slow
    async with house.life() as life:
        await life.order("ord_1")
        await begun.wait()
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        go_on.set()
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: house.till.withdrawn == ["ord_1"])
    assert [call for _, call in house.service.calls] == ["cancel"]


async def test_an_order_given_up_while_the_service_is_gone_can_be_tried_again(
    house: House,
) -> None:
    async def offline(_order: Order) -> None:
        raise PosOffline("off")

    house.till.on_write = offline
    house.service.fails = ServiceDown("down", status=503)
    async with house.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
        house.clock.both_s = 200

        async def given_up() -> bool:
            row = await life.row("ord_1")
            return row is not None and row.wanted is OrderState.CANCELLED

        async def tried_to_cancel() -> bool:
            return "order.untold" in await life.events("ord_1")

        life.flow.updates_changed()
        await life.until(given_up)
        # A cancel that is on its way already could not be called back.
        await life.until(tried_to_cancel)
        house.till.on_write = None
        await life.flow.retry("ord_1")
        house.service.fails = None
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")
    assert house.till.written == ["ord_1"]
    assert house.service.cancels == []
