"""The list of mutants that survive is about lines that are there."""

import tomllib
from pathlib import Path

from tests.mutants.__main__ import PARTS, ROOT, SURVIVORS, code_of


def test_each_survivor_is_a_line_of_its_part_and_has_a_reason() -> None:
    for name, survivors in tomllib.loads(SURVIVORS.read_text("utf-8")).items():
        source = ROOT / "src" / Path(*PARTS[name].module.split(".")).with_suffix(".py")
        lines = {code_of(line) for line in source.read_text("utf-8").splitlines()}
        for key, reason in survivors.items():
            assert key.rpartition("  # ")[0] in lines
            assert reason.endswith(".")
