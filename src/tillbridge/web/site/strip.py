"""The last 24 hours as a strip: orders and failures by the hour, and spans without a link. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

HOURS = 24
WIDTH, HEIGHT, LANE = 960, 96, 12  # of the drawing, in its own units
_BAR = WIDTH / HOURS
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour: where its bars are drawn, and its numbers. `hour` is this machine's time."""

    x: float
    width: float
    orders_y: float
    orders_height: float
    failed_y: float
    failed_height: float
    orders: int
    failed: int
    hour: str


@dataclass(frozen=True, slots=True)
class Span:
    """A time without a link, in the lane below the bars. Instants are ms since the epoch."""

    x: float
    width: float
    what: str
    store: str
    since: int
    until: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """The strip, ready to be drawn."""

    bars: Sequence[Bar]
    spans: Sequence[Span]
    orders: int
    failed: int
    most: int


def drawn(day: Mapping[str, Any]) -> Drawn:
    """Return the drawing of a day (`overview()`'s `day`): hours oldest first, spans as told."""
    begin = int(day["from_ms"])
    hours = list(day["hours"])
    most = max([1, *(each["orders"] + each["failed"] for each in hours)])
    bars = [_bar(place, each, most, begin) for place, each in enumerate(hours)]
    spans = [_span(each, begin) for each in day["spans"]]
    return Drawn(
        bars,
        [each for each in spans if each.width > 0],
        sum(each["orders"] for each in hours),
        sum(each["failed"] for each in hours),
        most,
    )


def _bar(place: int, hour: Mapping[str, Any], most: int, begin: int) -> Bar:
    room = HEIGHT - LANE - 4
    good = round(room * hour["orders"] / most, 1)
    bad = round(room * hour["failed"] / most, 1)
    at = datetime.fromtimestamp((begin + place * _HOUR_MS) / 1000).astimezone()
    return Bar(
        x=round(place * _BAR + 2, 1),
        width=round(_BAR - 4, 1),
        orders_y=round(room - good, 1),
        orders_height=good,
        failed_y=round(room - good - bad, 1),
        failed_height=bad,
        orders=hour["orders"],
        failed=hour["failed"],
        hour=at.strftime("%H:%M"),
    )


def _span(span: Mapping[str, Any], begin: int) -> Span:
    scale = WIDTH / (HOURS * _HOUR_MS)
    left = min(max(0.0, (span["since"] - begin) * scale), WIDTH)
    right = min(max(0.0, (span["until"] - begin) * scale), WIDTH)
    width = 0.0 if right <= 0 or left >= WIDTH else max(right - left, 2.0)
    return Span(
        round(left, 1),
        round(width, 1),
        str(span["code"]),
        str(span["store"]),
        int(span["since"]),
        int(span["until"]),
        bool(span["ended"]),
    )
