"""Cleaning what people have typed and pasted into a till. Pure."""

import re
import unicodedata
from html.parser import HTMLParser

_MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*)?/?>|&(?:[A-Za-z]+|#[0-9]+);")


def one_line(text: str) -> str:
    """Return a name without control characters, and with single blanks.

    What cannot be seen goes, joiners aside, which some scripts and emoji need.
    """
    if text.isprintable():  # of all blanks only the plain one is
        clean = not text or (text[0] != " " and text[-1] != " " and "  " not in text)
        return text if clean else " ".join(text.split())
    return " ".join("".join(map(_seen, text)).split())


def plain_text(html: str) -> str:
    """Return a description without its mark-up, a line for each paragraph."""
    if not html:
        return ""
    if "<" not in html and "&" not in html:
        return _lines(html)
    reader = _Text()
    reader.feed(html)
    reader.close()
    return _lines("".join(reader.parts))


def without_markup(text: str) -> str:
    """Return a description as it is, blank lines and all; one with mark-up as `plain_text` does."""
    return text if _MARKUP.search(text) is None else plain_text(text)


def _seen(character: str) -> str:
    if character.isprintable() or character in "\u200c\u200d":
        return character
    return "" if unicodedata.category(character) == "Cf" else " "


def _lines(text: str) -> str:
    return "\n".join(line for line in map(one_line, text.splitlines()) if line)


class _Text(HTMLParser):
    _BREAKS = frozenset({"p", "br", "div", "li", "ul", "ol", "h1", "h2", "h3"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 -- arguments of HTMLParser
        if tag in self._BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
