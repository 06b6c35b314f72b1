"""Blocking calls that run one after the other, awaited from the event loop.

A lane has a thread only while a call runs in it. All lanes share the threads of one pool, which has
one more whenever all of them are busy: a call that hangs keeps its thread and delays no other lane,
and hundreds of idle stores need none. Not a ThreadPoolExecutor: the interpreter waits for that
one's threads when it ends, and a POS that hangs must not keep the bridge from stopping.
"""

import asyncio
import contextlib
import contextvars
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

OnHang = Callable[[str, float | None], None]
"""Called in the loop with a call's name and for how many seconds it has run; None: it returned."""

_MOST_IDLE = 8


@dataclass(slots=True)
class _Call(Generic[T]):
    function: Callable[[], T]
    name: str
    future: Future[T] = field(default_factory=Future)
    began: float = 0.0  # monotonic seconds
    hangs: bool = False


class ThreadPool:
    """Daemon threads for lanes, as many as there are calls at a time; a few stay when idle."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def run(self, work: Callable[[], None]) -> None:
        """Run `work` in a thread, without waiting for any other work."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), name="lane", daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: "SimpleQueue[Callable[[], None]]") -> None:
        while True:
            inbox.get()()
            if len(self._idle) >= _MOST_IDLE:
                return
            self._idle.append(inbox)

    def forget_threads(self) -> None:
        """Forget the idle threads, which a forked process does not have."""
        self._idle.clear()


POOL = ThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget_threads)


class CallLane:
    """Runs calls one after the other, in any thread of the pool, each in a context of its own.

    A call that has run for `hangs_after_s` is reported to `on_hang`, and again when it returns.
    """

    def __init__(
        self,
        name: str,
        *,
        hangs_after_s: float = math.inf,
        on_hang: OnHang = lambda _name, _ran_s: None,
    ) -> None:
        self._name = name
        self._hangs_after_s = hangs_after_s
        self._on_hang = on_hang
        self._lock = threading.Lock()
        self._calls: deque[_Call[Any]] = deque()
        self._works = False  # whether a thread runs the calls
        self._running: _Call[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, function: Callable[[], T], name: str = "") -> Future[T]:
        """Let `function` run after those before it; if cancelled before its turn, it never runs.

        Called in the event loop, unless `hangs_after_s` is infinite.
        """
        call = _Call(function, name)
        with self._lock:
            self._calls.append(call)
            works, self._works = self._works, True
        if not works:
            POOL.run(self._work)
        if self._timer is None and self._hangs_after_s < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._hangs_after_s, self._look, loop)
        return call.future

    def close(self) -> None:
        """Report no more calls that hang; nothing is waited for."""
        if self._timer is not None:
            self._timer.cancel()

    def _work(self) -> None:
        threading.current_thread().name = self._name  # which a traceback of all threads shows
        while True:
            with self._lock:
                if not self._calls:
                    self._works = False
                    return
                call = self._calls.popleft()
            if call.future.set_running_or_notify_cancel():
                call.began = time.monotonic()
                self._running = call
                try:
                    call.future.set_result(contextvars.Context().run(call.function))
                except BaseException as failure:  # noqa: BLE001 -- raised where the call is awaited
                    call.future.set_exception(_raisable(failure))
            self._running = None
            del call  # a large result must not stay alive until the next call

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report a call that has run for too long; one that waits for its turn is not at fault."""
        call = self._running
        ran_s = 0.0 if call is None else time.monotonic() - call.began
        if call is not None and ran_s >= self._hangs_after_s and not call.hangs:
            call.hangs = True
            self._on_hang(call.name, ran_s)
            returned = call.name
            call.future.add_done_callback(
                lambda _future: call_in(loop, self._on_hang, returned, None)
            )
        self._timer = None
        if self._works:
            again_in_s = self._hangs_after_s - (ran_s if ran_s < self._hangs_after_s else 0.0)
            self._timer = loop.call_later(again_in_s, self._look, loop)


def call_in(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object
) -> None:
    """Call `callback` in the loop, from any thread; do nothing if the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *arguments)


def _raisable(failure: BaseException) -> Exception:
    """Return the failure as one that a future can hold and that stops no event loop."""
    if isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")
