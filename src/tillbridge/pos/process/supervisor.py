"""Supervises one program: started, greeted, asked, ended when it hangs, started again.

Again after half a second, then twice as long each time, until it has run well for `steady_s`.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.pos.loader import first_fault
from tillbridge.pos.process.child import Child, ProgramLog
from tillbridge.pos.process.wire import (
    PROTOCOL,
    ChildHello,
    Event,
    Refusal,
    line_of,
    request_of,
)

_FIRST_S = 0.5
_OFTEN = 3  # so many ends in a row are trouble
_GOODBYE_S = 1.0


class NotAsked(Exception):
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


@dataclass(slots=True)
class _Request:
    """What was asked; somebody waits for its answer."""

    child: Child
    line: bytes | None = None
    lost: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class ProcessSupervisor:
    """Keeps one program running, by a thread of its own from `start` to `close`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        hello: Mapping[str, Any],
        limits: Limits,
        store: str,
    ) -> None:
        self._command = tuple(command)
        self._cwd = cwd
        self._env = env
        self._hello = line_of(hello)
        self._limits = limits
        self._log = ProgramLog(store)
        self._state = threading.Condition()
        self._turn = threading.Lock()
        self._child: Child | None = None
        self._hello_received: ChildHello | None = None
        self._ready_at: float | None = None  # monotonic seconds; None while it is not ready
        self._starting = True
        self._ends = 0  # in a row
        self._why = ""
        self._unusable = ""
        self._closed = False
        self._last_number = 0
        self._requests: dict[int, _Request] = {}
        self._on_event: Callable[[Event], None] = lambda _event: None
        self._on_ready: Callable[[], None] = lambda: None

    def start(self) -> ChildHello | None:
        """Start it and wait for its hello; None where it gave none, and is tried again and again.

        Raises Unusable.
        """
        name = f"supervise-{self._command[0]}"
        threading.Thread(target=self._supervise, name=name, daemon=True).start()
        with self._state:
            self._state.wait_for(lambda: not self._starting, self._limits.start_s + _GOODBYE_S)
            if self._unusable:
                raise Unusable(self._unusable)
            return self._hello_received

    def listen(self, on_event: Callable[[Event], None], on_ready: Callable[[], None]) -> None:
        """Call `on_event` with each of its events, `on_ready` whenever it was started again."""
        self._on_event, self._on_ready = on_event, on_ready

    def hello(self) -> ChildHello | None:
        """Return its hello, this time's or the last one; None where it never gave one."""
        return self._hello_received

    def absence(self) -> str:
        """Return why it cannot be asked now; "" where it can."""
        with self._state:
            if self._ready_at is not None:
                return ""
            return self._why or _("The program has not said hello yet.")

    def trouble(self) -> str:
        """Return why it keeps ending; "" while it does not."""
        with self._state:
            if self._ready_at is not None and self._is_steady(self._ready_at):
                self._ends = 0
            return self._why if self._ends >= _OFTEN else ""

    def ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> bytes:
        """Return the line of its answer. Raises NotAsked, NotAnswered; ends it when it hangs."""
        until = time.monotonic() + limit_s
        with self._my_turn(until):
            number, request = self._register(until)
            request.child.send(request_of(number, method, params))
            if not request.done.wait(max(0.0, until - time.monotonic())):
                why = _("it had not answered {method} after {seconds:g} seconds").format(
                    method=method, seconds=limit_s
                )
                with self._state:
                    self._requests.pop(number, None)
                request.child.kill(why)
                raise NotAnswered(_("The program was ended: {why}.").format(why=why))
        if request.line is None:
            raise NotAnswered(
                _("The program did not answer {method}: {why}.").format(
                    method=method, why=request.lost
                )
            )
        return request.line

    def kill(self) -> None:
        """End the program as a crash would, and start it no more. For tests of adapters."""
        if (child := self._stop()) is not None:
            child.kill(_("it was ended by a test"))

    def close(self) -> None:
        """Ask it to end, and start it no more."""
        if (child := self._stop()) is not None:
            child.close(_GOODBYE_S)

    def _stop(self) -> Child | None:
        """Start it no more, and return what runs."""
        with self._state:
            self._closed = True
            self._state.notify_all()
            return self._child

    # -- what the program's threads report

    def _line(self, child: Child, line: bytes) -> None:
        """Take a line of its stdout."""
        try:
            message = json.loads(line)
            kind = message.get("type")
        except (ValueError, AttributeError, RecursionError):
            self._log.rubbish(len(line))
            return
        try:
            match kind:
                case "answer":
                    self._answered(child, message.get("id"), line)
                case "event":
                    self._on_event(Event.model_validate_json(line))
                case "hello":
                    self._hello_from(child, ChildHello.model_validate_json(line))
                case "refuse":
                    self._refused(child, Refusal.model_validate_json(line).message)
                case _:
                    self._log.rubbish(len(line))
        except ValidationError as failure:
            self._log.odd(str(kind), failure)
            if kind in {"hello", "refuse"}:
                child.kill(
                    _("its hello is not as it must be: {what}").format(what=first_fault(failure))
                )

    def _ended(self, child: Child, why: str) -> None:
        """Take note of its end."""
        with self._state:
            for number, request in list(self._requests.items()):
                if request.child is child:
                    request.lost = why
                    request.done.set()
                    del self._requests[number]
            if self._child is child:
                self._child = None
                self._over(why)

    # -- inside

    def _supervise(self) -> None:
        while True:
            with self._state:
                if self._closed:
                    return
                self._starting = True
            self._log.restarted()
            self._start()
            with self._state:
                self._state.wait_for(self._is_settled, self._limits.start_s)
                late = self._child if self._ready_at is None else None
            if late is not None:
                late.kill(
                    _("it had not said hello after {seconds:g} seconds").format(
                        seconds=self._limits.start_s
                    )
                )
            with self._state:
                self._state.wait_for(lambda: self._closed or self._child is None)
                if self._is_closed():
                    return
                wait_s = min(self._limits.restart_cap_s, _FIRST_S * 2 ** min(self._ends - 1, 12))
                if not self._is_closed():
                    get_logger().warning(
                        "adapter.ended", **self._log.place, reason=self._why, again_in_s=wait_s
                    )
                self._state.wait_for(lambda: self._closed, wait_s)

    def _start(self) -> None:
        with self._state:
            if self._closed:
                return
            try:
                child = Child(
                    self._command,
                    cwd=self._cwd,
                    env=self._env,
                    on_line=self._line,
                    on_stderr=self._log.stderr,
                    on_end=self._ended,
                )
            except (OSError, ValueError) as failure:
                self._over(_("it cannot be started: {why}").format(why=failure), unusable=True)
                return
            self._child = child
        child.send(self._hello)

    def _is_closed(self) -> bool:
        return self._closed

    def _is_settled(self) -> bool:
        return self._closed or self._child is None or self._ready_at is not None

    def _is_steady(self, since: float) -> bool:
        return time.monotonic() - since >= self._limits.steady_s

    def _over(self, why: str, *, unusable: bool = False) -> None:
        """Take note of an end (the state is held)."""
        if self._ready_at is not None and self._is_steady(self._ready_at):
            self._ends = 0
        self._ends += 1
        self._ready_at = None
        self._starting = False
        self._why = _("The program {command} is not there: {why}.").format(
            command=Path(self._command[0]).name
            if self._hello_received is None
            else self._hello_received.name,
            why=why,
        )
        if unusable:
            self._unusable = self._why
        self._state.notify_all()

    def _hello_from(self, child: Child, hello: ChildHello) -> None:
        if hello.protocol != PROTOCOL:
            self._refused(
                child,
                _("it speaks version {theirs} of the protocol; this bridge speaks {ours}").format(
                    theirs=hello.protocol, ours=PROTOCOL
                ),
            )
            return
        with self._state:
            if child is not self._child or self._ready_at is not None:
                return
            self._hello_received = hello
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

    def _refused(self, child: Child, message: str) -> None:
        with self._state:
            self._unusable = message
        child.kill(message)

    def _answered(self, child: Child, number: object, line: bytes) -> None:
        with self._state:
            request = None
            if isinstance(number, int) and not isinstance(number, bool):
                request = self._requests.get(number)
                if request is not None and request.child is child:
                    del self._requests[number]
            if request is None or request.child is not child:
                self._log.stray()
                return
            request.line = line
            request.done.set()

    @contextmanager
    def _my_turn(self, until: float) -> Iterator[None]:
        """Ask one thing at a time, where the program cannot do two."""
        if self._hello_received is not None and self._hello_received.parallel:
            yield
            return
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            raise NotAsked(_("The program is busy with something else."))
        try:
            yield
        finally:
            self._turn.release()

    def _register(self, until: float) -> tuple[int, _Request]:
        with self._state:
            # One that is just being started is waited for; one that rests after its end is not.
            self._state.wait_for(
                lambda: self._closed or not self._starting, max(0.0, until - time.monotonic())
            )
            if self._child is None or self._ready_at is None or self._closed:
                raise NotAsked(self._why or _("The program has not said hello yet."))
            self._last_number += 1
            request = _Request(self._child)
            self._requests[self._last_number] = request
            return self._last_number, request
