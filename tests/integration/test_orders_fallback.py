"""A printer stands in for a till that cannot take an order: NOT IN TILL, once, until handled."""

from pathlib import Path

import pytest

from tests.support.order_harness import Harness, Till
from tests.support.problem_reports import report_open, report_over
from tillbridge.adapter import (
    ItemUnavailable,
    PosFailure,
    PosOffline,
    TicketMark,
    TicketOutcomeUnknown,
)
from tillbridge.core.errors import BridgeError
from tillbridge.ledger.models import TicketState
from tillbridge.model.order import Order, ReasonCode

NOT_IN_TILL = frozenset({TicketMark.NOT_IN_TILL})
LOOK_FIRST = NOT_IN_TILL | {TicketMark.TILL_MAY_HAVE_IT}


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path)
    harness.paper = Till()
    harness.paper.marks_tickets = True
    harness.paper_after_s = 0.3
    return harness


@pytest.fixture
def paper(harness: Harness) -> Till:
    assert harness.paper is not None
    return harness.paper


async def gone(_order: Order) -> None:
    raise PosOffline("the till is off")


async def refuses(_order: Order) -> None:
    raise PosFailure("unknown payment method")


async def sold_out(_order: Order) -> None:
    raise ItemUnavailable("no more soup", external_ids=["s1"])


async def unheard(_order: Order) -> None:
    raise TicketOutcomeUnknown("no answer")


async def no_paper(_order: Order) -> None:
    raise PosOffline("The printer is out of paper: put in a new roll.")


async def test_an_order_the_till_takes_never_sees_the_printer(
    harness: Harness, paper: Till
) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert paper.written == []
        assert paper.asked == []


async def test_what_a_till_that_is_off_cannot_take_is_printed_and_accepted(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        row = await life.until_told("ord_1", "accepted")
        assert paper.marked == [("ord_1", NOT_IN_TILL)]
        assert row.ticket_reference == "not in till"
        await life.until(lambda: "order.not_in_till" in life.problems())
        assert "order.on_paper" in await life.events("ord_1")
        harness.till.on_write = None  # the till is back: it is not written there by itself
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        assert harness.till.written == ["ord_2"]
        assert paper.written == ["ord_1"], "once"


async def test_a_refusal_in_the_tills_words_goes_to_paper_at_once(
    harness: Harness, paper: Till
) -> None:
    harness.paper_after_s = 100
    harness.till.on_write = refuses
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert paper.marked == [("ord_1", NOT_IN_TILL)]
        await life.until(lambda: "order.not_in_till" in life.problems())
        (problem,) = [each for each in life.tracker.current() if each.code == "order.not_in_till"]
        assert "unknown payment method" in problem.text


async def test_an_answer_of_the_kitchen_is_not_overruled_by_paper(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = sold_out
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_closed("ord_1")
        assert harness.service.cancels[0][1] is ReasonCode.ITEM_OUT_OF_STOCK
        assert paper.written == []


async def test_where_the_till_may_have_it_the_paper_says_so(harness: Harness, paper: Till) -> None:
    harness.till.on_written = unheard
    harness.till.find_fails = PosOffline("off")
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert paper.marked == [("ord_1", LOOK_FIRST)]


async def test_a_till_that_has_it_after_all_saves_the_paper(harness: Harness, paper: Till) -> None:
    harness.till.on_written = unheard
    harness.order_settings |= {"retry_s": 30.0, "retry_cap_s": 30.0}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert paper.written == []
        assert harness.till.written == ["ord_1"]


async def test_the_problem_stays_until_somebody_has_typed_it(harness: Harness, paper: Till) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.deliver("order.delivered", {"id": "ord_1"})
        await life.until_closed("ord_1")
        assert "order.not_in_till" in life.problems(), "the books of the till still lack it"
    async with harness.life() as life:
        assert "order.not_in_till" in life.problems(), "a restart makes nobody type it"
        await life.flow.done("ord_1", "typed", by="page:anna")
        assert "order.not_in_till" not in life.problems()
        row = await life.row("ord_1")
        assert row is not None
        assert row.ticket_reference == "by hand"
        with pytest.raises(BridgeError, match="already closed"):
            await life.flow.done("ord_1", "typed", by="page:anna")


async def test_where_a_person_confirms_paper_alone_accepts_nothing(
    harness: Harness, paper: Till
) -> None:
    harness.order_settings["accept"] = "when_confirmed"
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.not_in_till" in life.problems())
        row = await life.row("ord_1")
        assert row is not None
        assert row.desired_state == "created"
        await life.flow.done("ord_1", "typed", by="page:anna")
        await life.until_told("ord_1", "accepted")


async def test_a_printer_without_paper_is_tried_again_and_the_till_too(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = gone
    paper.on_write = no_paper
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: len(paper.marked) >= 2)
        harness.till.on_write = None
        await life.until_told("ord_1", "accepted")
        assert harness.till.written == ["ord_1"]
        assert paper.written == []


async def test_with_neither_till_nor_paper_the_order_is_cancelled_in_time(
    harness: Harness, paper: Till
) -> None:
    harness.order_settings["accept_within_s"] = 1.0
    harness.till.on_write = gone
    paper.on_write = no_paper
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_closed("ord_1")
        assert harness.service.cancels[0][1] is ReasonCode.POS_OFFLINE
        assert "order.not_in_till" not in life.problems()


async def test_a_crash_after_the_print_prints_nothing_twice(harness: Harness, paper: Till) -> None:
    harness.till.on_write = gone

    async def power_cut(_order: Order) -> None:
        raise TicketOutcomeUnknown("the power went")

    paper.on_written = power_cut
    paper.find_fails = None
    harness.order_settings |= {"retry_s": 30.0, "retry_cap_s": 30.0}
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: paper.written)
    async with harness.life() as life:
        await life.until_told("ord_1", "accepted")
        assert paper.written == ["ord_1"]
        await life.until(lambda: "order.not_in_till" in life.problems())


async def test_a_crash_before_anybody_was_told_is_made_good(harness: Harness, paper: Till) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        # As if it had never been opened.
        report_over(life.tracker, "order.not_in_till", "main", "ord_1")
    async with harness.life() as life:
        await life.until(lambda: "order.not_in_till" in life.problems())
        (problem,) = [each for each in life.tracker.current() if each.code == "order.not_in_till"]
        assert "the till is off" in problem.text


async def test_a_crash_after_somebody_has_typed_it_leaves_no_problem(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.done("ord_1", "typed", by="page:anna")
        # as if its end had not reached the disk
        report_open(life.tracker, "order.not_in_till", "main", "ord_1", order="ord_1", why="?")
    async with harness.life() as life:
        await life.until(lambda: "order.not_in_till" not in life.problems())


async def test_paper_of_which_nobody_knows_is_printed_again_with_both_marks(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = gone

    async def breaks_off(_order: Order) -> None:
        paper.find_fails, paper.on_written = TicketOutcomeUnknown("nobody knows"), None
        harness.till.on_write = None  # back, but the kitchen may be cooking from the paper
        raise TicketOutcomeUnknown("The connection broke off in the middle of a ticket.")

    paper.on_written = breaks_off
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        marks = paper.marked[-1][1]
        assert marks == NOT_IN_TILL | {TicketMark.POSSIBLE_DUPLICATE}
        assert harness.till.written == []


async def test_a_cancelled_order_on_paper_is_told_on_paper(harness: Harness, paper: Till) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        await life.flow.cancel("ord_1", ReasonCode.OTHER, by="page:anna")
        row = await life.until_closed("ord_1")
        assert paper.withdrawn == ["ord_1"]
        assert harness.till.withdrawn == [], "the till never had it"
        assert row.ticket is TicketState.WITHDRAWN
        await life.until(lambda: "order.not_in_till" not in life.problems())


async def test_a_till_that_was_not_asked_for_a_cancelled_order_is_not_back(
    harness: Harness, paper: Till
) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        paper.on_write = no_paper
        await life.order("ord_2")  # it waits, so that the till is not there for want of work

        async def waits() -> bool:
            row = await life.row("ord_2")
            return row is not None and row.attempts > 1 and not life.flow.presence.online

        await life.until(waits)
        turned = list(harness.effects.presence)
        await life.flow.cancel("ord_1", ReasonCode.OTHER, by="page:anna")
        await life.until_closed("ord_1")
        assert harness.effects.presence == turned


async def test_an_old_order_is_not_printed_without_a_person(harness: Harness, paper: Till) -> None:
    paper.hold_older_than_s = 1800.0
    harness.order_settings["accept_within_s"] = 86_400
    harness.till.on_write = gone
    async with harness.life() as life:
        harness.clock.wall_s = -3600
        data = life.data("ord_1")
        harness.clock.wall_s = 0
        harness.service.states["ord_1"] = "created"
        await life.deliver("order.created", data)
        await life.until(lambda: "order.held" in life.problems())
        assert paper.written == []
        await life.flow.retry("ord_1", by="page:anna")
        await life.until_told("ord_1", "accepted")
        assert paper.written == ["ord_1"]


async def test_a_printer_that_could_not_stand_in_is_told_beforehand(
    harness: Harness, paper: Till
) -> None:
    paper.online = False
    async with harness.life() as life:
        await life.until(lambda: "fallback.offline" in life.problems())
        assert "pos.offline" not in life.problems()
    paper.online = True
    async with harness.life() as life:
        await life.until(lambda: "fallback.offline" not in life.problems())


async def test_a_printer_that_is_no_longer_configured_is_no_problem(
    harness: Harness, paper: Till
) -> None:
    paper.online = False
    async with harness.life() as life:
        await life.until(lambda: "fallback.offline" in life.problems())
    harness.paper = None
    async with harness.life() as life:
        await life.until(lambda: "fallback.offline" not in life.problems())
