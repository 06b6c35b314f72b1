"""Containment: what fails unexpectedly in one store's flow stops that step of that store only.

A step that raises is reported as a problem, tried again with back-off, and its problem closes by
itself once it works again. The process goes on, and so do the other steps and stores. What the
whole bridge depends on (ledger, receiver, page) is not run by this but by `daemon.run`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Never

from tillbridge.core.log import get_logger
from tillbridge.model.texts import printable

if TYPE_CHECKING:
    from tillbridge.ledger.problems import ProblemTracker

log = get_logger()

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
"""Work that goes on for ever, or that is done once; it can be begun again after it has failed."""


def backoff_s(failures: int) -> float:
    """Return how long to wait after so many failures in a row: 1 s, doubled up to 5 minutes."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(max(failures - 1, 0), 16))


class Supervisor:
    """Runs the steps of one store (`store` "" for the bridge's own), and reports what fails."""

    def __init__(
        self,
        store: str,
        tracker: "ProblemTracker",
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._tracker = tracker
        self._monotonic = monotonic
        self._failing: dict[tuple[str, str], str] = {}

    def tasks(self, steps: Mapping[str, Step]) -> dict[str, Coroutine[Any, Any, object]]:
        """Return what runs these steps, by the same names."""
        return {name: self.run(name, work) for name, work in steps.items()}

    async def run(self, step: str, work: Step) -> Never:
        """Run `work`, which goes on for ever, and begin it again whenever it raises or returns.

        Its problem closes once it has run for twice as long as it ran before it failed.
        """
        failures, steady_s = 0, _STEADY_S
        loop = asyncio.get_running_loop()
        while True:
            began = self._monotonic()
            steady = loop.call_later(steady_s, self.works, step)
            try:
                await work()
                raise _EndedError(step)  # noqa: TRY301 -- an end is reported as a failure is
            except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
                self.failed(step, failure)
            finally:
                steady.cancel()
            ran_s = self._monotonic() - began
            failures = 1 if ran_s > steady_s else failures + 1
            steady_s = min(_LONGEST_STEADY_S, max(_STEADY_S, 2 * ran_s))
            await asyncio.sleep(backoff_s(failures))

    async def attempt(self, step: str, work: Step, *, order: str = "") -> bool:
        """Do `work` once; return whether it came to its end. `order` names whose work it is."""
        try:
            await work()
        except Exception as failure:  # noqa: BLE001 -- whatever it is, it is this step's alone
            self.failed(step, failure, order=order)
            return False
        self.works(step, order=order)
        return True

    def failed(self, step: str, failure: BaseException, *, order: str = "") -> None:
        """Report that a step failed, or (`order`) that it failed at one order and goes on."""
        detail = describe(failure)
        if self._failing.get((step, order)) != detail:
            self._failing[step, order] = detail
            log.error("step.failed", store=self.store, step=step, order=order, exc_info=failure)
        if order:
            self._tracker.open(
                ORDER_SET_ASIDE, self.store, order, order=order, step=step, detail=detail
            )
        else:
            self._tracker.open(
                _CODES.get(step, STEP_FAILED), self.store, step, step=step, detail=detail
            )

    def works(self, step: str, *, order: str = "") -> None:
        """Report that a step works (again); nothing where it never failed."""
        if self._failing.pop((step, order), None) is not None:
            log.info("step.works_again", store=self.store, step=step, order=order)
        if not order:
            self._tracker.close(_CODES.get(step, STEP_FAILED), self.store, step)
        elif not any(each == order for _step, each in self._failing):
            self._tracker.close(ORDER_SET_ASIDE, self.store, order)


class _EndedError(RuntimeError):
    """A step that goes on for ever has ended."""

    def __init__(self, step: str) -> None:
        super().__init__(f"the step {step} ended by itself")


def describe(failure: BaseException) -> str:
    """Return what went wrong in one line: the first cause of a group, its kind and its text."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    try:
        text = str(failure)
    except Exception:  # noqa: BLE001 -- a text that fails is no text
        text = ""
    name = type(failure).__name__
    return printable(f"{name}: {text}" if text else name, most=_MAX_DETAIL)
