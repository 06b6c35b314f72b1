"""Reads the opening hours of a week, and says exactly what to write instead of a slip. Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tillbridge.configfile.faults import Fault
from tillbridge.configfile.table_reader import TableReader
from tillbridge.core.i18n import _
from tillbridge.model.hours import DAY_MINUTES, WEEKDAYS, Span, clock_time

_SPAN = re.compile(r"([0-2]\d):([0-5]\d)-([0-2]\d):([0-5]\d)")
# What people write instead: 9:00 - 15.30, 9-17, 9am-5:30 pm
_LOOSE = re.compile(
    r"(\d{1,2})(?:[:.h](\d{2}))?\s*([ap]m)?\s*(?:-|\u2013|\u2014|to|until|/)\s*"  # -- the dashes
    r"(\d{1,2})(?:[:.h](\d{2}))?\s*([ap]m)?",
    re.IGNORECASE,
)


class _Slip(Exception):
    """What is wrong with a span, and what to write instead."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix


def read_week(table: TableReader) -> tuple[tuple[Span, ...], ...]:
    """Return the spans of each weekday, Monday first; every weekday must stand there."""
    table.only(WEEKDAYS, otherwise=_("The days are: {days}.").format(days=", ".join(WEEKDAYS)))
    week = []
    for place, name in enumerate(WEEKDAYS):
        if not table.has(name):
            table.fault(
                name,
                _("is missing."),
                _("Write {day} = [] if the store is closed that day.").format(day=name),
            )
        following = WEEKDAYS[(place + 1) % len(WEEKDAYS)]
        week.append(read_spans(table, name, table.values.get(name, []), following))
    return tuple(week)


def read_spans(table: TableReader, key: str, value: object, following: str) -> tuple[Span, ...]:
    """Return the spans of one day, sorted; `following` is what the next day is called."""
    if not isinstance(value, list):
        table.fault(
            key,
            _("must be a list of times."),
            _('Write for example {key} = ["12:00-15:00", "18:00-23:00"].').format(key=key),
        )
        return ()
    inner = TableReader({}, (*table.path, key), table.faults)
    spans: list[tuple[Span, int]] = []
    for place, written in enumerate(value):
        try:
            spans.append((_span(written, key, following), place))
        except _Slip as slip:
            inner.fault(place, slip.text, slip.fix)
    spans.sort()
    table.faults.extend(_overlaps(inner, spans))
    return tuple(span for span, _place in spans)


def _overlaps(day: TableReader, spans: Sequence[tuple[Span, int]]) -> list[Fault]:
    found = []
    for (before, _place), (after, place) in pairwise(spans):
        if after.opens < before.closes:
            joined = Span(before.opens, max(before.closes, after.closes))
            found.append(
                Fault(
                    (*day.path, place),
                    _("overlaps {other}.").format(other=before),
                    _('Make one of them, "{joined}", or correct a time.').format(joined=joined),
                )
            )
    return found


def _span(written: Any, day: str, following: str) -> Span:  # noqa: ANN401 -- whatever stands in the file
    if not isinstance(written, str):
        raise _Slip(_("must be text."), _('Write for example "12:00-15:00".'))
    found = _SPAN.fullmatch(written.strip())
    if found is None:
        raise _Slip(
            _("{written} is no time from HH:MM to HH:MM.").format(written=f'"{written}"'),
            _instead(written),
        )
    opens, closes = (
        int(hours) * 60 + int(minutes)
        for hours, minutes in ((found[1], found[2]), (found[3], found[4]))
    )
    late = max(opens, closes)
    if late > DAY_MINUTES or opens == DAY_MINUTES:
        raise _Slip(
            _('"{written}" goes past the end of the day, which is 24:00.').format(written=written),
            _over_midnight(opens % DAY_MINUTES, closes % DAY_MINUTES, day, following),
        )
    if opens == closes:
        raise _Slip(
            _('"{written}" ends when it begins.').format(written=written),
            _('A whole day is "00:00-24:00"; a day without hours is [].'),
        )
    if closes < opens:
        raise _Slip(
            _('"{written}" ends before it begins.').format(written=written),
            _over_midnight(opens, closes, day, following),
        )
    return Span(opens, closes)


def _over_midnight(opens: int, closes: int, day: str, following: str) -> str:
    evening = f'{day} = ["{clock_time(opens)}-24:00"]'
    if not closes:
        return _("If it ends at midnight, write {evening}.").format(evening=evening)
    morning = f'{following} = ["00:00-{clock_time(closes)}"]'
    return _(
        "Correct it; if it goes past midnight, write it on both days: {evening} and {morning}."
    ).format(evening=evening, morning=morning)


def _instead(written: str) -> str:
    found = _LOOSE.fullmatch(written.strip())
    if found is not None:
        opens, closes = _minutes(*found.groups()[:3]), _minutes(*found.groups()[3:])
        if opens is not None and closes is not None:
            return _('Write "{span}".').format(span=f"{clock_time(opens)}-{clock_time(closes)}")
    return _('Write for example "12:00-15:00"; times go from 00:00 to 24:00.')


def _minutes(hours: str, minutes: str | None, half: str | None) -> int | None:
    hour = int(hours)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    total = hour * 60 + int(minutes or 0)
    return total if total <= DAY_MINUTES and int(minutes or 0) < 60 else None
