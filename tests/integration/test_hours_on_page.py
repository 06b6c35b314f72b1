"""Opening hours on the page Settings: changed in place in their file, as people type them."""

import tomllib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_settings_saved import TEXT, Page, settings_of
from tillbridge.config.hours import read_hours_file
from tillbridge.core.errors import ConfigError
from tillbridge.model.restaurant import WEEKDAYS

HOURS = """\
timezone = "Europe/Rome"  # where we are

[weekly]
monday    = []            # our day off
tuesday   = ["12:00-14:30", "18:30-22:30"]
wednesday = ["12:00-14:30", "18:30-22:30"]
thursday  = ["12:00-14:30", "18:30-22:30"]
friday    = ["12:00-14:30", "18:30-23:00"]
saturday  = ["18:30-24:00"]
sunday    = ["00:00-00:30", "12:00-15:00"]

# Everybody is with the family.
[[overrides]]
date   = 2026-12-25
closed = true
reason = "Christmas"

[[overrides]]
date   = 2026-12-31
hours  = ["19:00-24:00"]  # the dinner
"""
WITH_FILE = TEXT.replace('currency = "USD"', 'currency = "USD"\nhours_file = "hours.toml"')


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    (tmp_path / "hours.toml").write_text(HOURS, "utf-8")
    async with settings_of(tmp_path, WITH_FILE) as made:
        yield made


def file_of(page: Page) -> Path:
    return page.path.with_name("hours.toml")


async def shown(page: Page) -> Any:  # noqa: ANN401 -- as declared
    return (await page.ask("config.show", section="hours"))["hours"]


def form_of(hours: Mapping[str, Any]) -> dict[str, str]:
    """Return what a browser sends of the form as it was shown."""
    form = {f"day.{each['name']}": each["times"] for each in hours["days"]}
    for place, each in enumerate(hours["dates"]):
        form |= {f"{key}.{place}": each[key] for key in ("date", "times", "reason")}
    return form


async def save(page: Page, changes: Mapping[str, str], **given: object) -> Any:  # noqa: ANN401 -- as declared
    hours = await shown(page)
    given = {"digest": hours["digest"], "store": "main", **given}
    return await page.ask("hours.change", form={**form_of(hours), **changes}, **given)


async def test_what_is_shown_and_sent_back_changes_nothing(page: Page) -> None:
    assert (await save(page, {}))["lines"] == []
    assert file_of(page).read_text("utf-8") == HOURS
    assert page.text == WITH_FILE


async def test_a_day_and_a_date_are_changed_where_they_stand(page: Page) -> None:
    answer = await save(
        page,
        {
            "day.monday": "6pm - 10:30 pm",
            "times.0": "12-15",
            "date.2": "2027-01-01",
            "reason.2": "New Year",
        },
    )
    text = file_of(page).read_text("utf-8")
    assert 'monday    = ["18:00-22:30"]            # our day off' in text
    assert "# Everybody is with the family.\n[[overrides]]\ndate   = 2026-12-25\n" in text
    assert 'hours  = ["19:00-24:00"]  # the dinner' in text
    assert '+monday    = ["18:00-22:30"]            # our day off' in answer["lines"]
    hours = read_hours_file(file_of(page), timezone=None, today=date(2026, 11, 23)).hours
    assert [str(each) for each in hours.on(date(2026, 12, 25))] == ["12:00-15:00"]
    assert hours.on(date(2027, 1, 1)) == ()
    assert hours.overrides[-1].reason == "New Year"
    (copy,) = page.path.parent.glob("hours.toml.*.bak")
    assert copy.read_text("utf-8") == HOURS


async def test_a_date_is_removed_and_the_others_stay_as_they_are(page: Page) -> None:
    await save(page, {"date.0": ""})
    text = file_of(page).read_text("utf-8")
    assert "Christmas" not in text
    assert 'date   = 2026-12-31\nhours  = ["19:00-24:00"]  # the dinner\n' in text
    await save(page, {"date.0": ""})
    assert "overrides" not in tomllib.loads(file_of(page).read_text("utf-8"))


async def test_past_midnight_is_put_on_both_days_and_again_changes_nothing(page: Page) -> None:
    await save(page, {"day.friday": "18:30-02:00", "day.sunday": "12:00-15:00, 20-1"})
    weekly = tomllib.loads(file_of(page).read_text("utf-8"))["weekly"]
    assert weekly["friday"] == ["18:30-24:00"]
    assert weekly["saturday"] == ["00:00-02:00", "18:30-24:00"]
    assert weekly["monday"] == ["00:00-01:00"]
    assert (await save(page, {}))["lines"] == []


@pytest.mark.parametrize(
    ("changes", "field", "text"),
    [
        ({"day.friday": "noon"}, "day.friday", "not a time span like HH:MM-HH:MM"),
        ({"day.friday": "12:00-15:00, 14:00-16:00"}, "day.friday", "overlaps"),
        ({"times.1": "19:00-02:00"}, "times.1", "ends before it begins"),
        ({"date.2": "2026-02-30"}, "date.2", "date does not exist"),
        ({"date.2": "2026-12-25"}, "date.2", "twice"),
        (
            {"date.0": "", "date.2": "2027-01-01", "times.2": "all day"},
            "times.2",
            "not a time span",
        ),
    ],
)
async def test_what_is_wrong_is_named_beside_its_field(
    page: Page, changes: Mapping[str, str], field: str, text: str
) -> None:
    with pytest.raises(ConfigError) as wrong:
        await save(page, changes)
    assert wrong.value.field == field
    assert text in wrong.value.text
    assert wrong.value.fix
    assert file_of(page).read_text("utf-8") == HOURS


async def test_a_hand_edit_wins_and_is_shown(page: Page) -> None:
    seen = await shown(page)
    file_of(page).write_text(HOURS.replace("18:30-23:00", "18:30-23:30"), "utf-8")
    with pytest.raises(ConfigError, match="changed by hand") as refused:
        await save(page, {"day.monday": "10-11"}, digest=seen["digest"])
    assert refused.value.field == "digest"
    assert "18:30-23:30" in str((await shown(page))["days"])
    file_of(page).write_text("[weekly\n", "utf-8")
    broken = await shown(page)
    assert "line 1" in broken["unusable"]


async def test_the_first_hours_make_a_file_and_name_it(tmp_path: Path) -> None:
    async with settings_of(tmp_path) as page:
        seen = await shown(page)
        assert (seen["file"], seen["timezone_is_asked"]) == ("", True)
        with pytest.raises(ConfigError, match="Every day is closed"):
            await save(page, {"timezone": "Europe/Rome"})
        with pytest.raises(ConfigError) as wrong:
            await save(page, {"day.monday": "9-17", "timezone": "Rome"})
        assert wrong.value.field == "timezone"
        assert "Europe/Rome" in wrong.value.fix
        assert not file_of(page).exists()
        assert page.text == TEXT
        everyday = {f"day.{day}": "9-17" for day in WEEKDAYS}
        await save(page, {**everyday, "timezone": "Europe/Rome"})
        assert page.says["stores"]["main"]["hours_file"] == "hours.toml"
        today = datetime.now(UTC).date()
        hours = read_hours_file(file_of(page), timezone=None, today=today).hours
        assert {str(each) for each in hours.on(today)} == {"09:00-17:00"}
        assert "hours" in {
            each["name"] for each in (await page.ask("config.show"))["next"] if each["done"]
        }
