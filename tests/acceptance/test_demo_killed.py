"""Whoever kills the bridge in the demo sees what it is for: the order comes all the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BELOW = Path("/proc/thread-self/children")
pytestmark = pytest.mark.xdist_group("usual ports")  # two demos would ask for the same ones


def until(what: str, look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def bridge_of(demo: int) -> int | None:
    told = Path(f"/proc/{demo}/task/{demo}/children").read_text()
    return int(told.split()[0]) if told.split() else None


@contextmanager
def demo(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run the demo, as from a script that ignores Ctrl-C; yield it and what it says."""
    said = folder / "said"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # its children begin with it
    try:
        with said.open("wb") as out:
            started = subprocess.Popen(
                [sys.executable, "-u", "-m", "tillbridge", "demo"],
                cwd=ROOT,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)},
            )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        until("the demo runs", lambda: "Ctrl-C" in said.read_text())
        yield started, said
    finally:
        started.kill()
        started.wait()


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
def test_a_bridge_that_is_killed_is_started_again(tmp_path: Path) -> None:
    with demo(tmp_path) as (running, said):
        killed = bridge_of(running.pid)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        until("it says so", lambda: "started again" in said.read_text())
        until("another runs", lambda: bridge_of(running.pid) not in {None, killed})
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_demo_ends_with_its_terminal_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with demo(tmp_path) as (running, said):
        bridge = bridge_of(running.pid)
        running.send_signal(number)
        assert running.wait(60) == 0
        assert not Path(f"/proc/{bridge}").exists()
        assert [each for each in tmp_path.iterdir() if each != said] == []
