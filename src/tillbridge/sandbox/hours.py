"""Opening hours of a community's store: what is refused, and whether it is open now. Pure."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tillbridge.sandbox.validation import wrong

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = 24 * 60
_WEEK = 7 * _DAY


def check_hours(body: Mapping[str, Any], *, past_midnight: bool) -> None:
    """Refuse hours that end before they begin, overlap, or speak of one date twice."""
    check_week(body["weekly"], "weekly", past_midnight=past_midnight)
    seen: set[str] = set()
    for index, override in enumerate(body.get("overrides", ())):
        if override["date"] in seen:
            raise wrong(f"overrides[{index}].date", f"{override['date']} stands twice")
        seen.add(override["date"])


def check_week(week: Mapping[str, Any], field: str, *, past_midnight: bool) -> None:
    """Refuse a week whose times end before they begin, or overlap; `field` is what holds it."""
    spans: list[tuple[int, int, str]] = []
    for index, (day, entries) in enumerate((day, week.get(day, ())) for day in WEEKDAYS):
        for position, entry in enumerate(entries):
            path = f"{field}.{day}[{position}]"
            opens, closes = _minutes(entry["open"]), _minutes(entry["close"])
            if opens >= _DAY:
                raise wrong(f"{path}.open", "must be before 24:00")
            if closes <= opens and not past_midnight:
                raise wrong(f"{path}.close", f"must be later than {entry['open']}")
            if closes == opens:
                raise wrong(f"{path}.close", "must differ from open; a whole day is 00:00 to 24:00")
            closes += _DAY if closes < opens else 0
            spans.append((index * _DAY + opens, index * _DAY + closes, path))
    spans.sort()
    following = [
        *spans[1:],
        *((start + _WEEK, end + _WEEK, path) for start, end, path in spans[:1]),
    ]
    for (_, end, path), (start, _, other) in zip(spans, following, strict=True):
        if start < end and path != other:
            raise wrong(other, f"overlaps {path}")


def is_open(hours: Mapping[str, Any] | None, now_ms: int) -> bool:
    """Whether a store with these hours is open at an instant; without hours it always is."""
    if hours is None:
        return True
    local = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(hours["timezone"]))
    minute = local.hour * 60 + local.minute
    today, yesterday = local.date(), date.fromordinal(local.date().toordinal() - 1)
    return any(opens <= minute < closes for opens, closes in _spans(hours, today)) or any(
        minute + _DAY < closes for _, closes in _spans(hours, yesterday)
    )


def _spans(hours: Mapping[str, Any], day: date) -> Iterator[tuple[int, int]]:
    for override in hours.get("overrides", ()):
        if override["date"] == day.isoformat() and override["closed"]:
            return
    for entry in hours["weekly"][WEEKDAYS[day.weekday()]]:
        opens, closes = _minutes(entry["open"]), _minutes(entry["close"])
        yield opens, closes + (_DAY if closes < opens else 0)


def _minutes(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)
