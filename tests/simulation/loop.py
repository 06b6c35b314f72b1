"""Virtual time: an event loop whose clock jumps to the next timer, and threads that are greenlets.

Everything runs in one thread of the system, one step after another, in an order that the seed
decides. Whatever a process has begun (tasks, timers, threads) carries its context, so that a crash
can end it without a trace: `END` at its tasks, and nothing of it runs again.
"""

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import Empty
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet


class Process:
    """One process of the simulated machine: the bridge from a start to its end, or the world."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.context = contextvars.copy_context()
        self.context.run(OWNER.set, self)
        self.tasks: dict[SimTask, None] = {}
        self.threads: dict[SimThread, None] = {}
        self.steps = 0
        self.crash_after: float = math.inf  # so many steps


OWNER: contextvars.ContextVar[Process] = contextvars.ContextVar("owner")
_numbers = itertools.count()


class SimFuture(asyncio.Future[Any]):
    """Hashed by number, so that sets of them have the same order in each run."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        self.owner = OWNER.get()
        super().__init__(loop=loop)
        self._number = next(_numbers)

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class SimTask(asyncio.Task[Any]):
    """As `SimFuture`."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        loop: asyncio.AbstractEventLoop,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> None:
        self._number, self.coro = next(_numbers), coro
        context = contextvars.copy_context() if context is None else context
        owner = self.owner = context[OWNER]
        owner.tasks[self] = None
        super().__init__(coro, loop=loop, name=name or f"task-{self._number}", context=context)
        self.add_done_callback(lambda task: owner.tasks.pop(self, None))

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class Crash(Exception):
    """The process that was running has just ended."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.name)
        self.process = process


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that never waits."""

    def __init__(self, rng: random.Random, *, shuffle: bool) -> None:
        super().__init__()
        self.now = 1000.0
        self.steps = 0
        self.process: Process | None = None  # whose step is running
        self._rng, self._shuffle = rng, shuffle
        self._ready: deque[Any] = deque()
        self._crashing: Process | None = None
        self.failures: list[dict[str, Any]] = []
        self.set_task_factory(lambda loop, coro, **more: SimTask(coro, loop=loop, **more))

    def time(self) -> float:
        return self.now

    def is_running(self) -> bool:
        return True

    def _write_to_self(self) -> None:
        pass

    def _check_thread(self) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def add_signal_handler(self, *signal_and_callback: Any) -> None:  # type: ignore[override]  # as it comes
        """No signals come."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        whose = context.get("future") or context.get("task")
        if whose is None or whose.owner.alive:  # what a crash cuts off is nobody's
            self.failures.append(context)

    def run_in_executor(  # type: ignore[override]  # the base class returns a future of its own kind
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except GreenletExit:
                raise
            except BaseException as failure:  # noqa: BLE001 -- the waiter's
                if not future.done():
                    future.set_exception(failure)
            else:
                if not future.done():
                    future.set_result(result)

        SimThread(target=work, name="executor").start()
        return future

    def crash(self, process: Process) -> None:
        """End a process; where it is the one that runs, this does not return."""
        process.alive = False
        self._crashing = process
        if getcurrent().parent is not None:  # in a thread of it, which goes no further
            _switch_to_hub()

    def step(self, until: float) -> bool:
        """Run the next callback; False where none is due before `until`. Raises Crash."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled or scheduled[0]._when > until:
                self.now = max(self.now, until)
                return False
            self.now = max(self.now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self.now:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        if self._shuffle and len(ready) > 1:
            ready.rotate(-self._rng.randrange(len(ready)))
        handle = ready.popleft()
        if handle._cancelled:
            return True
        owner = handle._context.get(OWNER)
        if owner is None or not owner.alive:
            return True
        self.steps += 1
        owner.steps += 1
        self.now += 1e-5
        self.process = owner
        handle._run()
        if owner.steps >= owner.crash_after and owner.alive:
            self.crash(owner)
        if self._crashing is not None:
            process, self._crashing = self._crashing, None
            raise Crash(process)
        return True


# -- threads


_HUB = getcurrent()


def _switch_to_hub() -> None:
    parent = getcurrent().parent
    assert parent is not None
    parent.switch()


class SimThread:
    """A thread of the simulated machine: it runs until it blocks, then somebody else does."""

    def __init__(
        self,
        *,
        target: Callable[..., Any],
        name: str = "",
        daemon: bool = True,
        args: tuple[Any, ...] = (),
    ) -> None:
        self.name = name
        self._number = next(_numbers)
        self._target, self._args = target, args
        self._loop = asyncio.get_running_loop()
        self._greenlet: greenlet | None = None
        self._ended = False
        self._joining: list[SimThread] = []
        self.owner = OWNER.get()

    def __hash__(self) -> int:
        return self._number

    def start(self) -> None:
        self.owner.threads[self] = None
        self._loop.call_soon(self.resume, context=self.owner.context)

    def begin_now(self) -> None:
        """Run it at once, for whoever waits for it without an event loop."""
        if self._greenlet is None:
            self.resume()

    def resume(self) -> None:
        if self._ended:
            return
        if self._greenlet is None:
            self._greenlet = greenlet(self._run)
            self._greenlet.gr_context = contextvars.copy_context()
        if getcurrent() is not self._greenlet.parent:
            return
        _running.append(self)
        try:
            self._greenlet.switch()
        finally:
            _running.pop()

    def _run(self) -> None:
        try:
            self._target(*self._args)
        except GreenletExit:
            pass
        finally:
            self._ended = True
            self.owner.threads.pop(self, None)
            for each in self._joining:
                self._loop.call_soon(each.resume, context=each.owner.context)

    def block(self) -> None:
        """Let others run until `resume`."""
        _switch_to_hub()
        if not self.owner.alive:
            raise GreenletExit

    def join(self, timeout: float | None = None) -> None:
        while not self._ended:
            me = _running[-1]
            self._joining.append(me)
            me.block()

    def kill(self) -> None:
        """End it where it stands."""
        if self._greenlet is not None and not self._ended:
            with contextlib.suppress(BaseException):
                self._greenlet.throw(GreenletExit)


_running: list[SimThread] = []


def sleep(seconds: float) -> None:
    """Let virtual time pass, in a thread."""
    me = _running[-1]
    loop = asyncio.get_running_loop()
    loop.call_later(seconds, me.resume, context=me.owner.context)
    me.block()


class SimQueue:
    """A `queue.SimpleQueue` between the loop and a thread."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._waiting: SimThread | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._wake()

    def _wake(self) -> None:
        if (thread := self._waiting) is not None:
            self._waiting = None
            asyncio.get_running_loop().call_soon(thread.resume, context=thread.owner.context)

    def get(self, timeout: float | None = None) -> Any:
        timer = None
        me = _running[-1]
        loop = asyncio.get_running_loop()
        while not self._items:
            if timer is not None and loop.time() >= timer.when():
                self._waiting = None
                raise Empty
            if not me.owner.alive:
                raise GreenletExit
            self._waiting = me
            if timeout is not None and timer is None:
                timer = loop.call_later(timeout, self._wake, context=me.owner.context)
            me.block()
        if timer is not None:
            timer.cancel()
        return self._items.popleft()


def wait_in_loop(futures: list[Future[Any]], timeout: float) -> None:
    """Take the place of `concurrent.futures.wait` where the loop waits for a thread at once."""
    for thread in list(OWNER.get().threads):
        thread.begin_now()
