"""Pages of orders, newest first, with the totals of their days; and the steps of one order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, tzinfo
from typing import Literal, TypedDict

from sqlalchemy import Connection

from tillbridge.ledger import orders
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.instant import ONE_DAY, day_of, day_starts
from tillbridge.model.order import OrderState
from tillbridge.orders.views import BriefOrder, order_view, worth_view

SEEN = "orders_seen"  # the fact: up to when somebody has looked at new orders (ms)
_NEW_MS = 4 * 3_600_000


class ListedOrder(BriefOrder):
    """An order of a page, its day where the store is, and whether it is new to whoever looks."""

    new: bool
    day: str


class DayTotals(TypedDict):
    """The orders of a day (`2026-11-23`, where the store is) that fit what was asked for.

    `count` includes the cancelled ones, `revenue` (minor units by currency) does not. `amounts`
    says whether the amounts of all are still known.
    """

    day: str
    count: int
    cancelled: int
    revenue: dict[str, int]
    amounts: bool


class OrdersPage(TypedDict):
    """A page of orders, newest first; `unseen` counts the new ones that nobody has looked at.

    `days` has the totals of each day that is on the page, the newest first; `today` is the day
    where the store is.
    """

    today: str
    days: list[DayTotals]
    orders: list[ListedOrder]
    count: int
    page: int
    pages: int
    unseen: int


def orders_page(
    connection: Connection,
    wanted: orders.OrderFilter,
    page: int,
    now: int,
    zone: tzinfo | None = None,
) -> OrdersPage:
    """Return a page of orders, newest first; days are those of `zone` (None: this machine's)."""
    found = orders.find_page(connection, wanted, page=page)
    # What is older than some hours needs no more noise.
    seen = max(_seen_at(get_fact(connection, "", SEEN)), now - _NEW_MS)
    return {
        "orders": [
            {
                **order_view(row, found.handled.get(row.order_id)),
                "new": row.received_at > seen,
                "day": day_of(row.received_at, zone).isoformat(),
                **worth_view(row),
            }
            for row in found.rows
        ],
        "days": _day_totals(connection, wanted, [row.received_at for row in found.rows], zone),
        "today": day_of(now, zone).isoformat(),
        "count": found.count,
        "page": page,
        "pages": max(1, -(-found.count // orders.PER_PAGE)),
        "unseen": orders.received_since(connection, seen, stores=wanted.stores),
    }


def _day_totals(
    connection: Connection,
    wanted: orders.OrderFilter,
    shown: Sequence[int],
    zone: tzinfo | None,
) -> list[DayTotals]:
    """Return the totals of the days of these instants (ms), of all orders that are wanted."""
    if not shown:
        return []
    first, last = day_of(min(shown), zone), day_of(max(shown), zone)
    days = {day_of(at, zone) for at in shown}
    span = replace(wanted, since=day_starts(first, zone), until=day_starts(last + ONE_DAY, zone))
    totals: dict[date, DayTotals] = {}
    for sold in orders.sold(connection, span):
        day = day_of(sold.received_at, zone)
        if day not in days:
            continue
        of_day = totals.setdefault(
            day,
            {"day": day.isoformat(), "count": 0, "cancelled": 0, "revenue": {}, "amounts": True},
        )
        of_day["count"] += 1
        if sold.cancelled:
            of_day["cancelled"] += 1
        elif sold.total is None:
            of_day["amounts"] = False
        else:
            revenue = of_day["revenue"]
            revenue[sold.currency] = revenue.get(sold.currency, 0) + sold.total
    return [totals[day] for day in sorted(totals, reverse=True)]


def _seen_at(fact: object) -> int:
    at = fact.get("at") if isinstance(fact, Mapping) else None
    return at if isinstance(at, int) else 0


# -- the steps of an order, with how long each took


Reported = Literal["", "yes", "pending", "refused"]


class Step(TypedDict):
    """A step: when it happened, how long (ms) after the arrival and after the step before it.

    `key` is "placed", "received", "saved", "in_till", "accepted", "preparing", "ready",
    "completed" or "cancelled". `reported` is "" for a step that the service need not hear of;
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
        told = first.get(f"order.{key}")
        if at is None and key == "accepted" and told is not None:
            at = written if written is not None and written <= told else told
        at = told if at is None else at
        if at is not None:
            reported_ms = None if told is None else max(0, told - at)
            found.append((key, at, _reported(row, key, state, told), reported_ms))
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


def _reported(row: OrderRow, key: str, state: OrderState, told: int | None) -> Reported:
    if told is not None:
        return "yes"
    if _CALLS.get(key, key) in row.refused:
        return "refused"
    # What came after it implies it: the service skips what it need not hear.
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
