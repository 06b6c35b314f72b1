"""Activity: each thing that people or the bridge do has a sentence."""

import pytest

from tillbridge.core.i18n import _
from tillbridge.core.problems import title_of
from tillbridge.operations import OPERATIONS
from tillbridge.web.site.audit import SENTENCES, _sentence
from tillbridge.web.site.book import Action
from tillbridge.web.site.registry import EVERYTHING

DONE = sorted(
    {name for name, each in OPERATIONS.items() if not each.reads}
    | {each.audit for each in EVERYTHING if isinstance(each, Action)}
)


@pytest.mark.parametrize("action", DONE)
def test_every_act_is_told_in_a_sentence(action: str) -> None:
    sentence = _(SENTENCES[action]).format(who="Anna", target="1007", store="Main Street")
    assert sentence.startswith("Anna ")


def test_a_problem_is_told_by_its_title_and_an_order_by_its_number() -> None:
    entry = {"who": "page:anna", "store": "main", "at": "", "action": "problems.acknowledge"}
    told = _sentence({**entry, "target": "pos.offline"}, {})
    assert told == f"anna acknowledged “{title_of('pos.offline')}”"
    entry |= {"who": "command:root", "action": "order.cancel", "target_name": "1007"}
    told = _sentence({**entry, "target": "ord_84a6"}, {})
    assert told == "root (command line) cancelled order 1007"


def test_what_nobody_has_a_sentence_for_is_told_as_it_is() -> None:
    entry = {"who": "bridge", "store": "main", "action": "thing.new", "target": ""}
    assert _sentence(entry, {}) == "The bridge: thing.new"
