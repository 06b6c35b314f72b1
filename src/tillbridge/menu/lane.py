"""A lane: one subject's rounds, requested, made one at a time, and made again where they failed."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    LedgerError,
    OutcomeUnknown,
    RateLimited,
    Refused,
    ServiceDown,
    ServiceError,
)
from tillbridge.core.log import get_logger
from tillbridge.core.worker import Worker
from tillbridge.menu.context import MenuContext
from tillbridge.menu.push_record import JobLost
from tillbridge.menu.reading import ExportReader
from tillbridge.service.answers import NOT_INTEGRATED

log = get_logger()

T = TypeVar("T")

LONGEST_BACKOFF_S = 15.0  # so soon after a service is back somebody notices, and all go on
PUSH_NOT_ALLOWED = "menu.push_not_allowed"
EXPECTED = (ServiceError, JobLost, LedgerError)  # how a round fails: reported, and tried again


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What the next round shall do beyond the usual.

    Compare everything, push it all, or send what the service refused before (`retry_refused`).
    """

    whole: bool = False
    full: bool = False
    retry_refused: bool = False
    since: float | None = None  # monotonic, when the export changed

    def __or__(self, other: "SyncRequest") -> "SyncRequest":
        """Return both requests in one."""
        begun = [each for each in (self.since, other.since) if each is not None]
        return SyncRequest(
            whole=self.whole or other.whole,
            full=self.full or other.full,
            retry_refused=self.retry_refused or other.retry_refused,
            since=min(begun, default=None),
        )


USUAL = SyncRequest()


class SyncLane(ABC, Generic[T]):
    """The rounds of one subject (menu, availability, tables) of one store."""

    push_failed: ClassVar = "menu.push_failed"  # the problem, and the log event

    def __init__(self, ctx: MenuContext, subject: str) -> None:
        self.ctx = ctx
        self.subject = subject
        self.worker = Worker(subject, self.step, ctx.supervisor, ctx.clock)
        self.reader = ExportReader(ctx, subject, self.worker)
        self.refused_digest = ""  # of a plan that the service refuses as a whole
        self._requested = USUAL
        self._one_at_a_time = asyncio.Lock()

    @abstractmethod
    async def round(self, request: SyncRequest) -> T | None:
        """Make one round; None where the export cannot be read now."""

    def request(self, request: SyncRequest = USUAL, *, after_s: float = 0.0) -> None:
        """Ask for a round; many requests are one round."""
        self.postpone(request)
        if request.whole or request.full:
            self.refused_digest = ""
        if after_s:
            self.worker.wake_in(after_s)
        else:
            self.worker.wake()

    def postpone(self, request: SyncRequest) -> None:
        """Leave to the next round what this one could not do."""
        self._requested |= request

    def retry(self) -> None:
        """Ask for a round although the service refused the same plan before."""
        self.refused_digest = ""
        self.worker.wake()

    async def now(self, request: SyncRequest = USUAL) -> T | None:
        """Make a round now; a failure is reported before it is raised.

        Raises ServiceError, JobLost or LedgerError.
        """
        async with self._one_at_a_time:
            request, self._requested = request | self._requested, USUAL
            try:
                return await self.round(request)
            except Exception as failure:
                self.postpone(request)
                if isinstance(failure, EXPECTED):
                    self._failed(failure)
                raise

    def succeeded(self) -> None:
        """Close what a failure opened; the next one is a first one again."""
        self.worker.succeeded()
        self.ctx.close_problem(self.push_failed, self.subject)

    async def step(self) -> None:
        """Make a round, as the worker does."""
        with suppress(*EXPECTED):  # reported, and tried again where that can help
            await self.now()

    def _failed(self, failure: ServiceError | JobLost | LedgerError) -> None:
        """Try again where that can help, and report to a person where it cannot.

        What is refused for good, or waits for the merchant's consent, is not tried again by a
        timer: something has to change first.
        """
        log.warning(
            self.push_failed,
            store=self.ctx.store,
            subject=self.subject,
            failure=type(failure).__name__,
            detail=failure.text,
        )
        match failure:
            case ConsentLost():
                return  # `stores` reports it, and requests rounds when consent is back
            case Refused(code=code) if code == NOT_INTEGRATED:
                return  # (as above, for the integration)
            case Refused(code=code) if code == PUSH_NOT_ALLOWED:
                self.ctx.open_problem(PUSH_NOT_ALLOWED)
                return
            case RateLimited():
                self.worker.wake_in(failure.retry_after_s)
                return
            case Refused() | Conflict():
                pass
            case _:
                self.worker.wake_in(self.worker.back_off(LONGEST_BACKOFF_S))
        if isinstance(failure, Refused | Conflict | ServiceDown | OutcomeUnknown | JobLost):
            self.ctx.open_problem(self.push_failed, self.subject, detail=failure.text)
