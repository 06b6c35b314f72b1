"""A TOML file: its text, the line that each key is on, and what is wrong with it.

`tomllib` does not say where keys stand. The scanner here is for texts that it has already accepted:
it knows where keys and values begin and end, and nothing about what they mean. A path is a tuple of
keys, with list positions as numbers.
"""

import contextlib
import os
import re
import sys
import tomllib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tillbridge.core.errors import ConfigError
from tillbridge.core.files import claim_file
from tillbridge.core.i18n import _, joined, ngettext

SEARCHED = (Path("bridge.toml"), Path("/etc/tillbridge/bridge.toml"))
SYSTEM_DATA_DIR = Path("/var/lib/tillbridge")
DATA_DIR_VARIABLE = "TILLBRIDGE_DATA_DIR"
_LEDGER = "ledger.db"


def find_file(path: Path | None = None) -> Path:
    """Return the configuration file: `path`, or the first that exists of those searched.

    Raises ConfigError if there is none.
    """
    if path is not None:
        if not path.is_file():
            text = _("The configuration file {path} does not exist.")
            raise ConfigError(text.format(path=path), fix=_("Check the path after --config."))
        return path
    for candidate in SEARCHED:
        if candidate.is_file():
            return candidate
    text = _("No configuration file found. The bridge looked for {places}.")
    raise ConfigError(
        text.format(places=", ".join(str(candidate) for candidate in SEARCHED)),
        fix=_(
            "Name it with --config FILE, or start with an empty one and set everything up on the "
            "page: {make} bridge.toml, then tillbridge run"
        ).format(make="type nul >" if sys.platform == "win32" else "touch"),
    )


def data_dir_of(path: Path, document: Mapping[str, Any]) -> Path:
    """Return the absolute data folder a file means; TILLBRIDGE_DATA_DIR overrides it.

    A relative one counts from the file's folder, that of the variable from the current folder.
    Raises ConfigError if a file that names none could mean two.
    """
    if override := os.environ.get(DATA_DIR_VARIABLE):
        return Path(override).expanduser().absolute()
    bridge = document.get("bridge")
    named = bridge.get("data_dir") if isinstance(bridge, dict) else None
    if isinstance(named, str):
        return path.absolute().parent / Path(named).expanduser()
    return _usual_data_dir(path.absolute())


def _usual_data_dir(path: Path) -> Path:
    """Return the data folder of a file that names none: that of a ledger, wherever one is already.

    It does not depend on who asks, so that every command finds it (decision 135).
    """
    beside = path.parent / "data"
    found = [beside] if os.access(beside / _LEDGER, os.F_OK) else []
    if os.access(SYSTEM_DATA_DIR / _LEDGER, os.W_OK):
        found.append(SYSTEM_DATA_DIR)
    if len(found) > 1:
        raise ConfigError(
            _(
                "There are two databases, in {first} and in {second}, and {path} does not say "
                "which one to use."
            ).format(first=found[0], second=found[1], path=path),
            fix=_(
                'Choose one below [bridge] in that file, for example: data_dir = "{folder}"'
            ).format(folder=beside),
        )
    if found:
        return found[0]
    return SYSTEM_DATA_DIR if _is_of_the_system(path) else beside


def _is_of_the_system(path: Path) -> bool:
    if sys.platform == "win32":
        return False
    with contextlib.suppress(OSError):
        return path.is_relative_to("/etc") or path.stat().st_uid == 0
    return False


KeyPath = tuple[str | int, ...]


def line_at(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of a key, or of the nearest table around it; 0 if none is written."""
    found = (lines.get(path[:length]) for length in range(len(path), 0, -1))
    return next(filter(None, found), 0)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where (an empty path is the file), words, remedy, line (0: none)."""

    path: KeyPath
    text: str
    fix: str
    line: int = 0

    @property
    def key(self) -> str:
        """The dotted key, as it is written in the file."""
        return dotted(self.path)

    def placed(self, lines: Mapping[KeyPath, int]) -> "Fault":
        """Return the fault with its line, or that of the table it is missing from."""
        line = line_at(lines, self.path)
        return replace(self, line=line) if line else self

    def sentence(self, file: str) -> str:
        """Return the fault as one line for a person."""
        place = _("{file}, line {line}").format(file=file, line=self.line) if self.line else file
        subject = f"{self.key} " if self.key else ""
        said = joined(" ", filter(None, (self.text, self.fix)))
        return joined("", (place, ": ", subject, said))


class ConfigFaults(ConfigError):
    """Everything that is wrong with a configuration file; `faults` in the order of their lines."""

    def __init__(self, file: str, faults: Iterable[Fault]) -> None:
        self.file = file
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.line, fault.key)))
        lines = [fault.sentence(file) for fault in self.faults]
        if len(lines) > 1:
            count = len(lines)
            head = ngettext("{count} setting is wrong", "{count} settings are wrong", count)
            lines = [head.format(count=count) + ":", *(joined("", ("  ", line)) for line in lines)]
        super().__init__(
            joined("\n", lines), fix=_("Correct them, then try again.") if len(lines) > 1 else ""
        )


# -- reading a file


@dataclass(frozen=True, slots=True)
class Written:
    """A TOML text that is in a file, or is to be there, and what it says."""

    path: Path
    text: str
    document: Mapping[str, Any]

    def check(self, faults: Iterable[Fault]) -> None:
        """Raise ConfigFaults if there are any, each with its line."""
        if found := list(faults):
            lines = key_lines(self.text)
            raise ConfigFaults(str(self.path), [fault.placed(lines) for fault in found])


_SLIP_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the file's text and what it says. Raises ConfigError, with the line of a mistake."""
    claim_file(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        fault = Fault((), _("is not UTF-8 text."), _("Save it as UTF-8 in the editor."))
        raise ConfigFaults(str(path), [fault]) from None
    except OSError as failure:
        raise ConfigError(
            _("{path} cannot be read: {why}.").format(path=path, why=failure.strerror),
            fix=_("Check that this user has permission to read it."),
        ) from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigFaults(str(path), [_syntax_fault(str(error), text)]) from None
    except RecursionError:
        fault = Fault(
            (), _("is nested too deeply."), _("Look for brackets that do not belong there.")
        )
        raise ConfigFaults(str(path), [fault]) from None


def _syntax_fault(message: str, text: str) -> Fault:
    found = _SLIP_PLACE.search(message)
    line = int(found[1]) if found and found[1] else text.count("\n") + 1
    what = message[: found.start()] if found else message
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    return Fault(
        (), _("is not valid TOML: {words}.").format(words=what), _remedy(what, written), line
    )


# Quotation marks, dashes and blanks of word processors, and marks that nobody sees.
_LOOKALIKE = re.compile(
    "[\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u00ab\u00bb\u2010-\u2015\u00a0\u2002-\u200f\u202a-\u202f\u2060\ufeff]"
)
_QUOTED = re.compile(r'"[^"]*"')


def _remedy(what: str, written: str) -> str:
    if sign := _LOOKALIKE.search(_QUOTED.sub("", written)):
        shown = (
            f"{sign[0]} (U+{ord(sign[0]):04X})"
            if sign[0].isprintable()
            else f"U+{ord(sign[0]):04X}"
        )
        return _(
            "The character {sign} only looks like the right one, as word processors write it. "
            'Delete it and type it again in a plain editor: " for text, the space bar for a space.'
        ).format(sign=shown)
    if "\\" in written and '"' in written:
        return _(
            "A backslash in double quotes has a special meaning. Write Windows paths in single "
            r"quotes, for example 'C:\POS\export'."
        )
    if "Invalid value" in what:
        return _("Put text in quotes, and write true and false in lower case.")
    if "overwrite" in what or "twice" in what:
        return _("The key or table appears twice. Remove one.")
    if "Expected '='" in what:
        return _("Each line must be key = value or [table].")
    return _("Check that line and the end of the line before it.")


def read_named_file(path: Path, setting: str) -> Written:
    """Read the file that a setting of bridge.toml names, as `read_file`."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        fault = Fault(
            (),
            _("the file that {setting} names does not exist.").format(setting=setting),
            _("Create it, or correct {setting} in bridge.toml.").format(setting=setting),
        )
        raise ConfigFaults(str(path), [fault]) from None
    except OSError:
        pass  # reading it says why not
    return Written(path, *read_file(path))


# -- the line of each key


_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+'
    r"|'''.*?'''+"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[ \t\r]+"
    r"|[\n\[\]{},=]"
    r"|[^\s\[\]{},=#\"']+",
    re.DOTALL,
)
_ENDS = frozenset("\n,]}")


@lru_cache(maxsize=1)
def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line (from 1) of each key, table and list element of a valid TOML text."""
    return _Scanner(text).run()


def value_at(document: Mapping[str, Any], path: KeyPath) -> Any:  # noqa: ANN401 -- any TOML value
    """Return the value at a path; None if there is none."""
    value: Any = document
    try:
        for part in path:
            value = value[part]
    except (KeyError, IndexError, TypeError):
        return None
    return value


def dotted(path: KeyPath) -> str:
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
    """Takes the tokens of a valid text one by one, and notes where keys and elements begin."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._arrays: dict[KeyPath, int] = {}  # of tables: the position of the latest element
        self._tokens: deque[tuple[str, int]] = deque()
        line = 1
        for token in _TOKEN.findall(text):
            if token[0] not in "# \t\r":
                self._tokens.append((token, line))
            line += token.count("\n")

    def run(self) -> Mapping[KeyPath, int]:
        table: KeyPath = ()
        while self._tokens:
            if self._next_is("["):
                table = self._header()
            elif not self._next_is("\n"):
                self._pair(table)
        return self._lines

    def _header(self) -> KeyPath:
        """Return the table of a header; one below an array of tables means its latest element."""
        is_element = self._next_is("[")
        line, (*above, name) = self._tokens[0][1], self._key("]")
        path: KeyPath = ()
        for part in above:
            path = (*path, part)
            if path in self._arrays:
                path = (*path, self._arrays[path])
        path = (*path, name)
        self._note((), path, line)
        if is_element:
            self._next_is("]")
            self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, self._arrays[path])
            self._note((), path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._tokens[0][1]
        path = (*table, *self._key("="))
        self._note(table, path, line)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        position = 0
        if self._next_is("{"):
            while not self._next_is("}"):
                if not (self._next_is(",") or self._next_is("\n")):
                    self._pair(path)
        elif self._next_is("["):
            while not self._next_is("]"):
                if self._next_is(","):
                    position += 1
                elif not self._next_is("\n"):
                    self._note(path, (*path, position), self._tokens[0][1])
                    self._value((*path, position))
        else:
            while self._tokens and self._tokens[0][0] not in _ENDS:
                self._tokens.popleft()

    def _key(self, end: str) -> list[str]:
        """Return the parts of a dotted key that the token `end` follows."""
        written = ""
        while not self._next_is(end):
            written += self._tokens.popleft()[0]
        parts: list[str] = []
        inside: object = tomllib.loads(f"{written} = 0")
        while isinstance(inside, dict):
            ((part, inside),) = inside.items()
            parts.append(part)
        return parts

    def _next_is(self, token: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        if not self._tokens or self._tokens[0][0] != token:
            return False
        self._tokens.popleft()
        return True

    def _note(self, table: KeyPath, path: KeyPath, line: int) -> None:
        for length in range(len(table) + 1, len(path) + 1):
            self._lines.setdefault(path[:length], line)
