"""The parts of an SQL text, as far as one must know them to tell code from text.

Enough for PostgreSQL, MySQL, MariaDB and SQLite: comments, strings, quoted names, parameters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a part is."""

    WORD = "word"
    PARAMETER = "parameter"
    STRING = "string"
    NAME = "quoted name"
    COMMENT = "comment"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Token:
    """A part; `text` is as it stands there, `line` counts from 0 within the text."""

    kind: Kind
    text: str
    line: int


_PARTS = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<string>
        '(?:[^']|'')*(?:'|\Z)
      | \$(?P<tag>[A-Za-z_]*)\$.*?(?:\$(?P=tag)\$|\Z)
      )
    | (?P<name>"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z))
    | (?P<parameter>(?<![:\w]):[A-Za-z_]\w*)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<space>\s+)
    | (?P<other>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the parts of an SQL text, blanks left out. What is never closed runs to the end."""
    line = 0
    for match in _PARTS.finditer(text):
        part, kind = match.group(), match.lastgroup
        if kind == "tag":
            kind = "string"
        if kind != "space" and kind is not None:
            yield Token(Kind[kind.upper()], part, line)
        line += part.count("\n")
