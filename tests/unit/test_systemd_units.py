"""The units of `systemd/`: hardened as far as they claim, and alike for one bridge and several."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tillbridge.config.bridge import BridgeSettings

UNITS = Path(__file__).resolve().parents[2] / "systemd"
SERVICES = ["tillbridge.service", "tillbridge@.service"]
BACKUPS = ["tillbridge-backup.service", "tillbridge-backup@.service"]
TIMERS = ["tillbridge-backup.timer", "tillbridge-backup@.timer"]
ANALYZE = shutil.which("systemd-analyze")
SECONDS = {"s": 1, "min": 60}


def values(unit: str) -> dict[str, str]:
    """The settings of a unit; of one that is set several times, the last."""
    lines = (UNITS / unit).read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if re.match(r"[A-Za-z]+=", line))


def seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)(s|min)", text)
    assert found, text
    return int(found[1]) * SECONDS[found[2]]


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if ANALYZE is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", SERVICES + BACKUPS)
def test_the_exposure_is_one_at_most(unit: str) -> None:
    told = analyze("security", "--offline=yes", "--no-pager", str(UNITS / unit))
    if "unrecognized option" in told.stderr:
        pytest.skip("this systemd cannot examine a unit that is not installed")
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told.stdout)
    assert found, told.stdout + told.stderr
    assert float(found[1]) <= 1.0, told.stdout


@pytest.mark.parametrize("unit", SERVICES + BACKUPS + TIMERS)
def test_systemd_understands_all_but_what_is_newer_than_it(unit: str) -> None:
    told = analyze("verify", "--man=no", str(UNITS / unit))
    complaints = [
        line
        for line in told.stderr.splitlines()
        if "tillbridge" in line
        and "RestartSteps" not in line
        and "RestartMaxDelaySec" not in line
        and "/usr/bin/tillbridge is not executable" not in line
    ]
    assert complaints == []


@pytest.mark.parametrize("pair", [SERVICES, BACKUPS, TIMERS], ids=lambda pair: pair[0])
def test_one_bridge_and_several_are_run_alike(pair: list[str]) -> None:
    one, several = (values(unit) for unit in pair)
    assert {
        name: value.replace(" (%i)", "").replace("@%i", "").replace("/bridges/%i", "")
        for name, value in several.items()
    } == one


def test_what_hangs_is_back_within_fifteen_seconds() -> None:
    unit = values("tillbridge.service")
    starting_s = 2.5  # on a small machine
    assert (
        sum(seconds(unit[name]) for name in ("WatchdogSec", "TimeoutAbortSec", "RestartSec"))
        + starting_s
        <= 15
    )


def test_the_bridge_has_ended_before_systemd_loses_patience() -> None:
    longest = max(
        each.le  # annotated-types' Le
        for each in BridgeSettings.model_fields["drain_s"].metadata
        if hasattr(each, "le")
    )
    assert longest + 1 < seconds(values("tillbridge.service")["TimeoutStopSec"])


def test_the_bridges_are_never_given_up() -> None:
    for unit in SERVICES:
        told = values(unit)
        assert told["Restart"] == "always"
        assert told["StartLimitIntervalSec"] == "0"


@pytest.mark.parametrize("unit", SERVICES)
def test_files_memory_and_tasks_are_limited(unit: str) -> None:
    limits = values(unit)
    assert int(limits["LimitNOFILE"]) >= 65_536
    assert limits["MemoryMax"] == "1G"
    assert limits["OOMPolicy"] == "continue"  # a child that parses an export is not the bridge
    assert int(limits["TasksMax"]) > 3 * 150  # three threads a store
