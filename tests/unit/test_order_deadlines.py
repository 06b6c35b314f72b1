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
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.reasons import AfterFailure, Lapse, after_failure, cancellation
from tillbridge.orders.write_queue import (
    GRACE_S,
    Patience,
    backoff_s,
    lapsed,
    remaining_s,
)

WHEN_WRITTEN = Patience("when_written", 120, ReasonCode.OTHER)
WHEN_CONFIRMED = Patience("when_confirmed", 120, ReasonCode.CAPACITY)


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
        assert after_failure(failure()) is AfterFailure.CANCEL


def test_a_pos_that_did_not_answer_is_tried_again() -> None:
    for failure in (PosOffline, TicketOutcomeUnknown):
        assert after_failure(failure()) is AfterFailure.RETRY


def test_a_written_order_that_need_not_be_confirmed_never_lapses() -> None:
    for wanted in OrderState:
        for offline in (True, False):
            assert lapsed(WHEN_WRITTEN, written=True, wanted=wanted, offline=offline) is None


def test_an_unwritten_order_lapses_with_the_code_that_fits() -> None:
    gone = lapsed(WHEN_WRITTEN, written=False, wanted=OrderState.CREATED, offline=True)
    slow = lapsed(WHEN_WRITTEN, written=False, wanted=OrderState.CREATED, offline=False)
    assert gone is not None
    assert slow is not None
    assert cancellation(gone).code is ReasonCode.POS_OFFLINE
    assert slow.lapse is Lapse.NOT_WRITTEN


def test_an_unconfirmed_order_lapses_with_the_settings_code() -> None:
    end = lapsed(WHEN_CONFIRMED, written=True, wanted=OrderState.CREATED, offline=False)
    assert end is not None
    assert cancellation(end).code is ReasonCode.CAPACITY
    assert lapsed(WHEN_CONFIRMED, written=True, wanted=OrderState.ACCEPTED, offline=False) is None


def test_the_wait_between_two_tries_doubles_up_to_its_cap() -> None:
    assert [backoff_s(n, 2, 15) for n in (1, 2, 3, 4, 5, 10_000)] == [2, 4, 8, 15, 15, 15]
