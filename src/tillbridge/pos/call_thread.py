"""One thread that runs blocking calls one after the other, awaited from the event loop.

Not a ThreadPoolExecutor: the interpreter waits for that one's threads when it ends, and a POS that
hangs must not keep the bridge from stopping.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

OnHang = Callable[[str, float | None], None]
"""Called in the loop with a call's name and for how many seconds it has run; None: it returned."""


@dataclass(slots=True)
class _Call(Generic[T]):
    function: Callable[[], T]
    name: str
    future: Future[T] = field(default_factory=Future)
    began: float = 0.0  # monotonic seconds
    hangs: bool = False


class CallThread:
    """A daemon thread of its own, started with the first call.

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
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._running: _Call[Any] | None = None
        self._submitted = self._finished = 0
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, function: Callable[[], T], name: str = "") -> Future[T]:
        """Let `function` run when those before it have; cancelled before its turn, it never runs.

        Called in the event loop, unless `hangs_after_s` is infinite.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        call = _Call(function, name)
        self._submitted += 1
        self._calls.put(call)
        if self._timer is None and self._hangs_after_s < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._hangs_after_s, self._look, loop)
        return call.future

    def close(self) -> None:
        """Let the thread end after what it is doing; it is not waited for."""
        self._calls.put(None)
        if self._timer is not None:
            self._timer.cancel()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.future.set_running_or_notify_cancel():
                call.began = time.monotonic()
                self._running = call
                try:
                    call.future.set_result(call.function())
                except BaseException as failure:  # noqa: BLE001 -- raised where the call is awaited
                    call.future.set_exception(_raisable(failure))
            self._finished += 1
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
        if self._submitted > self._finished:
            again_in_s = self._hangs_after_s - (ran_s if ran_s < self._hangs_after_s else 0.0)
            self._timer = loop.call_later(again_in_s, self._look, loop)


def call_in(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object
) -> None:
    """Call `callback` in the loop, from any thread; nothing where the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *arguments)


def _raisable(failure: BaseException) -> Exception:
    """Return the failure as one that a future can hold and that stops no event loop."""
    if isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")
