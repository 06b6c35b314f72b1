"""What happens because something happened: workers, and the supervisor that contains failures.

A worker is woken and runs its next step. What fails unexpectedly in one store's flow stops that
step of that store only: it is reported as a problem, tried again with back-off, and its problem
closes by itself once it works again. What the whole bridge depends on (ledger, receiver, page) is
run by `daemon.run`.
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Never, TypeVar

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.model.numbers import printable

if TYPE_CHECKING:
    from tillbridge.ledger.problems import ProblemTracker

log = get_logger()

T = TypeVar("T")

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
_STEADY_S = 10.0
_LONGEST_STEADY_S = 3600.0
_MAX_DETAIL = 200

STEP_FAILED = "store.step_failed"
ORDER_STEP_FAILED = "order.step_failed"
ORDER_SET_ASIDE = "order.set_aside"

# What these do not do, orders do not do; of other steps it is STEP_FAILED.
_CODES = dict.fromkeys(("orders", "intake", "writer", "notifier"), ORDER_STEP_FAILED)


Step = Callable[[], Awaitable[object]]
"""What goes on for ever, or is done once; it can be begun again after it has failed."""


def backoff_s(failures: int, first_s: float, cap_s: float) -> float:
    """Return how long to wait after that many failures in a row: doubling, up to the cap."""
    return min(cap_s, first_s * 2.0 ** min(max(failures - 1, 0), 30))


class Supervisor:
    """Runs the steps of one store (`store` "" for the bridge's own), and reports what fails."""

    def __init__(self, store: str, tracker: "ProblemTracker") -> None:
        self.store = store
        self._tracker = tracker
        # How often in a row, and with what: by step and order.
        self._failing: dict[tuple[str, str], tuple[int, str]] = {}
        self._working: set[str] = set()  # steps whose problem is over, if it ever was open

    def tasks(self, steps: Mapping[str, Step]) -> dict[str, Coroutine[Any, Any, object]]:
        """Return what runs these steps, by the same names."""
        return {name: self.run(name, work) for name, work in steps.items()}

    async def run(self, step: str, work: Step) -> Never:
        """Run `work`, which never ends, and start it again whenever it raises or returns.

        Its problem closes once it has run for twice as long as it ran before it failed.
        """
        steady_s = _STEADY_S
        loop = asyncio.get_running_loop()
        while True:
            began = time.monotonic()
            steady = loop.call_later(steady_s, self.works, step)
            try:
                await work()
                raise _EndedError(step)  # noqa: TRY301 -- an end is reported as a failure is
            except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
                pause_s = self.failed(step, failure)
            finally:
                steady.cancel()
            steady_s = min(_LONGEST_STEADY_S, max(_STEADY_S, 2 * (time.monotonic() - began)))
            await asyncio.sleep(pause_s)

    async def attempt(self, step: str, work: Step, *, order: str = "") -> float | None:
        """Do `work` once; return how long to wait where it failed, None where it came to its end.

        `order` names whose work it is.
        """
        try:
            await work()
        except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
            return self.failed(step, failure, order=order)
        self.works(step, order=order)
        return None

    def failed(self, step: str, failure: BaseException, *, order: str = "") -> float:
        """Report that a step failed, or (`order`) that it failed at one order and continues.

        Returns how many seconds to wait before it is tried again: longer each time in a row.
        """
        detail = describe(failure)
        self._working.discard(step)
        failures, before = self._failing.get((step, order), (0, ""))
        self._failing[step, order] = failures + 1, detail
        if detail != before:
            log.error("step.failed", store=self.store, step=step, order=order, exc_info=failure)
        fields = {"step": step, "detail": detail}
        if order:
            found = Found(ORDER_SET_ASIDE, order, {"order": order, **fields})
        else:
            found = Found(_CODES.get(step, STEP_FAILED), step, fields)
        self._tracker.report(Scope.of_one(found.code, self.store, found.subject), [found])
        return backoff_s(failures + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)

    def works(self, step: str, *, order: str = "") -> None:
        """Report that a step works (again); nothing where it never failed."""
        if self._failing.pop((step, order), None) is not None:
            log.info("step.works_again", store=self.store, step=step, order=order)
        if not order:
            if step not in self._working:  # it may be open since the last run
                code = _CODES.get(step, STEP_FAILED)
                self._tracker.report(Scope.of_one(code, self.store, step), ())
                self._working.add(step)
        elif self._tracker.is_open(ORDER_SET_ASIDE, self.store, order) and not any(
            each == order for _step, each in self._failing
        ):
            self._tracker.report(Scope.of_one(ORDER_SET_ASIDE, self.store, order), ())


class _EndedError(RuntimeError):
    """A step that never ends has ended."""

    def __init__(self, step: str) -> None:
        super().__init__(f"the step {step} ended by itself")


def describe(failure: BaseException) -> str:
    """Return what went wrong in one line: the first cause of a group, its kind and its text."""
    failure = innermost(failure)
    try:
        text = str(failure)
    except Exception:  # noqa: BLE001 -- a text that fails is no text
        text = ""
    name = type(failure).__name__
    return printable(f"{name}: {text}" if text else name, most=_MAX_DETAIL)


def innermost(failure: BaseException) -> BaseException:
    """Return what a group of tasks died of, the first of them; anything else as it is."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


# -- workers


Job = Callable[[], Awaitable[float | None]]
"""Does what there is to do; it may return in how many seconds it is due again, woken or not."""

_NEVER = float("inf")
_LONGEST_SLEEP_S = 30.0  # an end given by the wall clock is looked at again, in case that was set
_CRASH_PAUSE_S = 15.0  # at most so long does a step that raised ignore who wakes the worker


class Worker:
    """Runs `step` whenever it is woken, and never twice at a time. Used from the event loop.

    A step that raises is reported to the supervisor and run again with back-off. What wakes the
    worker while it works counts for the next step.
    """

    def __init__(self, name: str, step: Job, supervisor: Supervisor, clock: Clock) -> None:
        self.name = name
        self._step = step
        self._supervisor = supervisor
        self._clock = clock
        self._waiting: asyncio.Future[None] | None = None  # for a step to be due
        self._draining: asyncio.Event | None = None
        self._wake_requested = False
        self._due = _NEVER  # monotonic
        self._due_at_ms: int | None = None  # wall clock
        self._not_before = -_NEVER  # monotonic
        self._failures = 0
        # Since when (monotonic, s) a step has been running; None: it waits.
        self.busy_since: float | None = None

    def wake(self) -> None:
        """Run a step as soon as may be."""
        self._wake_requested = True
        self._look_again()

    def wake_in(self, seconds: float) -> None:
        """Run a step after that many seconds, unless one is run before."""
        self._due = min(self._due, self._clock.monotonic() + seconds)
        self._look_again()

    def wake_at(self, at_ms: int | None) -> None:
        """Run a step at that instant, in place of another instant; None for none."""
        self._due_at_ms = at_ms
        self._look_again()

    def back_off(self, cap_s: float) -> float:
        """Return how long to wait after an expected failure: longer each time, with jitter.

        After a step that did not ask for it, the next failure is a first one again.
        """
        bound = min(cap_s, 2.0 ** min(self._failures, 16))
        self._failures += 1
        return bound * (0.5 + random.random() / 2)  # noqa: S311 -- jitter is no secret

    async def drain(self) -> None:
        """Run no more steps, and return once none is under way."""
        self._draining = self._draining or asyncio.Event()
        if self.busy_since is None:
            self._draining.set()
        await self._draining.wait()

    async def run(self) -> Never:
        """Work until cancelled."""
        while True:
            await self._until_due()
            self.busy_since = self._clock.monotonic()
            failures = self._failures
            try:
                again_s = await self._step()
            except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
                again_s = self._supervisor.failed(self.name, failure)
                self._not_before = self._clock.monotonic() + min(again_s, _CRASH_PAUSE_S)
            else:
                self._supervisor.works(self.name)
                if self._failures == failures:
                    self._failures = 0
            finally:
                self.busy_since = None
                if self._draining is not None:
                    self._draining.set()
            if again_s is not None:
                self._due = min(self._due, self._clock.monotonic() + again_s)

    def _look_again(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _until_due(self) -> None:
        """Return when a step is due; what wakes the worker from then on is for the next one."""
        while True:
            now = self._clock.monotonic()
            left = 0.0 if self._wake_requested else self._due - now
            if self._due_at_ms is not None:
                left = min(left, (self._due_at_ms - self._clock.now_ms()) / 1000)
            left = _NEVER if self._draining else max(left, self._not_before - now)
            if left <= 0:
                break
            if self._due_at_ms is not None:
                left = min(left, _LONGEST_SLEEP_S)
            # Not an Event and a time-out: a store has twenty workers, and these are small.
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = None if left == _NEVER else loop.call_later(left, self._look_again)
            try:
                await self._waiting
            finally:
                if timer is not None:
                    timer.cancel()
        self._wake_requested = False
        self._due = _NEVER
        if self._due_at_ms is not None and self._due_at_ms <= self._clock.now_ms():
            self._due_at_ms = None


async def supervise(
    tasks: Mapping[str, Coroutine[Any, Any, object]],
    stop: asyncio.Event,
    *,
    on_stop: Callable[[], Awaitable[None]],
) -> None:
    """Run the tasks until `stop` is set, then await `on_stop` and end them.

    A task that ends by itself, by an exception or by returning, ends all of them: raises
    BridgeError, and the service manager starts the bridge anew.
    """
    running = {asyncio.create_task(work, name=name) for name, work in tasks.items()}
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        done, _rest = await asyncio.wait(running | {stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            ended_by = task.exception()
            failure = ended_by and innermost(ended_by)
            log.error("task.died", task=task.get_name(), exc_info=failure)
            text = _("The bridge's task {name} stopped unexpectedly: {detail}")
            raise BridgeError(
                text.format(name=task.get_name(), detail=failure or _("it returned")),
                fix=_("The service manager restarts the bridge. The log has the details."),
            ) from failure
        await on_stop()
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)


# -- Blocking calls in threads of their own, which nobody waits for when the program ends.
#
# A look-up or a share that hangs cannot be interrupted; the interpreter would wait for the threads
# of an executor, and `doctor` would hang with them.


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
