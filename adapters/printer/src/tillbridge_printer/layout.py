"""Layouts: Jinja templates whose lines say how they look. README.md describes the format.

A line may begin with words that stand for how it looks (`@big @centre`), and `|` divides what
stands left from what stands right. What is wrong with a template is told with its name and line.
"""

import re
import traceback
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import SandboxedEnvironment

from tillbridge.adapter.texts import _, joined
from tillbridge_printer.cleaning import protected, restored
from tillbridge_printer.paper import Align, Feed, Line, Part, Rule, Style

_LOOKS: Mapping[str, Mapping[str, Any]] = {
    "centre": {"align": Align.CENTRE},
    "center": {"align": Align.CENTRE},
    "right": {"align": Align.RIGHT},
    "bold": {"bold": True},
    "invert": {"invert": True},
    "tall": {"tall": 2},
    "wide": {"wide": 2},
    "big": {"wide": 2, "tall": 2},
}
_WHOLE = {"rule", "feed"}
_WORD = re.compile(r"@([a-z]+)(?: |$)")
_ANY_WORD = re.compile(r"(?:^|(?<=\s))@(\w+)")


class Layout:
    """One template. Raises ValueError, with its place, for one that is not right."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._environment = SandboxedEnvironment(
            undefined=StrictUndefined,
            finalize=protected,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # paper, not HTML: `finalize` takes out what must not get there
        )
        try:
            self._check_words(source)
            self._template = self._environment.from_string(source)
        except TemplateSyntaxError as failure:
            raise ValueError(
                _("{name}, line {line}: {message}").format(
                    name=name, line=failure.lineno, message=failure.message
                )
            ) from failure
        self._template.filename = name

    @classmethod
    def of(cls, path: Path) -> "Layout":
        """Read a layout from a file."""
        try:
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as failure:
            reason = failure.strerror if isinstance(failure, OSError) else failure
            raise ValueError(
                _("the layout {path} cannot be read: {reason}").format(
                    path=str(path), reason=str(reason)
                )
            ) from failure
        return cls(str(path), source)

    @classmethod
    def shipped(cls, name: str) -> "Layout":
        """Return one of the layouts of this package: kitchen, customer, cancelled."""
        place = files("tillbridge_printer").joinpath("layouts", f"{name}.txt")
        return cls(f"{name}.txt", place.read_text("utf-8"))

    def parts(self, values: Mapping[str, Any]) -> list[Part]:
        """Return the ticket. Raises ValueError where the template cannot be filled in."""
        try:
            text = self._template.render(values)
        except (TemplateError, TypeError, ArithmeticError, LookupError) as failure:
            line = self._line(failure)
            place = _("{file}, line {line}") if line else "{file}"
            raise ValueError(
                joined(": ", (place.format(file=self._name, line=line), str(failure)))
            ) from failure
        return [_part(line) for line in text.splitlines()]

    def _check_words(self, source: str) -> None:
        for lineno, kind, value in self._environment.lex(source):
            if kind != "data":
                continue
            for number, line in enumerate(str(value).split("\n")):
                for word in _ANY_WORD.findall(line):
                    if word not in _LOOKS and word not in _WHOLE:
                        known = ", ".join(f"@{each}" for each in (*_LOOKS, *sorted(_WHOLE)))
                        raise TemplateSyntaxError(
                            _("@{word} is nothing a line can be; there are {known}").format(
                                word=word, known=known
                            ),
                            lineno + number,
                        )

    def _line(self, failure: BaseException) -> int | None:
        frames = traceback.extract_tb(failure.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self._name]
        return lines[-1] if lines else None


def _part(line: str) -> Part:
    style, words = Style(), []
    while found := _WORD.match(line):
        words.append(found[1])
        style = replace(style, **_LOOKS.get(found[1], {}))
        line = line[found.end() :]
    if "rule" in words:
        return Rule()
    if "feed" in words:
        number = line.strip()
        return Feed(int(number) if number.isdigit() else 1)
    left, _bar, right = line.partition("|")
    return Line(restored(left.rstrip()), restored(right.strip()), style)
