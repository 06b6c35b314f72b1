"""A program's end is reported, however soon and whatever went wrong in reading it."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tillbridge.pos.process.program import Limits, ProgramSupervisor, environment

HELLO = '{"type": "hello", "protocol": 1, "name": "till", "capabilities": []}'


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., ProgramSupervisor]]:
    made: list[ProgramSupervisor] = []

    def make(
        text: str, on_ready: Callable[[], None] = lambda: None, rest_s: float = 60
    ) -> ProgramSupervisor:
        program = ProgramSupervisor(
            [sys.executable, "-S", "-c", text],
            cwd=tmp_path,
            env=environment([], os.environ),
            hello={},
            limits=Limits(start_s=20, restart_cap_s=rest_s, steady_s=60),
            store="main",
            on_ready=on_ready,
        )
        made.append(program)
        return program

    yield make
    for program in made:
        program.close()


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + 20
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def test_one_that_ends_before_all_its_threads_have_begun_is_reported(
    supervise: Callable[..., ProgramSupervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin: Callable[[threading.Thread], None] = threading.Thread.start

    def begin_late(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name.startswith("process-"):
            time.sleep(0.3)  # a machine that has other things to do

    monkeypatch.setattr(threading.Thread, "start", begin_late)
    program = supervise("raise SystemExit(7)")
    assert program.start() is None
    assert "it ended with exit code 7" in program.absence()


def test_one_whose_lines_cannot_be_taken_is_ended_reported_and_started_again(
    supervise: Callable[..., ProgramSupervisor], tmp_path: Path
) -> None:
    defects = [RuntimeError("a defect of ours")]

    def on_ready() -> None:
        if defects:
            raise defects.pop()

    text = f"""import os, time
open("pids", "a").write(f"{{os.getpid()}}\\n")
print({HELLO!r}, flush=True)
time.sleep(60)"""
    with capture_logs() as logged:
        program = supervise(text, on_ready, rest_s=0.05)
        program.start()
        until(lambda: len((tmp_path / "pids").read_text().split()) == 2)
        until(lambda: not program.absence())
    first, second = map(int, (tmp_path / "pids").read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    os.kill(second, 0)
    events = [each["event"] for each in logged if each["log_level"] in {"warning", "error"}]
    assert events == ["adapter.failed", "adapter.ended"], "and it is in the log"
