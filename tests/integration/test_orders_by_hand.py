"""A person sees to an order: the bridge stops trying, and its life says who it was."""

import asyncio
from pathlib import Path

import pytest

from tests.support.order_harness import Harness
from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge.core.errors import BridgeError, ServiceDown
from tillbridge.ledger.models import TicketState
from tillbridge.ledger.orders import read_log
from tillbridge.model.order import Order, OrderState, ReasonCode
from tillbridge.orders.events import ByHand


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


async def refuse(order: Order) -> None:
    raise TicketOutcomeUnknown("no paper")


async def gone(order: Order) -> None:
    raise PosOffline("unplugged")


async def test_an_order_typed_into_the_till_is_accepted_and_never_written(harness: Harness) -> None:
    harness.till.on_write = refuse
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.not_written" in life.problems())
        text = await life.flow.done("ord_1", "typed", by="page:anna")
        assert text == "Order 7 counts as entered by hand and is reported as accepted."
        row = await life.until_told("ord_1", "accepted")
        assert (row.ticket, row.ticket_reference) == (TicketState.WRITTEN, "by hand")
        assert row.last_failure, "why the till did not have it stays"
        await life.until(lambda: "order.not_written" not in life.problems())
        harness.till.on_write = None
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        assert harness.till.written == ["ord_2"]
        entries = await life.ledger.read(lambda each: read_log(each, "main", "ord_1"))
        handled = next(each for each in entries if each.event == "order.handled")
        assert handled.detail == {"how": "typed", "by": "page:anna"}


@pytest.mark.parametrize("how", ["typed", "settled"])
async def test_an_order_seen_to_while_the_till_refuses_it_is_told_no_more(
    harness: Harness, how: ByHand
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def refuse_at_last(order: Order) -> None:
        asked.set()
        await go_on.wait()
        raise TicketOutcomeUnknown("no paper")

    harness.till.on_write = refuse
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "order.not_written" in life.problems())
        harness.till.on_write = refuse_at_last
        await asked.wait()
        await life.flow.done("ord_1", how, by="page:anna")
        go_on.set()
        await life.flow.drain()
        assert "order.not_written" not in life.problems()


async def test_an_order_that_is_settled_is_left_alone_even_after_a_restart(
    harness: Harness,
) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "offline" in harness.effects.presence)
        await life.flow.done("ord_1", "settled", by="page:anna")
        assert (await life.until_closed("ord_1")).service_state is OrderState.CREATED
    harness.till.on_write = None
    async with harness.life() as life:
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        assert harness.till.written == ["ord_2"]
        assert harness.service.states["ord_1"] == "created"
        with pytest.raises(BridgeError, match="already closed"):
            await life.flow.done("ord_1", "settled", by="page:anna")


async def test_an_order_that_was_settled_may_be_tried_again(harness: Harness) -> None:
    harness.till.on_write = gone
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: "offline" in harness.effects.presence)
        await life.flow.done("ord_1", "settled", by="page:anna")
        harness.till.on_write = None
        await life.flow.retry("ord_1", by="page:bob")
        row = await life.until_told("ord_1", "accepted")
        assert row.ticket is TicketState.WRITTEN
        assert harness.till.written == ["ord_1"]


async def test_what_the_till_has_cannot_be_typed_again(harness: Harness) -> None:
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        with pytest.raises(BridgeError, match="is not waiting for the till"):
            await life.flow.done("ord_1", "typed", by="page:anna")
        with pytest.raises(BridgeError, match="no order"):
            await life.flow.done("ord_9", "typed", by="page:anna")


async def test_the_life_tells_who_cancelled_and_what_the_service_answered(harness: Harness) -> None:
    async with harness.life() as life:
        harness.service.fails = ServiceDown("down", status=503)
        await life.order("ord_1")

        async def untold() -> bool:
            return "order.untold" in await life.events("ord_1")

        await life.until(untold)
        await life.flow.cancel("ord_1", ReasonCode.CAPACITY, by="page:anna")
        harness.service.fails = None
        life.flow.service_back()
        await life.until_closed("ord_1")
        entries = await life.ledger.read(lambda each: read_log(each, "main", "ord_1"))
        told = {each.event: each.detail for each in entries}
        assert told["order.received"]["event_id"] == "evt_1"
        assert told["order.untold"]["status"] == 503
        assert told["order.to_cancel"]["by"] == "page:anna"
        assert isinstance(told["order.cancelled"]["ms"], int)
        assert [each.event for each in entries].count("order.untold") <= 2, "not every try"
