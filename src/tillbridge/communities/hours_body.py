"""A store's opening hours as a community takes them. Pure.

Specification: Store hours: `timezone`, `weekly` (an empty day is closed), `overrides[]` of {date,
closed, reason}. How a date with other hours is written is not shown. Unless a field for it is
named, such hours stand in the week while it holds their date: today and the six days after it are
each weekday once, so for seven days from today what the community shows is what the file says.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tillbridge.model.hours import DatedHours, OpeningHours, Span, week_json, zone_of

_WEEK_DAYS = 7


def local_date(timezone: str, now_ms: int) -> date:
    """Return the date at `now_ms` where the store is."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone_of(timezone)).date()


def hours_body(hours: OpeningHours, today: date, *, hours_field: str = "") -> dict[str, Any]:
    """Return the body of PUT .../hours as of `today`; dates that are over are left out.

    `hours_field` is the name of an override's own hours, "" where there is none.
    """
    coming = sorted((each for each in hours.overrides if each.day >= today), key=_day)
    weekly = hours.weekly if hours_field else _week_from(hours, coming, today)
    return {
        "timezone": hours.timezone,
        "weekly": week_json(weekly),
        "overrides": [
            _override(each, hours_field) for each in coming if hours_field or not each.spans
        ],
    }


def digest(body: Mapping[str, Any]) -> str:
    """Return what tells two bodies apart."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _week_from(
    hours: OpeningHours, coming: Sequence[DatedHours], today: date
) -> tuple[tuple[Span, ...], ...]:
    """Return the week with the dated hours of the next seven days in place of the usual ones."""
    last = today + timedelta(days=_WEEK_DAYS - 1)
    dated = {each.day.weekday(): each.spans for each in coming if each.spans and each.day <= last}
    return tuple(dated.get(number, usual) for number, usual in enumerate(hours.weekly))


def _override(each: DatedHours, hours_field: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "date": each.day.isoformat(),
        "closed": not each.spans,
        "reason": each.reason,
    }
    if each.spans:
        week = (each.spans,) + ((),) * (_WEEK_DAYS - 1)
        told[hours_field] = week_json(week)["monday"]
    return told


def _day(each: DatedHours) -> date:
    return each.day
