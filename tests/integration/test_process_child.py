"""A program's end is told, however soon and whatever went wrong in hearing it."""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tillbridge.pos.process.child import Child, environment


class Listener:
    """Reads a program to its end; `deaf` is raised at its first line."""

    def __init__(self, deaf: Exception | None = None) -> None:
        self.why: list[str] = []
        self.over = threading.Event()
        self._deaf = deaf

    def line(self, child: Child, line: bytes) -> None:
        if self._deaf is not None:
            raise self._deaf

    def ended(self, child: Child, why: str) -> None:
        self.why.append(why)
        self.over.set()


def started(folder: Path, listener: Listener, text: str) -> Child:
    command = [sys.executable, "-S", "-c", text]
    return Child(
        command,
        cwd=folder,
        env=environment([], os.environ),
        on_line=listener.line,
        on_stderr=lambda _text: None,
        on_end=listener.ended,
    )


def test_one_that_ends_before_all_its_threads_have_begun_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin: Callable[[threading.Thread], None] = threading.Thread.start

    def begin_late(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name.startswith("process-"):
            time.sleep(0.3)  # a machine that has other things to do

    monkeypatch.setattr(threading.Thread, "start", begin_late)
    listener = Listener()
    started(tmp_path, listener, "raise SystemExit(7)")
    assert listener.over.wait(20)
    assert listener.why == ["it ended with exit code 7"]


def test_one_whose_words_cannot_be_heard_is_ended_and_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    listener = Listener(deaf=RuntimeError("a defect of ours"))
    child = started(tmp_path, listener, "import time; print('hello', flush=True); time.sleep(60)")
    assert listener.over.wait(20)
    assert len(listener.why) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    child._reader.join(20)
    assert len(died) == 1, "and it is in the log"
