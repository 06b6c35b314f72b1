"""The list of mutants that survive is about lines that are there."""

import tomllib
from pathlib import Path

SURVIVORS = Path(__file__).with_name("survivors.toml")
SOURCE = Path(__file__).resolve().parents[2] / "src/tillbridge"


def test_each_survivor_is_a_line_of_the_program_and_has_a_reason() -> None:
    parts = ("model/money", "receiver/deliveries", "menu/guard", "ledger/orders", "menu/plan")
    lines = {
        line.strip()
        for part in parts
        for line in (SOURCE / f"{part}.py").read_text("utf-8").splitlines()
    }
    for part in tomllib.loads(SURVIVORS.read_text("utf-8")).values():
        for key, reason in part.items():
            assert key.rpartition("  # ")[0] in lines
            assert reason.endswith(".")
