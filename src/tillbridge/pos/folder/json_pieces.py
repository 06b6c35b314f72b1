"""Reading JSON, and parsing a large menu of it in pieces.

`json.loads` of a menu of 200,000 items keeps every other thread of the program waiting until it is
done. Here the lists that grow with the menu are taken apart element by element, so that the others
get their turn in between. The result is the same.

Nearly always only a few items are new. An item is known by a digest of its own text, and most are
known before they are parsed: what stands up to the next brace is all of an item that has no
objects in it. If that text is known to be an item, an item it is, for no JSON value goes on after
what is a whole one. So a known item costs less than `json.loads` takes to make it.
"""

import json
import re
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.decoding import HEAD_BYTES, guess_by_head, undecodable
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _
from tillbridge.model.numbers import parse_json_float, parse_json_int

_LISTS = frozenset({"menus", "items", "categories", "add_ons", "addon_groups"})
_MENU_DEPTH = 1
_blanks = re.compile(r"[ \t\n\r]*")
_comma = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")

KNOWN = object()
"""Stands for an item that is known, in place of what it says."""

IsKnown = Callable[[int, int], bool]
"""Whether the item is known whose text has this digest and begins there."""

OnMenu = Callable[[Mapping[str, Any] | None], IsKnown | None]
"""What tells the known items of a menu, by its members so far: None for the body itself."""


class NeedsFullRead(Exception):
    """What known items say has to do with what is new: all of the menu has to be read."""


class Elements(list[Any]):
    """A list of items, `KNOWN` for those that are; beside it the text of each.

    `digests` has the digest of each text, `begins` where it begins.
    """

    def __init__(self) -> None:
        super().__init__()
        self.digests = array("Q")
        self.begins = array("Q")


def json_text(path: Path, encoding: str | None) -> str:
    """Return the text of a JSON file. Raises ExportUnreadable, OSError."""
    content = read_shared(path)
    encoding = encoding or guess_by_head(content[:HEAD_BYTES]).encoding
    try:
        return content.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as failure:
        fix = _("JSON is UTF-8. If the till writes something else, set encoding.")
        raise undecodable(path.name, encoding, failure, fix) from failure


def parsed_json(name: str, text: str, on_menu: OnMenu | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON of the file `name` says, as `parse` does. Raises ExportUnreadable."""
    try:
        return parse(text, on_menu)
    except json.JSONDecodeError as failure:
        raise ExportUnreadable(
            _("{name} is not complete JSON: {why}.").format(name=name, why=failure.msg),
            place=_("{file}, line {line}, column {column}").format(
                file=name, line=failure.lineno, column=failure.colno
            ),
            fix=_("Nothing to do while the till writes it. If this stays, export again."),
            passing=True,
        ) from failure
    except (ValueError, RecursionError) as failure:
        raise ExportUnreadable(
            _("{name} is not a menu: {why}.").format(name=name, why=str(failure)),
            place=name,
            fix=_("Export again."),
        ) from failure


def json_or_lines(name: str, text: str) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON says; of several values, one a line, a list. Raises as `parsed_json`."""
    first, _end, rest = text.lstrip().partition("\n")
    if first.startswith("{") and rest.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # which reading the whole reports, with its line
            return [parse(line) for line in text.split("\n") if line.strip()]
    return parsed_json(name, text)


def parse(text: str, on_menu: OnMenu | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON says; fractions as Decimal, items as `Elements`.

    Raises json.JSONDecodeError, which knows line and column; ValueError and RecursionError for
    numbers and nestings beyond all reason; NeedsWholeReading where a member appears twice.
    """
    pieces = _Pieces(text, on_menu)
    value, end = pieces.top(pieces.skip(0), 0)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def value_at(text: str, begin: int) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the one value that begins there, in a text that was parsed before."""
    return _decoder.raw_decode(text, begin)[0]


def _no_number(name: str) -> object:
    raise ValueError(_("{name} is not a number that JSON has").format(name=name))


_decoder = json.JSONDecoder(
    parse_float=parse_json_float, parse_int=parse_json_int, parse_constant=_no_number
)


def _digest(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


class _Pieces:
    def __init__(self, text: str, on_menu: OnMenu | None) -> None:
        self._text = text
        self._on_menu = on_menu

    def skip(self, at: int) -> int:
        """Return where the blanks at `at` end."""
        match = _blanks.match(self._text, at)
        return match.end() if match else at

    def top(self, at: int, depth: int) -> tuple[Any, int]:
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
            if name in members and self._on_menu is not None:
                # The last one counts, and items of the first may have been taken for known.
                raise NeedsFullRead
            if name in _LISTS and self._text.startswith("[", at):
                members[name], at = self._list(name, at, members, depth)
            else:
                members[name], at = self._whole(at)
            if self._text.startswith("}", at):
                return members, self.skip(at + 1)
            at = self._past(",", at)

    def _whole(self, at: int) -> tuple[Any, int]:
        value, end = _decoder.raw_decode(self._text, at)
        return value, self.skip(end)

    def _list(
        self, name: str, at: int, members: Mapping[str, Any], depth: int
    ) -> tuple[list[Any], int]:
        at = self.skip(at + 1)
        if self._text.startswith("]", at):
            return [], self.skip(at + 1)
        if name == "items":
            is_known = None
            if self._on_menu is not None and depth <= _MENU_DEPTH:
                is_known = self._on_menu(members if depth else None)
            return self._items(at, is_known)
        elements: list[Any] = []
        while True:
            element, at = self.top(at, depth + 1) if name == "menus" else self._whole(at)
            elements.append(element)
            if self._text.startswith("]", at):
                return elements, self.skip(at + 1)
            at = self._past(",", at)

    def _items(self, at: int, is_known: IsKnown | None) -> tuple[Elements, int]:
        """Parse the items from `at` on. What is done for each here, is done for the whole menu."""
        text, decode, comma, elements = self._text, _decoder.raw_decode, _comma.match, Elements()
        while True:
            element: Any = KNOWN
            end = text.find("}", at) + 1
            digest = _digest(text[at:end])
            if is_known is None or not is_known(digest, at):
                shorter = end
                element, end = decode(text, at)
                if end != shorter:  # it has objects in it
                    digest = _digest(text[at:end])
                    if is_known is not None and is_known(digest, at):
                        element = KNOWN
            elements.append(element)
            elements.digests.append(digest)
            elements.begins.append(at)
            if match := comma(text, end):
                at = match.end()
                continue
            at = self.skip(end)
            if text.startswith("]", at):
                return elements, self.skip(at + 1)
            raise self._wrong("Expecting ',' delimiter", at)

    def _past(self, mark: str, at: int) -> int:
        if not self._text.startswith(mark, at):
            raise self._wrong(f"Expecting '{mark}' delimiter", at)
        return self.skip(at + 1)

    def _wrong(self, what: str, at: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self._text, at)
