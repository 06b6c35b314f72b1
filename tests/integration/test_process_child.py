"""A program's end is told, however soon and whatever went wrong in hearing it."""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tillbridge.pos.process.child import Child, environment


class Ear:
    """Hears a program to its end; `deaf` is raised at its first line."""

    def __init__(self, deaf: Exception | None = None) -> None:
        self.why: list[str] = []
        self.over = threading.Event()
        self._deaf = deaf

    def line(self, child: Child, line: bytes) -> None:
        if self._deaf is not None:
            raise self._deaf

    def words(self, text: str) -> None: ...

    def ended(self, child: Child, why: str) -> None:
        self.why.append(why)
        self.over.set()


def started(folder: Path, ear: Ear, text: str) -> Child:
    command = [sys.executable, "-S", "-c", text]
    return Child(command, cwd=folder, env=environment([], os.environ), ear=ear)


def test_one_that_ends_before_all_its_threads_have_begun_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin: Callable[[threading.Thread], None] = threading.Thread.start

    def begin_late(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name.startswith("process-"):
            time.sleep(0.3)  # a machine that has other things to do

    monkeypatch.setattr(threading.Thread, "start", begin_late)
    ear = Ear()
    started(tmp_path, ear, "raise SystemExit(7)")
    assert ear.over.wait(20)
    assert ear.why == ["it ended with exit code 7"]


def test_one_whose_words_cannot_be_heard_is_ended_and_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    ear = Ear(deaf=RuntimeError("a defect of ours"))
    child = started(tmp_path, ear, "import time; print('hello', flush=True); time.sleep(60)")
    assert ear.over.wait(20)
    assert len(ear.why) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    child._reader.join(20)
    assert len(died) == 1, "and it is in the log"
