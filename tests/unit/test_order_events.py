"""What each event makes of an order, as a table: its row afterwards, and what its log gains."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tillbridge.adapter import TicketStatus
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import BY_HAND, ON_PAPER
from tillbridge.model.order import OrderState, ReasonCode, parse_order
from tillbridge.orders import state
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
from tillbridge.orders.state import Change, call_for, calls_ahead, decide, is_done, is_stale

NOW = 1_000
DAY_MS = 86_400_000
S, T, R = OrderState, TicketState, ReasonCode

WAITING = OrderRow(
    store="main",
    order_id="ord_1",
    payload="{}",
    received_at=0,
    desired_state=S.CREATED,
    service_state=S.CREATED,
)
WRITING = WAITING.replace(ticket=T.WRITING, attempts=1)
WRITTEN = WAITING.replace(
    ticket=T.WRITTEN, attempts=1, ticket_reference="T1", written_at=5, desired_state=S.ACCEPTED
)
PAPER = WRITTEN.replace(ticket_reference=ON_PAPER, last_failure="refused: no")
CANCELLED = {"desired_state": S.CANCELLED, "reason_code": R.OTHER, "message": "sorry"}
UNSEEN = {
    "order.cancelled": {"at": 1},
    "order.not_withdrawn": {"at": 1},
    "order.closed_by_service": {"at": 1},
    "order.price_differs": {"at": 1},
}
STILL_UNSEEN = {"order.price_differs": {"at": 1}}
FULL = CancelRequested(R.CAPACITY, "full", "capacity")
FULL_ROW = {"desired_state": S.CANCELLED, "reason_code": R.CAPACITY, "message": "full"}
FULL_UNSEEN = {"order.cancelled": {"at": NOW, "cause": "capacity"}}
FULL_ENTRY = ("order.to_cancel", {"code": "CAPACITY", "message": "full"})
BY_ANNA = CancelRequested(R.CAPACITY, "full", by="anna")
ANNAS_ENTRY = ("order.to_cancel", {"code": "CAPACITY", "message": "full", "by": "anna"})
CLOSED_UNSEEN = {"order.closed_by_service": {"at": NOW}}


class Case(NamedTuple):
    """A row, an event, what it changes of the row, and what the log gains."""

    row: OrderRow
    event: Event
    changed: Mapping[str, Any] = MappingProxyType({})
    entries: tuple[tuple[str, dict[str, Any]], ...] = ()


def one(name: str, **detail: object) -> tuple[tuple[str, dict[str, Any]], ...]:
    return ((name, detail),)


WRITES = [
    Case(WAITING, WriteBegun(), {"ticket": T.WRITING, "attempts": 1}),
    Case(WRITING.replace(attempts=3), WriteBegun()),
    Case(WAITING.replace(closed_at=1), WriteBegun()),
    Case(WAITING.replace(**CANCELLED), WriteBegun()),
    Case(
        WRITING.replace(last_failure="no_answer"),
        Written("T2", accepts=True),
        {
            "ticket": T.WRITTEN,
            "ticket_reference": "T2",
            "written_at": NOW,
            "desired_state": S.ACCEPTED,
            "last_failure": "",
        },
        one("order.written", reference="T2"),
    ),
    Case(
        WRITING,
        Written("", accepts=False),
        {"ticket": T.WRITTEN, "written_at": NOW},
        one("order.written", reference=""),
    ),
    Case(WRITTEN, Written("T2", accepts=True), {"ticket_reference": "T2"}),
    Case(WRITTEN, Written("", accepts=False)),
    Case(
        WAITING.replace(ticket=T.REFUSED),
        Written("T2", accepts=False),
        {"ticket_reference": "T2", "written_at": NOW},
    ),
    Case(
        WRITING,
        Printed(ON_PAPER, "no", accepts=True),
        {
            "ticket": T.WRITTEN,
            "ticket_reference": ON_PAPER,
            "written_at": NOW,
            "desired_state": S.ACCEPTED,
        },
        one("order.on_paper", why="no"),
    ),
    Case(
        WAITING,
        Printed(ON_PAPER, "no", accepts=False),
        {"ticket": T.WRITTEN, "ticket_reference": ON_PAPER, "written_at": NOW},
        one("order.on_paper", why="no"),
    ),
    Case(WRITTEN, Printed(ON_PAPER, "no", accepts=True)),
    Case(
        WRITING,
        WriteFailed("offline: gone"),
        {"attempts": 2, "last_failure": "offline: gone"},
        one("order.wait", reason="offline: gone"),
    ),
    Case(
        WRITING,
        WriteFailed("no_answer", counts=False),
        {"last_failure": "no_answer"},
        one("order.wait", reason="no_answer"),
    ),
    Case(WRITING.replace(last_failure="no_answer"), WriteFailed("no_answer"), {"attempts": 2}),
    Case(WRITING.replace(last_failure="held: old"), WriteFailed("no_answer"), {"attempts": 2}),
    Case(WRITTEN, WriteFailed("no_answer")),
    Case(WAITING, Held("held: old"), {"last_failure": "held: old"}, one("order.held")),
    Case(
        WRITING.replace(last_failure="held: old"),
        Held("held: older"),
        {"last_failure": "held: older"},
    ),
    Case(WRITTEN, Held("held: old")),
]

CANCELS = [
    Case(WAITING, FULL, {**FULL_ROW, "ticket": T.REFUSED, "unseen": FULL_UNSEEN}, (FULL_ENTRY,)),
    Case(WRITING, FULL, {**FULL_ROW, "unseen": FULL_UNSEEN}, (FULL_ENTRY,)),
    Case(
        WRITING.replace(unseen=STILL_UNSEEN),
        CancelRequested(R.CAPACITY, "full", "capacity", pos_has_none=True),
        {**FULL_ROW, "ticket": T.REFUSED, "unseen": {**STILL_UNSEEN, **FULL_UNSEEN}},
        (FULL_ENTRY,),
    ),
    Case(WRITTEN.replace(closed_at=1), FULL),
    Case(WRITTEN.replace(service_state=S.CANCELLED, closed_at=1), BY_ANNA),
    Case(WRITTEN.replace(service_state=S.COMPLETED), BY_ANNA, {"closed_at": NOW}),
    Case(
        WRITTEN.replace(closed_at=1, unseen=UNSEEN, refused={"cancel": "no", "ready": "no"}),
        BY_ANNA,
        {
            **FULL_ROW,
            "closed_at": None,
            "refused": {"ready": "no"},
            "unseen": {k: v for k, v in UNSEEN.items() if k != "order.cancelled"},
        },
        (ANNAS_ENTRY,),
    ),
    # what is to be cancelled already is only taken note of
    Case(WRITING.replace(**CANCELLED), FULL),
    Case(
        WRITING.replace(**CANCELLED, unseen=STILL_UNSEEN),
        CancelRequested(R.CAPACITY, "full", "capacity", pos_has_none=True),
        {"ticket": T.REFUSED},
    ),
    Case(
        WRITTEN.replace(**CANCELLED, unseen=UNSEEN),
        BY_ANNA,
        {"unseen": {k: v for k, v in UNSEEN.items() if k != "order.cancelled"}},
    ),
    Case(
        WRITTEN.replace(**CANCELLED, refused={"cancel": "no"}),
        BY_ANNA,
        {**FULL_ROW, "refused": {}},
        (ANNAS_ENTRY,),
    ),
    Case(WRITTEN.replace(**CANCELLED, refused={"cancel": "no"}), FULL),
    Case(
        WRITTEN.replace(**CANCELLED, closed_at=1),
        BY_ANNA,
        {**FULL_ROW, "closed_at": None},
        (ANNAS_ENTRY,),
    ),
    # what the till calls completed only a person cancels
    Case(WRITTEN.replace(desired_state=S.COMPLETED), FULL),
    Case(
        WRITTEN.replace(desired_state=S.COMPLETED),
        CancelRequested(R.CAPACITY, "full", "capacity", pos_has_none=True),
        {"ticket": T.REFUSED},
    ),
    Case(WRITTEN.replace(desired_state=S.COMPLETED), BY_ANNA, FULL_ROW, (ANNAS_ENTRY,)),
    # and its ticket leaves the till
    Case(
        WRITING.replace(**CANCELLED),
        Withdrawn("never_written"),
        {"ticket": T.REFUSED},
        one("order.withdrawn", how="never_written"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED, service_state=S.CANCELLED, refused={"ready": "no"}),
        Withdrawn("taken_back"),
        {"ticket": T.WITHDRAWN, "closed_at": NOW, "refused": {}},
        one("order.withdrawn", how="taken_back"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED, unseen=STILL_UNSEEN),
        Withdrawn("left_to_person", "no such key.", "Look."),
        {
            "ticket": T.WITHDRAWN,
            "unseen": {
                **STILL_UNSEEN,
                "order.not_withdrawn": {"at": NOW, "why": ": no such key", "remedy": "Look."},
            },
        },
        one("order.withdrawn", how="left_to_person", why="no such key."),
    ),
    Case(WRITTEN, Withdrawn("taken_back")),
    Case(WAITING.replace(**CANCELLED, ticket=T.REFUSED), Withdrawn("taken_back")),
    Case(
        WRITTEN.replace(**CANCELLED, closed_at=1),
        TicketLeft(),
        {"unseen": {"order.not_withdrawn": {"at": NOW}}},
        one("ticket.left"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED),
        TicketLeft("jam", "Look."),
        {"unseen": {"order.not_withdrawn": {"at": NOW, "why": ": jam", "remedy": "Look."}}},
        one("ticket.left"),
    ),
    Case(WRITTEN, TicketLeft()),
    Case(
        WRITTEN,
        SurplusTicketCancelled("#2", "r2", "twice"),
        {"unseen": {"order.ticket_taken_back": {"at": NOW, "ticket": "#2 (r2)", "why": "twice"}}},
        one("ticket.taken_back", record="r2", why="twice"),
    ),
    Case(
        WRITTEN,
        SurplusTicketCancelled("r2", "r2", "twice"),
        {"unseen": {"order.ticket_taken_back": {"at": NOW, "ticket": "r2", "why": "twice"}}},
        one("ticket.taken_back", record="r2", why="twice"),
    ),
]

REPORTS = [
    Case(
        WRITTEN.replace(refused={"accept": "no", "preparing": "no", "cancel": "no"}),
        ServiceKnows(S.ACCEPTED, "order.accepted", {"ms": 1}),
        {"service_state": S.ACCEPTED, "refused": {"preparing": "no", "cancel": "no"}},
        one("order.accepted", ms=1),
    ),
    Case(
        WRITTEN.replace(refused={"cancel": "no", "ready": "no"}),
        ServiceKnows(S.READY, "order.ready"),
        {"service_state": S.READY, "refused": {"cancel": "no"}},
        one("order.ready"),
    ),
    Case(
        WRITTEN.replace(refused={"accept": "no"}),
        ServiceKnows(S.CREATED, "order.x"),
        {},
        one("order.x"),
    ),
    Case(
        WRITTEN.replace(service_state=S.COMPLETED),
        ServiceKnows(S.ACCEPTED, "order.accepted"),
        {"closed_at": NOW},
    ),
    Case(
        WAITING.replace(**CANCELLED, ticket=T.REFUSED, refused={"accept": "no"}),
        ServiceKnows(S.CANCELLED, "order.cancelled"),
        {"service_state": S.CANCELLED, "closed_at": NOW, "refused": {}},
        one("order.cancelled"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED),
        ServiceKnows(S.CANCELLED, "order.cancelled"),
        {"service_state": S.CANCELLED},
        one("order.cancelled"),
    ),
    Case(  # resumed while its cancel was under way
        WRITING,
        ServiceKnows(S.CANCELLED, "order.cancelled"),
        {"service_state": S.CANCELLED, "desired_state": S.CANCELLED},
        one("order.cancelled"),
    ),
    Case(
        WRITTEN.replace(closed_at=1),
        ServiceKnows(S.COMPLETED, "order.completed"),
        {"service_state": S.COMPLETED},
        one("order.completed"),
    ),
    Case(
        WRITTEN.replace(refused={"accept": "no"}),
        CallRefused(Call.READY, "late (400)", {"code": "bad"}),
        {"refused": {"accept": "no", "ready": "late (400)"}},
        one("order.call_refused", call="ready", code="bad"),
    ),
    Case(WRITTEN.replace(closed_at=1), CallRefused(Call.READY, "late (400)")),
    Case(
        WRITTEN.replace(desired_state=S.READY, refused={"preparing": "no"}),
        ReportsTooLate("too late"),
        {"refused": {"accept": "too late", "preparing": "no", "ready": "too late"}},
        (*one("order.too_late", call="accept"), *one("order.too_late", call="ready")),
    ),
    Case(WRITTEN.replace(closed_at=1), ReportsTooLate("too late")),
    Case(
        WRITTEN.replace(refused={"accept": "no"}, unseen=STILL_UNSEEN),
        ServiceClosed({"why": "gone"}),
        {"closed_at": NOW, "refused": {}, "unseen": {**STILL_UNSEEN, **CLOSED_UNSEEN}},
        one("order.closed", why="gone"),
    ),
    Case(WRITTEN, TicketMoved(TicketStatus.READY), {"desired_state": S.READY}),
    Case(
        WAITING,
        TicketMoved(TicketStatus.ACCEPTED),
        {"desired_state": S.ACCEPTED, "ticket": T.WRITING},
    ),
    Case(
        WRITING,
        TicketMoved(TicketStatus.ACCEPTED),
        {"desired_state": S.ACCEPTED, "ticket": T.WRITTEN, "written_at": NOW},
        one("order.written"),
    ),
    Case(WRITTEN.replace(closed_at=1), TicketMoved(TicketStatus.READY)),
    Case(WRITTEN.replace(service_state=S.COMPLETED), TicketMoved(TicketStatus.READY)),
    Case(
        WAITING.replace(unseen=UNSEEN, refused={"accept": "no"}),
        Delivered(),
        {
            "service_state": S.COMPLETED,
            "desired_state": S.COMPLETED,
            "closed_at": NOW,
            "ticket": T.REFUSED,
            "unseen": STILL_UNSEEN,
            "refused": {},
        },
        one("order.completed"),
    ),
    Case(
        WRITTEN.replace(closed_at=1),
        Delivered(),
        {"service_state": S.COMPLETED, "desired_state": S.COMPLETED, "closed_at": NOW},
        one("order.completed"),
    ),
    Case(
        WRITTEN.replace(service_state=S.COMPLETED),
        Delivered(),
        {"desired_state": S.COMPLETED, "closed_at": NOW},
    ),
    Case(WRITTEN.replace(service_state=S.COMPLETED, closed_at=1), Delivered()),
]

OF_PEOPLE = [
    Case(
        WRITING.replace(unseen=UNSEEN, refused={"ready": "no"}, last_failure="refused: no"),
        Handled("typed", "anna"),
        {
            "ticket": T.WRITTEN,
            "ticket_reference": BY_HAND,
            "written_at": NOW,
            "desired_state": S.ACCEPTED,
            "unseen": {},
        },
        one("order.handled", how="typed", by="anna"),
    ),
    Case(
        WRITING.replace(unseen=UNSEEN, refused={"ready": "no"}),
        Handled("settled", "anna"),
        {"closed_at": NOW, "refused": {}, "unseen": {}},
        one("order.handled", how="settled", by="anna"),
    ),
    Case(
        WRITTEN.replace(refused={"ready": "no"}),
        Handled("typed", "anna"),
        {"closed_at": NOW, "refused": {}},
        one("order.handled", how="typed", by="anna"),
    ),
    Case(
        PAPER.replace(desired_state=S.CREATED, refused={"ready": "no"}),
        Handled("typed", "anna"),
        {"ticket_reference": BY_HAND, "desired_state": S.ACCEPTED},
        one("order.handled", how="typed", by="anna"),
    ),
    Case(
        PAPER.replace(desired_state=S.CREATED, refused={"ready": "no"}),
        Handled("settled", "anna"),
        {"ticket_reference": BY_HAND, "closed_at": NOW, "refused": {}},
        one("order.handled", how="settled", by="anna"),
    ),
    Case(
        PAPER.replace(closed_at=1),
        Handled("settled", "anna"),
        {"ticket_reference": BY_HAND},
        one("order.handled", how="settled", by="anna"),
    ),
    Case(
        PAPER.replace(closed_at=1),
        Handled("typed", "anna"),
        {"ticket_reference": BY_HAND},
        one("order.handled", how="typed", by="anna"),
    ),
    Case(
        WRITING.replace(closed_at=1, unseen=UNSEEN),
        Handled("typed", "anna"),
        {"unseen": {}},
        one("order.handled", how="typed", by="anna"),
    ),
    Case(WRITTEN.replace(closed_at=1), Handled("settled", "anna")),
    Case(
        WRITING.replace(attempts=3, refused={"accept": "no"}, last_failure="refused: no"),
        Retried("anna"),
        {"ticket": T.WRITING, "attempts": 3, "refused": {}},
        one("order.retried", by="anna"),
    ),
    Case(
        WAITING.replace(last_failure="held: old"),
        Retried("anna"),
        {"last_failure": "asked_for"},
        one("order.retried", by="anna"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED, attempts=3, unseen=UNSEEN),
        Retried("anna"),
        {
            "ticket": T.WRITING,
            "attempts": 1,
            "desired_state": S.CREATED,
            "reason_code": None,
            "message": "",
            "unseen": STILL_UNSEEN,
        },
        one("order.retried", by="anna"),
    ),
    Case(
        WRITTEN.replace(desired_state=S.READY, attempts=0, closed_at=1),
        Retried("anna"),
        {"ticket": T.WRITING, "closed_at": None},
        one("order.retried", by="anna"),
    ),
    Case(
        WRITTEN.replace(**CANCELLED, refused={"cancel": "no", "ready": "no"}),
        Retried("anna"),
        {"refused": {}},
        one("order.retried", by="anna"),
    ),
    Case(WRITTEN.replace(service_state=S.COMPLETED, closed_at=1), Retried("anna")),
    Case(
        WRITTEN.replace(unseen=UNSEEN),
        Seen(frozenset({"order.not_withdrawn", "order.cancelled", "x"}), "anna"),
        {
            "unseen": {
                k: v for k, v in UNSEEN.items() if k in {*STILL_UNSEEN, "order.closed_by_service"}
            }
        },
        one("order.seen", what=["order.cancelled", "order.not_withdrawn"], by="anna"),
    ),
    Case(
        WRITTEN.replace(unseen=UNSEEN),
        Seen(frozenset(UNSEEN.keys() - STILL_UNSEEN.keys())),
        {"unseen": STILL_UNSEEN},
    ),
    Case(WRITTEN.replace(unseen=STILL_UNSEEN), Seen(frozenset({"order.cancelled"}), "anna")),
    Case(
        WRITTEN.replace(service_state=S.COMPLETED),
        Lapsed(),
        {"closed_at": NOW},
        one("order.closed", why="over"),
    ),
    Case(WRITTEN.replace(service_state=S.COMPLETED, closed_at=1), Lapsed()),
    Case(WRITTEN, Lapsed()),
    Case(WRITTEN.replace(service_state=S.ACCEPTED, closed_at=1), Reopened(), {"closed_at": None}),
    Case(WRITTEN.replace(service_state=S.COMPLETED, closed_at=1), Reopened()),
    Case(WRITTEN.replace(**CANCELLED, service_state=S.CANCELLED, closed_at=1), Reopened()),
]


@pytest.mark.parametrize("case", [*WRITES, *CANCELS, *REPORTS, *OF_PEOPLE])
def test_an_event_makes_of_an_order_what_the_table_says(case: Case) -> None:
    change = decide(case.row, case.event, NOW)
    assert change == Change(case.row, case.row.replace(**case.changed), case.entries)
    assert change.event is case.event


def test_two_changes_are_the_same_if_they_do_the_same() -> None:
    order = parse_order({"id": "ord_1"})
    assert Change(WRITTEN, WRITTEN, logged={"ms": 1}, order=order) == Change(WRITTEN, WRITTEN)


def test_the_path_of_an_order_is_that_of_the_specification() -> None:
    path = [S.CREATED, S.ACCEPTED, S.PREPARING, S.READY, S.COMPLETED]
    assert [state.RANK[each] for each in path] == [0, 1, 2, 3, 4]
    assert state.FORWARD == {
        S.CREATED: Call.ACCEPT,
        S.ACCEPTED: Call.PREPARING,
        S.PREPARING: Call.READY,
    }
    assert {each: before for before, each in state.FORWARD.items()} == state.LEAVES
    assert state.LEADS_TO == {
        Call.ACCEPT: S.ACCEPTED,
        Call.PREPARING: S.PREPARING,
        Call.READY: S.READY,
        Call.CANCEL: S.CANCELLED,
    }
    assert {S.COMPLETED, S.CANCELLED} == state.FINAL
    assert [each.value for each in state.Phase] == ["write", "confirm", "withdraw"]


@pytest.mark.parametrize(
    ("at", "desired", "refused", "calls"),
    [
        (S.CREATED, S.READY, (), [Call.ACCEPT, Call.PREPARING, Call.READY]),
        (S.CREATED, S.COMPLETED, ("preparing",), [Call.ACCEPT, Call.READY]),
        (S.READY, S.COMPLETED, (), []),
        (S.READY, S.ACCEPTED, (), []),
        (S.COMPLETED, S.READY, (), []),
        (S.CANCELLED, S.READY, (), []),
        (S.CREATED, S.CANCELLED, (), []),
    ],
)
def test_the_calls_that_are_still_to_be_made(
    at: OrderState, desired: OrderState, refused: tuple[str, ...], calls: list[Call]
) -> None:
    assert calls_ahead(at, desired, refused) == calls


@pytest.mark.parametrize(
    ("row", "at", "call"),
    [
        (WRITTEN, None, Call.ACCEPT),
        (WRITTEN.replace(desired_state=S.READY), S.PREPARING, Call.READY),
        (WRITTEN.replace(refused={"accept": "no"}), None, None),
        (WRITTEN.replace(closed_at=1), None, None),
        (WRITING.replace(desired_state=S.ACCEPTED), None, None),
        (WAITING.replace(**CANCELLED, ticket=T.REFUSED), None, Call.CANCEL),
        (WAITING.replace(**CANCELLED, refused={"cancel": "no"}), None, None),
        (WAITING.replace(**CANCELLED), S.COMPLETED, None),
    ],
)
def test_the_service_hears_of_what_the_till_has_or_what_is_cancelled(
    row: OrderRow, at: OrderState | None, call: Call | None
) -> None:
    assert call_for(row, at) is call


@pytest.mark.parametrize(
    ("service", "desired", "ticket", "done"),
    [
        (S.COMPLETED, S.CANCELLED, T.WRITTEN, True),
        (S.CANCELLED, S.CANCELLED, T.WRITTEN, False),
        (S.CANCELLED, S.CANCELLED, T.WRITING, False),
        (S.CANCELLED, S.CANCELLED, T.WITHDRAWN, True),
        (S.CANCELLED, S.READY, T.WRITTEN, True),
        (S.READY, S.READY, T.WRITTEN, False),
    ],
)
def test_what_is_done(
    service: OrderState, desired: OrderState, ticket: TicketState, done: bool
) -> None:
    row = WAITING.replace(service_state=service, desired_state=desired, ticket=ticket)
    assert is_done(row) is done


def test_what_is_reported_and_has_not_moved_for_a_day_is_over() -> None:
    told = WRITTEN.replace(service_state=S.ACCEPTED, received_at=10, updated_at=40)
    assert not is_stale(told, 40 + DAY_MS)
    assert is_stale(told, 41 + DAY_MS)
    later = told.replace(received_at=50)
    assert not is_stale(later, 50 + DAY_MS)
    assert is_stale(later, 51 + DAY_MS)
    assert not is_stale(told.replace(desired_state=S.READY), 41 + DAY_MS), "it is still to be told"
    assert not is_stale(told.replace(ticket=T.WRITING), 41 + DAY_MS)
    unanswered = told.replace(desired_state=S.CREATED, service_state=S.CREATED)
    assert not is_stale(unanswered, 41 + DAY_MS), "it has a deadline"
    over = decide(told, Lapsed(), 41 + DAY_MS)
    assert (over.after.closed_at, over.entries) == (41 + DAY_MS, one("order.closed", why="over"))


def test_a_held_order_is_one_that_waits_for_a_person() -> None:
    assert state.is_held(WAITING.replace(last_failure="held: old"))
    assert state.is_held(WRITING.replace(last_failure="held"))
    assert not state.is_held(WAITING.replace(last_failure="refused: held"))
    assert not state.is_held(WRITTEN.replace(last_failure="held: old"))
    assert state.can_be_written(WRITING)
    assert not state.can_be_written(WRITTEN)
