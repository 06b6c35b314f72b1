"""What people read can be translated, and every catalogue has all of it."""

import ast
from pathlib import Path

import pytest
from babel.messages import Catalog

from tests.support import messages
from tests.support.messages import (
    SOURCE,
    catalogues,
    drafts,
    faults,
    path_of,
    template,
    update,
)
from tillbridge.core import i18n
from tillbridge.core.problems import PROBLEMS

pytestmark = pytest.mark.xdist_group("messages")  # every text is read once, not by each worker


def test_every_text_of_every_problem_is_among_the_messages() -> None:
    for kind in PROBLEMS.values():
        own = {kind.text, kind.fix, kind.one, kind.fix_on_page, *kind.defaults.values()} - {""}
        assert all(template().get(each) for each in own), kind.code


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Being handled", "web/templates/overview.html"),
        ("Sign in first.", "web/site/site.py"),
        ("Mark an item as sold out, whatever the till says.", "cli"),
        ("Example: {command}", "cli"),
        ("Arguments", "typer"),
    ],
)
def test_pages_code_and_the_help_of_commands_are_read(text: str, place: str) -> None:
    found = template().get(text)
    assert found is not None
    assert place in {file for file, _line in found.locations}


def test_no_text_stands_inside_another_where_nobody_finds_it() -> None:
    hidden = [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for path in SOURCE.rglob("*.py")
        for outer in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(outer, ast.JoinedStr)
        for call in ast.walk(outer)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"_", "ngettext"}
        if isinstance(call.args[0], ast.Constant)
    ]
    assert hidden == []


def test_a_text_for_many_has_its_form_for_one() -> None:
    found = template().get("{n} item")
    assert found is not None
    assert found.id == ("{n} item", "{n} items")


@pytest.mark.parametrize(
    "language", sorted(each.parents[1].name for each in i18n.LOCALES.glob("*/*/*.po"))
)
def test_a_catalogue_has_every_text_and_no_other(language: str) -> None:
    found = faults(catalogues()[language], template())
    assert not found, "run make messages, and translate:\n" + "\n".join(found)


@pytest.mark.parametrize("language", sorted(drafts()))
def test_a_draft_lacks_texts_and_has_none_wrong(language: str) -> None:
    found = faults(drafts()[language], template())
    wrong = [each for each in found if not each.startswith("missing: ")]
    assert not wrong, "run make messages, and correct:\n" + "\n".join(wrong)
    assert found, "it is whole: run make messages"


# -- what the tests before would find


def _whole() -> Catalog:
    made = Catalog()
    made.add("Order {order} waits.")
    made.add(("{n} order", "{n} orders"))
    return made


def _german() -> Catalog:
    made = Catalog(locale="de")
    made.add("Order {order} waits.", "Bestellung {order} wartet.")
    made.add(("{n} order", "{n} orders"), ("eine Bestellung", "{n} Bestellungen"))
    return made


def test_a_whole_catalogue_has_no_faults() -> None:
    assert faults(_german(), _whole()) == []


_ORDER = "Order {order} waits."
_COUNT = ("{n} order", "{n} orders")


@pytest.mark.parametrize(
    ("text", "translated", "flags", "fault"),
    [
        (_ORDER, "", (), "missing"),
        (_ORDER, "Es wartet.", (), "other places in braces than order"),
        (_ORDER, "{bestellung} wartet.", (), "other places in braces than order"),
        (_ORDER, "Bestellung {order wartet.", (), "other places in braces than order"),
        (_ORDER, "Bestellung {order} wartet. ", (), "blanks at an end"),
        (_ORDER, "Bestellung {order}", ("fuzzy",), "fuzzy"),
        (_COUNT, ("{n} Bestellung", ""), (), "not all of its 2 forms"),
        (_COUNT, ("{n} Bestellung", "Bestellungen"), (), "other places in braces than n"),
        ("Another text", "Ein anderer", (), "unknown"),
    ],
)
def test_a_fault_of_a_catalogue_is_found(
    text: str | tuple[str, str],
    translated: str | tuple[str, str],
    flags: tuple[str, ...],
    fault: str,
) -> None:
    catalogue = _german()
    catalogue.delete(text)
    catalogue.add(text, translated, flags=flags)
    assert faults(catalogue, _whole()) == [f"{fault}: {text if isinstance(text, str) else text[0]}"]


def test_a_text_that_is_no_more_is_found() -> None:
    catalogue, whole = _german(), _whole()
    whole.delete("Order {order} waits.")
    catalogue.update(whole, no_fuzzy_matching=True)
    assert faults(catalogue, whole) == ["obsolete: Order {order} waits."]


def test_an_update_takes_what_is_new_and_drops_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "LOCALES", tmp_path)
    monkeypatch.setattr(messages, "template", _whole)
    known = _german()
    known.delete("Order {order} waits.")
    known.add("Order {order} waits", "Bestellung {order} wartet")
    update("de", known, path_of("de"))
    written = catalogues()["de"]
    assert faults(written, _whole()) == ["missing: Order {order} waits."]
    text = path_of("de").read_text("utf-8")
    assert "#~" not in text
    assert "fuzzy" not in text.partition("Order")[2]
    update("de", written, path_of("de"))
    assert path_of("de").read_text("utf-8") == text


def test_english_is_the_source_and_needs_no_catalogue() -> None:
    assert i18n.SOURCE not in catalogues()
    assert i18n.languages()[0] == i18n.SOURCE
