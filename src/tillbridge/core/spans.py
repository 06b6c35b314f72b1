"""Instants, lengths of time and counts: in words for every surface, and as people type them.

`until_ms` and `since_ms` read what people type: `18:30`, `tomorrow`, `2h`, `1h30m`, or ISO 8601.
"""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from tillbridge.core.formats import Unit, ago, clock_time, count_of, number
from tillbridge.core.i18n import _, ngettext, shown_by_locale
from tillbridge.model.instant import LATEST_MS

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CLOCKS_DIFFER_MS = 5000


def span(seconds: float) -> str:
    """Return a length of time in its largest fitting unit, rounded down: `3 minutes`."""
    return count_of(*_in_unit(seconds))


def _in_unit(seconds: float) -> tuple[int, Unit]:
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return whole, "second"
    if whole < 2 * _HOUR:
        return whole // _MINUTE, "minute"
    if whole < 2 * _DAY:
        return whole // _HOUR, "hour"
    return whole // _DAY, "day"


def days_left(left_ms: int) -> str:
    """Return how long something still lasts, rounded as the status document's days are."""
    if left_ms <= 0:
        return _("that date is over")
    return span(round(max(0, left_ms) / (_DAY * 1000), 1) * _DAY)


def time_since(at_ms: int, now_ms: int) -> str:
    """Return how long ago an instant was; of one that is still to come, that a clock was changed.

    "answered" and the like stand before it.
    """
    if at_ms > now_ms + _CLOCKS_DIFFER_MS:
        return _("at {time}, which is in the future: the clock was changed").format(
            time=clock_time(at_ms, now_ms)
        )
    return ago(*_in_unit((now_ms - at_ms) / 1000))


def waiting(count: int, oldest_s: float | None) -> str:
    """Return the sentence about orders that the till does not have yet; "" where there are none."""
    if not count:
        return ""
    if oldest_s is None:
        return ngettext(
            "{n} order waits for the till.", "{n} orders wait for the till.", count
        ).format(n=count)
    return ngettext(
        "{n} order waits for the till, for {span}.",
        "{n} orders wait for the till, the oldest for {span}.",
        count,
    ).format(n=count, span=span(oldest_s))


@shown_by_locale
def short_span(ms: int) -> str:
    """Return a length of time as a measurement: `40 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    if ms < 60_000:
        return f"{number(round(ms / 1000, 1))} s"
    seconds = ms // 1000
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE} s"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return span(seconds)


# -- what people type; pure

_SPAN = re.compile(r"(?:(\d{1,3})d)?(?:(\d{1,3})h)?(?:(\d{1,4})m(?:in)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


def until_ms(text: str, *, now_ms: int, zone: tzinfo | None) -> int:
    """Return the instant (ms since the epoch) that `text` names.

    `HH:MM` is the next such time, `tomorrow` the next midnight, both in `zone` (None: this
    machine's); a timestamp without an offset is in `zone` too. Raises ValueError (text for a
    person) for anything else, and for what is over.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    moment = _moment(text.strip(), now, zone)
    at_ms = round(moment.timestamp() * 1000)
    if at_ms <= now_ms:
        raise ValueError(_("{text} has already passed").format(text=text))
    if at_ms > LATEST_MS:
        raise ValueError(
            _("{text} is after the year 2100; leave it out for no end").format(text=text)
        )
    return at_ms


def since_ms(text: str, *, now_ms: int, zone: tzinfo | None) -> int:
    """Return the instant (ms since the epoch) that `text` names, looking back.

    `2h` is two hours ago, `HH:MM` the last such time, `today` the last midnight; ISO 8601 as is.
    Raises ValueError (text for a person).
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    typed = text.strip()
    if typed.lower() == "today":
        return (
            round(_local(datetime.combine(now.astimezone(zone), time()), zone).timestamp()) * 1000
        )
    if typed and _SPAN.fullmatch(typed):
        moment = now - (_moment(typed, now, zone) - now)
    elif _CLOCK.fullmatch(typed):
        moment = _moment(typed, now, zone)
        if moment > now:
            moment = _local(
                (moment.astimezone(zone) - timedelta(days=1)).replace(tzinfo=None), zone
            )
    else:
        moment = _moment(typed, now, zone)
    return round(moment.timestamp() * 1000)


def _moment(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    today = now.astimezone(zone).date()
    if text.lower() == "tomorrow":
        return _local(datetime.combine(today + timedelta(days=1), time()), zone)
    if text and (found := _SPAN.fullmatch(text)):
        days, hours, minutes = (int(part or 0) for part in found.groups())
        return now + timedelta(days=days, hours=hours, minutes=minutes)
    if found := _CLOCK.fullmatch(text):
        hour, minute = int(found[1]), int(found[2])
        if hour > 23 or minute > 59:
            raise ValueError(_("{text} is not a time of day").format(text=text))
        moment = _local(datetime.combine(today, time(hour, minute)), zone)
        if moment <= now:
            following = datetime.combine(today + timedelta(days=1), time(hour, minute))
            moment = _local(following, zone)
        return moment
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            _("{text} is not a time; write 18:30, tomorrow, 2h or 2026-11-21T18:30").format(
                text=text
            )
        ) from None
    return moment if moment.tzinfo else _local(moment, zone)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
