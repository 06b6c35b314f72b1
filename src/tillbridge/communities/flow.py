"""The flow of one community: what is done when, and what is said when it cannot be done."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tillbridge.communities.hours import Hours
from tillbridge.communities.mirror import Mirror
from tillbridge.communities.parents import Parents
from tillbridge.communities.shared import Shared
from tillbridge.communities.subscription import Subscriber
from tillbridge.communities.words import Words
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
class _Beat:
    """A step that is done every so often, and sooner after a failure; `due` is monotonic."""

    name: str
    step: Callable[[], Awaitable[object]]
    every_s: float
    due: float = 0.0
    failures: int = 0


class CommunityFlow:
    """Keeps one community in step. `run` ends only when it is cancelled.

    Events have a task of their own, so that no slow call about the catalogue delays them.
    """

    def __init__(self, shared: Shared, hours: Hours, *, public_url: str) -> None:
        settings = shared.settings
        self.shared = shared
        self.mirror = Mirror(shared)
        self.words = Words(shared)
        self.parents = Parents(shared)
        self.hours = hours
        self.subscriber = Subscriber(shared, public_url=public_url)
        self._arrived = asyncio.Event()
        self._asked = asyncio.Event()
        self._beats = {
            each.name: each
            for each in (
                _Beat("webhook", self.subscriber.keep, settings.check_s),
                _Beat("words", self.words.tell, _LONGEST_WAIT_S),
                _Beat("catalogue", self.mirror.round, settings.sync_s),
                _Beat("hours", hours.round, _HOURS_S),
                _Beat("children", self.parents.look_for_children, _CHILDREN_S),
            )
        }

    def deliveries_arrived(self) -> None:
        """Say that the inbox has something new."""
        self._arrived.set()

    def soon(self, name: str) -> None:
        """Do a step as soon as may be: `webhook`, `words`, `catalogue` or `hours`."""
        self._beats[name].due = 0.0
        self._asked.set()

    async def run(self) -> None:
        """Run for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._events())
            tasks.create_task(self._rounds())

    async def _events(self) -> None:
        wait_s = 0.0
        while True:
            self._arrived.clear()
            failure = await self._tried("events", self.parents.take_in)
            wait_s = (
                0.0 if failure is None else min(_LONGEST_WAIT_S, max(_FIRST_WAIT_S, wait_s * 2))
            )
            await _set_within(self._arrived, wait_s or None)

    async def _rounds(self) -> None:
        clock = self.shared.clock
        while True:
            self._asked.clear()
            for beat in self._beats.values():
                if beat.due <= clock.monotonic():
                    await self._beat(beat)
            due = min(beat.due for beat in self._beats.values())
            await _set_within(self._asked, max(0.0, due - clock.monotonic()))

    async def _beat(self, beat: _Beat) -> None:
        beat.due = float("inf")  # whoever asks for it meanwhile gets another round
        failure = await self._tried(beat.name, beat.step)
        beat.failures = 0 if failure is None else beat.failures + 1
        longer = 2.0 ** min(beat.failures, 10)
        match failure:
            case None:
                wait_s = beat.every_s
            case Refused() | Conflict() | ConsentLost():
                wait_s = min(_REFUSED_WAIT_S, max(beat.every_s, _FIRST_WAIT_S) * longer)
            case OutcomeUnknown() if beat.step == self.subscriber.keep:  # each try may make another
                wait_s = min(_UNSURE_WAIT_S, max(beat.every_s, _FIRST_WAIT_S) * longer)
            case Unauthorised():
                wait_s = min(_UNAUTHORISED_WAIT_S, max(beat.every_s, _FIRST_WAIT_S) * longer)
            case _:
                wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * longer)
        beat.due = min(beat.due, self.shared.clock.monotonic() + wait_s)

    async def _tried(
        self, name: str, step: Callable[[], Awaitable[object]]
    ) -> ServiceError | LedgerError | None:
        """Do a step and return its failure; a person sees it until the step is done."""
        shared = self.shared
        try:
            await step()
        except ServiceError as failure:
            log.debug("community.step_failed", community=shared.name, step=name)
            shared.desk.open(
                "community.unavailable",
                shared.key,
                name,
                community=shared.name,
                detail=failure.text,
                remedy=failure.fix or _remedy(failure),
            )
            return failure
        except LedgerError as failure:
            return failure  # the desk tells of the disk itself
        shared.desk.close("community.unavailable", shared.key, name)
        return None


def _remedy(failure: ServiceError) -> str:
    if failure.status == 404:
        return _("Check community_id, and that this app may work for the community.")
    if failure.status in {401, 403}:
        return _("Check that this app may work for the community, and community_audience.")
    if 400 <= failure.status < 500:
        return _("Read the message. It is tried again at ever longer intervals.")
    return _("It is tried again by itself.")


async def _set_within(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for the event, or until so many seconds have passed (None: for ever)."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
