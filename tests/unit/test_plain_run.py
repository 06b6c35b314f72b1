import subprocess
import sys
from pathlib import Path

import pytest

from tillbridge.cli.start import plain_run


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        (["run"], None),
        (["--config", "b.toml", "run"], Path("b.toml")),
        (["--config=b.toml", "run"], Path("b.toml")),
    ],
)
def test_the_shortest_way_is_for_a_plain_run(arguments: list[str], config: Path | None) -> None:
    assert plain_run(arguments) == (config,)


@pytest.mark.parametrize(
    "arguments",
    [[], ["run", "--help"], ["--config", "run"], ["status"], ["--version", "run"], ["run", "run"]],
)
def test_everything_else_is_parsed(arguments: list[str]) -> None:
    assert plain_run(arguments) is None


def test_a_daemon_carries_no_parser_of_command_lines() -> None:
    code = (
        "import sys, tillbridge.cli.start, tillbridge.configfile, tillbridge.daemon;"
        "print([name for name in ('typer', 'click', 'rich') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
