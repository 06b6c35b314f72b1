"""What people read can be translated: no text is left out of the template for translators."""

import re

from tests.support.messages import messages, pot
from tillbridge.core.problem_help import help_texts
from tillbridge.core.problems import PROBLEMS


def test_every_text_of_every_problem_is_among_the_messages() -> None:
    texts = set(messages())
    for kind in PROBLEMS.values():
        own = {kind.text, kind.fix, kind.one, kind.fix_on_page, *kind.defaults.values()} - {""}
        assert own <= texts, kind.code


def test_every_text_of_every_help_page_is_among_the_messages() -> None:
    assert {text for _code, text in help_texts()} <= set(messages())


def test_code_and_templates_are_read_too() -> None:
    files = {place.rpartition(":")[0] for each in messages().values() for place in each.places}
    assert {"core/spans.py", "core/problems.toml", "web/templates/overview.html"} <= files
    assert messages()["{n} item"].plural == "{n} items"


def test_the_template_names_each_text_once() -> None:
    names = re.findall(r"^msgid (.+)$", pot(), re.MULTILINE)
    assert len(names) == len(set(names)) > 1500
