"""Cleaning what people have typed and pasted into a till. Pure."""

import html
import re
import unicodedata

from tillbridge.core.i18n import _, joined, ngettext

__all__ = ["LONGEST", "_", "joined", "ngettext", "one_line", "plain_text", "without_markup"]

LONGEST = 20_000
"""A description of more characters than this is cut."""

_MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*)?/?>|&(?:[A-Za-z]+|#[0-9]+);")
# An attribute's value may hold ">", but where its quotation never ends, the tag does. No part
# reaches beyond the next "<", so that nothing is looked at again and again.
_TAG = re.compile(
    r"""</?+(?P<name>[A-Za-z][^\s/<>]*+)
        (?: (?: [^<>"']++ | "[^"<]*+" | '[^'<]*+' )*+ > | [^<>]*+ > )
      | <[!?][^<>]*+>""",
    re.VERBOSE,
)
_CUT_TAG = re.compile(r"<[^<>]*\Z")
_NO_CHARACTER = re.compile(r"&#[0-9]{8,};?")
_BREAKS = frozenset({"p", "br", "div", "li", "ul", "ol", "h1", "h2", "h3", "tr"})


def one_line(text: str) -> str:
    """Return a name without control characters, and with single spaces.

    Removes invisible characters, except joiners, which some scripts and emoji need.
    """
    if text.isprintable():  # of all blanks only the plain one is
        clean = not text or (text[0] != " " and text[-1] != " " and "  " not in text)
        return text if clean else " ".join(text.split())
    return " ".join("".join(map(_seen, text)).split())


def plain_text(written: str) -> str:
    """Return a description without markup, one line for each paragraph.

    Text beyond LONGEST characters is cut. The time is proportional to the length, whatever the
    text.
    """
    if not written:
        return ""
    text = written if len(written) <= LONGEST else _CUT_TAG.sub("", written[:LONGEST])
    if "<" in text:
        text = _TAG.sub(_instead_of_tag, _without_comments(text))
    if "&" in text:
        text = html.unescape(_NO_CHARACTER.sub("", text))
    return _lines(text)


def without_markup(text: str) -> str:
    """Return a description unchanged, with blank lines; one with markup as `plain_text` does."""
    return text if _MARKUP.search(text) is None else plain_text(text)


def _seen(character: str) -> str:
    if character.isprintable() or character in "\u200c\u200d":
        return character
    return "" if unicodedata.category(character) == "Cf" else " "


def _lines(text: str) -> str:
    return "\n".join(line for line in map(one_line, text.splitlines()) if line)


def _without_comments(text: str) -> str:
    """Leave out `<!-- ... -->`, tags and all; one that never ends is not one."""
    parts, at = [], 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        parts.append(text[at:begin])
        at = end + 3
    return "".join((*parts, text[at:]))


def _instead_of_tag(tag: re.Match[str]) -> str:
    return "\n" if (tag["name"] or "").casefold() in _BREAKS else ""
