"""Figures about orders: how fast and how well they went, and what an owner wants to know today.

The same SQL with and without a daemon, light to import, like `ledger.snapshot`. Instants are ms
since the epoch, money is minor units. A day is the store's own, in its time zone.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict

from tillbridge.ledger.reading import Query, reading
from tillbridge.model.instant import to_iso
from tillbridge.model.numbers import whole

if TYPE_CHECKING:
    from sqlalchemy import Connection  # takes a third of a second, only for a type

Zones = Mapping[str, tzinfo | None]  # by store; None is this machine's
NO_ZONES: Zones = MappingProxyType({})

SPANS: Mapping[str, int] = {"24h": 86_400_000, "7d": 7 * 86_400_000}
HOURS, DAYS = 24, 7  # of the charts
HOUR_MS = 3_600_000
_DAY_MS = 24 * HOUR_MS
_READ_MS = (DAYS + 2) * _DAY_MS  # includes the same day of last week, even if clocks change

# The total is in what the service sent, as long as that is kept.
_ORDERS = (
    "SELECT store, order_id, received_at, written_at, wanted, reason_code, ticket,"
    " CASE WHEN json_valid(payload) = 1 AND json_type(payload, '$.total_amount') = 'integer'"
    " THEN json_extract(payload, '$.total_amount') END,"
    " CASE WHEN json_valid(payload) = 1 THEN json_extract(payload, '$.currency') END"
    " FROM orders WHERE received_at > ?"
)
_FIRST = "SELECT min(received_at) FROM orders"
_STANDS = "(until IS NULL OR until > ?)"
# As on the 86 board: what staff have taken off, and what the till has off sale.
_OFF_SALE = (
    "SELECT store, count(*) FROM ("  # noqa: S608 -- our own words
    f" SELECT store FROM overrides WHERE {_STANDS} UNION ALL"
    " SELECT store FROM menu_items AS i WHERE (NOT pos_available OR overlaid)"
    " AND CASE WHEN json_valid(body) = 1 THEN json_type(body, '$.available') END = 'false'"
    " AND NOT EXISTS (SELECT 1 FROM overrides AS o"
    f" WHERE o.store = i.store AND o.external_id = i.external_id AND {_STANDS})) AS off"
    " GROUP BY store"
)
_LOG_ENTRIES = (
    "SELECT l.store, l.order_id, l.at, l.event, l.detail FROM orders AS o JOIN order_log AS l"
    " ON l.store = o.store AND l.order_id = o.order_id WHERE o.received_at > ? AND l.event IN"
    " ('order.accepted', 'order.retried', 'order.handled', 'order.to_cancel', 'order.withdrawn',"
    " 'ticket.rejected') ORDER BY l.id"
)
# Reason codes of cancelled orders that were lost, because nobody wanted to cancel them.
_LOST = {"POS_OFFLINE", "OTHER"}


@dataclass(slots=True)
class OrderCourse:
    """The data of one order that the figures are computed from. Instants in ms."""

    received_at: int
    written_at: int | None = None
    accepted_at: int | None = None
    by_person: bool = False  # retried, cancelled, handled, or left to a person
    rejected: bool = False  # by the kitchen
    cancelled: bool = False
    reason_code: str | None = None
    refused: bool = False  # the till does not have it and will not get it
    amount: int | None = None  # minor units; None if unknown
    currency: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether it was cancelled, or will never be in the till."""
        return self.cancelled or self.refused

    @property
    def lost(self) -> bool:
        """Whether it was given up although nobody wanted that."""
        unwanted = self.cancelled and not self.by_person and not self.rejected
        return unwanted and self.written_at is None and self.reason_code in _LOST


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: median, 95th percentile, maximum; and the number of values."""

    median: float
    p95: float
    longest: float
    count: int


class FiguresView(TypedDict):
    """The figures of one store over one span, as the status document has them."""

    orders: int
    time_to_ticket_s: dict[str, float] | None
    time_to_accept_s: dict[str, float] | None
    needed_a_hand: int
    needed_a_hand_share: float | None
    lost: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One store's figures for one span; None if there is nothing to count."""

    orders: int = 0
    to_ticket: Times | None = None
    to_accept: Times | None = None
    needed_a_hand: int = 0
    lost: int = 0

    @property
    def share(self) -> float | None:
        """The share of orders that needed a person, 0 to 1."""
        return None if not self.orders else round(self.needed_a_hand / self.orders, 4)

    def to_json(self) -> FiguresView:
        """Return them as the status document has them."""
        return {
            "orders": self.orders,
            "time_to_ticket_s": None if self.to_ticket is None else asdict(self.to_ticket),
            "time_to_accept_s": None if self.to_accept is None else asdict(self.to_accept),
            "needed_a_hand": self.needed_a_hand,
            "needed_a_hand_share": self.share,
            "lost": self.lost,
        }


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """One store's figures by span, with the names in `SPANS`; and its sales."""

    by_span: Mapping[str, Figures] = field(
        default_factory=lambda: {name: Figures() for name in SPANS}
    )
    sales: "Sales | None" = None
    off_sale: int = 0  # items and variants, now

    def to_json(self) -> dict[str, FiguresView]:
        """Return them by span."""
        return {name: figures.to_json() for name, figures in self.by_span.items()}


def figures_of(courses: Sequence[OrderCourse]) -> Figures:
    """Return the figures of these orders."""
    tickets = [each.written_at - each.received_at for each in courses if each.written_at]
    accepts = [each.accepted_at - each.received_at for each in courses if each.accepted_at]
    lost = sum(each.lost for each in courses)
    by_person = sum(each.by_person for each in courses)
    return Figures(len(courses), _times(tickets), _times(accepts), by_person + lost, lost)


# -- sales: today and its hours, the same day a week ago, the days of a week


@dataclass(frozen=True, slots=True)
class Totals:
    """Orders received from `from_ms` on, in an hour, a day, or until now.

    `orders` includes cancelled ones; `revenue`, which is by currency, does not.
    """

    from_ms: int
    orders: int = 0
    cancelled: int = 0
    revenue: Mapping[str, int] = field(default_factory=dict)


class SoldView(TypedDict):
    """Orders, and their revenue: minor units by currency, without cancelled orders."""

    orders: int
    revenue: dict[str, int]


class TodayView(SoldView):
    """A store's day since midnight; `cancelled` by reason code, "" if nobody gave one.

    The medians are seconds since the delivery, None if there is nothing to count; `last_week` is
    the same weekday last week until the same time, None if the bridge is younger than that.
    """

    since: str
    cancelled: dict[str, int]
    median_to_till_s: float | None
    median_to_accept_s: float | None
    last_week: SoldView | None


@dataclass(frozen=True, slots=True)
class Sales:
    """What came in today, and the data of the charts.

    `last_week` is the same weekday last week until the same time; None if the ledger is younger.
    `causes` are the reason codes of today's cancelled orders, "" if nobody gave one; the medians
    (seconds) are of today's orders. `hours` follow the wall clock and end with this hour; `days`
    end with today.
    """

    today: Totals
    last_week: Totals | None = None
    causes: Mapping[str, int] = field(default_factory=dict)
    to_till_s: float | None = None
    to_accept_s: float | None = None
    hours: tuple[Totals, ...] = ()
    days: tuple[Totals, ...] = ()
    zone: tzinfo | None = None

    def to_json(self) -> TodayView:
        """Return today as the status document has it."""
        then = self.last_week
        return {
            "since": to_iso(self.today.from_ms),
            "orders": self.today.orders,
            "revenue": dict(self.today.revenue),
            "cancelled": dict(self.causes),
            "median_to_till_s": self.to_till_s,
            "median_to_accept_s": self.to_accept_s,
            "last_week": (
                None if then is None else {"orders": then.orders, "revenue": dict(then.revenue)}
            ),
        }


def sales_of(
    courses: Iterable[OrderCourse],
    zone: tzinfo | None,
    now_ms: int,
    known_since: int | None = None,
) -> Sales:
    """Return the sales of these orders; `known_since` is when the ledger's first one came."""
    known = sorted(courses, key=lambda each: each.received_at)
    received = [each.received_at for each in known]

    def totals_of(from_ms: int, until_ms: int | None) -> Totals:
        end = None if until_ms is None else bisect_left(received, until_ms)
        return _totals(from_ms, known[bisect_left(received, from_ms) : end])

    midnight = _midnight(now_ms, zone, 0)
    then, then_end = _midnight(now_ms, zone, DAYS), _a_week_ago(now_ms, zone)
    today = known[bisect_left(received, midnight) :]
    figures = figures_of(today)
    is_known = known_since is not None and known_since <= then_end
    hours = [_this_hour(now_ms, zone) - back * HOUR_MS for back in reversed(range(HOURS))]
    days = [_midnight(now_ms, zone, back) for back in reversed(range(DAYS))]
    return Sales(
        today=_totals(midnight, today),
        last_week=totals_of(then, then_end) if is_known else None,
        causes=Counter(each.reason_code or "" for each in today if each.is_lost),
        to_till_s=_median(figures.to_ticket),
        to_accept_s=_median(figures.to_accept),
        hours=tuple(totals_of(*span) for span in _spans(hours)),
        days=tuple(totals_of(*span) for span in _spans(days)),
        zone=zone,
    )


def _median(times: Times | None) -> float | None:
    return None if times is None else times.median


def _totals(from_ms: int, courses: Sequence[OrderCourse]) -> Totals:
    revenue: Counter[str] = Counter()
    for each in courses:
        if each.amount is not None and not each.is_lost:
            revenue[each.currency] += each.amount
    cancelled = sum(each.is_lost for each in courses)
    return Totals(from_ms, len(courses), cancelled, dict(revenue))


def _spans(begins: Sequence[int]) -> Iterable[tuple[int, int | None]]:
    return zip(begins, [*begins[1:], None], strict=True)


def _midnight(now_ms: int, zone: tzinfo | None, days_ago: int) -> int:
    day = _there(now_ms, zone).date() - timedelta(days=days_ago)
    return _instant(datetime.combine(day, time()), zone)


def _a_week_ago(now_ms: int, zone: tzinfo | None) -> int:
    """Return when the wall clock showed the same time a week ago."""
    there = _there(now_ms, zone)
    return _instant(there.replace(tzinfo=None) - timedelta(days=DAYS), zone)


def _this_hour(now_ms: int, zone: tzinfo | None) -> int:
    """Return when this hour began; by subtraction, because an hour may occur twice."""
    there = _there(now_ms, zone)
    return now_ms - (there.minute * 60 + there.second) * 1000 - there.microsecond // 1000


def _there(at_ms: int, zone: tzinfo | None) -> datetime:
    return (
        datetime.fromtimestamp(at_ms // 1000, UTC)
        .astimezone(zone)
        .replace(microsecond=at_ms % 1000 * 1000)
    )


def _instant(naive: datetime, zone: tzinfo | None) -> int:
    there = naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
    return round(there.timestamp() * 1000)


# -- how they are read


def store_zone(timezone: object, facts: Mapping[str, Any]) -> tzinfo | None:
    """Return a store's time zone: the configured one, that of its hours, or None.

    `facts` are the store's.
    """
    hours = facts.get("store_hours")
    name = timezone or (hours.get("timezone") if isinstance(hours, dict) else None)
    if not isinstance(name, str) or not name:
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 -- few stores name a time zone

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # from a file that nobody has checked
        return None


def read_figures(
    path: Path, now_ms: int, zones: Zones = NO_ZONES, *, url: str | None = None
) -> dict[str, StoreFigures]:
    """Read them without a daemon. Raises the same as `reading`."""
    with reading(path, url) as query:
        return _read(query, now_ms, zones)


def take_figures(
    connection: "Connection", now_ms: int, zones: Zones = NO_ZONES
) -> dict[str, StoreFigures]:
    """Return the same in a running daemon, for the stores in `zones` and those with orders."""
    from tillbridge.ledger.database import plain_query  # noqa: PLC0415 -- needs SQLAlchemy

    run = plain_query(connection)

    def query(*asked: Any) -> Iterable[Any]:  # noqa: ANN401 -- as the driver takes them
        # Fetching rows one by one takes several times as long.
        return run(*asked).fetchall()

    return _read(query, now_ms, zones)


def _read(query: Query, now_ms: int, zones: Zones) -> dict[str, StoreFigures]:
    after = (now_ms - _READ_MS,)
    first = next((at for (at,) in query(_FIRST)), None)
    off_sale = dict(query(_OFF_SALE, (now_ms, now_ms)))
    courses: dict[tuple[str, str], OrderCourse] = {}
    for (
        store,
        order_id,
        received_at,
        written_at,
        desired,
        reason,
        ticket,
        amount,
        currency,
    ) in query(_ORDERS, after):
        courses[store, order_id] = OrderCourse(
            received_at,
            written_at,
            cancelled=desired == "cancelled",
            reason_code=reason,
            refused=ticket == "refused",
            amount=whole(amount),
            currency=currency.upper() if isinstance(currency, str) else "",
        )
    for store, order_id, at, event, detail in query(_LOG_ENTRIES, after):
        if (course := courses.get((store, order_id))) is not None:
            _apply(course, at, event, detail)
    by_store: dict[str, list[OrderCourse]] = {name: [] for name in zones}
    for (store, _order), course in courses.items():
        by_store.setdefault(store, []).append(course)
    return {
        store: StoreFigures(
            {
                name: figures_of([each for each in all_ if each.received_at > now_ms - span])
                for name, span in SPANS.items()
            },
            sales_of(all_, zones.get(store), now_ms, first),
            off_sale.get(store, 0),
        )
        for store, all_ in by_store.items()
    }


def _apply(course: OrderCourse, at: int, event: str, detail: str) -> None:
    match event:
        case "order.accepted":
            course.accepted_at = course.accepted_at or at
        case "ticket.rejected":
            course.rejected = True
        case "order.to_cancel":
            course.by_person |= bool(
                json.loads(detail).get("by")
            )  # who asked for it; "" for the bridge
        case "order.withdrawn":
            course.by_person |= json.loads(detail).get("how") == "left_to_person"
        case _:
            course.by_person = True


def _times(took_ms: Sequence[int]) -> Times | None:
    """Return the times, ignoring those during which the clock was set back."""
    if not took_ms:
        return None
    seconds = sorted(max(0, each) / 1000 for each in took_ms)
    return Times(_rank(seconds, 50), _rank(seconds, 95), seconds[-1], len(seconds))


def _rank(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that this percentage does not exceed (nearest rank)."""
    return values[max(0, -(-len(values) * percent // 100) - 1)]
