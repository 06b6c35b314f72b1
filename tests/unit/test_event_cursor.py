"""Of a till's events, only those after the last handled one are requested."""

import errno
import os
from pathlib import Path

import pytest

from tillbridge.adapter import PosOffline
from tillbridge.adapter.event_cursor import EventCursor


def test_a_cursor_starts_at_nothing_and_never_goes_back(tmp_path: Path) -> None:
    cursor = EventCursor(tmp_path / "events")
    assert cursor.number == 0
    for key, expected in (("3", 3), ("17", 17), ("9", 17), ("17", 17), ("18", 18)):
        cursor.handled(key)
        assert EventCursor(tmp_path / "events").number == expected
    assert [each.name for each in tmp_path.iterdir()] == ["events"]


def test_a_file_without_a_number_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("")
    cursor = EventCursor(tmp_path / "events")
    for call in (lambda: cursor.number, lambda: cursor.handled("4")):
        with pytest.raises(PosOffline, match="contains no event number") as failure:
            call()
        assert str(tmp_path / "events") in failure.value.fix
    assert (tmp_path / "events").read_text() == ""


def test_a_disk_that_is_full_leaves_the_old_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = EventCursor(tmp_path / "events")
    cursor.handled("3")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PosOffline, match="full"):
        cursor.handled("4")
    assert cursor.number == 3


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    cursor = EventCursor(tmp_path / "gone" / "events")
    with pytest.raises(PosOffline, match="gone"):
        cursor.handled("4")
