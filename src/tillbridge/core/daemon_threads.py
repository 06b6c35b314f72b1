"""Blocking calls in threads of their own, which nobody waits for when the program ends.

A look-up or a share that hangs cannot be interrupted; the interpreter would wait for the threads
of an executor, and `doctor` would hang with them.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class UnwaitedThreads(ThreadPoolExecutor):
    """An executor for a loop of which nothing may be waited for at its end."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":  # noqa: ANN401 -- as the base class
        """Run the function in a thread of its own."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as failure:  # noqa: BLE001 -- the future's
                future.set_exception(failure)
            else:
                future.set_result(result)

        threading.Thread(target=work, name="unwaited", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 -- as the base class
        """Wait for nothing."""


_threads = UnwaitedThreads()


async def in_thread(function: Callable[[], T]) -> T:
    """Return what `function` returns or raises, from a thread of its own."""
    return await asyncio.get_running_loop().run_in_executor(_threads, function)
