"""What the folder adapter says of a till that is away or a torn export, in the reader's words."""

import json
import os
from pathlib import Path

import pytest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.export_files import reading_whole
from tillbridge.adapter.folders import trouble_of
from tillbridge.core.i18n import Reader, from_plain, reading, to_plain
from tillbridge.pos.runner import unreadable_detail
from tillbridge.pos.validation import valid_failure


def test_a_folder_that_is_away_is_named_in_the_readers_language(tmp_path: Path) -> None:
    trouble = trouble_of(tmp_path / "away", FileNotFoundError())
    assert f"{trouble.text}" == f"The folder {tmp_path / 'away'} is not there."
    with reading(Reader("de")):
        assert f"{trouble.text}" == f"Den Ordner {tmp_path / 'away'} gibt es nicht."
        assert "mkdir -p" in f"{trouble.fix}"


def test_an_export_that_is_away_is_told_in_the_readers_language_after_it_was_stored(
    tmp_path: Path,
) -> None:
    export = tmp_path / "menu.csv"
    with pytest.raises(ExportUnreadable) as raised, reading_whole(export):
        pass
    valid_failure(raised.value)
    detail = unreadable_detail(raised.value)
    stored = json.loads(json.dumps(to_plain(detail)), object_hook=from_plain)
    assert stored["detail"] == f"menu.csv: {export} is not there."
    with reading(Reader("de")):
        assert f"{stored['detail']}" == f"menu.csv: {export} gibt es nicht."
        assert "Kasse" in f"{stored['remedy']}"


def test_a_file_that_ends_early_is_told_in_the_readers_language(tmp_path: Path) -> None:
    export = tmp_path / "menu.csv"
    export.touch()
    os.utime(export, (0, 0))
    with pytest.raises(ExportUnreadable) as raised, reading_whole(export):
        pass
    with reading(Reader("de")):
        assert f"{raised.value.text}" == (
            "menu.csv ist leer; die Datei wird wahrscheinlich noch geschrieben."
        )
