import math

import pytest

from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.model.order import OrderState
from tillbridge.orders.state import Phase, phase_of
from tillbridge.orders.ticket_writer import WriteQueue


def row(order_id: str) -> OrderRow:
    return OrderRow(
        store="main",
        order_id=order_id,
        received_at=0,
        payload="",
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
    )


def filled(*ids: str, deadline: float = 100) -> WriteQueue:
    waiting = WriteQueue()
    for each in ids:
        waiting.add(row(each), Phase.WRITE, deadline)
    return waiting


def next_id(waiting: WriteQueue, now: float = 0, *, pos_there: bool = True) -> str | None:
    entry, _due = waiting.next(now, pos_there=pos_there)
    return None if entry is None else entry.row.order_id


def test_the_order_received_first_is_next() -> None:
    assert next_id(filled("a", "b")) == "a"


def test_an_order_in_trouble_lets_those_behind_it_pass() -> None:
    waiting = filled("a", "b")
    entry = waiting.get("a")
    assert entry is not None
    entry.next_try = 10
    assert next_id(waiting) == "b"
    assert next_id(waiting, now=10) == "a"


def test_nothing_is_tried_while_the_pos_is_offline_but_deadlines_hold() -> None:
    waiting = filled("a")
    assert next_id(waiting, now=99, pos_there=False) is None
    assert waiting.next(99, pos_there=False)[1] == 100
    assert next_id(waiting, now=100, pos_there=False) == "a"


def test_while_the_pos_is_offline_the_least_tried_order_is_next() -> None:
    waiting = filled("a", "b")
    entry = waiting.get("a")
    assert entry is not None
    entry.failures, entry.offline, entry.next_try = 1, True, 2
    waiting.hold_all(2)
    assert next_id(waiting, now=1) is None
    assert next_id(waiting, now=2) == "b"
    waiting.try_again()
    assert next_id(waiting, now=1) == "b"
    waiting.pos_answered()
    assert next_id(waiting, now=1) == "a"


def test_an_order_that_waits_to_be_confirmed_needs_no_pos() -> None:
    waiting = WriteQueue()
    waiting.add(row("a"), Phase.CONFIRM, 5)
    assert not waiting.any_for_pos()
    assert next_id(waiting, now=4) is None
    assert next_id(waiting, now=5, pos_there=False) == "a"


def test_nobody_waits_for_ever_for_nothing() -> None:
    assert WriteQueue().next(0, pos_there=True) == (None, math.inf)


@pytest.mark.parametrize(
    ("ticket", "wanted", "accept", "phase"),
    [
        ("waiting", "created", "when_written", Phase.WRITE),
        ("writing", "created", "when_confirmed", Phase.WRITE),
        ("written", "created", "when_confirmed", Phase.CONFIRM),
        ("written", "accepted", "when_confirmed", None),
        ("written", "accepted", "when_written", None),
        ("waiting", "cancelled", "when_written", None),
        ("writing", "cancelled", "when_written", Phase.WITHDRAW),
        ("written", "cancelled", "when_written", Phase.WITHDRAW),
        ("refused", "cancelled", "when_written", None),
        ("withdrawn", "cancelled", "when_written", None),
    ],
)
def test_what_an_order_waits_for_follows_from_its_row(
    ticket: str, wanted: str, accept: str, phase: Phase | None
) -> None:
    row = OrderRow(
        store="main",
        order_id="a",
        received_at=0,
        payload="{}",
        desired_state=OrderState(wanted),
        service_state=OrderState.CREATED,
    )
    row = row.replace(ticket=TicketState(ticket))
    assert phase_of(row, accept) is phase  # type: ignore[arg-type] # parametrised text
    assert phase_of(row.replace(closed_at=1), accept) is None  # type: ignore[arg-type] # as above
