"""Which line of a TOML text each key stands on; `tomllib` does not tell.

A scanner for texts that `tomllib` has already accepted: it knows where keys and values begin and
end, and nothing about what they mean. A path is a tuple of keys, with list positions as numbers.
"""

import re
import tomllib
from collections.abc import Callable, Mapping

Path = tuple[str | int, ...]
_Member = Callable[[int], object]

_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+'
    r"|'''.*?'''+"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the line (from 1) of each key, table and list element of a valid TOML text."""
    return _Scanner(text).run()


def dotted(path: Path) -> str:
    """Return a path as it is written in TOML, with list positions in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = part.replace("-", "").replace("_", "")
            plain = part if bare.isascii() and bare.isalnum() else f'"{part}"'
            text += f".{plain}" if text else plain
    return text


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}

    def run(self) -> Mapping[Path, int]:
        table: Path = ()
        self._skip(_GAP)
        while self._at < len(self._text):
            table = self._header() if self._peek() == "[" else self._pair(table)
            self._skip(_GAP)
        return self._lines

    def _header(self) -> Path:
        line, double = self._line(), self._text.startswith("[[", self._at)
        self._at += 2 if double else 1
        path = self._resolved(self._key())
        if double:
            position = self._arrays.get(path, -1) + 1
            self._arrays[path] = position
            self._note((), path, line)
            path = (*path, position)
        self._note((), path, line)
        self._at += 2 if double else 1
        return path

    def _resolved(self, key: tuple[str, ...]) -> Path:
        """A header below an array of tables means its latest element."""
        path: Path = ()
        for place, part in enumerate(key):
            path = (*path, part)
            if path in self._arrays and place < len(key) - 1:
                path = (*path, self._arrays[path])
        return path

    def _pair(self, table: Path) -> Path:
        line = self._line()
        path = (*table, *self._key())
        self._note(table, path, line)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)
        return table

    def _value(self, path: Path) -> None:
        opening = self._peek()
        if opening == "{":
            self._members("}", lambda _: self._pair(path))
        elif opening == "[":
            self._members("]", lambda position: self._element((*path, position)))
        elif opening in "\"'":
            self._take(_STRING)
        else:
            self._take(_SCALAR)

    def _element(self, path: Path) -> None:
        self._note((), path, self._line())
        self._value(path)

    def _members(self, closing: str, member: _Member) -> None:
        self._at += 1
        position = 0
        self._skip(_GAP)
        while self._peek() != closing:
            member(position)
            position += 1
            self._skip(_GAP)
            if self._peek() == ",":
                self._at += 1
                self._skip(_GAP)
        self._at += 1

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            if self._peek() in "\"'":
                quoted = self._take(_STRING)
                parts.append(tomllib.loads(f"key = {quoted}")["key"])
            else:
                parts.append(self._take(_BARE_KEY))
            self._skip(_BLANK)
            if self._peek() != ".":
                return tuple(parts)
            self._at += 1

    def _note(self, table: Path, path: Path, line: int) -> None:
        for length in range(len(table) + 1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _peek(self) -> str:
        if self._at >= len(self._text):
            msg = "not a valid TOML text"
            raise ValueError(msg)
        return self._text[self._at]

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            msg = f"not a valid TOML text at line {self._line()}"
            raise ValueError(msg)
        self._at = found.end()
        return found.group()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
