"""Times that people type."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

import pytest

from tests.support.ledger_harness import StoppedClock
from tillbridge.core.errors import ConfigError
from tillbridge.core.formats import since_ms, until_ms
from tillbridge.model.instant import to_iso
from tillbridge.operations import OPERATIONS

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge

PRAGUE = ZoneInfo("Europe/Prague")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


NOW = ms("2026-11-21T19:02:00+01:00")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("19:30", "2026-11-21T19:30:00+01:00"),
        ("18:30", "2026-11-22T18:30:00+01:00"),
        ("19:02", "2026-11-22T19:02:00+01:00"),
        ("tomorrow", "2026-11-22T00:00:00+01:00"),
        ("Tomorrow", "2026-11-22T00:00:00+01:00"),
        ("2h", "2026-11-21T21:02:00+01:00"),
        ("90m", "2026-11-21T20:32:00+01:00"),
        ("45min", "2026-11-21T19:47:00+01:00"),
        ("1h30m", "2026-11-21T20:32:00+01:00"),
        ("1d", "2026-11-22T19:02:00+01:00"),
        ("2026-11-21T20:00", "2026-11-21T20:00:00+01:00"),
        ("2026-11-21T20:00:00Z", "2026-11-21T20:00:00+00:00"),
    ],
)
def test_a_time_is_read_in_the_stores_zone(text: str, instant: str) -> None:
    assert until_ms(text, now_ms=NOW, zone=PRAGUE) == ms(instant)


def test_a_clock_change_tonight_is_minded() -> None:
    now = ms("2026-10-24T23:00:00+02:00")
    assert until_ms("04:00", now_ms=now, zone=PRAGUE) == ms("2026-10-25T04:00:00+01:00")


def test_without_a_zone_the_machines_time_counts() -> None:
    local = datetime.fromtimestamp(NOW / 1000, UTC).astimezone()
    end = until_ms("tomorrow", now_ms=NOW, zone=None)
    assert datetime.fromtimestamp(end / 1000, UTC).astimezone().hour == 0
    assert 0 < end - NOW <= 25 * 3_600_000
    assert local.tzinfo is not None


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "12:60", "2026-13-01", "h", "0h", "2026-11-21T19:00"]
)
def test_anything_else_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|passed"):
        until_ms(text, now_ms=NOW, zone=PRAGUE)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2h", "2026-11-21T17:02:00+01:00"),
        ("1d", "2026-11-20T19:02:00+01:00"),
        ("18:30", "2026-11-21T18:30:00+01:00"),
        ("19:30", "2026-11-20T19:30:00+01:00"),
        ("today", "2026-11-21T00:00:00+01:00"),
        ("2026-11-20T10:00", "2026-11-20T10:00:00+01:00"),
        ("2026-11-20T10:00Z", "2026-11-20T11:00:00+01:00"),
    ],
)
def test_looking_back_a_time_names_the_last_such_instant(text: str, instant: str) -> None:
    assert since_ms(text, now_ms=NOW, zone=PRAGUE) == ms(instant)


def test_what_is_no_time_is_no_time_looking_back_either() -> None:
    with pytest.raises(ValueError, match="is not a time"):
        since_ms("soon", now_ms=NOW, zone=PRAGUE)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("2099-06-01T18:30", "2099-06-01T16:30:00.000Z"),
        ("2099-06-01T18:30Z", "2099-06-01T18:30:00.000Z"),
    ],
)
async def test_until_is_in_the_time_of_the_store(typed: str, wanted: str) -> None:
    bridge = SimpleNamespace(clock=StoppedClock())
    store = SimpleNamespace(settings=SimpleNamespace(timezone="Europe/Prague"))
    resolve = OPERATIONS["item.86"].parameters["until"].argument.resolve
    assert resolve is not None
    at = await resolve(cast("Bridge", bridge), {"store": store}, typed)
    assert to_iso(at) == wanted
    with pytest.raises(ConfigError, match="soon is not a time"):
        await resolve(cast("Bridge", bridge), {"store": store}, "soon")


@pytest.mark.parametrize(
    ("typed", "ago_ms"), [("2h", 7_200_000), ("1h30m", 5_400_000), ("1d", 86_400_000)]
)
async def test_a_menu_is_shown_as_it_was_so_long_ago(typed: str, ago_ms: int) -> None:
    bridge = SimpleNamespace(clock=StoppedClock())
    at = await _as_it_was(bridge, typed)
    assert at == bridge.clock.now_ms() - ago_ms


async def test_a_menu_is_shown_as_it_was_in_the_time_of_the_store() -> None:
    bridge = SimpleNamespace(clock=StoppedClock())
    assert to_iso(await _as_it_was(bridge, "2026-06-01T18:30")) == "2026-06-01T16:30:00.000Z"
    with pytest.raises(ConfigError, match="soon is not a time"):
        await _as_it_was(bridge, "soon")


async def _as_it_was(bridge: SimpleNamespace, typed: str) -> int:
    store = SimpleNamespace(settings=SimpleNamespace(timezone="Europe/Prague"))
    resolve = OPERATIONS["menu.items"].parameters["at"].argument.resolve
    assert resolve is not None
    at: int = await resolve(cast("Bridge", bridge), {"store": store}, typed)
    return at
