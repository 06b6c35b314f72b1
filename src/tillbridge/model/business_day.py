"""When "tomorrow" begins for a restaurant: with the first opening after the small hours. Pure."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tillbridge.model.hours import OpeningHours, opening_at

TURNS_AT = time(4)
_NIGHT_ENDS_MS = 4 * 3_600_000  # who closes so soon after the turn was open all night


def next_day_opens(hours: OpeningHours | None, zone: ZoneInfo | None, now_ms: int) -> int:
    """Return when the store opens on its next day, in ms since the epoch.

    A night that ends in the small hours belongs to the day before. Without hours, and for a store
    that never closes, the day begins at four; `zone` None is this machine's.
    """
    turn = _next_turn(zone, now_ms)
    if hours is None:
        return turn
    opening = opening_at(hours, turn)
    if opening.is_open and opening.until_ms is not None:
        if opening.until_ms - turn > _NIGHT_ENDS_MS:
            return turn
        opening = opening_at(hours, opening.until_ms)
    return turn if opening.is_open or opening.until_ms is None else opening.until_ms


def _next_turn(zone: ZoneInfo | None, now_ms: int) -> int:
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone)
    at_ms = _turn_of(now, 0, zone)
    return at_ms if at_ms > now_ms else _turn_of(now, 1, zone)


def _turn_of(now: datetime, days: int, zone: ZoneInfo | None) -> int:
    naive = datetime.combine(now.date() + timedelta(days=days), TURNS_AT)
    local = naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
    return round(local.timestamp() * 1000)
