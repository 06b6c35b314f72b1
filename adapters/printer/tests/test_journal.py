"""What the journal of a printer knows, whatever the disk does."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from tillbridge_printer.journal import Journal


def test_a_ticket_that_was_begun_stays_so_when_the_disk_fails_as_it_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal" / "main")
    journal.begin("ord_1")

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with contextlib.suppress(OSError):
        journal.begin("ord_1")
    assert journal.begun("ord_1")
