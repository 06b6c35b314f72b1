"""What goes wrong is named by file and line; and no secret is shown while an adapter is checked."""

import contextlib
import inspect
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TextIO

from pydantic import BaseModel, SecretStr

from tillbridge.adapter import json_rows
from tillbridge.adapter.conformance.rig import Rig
from tillbridge.adapter.registration import Adapter, home_of
from tillbridge.adapter.values import Health
from tillbridge.config.secrets import SecretSource, resolve_secret
from tillbridge.core.errors import ConfigError
from tillbridge.core.redaction import names_secret

_SHORTEST = 6  # a shorter text is in many places that are no secret's
_MOST_LINES = 5
_COMMENTS = ("#", "//", "--", "*")
_APART = 4  # so many lines lie between two of one traceback, at most
_KIT = str(Path(__file__).parent)
_OWN = str(Path(__file__).parents[2])


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the vendor's code. `in_rig`: it is the rig's, not the adapter's."""

    file: str
    line: int
    function: str
    in_rig: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Witness:
    """Sees one check: what was opened, what is printed and logged, where something was raised."""

    def __init__(self, adapter: Adapter, rig: type[Rig] | None = None) -> None:
        self.pos: object = None
        self.leaks: list[str] = []
        self.leaked_at = ""  # the line of the first
        self.refused: dict[str, str] = {}  # where records were refused, by what is said of them
        self._secrets: dict[str, str] = {}
        # A program has no lines that could be seen from here.
        self._is_program = rig is not None and rig.is_program
        self._home = _home(adapter)
        self._program = program_files(adapter) if self._is_program else ()
        self._rig_files = {
            inspect.getfile(kind)
            for kind in (rig.__mro__ if rig is not None and not rig.is_program else ())
            if issubclass(kind, Rig) and kind is not Rig and not _is_kits(inspect.getfile(kind))
        }

    def opened(self, pos: object) -> None:
        """Record the object that the check works with."""
        self.pos = pos

    # Where

    def place_of(self, failure: BaseException) -> Place | None:
        """Return the innermost line of the vendor's that the failure went through.

        What the kit has called last decides whose fault it is: the rig's or the adapter's.
        """
        found: list[Place] = []
        for frame, line in traceback.walk_tb(failure.__traceback__):
            if _is_kits(frame.f_code.co_filename):
                found.clear()
            elif place := self._place(frame.f_code, line):
                found.append(place)
        if found and found[0].in_rig:
            found = [each for each in found if each.in_rig]
        return found[-1] if found else None

    def place_of_method(self, names: Iterable[str]) -> str:
        """Return where the first of these methods is that the adapter has; "" for none."""
        for name in names:
            for path in self._program:
                if line := _line_of(path, name):
                    return f"{path.name}:{line} {name}"
            method = inspect.unwrap(getattr(type(self.pos), name, None) or (lambda: None))
            code = getattr(method, "__code__", None)
            if isinstance(code, CodeType) and (place := self._place(code, code.co_firstlineno)):
                return f"{place} {name}"
        return ""

    def row_refused(self, failure: BaseException, text: str) -> None:
        """Note where a record was refused, the first time that this was said of one."""
        if text not in self.refused and (place := self.place_of(failure)) is not None:
            self.refused[text] = f"{place} in {place.function}"

    def stderr_tail(self) -> str:
        """Return what the adapter's own program wrote to stderr last; "" where it is none.

        Of a traceback these are the lines about the innermost line of its own.
        """
        return traceback_in(self._stderr(), self._program)[1]

    def place_in_stderr(self) -> str:
        """Return the line of the adapter's own program that its stderr named last; "" for none."""
        return traceback_in(self._stderr(), self._program)[0]

    def last_method(self) -> str:
        """Return the method that the adapter's own program was asked for last; "" for none."""
        return str(getattr(self.pos, "last_method", "")) if self._is_program else ""

    def _stderr(self) -> str:
        read = getattr(self.pos, "stderr_tail", None)
        return str(read()) if callable(read) and self._is_program else ""

    def _place(self, code: CodeType, line: int) -> Place | None:
        file = code.co_filename
        if file in self._rig_files:
            return Place(Path(file).name, line, code.co_name, in_rig=True)
        if self._is_program or self._home is None or not Path(file).is_relative_to(self._home):
            return None
        relative = Path(file).relative_to(self._home)
        return Place(relative.as_posix(), line, code.co_name, in_rig=relative.name == "rig.py")

    # What is shown

    def collect_secrets(self, rig: Rig) -> None:
        """Find out what must not be shown: the secrets among the options of this till."""
        with contextlib.suppress(Exception):  # the check itself reports wrong options
            given = dict(rig.options())
            model = rig.adapter.options.model_validate(given)
            for option, value in _secrets_of({**given, **dict(model)}, rig.folder):
                if len(value) >= _SHORTEST:
                    self._secrets[value] = option

    def check_text(
        self, text: str, how: str, frames: Iterable[FrameType] = (), *, place: str = ""
    ) -> None:
        """Note a secret in what the adapter shows; `how` it does, at `place` or in a frame."""
        for value, option in self._secrets.items():
            if value in text:
                found = (self._place(frame.f_code, frame.f_lineno) for frame in frames)
                at = place or str(next(filter(None, found), ""))
                leak = f"{at or 'the adapter'} {how} the secret in the option {option}"
                if leak not in self.leaks:
                    self.leaks.append(leak)
                    self.leaked_at = self.leaked_at or at

    def check_value(self, value: object) -> None:
        """Note a secret in what the adapter raises, or says of its health."""
        if isinstance(value, BaseException):
            frames = [frame for frame, _line in traceback.walk_tb(value.__traceback__)]
            self.check_text(str(value), "raises a failure whose text shows", frames[::-1])
        elif isinstance(value, Health):
            place = self.place_of_method(["health"])
            self.check_text(value.detail, "says in Health.detail", place=place.partition(" ")[0])

    def check_stderr(self) -> None:
        """Note a secret in what the adapter's own program writes to stderr, and where it may."""
        said, written = self._stderr(), stderr_lines(self._program)
        for value, option in self._secrets.items():
            if value in said:
                at = f" (it writes there in {', '.join(written)})" if written else ""
                self.leaks.append(
                    f"the adapter writes to stderr the secret in the option {option}{at}"
                )
                self.leaked_at = written[0] if len(written) == 1 else ""

    def without_secrets(self, text: str) -> str:
        """Return a text that may be shown."""
        for value, option in self._secrets.items():
            text = text.replace(value, f"[{option}]")
        return text

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Capture what is printed and logged; what is printed goes to stderr, for the report."""
        self.leaks.clear()
        self.leaked_at = ""
        self.pos, self.refused = None, {}
        json_rows.on_refused.append(self.row_refused)
        handler, root = _WatchedLog(self), logging.getLogger()
        levels, level = [(each, each.level) for each in root.handlers], root.level
        out, err = sys.stdout, sys.stderr
        for each, its in levels:
            each.setLevel(max(its, level))
        root.addHandler(handler)
        root.setLevel(min(level, logging.INFO))
        sys.stdout = sys.stderr = _WatchedStream(err, self)
        try:
            yield
        finally:
            json_rows.on_refused.remove(self.row_refused)
            sys.stdout, sys.stderr = out, err
            root.removeHandler(handler)
            root.setLevel(level)
            for each, its in levels:
                each.setLevel(its)


class _WatchedStream:
    """A stream that is listened to."""

    def __init__(self, stream: TextIO, witness: Witness) -> None:
        self._stream = stream
        self._witness = witness

    def write(self, text: str) -> int:
        self._witness.check_text(text, "prints", _callers())
        return self._stream.write(self._witness.without_secrets(text))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever a stream has
        return getattr(self._stream, name)


class _WatchedLog(logging.Handler):
    def __init__(self, witness: Witness) -> None:
        super().__init__()
        self._witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        self._witness.check_text(record.getMessage(), "logs", _callers())


def _callers() -> Iterator[FrameType]:
    """Yield who has called, from the innermost."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- there is no other way to them
    while frame is not None:
        yield frame
        frame = frame.f_back


def _home(adapter: Adapter) -> Path | None:
    try:
        return home_of(adapter)
    except TypeError:
        return None


def program_files(adapter: Adapter) -> tuple[Path, ...]:
    """Return the files that an adapter's command names: its program, where it is a script."""
    folder, command = (getattr(adapter.open, name, None) for name in ("folder", "command"))
    return scripts_of(folder, command) if folder is not None and command else ()


def scripts_of(folder: Path, command: Iterable[str]) -> tuple[Path, ...]:
    """Return the files that a command names."""
    paths = [folder / each for each in command]
    return tuple(each for each in paths if each.is_file())


def traceback_in(stderr: str, program: Iterable[Path]) -> tuple[str, str]:
    """Return the place that a traceback names, in whatever language, and the lines about it.

    Without one: no place, and the last lines.
    """
    lines = stderr.splitlines()
    names = "|".join(re.escape(each.name) for each in program) or "(?!)"
    form = re.compile(rf"\b({names})\W+(?:line )?(\d+)")
    block: list[tuple[str, int]] = []  # of the last traceback, from its end
    for at, line in reversed(list(enumerate(lines))):
        if block and block[-1][1] - at > _APART:
            break
        if named := form.search(line):
            block.append((f"{named[1]}:{named[2]}", at))
    if not block:
        return "", "\n".join(lines[-_MOST_LINES:])
    # Only Python prints the innermost line last, and the error after it.
    is_python = ".py:" in block[0][0]
    place, at = block[0 if is_python else -1]
    return place, "\n".join(lines[at if is_python else max(0, at - 1) :][:_MOST_LINES])


def stderr_lines(program: Iterable[Path]) -> list[str]:
    """Return each place in which a program, in whatever language, seems to write to stderr."""
    form = re.compile(
        r"(?i:stderr)\W|console\.(?:error|warn)\(|(?:System\.err|Console\.Error)\b|>&2"
    )
    return [
        f"{path.name}:{number}"
        for path in program
        for number, line in enumerate(_lines(path), 1)
        if form.search(line) and not line.lstrip().startswith(_COMMENTS)
    ]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, ValueError):  # no script: a DLL, a JAR
        return []


def _line_of(path: Path, method: str) -> int:
    """Return the line where a program in whatever language answers `method`; 0 for none."""
    lines = _lines(path)
    name = rf"\b{method}\b"
    for form in (
        rf"\b(?:def|sub|function|func|case|when)\W+{name}",
        rf"^\s*(?:[\w<>\[\],]+\s+)*{name}\s*\([^()]*\)[^;()]*\{{",
        rf"{name}\W*(?:=|:|\()|^\s*{name}\)",
        name,
    ):
        for number, line in enumerate(lines, 1):
            if re.search(form, line) and not line.lstrip().startswith(_COMMENTS):
                return number
    return 0


def _is_kits(file: str) -> bool:
    return file.startswith(_KIT)


def _secrets_of(options: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        match value:
            case SecretStr() | SecretSource():
                with contextlib.suppress(ConfigError):
                    secret = resolve_secret(value, key=name, base_dir=folder)
                    yield name, secret.get_secret_value()
            case str() if names_secret(name):
                yield name, value
            case BaseModel():
                yield from _secrets_of(dict(value), folder)
            case Mapping():
                yield from _secrets_of(value, folder)
