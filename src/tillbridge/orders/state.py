"""An order from delivery to end as one function: `decide(row, event) -> Change`.

Pure: takes a row and an event, returns the new row and its log entries. `orders.repository`
commits the change. The writer's next work (`phase_of`), the notifier's next call (`call_for`) and
the problems that people see (`problems_of`) all follow from the new row alone.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import BY_HAND, UNWRITTEN, is_on_paper
from tillbridge.model.order import Order, OrderState
from tillbridge.orders.events import (
    ByHand,
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

_PATH: tuple[OrderState, ...] = tuple(
    state for state in OrderState if state is not OrderState.CANCELLED
)
RANK = {state: rank for rank, state in enumerate(_PATH)}
# The call that follows on a state: the state it leaves, and the one it leads to.
FORWARD = dict(zip(_PATH, (Call.ACCEPT, Call.PREPARING, Call.READY), strict=False))
LEAVES = {call: state for state, call in FORWARD.items()}
LEADS_TO = dict(zip(FORWARD.values(), _PATH[1:], strict=False)) | {
    Call.CANCEL: OrderState.CANCELLED
}
FINAL = frozenset({OrderState.COMPLETED, OrderState.CANCELLED})

# For tills that never say "ready", and a service that never says "delivered": closed after a day.
STALE_MS = 24 * 3600 * 1000

CANCELLED_UNSEEN = "order.cancelled"
NOT_WITHDRAWN = "order.not_withdrawn"
TAKEN_BACK = "order.ticket_taken_back"
CLOSED_BY_SERVICE = "order.closed_by_service"

# The earliest state it can be in.
_BY_ACCEPTS = {True: OrderState.ACCEPTED, False: OrderState.CREATED}


Entry = tuple[str, dict[str, Any]]
_Next = tuple[OrderRow, list[Entry]]


@dataclass(frozen=True, slots=True)
class Change:
    """What an event leads to: the row before and after, and new entries of the order's log.

    `before` is None for a new order; `order` is the parsed payload, if it has just been parsed.
    `event` is None for an order that is new or resumed after a restart. `logged` is only for the
    program's log.
    """

    before: OrderRow | None
    after: OrderRow
    entries: tuple[Entry, ...] = ()
    event: Event | None = field(default=None, compare=False)
    order: Order | None = field(default=None, compare=False)
    logged: Mapping[str, object] = field(default_factory=dict, compare=False)


def decide(row: OrderRow, event: Event, now_ms: int) -> Change:
    """Return how `event` changes the order. Total: an event that comes too late changes nothing."""
    after, entries = _next(row, event, now_ms)
    if after.service_state in FINAL and after.refused:
        after = after.replace(refused={})
    settles = isinstance(event, CancelRequested | Withdrawn | ServiceKnows)
    if settles and after.closed_at is None and is_done(after):
        after = after.replace(closed_at=now_ms)
    return Change(row, after, tuple(entries), event)


def _next(row: OrderRow, event: Event, now_ms: int) -> _Next:  # noqa: C901, PLR0911, PLR0912 -- one case an event: this is the list of them
    waits = row.ticket in UNWRITTEN
    match event:
        case WriteBegun() if can_be_written(row) and row.ticket is TicketState.WAITING:
            return row.replace(ticket=TicketState.WRITING, attempts=1), []
        case Written(reference, accepts):
            after = row.replace(
                ticket=TicketState.WRITTEN if waits else row.ticket,
                ticket_reference=reference or row.ticket_reference,
                written_at=row.written_at or now_ms,
                desired_state=merged(row.desired_state, _BY_ACCEPTS[accepts]),
                last_failure="",
            )
            return after, [("order.written", {"reference": reference})] if waits else []
        case Printed(reference, why, accepts) if waits:
            after = row.replace(
                ticket=TicketState.WRITTEN,
                ticket_reference=reference,
                written_at=now_ms,
                desired_state=merged(row.desired_state, _BY_ACCEPTS[accepts]),
            )
            return after, [("order.on_paper", {"why": why})]
        case WriteFailed(note, counts) if waits:
            after = row.replace(attempts=row.attempts + counts)
            # On hold, it waits for a person first of all.
            if note == row.last_failure or is_held(row):
                return after, []
            return after.replace(last_failure=note), [("order.wait", {"reason": note})]
        case Held(note) if waits:
            entries: list[Entry] = [] if is_held(row) else [("order.held", {})]
            return row.replace(last_failure=note), entries
        case CancelRequested() if row.service_state not in FINAL:
            return _to_cancel(row, event, now_ms)
        case Withdrawn(how, why) if is_to_be_withdrawn(row):
            ticket = TicketState.REFUSED if how == "never_written" else TicketState.WITHDRAWN
            unseen = _left(row, event, now_ms) if how == "left_to_person" else row.unseen
            detail = {"how": how} | ({"why": why} if why else {})
            return row.replace(ticket=ticket, unseen=unseen), [("order.withdrawn", detail)]
        case TicketLeft() if row.desired_state is OrderState.CANCELLED:
            return row.replace(unseen=_left(row, event, now_ms)), [("ticket.left", {})]
        case SurplusTicketCancelled(reference, record, why):
            ticket_name = f"{reference} ({record})" if record != reference else reference
            unseen = _unseen(row, TAKEN_BACK, now_ms, ticket=ticket_name, why=why)
            entry = ("ticket.taken_back", {"record": record, "why": why})
            return row.replace(unseen=unseen), [entry]
        case ServiceKnows(state, name, detail) if row.service_state is not OrderState.COMPLETED:
            rank = RANK.get(state, -1)
            refused = {
                call: reason
                for call, reason in row.refused.items()
                if RANK.get(LEADS_TO[Call(call)], len(RANK)) > rank
            }
            # The cancel may have been under way when a person had the order resumed.
            is_gone = state is OrderState.CANCELLED and row.desired_state not in FINAL
            desired = OrderState.CANCELLED if is_gone else row.desired_state
            after = row.replace(service_state=state, desired_state=desired, refused=refused)
            return after, [(name, dict(detail))]
        case CallRefused(call, reason, detail) if row.closed_at is None:
            refused = {**row.refused, call.value: reason}
            entry = ("order.call_refused", {"call": call.value, **detail})
            return row.replace(refused=refused), [entry]
        case ReportsTooLate(reason) if row.closed_at is None:
            late = calls_ahead(row.service_state, row.desired_state, row.refused)
            refused = {**row.refused, **{call.value: reason for call in late}}
            return row.replace(refused=refused), [
                ("order.too_late", {"call": call.value}) for call in late
            ]
        case ServiceClosed(detail):
            unseen = _unseen(row, CLOSED_BY_SERVICE, now_ms)
            after = row.replace(closed_at=now_ms, refused={}, unseen=unseen)
            return after, [("order.closed", dict(detail))]
        case TicketMoved(status) if row.closed_at is None and row.service_state not in FINAL:
            return _ticket_moved(row, OrderState(status), now_ms)
        case Delivered() if row.service_state is not OrderState.COMPLETED or row.closed_at is None:
            # What we assumed about a cancel was wrong.
            after = row.replace(
                service_state=OrderState.COMPLETED,
                desired_state=OrderState.COMPLETED,
                closed_at=now_ms,
                ticket=TicketState.REFUSED if row.ticket is TicketState.WAITING else row.ticket,
                unseen=_without(row.unseen, CANCELLED_UNSEEN, NOT_WITHDRAWN, CLOSED_BY_SERVICE),
            )
            known = row.service_state is OrderState.COMPLETED
            return after, [] if known else [("order.completed", {})]
        case Handled(how, by) if row.closed_at is None or is_on_paper(row) or row.unseen:
            return _handled(row, how, now_ms), [("order.handled", {"how": how, "by": by})]
        case Retried(by) if row.service_state not in FINAL:
            return _retried(row), [("order.retried", {"by": by})]
        case Seen(codes, by):
            gone = sorted(codes & row.unseen.keys())
            seen: Entry = ("order.seen", {"what": gone, "by": by})
            return row.replace(unseen=_without(row.unseen, *gone)), [seen] if gone and by else []
        case Lapsed() if row.closed_at is None and (is_done(row) or is_stale(row, now_ms)):
            return row.replace(closed_at=now_ms), [("order.closed", {"why": "over"})]
        case Reopened() if row.service_state not in FINAL:
            return row.replace(closed_at=None), []
    return row, []


def _to_cancel(row: OrderRow, event: CancelRequested, now_ms: int) -> _Next:
    """Request the cancel.

    A person may cancel an order that the POS calls completed, that was given up, or whose cancel
    the service refused before, as long as the service has not finished it.
    """
    by_person = bool(event.by)
    if row.closed_at is not None and not by_person:
        return row, []
    none = event.pos_has_none or row.ticket is TicketState.WAITING
    ticket = TicketState.REFUSED if none else row.ticket
    if by_person:
        unseen = _without(row.unseen, CANCELLED_UNSEEN)
    else:
        unseen = _unseen(row, CANCELLED_UNSEEN, now_ms, cause=event.cause)
    again = by_person and Call.CANCEL in row.refused
    if row.desired_state is OrderState.CANCELLED and not again and row.closed_at is None:
        return row.replace(ticket=ticket, unseen=unseen if by_person else row.unseen), []
    if not by_person and row.desired_state in FINAL:
        return row.replace(ticket=ticket), []
    after = row.replace(
        desired_state=OrderState.CANCELLED,
        reason_code=event.code,
        message=event.message,
        ticket=ticket,
        closed_at=None,
        refused=_without(row.refused, Call.CANCEL),
        unseen=unseen,
    )
    detail = {"code": event.code.value, "message": event.message}
    return after, [("order.to_cancel", detail | ({"by": event.by} if by_person else {}))]


def _left(row: OrderRow, event: Withdrawn | TicketLeft, now_ms: int) -> Mapping[str, Any]:
    """Note that a person has to remove the ticket, with the POS's own reason and remedy."""
    detail = {"why": f": {event.why.rstrip('.')}"} if event.why else {}
    if event.fix:
        detail["remedy"] = event.fix
    return _unseen(row, NOT_WITHDRAWN, now_ms, **detail)


def _ticket_moved(row: OrderRow, state: OrderState, now_ms: int) -> _Next:
    """Advance the order; a POS that knows the ticket has it, or is asked before writing it."""
    ticket = {
        TicketState.WAITING: TicketState.WRITING,
        TicketState.WRITING: TicketState.WRITTEN,
    }.get(row.ticket, row.ticket)
    written = ticket is TicketState.WRITTEN and row.ticket is not TicketState.WRITTEN
    after = row.replace(
        desired_state=merged(row.desired_state, state),
        ticket=ticket,
        written_at=now_ms if written else row.written_at,
    )
    return after, [("order.written", {})] if written else []


def _handled(row: OrderRow, how: ByHand, now_ms: int) -> OrderRow:
    """Leave the order to a person. The reason why the till did not have it (`last_failure`) stays.

    If typed into the till, it is accepted like any order that was written; if settled, it is
    closed. An order that was printed may be finished by now.
    """
    typed = how == "typed"
    row = row.replace(unseen={}, refused=row.refused if typed else {})
    if is_on_paper(row):
        closed = row.closed_at if typed or row.closed_at is not None else now_ms
        desired = merged(row.desired_state, _BY_ACCEPTS[typed])
        return row.replace(ticket_reference=BY_HAND, desired_state=desired, closed_at=closed)
    if typed and row.ticket in UNWRITTEN and row.closed_at is None:
        return row.replace(
            ticket=TicketState.WRITTEN,
            ticket_reference=BY_HAND,
            written_at=now_ms,
            desired_state=merged(row.desired_state, OrderState.ACCEPTED),
        )
    return row.replace(closed_at=row.closed_at or now_ms, refused={})


def _retried(row: OrderRow) -> OrderRow:
    """Repeat refused calls; resume what was given up, and release what was on hold.

    A cancel that the service refused stays desired: it is the call to repeat. If an order is
    resumed, the POS is asked whether it has the ticket before anything is written.
    """
    after = row.replace(refused={}, last_failure="asked_for" if is_held(row) else row.last_failure)
    cancelled = row.desired_state is OrderState.CANCELLED
    if Call.CANCEL in row.refused or not (cancelled or row.closed_at is not None):
        return after
    return after.replace(
        ticket=TicketState.WRITING,
        attempts=min(row.attempts, 1),
        desired_state=OrderState.CREATED if cancelled else row.desired_state,
        reason_code=None,
        message="",
        closed_at=None,
        unseen=_without(row.unseen, CANCELLED_UNSEEN, NOT_WITHDRAWN, CLOSED_BY_SERVICE),
    )


def merged(desired: OrderState, news: OrderState) -> OrderState:
    """Return the desired state of the order after `news` from the POS.

    It never goes back: a late "preparing" after "ready" changes nothing. Cancelled and completed
    are final, whichever came first.
    """
    if desired in FINAL or news is OrderState.CANCELLED:
        return desired if desired in FINAL else news
    return max(desired, news, key=RANK.__getitem__)


def _unseen(row: OrderRow, code: str, now_ms: int, **detail: object) -> Mapping[str, Any]:
    return {**row.unseen, code: {"at": now_ms, **detail}}


def _without(values: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


# -- what follows from the row alone


class Phase(StrEnum):
    """What an order waits for at its POS."""

    WRITE = "write"
    CONFIRM = "confirm"  # written; the POS has to accept it
    WITHDRAW = "withdraw"  # cancelled; its ticket has to leave the POS


def phase_of(row: OrderRow, accept: Literal["when_written", "when_confirmed"]) -> Phase | None:
    """Return what the order waits for; None if there is nothing left to do at the POS."""
    if row.closed_at is not None:
        return None
    if row.desired_state is OrderState.CANCELLED:
        return Phase.WITHDRAW if is_to_be_withdrawn(row) else None
    if row.ticket in UNWRITTEN:
        return Phase.WRITE
    unconfirmed = accept == "when_confirmed" and row.desired_state is OrderState.CREATED
    return Phase.CONFIRM if row.ticket is TicketState.WRITTEN and unconfirmed else None


def call_for(row: OrderRow, at: OrderState | None = None) -> Call | None:
    """Return the next call to the service for the order; None if there is nothing to report.

    The service is told about an order once the POS has it, or when it is cancelled. `at` is the
    state it may have at the service, if that is not the one in the row.
    """
    cancelled = row.desired_state is OrderState.CANCELLED
    if row.closed_at is not None or not (cancelled or row.ticket is TicketState.WRITTEN):
        return None
    return next_call(at or row.service_state, row.desired_state, row.refused)


def next_call(
    at: OrderState, desired: OrderState, refused: Container[str] = frozenset()
) -> Call | None:
    """Return the one call that comes next on the way from `at` to `desired`, or None."""
    if desired is OrderState.CANCELLED:
        return None if at in FINAL or Call.CANCEL in refused else Call.CANCEL
    return next(iter(calls_ahead(at, desired, refused)), None)


def calls_ahead(at: OrderState, desired: OrderState, refused: Container[str]) -> list[Call]:
    """Return the calls that are still to be made, in order, except a cancel.

    Steps are not skipped: from created to ready takes accept, preparing and ready, in this order.
    An order that the POS has completed goes to ready and then waits for order.delivered. A call
    that the service has `refused` for good is left out; the ones after it are still made.
    """
    if at in FINAL or desired is OrderState.CANCELLED:
        return []
    ahead = _PATH[RANK[at] : RANK[desired]]
    return [FORWARD[each] for each in ahead if each in FORWARD and FORWARD[each] not in refused]


def can_be_written(row: OrderRow) -> bool:
    """Return whether the ticket still has to be written to the POS."""
    return phase_of(row, "when_written") is Phase.WRITE


def is_held(row: OrderRow) -> bool:
    """Return whether the order waits for a person to release it."""
    return row.ticket in UNWRITTEN and row.last_failure.partition(":")[0] == "held"


def is_to_be_withdrawn(row: OrderRow) -> bool:
    """Return whether the POS has, or may have, the ticket of a cancelled order."""
    begun = row.ticket in {TicketState.WRITING, TicketState.WRITTEN}
    return row.desired_state is OrderState.CANCELLED and begun


def is_done(row: OrderRow) -> bool:
    """Return whether the service has finished the order, and the POS has no ticket to remove."""
    if row.service_state is OrderState.CANCELLED:
        return not is_to_be_withdrawn(row)
    return row.service_state is OrderState.COMPLETED


def is_stale(row: OrderRow, now_ms: int) -> bool:
    """Return whether everything desired is reported, and nothing has happened for a day.

    An order that is not accepted yet is never stale: it has a deadline, which no clock moves. Nor
    can a wall clock be trusted with the others: news of one that has lapsed reopens it.
    """
    return (
        next_call(row.service_state, row.desired_state) is None
        and row.service_state is not OrderState.CREATED
        and row.ticket is TicketState.WRITTEN
        and now_ms - max(row.updated_at, row.received_at) > STALE_MS
    )
