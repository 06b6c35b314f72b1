"""Activity: each thing that people or the bridge do has a sentence."""

import pytest

from tillbridge.core.i18n import _
from tillbridge.operations import OPERATIONS
from tillbridge.web.site.audit import SENTENCES
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
