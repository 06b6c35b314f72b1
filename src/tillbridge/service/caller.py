"""One call of one store, carried through: the gate, the token, and the retry policy."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    OutcomeUnknown,
    RateLimited,
    ServiceDown,
    ServiceError,
    Unauthorised,
    Unreachable,
)
from tillbridge.service.gate import Gate, GateClosed, Priority
from tillbridge.service.retry import (
    GiveUp,
    HoldAll,
    Limits,
    ReadState,
    RefreshToken,
    Wait,
    decide,
)
from tillbridge.service.transport import Answer, Request, Transport

_NOT_THERE = (Unreachable, ServiceDown, OutcomeUnknown)
_NOT_NOW = (Unreachable, ServiceDown, RateLimited, OutcomeUnknown, Unauthorised)


@dataclass(frozen=True, slots=True)
class Contact:
    """What came of a call: `ok` says whether the service was there, whatever it answered.

    `took_s` is how long it took in all, with its waits and repetitions.
    """

    operation: str
    ok: bool
    failure: ServiceError | None = None
    took_s: float = 0.0


OnContact = Callable[[Contact], None]
# Returns why a call (by its operation) is not to be made now; None where it may be.
Hindrance = Callable[[str], ServiceError | None]
Sleep = Callable[[float], Awaitable[None]]
# Reads the state after a write of unknown outcome: what the write would have answered had it been
# applied, None where it was not.
Settle = Callable[[], Awaitable[Answer | None]]


def ignore_contact(_contact: Contact) -> None:
    """Do nothing; for programs that keep no problems."""


def nothing_hinders(_operation: str) -> None:
    """Let every call be made."""


class Credential(Protocol):
    """What a call is signed with; `tokens.TokenKeeper` is the merchant's."""

    async def access_token(self) -> str | None:
        """Return the token to send, None for none."""
        ...

    async def renewed(self, refused: str) -> str | None:
        """Return another token than the refused one; None where none would help now."""
        ...

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Take note that the service no longer honours the consent behind `token`."""
        ...


class NoCredential:
    """For the token endpoints, which take none."""

    async def access_token(self) -> None:
        """Return no token."""

    async def renewed(self, _refused: str) -> None:
        """Return no token: the 401 stands."""

    def mark_lost(self, _failure: ConsentLost, _token: str) -> None:
        """Nothing is held that could be lost."""


@dataclass(frozen=True, slots=True)
class Write:
    """How a write of unknown outcome is cleared up before it is repeated.

    `settle` reads the state. A write without it is such that its repeat tells: an upsert, or an
    order's transition, where `proof` is the code of the 409 that a repeat meets if the first try
    was applied. `doubted` says that an earlier call of the same write ended unknown.
    """

    settle: Settle | None = None
    proof: str = ""
    doubted: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer; `settled` where it is what the state showed, not what the service said."""

    answer: Answer
    settled: bool = False


@dataclass(slots=True)
class _Course:
    """How far one call has come."""

    request: Request
    write: Write
    limits: Limits = field(default_factory=Limits)
    attempt: int = 0
    refreshed: bool = False
    token: str = ""
    waited_s: float = 0.0  # at the gate
    unknown: OutcomeUnknown | None = None
    began: float = 0.0  # seconds of the loop's clock


class Caller:
    """Carries calls through for one store; the transport and the gate are shared by all."""

    def __init__(
        self,
        transport: Transport,
        gate: Gate,
        credential: Credential,
        *,
        limits: Limits,
        on_contact: OnContact = ignore_contact,
        hindrance: Hindrance = nothing_hinders,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.origin = transport.origin
        self._transport = transport
        self._gate = gate
        self._credential = credential
        self._limits = limits
        self._on_contact = on_contact
        self._hindrance = hindrance
        self._sleep = sleep
        self._jitter = jitter
        self._away: set[str] = set()  # operations whose last call found no service

    async def call(
        self, request: Request, priority: Priority, write: Write | None = None
    ) -> Outcome:
        """Return the outcome of a call, repeated as the policy says. Raises a ServiceError.

        A call whose last one found no service is tried once: the back-off goes on where it was, in
        the hands of whoever calls again, and does not begin anew with each call.

        Raises OutcomeUnknown whenever one of the tries may have been applied, however the last
        one ended, unless that says for certain that the call will never be.
        """
        hindered = self._hindrance(request.operation)
        if hindered is not None:
            raise hindered
        course = _Course(request, write or Write(), began=asyncio.get_running_loop().time())
        if request.operation in self._away:
            course.limits = replace(self._limits, max_attempts=1)
        else:
            course.limits = self._limits
        try:
            while True:
                outcome = await self._try(course, priority)
                if outcome is not None:
                    return outcome
        except _NOT_NOW as failure:
            if isinstance(failure, _NOT_THERE):
                self._away.add(request.operation)
            told = failure if course.unknown is None else course.unknown
            self._tell(course, ok=_was_there(failure), failure=told)
            if told is failure:
                raise
            raise told from failure
        except ServiceError as failure:
            if failure.status:
                self._away.discard(request.operation)
            # Without a try there was no call: the consent is known to be gone, or nothing is due.
            there = course.attempt > 0 and failure.status > 0
            self._tell(course, ok=there, failure=failure)
            raise

    async def pause(self, seconds: float) -> None:
        """Let time pass between two looks at a state."""
        await self._sleep(seconds)

    async def _try(self, course: _Course, priority: Priority) -> Outcome | None:
        course.token = await self._credential.access_token() or ""
        course.attempt += 1
        try:
            answer = await self._exchange(course, priority)
        except ServiceError as failure:
            return await self._after(course, failure)
        self._away.discard(course.request.operation)
        self._tell(course, ok=True)
        return Outcome(answer)

    def _tell(self, course: _Course, *, ok: bool, failure: ServiceError | None = None) -> None:
        took_s = asyncio.get_running_loop().time() - course.began
        self._on_contact(Contact(course.request.operation, ok, failure, took_s))

    async def _exchange(self, course: _Course, priority: Priority) -> Answer:
        patience_s = max(0.0, self._limits.rate_limit_patience_s - course.waited_s)
        came = asyncio.get_running_loop().time()
        async with self._gate.passage(priority, patience_s=patience_s) as passage:
            course.waited_s += asyncio.get_running_loop().time() - came
            try:
                answer = await self._transport.exchange(course.request, token=course.token or None)
            except RateLimited as failure:
                passage.limited(failure.retry_after_s)
                raise
            except ServiceError as failure:
                if failure.status:
                    passage.answered()
                raise
            passage.answered()
            return answer

    async def _after(self, course: _Course, failure: ServiceError) -> Outcome | None:
        """Do what the policy says about a failure; None means: try again."""
        doubted = course.write.doubted or course.unknown is not None
        if isinstance(failure, Conflict) and doubted and failure.code == course.write.proof:
            return Outcome(Answer(failure.status, None), settled=True)
        if isinstance(failure, GateClosed):
            raise failure
        if isinstance(failure, ConsentLost):
            self._credential.mark_lost(failure, course.token)
        match decide(
            failure,
            course.attempt,
            kind=course.request.kind,
            refreshed=course.refreshed,
            random=self._jitter(),
            limits=course.limits,
        ):
            case RefreshToken():
                await self._renew(course, failure)
            case HoldAll():
                pass  # the gate waits, for every store
            case Wait(seconds=seconds):
                await self._sleep(seconds)
            case ReadState(seconds=seconds, repeat=repeat):
                if isinstance(failure, OutcomeUnknown):
                    course.unknown = failure
                await self._sleep(seconds)
                applied = await course.write.settle() if course.write.settle else None
                if applied is not None:
                    return Outcome(applied, settled=True)
                if not repeat:
                    raise failure
            case GiveUp():
                raise failure
        return None

    async def _renew(self, course: _Course, failure: ServiceError) -> None:
        course.refreshed = True
        course.attempt -= 1  # the token failed, not the call
        if await self._credential.renewed(course.token) is None:
            raise failure  # another token was refused lately, too


def _was_there(failure: ServiceError) -> bool:
    return isinstance(failure, RateLimited | Unauthorised)
