"""One thread that runs blocking calls one after the other, awaited from the event loop.

Not a ThreadPoolExecutor: the interpreter waits for that one's threads when it ends, and a POS that
hangs must not keep the bridge from stopping.
"""

import asyncio
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
    """A call that waits for its turn, runs, or is done."""

    def __init__(
        self,
        name: str,
        function: Callable[[], T],
        done: asyncio.Future[T],
        on_returned: Callable[["Call[Any]"], None],
    ) -> None:
        self.name = name
        self.loop = done.get_loop()
        self._function = function
        self._done = done
        self._on_returned = on_returned
        self._lock = threading.Lock()
        self._withdrawn = False
        self._returned = False
        self._began: float | None = None  # monotonic seconds
        self.timer: asyncio.TimerHandle | None = None
        self.hangs = False

    def withdraw(self) -> bool:
        """Keep the call from running. False where it has begun, and goes on."""
        with self._lock:
            self._withdrawn = self._began is None
            return self._withdrawn

    @property
    def is_over(self) -> bool:
        """Whether it will not run any more: it has returned, or was withdrawn."""
        return self._returned or self._withdrawn

    @property
    def ran_s(self) -> float:
        """For how long it has run; 0 for one that waits for its turn."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def run(self) -> None:
        """Run the function in this thread and report to the loop."""
        with self._lock:
            if self._withdrawn:
                return
            self._began = time.monotonic()
        try:
            result = self._function()
        except BaseException as failure:  # noqa: BLE001 -- it is raised where the call is awaited
            self._report(self._fail, failure)
        else:
            self._report(self._succeed, result)

    def _report(self, how: Callable[[Any], None], what: object) -> None:
        try:
            self.loop.call_soon_threadsafe(self._return, how, what)
        except RuntimeError:  # the loop has ended meanwhile, and with it everybody who waited
            return

    def _return(self, how: Callable[[Any], None], what: object) -> None:
        self._returned = True
        if not self._done.done():
            how(what)
        self._on_returned(self)

    def _succeed(self, result: T) -> None:
        self._done.set_result(result)

    def _fail(self, failure: BaseException) -> None:
        self._done.set_exception(_raisable(failure))


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
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(
        self, function: Callable[[], T], name: str = ""
    ) -> tuple[Call[T], asyncio.Future[T]]:
        """Let `function` run when those before it have; return the call and its outcome."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = Call(name, function, done, self._has_returned)
        if self._hangs_after_s < math.inf:
            call.timer = call.loop.call_later(self._hangs_after_s, self._look, call)
        self._calls.put(call)
        return call, done

    async def run(self, function: Callable[[], T], name: str = "") -> T:
        """Return what `function` returns; cancelled before its turn, it never runs."""
        call, done = self.submit(function, name)
        try:
            return await done
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

    def _look(self, call: Call[Any]) -> None:
        """Report a call that has run for too long; one that waits for its turn is not at fault."""
        left_s = self._hangs_after_s - call.ran_s
        if call.is_over:
            return
        if left_s > 0:
            call.timer = call.loop.call_later(left_s, self._look, call)
            return
        call.hangs = True
        self._on_hang(call.name, call.ran_s)

    def _has_returned(self, call: Call[Any]) -> None:
        if call.timer is not None:
            call.timer.cancel()
        if call.hangs:
            self._on_hang(call.name, None)


def _raisable(failure: BaseException) -> Exception:
    """Return the failure as one that a future can hold and that stops no event loop."""
    if isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")
