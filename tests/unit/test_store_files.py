"""The restaurant's own files: what they say, and every slip told with file, line and remedy."""

import contextlib
from datetime import date
from pathlib import Path

import pytest

from tillbridge.config.hours import HoursFile, read_hours_file
from tillbridge.config.restaurant import StoreFiles, read_store_files
from tillbridge.config.toml import ConfigFaults
from tillbridge.core.errors import ConfigError
from tillbridge.model.restaurant import DatedHours, Span

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 21)
WEEK = """\
timezone = "Europe/Rome"
[weekly]
monday = []
tuesday = ["12:00-14:30", "18:30-22:30"]
wednesday = ["12:00-14:30"]
thursday = ["12:00-14:30"]
friday = ["12:00-14:30"]
saturday = ["18:30-24:00"]
sunday = ["00:00-00:30"]
"""


def read_hours(tmp_path: Path, text: str, timezone: str | None = None) -> HoursFile:
    path = tmp_path / "hours.toml"
    path.write_text(text, "utf-8")
    return read_hours_file(path, timezone=timezone, today=TODAY)


def hours_faults(tmp_path: Path, text: str, timezone: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read_hours(tmp_path, text, timezone)
    return str(caught.value).replace(f"{tmp_path}/", "")


def store_faults(tmp_path: Path, text: str, *, hours: str | None = None) -> str:
    path = tmp_path / "store.toml"
    path.write_text(text, "utf-8")
    hours_path = None
    if hours is not None:
        hours_path = tmp_path / "hours.toml"
        hours_path.write_text(hours, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_store_files(StoreFiles(path, hours_path, "EUR", None), today=TODAY)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_week_is_read_as_it_is_written(tmp_path: Path) -> None:
    hours = read_hours(tmp_path, WEEK).hours
    assert hours.timezone == "Europe/Rome"
    assert hours.weekly[0] == ()
    assert hours.weekly[1] == (Span(720, 870), Span(1110, 1350))
    assert hours.weekly[5] == (Span(1110, 1440),)


def test_dates_that_differ_are_read(tmp_path: Path) -> None:
    dates = """
[[overrides]]
date = 2026-12-25
closed = true
reason = "Christmas"
[[overrides]]
date = "2026-12-31"
hours = ["19:00-24:00"]
"""
    hours = read_hours(tmp_path, WEEK + dates).hours
    assert hours.overrides == (
        DatedHours(date(2026, 12, 25), (), "Christmas"),
        DatedHours(date(2026, 12, 31), (Span(1140, 1440),), ""),
    )
    assert hours.on(date(2026, 12, 25)) == ()


def test_the_samples_are_right() -> None:
    told = read_store_files(
        StoreFiles(ROOT / "config/store.toml", ROOT / "config/hours.toml", "EUR", None),
        today=TODAY,
    )
    assert told.restaurant is not None
    assert told.restaurant.delivery.minimum == 1500
    assert told.hours is not None
    assert told.hours.timezone == "Europe/Rome"
    assert told.notes == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"12:00-14:30", "18:30-22:30"', '"12-14:30"', 4, 'Write "12:00-14:30".'),
        ('"12:00-14:30", "18:30-22:30"', '"9am - 5:30pm"', 4, 'Write "09:00-17:30".'),
        ('"12:00-14:30", "18:30-22:30"', '"25:00-26:00"', 4, "past the end of the day"),
        ('"12:00-14:30", "18:30-22:30"', '"12:00-15:00", "14:00-18:00"', 4, '"12:00-18:00"'),
        ('"12:00-14:30", "18:30-22:30"', '"18:00-18:00"', 4, "ends when it begins"),
        ('"12:00-14:30", "18:30-22:30"', '"18:00-02:00"', 4, 'wednesday = ["00:00-02:00"]'),
        ('["12:00-14:30", "18:30-22:30"]', '"12:00-14:30"', 4, "must be a list"),
        ("tuesday =", "teusday =", 4, 'Did you mean "tuesday"?'),
        ("monday = []\n", "", 2, "Write monday = [] if the store is closed"),
        ("Europe/Rome", "Rome", 1, 'Did you mean "Europe/Rome"?'),
        ('"Europe/Rome"', "1", 1, "must be text in quotes"),
    ],
)
def test_a_slip_in_the_week_names_line_and_remedy(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in WEEK
    told = hours_faults(tmp_path, WEEK.replace(old, new, 1))
    assert f"hours.toml, line {line}: " in told
    assert words in told


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    told = hours_faults(
        tmp_path,
        WEEK.replace("12:00-14:30", "12-14")
        + "[[overrides]]\ndate = 2026-02-30x\n".replace("2026-02-30x", '"2026-02-30"')
        + "closed = true\n[[overrides]]\ndate = 2026-12-25\n",
    )
    assert told.startswith("6 settings are wrong")
    assert "line 11: overrides[0].date is not a date that exists." in told
    assert "has neither closed nor hours" in told


def test_a_date_that_stands_twice_is_told(tmp_path: Path) -> None:
    one = "[[overrides]]\ndate = 2026-12-25\nclosed = true\n"
    assert "line 14: overrides[1].date 2026-12-25 appears twice." in hours_faults(
        tmp_path, WEEK + one + one
    )


def test_a_file_that_is_not_toml_names_its_line(tmp_path: Path) -> None:
    assert "hours.toml, line 3: is not valid TOML" in hours_faults(
        tmp_path, WEEK.replace("= []", "[]")
    )


def test_the_stores_time_zone_need_not_be_said_twice_but_must_not_differ(tmp_path: Path) -> None:
    read = read_hours(tmp_path, WEEK.split("\n", 1)[1], "Asia/Tokyo")
    assert read.hours.timezone == "Asia/Tokyo"
    assert "differs from the time zone of the store" in hours_faults(
        tmp_path, WEEK, timezone="Asia/Tokyo"
    )
    assert "timezone is missing" in hours_faults(tmp_path, WEEK.split("\n", 1)[1])


def test_a_time_the_clock_jumps_over_is_noted_for_the_week_and_wrong_for_a_date(
    tmp_path: Path,
) -> None:
    (note,) = read_hours(tmp_path, WEEK.replace('["00:00-00:30"]', '["02:30-06:00"]')).notes
    assert "line 9: weekly.sunday[0] 02:30 does not exist on 2027-03-28" in note
    assert "03:00" in note
    dated = WEEK + '[[overrides]]\ndate = 2027-03-28\nhours = ["02:30-06:00"]\n'
    told = hours_faults(tmp_path, dated)
    assert "line 12: overrides[0].hours[0] 02:30 does not exist on 2027-03-28" in told


def test_new_york_jumps_on_another_day(tmp_path: Path) -> None:
    text = WEEK.replace("Europe/Rome", "America/New_York")
    (note,) = read_hours(tmp_path, text.replace('["00:00-00:30"]', '["02:30-06:00"]')).notes
    assert "2027-03-14" in note


STORE = """\
name = "Trattoria"
image = "https://www.example.com/a.jpg"
[delivery]
minimum = 15.00
[pass_through]
acceptsScheduledOrders = true
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("https://www.example.com/a.jpg", "front.jpg", 2, "enter its https:// address"),
        ("https://www.example.com/a.jpg", "http://www.example.com/a.jpg", 2, "https://"),
        ("15.00", "15.005", 4, "minimum = 15.00"),
        ("15.00", "1e999999", 4, "minimum = 15.00"),
        ("minimum = 15.00", "radius_km = 1e99", 4, "from 0 to 20000"),
        ("acceptsScheduledOrders = true", "x = 1e999", 6, "cannot be written as JSON"),
        ("acceptsScheduledOrders = true", "x = " + "[" * 5000, 0, "store.toml"),
        ("15.00", "-1", 4, "must not be negative"),
        ("minimum", "minimun", 4, 'Did you mean "minimum"?'),
        ('"Trattoria"', '""', 1, "must not be empty"),
        ('name = "Trattoria"', 'phone = "call us"', 1, "is not a telephone number"),
        ('name = "Trattoria"', 'email = "nobody"', 1, "is not an e-mail address"),
        ('name = "Trattoria"', "opensOnSunday = true", 1, "below [pass_through]"),
        ("acceptsScheduledOrders = true", 'name = "Other"', 6, "Remove one of them."),
        (
            "acceptsScheduledOrders = true",
            "deliverySettings = { min_order_amount = 1 }",
            6,
            "Remove one of them.",
        ),
        ("acceptsScheduledOrders = true", "since = 2026-01-01", 6, "cannot be written as JSON"),
    ],
)
def test_a_slip_in_the_settings_names_line_and_remedy(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in STORE
    told = store_faults(tmp_path, STORE.replace(old, new, 1))
    assert (f"store.toml, line {line}: " if line else "store.toml: ") in told
    assert words in told


def test_both_files_are_told_at_once(tmp_path: Path) -> None:
    told = store_faults(tmp_path, STORE.replace("https:", ""), hours=WEEK.replace("= []", "= 7"))
    assert told.startswith("2 settings are wrong")
    assert "store.toml, line 2" in told
    assert "hours.toml, line 3" in told


def test_hours_stand_in_one_file_only(tmp_path: Path) -> None:
    week = "[hours]\n" + WEEK.split("[weekly]\n")[1]
    assert "are set twice" in store_faults(tmp_path, STORE + week, hours=WEEK)
    path = tmp_path / "store.toml"
    path.write_text(STORE + week, "utf-8")
    told = read_store_files(StoreFiles(path, None, "EUR", "Europe/Rome"), today=TODAY)
    assert told.hours is not None
    assert told.hours.timezone == "Europe/Rome"
    assert told.hours.weekly[0] == ()


def test_a_file_that_is_not_there_is_told_with_the_setting_that_names_it(tmp_path: Path) -> None:
    files = StoreFiles(tmp_path / "s.toml", tmp_path / "h.toml", "EUR", None)
    with pytest.raises(ConfigError) as caught:
        read_store_files(files, today=TODAY)
    assert "settings_file" in str(caught.value)
    assert "hours_file" in str(caught.value)


WRONG_KINDS = ("1", "true", '"?"', "[1]", "{ a = 1 }", "2026-01-01T10:00:00", "inf", "nan", '""')


@pytest.mark.parametrize("value", WRONG_KINDS)
def test_a_value_of_any_kind_is_taken_or_named_with_its_line(tmp_path: Path, value: str) -> None:
    keys = ("name", "image", "phone", "address", "delivery", "hours", "pass_through", "other")
    inner = ("delivery.enabled", "delivery.fee", "delivery.radius_km", "address.zip")
    for key in (*keys, *inner):
        path = tmp_path / "store.toml"
        path.write_text(f"{key} = {value}\n", "utf-8")
        with contextlib.suppress(ConfigFaults):
            read_store_files(StoreFiles(path, None, "EUR", None), today=TODAY)
    for key in ("timezone", "weekly", "overrides", "weekly.monday", "overrides = [{ date"):
        end = " }]" if "[" in key else ""
        told = hours_faults(tmp_path, f"{key} = {value}{end}\n")
        assert "hours.toml" in told
