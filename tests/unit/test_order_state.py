"""An order's life as one function: nothing is lost, whatever comes in which order."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from tillbridge.adapter import TicketStatus
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.models import OrderRow, TicketState, metadata
from tillbridge.ledger.orders import (
    ON_PAPER,
    PERHAPS_ON_PAPER_ONLY,
    UNWRITTEN,
    get_order,
    read_log,
    unseen_orders,
)
from tillbridge.ledger.problems import open_problems
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.events import (
    Call,
    CallRefused,
    CancelRequested,
    Delivered,
    Event,
    Handled,
    Held,
    Lapsed,
    Printed,
    Reopened,
    ReportsTooLate,
    Retried,
    Seen,
    ServiceClosed,
    ServiceKnows,
    SurplusTicketCancelled,
    TicketLeft,
    TicketMoved,
    Withdrawn,
    WriteBegun,
    WriteFailed,
    Written,
)
from tillbridge.orders.notifier import after_answer
from tillbridge.orders.reasons import CAUSES
from tillbridge.orders.repository import (
    OF_ONE,
    OF_SEVERAL,
    commit,
    problems_of,
    problems_of_several,
    report_all,
    save,
    see,
)
from tillbridge.orders.state import FINAL, Change, Phase, call_for, decide, phase_of

STORE = "main"

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.just(WriteBegun()),
    st.builds(Written, st.sampled_from(["T1", ""]), st.booleans()),
    st.builds(
        Printed, st.sampled_from([ON_PAPER, PERHAPS_ON_PAPER_ONLY]), st.just("why"), st.booleans()
    ),
    st.builds(WriteFailed, st.sampled_from(["offline: x", "refused: y", "no_answer"])),
    st.just(Held("held: old")),
    st.builds(
        CancelRequested,
        st.sampled_from(list(ReasonCode)),
        st.just("words"),
        st.sampled_from(sorted(CAUSES)),
        pos_has_none=st.booleans(),
        by=st.sampled_from(["", "", "anna"]),
    ),
    st.builds(Withdrawn, st.sampled_from(["never_written", "taken_back", "left_to_person"])),
    st.just(TicketLeft()),
    st.just(SurplusTicketCancelled("#2", "record 2", "twice")),
    st.just(ReportsTooLate("too late")),
    st.sampled_from([OrderState.ACCEPTED, OrderState.PREPARING, OrderState.CANCELLED]).map(
        lambda state: ServiceKnows(state, "order.x", {"ms": 1})
    ),
    st.builds(CallRefused, st.sampled_from(list(Call)), st.sampled_from(["no (403)", "bad (400)"])),
    st.just(ServiceClosed({"why": "order.closed_by_service"})),
    st.sampled_from([each for each in TicketStatus if each is not TicketStatus.REJECTED]).map(
        TicketMoved
    ),
    st.just(Delivered()),
    st.builds(Handled, st.sampled_from(["typed", "settled"]), st.just("anna")),
    st.just(Retried("anna")),
    st.builds(Seen, st.just(OF_ONE | OF_SEVERAL), st.sampled_from(["", "anna"])),
    st.just(Lapsed()),
    st.just(Reopened()),
)
HISTORIES = st.lists(EVENTS, max_size=14)
UNSEEN = st.dictionaries(
    st.sampled_from(["order.unknown_item", "order.quantity_unclear"]),
    st.just({"at": 1, "detail": "x"}),
)


def new(order_id: str = "ord_1", **more: Any) -> OrderRow:  # noqa: ANN401 -- fields of several types
    row = OrderRow(
        store=STORE,
        order_id=order_id,
        received_at=0,
        payload='{"id": "o"}',
        desired_state=OrderState.CREATED,
        service_state=OrderState.CREATED,
    )
    return row.replace(**more)


def after(history: list[Event], row: OrderRow) -> OrderRow:
    for step, event in enumerate(history):
        row = decide(row, event, 1000 + step).after
    return row


def ledger() -> Connection:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    return engine.connect()


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), EVENTS), max_size=20), UNSEEN)
def test_what_is_open_is_what_follows_from_the_orders_after_every_step(
    history: list[tuple[str, Event]], unseen: dict[str, dict[str, object]]
) -> None:
    with ledger() as connection:
        for order_id in ("a", "b"):
            row = new(order_id, order_number="7", unseen=unseen)
            save(connection, Change(None, row), 500)
        for step, (order_id, event) in enumerate(history):
            commit(connection, STORE, order_id, event, 1000 + step)
            rows = [get_order(connection, STORE, each) for each in ("a", "b")]
            found = [each for row in rows if row for each in problems_of(row)]
            found += problems_of_several(unseen_orders(connection, STORE), 1000 + step)
            present = {(each.code, each.subject): each.detail for each in opened(connection)}
            assert present == {(each.code, each.subject): each.detail for each in found}
        before = opened(connection)
        report_all(connection, STORE, 1000 + len(history))
        assert opened(connection) == before, "there was nothing left to mend"


def opened(connection: Connection) -> tuple[OpenProblem, ...]:
    return open_problems(connection)


@given(HISTORIES, UNSEEN)
def test_no_order_with_a_live_need_is_without_next_work(
    history: list[Event], unseen: dict[str, dict[str, object]]
) -> None:
    row = after(history, new(unseen=unseen))
    if row.closed_at is not None:
        assert phase_of(row, "when_written") is None
        return
    if row.desired_state is OrderState.CANCELLED:
        if row.ticket in {TicketState.WRITING, TicketState.WRITTEN}:
            assert phase_of(row, "when_written") is Phase.WITHDRAW
        if row.service_state not in FINAL:
            tells = call_for(row) is Call.CANCEL
            assert tells or "cancel" in row.refused
    elif row.ticket in UNWRITTEN:
        assert phase_of(row, "when_written") is Phase.WRITE
    if row.refused:
        assert "service.refused" in {each.code for each in problems_of(row)}


@given(HISTORIES, UNSEEN)
def test_every_order_settles_once_all_goes_well(
    history: list[Event], unseen: dict[str, dict[str, object]]
) -> None:
    row = after(history, new(unseen=unseen))
    for _step in range(14):
        if row.closed_at is not None:
            break
        row = decide(row, next_good(row), 5000).after
    assert row.closed_at is not None
    codes = {each.code for each in problems_of(row)}
    assert codes <= {*row.unseen, "order.not_in_till"}, "what is over is settled"


def next_good(row: OrderRow) -> Event:
    """Return what comes next where POS, service and people do what is asked of them."""
    match phase_of(row, "when_written"):
        case Phase.WRITE if row.ticket is TicketState.WAITING:
            return WriteBegun()
        case Phase.WRITE:
            return Written("T9", accepts=True)
        case Phase.WITHDRAW:
            return Withdrawn("taken_back")
        case _:
            call = call_for(row)
            if call is not None:
                return ServiceKnows(after_answer(call).state, "order.x")
            return Retried("anna") if row.refused else Delivered()


@given(HISTORIES, EVENTS)
def test_what_is_over_at_the_service_is_never_taken_up_again(
    history: list[Event], event: Event
) -> None:
    row = after([*history, Delivered()], new())
    change = decide(row, event, 9000)
    assert change.after.service_state is OrderState.COMPLETED
    assert change.after.closed_at is not None
    assert change.after.desired_state is OrderState.COMPLETED


@given(HISTORIES)
def test_a_ticket_once_begun_is_never_waiting_again(history: list[Event]) -> None:
    row, begun = new(), False
    for step, event in enumerate(history):
        row = decide(row, event, step).after
        begun = begun or row.ticket is not TicketState.WAITING
        assert not (begun and row.ticket is TicketState.WAITING)


# -- a call that is refused ends that call


def accepted_by_pos() -> OrderRow:
    return after([WriteBegun(), Written("T1", accepts=True)], new())


def test_a_refused_accept_leaves_the_rejection_of_the_till_to_be_told() -> None:
    row = after([CallRefused(Call.ACCEPT, "no (403)")], accepted_by_pos())
    assert call_for(row) is None, "nothing is repeated"
    rejected = CancelRequested(ReasonCode.CAPACITY, "full", "capacity", pos_has_none=True)
    row = decide(row, rejected, 3).after
    assert call_for(row) is Call.CANCEL
    row = decide(row, ServiceKnows(OrderState.CANCELLED, "order.cancelled"), 4).after
    assert row.closed_at is not None
    assert row.refused == {}


def test_a_refused_accept_leaves_readiness_to_be_told() -> None:
    refused: list[Event] = [CallRefused(Call.ACCEPT, "no (403)"), TicketMoved(TicketStatus.READY)]
    row = after(refused, accepted_by_pos())
    assert call_for(row) is Call.PREPARING
    row = decide(row, CallRefused(Call.PREPARING, "no (409)"), 3).after
    assert call_for(row) is Call.READY
    row = decide(row, ServiceKnows(OrderState.READY, "order.ready"), 4).after
    assert row.refused == {}, "what was refused before is overtaken"


def test_a_refused_cancel_is_tried_again_by_either_command() -> None:
    wanted = CancelRequested(ReasonCode.CAPACITY, "full", "capacity", pos_has_none=True)
    stuck = after([wanted, CallRefused(Call.CANCEL, "no (403)")], accepted_by_pos())
    assert call_for(stuck) is None
    retried = decide(stuck, Retried("anna"), 5).after
    assert retried.desired_state is OrderState.CANCELLED, "the cancel is what was left to do"
    assert call_for(retried) is Call.CANCEL
    again = CancelRequested(ReasonCode.OTHER, "sorry", by="anna")
    row = decide(stuck, again, 5).after
    assert (call_for(row), row.reason_code) == (Call.CANCEL, ReasonCode.OTHER)


def test_what_two_calls_were_refused_for_reads_the_same_after_a_restart() -> None:
    with ledger() as connection:
        save(connection, Change(None, accepted_by_pos()), 1)
        for call, words in ((Call.READY, "late (400)"), (Call.ACCEPT, "no (403)")):
            commit(connection, STORE, "ord_1", CallRefused(call, words), 2)
        before = open_problems(connection)
        report_all(connection, STORE, 3)
        assert open_problems(connection) == before
        assert before[0].text.endswith("order ord_1 (accept, ready): no (403); late (400)")


# -- what a person has to see


def test_a_cancel_of_the_bridge_stays_until_it_is_seen_and_one_of_a_person_does_not() -> None:
    with ledger() as connection:
        payload = '{"id": "o", "total_amount": 1840, "currency": "USD"}'
        for number in (1003, 1004, 1005, 1006):
            row = new(f"ord_{number}", order_number=str(number), payload=payload)
            save(connection, Change(None, row), 500)
        away = CancelRequested(ReasonCode.POS_OFFLINE, "gone", "offline")
        said_no = CancelRequested(ReasonCode.CAPACITY, "nobody here", "capacity")
        commit(connection, STORE, "ord_1003", away, 1000)
        (alone,) = open_problems(connection)
        assert "because the till could not be reached ($18.40)." in alone.text
        assert alone.text.startswith("Order 1003 was cancelled at ")
        commit(connection, STORE, "ord_1004", away, 2000)
        commit(connection, STORE, "ord_1005", said_no, 3000)
        commit(connection, STORE, "ord_1006", replace(said_no, by="anna", cause=""), 4000)
        together, refused = open_problems(connection)
        assert together.since == 1000
        assert together.text.startswith("2 orders were cancelled since ")
        assert together.text.endswith("because the till could not be reached (1003, 1004; $36.80).")
        assert "the kitchen could not take more orders: nobody here" in refused.text
        commit(connection, STORE, "ord_1003", Seen(frozenset({"order.cancelled"}), "anna"), 5000)
        assert "Order 1004" in open_problems(connection)[0].text
        see(connection, open_problems(connection), 6000, by="anna")
        assert open_problems(connection) == ()
        assert [each.event for each in read_log(connection, STORE, "ord_1004")][-1] == "order.seen"


def test_a_cancel_that_the_service_overtook_is_no_cancel() -> None:
    away = CancelRequested(ReasonCode.POS_OFFLINE, "gone", "offline")
    assert after([away, Delivered()], new()).unseen == {}
    assert after([away, Retried("anna")], new()).unseen == {}


def test_a_ticket_that_failed_twice_is_a_problem_until_the_order_goes_on() -> None:
    fails: list[Event] = [WriteBegun(), WriteFailed("no_answer"), WriteFailed("no_answer")]
    assert codes_after(fails[:2]) == set()
    assert codes_after(fails) == {"order.not_written"}
    ways: list[list[Event]] = [
        [Written("T1", accepts=True)],
        [TicketMoved(TicketStatus.READY)],
        [Delivered()],
        [CancelRequested(ReasonCode.OTHER, "", by="anna")],
        [Handled("typed", "anna")],
        [Handled("settled", "anna")],
        [WriteFailed("offline: gone")],
    ]
    for way in ways:
        assert codes_after([*fails, *way]) == set(), way


def codes_after(history: list[Event]) -> set[str]:
    return {each.code for each in problems_of(after(history, new()))}


def test_an_event_that_comes_too_late_changes_nothing() -> None:
    row = after([Handled("settled", "anna")], new())
    for event in (Withdrawn("taken_back"), TicketMoved(TicketStatus.READY), WriteBegun(), Lapsed()):
        assert decide(row, event, 9) == Change(row, row)
