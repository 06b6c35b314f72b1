"""The first seeds in each run, fresh ones in `make slow`, and those that have found something."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, planted

ROOT = Path(__file__).parents[2]
# Of the CPU, in seconds; a build plays 300 seeds beside, and a job at night gives it more.
CPU_S = os.environ.get("SIMULATION_CPU_S", "8")


def _simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def known() -> subprocess.CompletedProcess[str]:
    """The first seeds, with a number of each history."""
    return _simulate("--first", "1", "--cpu", CPU_S, "--digests")


@pytest.fixture
def fresh() -> subprocess.CompletedProcess[str]:
    """Seeds that nobody has played."""
    return _simulate("--fresh", "--seeds", "10000", "--cpu", CPU_S)


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("known seeds")
@pytest.mark.parametrize(
    "played",
    [
        "known",
        pytest.param(
            "fresh",
            marks=pytest.mark.slow(reason="these are for long nights; a build plays 300 beside"),
        ),
    ],
)
def test_the_invariants_hold(
    played: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = request.getfixturevalue(played)

    with capsys.disabled():
        print(f"\nsimulated: {done.stdout.strip().splitlines()[-2:]}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_kept_plans_find_nothing_any_more() -> None:
    plans = sorted((ROOT / "tests/simulation/kept").glob("*.json"))
    done = _simulate("--plan", *map(str, plans))

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(plans)} seeds" in done.stdout


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_can_still_be_planted(name: str) -> None:
    with planted(name):
        pass


@pytest.mark.xdist_group("known seeds")
def test_a_seed_is_replayed_exactly_also_beside_others(
    known: subprocess.CompletedProcess[str],
) -> None:
    again = _simulate("--first", "3", "--seeds", "2", "--digests", "--jobs", "2")

    assert again.returncode == 0, again.stderr
    histories = [
        sorted(re.findall(r"^seed [34]: .*$", each.stdout, re.MULTILINE)) for each in (known, again)
    ]
    assert histories[0] == histories[1]
    assert [each.split(":")[0] for each in histories[0]] == ["seed 3", "seed 4"]
