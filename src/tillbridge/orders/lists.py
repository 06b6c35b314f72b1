"""Pages of orders, newest first, with the totals of their days. Read within one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, tzinfo
from typing import TypedDict

from sqlalchemy import Connection

from tillbridge.ledger import orders
from tillbridge.ledger.facts import get_fact
from tillbridge.model.instant import ONE_DAY, day_of, day_starts
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
