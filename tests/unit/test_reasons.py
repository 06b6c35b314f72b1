import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import (
    AtCapacity,
    ItemUnavailable,
    PosFailure,
    PosOffline,
    PriceMismatch,
    RejectReason,
    StoreClosed,
    TicketOutcomeUnknown,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.ledger.models import OrderRow
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.events import CancelRequested
from tillbridge.orders.reasons import (
    CAUSES,
    EXPLAINED_BY_TILL,
    ByPerson,
    Cause,
    ChecksFailed,
    Lapse,
    Lapsed,
    cancellation,
    customer_text,
    failure_note,
    may_go_to_paper,
    may_pass,
    was_offline,
    why_not_written,
)

FAILURES = [PosFailure, ItemUnavailable, StoreClosed, PosOffline, AtCapacity, PriceMismatch]
FAILURES += [TicketOutcomeUnknown]


class VendorsOwn(PosFailure):
    """A vendor may subclass."""


failures = st.builds(
    lambda kind, words: kind(words), st.sampled_from([*FAILURES, VendorsOwn]), st.text()
)
rejections = st.builds(
    TicketUpdate,
    key=st.text(),
    order_id=st.text(),
    status=st.just(TicketStatus.REJECTED),
    reason=st.none() | st.sampled_from(RejectReason),
    external_ids=st.lists(st.text()).map(tuple),
    message=st.text(),
)
codes = st.sampled_from(ReasonCode)
causes = (
    failures
    | rejections
    | st.builds(Lapsed, st.sampled_from(Lapse), codes)
    | st.builds(ChecksFailed, codes, st.text())
    | st.builds(ByPerson, codes)
)


@given(causes)
def test_whatever_ends_an_order_has_a_code_and_words(cause: Cause) -> None:
    cancelled = cancellation(cause)
    assert cancelled.code in ReasonCode
    assert customer_text(cancelled.code).startswith("Sorry")
    assert len(cancelled.message) <= 300
    assert "\n" not in cancelled.message


@given(causes)
def test_what_follows_from_a_cancel_fits_its_code(cause: Cause) -> None:
    cancelled = cancellation(cause)
    assert not cancelled.items_out or cancelled.code is ReasonCode.ITEM_OUT_OF_STOCK
    assert not cancelled.price_mismatch or cancelled.code is ReasonCode.PRICE_MISMATCH
    assert not cancelled.pos_offline or cancelled.lost_to_absence
    assert not cancelled.lost_to_absence or cancelled.code is ReasonCode.POS_OFFLINE


@given(failures)
def test_the_poss_own_words_never_reach_the_customer(failure: PosFailure) -> None:
    customer_reads = customer_text(cancellation(failure).code)
    assert customer_reads in {customer_text(code) for code in ReasonCode}


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ItemUnavailable("no soup"), ReasonCode.ITEM_OUT_OF_STOCK),
        (StoreClosed(), ReasonCode.STORE_CLOSED),
        (PosOffline(), ReasonCode.POS_OFFLINE),
        (AtCapacity(), ReasonCode.CAPACITY),
        (PriceMismatch(), ReasonCode.PRICE_MISMATCH),
        (PosFailure("drawer open"), ReasonCode.OTHER),
        (VendorsOwn("drawer open"), ReasonCode.OTHER),
        (TicketOutcomeUnknown("no answer"), ReasonCode.OTHER),
    ],
)
def test_each_failure_has_the_contracts_code(failure: PosFailure, code: ReasonCode) -> None:
    assert cancellation(failure).code is code


def test_every_rejection_of_the_contract_has_its_code() -> None:
    def code(reason: RejectReason | None) -> ReasonCode:
        update = TicketUpdate("k", "ord_1", TicketStatus.REJECTED, reason=reason)
        return cancellation(update).code

    assert {reason: code(reason) for reason in (*RejectReason, None)} == {
        RejectReason.ITEM_UNAVAILABLE: ReasonCode.ITEM_OUT_OF_STOCK,
        RejectReason.STORE_CLOSED: ReasonCode.STORE_CLOSED,
        RejectReason.POS_OFFLINE: ReasonCode.POS_OFFLINE,
        RejectReason.CAPACITY: ReasonCode.CAPACITY,
        RejectReason.PRICE_MISMATCH: ReasonCode.PRICE_MISMATCH,
        RejectReason.OTHER: ReasonCode.OTHER,
        None: ReasonCode.OTHER,
    }


def test_items_that_are_out_are_named_once_each() -> None:
    failure = ItemUnavailable("sold out", external_ids=["soup", "", "soup", "pie"])
    assert cancellation(failure).items_out == ("soup", "pie")


def test_support_reads_the_poss_own_words() -> None:
    cancelled = cancellation(PosFailure("  Drawer\x00 open,\n call  Anna "))
    assert cancelled.code is ReasonCode.OTHER
    assert cancelled.message == "Drawer open, call Anna"


def test_long_words_are_trimmed() -> None:
    assert cancellation(PosFailure("x" * 1000)).message == "x" * 299 + "…"


def test_an_order_the_kitchen_did_not_confirm_has_the_settings_code() -> None:
    lapsed = Lapsed(Lapse.NOT_CONFIRMED, ReasonCode.CAPACITY)
    assert cancellation(lapsed).code is ReasonCode.CAPACITY


def test_an_order_that_was_not_written_in_time_has_the_poss_last_words() -> None:
    note = failure_note(TicketOutcomeUnknown("printer: out of paper"))
    cancelled = cancellation(Lapsed(Lapse.NOT_WRITTEN, note=note))
    assert (cancelled.code, cancelled.message) == (ReasonCode.OTHER, "printer: out of paper")


def test_a_persons_cancel_for_prices_does_not_resync_the_menu() -> None:
    assert not cancellation(ByPerson(ReasonCode.PRICE_MISMATCH)).price_mismatch


@given(failures)
def test_a_note_tells_again_whether_the_pos_was_there(failure: PosFailure) -> None:
    assert was_offline(failure_note(failure)) is isinstance(failure, PosOffline)


@pytest.mark.parametrize(
    ("kind", "note", "passes", "paper_helps"),
    [
        (ItemUnavailable, "item_unavailable", False, False),
        (StoreClosed, "store_closed", False, False),
        (AtCapacity, "capacity", False, False),
        (PriceMismatch, "price_mismatch", False, False),
        (PosOffline, "offline", True, True),
        (TicketOutcomeUnknown, "no_answer", True, True),
        (PosFailure, "refused", False, True),
        (VendorsOwn, "refused", False, True),
    ],
)
def test_a_failure_is_noted_and_decides_what_is_tried_next(
    kind: type[PosFailure], note: str, passes: bool, paper_helps: bool
) -> None:
    failure = kind("Drawer open")
    assert failure_note(failure) == f"{note}: Drawer open"
    assert failure_note(kind("")) == note
    assert may_pass(failure) is passes
    assert may_go_to_paper(failure) is paper_helps


def rejected(reason: RejectReason | None, message: str = "", *items: str) -> TicketUpdate:
    return TicketUpdate("k", "ord_1", TicketStatus.REJECTED, reason, items, message)


C = ReasonCode


@pytest.mark.parametrize(
    ("cause", "wanted"),
    [
        (
            ItemUnavailable("no soup", external_ids=["soup"]),
            CancelRequested(C.ITEM_OUT_OF_STOCK, "no soup", "sold_out", items_out=("soup",)),
        ),
        (StoreClosed("closed"), CancelRequested(C.STORE_CLOSED, "closed", "closed")),
        (
            PosOffline("gone"),
            CancelRequested(
                C.POS_OFFLINE, "gone", "offline", pos_offline=True, lost_to_absence=True
            ),
        ),
        (AtCapacity("full"), CancelRequested(C.CAPACITY, "full", "capacity")),
        (
            PriceMismatch("was 9"),
            CancelRequested(C.PRICE_MISMATCH, "was 9", "price", price_mismatch=True),
        ),
        (PosFailure("jam"), CancelRequested(C.OTHER, "jam", "refused")),
        (
            PosFailure(""),
            CancelRequested(C.OTHER, "The till refused the order without saying why.", "refused"),
        ),
        (rejected(None, "burnt"), CancelRequested(C.OTHER, "burnt", "refused")),
        (
            rejected(RejectReason.ITEM_UNAVAILABLE, "", "soup"),
            CancelRequested(
                C.ITEM_OUT_OF_STOCK,
                "The till rejected the order without saying why.",
                "sold_out",
                items_out=("soup",),
            ),
        ),
        (
            rejected(RejectReason.CAPACITY, "full", "soup"),
            CancelRequested(C.CAPACITY, "full", "capacity"),
        ),
        (
            Lapsed(Lapse.NOT_WRITTEN_OFFLINE, note="offline: gone"),
            CancelRequested(
                C.POS_OFFLINE,
                "The till could not be reached in time.",
                "offline",
                lost_to_absence=True,
            ),
        ),
        (
            Lapsed(Lapse.NOT_WRITTEN, note="no_answer"),
            CancelRequested(C.OTHER, "The till did not accept the order in time.", "not_written"),
        ),
        (
            Lapsed(Lapse.NOT_CONFIRMED, C.CAPACITY),
            CancelRequested(
                C.CAPACITY, "The till did not confirm the order in time.", "not_confirmed"
            ),
        ),
        (
            ChecksFailed(C.PRICE_MISMATCH, "Soup: 9.00"),
            CancelRequested(C.PRICE_MISMATCH, "Soup: 9.00", "price_differs", price_mismatch=True),
        ),
        (
            ChecksFailed(C.ITEM_OUT_OF_STOCK, "no pie"),
            CancelRequested(C.ITEM_OUT_OF_STOCK, "no pie", "unknown_item"),
        ),
        (
            ByPerson(C.POS_OFFLINE, "anna"),
            CancelRequested(C.POS_OFFLINE, "Cancelled by the restaurant's staff.", by="anna"),
        ),
    ],
)
def test_what_ends_an_order_decides_all_that_follows(cause: Cause, wanted: CancelRequested) -> None:
    assert cancellation(cause) == wanted
    assert cancellation(cause, pos_has_none=True).pos_has_none


def test_every_cause_that_is_stored_can_be_shown() -> None:
    assert CAUSES.keys() == {
        *("offline", "not_written", "not_confirmed", "refused", "sold_out", "closed"),
        *("capacity", "price", "unknown_item", "price_differs", "other"),
    }
    assert {"refused", "sold_out", "closed", "capacity", "price"} == EXPLAINED_BY_TILL


def test_a_customer_reads_the_words_for_the_code() -> None:
    assert "sold out" in customer_text(ReasonCode.ITEM_OUT_OF_STOCK)
    assert customer_text(None) == customer_text(ReasonCode.OTHER)


@pytest.mark.parametrize(
    ("note", "why"),
    [
        ("refused: Drawer open: no paper", "Drawer open: no paper"),
        ("no_answer", "no_answer"),
        ("", "it did not answer"),
    ],
)
def test_why_the_till_has_no_ticket_is_told_in_its_words(note: str, why: str) -> None:
    row = OrderRow(
        store="main",
        order_id="ord_1",
        payload="{}",
        received_at=0,
        last_failure=note,
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
    )
    assert why_not_written(row) == why
