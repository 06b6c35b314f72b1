"""One call from start to finish: what prevents it, its turn, its token, and the retry policy.

Every endpoint that the bridge calls is a row of one table. If not all calls may go, orders go
first. A 429 closes the gate for every store of the bridge until Retry-After has passed (on the
monotonic clock). Then one waiting call goes alone as a probe, the most urgent one; once the service
has answered it, the others follow in order. A few places are always reserved for orders.
"""

import asyncio
import heapq
import itertools
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import TypeVar

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
from tillbridge.core.i18n import _
from tillbridge.service.answers import (
    GiveUp,
    HoldAll,
    Kind,
    Limits,
    ReadState,
    RefreshToken,
    Wait,
    decide,
)
from tillbridge.service.tokens import CachedToken
from tillbridge.service.transport import Answer, Request, Transport, encode
from tillbridge.service.types import read

T = TypeVar("T")

LATE_S = 60.0  # so much later than it was sent, a call that nobody has answered may still arrive

_NOT_THERE = (Unreachable, ServiceDown, OutcomeUnknown)
_NOT_NOW = (Unreachable, ServiceDown, RateLimited, OutcomeUnknown, Unauthorised)


class Priority(IntEnum):
    """How urgent a call is; a lower number goes first."""

    ORDERS = 0
    AVAILABILITY = 1
    STORE = 2
    MENU = 3
    POLL = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call: `{}` in the path, which is relative to the root, is replaced by an id.

    `kind` says whether the state has to be read before a repeat.
    """

    method: str
    path: str
    priority: Priority = Priority.STORE
    kind: Kind = Kind.WRITE


_reads = partial(Endpoint, "GET", kind=Kind.READ)
# For retries it counts as a read: there is no state to look up, and a repeat does no harm.
_asks = partial(Endpoint, "POST", kind=Kind.READ)

_ORDERS, _MENU, _POLL = Priority.ORDERS, Priority.MENU, Priority.POLL
_AVAILABILITY = Priority.AVAILABILITY

ENDPOINTS = {
    # onboarding and tokens
    "signup.url": _asks("pos/signup_url", _MENU),
    # If a lost answer used up the code, the repeat is refused, and the merchant consents again.
    "oauth.exchange": _asks("oauth2/token", _ORDERS),
    "oauth.mint": _asks("oauth2/token", _ORDERS),
    "oauth.refresh": _asks("oauth2/refresh", _ORDERS),
    # stores and integrations
    "stores.list": _reads("pos/stores"),
    "integrations.create": Endpoint("POST", "pos/integrate-store/{}"),
    "integrations.read": _reads("pos/integrations/{}"),
    "integrations.change": Endpoint("PUT", "pos/integrations/{}"),
    "integrations.rotate": Endpoint("PUT", "pos/integrations/{}"),
    "integrations.remove": Endpoint("DELETE", "pos/integrations/{}"),
    "stores.settings": Endpoint("PUT", "pos/stores/{}/settings"),
    "stores.status": Endpoint("PUT", "pos/stores/{}/status"),
    "stores.tax_config": _reads("pos/stores/{}/tax-config"),
    # menus, items and tables
    "menus.push": Endpoint("POST", "pos/stores/{}/menus", _MENU),
    "menus.job": _reads("pos/stores/{}/menus/jobs/{}", _POLL),
    "menus.status": _reads("pos/stores/{}/menus/status", _POLL),
    "menus.batch": Endpoint("POST", "pos/stores/{}/menus/batch", _MENU),
    "items.availability": Endpoint("POST", "pos/stores/{}/items/availability", _AVAILABILITY),
    "items.patch": Endpoint("PATCH", "pos/stores/{}/items/{}", _MENU),
    "tables.push": Endpoint("POST", "pos/stores/{}/tables", _MENU),
    # orders
    "orders.accept": Endpoint("POST", "pos/orders/{}/accept", _ORDERS),
    "orders.status": Endpoint("POST", "pos/orders/{}/status", _ORDERS),
    "orders.ready": Endpoint("POST", "pos/orders/{}/ready", _ORDERS),
    "orders.cancel": Endpoint("POST", "pos/orders/{}/cancel", _ORDERS),
    # communities
    "communities.catalogue": _reads("communities/{}/catalogue", _POLL),
    "communities.item": _reads("communities/{}/catalogue/items/{}"),
    "communities.availability": Endpoint(
        "PATCH", "communities/{}/catalogue/items/{}", _AVAILABILITY
    ),
    "communities.hours": Endpoint("PUT", "communities/{}/stores/{}/hours"),
    "communities.order": _reads("communities/{}/orders/{}", _ORDERS),
    "communities.subscribe": Endpoint("POST", "communities/{}/webhooks"),
    "webhooks.read": _reads("webhooks/{}"),
    "webhooks.change": Endpoint("PUT", "webhooks/{}"),
    "webhooks.remove": Endpoint("DELETE", "webhooks/{}"),
    "webhooks.test": Endpoint("POST", "webhooks/{}/test"),
    "webhooks.deliveries": _reads("webhooks/{}/deliveries"),
}


class GateClosed(RateLimited):
    """The gate did not open in time; the call was not made."""


class NotServing(Unreachable):
    """This bridge may not act for the store now; the call was not made."""


class Gate:
    """The single entrance to a service, for all stores. `for_orders` places are only for orders."""

    def __init__(self, *, places: int = 8, for_orders: int = 2) -> None:
        self._places = places
        self._lent = max(1, places - for_orders)
        self._inside = 0
        self._queue: list[tuple[Priority, int, asyncio.Future[int]]] = []
        self._numbers = itertools.count()
        self._closed_until = 0.0
        self._closings = 0  # an answer to a call from before the last closing opens nothing
        self._probing = False  # since it was closed, no call has been answered yet
        self._timer: asyncio.TimerHandle | None = None

    def closed_for_s(self) -> float:
        """Return for how many more seconds the service wants no calls."""
        return max(0.0, self._closed_until - asyncio.get_running_loop().time())

    @asynccontextmanager
    async def passage(self, priority: Priority, *, patience_s: float) -> AsyncIterator[None]:
        """Wait for a turn, for at most `patience_s`; then raise GateClosed.

        What the call inside raises decides about the gate: RateLimited closes it.
        """
        if self._probing and (closed_for := self.closed_for_s()) > patience_s:
            raise _closed(closed_for)
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (priority, next(self._numbers), turn))
        self._admit()
        try:
            async with asyncio.timeout(patience_s):
                closings = await turn  # how many times the gate had been closed by then
        except BaseException as trouble:
            if turn.done() and not turn.cancelled():  # the turn came at this moment: pass it on
                self._inside -= 1
            turn.cancel()
            self._admit()
            if isinstance(trouble, TimeoutError):
                raise _closed(self.closed_for_s()) from None
            raise
        answered = True
        try:
            yield
        except RateLimited as limited:
            answered = False
            until = asyncio.get_running_loop().time() + limited.retry_after_s
            self._closed_until = max(self._closed_until, until)
            self._probing = True
            self._closings += 1
            raise
        except BaseException as failure:
            answered = isinstance(failure, ServiceError) and failure.status > 0
            raise
        finally:
            if answered and closings == self._closings:
                self._probing = False
            self._inside -= 1
            self._admit()

    def _admit(self) -> None:
        """Let in every call that may go now, and set the timer for the others."""
        while self._queue:
            priority, _number, turn = self._queue[0]
            if turn.done():  # gave up in the meantime
                heapq.heappop(self._queue)
                continue
            if self._probing and (closed_for := self.closed_for_s()) > 0:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(closed_for, self._admit)
                return
            places = self._places if priority is Priority.ORDERS else self._lent
            if self._inside >= (1 if self._probing else places):
                return
            heapq.heappop(self._queue)
            self._inside += 1
            turn.set_result(self._closings)


def _closed(seconds: float) -> GateClosed:
    return GateClosed(
        _("The ordering service has asked the bridge to wait before its next call."),
        retry_after_s=max(seconds, 1.0),
    )


@dataclass(frozen=True, slots=True)
class Contact:
    """The result of a call: `ok` says whether the service was reached, whatever it answered.

    `took_s` is the total duration, with waits and repetitions.
    """

    operation: str
    ok: bool
    failure: ServiceError | None = None
    took_s: float = 0.0


OnContact = Callable[[Contact], None]
# Returns why a call (by its operation) must not be made now, or None.
Hindrance = Callable[[str], ServiceError | None]
Sleep = Callable[[float], Awaitable[None]]
# Reads the state after a write with unknown outcome, and returns whether it was applied.
Settle = Callable[[], Awaitable[bool]]


def ignore_contact(_contact: Contact) -> None:
    """For programs that report no problems."""


def nothing_hinders(_operation: str) -> None:
    """Allow every call."""


@dataclass(frozen=True, slots=True)
class Write:
    """How to clarify a write with unknown outcome before repeating it.

    `settle` reads the state. Without it, the repeat itself shows the outcome: an upsert, or an
    order's transition, where `proof` is the code of the 409 that a repeat gets if the first try was
    applied, including an earlier call with unknown outcome.
    """

    settle: Settle | None = None
    proof: str = ""


_PLAIN = Write()


@dataclass(slots=True)
class _Course:
    """The progress of one call."""

    request: Request
    priority: Priority
    write: Write
    limits: Limits
    authorization: str
    attempt: int = 0
    refreshed: bool = False
    token: str = ""
    waited_s: float = 0.0  # at the gate
    unknown: OutcomeUnknown | None = None


@dataclass(slots=True)
class Caller:
    """Makes calls for one store; the transport and the gate are shared by all.

    `credential` is the token to send, None for none.
    """

    transport: Transport
    gate: Gate
    limits: Limits
    credential: CachedToken | None = None
    on_contact: OnContact = ignore_contact
    hindrance: Hindrance = nothing_hinders
    may_act: Callable[[], bool] = lambda: True
    sleep: Sleep = asyncio.sleep
    jitter: Callable[[], float] = random.random
    # Operations whose last call did not reach the service.
    _away: set[str] = field(default_factory=set)
    # URLs of writes with a `proof` whose last outcome is unknown: the next call is a repeat.
    _doubted: set[str] = field(default_factory=set)
    # By the loop's clock: when a write of this store was last left without an answer.
    unanswered_at: float = -math.inf

    async def call(
        self,
        operation: str,
        *ids: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        write: Write = _PLAIN,
        priority: Priority | None = None,
        url: str = "",
        authorization: str = "",
    ) -> Answer:
        """Return the answer to a call of the table, repeated according to the policy.

        `body` is JSON, or already encoded; `url`, `priority` and `authorization` replace those of
        the table and the credential. If an operation's last call did not reach the service, it is
        tried only once: whoever calls again continues the backoff, instead of starting a new one
        with each call.

        Raises a ServiceError: OutcomeUnknown whenever one of the tries may have been applied,
        however the last one ended, unless that proves that the call will never be applied.
        """
        if (hindered := self.hindrance(operation)) is not None:
            raise hindered
        endpoint = ENDPOINTS[operation]
        url = url or self.transport.origin.url(endpoint.path, *ids, query=query)
        course = _Course(
            Request(
                operation,
                endpoint.method,
                url,
                endpoint.kind,
                body if isinstance(body, bytes | None) else encode(body),
            ),
            endpoint.priority if priority is None else priority,
            write,
            replace(self.limits, max_attempts=1) if operation in self._away else self.limits,
            authorization,
        )
        began = asyncio.get_running_loop().time()
        outcome: Answer | ServiceError | None = None
        ok = True
        try:
            while outcome is None:
                outcome = await self._try(course)
        except NotServing:
            raise  # neither the service nor this store's link has anything to do with it
        except _NOT_NOW as failure:
            ok = isinstance(failure, RateLimited | Unauthorised)
            if isinstance(failure, _NOT_THERE):
                self._away.add(operation)
            outcome = course.unknown or failure
            if outcome is not failure:
                outcome.__cause__ = failure
            if write.proof and isinstance(outcome, OutcomeUnknown):
                self._doubted.add(url)
        except ServiceError as failure:
            if failure.status:
                self._away.discard(operation)
            # Without a try there was no call: the consent is known to be gone, or nothing is due.
            ok, outcome = course.attempt > 0 and failure.status > 0, failure
        took_s = asyncio.get_running_loop().time() - began
        if isinstance(outcome, ServiceError):
            self.on_contact(Contact(operation, ok, outcome, took_s))
            raise outcome
        self._doubted.discard(url)
        if not outcome.settled:
            self.on_contact(Contact(operation, ok, None, took_s))
        return outcome

    async def read(
        self,
        kind: type[T],
        operation: str,
        *ids: str,
        body: object = None,
        write: Write = _PLAIN,
        priority: Priority | None = None,
    ) -> T:
        """Return the answer to a `call` as a value of this type; Refused if it is not one."""
        answer = await self.call(operation, *ids, body=body, write=write, priority=priority)
        return read(kind, answer.body, operation)

    async def _try(self, course: _Course) -> Answer | None:
        """Send the call once and return its answer; None means: try again."""
        if self.credential is not None:
            course.token = await self.credential.access_token()
            course.authorization = f"Bearer {course.token}"
        course.attempt += 1
        time = asyncio.get_running_loop().time
        came, patience_s = time(), max(0.0, self.limits.rate_limit_patience_s - course.waited_s)
        try:
            async with self.gate.passage(course.priority, patience_s=patience_s):
                course.waited_s += time() - came
                self._check_right()
                answer = await self.transport.exchange(
                    course.request, authorization=course.authorization
                )
        except (GateClosed, NotServing):
            raise
        except ServiceError as failure:
            return await self._after(course, failure)
        self._away.discard(course.request.operation)
        return answer

    def _check_right(self) -> None:
        if not self.may_act():  # another bridge may have taken the store over meanwhile
            raise NotServing(_("This bridge does not serve the store any more."))

    async def _after(self, course: _Course, failure: ServiceError) -> Answer | None:
        """Do what the policy says about a failure; None means: try again."""
        settled = Answer(course.request.operation, 200, None, settled=True)
        doubted = course.request.url in self._doubted or course.unknown is not None
        if isinstance(failure, Conflict) and doubted and failure.code == course.write.proof:
            return settled
        if isinstance(failure, ConsentLost) and self.credential is not None:
            self.credential.mark_lost(failure, course.token)
        match decide(
            failure,
            course.attempt,
            kind=course.request.kind,
            refreshed=course.refreshed,
            random=self.jitter(),
            limits=course.limits,
        ):
            case RefreshToken():
                course.refreshed = True
                course.attempt -= 1  # the token failed, not the call
                if self.credential is None or await self.credential.renewed(course.token) is None:
                    raise failure  # another token was also refused recently
            case HoldAll():
                pass  # the gate waits, for every store
            case Wait(seconds=seconds):
                await self.sleep(seconds)
            case ReadState(seconds=seconds, repeat=repeat):
                if isinstance(failure, OutcomeUnknown):
                    course.unknown = failure
                    self.unanswered_at = asyncio.get_running_loop().time()
                await self.sleep(seconds)
                if course.write.settle is not None and await course.write.settle():
                    return settled
                if not repeat:
                    raise failure
            case GiveUp():
                raise failure
        return None
