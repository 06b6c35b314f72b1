"""No text stands in a template of the page, or of what is printed, that cannot be translated."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tillbridge

_SOURCE = Path(tillbridge.__file__).parent
# The sandbox stands for another company's service (decision 142).
TEMPLATES = sorted({*_SOURCE.rglob("templates/**/*.html")} - {*_SOURCE.glob("sandbox/**/*.html")})
_SILENT = {"script", "style", "code", "pre", "svg"}
_READ = {"title", "alt", "aria-label", "data-label", "placeholder"}
# Names, and samples of what one types into a field.
_NAMES = re.compile(
    r"tillbridge|JSON|HTTP|https://\S+|order\.|EUR|aria-[a-z]+=\S+|\w+\.(?:lan|local|net|com)\b"
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.silent = 0
        self.read: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in _SILENT
        self.read += [value for name, value in attrs if name in _READ and value]

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in _SILENT

    def handle_data(self, data: str) -> None:
        self.read += [] if self.silent else [data]


def unmarked(source: str) -> list[str]:
    """Return the words of a template that no call of `_` has put there."""
    plain = re.sub(r"\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", "", source, flags=re.DOTALL)
    found = _Reader()
    found.feed(plain)
    texts = (_NAMES.sub("", each).strip() for each in found.read)
    return [each for each in texts if re.search("[A-Za-z]{2}", each)]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_text_of_its_own(path: Path) -> None:
    assert unmarked(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Hello there</p>", ["Hello there"]),
        ('<p title="Hello">{{ _("Hello") }}</p>', ["Hello"]),
        ('<p class="quiet">{% if a %}{{ _("Hello") }}{% else %}-{% endif %}</p>', []),
        ("<code>tillbridge run</code> {# why #}", []),
    ],
)
def test_a_text_that_is_not_marked_is_found(source: str, found: list[str]) -> None:
    assert unmarked(source) == found
