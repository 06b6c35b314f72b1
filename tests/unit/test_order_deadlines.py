from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import (
    AtCapacity,
    ItemUnavailable,
    PosFailure,
    PosOffline,
    PriceMismatch,
    StoreClosed,
    TicketOutcomeUnknown,
)
from tillbridge.core.worker import backoff_s
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.reasons import Lapse, Lapsed, cancellation, may_pass
from tillbridge.orders.state import Phase, phase_of
from tillbridge.orders.ticket_writer import (
    GRACE_S,
    remaining_s,
)

WRITTEN = OrderRow(
    store="main",
    order_id="a",
    received_at=0,
    payload="",
    ticket=TicketState.WRITTEN,
    desired_state=OrderState.CREATED,
    service_state=OrderState.CREATED,
)


@given(st.integers(-(10**12), 10**12), st.floats(0.1, 3600))
def test_a_clock_that_jumps_neither_ends_an_order_at_once_nor_keeps_it(
    age_ms: int, within_s: float
) -> None:
    left = remaining_s(age_ms, within_s)
    assert min(GRACE_S, within_s) <= left <= within_s


def test_time_counts_from_when_the_order_was_received() -> None:
    assert remaining_s(30_000, 120) == 90


def test_a_pos_that_said_no_is_not_asked_again() -> None:
    for failure in (ItemUnavailable, StoreClosed, AtCapacity, PriceMismatch, PosFailure):
        assert not may_pass(failure())


def test_a_pos_that_did_not_answer_is_tried_again() -> None:
    for failure in (PosOffline, TicketOutcomeUnknown):
        assert may_pass(failure())


def test_a_written_order_that_need_not_be_confirmed_waits_for_nothing() -> None:
    for desired in OrderState:
        row = WRITTEN.replace(desired_state=desired)
        assert phase_of(row, "when_written") in {None, Phase.WITHDRAW}


def test_an_unwritten_order_lapses_with_the_code_that_fits() -> None:
    assert cancellation(Lapsed(Lapse.NOT_WRITTEN_OFFLINE)).code is ReasonCode.POS_OFFLINE
    assert cancellation(Lapsed(Lapse.NOT_WRITTEN)).code is ReasonCode.OTHER


def test_an_unconfirmed_order_lapses_with_the_settings_code() -> None:
    assert phase_of(WRITTEN, "when_confirmed") is Phase.CONFIRM
    lapsed = Lapsed(Lapse.NOT_CONFIRMED, ReasonCode.CAPACITY)
    assert cancellation(lapsed).code is ReasonCode.CAPACITY
    accepted = WRITTEN.replace(desired_state=OrderState.ACCEPTED)
    assert phase_of(accepted, "when_confirmed") is None


def test_the_wait_between_two_tries_doubles_up_to_its_cap() -> None:
    assert [backoff_s(n, 2, 15) for n in (1, 2, 3, 4, 5, 10_000)] == [2, 4, 8, 15, 15, 15]
