"""Parsing a large JSON menu in pieces.

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
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from xxhash import xxh3_64_intdigest

from tillbridge.model.numbers import parse_json_float, parse_json_int
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.json_parts import external_id

_LISTS = frozenset({"menus", "items", "categories", "add_ons", "addon_groups"})
_BODY, _MENU, _DEEPER = range(3)
_blanks = re.compile(r"[ \t\n\r]*")
_comma = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")

KNOWN = object()
"""Stands for an item that is known, in place of what it says."""

FLAT_MENU_ID = "menu"
"""Of the menu of the flat shape, which names it and gives it no id."""

_READING_VERSION = 2  # part of every fingerprint, as in menu_csv
_TO_SIGNED = 1 << 63


class KnownItems:
    """The fingerprints of a reading: of the text of each item, and the menus it is on.

    An item with `odd` fields, which are reported, has a fingerprint by which it is not known
    before it is read.
    """

    def __init__(self, known: AbstractSet[int]) -> None:
        self._known = known
        self.unseen = set(known)
        self._seeds: dict[str, int] = {}

    def menu_of(self, members: Mapping[str, Any] | None) -> str | None:
        """Return the id of the menu with these members, None where they do not tell it (yet)."""
        if members is None:
            return FLAT_MENU_ID
        try:
            return external_id(members)
        except BadCell:
            return None

    def take(self, digest: int, menu_id: str | None) -> bool:
        """Return whether that item on that menu is known, and take it out of those not seen."""
        if menu_id is None:
            return False
        seed = self._seeds.get(menu_id)
        if seed is None:
            seed = self._seeds[menu_id] = _seed((menu_id,), odd=False)
        fingerprint = (digest ^ seed) - _TO_SIGNED
        if fingerprint in self.unseen:
            self.unseen.remove(fingerprint)
            return True
        return False

    def put_back(self, digest: int, menu_id: str) -> None:
        """Take back that it was seen."""
        self.unseen.add(fingerprint_of(digest, (menu_id,)))

    def give_back(self) -> None:
        """Take back all that was seen."""
        self.unseen = set(self._known)


def fingerprint_of(digest: int, menus: Iterable[str], *, odd: bool = False) -> int:
    """Return the fingerprint of an item whose text has this digest."""
    return (digest ^ _seed(tuple(menus), odd=odd)) - _TO_SIGNED


@lru_cache(maxsize=1024)
def _seed(menus: tuple[str, ...], *, odd: bool) -> int:
    return xxh3_64_intdigest(repr((_READING_VERSION, menus, odd)).encode())


class Elements(list[Any]):
    """A list of items, `KNOWN` for those that are; beside it the digest of the text of each.

    `passed` tells by their digests where the texts of the known ones begin, and `menu_id` the menu
    on which they are known.
    """

    def __init__(self, menu_id: str | None) -> None:
        super().__init__()
        self.menu_id = menu_id
        self.digests = array("Q")
        self.passed: dict[int, int] = {}


def parse(text: str, known: KnownItems | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON says; fractions as Decimal, items as `Elements`.

    Raises json.JSONDecodeError, which knows line and column; ValueError and RecursionError for
    numbers and nestings beyond all reason.
    """
    pieces = _Pieces(text, known)
    try:
        value, end = pieces.top(pieces.skip(0), _BODY)
    except _RepeatedMember:
        # Of two members with one name the last counts; what was known of the first, is not there.
        if known is not None:
            known.give_back()
        pieces = _Pieces(text, None)
        value, end = pieces.top(pieces.skip(0), _BODY)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def parse_one(text: str, at: int) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the one value that begins at `at`, of a text that was parsed before."""
    return _decoder.raw_decode(text, at)[0]


class _RepeatedMember(Exception):
    """An object whose items may be known has two members of one name."""


def _take_nothing(_digest: int, _menu_id: str | None) -> bool:
    return False


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a number that JSON has")


_decoder = json.JSONDecoder(
    parse_float=parse_json_float, parse_int=parse_json_int, parse_constant=_no_number
)


class _Pieces:
    def __init__(self, text: str, known: KnownItems | None) -> None:
        self._text = text
        self._known = known

    def skip(self, at: int) -> int:
        """Return where the blanks at `at` end."""
        match = _blanks.match(self._text, at)
        return match.end() if match else at

    def whole(self, at: int) -> tuple[Any, int]:
        """Parse any value at once."""
        value, end = _decoder.raw_decode(self._text, at)
        return value, self.skip(end)

    def top(self, at: int, depth: int) -> tuple[Any, int]:
        """Parse the body, or one menu of it: an object whose lists are taken apart."""
        if not self._text.startswith("{", at):
            return self.whole(at)
        members: dict[str, Any] = {}
        at = self.skip(at + 1)
        if self._text.startswith("}", at):
            return members, self.skip(at + 1)
        while True:
            if not self._text.startswith('"', at):
                raise self._wrong("Expecting property name enclosed in double quotes", at)
            name, at = self.whole(at)
            at = self._past(":", at)
            if name in members and self._known is not None:
                raise _RepeatedMember
            if name in _LISTS and self._text.startswith("[", at):
                members[name], at = self._list(name, at, members, depth)
            else:
                members[name], at = self.whole(at)
            if self._text.startswith("}", at):
                return members, self.skip(at + 1)
            at = self._past(",", at)

    def _list(
        self, name: str, at: int, members: Mapping[str, Any], depth: int
    ) -> tuple[list[Any], int]:
        at = self.skip(at + 1)
        if self._text.startswith("]", at):
            return [], self.skip(at + 1)
        if name == "items":
            menu_id = None
            if self._known is not None and depth < _DEEPER:
                menu_id = self._known.menu_of(members if depth == _MENU else None)
            return self._items(at, Elements(menu_id))
        elements: list[Any] = []
        while True:
            element, at = self.top(at, depth + 1) if name == "menus" else self.whole(at)
            elements.append(element)
            if self._text.startswith("]", at):
                return elements, self.skip(at + 1)
            at = self._past(",", at)

    def _items(self, at: int, elements: Elements) -> tuple[Elements, int]:
        """Parse the items from `at` on. What is done for each here, is done for the whole menu."""
        text, decode, comma = self._text, _decoder.raw_decode, _comma.match
        add, add_digest, passed = elements.append, elements.digests.append, elements.passed
        menu_id = elements.menu_id
        take = _take_nothing if self._known is None or menu_id is None else self._known.take
        while True:
            element: Any = KNOWN
            end = text.find("}", at) + 1
            digest = xxh3_64_intdigest(text[at:end].encode("utf-8", "surrogatepass"))
            if not take(digest, menu_id):
                shorter = end
                element, end = decode(text, at)
                if end != shorter:  # it has objects in it
                    digest = xxh3_64_intdigest(text[at:end].encode("utf-8", "surrogatepass"))
                    if take(digest, menu_id):
                        element = KNOWN
            if element is KNOWN:
                passed[digest] = at
            add(element)
            add_digest(digest)
            match = comma(text, end)
            if match is None:
                at = self.skip(end)
                if text.startswith("]", at):
                    return elements, self.skip(at + 1)
                raise self._wrong("Expecting ',' delimiter", at)
            at = match.end()

    def _past(self, mark: str, at: int) -> int:
        if not self._text.startswith(mark, at):
            raise self._wrong(f"Expecting '{mark}' delimiter", at)
        return self.skip(at + 1)

    def _wrong(self, what: str, at: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self._text, at)
