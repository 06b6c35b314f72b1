"""Texts in the language of whoever reads them, and what is stored of them."""

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.languages import Texts, catalogues
from tillbridge.core import i18n
from tillbridge.core.i18n import (
    N_,
    Reader,
    _,
    english,
    from_plain,
    joined,
    localised,
    negotiated,
    ngettext,
    of_browser,
    of_environment,
    reading,
    to_plain,
)

GERMAN = Reader("de_DE")


@pytest.fixture(autouse=True)
def _german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    texts: Texts = {
        "Orders": "Bestellungen",
        "Order {order} waits.": "Bestellung {order} wartet.",
        ("{n} order waits.", "{n} orders wait."): (
            "{n} Bestellung wartet.",
            "{n} Bestellungen warten.",
        ),
        "It is late.": "Es ist spät.",
    }
    with catalogues(tmp_path, monkeypatch, de=texts):
        yield


def test_a_text_is_shown_in_the_language_of_who_reads_it() -> None:
    text = _("Orders")
    assert f"{text}" == "Orders"
    with reading(GERMAN):
        assert f"{text} {text!s}" == "Bestellungen Bestellungen"
    with reading(Reader("sv_SE")):
        assert str(text) == "Orders"


def test_values_and_numbers_of_things_are_put_in_by_the_reader_s_rules() -> None:
    one = _("Order {order} waits.").format(order=1007)
    many = ngettext("{n} order waits.", "{n} orders wait.", 2).format(n=2)
    with reading(GERMAN):
        assert str(one) == "Bestellung 1007 wartet."
        assert str(many) == "2 Bestellungen warten."
        assert str(joined(" ", (one, many)) + " " + _("It is late.")) == (
            "Bestellung 1007 wartet. 2 Bestellungen warten. Es ist spät."
        )


def test_a_text_of_a_table_needs_no_more_than_to_be_passed_through() -> None:
    table = {"late": N_("It is late.")}
    with reading(GERMAN):
        assert str(_(table["late"])) == "Es ist spät."


def test_what_is_compared_logged_or_joined_is_english_whoever_reads() -> None:
    with reading(GERMAN):
        text = _("Orders")
        assert text == "Orders"
        assert json.dumps({"text": text}) == '{"text": "Orders"}'
        assert english(text) == "Orders"
        assert type(english(text)) is str


def test_what_is_stored_is_no_translation_and_is_read_in_every_language() -> None:
    with reading(GERMAN):
        text = joined(" ", (_("Order {order} waits.").format(order=7), _("It is late.")))
        stored = json.dumps(to_plain({"detail": text, "count": 1}))
    assert "Bestellung" not in stored
    read = json.loads(stored, object_hook=from_plain)
    assert read == {"detail": "Order 7 waits. It is late.", "count": 1}
    with reading(GERMAN):
        assert localised(read)["detail"] == "Bestellung 7 wartet. Es ist spät."
        assert str(pickle.loads(pickle.dumps(text))) == "Bestellung 7 wartet. Es ist spät."


def test_a_failure_in_a_text_is_stored_in_its_own_words() -> None:
    text = _("Order {order} waits.").format(order=TimeoutError("expired"))
    stored = json.loads(json.dumps(to_plain({"detail": text})), object_hook=from_plain)
    assert stored == {"detail": "Order expired waits."}


def test_a_stored_text_that_this_version_does_not_know_is_read_in_english() -> None:
    stored = {"$text": "of another version", "of": [1], "english": "It is 1."}
    assert from_plain(stored) == "It is 1."
    assert from_plain({"text": "It is 1."}) == {"text": "It is 1."}


async def test_two_readers_at_once_read_two_languages() -> None:
    text = _("Orders")

    async def shown(who: Reader) -> str:
        with reading(who):
            await asyncio.sleep(0)
            return str(text)

    german, plain = await asyncio.gather(shown(GERMAN), shown(Reader()))
    assert (german, plain) == ("Bestellungen", "Orders")


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("de-AT,de;q=0.9,en;q=0.5", "de_AT"),
        ("de", "de"),
        ("en;q=0.2, de-CH", "de_CH"),
        ("sv-SE, en-GB;q=0.8", "en_GB"),
        ("sv", "en"),
        ("*", "en"),
        ("", "en"),
        ("de;q=x,,;q=1", "en"),
        ("de-XX-nonsense", "de"),
        ("de," * 10_000, "de"),
    ],
)
def test_a_browser_gets_the_first_language_there_is(header: str, locale: str) -> None:
    assert of_browser(header) == locale


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({"LANG": "de_DE.UTF-8"}, "de_DE"),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "C", "LANGUAGE": "de"}, "en"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "sv:de"}, "de"),
        ({"LC_MESSAGES": "de_AT@euro"}, "de_AT"),
        ({"LANG": "sv_SE.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_a_command_follows_the_environment(environment: dict[str, str], locale: str) -> None:
    assert of_environment(environment) == locale


def test_a_language_without_a_catalogue_is_english() -> None:
    assert i18n.catalogue("xx").gettext("Orders") == "Orders"
    assert negotiated(["xx"]) == "en"
