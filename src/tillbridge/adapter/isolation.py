"""Running a parser in a child process, with limits of memory and time, for adapters.

A stranger's file can make a parser abort, hang, or ask for more memory than there is. In a child
process that costs one reading: the bridge and every other store keep working.

    rows = call_in_child(parse, data, limits=Limits(memory_mb=256, seconds=10))

`parse` is a function at the top level of a module that can be imported; its arguments must pickle,
and what it returns must be JSON (tuples come back as lists). It may raise ExportUnreadable, which
is raised here as it is. The child gets no open file of the parent's, and of its environment only
what Python itself needs. `IsolatedReader` does the same for files, once for each content.
"""

import hashlib
import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tillbridge.adapter.export_files import reading_whole
from tillbridge.adapter.failures import ExportUnreadable
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _

Outcome = Literal["out_of_memory", "timeout", "died", "raised", "too_large", "not_started"]

# The module search path comes first: without it the child may not find `tillbridge`.
_BOOT = (
    "import pickle, sys\n"
    "sys.path += [each for each in pickle.load(sys.stdin.buffer) if each not in sys.path]\n"
    "from tillbridge.parsing.child import serve\n"
    "serve()\n"
)
_ENVIRONMENT = (
    *("PATH", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR"),
)
_SENTENCES: Mapping[Outcome, str] = {
    "out_of_memory": _("{name} needs more than {detail} of memory to be read."),
    "too_large": _("{name} holds {detail} of text; no menu is that large."),
    "timeout": _("{name} could not be read within {detail}."),
    "raised": _("{name} is damaged; it cannot be read ({detail})."),
    "died": _("{name} ended the process that reads it ({detail})."),
}
_OUT_OF_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|MemoryError|bad_alloc")
_GOOD = (b'["returned",', b'["unreadable",')
_STDERR_CHARS = 300  # characters of what the child wrote to stderr
_MB = 1 << 20
_MOST_BYTES = 64 * _MB
_RETRY_S = 600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: memory, wall-clock time, and the size of the JSON it returns.

    If the system cannot limit a process's memory (macOS), only the others apply.
    """

    memory_mb: int = 320
    seconds: float = 30.0
    answer_mb: int = 64


_DEFAULT_LIMITS = Limits()

if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.CREATE_NO_WINDOW
else:
    _CREATION_FLAGS = 0


class ChildFailed(Exception):
    """The call returned no result.

    `outcome` says why: out_of_memory, timeout, died (by a signal, or with an exit code), raised
    (another exception than ExportUnreadable), too_large (what it returned), not_started. `detail`
    explains it in words.
    """

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome = outcome
        self.detail = detail


def call_in_child(
    function: Callable[..., Any], *arguments: object, limits: Limits = _DEFAULT_LIMITS
) -> Any:  # noqa: ANN401 -- whatever JSON the function returns
    """Run `function(*arguments)` in a separate process, and return its result.

    Blocks until it has ended, at most `limits.seconds`. Raises ChildFailed, and ExportUnreadable if
    the function does.
    """
    return _value(_answer(function, arguments, limits))


def _answer(function: Callable[..., Any], arguments: Sequence[object], limits: Limits) -> bytes:
    """Return the outcome as JSON, `returned` or `unreadable`. Raises ChildFailed for others."""
    path = [os.path.abspath(each) for each in sys.path]  # noqa: PTH100 -- "" is the working folder
    figures = (limits.memory_mb, limits.seconds, limits.answer_mb)
    request = b"".join(map(pickle.dumps, (path, figures, (function, arguments))))
    try:
        child = subprocess.Popen(  # noqa: S603 -- this very Python
            [_python(), "-I", "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            start_new_session=True,  # Ctrl-C in a terminal is for the bridge
            creationflags=_CREATION_FLAGS,
        )
    except OSError as failure:
        raise ChildFailed("not_started", failure.strerror or str(failure)) from failure
    with child:
        try:
            answer, stderr = child.communicate(request, timeout=limits.seconds)
        except BaseException as failure:
            child.kill()
            if isinstance(failure, subprocess.TimeoutExpired):
                raise ChildFailed("timeout", f"{limits.seconds:g} seconds") from failure
            raise
    if child.returncode != 0:
        raise _died(child.returncode, stderr.decode("utf-8", "replace"), limits)
    if not answer:
        raise ChildFailed("died", "no result")
    if answer.startswith(_GOOD):
        return answer
    outcome, detail = json.loads(answer)
    raise ChildFailed(outcome, detail or f"{limits.memory_mb} MB")


def _value(answer: bytes) -> Any:  # noqa: ANN401 -- whatever JSON the function returned
    outcome, value = json.loads(answer)
    if outcome == "unreadable":
        values = {name: _(part) for name, part in value.pop("values").items()}
        text, fix = _(value.pop("text")), _(value.pop("fix"))
        raise ExportUnreadable(text.format(**values), fix=fix, **value)
    return value


def _python() -> str:
    """Return the interpreter, which a program that embeds Python is not (`set_executable`)."""
    from multiprocessing import spawn  # noqa: PLC0415 -- only who has such a file needs it

    return os.fsdecode(spawn.get_executable())


def _died(code: int, stderr: str, limits: Limits) -> ChildFailed:
    if _OUT_OF_MEMORY.search(stderr):
        return ChildFailed("out_of_memory", f"{limits.memory_mb} MB")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return ChildFailed("died", f"{how} {stderr.strip()[-_STDERR_CHARS:]}".strip())


@dataclass(frozen=True, slots=True)
class _Known:
    """What the last content came to, as JSON, and until when that holds (monotonic seconds)."""

    digest: bytes
    answer: bytes
    until: float = math.inf


class IsolatedReader:
    """Reads a till's files in a child process, and the same content only once.

    `fix` is the remedy if they need too much memory or time. The result for the last content is
    cached, also if it is a failure: a file that kills its parser is not parsed again and again. A
    failed child is tried again after ten minutes, since the machine may have been short of
    resources.
    """

    def __init__(self, *, fix: str, limits: Limits = _DEFAULT_LIMITS) -> None:
        self._fix = fix
        self._limits = limits
        self._known: _Known | None = None

    def read(self, paths: Sequence[Path], function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 -- whatever JSON the function returns
        """Return the result of `function(contents, *arguments)`.

        `contents` are the bytes of the files by name. Raises ExportUnreadable, with `passing` if a
        file is missing, locked or empty, or changes while it is read.
        """
        with ExitStack() as whole:
            for path in paths:
                whole.enter_context(reading_whole(path))
            contents = self._contents(paths)
            digest = _digest(contents, (function.__module__, function.__qualname__, arguments))
            known = self._known
            if known is None or known.digest != digest or known.until < time.monotonic():
                self._known = None  # two results at once would be twice the memory
                self._known = known = self._parse(digest, contents, function, arguments)
            return _value(known.answer)

    def _contents(self, paths: Sequence[Path]) -> Mapping[str, bytes]:
        for path in paths:
            if (size := path.stat().st_size) > _MOST_BYTES:
                raise ExportUnreadable(
                    _("{name} has {size} MB; no menu is that large.").format(
                        name=path.name, size=size // _MB
                    ),
                    place=path.name,
                    fix=_("Check that the option names the right file, and export the menu again."),
                )
        return {path.name: read_shared(path) for path in paths}

    def _parse(
        self,
        digest: bytes,
        contents: Mapping[str, bytes],
        function: Callable[..., Any],
        arguments: Sequence[object],
    ) -> _Known:
        try:
            return _Known(digest, _answer(function, (contents, *arguments), self._limits))
        except ChildFailed as failure:
            if failure.outcome == "not_started":
                raise _not_started(", ".join(contents), failure) from failure
            name = ", ".join(contents)
            value = {
                "text": _SENTENCES[failure.outcome],
                "values": {"name": name, "detail": failure.detail},
                "place": name,
                "fix": self._fix,
            }
            answer = json.dumps(["unreadable", value]).encode("ascii")
            return _Known(digest, answer, time.monotonic() + _RETRY_S)


def _not_started(name: str, failure: ChildFailed) -> ExportUnreadable:
    return ExportUnreadable(
        _("The process that reads {name} cannot be started: {detail}.").format(
            name=name, detail=failure.detail
        ),
        place=name,
        fix=_("Check how much memory and how many processes this machine allows the bridge."),
        passing=True,
    )


def _digest(contents: Mapping[str, bytes], call: object) -> bytes:
    digest = hashlib.sha256(repr(call).encode("utf-8", "surrogatepass"))
    for name, content in contents.items():
        digest.update(f"{name}/{len(content)}/".encode("utf-8", "surrogatepass"))
        digest.update(content)
    return digest.digest()
