"""One program of a vendor, supervised: started, greeted, asked, ended when it hangs, started again.

Again after half a second, then twice as long each time, until it has run well for `steady_s`.
"""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from pydantic import ValidationError

from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.worker import backoff_s
from tillbridge.pos.loader import first_fault
from tillbridge.pos.process.wire import (
    PROTOCOL,
    ChildHello,
    Event,
    Refusal,
    line_of,
    request_of,
)

# A menu of 200,000 items is some 40 MB; what is longer has no end.
LONGEST_LINE = 64 << 20
_LONGEST_TEXT = 500
_FIRST_S = 0.5
_OFTEN = 3  # so many ends in a row are trouble
_GOODBYE_S = 1.0
_EVEN_SO_S = 1.0
_LOOK_AGAIN_S = 0.005
_WINDOW_S = 10.0
_MOST = 40
_LAST = 40  # lines of its stderr, for whoever writes the program

_ALWAYS = frozenset(
    {
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        # what a Windows program does not start without
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP"),
        *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "USERPROFILE"),
    }
)


class NotSent(Exception):
    """The program is not there or busy: it surely has not been asked. The text says why."""


class NotAnswered(Exception):
    """The program was asked, and ended or hung before it answered. The text says why."""


class Unusable(Exception):
    """The program cannot work as it is configured; only a person can mend it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds: see the options of the adapter."""

    start_s: float
    restart_cap_s: float
    steady_s: float


def environment(names: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return what a program gets to see of the environment: the harmless, and what is named."""
    allowed = {*_ALWAYS, *(name.upper() for name in names)}
    return {
        name: value
        for name, value in given.items()
        if name.upper() in allowed or name.startswith("LC_")
    }


class ProgramSupervisor:
    """Keeps one program running, by a thread of its own from `start` to `close`.

    It calls `on_event` with each of the program's events, `on_ready` whenever it was started again.
    A program named by a path is found from the folder `cwd`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        hello: Mapping[str, Any],
        limits: Limits,
        store: str,
        on_event: Callable[[Event], None] = lambda _event: None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        program, *arguments = command
        by_path = Path(program).parent != Path()
        self._command = (str(cwd / program) if by_path else program, *arguments)
        self._cwd = cwd
        self._env = env
        self._hello = line_of(hello)
        self._limits = limits
        self._log = _ProgramLog(store)
        self._on_event = on_event
        self._on_ready = on_ready
        self._thread = threading.Thread(
            target=self._supervise, name=f"supervise-{program}", daemon=True
        )
        self._state = threading.Condition()
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self.hello: ChildHello | None = None  # this time's or the last one
        self._ready_at: float | None = None  # monotonic seconds; None while it is not ready
        self._starting = True
        self._ends = 0  # in a row
        self._why = ""
        self._unusable = ""
        self._closed = False
        self._last_number = 0
        self._requests: dict[int, tuple[str, Future[bytes]]] = {}

    def start(self) -> ChildHello | None:
        """Start it and wait for its hello; None if it gave none, and is tried again and again.

        Raises Unusable.
        """
        self._thread.start()
        with self._state:
            self._state.wait_for(lambda: not self._starting, self._limits.start_s + _GOODBYE_S)
            if self._unusable:
                raise Unusable(self._unusable)
            return self.hello

    def absence(self) -> str:
        """Return why it cannot be asked now; "" where it can."""
        with self._state:
            if self._ready_at is not None:
                return ""
            return self._why or _("The program has not sent its hello yet.")

    def stderr_tail(self) -> str:
        """Return what the program wrote to stderr last; "" for nothing."""
        return "\n".join(self._log.last)

    def trouble(self) -> str:
        """Return why it keeps ending; "" while it does not."""
        with self._state:
            self._reset_restarts()
            return self._why if self._ends >= _OFTEN else ""

    def ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> bytes:
        """Return the line of its answer. Raises NotAsked, NotAnswered; ends it when it hangs."""
        until = time.monotonic() + limit_s
        with self._my_turn(until):
            with self._state:
                # One that is just being started is waited for; one that rests after its end is not.
                self._state.wait_for(
                    lambda: self._closed or not self._starting, max(0.0, until - time.monotonic())
                )
                child = self._child
                if child is None or self._ready_at is None or self._closed:
                    raise NotSent(self._why or _("The program has not sent its hello yet."))
                self._last_number = number = self._last_number + 1
                answer: Future[bytes] = Future()
                self._requests[number] = (method, answer)
            child.send(request_of(number, method, params))
            try:
                return answer.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                why = _("it did not answer {method} within {seconds:g} seconds").format(
                    method=method, seconds=limit_s
                )
                with self._state:
                    self._requests.pop(number, None)
                child.kill(why)
                text = _("The program was stopped: {why}.").format(why=why)
                raise NotAnswered(text) from None

    def kill(self) -> None:
        """End the program as a crash would, and do not restart it. For tests of adapters."""
        if (child := self._stop()) is not None:
            child.kill(_("a test stopped it"))

    def close(self) -> None:
        """Ask it to end, end it if it does not in time, and do not restart it."""
        if (child := self._stop()) is not None:
            child.ask_to_end()
            self._thread.join(_GOODBYE_S)
            if self._thread.is_alive():
                child.kill(_("it did not end"))
                self._thread.join(_EVEN_SO_S)

    def _stop(self) -> "_Child | None":
        """Do not restart it any more; return what runs."""
        with self._state:
            self._closed = True
            self._state.notify_all()
            return self._child

    @contextmanager
    def _my_turn(self, until: float) -> Iterator[None]:
        """Ask one thing at a time, where the program cannot do two."""
        if self.hello is not None and self.hello.parallel:
            yield
            return
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            raise NotSent(_("The program is busy with another call."))
        try:
            yield
        finally:
            self._turn.release()

    # -- in the supervising thread

    def _supervise(self) -> None:
        while self._start():
            with self._state:
                pause_s = backoff_s(self._ends, _FIRST_S, self._limits.restart_cap_s)
                get_logger().warning(
                    "adapter.ended", **self._log.place, reason=self._why, again_in_s=pause_s
                )
                if self._state.wait_for(lambda: self._closed, pause_s):
                    return

    def _start(self) -> bool:
        """Start it and read it to its end; return whether it is to be started again."""
        self._log.logged.clear()
        with self._state:
            if self._closed:
                return False
            self._starting = True
            try:
                child = self._child = _Child(
                    self._command, cwd=self._cwd, env=self._env, on_stderr=self._log.stderr
                )
            except (OSError, ValueError) as failure:
                # One that is being replaced, or lacks a right, may be started later.
                absent = getattr(failure, "errno", errno.ENOENT) == errno.ENOENT
                self._over(_("it cannot be started: {why}").format(why=failure), unusable=absent)
                return True
        late = _("it did not send its hello within {seconds:g} seconds").format(
            seconds=self._limits.start_s
        )
        self._deadline = threading.Timer(self._limits.start_s, child.kill, [late])
        self._deadline.daemon = True
        self._deadline.start()
        child.send(self._hello)
        try:
            child.read(self._line)
        except Exception:  # noqa: BLE001 -- ours; the program is started again
            get_logger().exception("adapter.failed", **self._log.place)
        self._deadline.cancel()
        why = child.end()
        with self._state:
            self._child = None
            for method, answer in self._requests.values():
                answer.set_exception(
                    NotAnswered(
                        _("The program did not answer {method}: {why}.").format(
                            method=method, why=why
                        )
                    )
                )
            self._requests.clear()
            self._over(why)
            return not self._closed

    def _reset_restarts(self) -> None:
        ready_at = self._ready_at
        if ready_at is not None and time.monotonic() - ready_at >= self._limits.steady_s:
            self._ends = 0

    def _over(self, why: str, *, unusable: bool = False) -> None:
        """Record an end (the state is held)."""
        self._reset_restarts()
        self._ends += 1
        self._ready_at = None
        self._starting = False
        self._why = _("The program {command} is not available: {why}.").format(
            command=Path(self._command[0]).name if self.hello is None else self.hello.name,
            why=why,
        )
        if unusable:
            self._unusable = self._why
        self._state.notify_all()

    def _line(self, child: "_Child", line: bytes) -> None:
        """Take a line of its stdout."""
        try:
            message = json.loads(line)
            kind = message.get("type")
        except (ValueError, AttributeError, RecursionError):
            message, kind = {}, None
        try:
            match kind:
                case "answer":
                    self._answered(message.get("id"), line)
                case "event":
                    self._on_event(Event.model_validate_json(line))
                case "hello":
                    self._greeted(child, ChildHello.model_validate_json(line))
                case "refuse":
                    self._refused(child, Refusal.model_validate_json(line).message)
                case _:  # once for each start, and never what it says
                    self._log.once("adapter.rubbish", bytes=len(line))
        except ValidationError as failure:
            # Its values are not logged.
            error = failure.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, error["loc"]))
            self._log.once("adapter.odd_message", kind=str(kind), field=place, problem=error["msg"])
            if kind in {"hello", "refuse"}:
                child.kill(_("its hello is not valid: {what}").format(what=first_fault(failure)))

    def _answered(self, number: object, line: bytes) -> None:
        with self._state:
            number = number if type(number) is int else 0  # 0 was never asked
            asked = self._requests.pop(number, None)
        if asked is None:  # or nobody waits for it any more
            self._log.once("adapter.stray_answer")
        else:
            asked[1].set_result(line)

    def _greeted(self, child: "_Child", hello: ChildHello) -> None:
        if hello.protocol != PROTOCOL:
            self._refused(
                child,
                _("it speaks version {theirs} of the protocol; this bridge speaks {ours}").format(
                    theirs=hello.protocol, ours=PROTOCOL
                ),
            )
            return
        with self._state:
            if self._ready_at is not None:
                return
            self.hello = hello
            self._deadline.cancel()
            self._ready_at = time.monotonic()
            self._starting = False
            self._unusable = ""
            self._state.notify_all()
        get_logger().info(
            "adapter.ready",
            **self._log.place,
            program=hello.name,
            program_version=hello.version,
            pid=child.pid,
        )
        self._on_ready()

    def _refused(self, child: "_Child", message: str) -> None:
        with self._state:
            self._unusable = message
        child.kill(message)


class _Child:
    """A program that was started. Raises OSError if it cannot be.

    One thread of its own writes to its stdin, one calls `on_stderr` with each line of its stderr.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_stderr: Callable[[str], None],
    ) -> None:
        self._on_stderr = on_stderr
        self._why = ""
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

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Write a line to its stdin; never waits. What it does not read is lost with it."""
        self._outgoing.put(line)

    def kill(self, why: str) -> None:
        """End it and what it has started at once; `why` is the reason of its end."""
        self._why = self._why or why
        self._end_all()

    def ask_to_end(self) -> None:
        """Close its stdin."""
        self._why = self._why or _("it was asked to end")
        self._outgoing.put(None)

    def read(self, on_line: Callable[["_Child", bytes], None]) -> None:
        """Call `on_line` with each line of its stdout, to its end."""
        with _pipe(self._process.stdout) as stdout:
            while line := stdout.readline(LONGEST_LINE):
                if not line.endswith(b"\n"):
                    if len(line) >= LONGEST_LINE:
                        self.kill(
                            _("it wrote a line of more than {most} MB").format(
                                most=LONGEST_LINE >> 20
                            )
                        )
                    break  # half a line is no message: it died in the middle of it
                on_line(self, line)
        if not self._has_ended(_EVEN_SO_S):
            self.kill(_("it closed its stdout"))

    def end(self) -> str:
        """End what is left of it, and return the reason of its end."""
        # What it started may hold its pipes, and nobody else asks after them.
        self._end_all()
        code = self._process.wait()
        self._outgoing.put(None)
        self._stderr_reader.join(_EVEN_SO_S)
        how = (
            _("it was ended by signal {code}") if code < 0 else _("it ended with exit code {code}")
        )
        return self._why or how.format(code=abs(code))

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=f"process-{self.pid}-{name}", daemon=True)
        thread.start()
        return thread

    def _write(self) -> None:
        # Where it is gone, its reader reports that.
        with contextlib.suppress(OSError, ValueError), _pipe(self._process.stdin) as stdin:
            while (line := self._outgoing.get()) is not None:
                stdin.write(line)
                stdin.flush()

    def _read_stderr(self) -> None:
        with _pipe(self._process.stderr) as stderr:
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


class _ProgramLog:
    """The log of one program; the store is in each line."""

    def __init__(self, store: str) -> None:
        self.place = {"store": store, "adapter": "process"}
        self.logged: set[tuple[str, ...]] = set()  # since it was started
        self.last: deque[str] = deque(maxlen=_LAST)
        self._since = time.monotonic()
        self._count = 0
        self._left_out = 0

    def stderr(self, text: str) -> None:
        """Log a line of its stderr, of many in a short time only some."""
        now = time.monotonic()
        if now - self._since > _WINDOW_S:
            if self._left_out:
                get_logger().warning("adapter.said_more", **self.place, lines=self._left_out)
            self._since, self._count, self._left_out = now, 0, 0
        self.last.append(text)
        self._count += 1
        if self._count > _MOST:
            self._left_out += 1
        else:
            get_logger().info("adapter.said", **self.place, text=text)

    def once(self, event: str, *, kind: str = "", field: str = "", **fields: object) -> None:
        """Log what is odd about a message: once for each start, kind and field."""
        what = (event, kind, field)
        if what not in self.logged and len(self.logged) <= _MOST:
            self.logged.add(what)
            named = {"kind": kind, "field": field} if kind else {}
            get_logger().warning(event, **self.place, **named, **fields)
