"""The flow of one community: what is done when, and what is reported when it cannot be done."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tillbridge.communities.context import CommunityContext
from tillbridge.communities.hours import Hours
from tillbridge.communities.mirror import Mirror
from tillbridge.communities.orders import ParentOrders
from tillbridge.communities.overrides import CommunityOverrides
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
from tillbridge.core.supervision import Supervisor
from tillbridge.core.worker import Worker

log = get_logger()

_FIRST_WAIT_S = 2.0
_LONGEST_WAIT_S = 60.0
# Longest waits after an answer that is not to be repeated (specification: Errors).
_REFUSED_WAIT_S = 3600.0
_UNAUTHORISED_WAIT_S = 300.0
_UNSURE_WAIT_S = 300.0  # after a subscription whose answer was lost
_CHILDREN_S = 15.0
_HOURS_S = 5.0  # a look at when the file was changed; midnight where the store is counts too


@dataclass(slots=True)
class _Periodic:
    """What is done every so often, and sooner after a failure; `due` is monotonic."""

    name: str
    step: Callable[[], Awaitable[object]]
    every_s: float
    due: float = 0.0
    failures: int = 0


class CommunityFlow:
    """Keeps one community in step, by `workers`.

    Events have a worker of their own, so that no slow call about the catalogue delays them.
    """

    def __init__(self, context: CommunityContext, hours: Hours, *, public_url: str) -> None:
        settings = context.settings
        self.context = context
        self.mirror = Mirror(context)
        self.overrides = CommunityOverrides(context)
        self.orders = ParentOrders(context)
        self.hours = hours
        self.subscriber = Subscriber(context, public_url=public_url)
        periodic = (
            _Periodic("webhook", self.subscriber.keep, settings.check_s),
            # Under this name released versions have stored the step's problem.
            _Periodic("words", self.overrides.push, _LONGEST_WAIT_S),
            _Periodic("catalogue", self.mirror.round, settings.sync_s),
            _Periodic("hours", hours.round, _HOURS_S),
            _Periodic("children", self.orders.look_for_children, _CHILDREN_S),
        )
        self._periodic = {each.name: each for each in periodic}
        supervisor = Supervisor(context.key, context.tracker)
        self._events = Worker("events", self._take_in, supervisor, context.clock)
        self._rounds = Worker("community", self._do_what_is_due, supervisor, context.clock)
        self.workers = (self._events, self._rounds)
        for worker in self.workers:
            worker.wake()

    def deliveries_arrived(self) -> None:
        """The inbox has something new."""
        self._events.wake()

    def soon(self, name: str) -> None:
        """Do a step as soon as may be: `webhook`, `words`, `catalogue` or `hours`."""
        self._periodic[name].due = 0.0
        self._rounds.wake()

    async def _take_in(self) -> float | None:
        if await self._tried("events", self.orders.take_in) is not None:
            return max(_FIRST_WAIT_S, self._events.back_off(_LONGEST_WAIT_S))
        self._events.succeeded()
        return None

    async def _do_what_is_due(self) -> float:
        """Take each step that is due; return in how many seconds the next one is."""
        clock = self.context.clock
        for each in self._periodic.values():
            if each.due <= clock.monotonic():
                await self._do(each)
        due = min(each.due for each in self._periodic.values())
        return max(0.0, due - clock.monotonic())

    async def _do(self, each: _Periodic) -> None:
        each.due = float("inf")  # whoever asks for it meanwhile gets another round
        failure = await self._tried(each.name, each.step)
        each.failures = 0 if failure is None else each.failures + 1
        unsure = isinstance(failure, OutcomeUnknown) and each.name == "webhook"
        wait_s = _wait_s(failure, each.every_s, each.failures, may_repeat=not unsure)
        each.due = min(each.due, self.context.clock.monotonic() + wait_s)

    async def _tried(
        self, name: str, step: Callable[[], Awaitable[object]]
    ) -> ServiceError | LedgerError | None:
        """Take a step and return its failure; a person sees it until the step is done."""
        context = self.context
        try:
            await step()
        except ServiceError as failure:
            log.debug("community.step_failed", community=context.name, step=name)
            context.tracker.open(
                "community.unavailable",
                context.key,
                name,
                community=context.name,
                detail=failure.text,
                remedy=failure.fix or _remedy(failure),
            )
            return failure
        except LedgerError as failure:
            return failure  # the ledger reports the disk itself
        context.tracker.close("community.unavailable", context.key, name)
        return None


def _wait_s(
    failure: ServiceError | LedgerError | None,
    every_s: float,
    failures: int,
    *,
    may_repeat: bool,
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
        return _("Check community_id, and that this app may work for the community.")
    if failure.status in {401, 403}:
        return _("Check that this app may work for the community, and community_audience.")
    if 400 <= failure.status < 500:
        return _("Read the message. It is tried again at ever longer intervals.")
    return _("It is tried again by itself.")
