"""The first seeds in each run, fresh ones in `make slow`, and those that have found something."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, planted

ROOT = Path(__file__).parents[2]
# Of the CPU, in seconds; a job at night gives it more.
CPU_S = os.environ.get("SIMULATION_CPU_S", "20")

# Plans that have found something, made as small as they can be.
KEPT = sorted((ROOT / "tests/simulation/kept").glob("*.json"))


def _simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(("--first", "1"), id="known"),
        pytest.param(
            ("--fresh", "--seeds", "10000"),
            id="fresh",
            marks=pytest.mark.slow(reason="these are for long nights; a build plays 300 beside"),
        ),
    ],
)
def test_the_invariants_hold(seeds: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    done = _simulate(*seeds, "--cpu", CPU_S)

    with capsys.disabled():
        print(f"\nsimulated: {done.stdout.strip().splitlines()[-2:]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("plan", KEPT, ids=lambda path: path.stem)
def test_a_kept_plan_finds_nothing_any_more(plan: Path) -> None:
    done = _simulate("--plan", str(plan))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_can_still_be_planted(name: str) -> None:
    with planted(name):
        pass


def test_a_seed_is_replayed_exactly_also_beside_others() -> None:
    once = _simulate("--first", "3", "--seeds", "2", "--digests")
    again = _simulate("--first", "3", "--seeds", "2", "--digests", "--jobs", "2")

    assert (once.returncode, again.returncode) == (0, 0), once.stderr + again.stderr
    histories = [
        sorted(re.findall(r"^seed .*$", each.stdout, re.MULTILINE)) for each in (once, again)
    ]
    assert histories[0] == histories[1]
    assert [each.split(":")[0] for each in histories[0]] == ["seed 3", "seed 4"]
