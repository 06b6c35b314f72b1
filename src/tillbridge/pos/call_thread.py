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
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

OnHang = Callable[[str, float | None], None]
"""Called in the loop with a call's name and for how many seconds it has run; None: it returned."""


class Call(Generic[T]):
    """A call that waits for its turn, runs, or is done.

    One that has run for `hangs_after_s` is reported to `on_hang`, and again when it returns.
    """

    def __init__(
        self, name: str, function: Callable[[], T], hangs_after_s: float, on_hang: OnHang
    ) -> None:
        self._name = name
        self._function = function
        self._hangs_after_s = hangs_after_s
        self._on_hang = on_hang
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[T] = self._loop.create_future()
        self._lock = threading.Lock()
        self._withdrawn = False
        self._returned = False
        self._began: float | None = None  # monotonic seconds
        self._hangs = False
        self.outcome: tuple[T | None, BaseException | None] = (None, None)
        self._timer: asyncio.TimerHandle | None = None
        if hangs_after_s < math.inf:
            self._timer = self._loop.call_later(hangs_after_s, self._look)

    def withdraw(self) -> bool:
        """Keep the call from running. False where it has begun, and goes on."""
        with self._lock:
            self._withdrawn = self._began is None
            return self._withdrawn

    def run(self) -> None:
        """Run the function in this thread and report to the loop."""
        with self._lock:
            if self._withdrawn:
                return
            self._began = time.monotonic()
        try:
            self.outcome = (self._function(), None)
        except BaseException as failure:  # noqa: BLE001 -- it is raised where the call is awaited
            self.outcome = (None, failure)
        # The loop may have ended meanwhile, and with it everybody who waited.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._return)

    def _return(self) -> None:
        """Hand the outcome to who awaits it (in the loop)."""
        self._returned = True
        result: Any
        result, failure = self.outcome
        if not self.done.done():
            if failure is None:
                self.done.set_result(result)
            else:
                self.done.set_exception(_raisable(failure))
        if self._timer is not None:
            self._timer.cancel()
        if self._hangs:
            self._on_hang(self._name, None)

    def _look(self) -> None:
        """Report a call that has run for too long; one that waits for its turn is not at fault."""
        if self._returned or self._withdrawn:
            return
        ran_s = 0.0 if self._began is None else time.monotonic() - self._began
        if ran_s < self._hangs_after_s:
            self._timer = self._loop.call_later(self._hangs_after_s - ran_s, self._look)
            return
        self._hangs = True
        self._on_hang(self._name, ran_s)


class CallThread:
    """A daemon thread of its own, started with the first call."""

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
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[[], T], name: str = "") -> Call[T]:
        """Let `function` run when those before it have; return the call, which is `done` once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        call = Call(name, function, self._hangs_after_s, self._on_hang)
        self._calls.put(call)
        return call

    async def run(self, function: Callable[[], T], name: str = "") -> T:
        """Return what `function` returns; cancelled before its turn, it never runs."""
        call = self.submit(function, name)
        try:
            return await call.done
        except asyncio.CancelledError:
            call.withdraw()
            raise

    def close(self) -> None:
        """Let the thread end after what it is doing; it is not waited for."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # a large result must not stay alive until the next call


def _raisable(failure: BaseException) -> Exception:
    """Return the failure as one that a future can hold and that stops no event loop."""
    if isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")
