"""Reads the times people type: `18:30`, `tomorrow`, `2h`, `1h30m`, or ISO 8601. Pure.

`until_ms` looks ahead, `since_ms` back.
"""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from tillbridge.core.i18n import _
from tillbridge.model.instant import LATEST_MS

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
        raise ValueError(_("{text} is over already").format(text=text))
    if at_ms > LATEST_MS:
        raise ValueError(
            _("{text} is after the year 2100: leave it out for ever").format(text=text)
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
            raise ValueError(_("{text} is no time of day").format(text=text))
        moment = _local(datetime.combine(today, time(hour, minute)), zone)
        if moment <= now:
            following = datetime.combine(today + timedelta(days=1), time(hour, minute))
            moment = _local(following, zone)
        return moment
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            _("{text} is no time: say 18:30, tomorrow, 2h, or 2026-11-21T18:30").format(text=text)
        ) from None
    return moment if moment.tzinfo else _local(moment, zone)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
