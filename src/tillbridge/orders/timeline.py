"""An order's steps from its arrival to its end, and whether the service knows of each. Pure.

Instants are ms since the epoch. A step that has not happened yet has no instant and is left out,
except for the next one that the bridge waits for.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.order import OrderState

Reported = Literal["", "yes", "pending", "refused"]


class Step(TypedDict):
    """A step: when it happened, how long (ms) after the arrival and after the step before it.

    `key` is "placed", "received", "saved", "in_till", "accepted", "preparing", "ready",
    "completed" or "cancelled". `reported` is "" for a step that is not reported to the service;
    `reported_ms` is how long after the step it was reported. `at` None: not yet.
    """

    key: str
    at: int | None
    after_ms: int | None
    took_ms: int | None
    reported: Reported
    reported_ms: int | None


# The steps that are reported to the service, with the log's events of the till and of the report.
_REPORTED = (
    ("accepted", OrderState.ACCEPTED, ("ticket.accepted",)),
    ("preparing", OrderState.PREPARING, ("ticket.preparing",)),
    ("ready", OrderState.READY, ("ticket.ready",)),
    ("cancelled", OrderState.CANCELLED, ("order.to_cancel",)),
)
_CALLS = {"accepted": "accept", "cancelled": "cancel"}  # as `OrderRow.refused` names them
_ORDER = {state: place for place, state in enumerate(OrderState)}


def timeline(row: OrderRow, entries: Sequence[LogEntry]) -> list[Step]:
    """Return the steps of an order, in the order in which they happened."""
    first: dict[str, int] = {}
    for each in entries:
        first.setdefault(each.event, each.at)
    written = _written_at(row, first)
    found: list[tuple[str, int | None, Reported, int | None]] = []
    if row.placed_at is not None and row.placed_at <= row.received_at:
        found.append(("placed", row.placed_at, "", None))
    found.append(("received", row.received_at, "", None))
    if "order.received" in first:
        found.append(("saved", first["order.received"], "", None))
    if written is not None:
        found.append(("in_till", written, "", None))
    for key, state, events in _REPORTED:
        at = min((first[each] for each in events if each in first), default=None)
        reported_at = first.get(f"order.{key}")
        if at is None and key == "accepted" and reported_at is not None:
            at = written if written is not None and written <= reported_at else reported_at
        at = reported_at if at is None else at
        if at is not None:
            reported_ms = None if reported_at is None else max(0, reported_at - at)
            found.append((key, at, _reported(row, key, state, reported_at), reported_ms))
    if (over := first.get("order.completed")) is not None:
        found.append(("completed", over, "", None))
    found.sort(key=lambda each: (each[1] or 0, _place(each[0])))
    if waits_for := _waits_for(row, {each[0] for each in found}):
        found.append((waits_for, None, "", None))
    return _steps(found, row.received_at)


def _written_at(row: OrderRow, first: Mapping[str, int]) -> int | None:
    if row.written_at is not None:
        return row.written_at
    return first.get("order.written")


def _reported(row: OrderRow, key: str, state: OrderState, reported_at: int | None) -> Reported:
    if reported_at is not None:
        return "yes"
    if _CALLS.get(key, key) in row.refused:
        return "refused"
    # A later report implies it: such a step is not reported.
    if row.service_state is state or _ORDER[row.service_state] > _ORDER[state]:
        return "yes"
    return "pending" if row.closed_at is None else ""


def _waits_for(row: OrderRow, known: set[str]) -> str:
    """Return the next step that the bridge waits for; "" where it waits for none."""
    if row.closed_at is not None:
        return ""
    if row.desired_state is OrderState.CANCELLED:
        return "" if "cancelled" in known else "cancelled"
    if row.ticket in {TicketState.WAITING, TicketState.WRITING} and "in_till" not in known:
        return "in_till"
    return "" if "accepted" in known else "accepted"


_PLACES = (
    "placed received saved in_till accepted preparing ready completed cancelled".split()
)  # fmt: skip


def _place(key: str) -> int:
    return _PLACES.index(key)


def _steps(
    found: Sequence[tuple[str, int | None, Reported, int | None]], received_at: int
) -> list[Step]:
    steps: list[Step] = []
    before: int | None = None
    for key, at, reported, reported_ms in found:
        steps.append(
            {
                "key": key,
                "at": at,
                "after_ms": None if at is None else at - received_at,
                "took_ms": None if at is None or before is None else max(0, at - before),
                "reported": reported,
                "reported_ms": reported_ms,
            }
        )
        before = at if at is not None else before
    return steps
