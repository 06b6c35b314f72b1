"""The kernel's notices: what was touched, where, and when a folder itself is gone."""

import select
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("inotify is Linux's", allow_module_level=True)

from tillbridge.adapters.inotify import FolderNotices


def told(notices: FolderNotices) -> set[tuple[str, str]]:
    touched: set[tuple[str, str]] = set()
    while select.select([notices], [], [], 0.2)[0]:
        touched |= notices.read()
    return touched


def test_each_way_to_change_a_file_is_told_by_folder_and_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "zwei ü"
    one.mkdir()
    two.mkdir()
    notices = FolderNotices([str(one), str(two)])
    assert told(notices) == set()
    (one / "written").write_text("x", encoding="utf-8")
    (two / "moved ü").write_text("x", encoding="utf-8")
    (two / "moved ü").rename(one / "came")
    (one / "written").unlink()
    assert told(notices) == {
        (str(one), "written"),
        (str(one), "came"),
        (str(two), "moved ü"),
    }
    notices.close()


def test_a_folder_that_goes_is_told_without_a_name(tmp_path: Path) -> None:
    folder = tmp_path / "share"
    folder.mkdir()
    notices = FolderNotices([str(folder)])
    folder.rename(tmp_path / "elsewhere")
    assert (str(folder), "") in told(notices)
    notices.close()


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FolderNotices([str(tmp_path / "missing")])


def test_reading_when_nothing_happened_gives_nothing(tmp_path: Path) -> None:
    notices = FolderNotices([str(tmp_path)])
    assert notices.read() == set()
    notices.close()
