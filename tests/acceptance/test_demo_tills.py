"""`tillbridge demo --till NAME` plays the whole thing with any adapter's own till."""

import os
from pathlib import Path

import pytest

from tests.support.fork_server import run
from tillbridge.pos.scaffold import make_package

ROOT = Path(__file__).resolve().parents[2]


def demo(till: str, language: str = "C") -> tuple[int, str]:
    env = {**os.environ, "LANG": language}
    done = run("demo", "--once", "--till", till, cwd=ROOT, env=env, within_s=110)
    return done.returncode, done.stdout + done.stderr


ALIKE = pytest.mark.slow(
    reason="plays the same with each till; in short a printer and a program do, and files elsewhere"
)


@pytest.mark.parametrize(
    "till",
    [
        "printer",
        "a program",
        *(
            pytest.param(each, marks=ALIKE)
            for each in ("square", "loyverse", "clover", "aloha", "odoo")
        ),
    ],
)
def test_every_till_plays_the_whole_thing(till: str, tmp_path: Path) -> None:
    if till == "a program":
        till = str(make_package("corner", tmp_path, "process").folder)
    german = till in {"square", "printer"}  # the demo reads what commands say
    code, out = demo(till, "de_DE.UTF-8" if german else "C")
    assert code == 0, out
    assert ("Jeder Schritt hat geklappt." if german else "Every step worked.") in out
    skipped = [line for line in out.splitlines() if line.startswith("  - ")]
    assert len(skipped) <= 1, out  # Odoo and printers do not say how an order goes on


def test_a_till_that_is_not_there_is_told_with_the_nearest() -> None:
    code, out = demo("clovr")
    assert code == 2
    assert "'clover'" in out


def test_an_adapter_that_is_not_installed_is_told_how(tmp_path: Path) -> None:
    folder = make_package("corner", tmp_path).folder
    code, out = demo(str(folder))
    assert code == 2
    assert "not installed" in out
    assert f"pip install -e {folder}" in out


def test_a_till_without_a_rig_cannot_be_played() -> None:
    code, out = demo("process")
    assert code == 2
    assert "has no till for tests" in out
