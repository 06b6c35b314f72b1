"""What commands and pages put together of several texts stays in the reader's language."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer.core
from typer._click.core import Command

from tillbridge.adapter import BadRow
from tillbridge.adapter.prices import BadPrice, PriceReader
from tillbridge.cli.answers import closure_line
from tillbridge.cli.app import program
from tillbridge.cli.orders import _reported, _way
from tillbridge.cli.say import pairs
from tillbridge.config.toml import ConfigFaults, Fault
from tillbridge.core.i18n import Reader, _, english, from_plain, reading, to_plain
from tillbridge.core.redaction import masked
from tillbridge.orders.sentences import ticket_text
from tillbridge.pos.loader import find_adapter
from tillbridge.setup.options import fields_of


def test_an_order_is_listed_in_the_readers_language() -> None:
    order: Any = {"kind": "delivery", "table": "", "state": "created", "wanted": "ready"}
    with reading(Reader("de")):
        assert f"{_way(order)}" == "Lieferung"
        assert f"{ticket_text('written')}" == "In der Kasse"
        assert _reported(order) == "Noch nicht -> Fertig"


def test_whether_a_store_is_open_is_said_in_the_readers_language() -> None:
    with reading(Reader("de")):
        line, level = closure_line({"status": "active", "busy": None})
        assert (f"{line}", level) == ("Die Filiale nimmt Bestellungen an.", "ok")


def test_a_text_without_secrets_can_still_be_translated() -> None:
    with reading(Reader("de")):
        assert f"{masked(_('Everything works.'))}" == "Alles funktioniert."


def test_a_name_that_is_long_in_a_language_has_room() -> None:
    with reading(Reader("de")):
        assert list(pairs([(_("orders"), _("none")), (_("till"), "x")], least=10)) == [
            "Bestellungen keine",
            "Kasse        x",
        ]


def _helps(command: Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        command.main([*path, "--help"], prog_name="tillbridge", standalone_mode=False)
    yield shown.getvalue()
    here: Any = command
    for name in path:
        here = here.commands[name]
    for name in getattr(here, "commands", ()):
        yield from _helps(command, (*path, name))


def test_the_help_of_every_command_is_whole_in_the_readers_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("typer.core._", vars(typer.core)["_"])  # the program changes it
    in_english = {line.strip() for text in _helps(program()) for line in text.splitlines()}
    with reading(Reader("de")):
        in_german = [line.strip() for text in _helps(program()) for line in text.splitlines()]
    assert len(in_german) > 1000
    sentence = re.compile(r"(?!.*tillbridge )\w*[a-z]{2} [a-z]{2,} [a-z]{2}")
    assert [each for each in in_german if each in in_english and sentence.search(each)] == []


def test_a_bad_price_is_said_to_each_reader_also_when_it_comes_from_the_database() -> None:
    with pytest.raises(BadPrice) as raised:
        PriceReader("EUR").read("4,5O", column="Preis", name="Pizza")
    row = raised.value.at("menu.csv, row 3", "p1")
    told = json.loads(json.dumps(to_plain([row.text, row.fix])), object_hook=from_plain)
    stored = BadRow(row.place, *told)
    assert english(row.text) == (
        "The price of \"Pizza\" is wrong: Preis '4,5O' is not an amount of money."
    )
    with reading(Reader("de")):
        for each in (row, stored):
            assert f"{each.text}" == (
                "Der Preis von „Pizza“ ist falsch: Preis '4,5O' ist kein Geldbetrag."
            )


def test_the_fields_for_a_till_are_named_in_the_readers_language() -> None:
    found = {name: find_adapter(name) for name in ("folder", "printer")}
    with reading(Reader("de")):
        fields = {
            f"{name}.{field.name}": (f"{field.label}", f"{field.hint}")
            for name, adapter in found.items()
            for field in fields_of(adapter.options, {})
        }
    assert fields["folder.orders_dir"] == (
        "Ordner für Bestellungen",
        "Die Bridge schreibt hier jede Bestellung als eine Datei.",
    )
    assert fields["printer.timeout_s"][1] == "Wie lange der Drucker für einen Bon brauchen darf."


def test_what_is_wrong_with_the_settings_is_told_whole_in_the_readers_language() -> None:
    faults = [
        Fault(("service", "base_url"), _("is missing."), "", 4),
        Fault(("bridge",), _("is missing."), ""),
    ]
    with reading(Reader("de")):
        told = f"{ConfigFaults('bridge.toml', faults).text}".splitlines()
    assert told[0] == "2 Fehler gefunden:"
    assert told[2] == "  bridge.toml, Zeile 4: service.base_url fehlt."
