"""Parsing a large JSON menu in pieces.

`json.loads` of a menu of 200,000 items keeps every other thread of the program waiting until it is
done. Here the lists that grow with the menu are taken apart element by element, so that the others
get their turn in between. The result is the same.
"""

import json
import re
from decimal import Decimal
from typing import Any

_LISTS = frozenset({"menus", "items", "categories", "add_ons", "addon_groups"})
_blanks = re.compile(r"[ \t\n\r]*")


def parse(text: str) -> object:
    """Return what the JSON says; fractions as Decimal.

    Raises json.JSONDecodeError, which knows line and column; ValueError and RecursionError for
    numbers and nestings beyond all reason.
    """
    pieces = _Pieces(text)
    value, end = pieces.top(pieces.skip(0))
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a number that JSON has")


class _Pieces:
    def __init__(self, text: str) -> None:
        self._text = text
        self._decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)

    def skip(self, at: int) -> int:
        """Return where the blanks at `at` end."""
        match = _blanks.match(self._text, at)
        return match.end() if match else at

    def top(self, at: int) -> tuple[Any, int]:
        """Parse the body, or one menu of it: an object whose lists are taken apart."""
        if not self._text.startswith("{", at):
            return self._whole(at)
        members: dict[str, Any] = {}
        at = self.skip(at + 1)
        if self._text.startswith("}", at):
            return members, self.skip(at + 1)
        while True:
            if not self._text.startswith('"', at):
                raise self._wrong("Expecting property name enclosed in double quotes", at)
            name, at = self._whole(at)
            at = self._past(":", at)
            if name in _LISTS and self._text.startswith("[", at):
                members[name], at = self._list(at, in_menus=name == "menus")
            else:
                members[name], at = self._whole(at)
            if self._text.startswith("}", at):
                return members, self.skip(at + 1)
            at = self._past(",", at)

    def _list(self, at: int, *, in_menus: bool) -> tuple[list[Any], int]:
        elements: list[Any] = []
        at = self.skip(at + 1)
        if self._text.startswith("]", at):
            return elements, self.skip(at + 1)
        while True:
            element, at = self.top(at) if in_menus else self._whole(at)
            elements.append(element)
            if self._text.startswith("]", at):
                return elements, self.skip(at + 1)
            at = self._past(",", at)

    def _whole(self, at: int) -> tuple[Any, int]:
        value, end = self._decoder.raw_decode(self._text, at)
        return value, self.skip(end)

    def _past(self, mark: str, at: int) -> int:
        if not self._text.startswith(mark, at):
            raise self._wrong(f"Expecting '{mark}' delimiter", at)
        return self.skip(at + 1)

    def _wrong(self, what: str, at: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self._text, at)
