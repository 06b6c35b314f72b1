"""Reads the planned pauses of [stores.NAME.schedule]: `friday 19:00-21:00`. Pure."""

from collections.abc import Iterator, Sequence
from datetime import date

from tillbridge.configfile.faults import Fault
from tillbridge.configfile.table_reader import TableReader, did_you_mean
from tillbridge.configfile.weeks import read_spans
from tillbridge.core.i18n import _
from tillbridge.model.hours import WEEKDAYS, PlannedPause


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
