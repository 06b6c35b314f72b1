"""Commands and their help in the language of the terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.support.languages import Texts, catalogues
from tillbridge.cli import say
from tillbridge.cli.app import program
from tillbridge.core.i18n import Reader, _, of_environment, reading


@pytest.fixture(autouse=True)
def _german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    texts: Texts = {
        "Options": "Optionen",
        "Answer as JSON.": "Als JSON antworten.",
        "Mark an item as sold out, whatever the till says.": "Einen Artikel ausblenden.",
        "Example: {command}": "Beispiel: {command}",
        "The store's name in bridge.toml.": "Name des Betriebs in bridge.toml.",
        "Done.": "Erledigt.",
    }
    monkeypatch.setattr(typer.core, "_", typer.core._)  # type: ignore[attr-defined]  # put back
    with (
        catalogues(tmp_path, monkeypatch, de=texts),
        reading(Reader(of_environment({"LANG": "de_DE.UTF-8"}))),
    ):
        yield


def test_help_follows_the_terminal_s_language(capsys: pytest.CaptureFixture[str]) -> None:
    program()(["item", "86", "--help"], prog_name="tillbridge", standalone_mode=False)
    shown = capsys.readouterr().out
    assert "Einen Artikel ausblenden." in shown
    assert "Beispiel: tillbridge item 86 main B1 --until 18:30" in shown
    assert "Name des Betriebs" in shown
    assert "Optionen:" in shown
    assert "Als JSON antworten." in shown


def test_answers_follow_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    say.lines(say.sentence({"text": ""}, {}))
    say.lines(say.table([_("Done.")], [[_("Done.")]]))
    say.document({"text": _("Done.")})
    out = capsys.readouterr().out
    assert out.count("Erledigt.") == 4
