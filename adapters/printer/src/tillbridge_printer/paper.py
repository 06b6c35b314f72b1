"""What a ticket is made of, before any printer's language: lines, rules, feeds and cuts.

Everything is measured in columns of the printer's plain letters. An East Asian sign takes two.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Align(StrEnum):
    """Where a line stands."""

    LEFT = "left"
    CENTRE = "centre"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Style:
    """How a line looks; `wide` and `tall` are 1 or 2."""

    align: Align = Align.LEFT
    bold: bool = False
    invert: bool = False
    wide: int = 1
    tall: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; `right` stands at its right end (a price)."""

    text: str
    right: str = ""
    style: Style = Style()


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across the paper."""


@dataclass(frozen=True, slots=True)
class Feed:
    """So many empty lines."""

    lines: int = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a ticket: the paper is fed past the knife and cut."""


Part = Line | Rule | Feed | Cut
Paper = Sequence[Part]


def cells(text: str) -> int:
    """Return how many columns a text takes."""
    return sum(_cells_of(each) for each in text)


def fitted(line: Line, columns: int) -> Iterator[Line]:
    """Yield the line as lines that fit into so many plain columns.

    Broken at blanks where there are any; what goes on is indented as the line is, and two more,
    where it stands on the left.
    """
    space = max(4, columns // line.style.wide)
    right = _cut_to(line.right, space - 2)
    beside = cells(right) + 1 if right else 0
    own = len(line.text) - len(line.text.lstrip(" "))
    indent = min(own + 2, space // 2) if line.style.align is Align.LEFT else 0
    first, *more = _wrapped(line.text, space - beside, space, indent)
    filler = " " * (space - cells(first) - cells(right)) if right else ""
    yield replace(line, text=f"{first}{filler}{right}", right="")
    for text in more:
        yield replace(line, text=text, right="")


def _wrapped(text: str, first_space: int, space: int, indent: int) -> list[str]:
    lines: list[str] = []
    rest, width, lead = text.rstrip(), first_space, ""
    while cells(rest) > width:
        head = _cut_to(rest, width)
        at = head.rfind(" ") if len(rest) > len(head) and rest[len(head)] != " " else len(head)
        if at < 0 or head[:at].strip() == "":
            at = len(head)  # one long word: broken where the paper ends
        lines.append(lead + rest[:at].rstrip())
        rest = rest[at:].lstrip()
        lead, width = " " * indent, space - indent
    lines.append(lead + rest)
    return lines


def _cut_to(text: str, space: int) -> str:
    """Return as much of the beginning as fits; at least one sign, so that it goes on."""
    taken = 0
    for number, each in enumerate(text):
        taken += _cells_of(each)
        if taken > space:
            return text[: max(1, number)]
    return text


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
