"""An order's whole life as one function: a row and an event in, the row after it and its log out.

Pure. `commit` (in `orders.commit`) writes the difference. Problems, the writer's next work and the
notifier's next call all follow from the row after the change, and from nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tillbridge.adapter import TicketStatus
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import BY_HAND, UNWRITTEN, is_on_paper
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.lifecycle import (
    Call,
    Standing,
    calls_between,
    is_final,
    merge_wanted,
    next_call,
    overtaken,
)
from tillbridge.orders.reasons import Cancellation

# A till that never says "ready", and a service that never says "delivered": a day later it is over.
STALE_MS = 24 * 3600 * 1000

CANCELLED_UNSEEN = "order.cancelled"
NOT_WITHDRAWN = "order.not_withdrawn"
TAKEN_BACK = "order.ticket_taken_back"
CLOSED_BY_SERVICE = "order.closed_by_service"

# How the ticket of a cancelled order ended.
HowEnded = Literal["never_written", "taken_back", "left_to_person"]
# What a person has done: typed the order into the till, or seen to it in some other way.
ByHand = Literal["typed", "settled"]

_NEWS = {
    TicketStatus.ACCEPTED: OrderState.ACCEPTED,
    TicketStatus.PREPARING: OrderState.PREPARING,
    TicketStatus.READY: OrderState.READY,
    TicketStatus.COMPLETED: OrderState.COMPLETED,
}


@dataclass(frozen=True, slots=True)
class WriteBegun:
    """The POS is about to be asked to take the ticket (invariant 2)."""


@dataclass(frozen=True, slots=True)
class Written:
    """The POS has the ticket; with `accepts` that is enough to accept the order."""

    reference: str
    accepts: bool


@dataclass(frozen=True, slots=True)
class Printed:
    """The order was printed because the till could not take it, and `why` it could not."""

    reference: str
    why: str
    accepts: bool


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The POS did not take the ticket; `note` is "kind" or "kind: the POS's words".

    `counts`: it was asked to, and failed.
    """

    note: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """The order is too old to be written unless a person asks for it."""

    note: str


@dataclass(frozen=True, slots=True)
class CancelWanted:
    """The order is to be cancelled.

    `cause` is why the bridge or the till decided it (`reasons.Cause`). `by` names the person who
    asks for it, "" for none. `pos_has_none`: the POS surely has no ticket.
    """

    code: ReasonCode
    message: str
    cause: str = ""
    pos_has_none: bool = False
    by: str = ""


def cancel_of(cancelled: Cancellation, *, pos_has_none: bool, by: str = "") -> CancelWanted:
    """Return the event of a cancel; `by` names the person who asks for it, "" for none."""
    return CancelWanted(
        cancelled.code, cancelled.message, cancelled.cause, pos_has_none=pos_has_none, by=by
    )


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Nothing more is done about the ticket of a cancelled order.

    `why` and `fix` are the POS's own, where it is left to a person; "" where it gives none.
    """

    how: HowEnded
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class TicketLeft:
    """The POS has a ticket of the cancelled order after all, and does not give it back.

    `why` and `fix` as in `Withdrawn`.
    """

    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class TicketTakenBack:
    """A ticket too many was taken back out of the POS: its `record` there, and why."""

    reference: str
    record: str
    why: str


@dataclass(frozen=True, slots=True)
class ServiceKnows:
    """The service has the order in this state; `event` and `detail` are for the log."""

    state: OrderState
    event: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The service refused this call for good, in these words; other calls are still made."""

    call: Call
    words: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportsTooLate:
    """What the service should have heard waited until it was wrong to report it, as `words` say."""

    words: str


@dataclass(frozen=True, slots=True)
class ServiceClosed:
    """The service says that it does nothing more with the order."""

    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PosSaid:
    """News of the ticket from the POS; a rejection is a CancelWanted."""

    status: TicketStatus


@dataclass(frozen=True, slots=True)
class Delivered:
    """The service has completed the order."""


@dataclass(frozen=True, slots=True)
class Handled:
    """A person has seen to the order, so that the till is not tried any more."""

    how: ByHand
    by: str


@dataclass(frozen=True, slots=True)
class Retried:
    """A person wants what is left to do to be tried at once."""

    by: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A person (`by`) has seen what these codes say of the order; "": its time is over."""

    codes: frozenset[str]
    by: str = ""


@dataclass(frozen=True, slots=True)
class Lapsed:
    """A moment to close what is over and was never closed."""


Event = (
    WriteBegun
    | Written
    | Printed
    | WriteFailed
    | Held
    | CancelWanted
    | Withdrawn
    | TicketLeft
    | TicketTakenBack
    | ServiceKnows
    | CallRefused
    | ReportsTooLate
    | ServiceClosed
    | PosSaid
    | Delivered
    | Handled
    | Retried
    | Seen
    | Lapsed
)
Entry = tuple[str, dict[str, Any]]
_Next = tuple[OrderRow, list[Entry]]


@dataclass(frozen=True, slots=True)
class Change:
    """What an event came to: the row before and after, and what the order's log gains."""

    before: OrderRow
    after: OrderRow
    entries: tuple[Entry, ...] = ()


def decide(row: OrderRow, event: Event, now_ms: int) -> Change:
    """Return what `event` makes of the order. Total: one that comes too late changes nothing."""
    after, entries = _next(row, event, now_ms)
    if is_final(after.service_state) and after.refused:
        after = after.replace(refused={})
    settles = isinstance(event, CancelWanted | Withdrawn | ServiceKnows)
    if settles and after.closed_at is None and is_done(after):
        after = after.replace(closed_at=now_ms)
    return Change(row, after, tuple(entries))


def _next(row: OrderRow, event: Event, now_ms: int) -> _Next:  # noqa: C901, PLR0911, PLR0912 -- one case an event: this is the list of them
    waits = row.ticket in UNWRITTEN
    match event:
        case WriteBegun() if can_be_written(row) and row.ticket is TicketState.WAITING:
            return row.replace(ticket=TicketState.WRITING, attempts=1), []
        case Written():
            return _written(row, event, now_ms)
        case Printed(reference, why, accepts) if waits:
            after = row.replace(
                ticket=TicketState.WRITTEN,
                ticket_reference=reference,
                written_at=now_ms,
                desired_state=_accepted(row, accepts=accepts),
            )
            return after, [("order.on_paper", {"why": why})]
        case WriteFailed(note, counts) if waits:
            after = row.replace(attempts=row.attempts + counts)
            if note == row.last_failure or is_held(row):  # held, it waits for a person above all
                return after, []
            return after.replace(last_failure=note), [("order.wait", {"reason": note})]
        case Held(note) if waits:
            entries: list[Entry] = [] if is_held(row) else [("order.held", {})]
            return row.replace(last_failure=note), entries
        case CancelWanted() if not is_final(row.service_state):
            return _to_cancel(row, event, now_ms)
        case Withdrawn() if is_to_be_withdrawn(row):
            return _withdrawn(row, event, now_ms)
        case TicketLeft() if row.desired_state is OrderState.CANCELLED:
            return row.replace(unseen=_left(row, event, now_ms)), [("ticket.left", {})]
        case TicketTakenBack(reference, record, why):
            ticket = f"{reference} ({record})" if record != reference else reference
            unseen = _unseen(row, TAKEN_BACK, now_ms, ticket=ticket, why=why)
            entry = ("ticket.taken_back", {"record": record, "why": why})
            return row.replace(unseen=unseen), [entry]
        case ServiceKnows(state, name, detail) if row.service_state is not OrderState.COMPLETED:
            refused = {
                call: words
                for call, words in row.refused.items()
                if not overtaken(Call(call), state)
            }
            return row.replace(service_state=state, refused=refused), [(name, dict(detail))]
        case CallRefused(call, words, detail) if row.closed_at is None:
            refused = {**row.refused, call.value: words}
            return row.replace(refused=refused), [
                ("order.call_refused", {"call": call.value, **detail})
            ]
        case ReportsTooLate(words) if row.closed_at is None:
            late = reports_due(row)
            refused = {**row.refused, **{call.value: words for call in late}}
            return row.replace(refused=refused), [
                ("order.too_late", {"call": call.value}) for call in late
            ]
        case ServiceClosed(detail):
            unseen = _unseen(row, CLOSED_BY_SERVICE, now_ms)
            after = row.replace(closed_at=now_ms, refused={}, unseen=unseen)
            return after, [("order.closed", dict(detail))]
        case PosSaid(status) if row.closed_at is None and not is_final(row.service_state):
            return _pos_said(row, _NEWS[status], now_ms)
        case Delivered() if row.service_state is not OrderState.COMPLETED or row.closed_at is None:
            return _delivered(row, now_ms)
        case Handled(how, by) if row.closed_at is None or is_on_paper(row) or row.unseen:
            return _handled(row, how, now_ms), [("order.handled", {"how": how, "by": by})]
        case Retried(by) if not is_final(row.service_state):
            return _retried(row), [("order.retried", {"by": by})]
        case Seen(codes, by):
            left = {code: what for code, what in row.unseen.items() if code not in codes}
            gone = sorted(row.unseen.keys() - left.keys())
            seen: Entry = ("order.seen", {"what": gone, "by": by})
            return row.replace(unseen=left), [seen] if gone and by else []
        case Lapsed() if row.closed_at is None and (is_done(row) or is_stale(row, now_ms)):
            return row.replace(closed_at=now_ms), [("order.closed", {"why": "over"})]
    return row, []


def _written(row: OrderRow, event: Written, now_ms: int) -> _Next:
    first = row.ticket in UNWRITTEN
    after = row.replace(
        ticket=TicketState.WRITTEN if first else row.ticket,
        ticket_reference=event.reference or row.ticket_reference,
        written_at=row.written_at or now_ms,
        desired_state=_accepted(row, accepts=event.accepts),
        last_failure="",
    )
    return after, [("order.written", {"reference": event.reference})] if first else []


def _to_cancel(row: OrderRow, event: CancelWanted, now_ms: int) -> _Next:
    """Want the cancel.

    A person may cancel what the POS calls completed, what was given up, and what the service
    refused to cancel before: as long as the service has not finished it.
    """
    by_person = bool(event.by)
    if row.closed_at is not None and not by_person:
        return row, []
    none = event.pos_has_none or row.ticket is TicketState.WAITING
    ticket = TicketState.REFUSED if none else row.ticket
    again = by_person and Call.CANCEL.value in row.refused
    if row.desired_state is OrderState.CANCELLED and not again and row.closed_at is None:
        unseen = _without(row.unseen, CANCELLED_UNSEEN) if by_person else row.unseen
        return row.replace(ticket=ticket, unseen=unseen), []
    if not by_person and is_final(row.desired_state):
        return row.replace(ticket=ticket), []
    unseen = (
        _without(row.unseen, CANCELLED_UNSEEN)
        if by_person
        else _unseen(row, CANCELLED_UNSEEN, now_ms, cause=event.cause)
    )
    after = row.replace(
        desired_state=OrderState.CANCELLED,
        reason_code=event.code,
        message=event.message,
        ticket=ticket,
        closed_at=None,
        refused=_without(row.refused, Call.CANCEL.value),
        unseen=unseen,
    )
    detail = {"code": event.code.value, "message": event.message}
    return after, [("order.to_cancel", detail | ({"by": event.by} if by_person else {}))]


def _withdrawn(row: OrderRow, event: Withdrawn, now_ms: int) -> _Next:
    ticket = TicketState.REFUSED if event.how == "never_written" else TicketState.WITHDRAWN
    left = event.how == "left_to_person"
    unseen = _left(row, event, now_ms) if left else row.unseen
    why = {"why": event.why} if event.why else {}
    entry = ("order.withdrawn", {"how": event.how, **why})
    return row.replace(ticket=ticket, unseen=unseen), [entry]


def _left(row: OrderRow, event: Withdrawn | TicketLeft, now_ms: int) -> Mapping[str, Any]:
    """Note that a person has to see to the ticket, with the POS's own words and remedy."""
    words = {
        "why": f": {event.why.rstrip('.')}" if event.why else "",
        "remedy": event.fix,
    }
    return _unseen(
        row, NOT_WITHDRAWN, now_ms, **{name: each for name, each in words.items() if each}
    )


def _pos_said(row: OrderRow, state: OrderState, now_ms: int) -> _Next:
    """Move the order on; a POS that tells of a ticket has it, or is asked before it is written."""
    ticket = {
        TicketState.WAITING: TicketState.WRITING,
        TicketState.WRITING: TicketState.WRITTEN,
    }.get(row.ticket, row.ticket)
    written = ticket is TicketState.WRITTEN and row.ticket is not TicketState.WRITTEN
    after = row.replace(
        desired_state=merge_wanted(row.desired_state, state),
        ticket=ticket,
        written_at=now_ms if written else row.written_at,
    )
    return after, [("order.written", {})] if written else []


def _delivered(row: OrderRow, now_ms: int) -> _Next:
    """Close it; what was believed of a cancel was wrong."""
    done = OrderState.COMPLETED
    gone = (CANCELLED_UNSEEN, NOT_WITHDRAWN, CLOSED_BY_SERVICE)
    after = row.replace(
        service_state=done,
        desired_state=done,
        closed_at=now_ms,
        ticket=TicketState.REFUSED if row.ticket is TicketState.WAITING else row.ticket,
        unseen=_without(row.unseen, *gone),
    )
    return after, [] if row.service_state is done else [("order.completed", {})]


def _handled(row: OrderRow, how: ByHand, now_ms: int) -> OrderRow:
    """Leave the order to a person. Why the till did not have it (`last_failure`) stays.

    Typed into the till it is accepted like any order that is written; settled it is closed. One
    that is on paper may be over meanwhile.
    """
    row = row.replace(unseen={}, refused=row.refused if how == "typed" else {})
    typed = how == "typed"
    if is_on_paper(row):
        closed = row.closed_at if typed or row.closed_at is not None else now_ms
        wanted = _accepted(row, accepts=typed)
        return row.replace(ticket_reference=BY_HAND, desired_state=wanted, closed_at=closed)
    if typed and row.ticket in UNWRITTEN and row.closed_at is None:
        return row.replace(
            ticket=TicketState.WRITTEN,
            ticket_reference=BY_HAND,
            written_at=now_ms,
            desired_state=_accepted(row, accepts=True),
        )
    return row.replace(closed_at=row.closed_at or now_ms, refused={})


def _retried(row: OrderRow) -> OrderRow:
    """Make refused calls again; take up what was given up, and ask for what was held.

    A cancel that the service refused stays wanted: it is the call that is tried again. Of an order
    that is taken up the POS is asked whether it has it before anything is written.
    """
    cancel_refused = Call.CANCEL.value in row.refused
    after = row.replace(refused={}, last_failure="asked_for" if is_held(row) else row.last_failure)
    given_up = row.desired_state is OrderState.CANCELLED or row.closed_at is not None
    if cancel_refused or not given_up:
        return after
    return after.replace(
        ticket=TicketState.WRITING,
        attempts=min(row.attempts, 1),
        desired_state=OrderState.CREATED
        if row.desired_state is OrderState.CANCELLED
        else row.desired_state,
        reason_code=None,
        message="",
        closed_at=None,
        unseen=_without(row.unseen, CANCELLED_UNSEEN, NOT_WITHDRAWN, CLOSED_BY_SERVICE),
    )


def _accepted(row: OrderRow, *, accepts: bool) -> OrderState:
    return merge_wanted(row.desired_state, OrderState.ACCEPTED) if accepts else row.desired_state


def _unseen(row: OrderRow, code: str, now_ms: int, **detail: object) -> Mapping[str, Any]:
    return {**row.unseen, code: {"at": now_ms, **detail}}


def _without(values: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


# -- what follows from the row alone


def can_be_written(row: OrderRow) -> bool:
    """Return whether the POS is still to get the ticket."""
    return (
        row.closed_at is None
        and row.desired_state is not OrderState.CANCELLED
        and row.ticket in UNWRITTEN
    )


def is_held(row: OrderRow) -> bool:
    """Return whether the order waits for a person to ask for it."""
    return row.ticket in UNWRITTEN and row.last_failure.partition(":")[0] == "held"


def is_to_be_withdrawn(row: OrderRow) -> bool:
    """Return whether the POS has, or may have, the ticket of an order that is cancelled."""
    return row.desired_state is OrderState.CANCELLED and row.ticket in {
        TicketState.WRITING,
        TicketState.WRITTEN,
    }


def may_be_told(row: OrderRow) -> bool:
    """Return whether the service may hear of this order: the POS has it, or it is cancelled."""
    return row.desired_state is OrderState.CANCELLED or row.ticket is TicketState.WRITTEN


def refused_calls(row: OrderRow) -> frozenset[Call]:
    """Return the calls that the service refused for good."""
    return frozenset(Call(each) for each in row.refused)


def call_for(row: OrderRow, standing: Standing) -> Call | None:
    """Return the next call to the service for the order; None where nothing is to be told."""
    if row.closed_at is not None or not may_be_told(row):
        return None
    return next_call(standing, row.desired_state, refused_calls(row))


def reports_due(row: OrderRow) -> list[Call]:
    """Return the calls, but for a cancel, that the service has still to hear, in order."""
    if row.desired_state is OrderState.CANCELLED:
        return []
    return [
        call
        for call in calls_between(row.service_state, row.desired_state)
        if call.value not in row.refused
    ]


def is_done(row: OrderRow) -> bool:
    """Return whether the service has finished the order, and the POS has no ticket too many."""
    if row.service_state is OrderState.CANCELLED:
        return not is_to_be_withdrawn(row)
    return row.service_state is OrderState.COMPLETED


def is_stale(row: OrderRow, now_ms: int) -> bool:
    """Return whether all that was wanted has been told, and nothing has happened for a day."""
    standing = Standing(row.service_state, frozenset({row.service_state}))
    return (
        next_call(standing, row.desired_state) is None
        and row.ticket is TicketState.WRITTEN
        and now_ms - max(row.updated_at, row.received_at) > STALE_MS
    )
