"""Reads opening hours (`hours_file` of [stores.NAME]) and planned pauses; see docs/store.md.

Everything that is wrong is reported at once, with its line and what to write instead.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from tillbridge.config.toml import Fault, KeyPath, Written, key_lines, read_named_file
from tillbridge.config.translate import did_you_mean, faults_of, validated
from tillbridge.config.values import Section, Text, invalid
from tillbridge.core.i18n import _
from tillbridge.model.restaurant import (
    DAY_MINUTES,
    WEEKDAYS,
    DatedHours,
    OpeningHours,
    PlannedPause,
    Span,
    clock_time,
    missing_time,
)

_A_YEAR_DAYS = 366
_SPAN = re.compile(r"([0-2]\d):([0-5]\d)-([0-2]\d):([0-5]\d)")
# What people write instead: 9:00 - 15.30, 9-17, 9am-5:30 pm
_LOOSE = re.compile(
    r"(\d{1,2})(?:[:.h](\d{2}))?\s*([ap]m)?\s*(?:-|\u2013|\u2014|to|until|/)\s*"  # -- the dashes
    r"(\d{1,2})(?:[:.h](\d{2}))?\s*([ap]m)?",
    re.IGNORECASE,
)


# ---------------------------------------------------------------------------------------------
# Times of a day


def _span(written: object, info: ValidationInfo) -> Span:
    if not isinstance(written, str):
        raise invalid(_("must be text."), _('Write for example "12:00-15:00".'))
    found = _SPAN.fullmatch(written.strip())
    if found is None:
        text = _("{written} is not a time span like HH:MM-HH:MM.")
        raise invalid(text.format(written=f'"{written}"'), _instead(written))
    opens, closes = (
        int(hours) * 60 + int(minutes)
        for hours, minutes in ((found[1], found[2]), (found[3], found[4]))
    )
    day, following = _day_names(info)
    if max(opens, closes) > DAY_MINUTES or opens == DAY_MINUTES:
        raise invalid(
            _('"{written}" goes past the end of the day, which is 24:00.').format(written=written),
            _over_midnight(opens % DAY_MINUTES, closes % DAY_MINUTES, day, following),
        )
    if opens == closes:
        raise invalid(
            _('"{written}" ends when it begins.').format(written=written),
            _('A whole day is "00:00-24:00"; a day without hours is [].'),
        )
    if closes < opens:
        text = _('"{written}" ends before it begins.')
        raise invalid(text.format(written=written), _over_midnight(opens, closes, day, following))
    return Span(opens, closes)


def _day_names(info: ValidationInfo) -> tuple[str, str]:
    """Return what a remedy calls the day that is being read, and the day after it."""
    name = info.field_name or ""
    if name in WEEKDAYS:
        return name, WEEKDAYS[(WEEKDAYS.index(name) + 1) % len(WEEKDAYS)]
    if name:
        return name, _("the next date's hours")
    return (info.context or {}).get("day", ""), _("the day after")


def _over_midnight(opens: int, closes: int, day: str, following: str) -> str:
    evening = f'{day} = ["{clock_time(opens)}-24:00"]'
    if not closes:
        return _("If it ends at midnight, write {evening}.").format(evening=evening)
    morning = f'{following} = ["00:00-{clock_time(closes)}"]'
    return _(
        "Correct it; if it goes past midnight, write it on both days: {evening} and {morning}."
    ).format(evening=evening, morning=morning)


def _instead(written: str) -> str:
    if (meant := loose_times(written)) is not None:
        opens, closes = meant
        return _('Write "{span}".').format(span=f"{clock_time(opens)}-{clock_time(closes)}")
    return _('Write for example "12:00-15:00"; times go from 00:00 to 24:00.')


def loose_times(written: str) -> tuple[int, int] | None:
    """Return from when to when `9-17`, `9:00 to 15.30` or `9am-5:30 pm` means, in minutes of a day.

    The second may be before the first: past midnight. None if it cannot be read.
    """
    found = _LOOSE.fullmatch(written.strip())
    if found is None:
        return None
    opens, closes = _minutes(*found.groups()[:3]), _minutes(*found.groups()[3:])
    return None if opens is None or closes is None else (opens, closes)


def _minutes(hours: str, minutes: str | None, half: str | None) -> int | None:
    hour = int(hours)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    total = hour * 60 + int(minutes or 0)
    return total if total <= DAY_MINUTES and int(minutes or 0) < 60 else None


def _times(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, list):
        text = _('Write for example {key} = ["12:00-15:00", "18:00-23:00"].')
        raise invalid(_("must be a list of times."), text.format(key=info.field_name))
    return value


def _in_order(spans: list[Span]) -> list[Span]:
    spans = sorted(spans)
    for before, after in pairwise(spans):
        if after.opens < before.closes:
            joined = Span(before.opens, max(before.closes, after.closes))
            raise invalid(
                _("{span} overlaps {other}.").format(span=after, other=before),
                _('Join them as "{joined}", or correct a time.').format(joined=joined),
            )
    return spans


WrittenSpan = Annotated[Span, BeforeValidator(_span)]
Times = Annotated[list[WrittenSpan], BeforeValidator(_times), AfterValidator(_in_order)]


def _closed(day: str) -> Any:  # noqa: ANN401 -- as pydantic's Field
    fix = _("Write {day} = [] if the store is closed that day.").format(day=day)
    return Field(json_schema_extra={"fix": fix})


class Week(Section, use_attribute_docstrings=False):
    """The times of each weekday; every weekday is there."""

    unknown_key_fix: ClassVar[str] = _("The days are: {days}.").format(days=", ".join(WEEKDAYS))

    monday: Times = _closed("monday")
    tuesday: Times = _closed("tuesday")
    wednesday: Times = _closed("wednesday")
    thursday: Times = _closed("thursday")
    friday: Times = _closed("friday")
    saturday: Times = _closed("saturday")
    sunday: Times = _closed("sunday")

    def spans(self) -> tuple[tuple[Span, ...], ...]:
        """Return the spans of each weekday, Monday first."""
        return tuple(tuple(getattr(self, day)) for day in WEEKDAYS)


# ---------------------------------------------------------------------------------------------
# The file


@dataclass(frozen=True, slots=True)
class HoursFile:
    """The hours of a file; `notes` are sentences, with their line, about days that come."""

    hours: OpeningHours
    notes: tuple[str, ...] = ()


def _zone(name: str | None, info: ValidationInfo) -> str | None:
    configured = (info.context or {}).get("timezone")
    if name is None:
        if configured is None:
            raise invalid(
                _("is missing."),
                _('Write the place\'s IANA name, for example timezone = "Europe/Prague".'),
            )
        return None
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise invalid(
            _('"{name}" is not a time zone.').format(name=name),
            _nearest_zone(name) or _('Write an IANA name, for example "Europe/Prague".'),
        ) from None
    if configured is not None and configured != name:
        text = _('differs from the time zone of the store in bridge.toml, "{other}".')
        raise invalid(text.format(other=configured), _("Use the same time zone in both."))
    return name


def _nearest_zone(name: str) -> str:
    """People write "Prague", or "europe/prague"."""
    known = available_timezones()
    place = name.rpartition("/")[2].replace(" ", "_").lower()
    for zone in sorted(known):
        if zone.rpartition("/")[2].lower() == place and "/" in zone:
            return _('Did you mean "{key}"?').format(key=zone)
    return did_you_mean(name, known)


def _date(value: object) -> date:
    if type(value) is date:  # a time beside it (datetime) is a mistake
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            pass
    raise invalid(_("is not a date that exists."), _HOW_TO_WRITE_A_DATE)


_HOW_TO_WRITE_A_DATE = _("Write year-month-day, for example date = 2026-12-25.")
_WrittenDate = Annotated[date, BeforeValidator(_date)]


class _Override(Section, use_attribute_docstrings=False):
    """One date that is not like its weekday."""

    date: _WrittenDate = Field(json_schema_extra={"fix": _HOW_TO_WRITE_A_DATE})
    closed: bool | None = None
    hours: Times | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _open_or_closed(self) -> Self:
        if self.closed and self.hours:
            raise invalid(
                _("says the store is closed, but hours says when it is open."),
                _("Remove one of the two lines."),
            )
        if not self.closed and self.hours is None:
            raise invalid(
                _("has neither closed nor hours."),
                _('Write closed = true, or hours = ["12:00-15:00"].'),
            )
        return self


class _HoursFileBody(Section, use_attribute_docstrings=False):
    unknown_key_fix: ClassVar[str] = _("Weekdays belong in [weekly], dates in [[overrides]].")

    timezone: Annotated[Text | None, AfterValidator(_zone)] = Field(None, validate_default=True)
    weekly: Week = Field(
        json_schema_extra={"fix": _("Write [weekly], and the times of each day below it.")}
    )
    overrides: list[_Override] = Field(default_factory=list)


def read_hours_file(path: Path, *, timezone: str | None, today: date) -> HoursFile:
    """Return what the file says. `timezone` is the store's, where the configuration has one.

    Then the file need not name it. A time of a date to come that the clock jumps over is a fault;
    one of the week is a note, and counts from the moment the clock jumps over it.

    Raises ConfigFaults with all that is wrong.
    """
    return hours_of(read_named_file(path, "hours_file"), timezone=timezone, today=today)


def hours_of(written: Written, *, timezone: str | None, today: date) -> HoursFile:
    """Return what the text of such a file says; else as `read_hours_file`."""
    body = validated(_HoursFileBody, written, timezone=timezone)
    hours = OpeningHours(
        body.timezone or timezone or "",
        body.weekly.spans(),
        tuple(
            DatedHours(each.date, tuple(each.hours or ()), each.reason) for each in body.overrides
        ),
    )
    written.check([*_repeated_dates(hours), *_skipped_dates(hours, today)])
    lines = key_lines(written.text)
    notes = [
        fault.placed(lines).sentence(str(written.path)) for fault in _skipped_weekly(hours, today)
    ]
    return HoursFile(hours, tuple(notes))


def _repeated_dates(hours: OpeningHours) -> Iterator[Fault]:
    seen: set[date] = set()
    for place, each in enumerate(hours.overrides):
        if each.day in seen:
            yield Fault(
                ("overrides", place, "date"),
                _("{day} appears twice.").format(day=each.day),
                _("Merge the two into one."),
            )
        seen.add(each.day)


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
    found: set[tuple[int, int]] = set()
    for offset in range(_A_YEAR_DAYS):
        day = today + timedelta(days=offset)
        weekday = day.weekday()
        for index, span in enumerate(() if day in dated else hours.weekly[weekday]):
            for minutes in (span.opens, span.closes):
                there = missing_time(hours.timezone, day, minutes)
                if there is not None and (weekday, minutes) not in found:
                    found.add((weekday, minutes))
                    yield _skipped(("weekly", WEEKDAYS[weekday], index), day, minutes, there, hours)


def _skipped(path: KeyPath, day: date, minutes: int, there: str, hours: OpeningHours) -> Fault:
    text = _("{time} does not exist on {day}: clocks in {zone} go forward to {there}.")
    fix = _("Write {there} for that date. Until you do, the bridge uses {there}.")
    return Fault(
        path,
        text.format(time=clock_time(minutes), day=day, zone=hours.timezone, there=there),
        fix.format(there=there),
    )


# ---------------------------------------------------------------------------------------------
# Planned pauses: `friday 19:00-21:00`


def read_pauses(written: Sequence[str]) -> list[PlannedPause]:
    """Return the pauses that were checked with `pause_faults`; a wrong one is left out."""
    return [each for each in map(_pause, written) if isinstance(each, PlannedPause)]


def pause_faults(written: Sequence[str]) -> Iterator[tuple[int, Fault]]:
    """Return what is wrong with the pauses, each with its place in the list."""
    for place, each in enumerate(map(_pause, written)):
        if isinstance(each, Fault):
            yield place, each


_TIMES = TypeAdapter[Span](WrittenSpan)


def _pause(written: str) -> PlannedPause | Fault:
    when, _blank, times = written.strip().partition(" ")
    weekday, day = _day(when)
    if weekday is None and day is None:
        return Fault(
            (),
            _("does not begin with a weekday or a date: {when}.").format(when=f'"{when}"'),
            did_you_mean(when, WEEKDAYS)
            or _('Write for example "friday 19:00-21:00" or "2026-12-31 18:00-24:00".'),
        )
    try:
        span = _TIMES.validate_python(times.strip(), context={"day": when.lower()})
    except ValidationError as error:
        return next(faults_of(error, {}))
    return PlannedPause(span, weekday, day)


def _day(text: str) -> tuple[int | None, date | None]:
    if text.lower() in WEEKDAYS:
        return WEEKDAYS.index(text.lower()), None
    try:
        return None, date.fromisoformat(text)
    except ValueError:
        return None, None
