"""What commands and pages put together of several texts stays in the reader's language."""

from typing import Any

from tillbridge.cli.answers import closure_line
from tillbridge.cli.orders import _reported, _way
from tillbridge.cli.say import pairs
from tillbridge.core.i18n import Reader, _, reading
from tillbridge.core.redaction import masked
from tillbridge.orders.sentences import ticket_text


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
