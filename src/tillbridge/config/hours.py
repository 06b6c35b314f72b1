"""Reads opening hours (`hours_file` of [stores.NAME]) and planned pauses; see docs/store.md.

Everything that is wrong is reported at once, with its line and what to write instead.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tillbridge.config.faults import ConfigFaults, Fault
from tillbridge.config.lines import Path as KeyPath
from tillbridge.config.lines import key_lines
from tillbridge.config.table_reader import TableReader, did_you_mean, required_file
from tillbridge.config.toml import read_file
from tillbridge.core.i18n import _
from tillbridge.model.hours import (
    DAY_MINUTES,
    WEEKDAYS,
    DatedHours,
    OpeningHours,
    PlannedPause,
    Span,
    clock_time,
    missing_time,
)

_TOP = ("timezone", "weekly", "overrides")
_OVERRIDE = ("date", "closed", "hours", "reason")
_A_YEAR_DAYS = 366


@dataclass(frozen=True, slots=True)
class HoursFile:
    """The hours of a file; `notes` are sentences, with their line, about days that come."""

    hours: OpeningHours
    notes: tuple[str, ...] = ()


def read_hours_file(path: Path, *, timezone: str | None, today: date) -> HoursFile:
    """Return what the file says. `timezone` is the store's, where the configuration has one.

    Then the file need not name it. A time of a date to come that the clock jumps over is a fault;
    one of the week is a note, and counts from the moment the clock jumps over it.

    Raises ConfigFaults with all that is wrong.
    """
    if fault := required_file(path, "hours_file"):
        raise ConfigFaults(str(path), [fault])
    text, document = read_file(path)
    lines = key_lines(text)
    faults: list[Fault] = []
    hours = _hours(TableReader(document, (), faults), timezone)
    if not faults:
        faults.extend(_skipped_dates(hours, today))
    if faults:
        raise ConfigFaults(str(path), [fault.placed(lines) for fault in faults])
    notes = [fault.placed(lines).told(str(path)) for fault in _skipped_weekly(hours, today)]
    return HoursFile(hours, tuple(notes))


def _hours(top: TableReader, configured: str | None) -> OpeningHours:
    top.only(
        _TOP,
        otherwise=_("The days stand in [weekly], dates in [[overrides]]."),
    )
    timezone = _timezone(top, configured)
    weekly = top.table("weekly")
    if weekly is None and not top.has("weekly"):
        top.fault("weekly", _("is missing."), _("Write [weekly], and below it each day's times."))
    week = read_week(weekly) if weekly else ((),) * len(WEEKDAYS)
    return OpeningHours(timezone, week, tuple(_overrides(top)))


def _timezone(top: TableReader, configured: str | None) -> str:
    name = top.text("timezone")
    if name is None:
        if not top.has("timezone") and configured is None:
            top.fault(
                "timezone",
                _("is missing."),
                _('Write the place\'s IANA name, for example timezone = "Europe/Prague".'),
            )
        return configured or ""
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 -- reads many files

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        close = _nearest_zone(name, available_timezones())
        top.fault(
            "timezone",
            _('"{name}" is no time zone.').format(name=name),
            close or _('Write an IANA name, for example "Europe/Prague".'),
        )
        return configured or ""
    if configured is not None and configured != name:
        top.fault(
            "timezone",
            _('is not that of the store in bridge.toml, "{other}".').format(other=configured),
            _("Let both be the same."),
        )
    return name


def _nearest_zone(name: str, known: set[str]) -> str:
    """People write "Prague", or "europe/prague"."""
    place = name.rpartition("/")[2].replace(" ", "_").lower()
    for zone in sorted(known):
        if zone.rpartition("/")[2].lower() == place and "/" in zone:
            return _('Did you mean "{key}"?').format(key=zone)
    return did_you_mean(name, known)


def _overrides(top: TableReader) -> Iterator[DatedHours]:
    listed = top.values.get("overrides", [])
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        top.fault("overrides", _("must be a list of tables."), _("Write [[overrides]]."))
        return
    seen: set[date] = set()
    for place, values in enumerate(listed):
        table = TableReader(values, ("overrides", place), top.faults)
        table.only(_OVERRIDE)
        day = _date(table)
        spans = _dated_spans(table)
        if day is None:
            continue
        if day in seen:
            table.fault(
                "date",
                _("{day} stands twice.").format(day=day),
                _("Make one of the two."),
            )
        seen.add(day)
        yield DatedHours(day, spans, table.text("reason", empty=True) or "")


def _date(table: TableReader) -> date | None:
    value: Any = table.values.get("date")
    if type(value) is date:  # a time beside it (datetime) is a slip
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            pass
    table.fault(
        "date",
        _("is missing.") if value is None else _("is no date that exists."),
        _("Write year-month-day, for example date = 2026-12-25."),
    )
    return None


def _dated_spans(table: TableReader) -> tuple[Span, ...]:
    closed, has_hours = table.flag("closed"), table.has("hours")
    if closed and table.values.get("hours"):
        table.fault(
            "closed",
            _("says closed, and hours says when it is open."),
            _("Remove one of the two lines."),
        )
    elif not closed and not has_hours:
        table.fault(
            None if closed is None else "closed",
            _("says neither closed nor hours."),
            _('Write closed = true, or hours = ["12:00-15:00"].'),
        )
    return read_spans(table, "hours", table.values.get("hours", []), _("the next date's hours"))


def _skipped_dates(hours: OpeningHours, today: date) -> Iterator[Fault]:
    """Return a fault for each time of a date to come that the clock jumps over."""
    for place, each in enumerate(hours.overrides):
        for index, span in enumerate(each.spans):
            for minutes in (span.opens, span.closes):
                there = missing_time(hours.timezone, each.day, minutes)
                if there is not None and each.day >= today:
                    yield _skipped(
                        ("overrides", place, "hours", index), each.day, minutes, there, hours
                    )


def _skipped_weekly(hours: OpeningHours, today: date) -> Iterator[Fault]:
    """Return the same for the week's times, once for each of them in the year that comes."""
    dated = {each.day for each in hours.overrides}
    told: set[tuple[int, int]] = set()
    for offset in range(_A_YEAR_DAYS):
        day = today + timedelta(days=offset)
        weekday = day.weekday()
        for index, span in enumerate(() if day in dated else hours.weekly[weekday]):
            for minutes in (span.opens, span.closes):
                there = missing_time(hours.timezone, day, minutes)
                if there is not None and (weekday, minutes) not in told:
                    told.add((weekday, minutes))
                    yield _skipped(("weekly", WEEKDAYS[weekday], index), day, minutes, there, hours)


def _skipped(path: KeyPath, day: date, minutes: int, there: str, hours: OpeningHours) -> Fault:
    return Fault(
        path,
        _("{time} does not exist on {day}: clocks in {zone} jump over it to {there}.").format(
            time=clock_time(minutes), day=day, zone=hours.timezone, there=there
        ),
        _("Write {there} for that date; until then it counts as {there}.").format(there=there),
    )


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


def read_pauses(written: Sequence[str]) -> list[PlannedPause]:
    """Return the pauses that were checked with `pause_faults`; a wrong one is left out."""
    faults: list[Fault] = []
    return [pause for each in written for pause in _read(each, faults)]


def pause_faults(written: Sequence[str]) -> Iterator[tuple[int, Fault]]:
    """Return what is wrong with the pauses, each with its place in the list."""
    for place, each in enumerate(written):
        faults: list[Fault] = []
        list(_read(each, faults))
        yield from ((place, fault) for fault in faults)


def _read(written: str, faults: list[Fault]) -> Iterator[PlannedPause]:
    when, _blank, times = written.strip().partition(" ")
    weekday, day = _day(when)
    if weekday is None and day is None:
        faults.append(
            Fault(
                (),
                _("begins with no weekday and no date: {when}.").format(when=f'"{when}"'),
                did_you_mean(when, WEEKDAYS)
                or _('Write for example "friday 19:00-21:00" or "2026-12-31 18:00-24:00".'),
            )
        )
        return
    following = _("the day after")
    table = TableReader({}, (), faults)
    for span in read_spans(table, when.lower(), [times.strip()], following):
        yield PlannedPause(span, weekday, day)


def _day(text: str) -> tuple[int | None, date | None]:
    if text.lower() in WEEKDAYS:
        return WEEKDAYS.index(text.lower()), None
    try:
        return None, date.fromisoformat(text)
    except ValueError:
        return None, None
