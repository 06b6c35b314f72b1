"""The flow of one community: what is done when, and what is reported when it cannot be done."""

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from tillbridge.communities import CommunityContext
from tillbridge.communities.catalogue import CommunityOverrides, Mirror
from tillbridge.communities.hours import Hours
from tillbridge.communities.orders import ParentOrders
from tillbridge.communities.subscription import Subscriber
from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    LedgerError,
    OutcomeUnknown,
    Refused,
    ServiceError,
    Unauthorised,
)
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Step, Supervisor, Worker

log = get_logger()

_UNAVAILABLE = "community.unavailable"
_FIRST_WAIT_S = 2.0
_LONGEST_WAIT_S = 60.0
# Longest waits after an answer that is not to be repeated (specification: Errors).
_REFUSED_WAIT_S = 3600.0
_UNAUTHORISED_WAIT_S = 300.0
_UNSURE_WAIT_S = 300.0  # after a subscription whose answer was lost
_CHILDREN_S = 15.0
_HOURS_S = 5.0  # a look at when the file was changed; midnight where the store is counts too


class CommunityFlow:
    """Keeps one community in step: each step has a worker, so that none delays another."""

    def __init__(self, context: CommunityContext) -> None:
        settings = context.settings
        self.context = context
        self.mirror = Mirror(context)
        self.overrides = CommunityOverrides(context)
        self.orders = ParentOrders(context)
        self.hours = Hours(context)
        self.subscriber = Subscriber(context)
        steps: dict[str, tuple[Step, float]] = {
            "webhook": (self.subscriber.reconcile, settings.check_s),
            # Under this name released versions have stored the step's problem.
            "words": (self.overrides.push, _LONGEST_WAIT_S),
            "catalogue": (self.mirror.round, settings.sync_s),
            "hours": (self.hours.round, _HOURS_S),
            "children": (self.orders.look_for_children, _CHILDREN_S),
        }
        supervisor = Supervisor(context.key, context.bridge.problems)
        self._events = Worker("events", self._process_deliveries, supervisor, context.bridge.clock)
        self._workers = {
            name: Worker(
                name, partial(self._run_step, name, *each), supervisor, context.bridge.clock
            )
            for name, each in steps.items()
        }
        self._failures = dict.fromkeys(steps, 0)  # in a row, by step
        self.workers = (self._events, *self._workers.values())
        for worker in self.workers:
            worker.wake()
        self.deliveries_arrived = self._events.wake

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return all that runs for this community."""
        return {f"{self.context.key} {each.name}": each.run() for each in self.workers}

    def plan(self, scheduler: Scheduler) -> None:
        """Plan nothing: each step says when it is due again."""

    async def drain(self) -> None:
        """Wait for nothing: a step that is cut off is taken again."""

    async def close(self) -> None:
        """Let go of nothing: it has no till."""

    def soon(self, name: str) -> None:
        """Do a step as soon as may be: `webhook`, `words`, `catalogue` or `hours`."""
        self._workers[name].wake()

    async def _process_deliveries(self) -> float | None:
        if await self._tried("events", self.orders.process_deliveries) is not None:
            return max(_FIRST_WAIT_S, self._events.back_off(_LONGEST_WAIT_S))
        return None

    async def _run_step(self, name: str, step: Step, every_s: float) -> float:
        """Take a step; return in how many seconds it is due again: sooner after a failure."""
        failure = await self._tried(name, step)
        self._failures[name] = 0 if failure is None else self._failures[name] + 1
        unsure = isinstance(failure, OutcomeUnknown) and name == "webhook"
        return _wait_s(failure, every_s, self._failures[name], may_repeat=not unsure)

    async def _tried(self, name: str, step: Step) -> ServiceError | LedgerError | None:
        """Take a step and return its failure; a person sees it until the step is done."""
        context, found = self.context, []
        failed: ServiceError | None = None
        try:
            await step()
        except ServiceError as failure:
            log.debug("community.step_failed", community=context.name, step=name)
            remedy = failure.fix or _remedy(failure)
            detail = {"community": context.name, "detail": failure.text, "remedy": remedy}
            found, failed = [Found(_UNAVAILABLE, name, detail)], failure
        except LedgerError as failure:
            return failure  # the ledger reports the disk itself
        context.report(_UNAVAILABLE, name, *found)
        return failed


def _wait_s(
    failure: ServiceError | LedgerError | None, every_s: float, failures: int, *, may_repeat: bool
) -> float:
    """Return in how many seconds a step is due again; without `may_repeat` each try may cost."""
    longer = 2.0 ** min(failures, 10)
    match failure:
        case None:
            return every_s
        case Refused() | Conflict() | ConsentLost():
            longest = _REFUSED_WAIT_S
        case Unauthorised():
            longest = _UNAUTHORISED_WAIT_S
        case _ if not may_repeat:
            longest = _UNSURE_WAIT_S
        case _:
            return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * longer)
    return min(longest, max(every_s, _FIRST_WAIT_S) * longer)


def _remedy(failure: ServiceError) -> str:
    if failure.status == 404:
        return _("Check community_id, and whether this app has access to the community.")
    if failure.status in {401, 403}:
        return _(
            "Check whether this app has access to the community, and check community_audience."
        )
    if 400 <= failure.status < 500:
        return _("Read the message. The bridge keeps trying, at longer and longer intervals.")
    return _("The bridge tries again automatically.")
