"""A few kills in each run, and what has to be lost by a program that is broken."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgresql import on_postgresql
from tests.support.preloaded import preloaded


def _soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.soak", *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("sql-postgresql")
def test_kills_and_broken_disks_lose_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preloaded("faults", tmp_path)  # or skip

    done = _soak("--minutes", "0", "--faults", "12")

    with capsys.disabled():
        print(f"\nsoaked: {done.stdout.splitlines()[:1]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300)
@on_postgresql()[1]
@on_postgresql()[0]
def test_several_bridges_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preloaded("faults", tmp_path)  # or skip

    # One of each at least: a bridge killed, frozen, cut off, and the standby promoted.
    done = _soak(*"--bridges --stores 4 --long-s 10 --minutes 0 --faults 8".split())

    with capsys.disabled():
        print(f"\nsoaked: {done.stdout.splitlines()[:2]}")
    assert done.returncode == 0, done.stdout + done.stderr
    for fault in ("kills", "freezes", "cuts", "promotions"):
        assert re.search(rf"^{fault} +[1-9]", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.timeout(1800)
@pytest.mark.slow(reason="the short one does not show that it sees: here leases exclude nobody")
@on_postgresql()[1]
@on_postgresql()[0]
def test_what_unfenced_bridges_lose_is_found(tmp_path: Path) -> None:
    preloaded("faults", tmp_path)  # or skip

    done = _soak(*"--bridges --stores 4 --long-s 10 --minutes 6 --faults 12 --control".split())

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(1200)
@pytest.mark.slow(reason="the short one does not show that it sees: here defects are planted")
def test_what_a_broken_program_loses_is_found(tmp_path: Path) -> None:
    preloaded("faults", tmp_path)  # or skip

    done = _soak("--minutes", "4", "--control")

    assert done.returncode == 0, done.stdout + done.stderr
