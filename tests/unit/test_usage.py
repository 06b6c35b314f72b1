"""A command that was typed wrong: what is wrong and where its help is, in the reader's words."""

import sys
from pathlib import Path

import pytest
import typer

from tests.support.languages import Texts, catalogues
from tillbridge.cli import main
from tillbridge.cli.app import program
from tillbridge.core.i18n import Reader, of_environment, reading


@pytest.mark.parametrize(
    ("typed", "says", "help_of"),
    [
        ("ordrs", "There is no command ordrs. Did you mean orders?", ""),
        ("orders lst", "There is no command lst. Did you mean list?", "orders"),
        ("orders show", "ORDER is missing.", "orders show"),
        ("orders list --josn", "There is no option --josn. Did you mean --json?", "orders list"),
        ("orders list --limit", "--limit needs a value.", ""),
        ("orders list --limit x", "--limit: Enter a whole number.", "orders list"),
        ("orders list --limit 0", "--limit: Enter 1 or more.", "orders list"),
        ("orders list --json=1", "--json does not take a value.", ""),
        ("orders done 7 --how x", "--how: x is not one of: typed, settled.", "orders done"),
        ("status extra", "Not expected here: extra", "status"),
        ("password a/b", "Use only letters, digits and . _ @ - in a name.", "password"),
    ],
)
def test_a_slip_names_what_is_wrong_and_where_the_help_is(
    typed: str,
    says: str,
    help_of: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(sys, "argv", ["tillbridge", *typed.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    command = " ".join(("tillbridge", *help_of.split()))
    assert capsys.readouterr().err.splitlines() == [says, f"For help: {command} --help"]


def test_it_is_json_where_json_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(sys, "argv", ["tillbridge", "orders", "show", "--json"])
    with pytest.raises(SystemExit):
        main()
    assert '"exit_code": 2' in capsys.readouterr().out


def test_help_has_nothing_left_in_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: Texts = {
        "Usage: ": "Aufruf: ",
        "[OPTIONS]": "[OPTIONEN]",
        "Show this message and exit.": "Diese Hilfe anzeigen.",
    }
    monkeypatch.setattr(typer.core, "_", typer.core._)  # type: ignore[attr-defined]  # put back
    with (
        catalogues(tmp_path, monkeypatch, de=texts),
        reading(Reader(of_environment({"LANG": "de_DE.UTF-8"}))),
    ):
        program()(["orders", "list", "-h"], prog_name="tillbridge", standalone_mode=False)
    shown = capsys.readouterr().out
    assert shown.startswith("Aufruf: tillbridge orders list [OPTIONEN]")
    assert "Diese Hilfe anzeigen." in shown


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (["run"], {"run"}),
        (["--config", "bridge.toml", "run"], {"run"}),
        (["--config", "run", "status"], {"run", "status", "menu"}),
        (["run", "--help"], {"run", "status", "menu"}),
        ([], {"run", "status", "menu"}),
    ],
)
def test_a_start_of_the_bridge_makes_no_other_command(
    arguments: list[str], commands: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tillbridge", *arguments])
    made = set(program().commands)
    assert made == commands if commands == {"run"} else commands < made
