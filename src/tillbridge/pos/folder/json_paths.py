"""Paths into a JSON document, as mappings of formats have them.

    title.translations.*                      members by name; `*` is any member
    prices[].price                            `[]` is each element of a list
    []                                        the same where the document itself is a list
    ^.name                                    `^` is the object that the current one is in
    /sizes[id = sizeId].name                  from the root: the elements whose `id` is our `sizeId`
    overrides[context_value = ^.id].price     the same in a list of the current object
    nameOnline | name                         the first that says anything
    =Extras                                   a text as it is

A path finds any number of values. Elements that are looked up from the root are indexed once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from tillbridge.adapter.texts import _

_NAME = re.compile(r"[^\s.\[\]=|^/*]+")
_LITERAL = re.compile(r"[^|\]]*")
_BLANKS = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the document, and the object it was found in."""

    value: Any
    parent: "Node | None" = None


@dataclass(frozen=True, slots=True)
class _Step:
    name: str  # "^" for the parent, "*" for any member, "" for the current value itself
    each: bool = False
    # Of the elements, those where the first is what the second is of the current object.
    where: "tuple[Path, Path] | None" = None


@dataclass(frozen=True, slots=True)
class _Way:
    steps: tuple[_Step, ...]
    from_root: bool = False
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A path, parsed. `text` is how it was written."""

    text: str
    ways: tuple[_Way, ...]


@lru_cache(maxsize=256)
def parse_path(text: str) -> Path:
    """Return the path that `text` is. Raises ValueError, which says where it ends to make sense."""
    parser = _Parser(text)
    path = parser.path()
    if parser.at != len(text):
        raise ValueError(
            _("{text!r} is no path: {rest!r} was not expected").format(
                text=text, rest=text[parser.at :]
            )
        )
    return path


@dataclass(slots=True)
class Document:
    """A document in which paths are followed."""

    root: Node
    _indexes: dict[tuple[_Step, ...], Mapping[str, Sequence[Node]]] = field(default_factory=dict)

    def nodes(self, path: Path, at: Node) -> Iterator[Node]:
        """Yield what the path finds from there: of its ways the first that finds anything."""
        for way in path.ways:
            found = list(self._along(way, at))
            if found:
                yield from found
                return

    def texts(self, path: Path, at: Node) -> tuple[str, ...]:
        """Return the values as texts, without those that say nothing; the first way that has any.

        Raises ValueError for an object or a list, which are no text.
        """
        for way in path.ways:
            texts = tuple(text for node in self._along(way, at) if (text := text_of(node.value)))
            if texts:
                return texts
        return ()

    def _along(self, way: _Way, at: Node) -> Iterator[Node]:
        if way.literal is not None:
            yield Node(way.literal, at)
            return
        nodes: list[Node] = [self.root if way.from_root else at]
        for number, step in enumerate(way.steps):
            looked_up = any(before.where for before in way.steps[:number])
            if way.from_root and step.where is not None and not looked_up:
                theirs, ours = step.where
                index = self._index(way.steps[: number + 1], theirs)
                nodes = [found for key in self._scalars(ours, at) for found in index.get(key, ())]
            else:
                nodes = [found for node in nodes for found in self._stepped(step, node, at)]
        yield from nodes

    def _stepped(self, step: _Step, node: Node, at: Node) -> Iterator[Node]:
        if step.name == "^":
            if node.parent is not None:
                yield node.parent
            return
        members: Iterable[Any] = ()
        if not step.name:
            members = [node.value]
        elif isinstance(node.value, dict):
            members = node.value.values() if step.name == "*" else [node.value.get(step.name)]
        for member in members:
            if member is None:
                continue
            if not step.each:
                yield Node(member, node)
            elif isinstance(member, list):
                elements = [Node(element, node) for element in member if element is not None]
                if step.where is not None:
                    theirs, ours = step.where
                    keys = set(self._scalars(ours, at))
                    elements = [each for each in elements if keys & {*self._scalars(theirs, each)}]
                yield from elements

    def _index(self, steps: tuple[_Step, ...], key: Path) -> Mapping[str, Sequence[Node]]:
        """Return the elements that these steps from the root lead to, by what they are found by."""
        if steps not in self._indexes:
            found: dict[str, list[Node]] = {}
            *before, last = steps
            way = _Way((*before, _Step(last.name, each=True)), from_root=True)
            for node in self._along(way, self.root):
                for text in dict.fromkeys(self._scalars(key, node)):
                    found.setdefault(text, []).append(node)
            self._indexes[steps] = found
        return self._indexes[steps]

    def _scalars(self, path: Path, at: Node) -> tuple[str, ...]:
        """Return the values that are texts or numbers: others are equal to nothing."""
        nodes = self.nodes(path, at)
        return tuple(text_of(n.value) for n in nodes if not isinstance(n.value, dict | list))


def text_of(value: object) -> str:
    """Return a value as text, "" for null. Raises ValueError for an object or a list."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
    raise ValueError(_("is an object or a list, where a text or a number was expected"))


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0

    def path(self) -> Path:
        begin = self.at
        ways = [self._way()]
        while self._skip("|"):
            ways.append(self._way())
        return Path(self.text[begin : self.at].strip(), tuple(ways))

    def _way(self) -> _Way:
        if self._skip("="):
            match = _LITERAL.match(self.text, self.at)
            literal = match.group() if match else ""
            self.at += len(literal)
            return _Way((), literal=literal.strip())
        from_root = self._skip("/")
        steps = [self._step()]
        while self._skip("."):
            steps.append(self._step())
        return _Way(tuple(steps), from_root)

    def _step(self) -> _Step:
        self._blanks()
        if self._skip("^"):
            return _Step("^")
        if self._skip("*"):
            name = "*"
        else:
            match = _NAME.match(self.text, self.at)
            if match is None and not self.text.startswith("[", self.at):
                raise ValueError(
                    _("{text!r} is no path: a name is missing at {at}").format(
                        text=self.text, at=self.at + 1
                    )
                )
            name, self.at = ("", self.at) if match is None else (match.group(), match.end())
        self._blanks()
        if not self._skip("["):
            return _Step(name)
        if self._skip("]"):
            return _Step(name, each=True)
        theirs = self.path()
        if not self._skip("="):
            raise ValueError(
                _("{text!r} is no path: inside [ ] an = is missing").format(text=self.text)
            )
        ours = self.path()
        if not self._skip("]"):
            raise ValueError(_("{text!r} is no path: a ] is missing").format(text=self.text))
        return _Step(name, each=True, where=(theirs, ours))

    def _skip(self, mark: str) -> bool:
        self._blanks()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += 1
        return True

    def _blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
