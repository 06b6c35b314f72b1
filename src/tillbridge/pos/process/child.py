"""One running program: lines in, lines out, its end, and the log of what it writes besides."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from pydantic import ValidationError

from tillbridge.core.log import get_logger

# A menu of 200,000 items is some 40 MB; what is longer has no end.
LONGEST_LINE = 64 << 20
_LONGEST_TEXT = 500
_EVEN_SO_S = 1.0
_LOOK_AGAIN_S = 0.005
_WINDOW_S = 10.0
_MOST = 40

_ALWAYS = (
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    # what a Windows program does not start without
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "USERPROFILE",
)


def environment(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return what a program gets to see of the environment: the harmless, and what is named."""
    allowed = {*_ALWAYS, *(name.upper() for name in names)}
    return {
        name: value
        for name, value in given.items()
        if name.upper() in allowed or name.startswith("LC_")
    }


class Child:
    """A program that was started. Raises OSError where it cannot be.

    Its own threads call `on_line` with each line of its stdout, `on_stderr` with each of its
    stderr, and `on_end` once, after its last line, with the reason of its end.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_line: Callable[["Child", bytes], None],
        on_stderr: Callable[[str], None],
        on_end: Callable[["Child", str], None],
    ) -> None:
        self._on_line = on_line
        self._on_stderr = on_stderr
        self._on_end = on_end
        self._why = ""
        self._lock = threading.Lock()
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        # Nothing of it is a shell's: a name in the configuration cannot become a command.
        self._process = subprocess.Popen(  # noqa: S603 -- the command is the configuration's
            list(command),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that what it starts itself can be ended with it
        )
        self._stderr_reader = self._thread(self._read_stderr, "err")
        self._thread(self._write, "in")
        self._reader = self._thread(self._read, "out")  # last: it reports the end, and joins

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Write a line to its stdin; never waits. What it does not read is lost with it."""
        self._outgoing.put(line)

    def kill(self, why: str) -> None:
        """End it and what it has started at once; `why` is reported as the reason of its end."""
        with self._lock:
            self._why = self._why or why
        self._end_all()

    def close(self, patience_s: float) -> None:
        """Close its stdin, which asks it to end; end it where it does not within its time."""
        with self._lock:
            self._why = self._why or "it was asked to end"
        self._outgoing.put(None)
        self._reader.join(patience_s)
        if self._reader.is_alive():
            self._end_all()
            self._reader.join(_EVEN_SO_S)

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=f"process-{self.pid}-{name}", daemon=True)
        thread.start()
        return thread

    def _read(self) -> None:
        """Read to its end, which is reported whatever happens: else nobody would start another."""
        try:
            self._read_lines()
        finally:
            # What it started may hold its pipes, and nobody else asks after them.
            self._end_all()
            code = self._process.wait()
            self._outgoing.put(None)
            self._stderr_reader.join(_EVEN_SO_S)
            self._on_end(self, self._why or _ending(code))

    def _read_lines(self) -> None:
        stdout = _pipe(self._process.stdout)
        with stdout:
            while line := stdout.readline(LONGEST_LINE):
                if not line.endswith(b"\n"):
                    if len(line) >= LONGEST_LINE:
                        self.kill(f"it wrote a line of more than {LONGEST_LINE >> 20} MB")
                    break  # half a line is no message: it died in the middle of it
                self._on_line(self, line)
        if not self._has_ended(_EVEN_SO_S):
            self.kill("it closed its stdout")

    def _write(self) -> None:
        stdin = _pipe(self._process.stdin)
        try:
            with stdin:
                while (line := self._outgoing.get()) is not None:
                    stdin.write(line)
                    stdin.flush()
        except (OSError, ValueError):
            return  # it is gone; the reader reports it

    def _read_stderr(self) -> None:
        stderr = _pipe(self._process.stderr)
        with stderr:
            while line := stderr.readline(LONGEST_LINE):
                text = line.decode("utf-8", "replace").strip()
                if text:
                    self._on_stderr(text[:_LONGEST_TEXT])

    def _has_ended(self, patience_s: float) -> bool:
        """Return whether it has; its number stays its own until it is waited for."""
        if sys.platform == "win32":
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                return False
            return True
        until = time.monotonic() + patience_s
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_AGAIN_S)
        return True

    def _end_all(self) -> None:
        """End it with all it has started; only before it is waited for, while its number is its."""
        if self._process.returncode is not None:
            return
        if sys.platform == "win32":
            subprocess.run(  # noqa: S603 -- a number, and a program of the system
                ["taskkill", "/PID", str(self.pid), "/T", "/F"],  # noqa: S607 -- (as above)
                capture_output=True,
                check=False,
            )
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it is gone already
            os.killpg(self.pid, signal.SIGKILL)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # pragma: no cover -- each was asked for
        raise OSError("no pipe")
    return pipe


def _ending(code: int) -> str:
    if code < 0:
        return f"it was ended by signal {-code}"
    return f"it ended with exit code {code}"


class ProgramLog:
    """The log of one program; the store stands in each line."""

    def __init__(self, store: str) -> None:
        self.place = {"store": store, "adapter": "process"}
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._count = 0
        self._left_out = 0
        self._logged: set[str] = set()

    def restarted(self) -> None:
        """Take note that the program is started anew: what was logged once may be logged again."""
        with self._lock:
            self._logged.clear()

    def stderr(self, text: str) -> None:
        """Log a line of its stderr."""
        with self._lock:
            now = time.monotonic()
            left_out = 0
            if now - self._since > _WINDOW_S:
                left_out, self._left_out = self._left_out, 0
                self._since, self._count = now, 0
            self._count += 1
            if self._count > _MOST:
                self._left_out += 1
                return
        if left_out:
            get_logger().warning("adapter.said_more", **self.place, lines=left_out)
        get_logger().info("adapter.said", **self.place, text=text)

    def rubbish(self, length: int) -> None:
        """Log that a line is no message: once for each start, and never what it says."""
        if self._first("rubbish"):
            get_logger().warning("adapter.rubbish", **self.place, bytes=length)

    def stray(self) -> None:
        """Log that something was answered that nobody asks (any more)."""
        if self._first("stray"):
            get_logger().warning("adapter.stray_answer", **self.place)

    def odd(self, kind: str, failure: ValidationError) -> None:
        """Log that a message is not as it must be; its values are not logged."""
        error = failure.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, error["loc"]))
        if self._first(f"odd {kind} {place}"):
            get_logger().warning(
                "adapter.odd_message", **self.place, kind=kind, field=place, problem=error["msg"]
            )

    def _first(self, what: str) -> bool:
        with self._lock:
            if what in self._logged or len(self._logged) > _MOST:
                return False
            self._logged.add(what)
            return True
