"""Checks of what is sold out, and until when."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from tillbridge.adapter.conformance.rig import Rig
from tillbridge.adapter.conformance.subject import (
    Subject,
    Violation,
    able,
    can,
    plain_items,
    reader,
)
from tillbridge.adapter.protocols import ReadsAvailability

_MINUTE_MS = 60_000
_KATHMANDU_MS = (5 * 60 + 45) * _MINUTE_MS
_END_OF_TIME_MS = 253_402_300_800_000  # the year 10000


def tells_what_is_sold_out(subject: Subject) -> str:
    """Sell out an item: the next reading says so, and says nothing else."""
    with subject.till() as rig:
        sold = rig.sell(plain_items(), "EUR")
        gone = sold[1].external_id
        pos = rig.open()
        read = reader(rig, pos) if can(pos, "catalogue") else None
        rig.sell_out(gone)
        if read is None:
            off = set()
        else:
            off = {key for key, item in read().items.items() if not item.available}
        if can(pos, "availability"):
            availability = able(pos, ReadsAvailability).read_availability().items
            off |= {key for key, state in availability.items() if not state.available}
        if read is not None and gone not in read().items:
            raise Violation(
                f"The item {gone} is sold out, and is missing from the menu: the bridge would take"
                " it for deleted.",
                fix="Read every item the till has; available=False says that it is sold out.",
            )
        for until in _untils(rig, pos, gone):
            if not _plausible(until):
                raise Violation(
                    f"{gone} is sold out until {_instant(until)}.",
                    fix="`until` is milliseconds since 1970 in UTC, or None where the till says no"
                    " end.",
                )
        if off != {gone}:
            raise Violation(
                f"Sold out is {gone}; the adapter says {', '.join(sorted(off)) or 'nothing'}.",
                fix="Read the till's own mark of what is sold out, by external id.",
            )
        return "one item off, the others on"


def tells_until_when(subject: Subject) -> str:
    """Sell out an item for some hours: it is told until when, wherever this machine stands."""
    with time_zone_of_kathmandu(), subject.till() as rig:
        sold = rig.sell(plain_items(), "EUR")
        gone = sold[1].external_id
        until = (datetime.now(UTC) + timedelta(hours=3)).replace(second=0, microsecond=0)
        pos = rig.open()
        rig.sell_out_until(gone, until)
        wanted = int(until.timestamp() * 1000)
        found = _untils(rig, pos, gone)
        if not found:
            raise Violation(
                f"{gone} is sold out until {_instant(wanted)}; the adapter says no end.",
                fix="Put the end into Availability.until, or into the item's snooze_until.",
            )
        if any(each != wanted for each in found):
            odd = next(each for each in found if each != wanted)
            raise Violation(
                f"{gone} is sold out until {_instant(wanted)}; the adapter says {_instant(odd)}."
                f"{_guess(wanted, odd)}",
                fix="`until` is milliseconds since 1970 in UTC: int(moment.timestamp() * 1000) of"
                " a datetime that knows its zone.",
            )
        return f"until {until:%H:%M} UTC"


@contextmanager
def time_zone_of_kathmandu() -> Iterator[None]:
    """Let this machine stand elsewhere: a time without a zone is then seen to be wrong."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "NPT-5:45"
    _tell_libc()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        _tell_libc()


def _tell_libc() -> None:
    if sys.platform != "win32":
        time.tzset()


def _untils(rig: Rig, pos: object, external_id: str) -> Sequence[object]:
    """Return each end that is read of an item's being sold out."""
    ends: list[object] = []
    if can(pos, "catalogue"):
        item = reader(rig, pos)().items.get(external_id)
        ends.append(None if item is None else item.snooze_until)
    if can(pos, "availability"):
        state = able(pos, ReadsAvailability).read_availability().items.get(external_id)
        ends.append(None if state is None else state.until)
    return [each for each in ends if each is not None]


def _plausible(until: object) -> bool:
    return type(until) is int and time.time() * 1000 < until < _END_OF_TIME_MS


def _instant(until: object) -> str:
    if type(until) is not int:
        return f"{until!r} (a {type(until).__name__})"
    try:
        return f"{datetime.fromtimestamp(until / 1000, UTC):%Y-%m-%d %H:%M} UTC ({until})"
    except (ValueError, OverflowError, OSError):
        return str(until)


def _guess(wanted: int, found: object) -> str:
    if type(found) is not int:
        return ""
    if abs(found * 1000 - wanted) <= _MINUTE_MS:
        return " It is in seconds."
    if abs(found + _KATHMANDU_MS - wanted) <= _MINUTE_MS:
        return " A time without a zone was taken for this machine's."
    return ""
