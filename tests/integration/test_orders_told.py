"""The service is told in order, later where it must be, and the POS's news counts once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.order_harness import Harness, Life
from tillbridge.adapter import BadRow, PosOffline, RejectReason, TicketOutcomeUnknown
from tillbridge.core.errors import ConsentLost, OutcomeUnknown, Refused, ServiceDown
from tillbridge.ledger.models import TicketState
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.repository import see


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


async def test_a_till_that_jumps_to_ready_is_walked_there(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "ready")
        life.flow.updates_changed()
        await life.until_told("ord_1", "ready")
        await life.deliver("order.delivered", {"id": "ord_1"})
        row = await life.until_told("ord_1", "completed")
        assert row.closed_at is not None
    assert [call for _, call in harness.service.calls] == ["accept", "preparing", "ready"]
    assert harness.service.refused == []


async def test_an_order_the_till_completed_waits_for_the_services_word(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "completed")
        row = await life.until_told("ord_1", "ready")
        assert row.closed_at is None
        assert row.desired_state is OrderState.COMPLETED


async def test_a_late_preparing_after_ready_is_ignored(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "ready")
        harness.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "ready")
        await life.until(lambda: not harness.till.news)
    assert [call for _, call in harness.service.calls] == ["accept", "preparing", "ready"]


async def test_a_step_that_goes_on_late_after_its_commit_takes_no_order_back(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def held_up(order_id: str) -> None:
        await tell(order_id)
        monkeypatch.setattr(life.ledger, "write", answers_late)

    async def answers_late(job: Callable[..., object], *args: object, **more: object) -> object:
        monkeypatch.setattr(life.ledger, "write", write)
        change = await write(job, *args, **more)
        await late.wait()
        return change

    late, tell = asyncio.Event(), harness.service.set_preparing
    monkeypatch.setattr(harness.service, "set_preparing", held_up)
    async with harness.life() as life:
        write: Callable[..., Awaitable[object]] = life.ledger.write
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "preparing")  # committed, and whoever committed it waits
        harness.till.tells("ord_1", "ready")
        await life.until(lambda: len(harness.till.handled) == 2)
        late.set()
        await life.until_told("ord_1", "ready")


async def test_news_is_kept_before_the_till_is_told_that_it_was_handled(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.service.fails = ServiceDown("down", status=503)
        harness.till.tells("ord_1", "preparing")
        await life.until(lambda: harness.till.handled)
        row = await life.row("ord_1")
        assert row is not None
        assert row.desired_state is OrderState.PREPARING
    harness.service.fails = None
    async with harness.life() as life:
        await life.until_told("ord_1", "preparing")


async def test_news_told_again_changes_nothing(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        for _ in range(3):
            harness.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "preparing")
        await life.until(lambda: not harness.till.news)
        assert (await life.events("ord_1")).count("ticket.preparing") == 1
    assert [call for _, call in harness.service.calls] == ["accept", "preparing"]


async def test_news_of_an_order_nobody_knows_is_told_to_a_person_once(harness: Harness) -> None:
    async with harness.life() as life:
        harness.till.tells("ord_unknown", "ready")
        await life.until(lambda: harness.till.handled)
        assert "pos.update_unknown" in life.problems()
        assert harness.till.news == {}
        assert harness.service.calls == []
        await life.order("ord_unknown")
        await life.until(lambda: "pos.update_unknown" not in life.problems())


async def test_news_that_cannot_be_read_is_told_to_a_person_while_it_lies_there(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        harness.till.unreadable = [BadRow("bad/1.json", "not JSON", "see bad/1.json.error")]
        await life.until(lambda: "pos.update_unreadable" in life.problems())
    async with harness.life() as life:
        harness.till.unreadable = []
        await life.until(lambda: "pos.update_unreadable" not in life.problems())


async def test_a_rejected_ticket_is_cancelled_with_the_tills_reason(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.till.tells(
            "ord_1",
            "rejected",
            reason=RejectReason.ITEM_UNAVAILABLE,
            external_ids=("soup",),
            message="the soup is burnt",
        )
        row = await life.until_told("ord_1", "cancelled")
        assert row.closed_at is not None
    assert harness.service.cancels == [("ord_1", ReasonCode.ITEM_OUT_OF_STOCK, "the soup is burnt")]
    assert harness.effects.out == ["soup"]
    assert harness.till.withdrawn == [], "the till has rejected it itself"


async def test_orders_reach_the_till_while_the_service_is_gone_and_are_told_later(
    harness: Harness,
) -> None:
    harness.service.fails = ConsentLost("gone", code="auth.consent_revoked", status=403)
    async with harness.life() as life:
        for number in range(5):
            await life.order(f"ord_{number}")
        await life.until(lambda: len(harness.till.written) == 5)
        harness.clock.both_s = 40
        life.flow.service_back()
        await life.until(lambda: "order.untold" in life.problems())
        harness.clock.both_s = 10_000  # written orders are never cancelled for the service's sake
        harness.service.fails = None
        life.flow.service_back()
        for number in range(5):
            await life.until_told(f"ord_{number}", "accepted")
        await life.until(lambda: "order.untold" not in life.problems())
    assert harness.service.cancels == []


async def test_what_waits_to_be_told_survives_a_restart(harness: Harness) -> None:
    harness.service.fails = ServiceDown("down", status=503)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
    harness.service.fails = None
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]


async def test_an_accept_whose_answer_was_lost_is_not_taken_for_a_refusal(harness: Harness) -> None:
    harness.service.loses_answers = [OutcomeUnknown("dropped")]
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.service.calls)
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")
        harness.till.tells("ord_1", "ready")
        await life.until_told("ord_1", "ready")
        assert life.problems() == set()


async def test_an_order_the_service_has_closed_is_closed_here_and_a_person_is_told(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.service.states["ord_1"] = "cancelled"
        harness.till.tells("ord_1", "ready")
        await life.until_closed("ord_1")
        await life.until(lambda: "order.closed_by_service" in life.problems())
    assert harness.service.refused == [("ord_1", "preparing"), ("ord_1", "ready")]


async def test_an_order_the_service_does_not_know_does_not_loop(harness: Harness) -> None:
    async with harness.life() as life:
        await life.deliver("order.created", life.data("ord_1"))
        await life.until(lambda: "order.closed_by_service" in life.problems())
    assert harness.till.written == ["ord_1"]


REFUSALS = [
    Refused("not you", code="some.thing", status=403),
    Refused("bad body", code="request.validation", status=400),
    Refused("no such thing", code="x.y", status=422),
    Refused("no store with this id", code="store.not_found", status=404),
]


async def refused_accept(harness: Harness, life: Life, failure: Refused) -> None:
    """Bring an order into the till whose accept the service refused for good."""
    harness.service.fails = failure
    await life.order("ord_1")
    await life.until(lambda: "service.refused" in life.problems())
    harness.service.fails = None


@pytest.mark.parametrize("failure", REFUSALS, ids=lambda each: each.code)
async def test_a_call_that_is_refused_is_not_repeated_and_stays_a_problem_of_that_order(
    harness: Harness, failure: Refused
) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, failure)
        await life.order("ord_2", order_number="8")
        await life.until_told("ord_2", "accepted")
        (problem,) = life.tracker.current()
        assert problem.text == (
            f"The ordering service refused an update for order 7 (accept): {failure.text} "
            f"({failure.status} {failure.code})"
        )
    async with harness.life() as life:
        await life.order("ord_3", order_number="9")
        await life.until_told("ord_3", "accepted")
        assert life.problems() == {"service.refused"}, "also after a restart"
    assert harness.service.calls == [("ord_2", "accept"), ("ord_3", "accept")]


async def test_a_till_that_rejects_what_the_service_would_not_accept_has_it_cancelled(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, REFUSALS[0])
        harness.till.tells("ord_1", "rejected", reason=RejectReason.CAPACITY, message="full")
        await life.until_closed("ord_1")
        assert harness.service.cancels == [("ord_1", ReasonCode.CAPACITY, "full")]
        assert life.problems() == {"order.cancelled"}


async def test_a_till_that_goes_on_with_what_the_service_would_not_accept_is_told_of(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, REFUSALS[0])
        harness.service.states["ord_1"] = "accepted"  # somebody did it on the dashboard
        harness.till.tells("ord_1", "ready")
        await life.until_told("ord_1", "ready")
        assert [call for _, call in harness.service.calls] == ["preparing", "ready"]
        assert life.problems() == set()


async def test_a_conflict_after_a_refused_call_ends_that_call_and_closes_nothing(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, REFUSALS[0])
        harness.till.tells("ord_1", "ready")
        await life.until(lambda: len(harness.service.refused) == 2)
        row = await life.row("ord_1")
        assert row is not None
        assert row.closed_at is None
        assert await life.flow.cancel("ord_1", ReasonCode.OTHER, by="anna")
        await life.until_closed("ord_1")
        assert life.problems() == set()
    assert [call for _, call in harness.service.calls] == ["preparing", "ready", "cancel"]


async def test_a_person_has_a_refused_call_tried_again(harness: Harness) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, REFUSALS[0])
        text = await life.flow.retry("ord_1", by="anna")
        assert text == "Order 7 is being reported to the ordering service."
        await life.until_told("ord_1", "accepted")
        assert life.problems() == set()
    assert harness.till.written == ["ord_1"], "it is not written again"


async def test_a_refused_cancel_is_tried_again_and_undoes_nothing(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.service.fails = REFUSALS[0]
        await life.flow.cancel("ord_1", ReasonCode.CAPACITY, by="anna")
        await life.until(lambda: "service.refused" in life.problems())
        harness.service.fails = None
        assert "asked again" in await life.flow.retry("ord_1", by="anna")
        await life.until_closed("ord_1")
    assert [code for _, code, _ in harness.service.cancels] == [ReasonCode.CAPACITY]
    assert harness.till.withdrawn == ["ord_1"]


async def test_an_order_that_a_person_has_seen_to_is_no_problem_any_more(harness: Harness) -> None:
    async with harness.life() as life:
        await refused_accept(harness, life, REFUSALS[0])
        await life.flow.done("ord_1", "settled", by="anna")
        assert life.problems() == set()


@pytest.mark.parametrize("way", ["found", "delivered", "cancelled"])
async def test_an_order_that_goes_on_is_no_problem_any_more(harness: Harness, way: str) -> None:
    async def no_answer(_order: Order) -> None:
        raise TicketOutcomeUnknown("no answer")

    harness.till.on_write = no_answer
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.not_written" in life.problems())
        if way == "found":
            harness.till.tickets["ord_1"] = "#9"
        elif way == "delivered":
            await life.deliver("order.delivered", {"id": "ord_1"})
        else:
            await life.flow.cancel("ord_1", ReasonCode.OTHER, by="anna")
        await life.until(lambda: "order.not_written" not in life.problems())


async def test_orders_that_the_bridge_gave_up_are_a_problem_until_somebody_has_seen_them(
    harness: Harness,
) -> None:
    async def gone(_order: Order) -> None:
        raise PosOffline("unplugged")

    harness.till.on_write = gone
    harness.order_settings["accept_within_s"] = 10
    async with harness.life() as life:
        for number in (1003, 1004):
            await life.order(
                f"ord_{number}", order_number=str(number), total_amount=1840, currency="USD"
            )
        await life.until(lambda: "offline" in harness.effects.presence)
        harness.clock.both_s = 60
        life.flow.updates_changed()
        await life.until_closed("ord_1003")
        await life.until_closed("ord_1004")
        harness.till.on_write = None
    async with harness.life() as life:
        await life.until(lambda: "pos.offline" not in life.problems())
        (problem,) = life.tracker.current()
        assert problem.text.endswith("because the till could not be reached (1003, 1004; $36.80).")
        await life.ledger.write(lambda each: see(each, [problem], 1, by="anna"))
        assert life.problems() == set()


async def test_a_store_that_is_integrated_again_hears_what_waited(harness: Harness) -> None:
    harness.service.fails = Refused("no", code="store.not_integrated", status=404)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.service.fails = None
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")


async def waits_for_the_integration(harness: Harness, life: Life) -> None:
    """Let an order be written while the store is not integrated, for three hours."""
    harness.service.fails = Refused("no", code="store.not_integrated", status=404)
    await life.order("ord_1")
    await life.until(lambda: harness.till.written)

    async def asked() -> bool:
        return "order.untold" in await life.events("ord_1")

    await life.until(asked)
    harness.clock.both_s = 10_800


@pytest.mark.parametrize("restart", [False, True], ids=["same life", "after a restart"])
async def test_an_accept_that_waited_for_hours_for_an_integration_is_a_persons_business(
    harness: Harness, restart: bool
) -> None:
    async with harness.life() as life:
        await waits_for_the_integration(harness, life)
        if not restart:
            harness.service.fails = None
            life.flow.service_back()
            await life.until(lambda: "service.refused" in life.problems())
    harness.service.fails = None
    async with harness.life() as life:
        await life.until(lambda: "service.refused" in life.problems())
        (problem,) = life.tracker.current()
        assert "refused an update for order 7 (accept): it waited 180 minutes" in problem.text
        assert harness.service.calls == []
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        assert "order.too_late" in await life.events("ord_1")
        await life.flow.retry("ord_1", by="anna")
        await life.until_told("ord_1", "accepted")
        assert life.problems() == set()
    assert harness.service.calls == [("ord_2", "accept"), ("ord_1", "accept")]


async def test_a_cancel_is_sent_however_long_it_waited_for_an_integration(harness: Harness) -> None:
    async with harness.life() as life:
        await waits_for_the_integration(harness, life)
        await life.flow.cancel("ord_1", ReasonCode.CAPACITY, by="anna")
        harness.clock.both_s = 21_600
        harness.service.fails = None
        life.flow.service_back()
        await life.until_closed("ord_1")
    assert [code for _, code, _ in harness.service.cancels] == [ReasonCode.CAPACITY]


async def test_what_waited_hours_for_the_service_itself_is_still_told(harness: Harness) -> None:
    harness.service.fails = ServiceDown("down", status=503)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.clock.both_s = 10_800
        harness.service.fails = None
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")


async def test_an_order_accepted_by_the_service_itself_is_not_accepted_again(
    harness: Harness,
) -> None:
    harness.auto_accept = True
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: harness.till.written)
        harness.till.tells("ord_1", "preparing")
        await life.until_told("ord_1", "preparing")
    assert harness.service.calls == [("ord_1", "preparing")]


async def test_a_person_cancels_an_order_and_its_ticket_is_taken_back(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert await life.flow.cancel("ord_1", ReasonCode.CAPACITY)
        row = await life.until_closed("ord_1")
        assert row.service_state is OrderState.CANCELLED
        assert row.ticket is TicketState.WITHDRAWN
    assert harness.till.withdrawn == ["ord_1"]
    assert harness.service.cancels[0][1] is ReasonCode.CAPACITY


async def test_a_till_that_cannot_take_a_ticket_back_has_a_person_told(harness: Harness) -> None:
    harness.till.cancels_tickets = False
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: "order.not_withdrawn" in life.problems())


async def test_an_order_cancelled_while_it_is_being_written_is_taken_back(harness: Harness) -> None:
    async def slow(_order: Order) -> None:
        begun.set()
        await go_on.wait()

    begun, go_on = asyncio.Event(), asyncio.Event()
    harness.till.on_write = slow
    async with harness.life() as life:
        await life.order("ord_1")
        await begun.wait()
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        go_on.set()
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: harness.till.withdrawn == ["ord_1"])
    assert [call for _, call in harness.service.calls] == ["cancel"]


async def test_an_order_given_up_while_the_service_is_gone_can_be_tried_again(
    harness: Harness,
) -> None:
    async def offline(_order: Order) -> None:
        raise PosOffline("off")

    harness.till.on_write = offline
    harness.service.fails = ServiceDown("down", status=503)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
        harness.clock.both_s = 200

        async def given_up() -> bool:
            row = await life.row("ord_1")
            return row is not None and row.desired_state is OrderState.CANCELLED

        async def tried_to_cancel() -> bool:
            return "order.untold" in await life.events("ord_1")

        life.flow.updates_changed()
        await life.until(given_up)
        # A cancel that is on its way already could not be called back.
        await life.until(tried_to_cancel)
        harness.till.on_write = None
        await life.flow.retry("ord_1")
        harness.service.fails = None
        life.flow.service_back()
        await life.until_told("ord_1", "accepted")
    assert harness.till.written == ["ord_1"]
    assert harness.service.cancels == []


async def test_the_ticket_of_an_order_that_a_guest_cancelled_is_withdrawn_once_staff_cancel_it(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        harness.service.states["ord_1"] = "cancelled"  # nobody tells the bridge
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        await life.until_closed("ord_1")
        await life.until(lambda: harness.till.withdrawn == ["ord_1"])
        assert life.problems() == {"order.closed_by_service"}
