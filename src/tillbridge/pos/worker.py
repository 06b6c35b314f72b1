"""One thread that runs blocking calls one after the other, awaited from the event loop.

Not a ThreadPoolExecutor: the interpreter waits for that one's threads when it ends, and a POS that
hangs must not keep the bridge from stopping.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """A call that waits for its turn, runs, or is done."""

    def __init__(self, function: Callable[[], T], done: asyncio.Future[T]) -> None:
        self._function = function
        self._done = done
        self._loop = done.get_loop()
        self._lock = threading.Lock()
        self._begun = False
        self._withdrawn = False

    def withdraw(self) -> bool:
        """Keep the call from running. False where it has begun, and goes on."""
        with self._lock:
            self._withdrawn = not self._begun
            return self._withdrawn

    def run(self) -> None:
        """Run the function in this thread and tell the loop."""
        with self._lock:
            if self._withdrawn:
                return
            self._begun = True
        try:
            result = self._function()
        except BaseException as failure:  # noqa: BLE001 -- it is raised where the call is awaited
            self._tell(self._fail, failure)
        else:
            self._tell(self._succeed, result)

    def _tell(self, how: Callable[[Any], None], what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(how, what)
        except RuntimeError:  # the loop has ended meanwhile, and with it everybody who waited
            return

    def _succeed(self, result: T) -> None:
        if not self._done.done():
            self._done.set_result(result)

    def _fail(self, failure: BaseException) -> None:
        if not self._done.done():
            self._done.set_exception(_raisable(failure))


class Worker:
    """A daemon thread of its own, started with the first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[[], T]) -> tuple[Call[T], asyncio.Future[T]]:
        """Let `function` run when those before it have; return the call and its outcome."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = Call(function, done)
        self._calls.put(call)
        return call, done

    async def run(self, function: Callable[[], T]) -> T:
        """Return what `function` returns; cancelled before its turn, it never runs."""
        call, done = self.submit(function)
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


def _raisable(failure: BaseException) -> Exception:
    """Return the failure as one that a future can hold and that stops no event loop."""
    if isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")
