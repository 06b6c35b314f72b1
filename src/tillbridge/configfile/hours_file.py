"""Reads the restaurant's opening hours: `hours_file` of [stores.NAME]; see docs/store.md.

Everything that is wrong is told at once, with its line and remedy, before anything is sent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tillbridge.configfile.faults import ConfigFaults, Fault
from tillbridge.configfile.lines import Path as KeyPath
from tillbridge.configfile.lines import key_lines
from tillbridge.configfile.table_reader import TableReader, did_you_mean, required_file
from tillbridge.configfile.toml import read_file
from tillbridge.configfile.weeks import read_spans, read_week
from tillbridge.core.i18n import _
from tillbridge.model.hours import (
    WEEKDAYS,
    DatedHours,
    OpeningHours,
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
