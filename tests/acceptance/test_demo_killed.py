"""Whoever kills the bridge in the demo sees what it is for: the order comes all the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BELOW = Path("/proc/thread-self/children")


def until(what: str, look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def bridge_of(demo: int) -> int | None:
    told = Path(f"/proc/{demo}/task/{demo}/children").read_text()
    return int(told.split()[0]) if told.split() else None


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
def test_a_bridge_that_is_killed_is_started_again(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("wb") as out:
        demo = subprocess.Popen(
            [sys.executable, "-u", "-m", "tillbridge", "demo"],
            cwd=ROOT,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
    try:
        until("the demo runs", lambda: "Ctrl-C" in said.read_text())
        killed = bridge_of(demo.pid)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        until("it says so", lambda: "started again" in said.read_text())
        until("another runs", lambda: bridge_of(demo.pid) not in {None, killed})
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
        demo.wait()
