"""Opening hours on the page Settings: the file of `hours_file` as a form, changed in place.

A day is a line of times, "12:00-14:30, 18:30-23:00"; an empty one is closed. Times that people
write ("9am-5:30 pm") are understood, and one past midnight is put on both days. Dates that are
not like their weekday stay where they are in the file, with their comments.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from tillbridge.config.hours import hours_of, loose_times
from tillbridge.config.toml import ConfigFaults, KeyPath, Written, read_file
from tillbridge.config.writing import Changes, difference, edited, replace_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.restaurant import DAY_MINUTES, WEEKDAYS, clock_time
from tillbridge.setup.draft import digest_of
from tillbridge.setup.settings_file import Saved

_BETWEEN = re.compile(r"[,;\n]+")
_FIRST_FILE = """\
# When the restaurant is open, in its own time. The page Settings changes it in place, and so may
# you: docs/store.md says how. The bridge reads it again as soon as it is saved.
timezone = "{timezone}"

[weekly]
monday    = []
tuesday   = []
wednesday = []
thursday  = []
friday    = []
saturday  = []
sunday    = []
"""

# A date of the form: "2026-12-25", its times in the file's own form, why.
Dated = tuple[str, list[str], str]


def seen(text: str) -> str:
    """Return a digest of the file that a form shows."""
    return digest_of(text)


def shown(path: Path | None, timezone: str | None) -> dict[str, Any]:
    """Return the form of a file; None is one that is not there yet. Raises ConfigError."""
    text, document = ("", {}) if path is None else read_file(path)
    weekly = document.get("weekly", {})
    return {
        "file": "" if path is None else str(path),
        "timezone": str(document.get("timezone") or timezone or ""),
        "timezone_is_asked": path is None and timezone is None,
        "days": [{"name": day, "times": ", ".join(weekly.get(day, []))} for day in WEEKDAYS],
        "dates": [
            {"date": day, "times": ", ".join(times), "reason": reason}
            for day, times, reason in _dates_of(document)
        ],
        "digest": seen(text),
    }


def save_hours(
    path: Path, text: str, form: Mapping[str, str], *, timezone: str | None, today: date
) -> Saved:
    """Write what the form says into the file, whose text is `text` ("": there is none yet).

    Raises ConfigError, with the field that is wrong; the file is then as it was.
    """
    before = text
    if not text:
        text = _FIRST_FILE.format(timezone=timezone or form.get("timezone", "").strip())
    document = tomllib.loads(text)
    week, rows = _week(form), _dates(form)
    dates = list(rows.values())
    if not before and not any(week.values()) and not any(times for _day, times, _why in dates):
        raise ConfigError(
            _("Every day is closed."), fix=_("Enter when you are open."), field="day.monday"
        )
    weekly = document.get("weekly", {})
    changes: dict[KeyPath, Any] = {
        ("weekly", day): week[day] for day in WEEKDAYS if week[day] != weekly.get(day)
    }
    new = _with_dates(edited(text, changes), document, dates)
    written = Written(path, new, tomllib.loads(new))
    try:
        hours_of(written, timezone=timezone, today=today)
    except ConfigFaults as faults:
        days = [day for day, _times, _why in _dates_of(written.document)]
        fields = {day: f"times.{row}" for row, (day, _times, _why) in rows.items()}
        raise _beside_its_field(faults, [fields.get(day, "") for day in days]) from None
    if new == before:
        return Saved()
    return Saved(tuple(difference(before, new)), replace_file(path, new))


def first_file(folder: Path, store: str) -> Path:
    """Return where the hours of a store are written that has no file of them yet."""
    path = folder / "hours.toml"
    if path.exists():
        path = folder / f"hours-{store}.toml"
    if not path.exists():
        return path
    raise ConfigError(
        _("{file} already exists.").format(file=path),
        fix=_("Set it as this store's hours_file in bridge.toml, or move it away."),
    )


def naming(store: str, path: Path) -> Changes:
    """Return the change of bridge.toml that names the file."""
    return {("stores", store, "hours_file"): path.name}


# -- what the form says


def _week(form: Mapping[str, str]) -> dict[str, list[str]]:
    week: dict[str, list[str]] = {day: [] for day in WEEKDAYS}
    for place, day in enumerate(WEEKDAYS):
        for times in _listed(form.get(f"day.{day}", "")):
            evening, morning = _split(times)
            week[day].append(evening)
            if morning:
                week[WEEKDAYS[(place + 1) % len(WEEKDAYS)]].append(morning)
    return {day: sorted(set(times)) for day, times in week.items()}


def _dates(form: Mapping[str, str]) -> dict[str, Dated]:
    """Return the dates of the form by their rows; a row without a date is none."""
    found: dict[str, Dated] = {}
    for place in _rows(form):
        day = form.get(f"date.{place}", "").strip()
        if not day:
            continue
        try:
            date.fromisoformat(day)
        except ValueError:
            raise ConfigError(
                _("This date does not exist."),
                fix=_("Write year-month-day, for example 2026-12-25."),
                field=f"date.{place}",
            ) from None
        times = []
        for each in _listed(form.get(f"times.{place}", "")):
            evening, morning = _split(each)
            # Past midnight: what the file says of the next date is for a person to say.
            times.append(f"{evening[:6]}{morning[6:]}" if morning else evening)
        if any(known == day for known, _times, _why in found.values()):
            raise ConfigError(
                _("This date is there twice."), fix=_("Remove one."), field=f"date.{place}"
            )
        found[place] = (day, times, form.get(f"reason.{place}", "").strip())
    return found


def _rows(form: Mapping[str, str]) -> Iterator[str]:
    places = (name.removeprefix("date.") for name in form if name.startswith("date."))
    return iter(sorted((each for each in places if each.isdecimal()), key=int))


def _listed(written: str) -> list[str]:
    words = {"closed", str(_("Closed")).casefold()}
    parts = (each.strip() for each in _BETWEEN.split(written))
    return [each for each in parts if each and each.casefold() not in words]


def _split(written: str) -> tuple[str, str]:
    """Return a time in the file's own form; past midnight in two, the second of the day after."""
    meant = loose_times(written)
    if meant is None:
        return written, ""  # the file's own check says what is wrong with it
    opens, closes = meant
    if closes == 0:
        closes = DAY_MINUTES
    if closes < opens < DAY_MINUTES:
        return f"{clock_time(opens)}-24:00", f"00:00-{clock_time(closes)}"
    return f"{clock_time(opens)}-{clock_time(closes)}", ""


# -- dates in the file


def _dates_of(document: Mapping[str, Any]) -> list[Dated]:
    return [
        (str(each.get("date", "")), list(each.get("hours") or ()), str(each.get("reason", "")))
        for each in document.get("overrides", ())
    ]


def _with_dates(text: str, document: Mapping[str, Any], dates: list[Dated]) -> str:
    """Return the text with these dates: what stays keeps its place, what is new comes last."""
    if _dates_of(document) == dates:
        return text
    # Some hundred kilobytes, and only for whoever changes a date here.
    import tomlkit  # noqa: PLC0415 -- see above

    parsed = tomlkit.parse(text)
    rows = parsed.get("overrides")
    if rows is None:
        rows = tomlkit.aot()
        parsed.append("overrides", rows)
    if not isinstance(rows, tomlkit.items.AoT):
        raise ConfigError(
            _("The way the file is written, {keys} cannot be changed from here.").format(
                keys="overrides"
            ),
            fix=_("Edit it by hand, and give each table its own [header]."),
        )
    wanted = {day: (times, reason) for day, times, reason in dates}
    known = [str(row["date"]) for row in rows]
    for place in reversed(range(len(rows))):
        if known[place] not in wanted:
            del rows[place]
            continue
        _change(rows[place], *wanted[known[place]])
    for day, times, reason in dates:
        if day not in known:
            row = tomlkit.table()
            row["date"] = tomlkit.date(day)
            _change(row, times, reason)
            rows.append(row)
    if not len(rows):
        del parsed["overrides"]
    return tomlkit.dumps(parsed)


def _change(row: Any, times: list[str], reason: str) -> None:  # noqa: ANN401 -- tomlkit's own kind
    if list(row.get("hours") or ()) != times or not (times or row.get("closed")):
        for key, value in (("closed", None if times else True), ("hours", times or None)):
            if value is not None:
                row[key] = value
            elif key in row:
                row.remove(key)
    if reason != str(row.get("reason", "")):
        if reason:
            row["reason"] = reason
        else:
            row.remove("reason")


def _beside_its_field(faults: ConfigFaults, dates: list[str]) -> ConfigError:
    """Return what is wrong with a time that was typed, else with the file.

    `dates` are the fields of the file's dates.
    """
    fault = faults.faults[0]
    match fault.path[:2]:
        case ("weekly", str(day)):
            field = f"day.{day}"
        case ("overrides", int(place)):
            field = dates[place]
        case ("timezone", *_rest):
            field = "timezone"
        case _:
            return faults
    return ConfigError(fault.text[:1].upper() + fault.text[1:], fix=fault.fix, field=field)
