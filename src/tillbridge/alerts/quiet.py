"""The hours in which warnings wait. Pure."""

from datetime import time


def is_quiet(hours: str | None, now: time) -> bool:
    """Return whether a local time of day lies within hours such as "23:00-07:00"."""
    if hours is None:
        return False
    begin, end = (time.fromisoformat(part) for part in hours.split("-"))
    if begin < end:
        return begin <= now < end
    return now >= begin or now < end
