"""What a store's calls tell about the link: problems open and close with them.

Specification: Integration status; Errors. Transitions are told, not calls.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.service.answers import problem_of
from tillbridge.service.caller import Contact
from tillbridge.stores.service_reach import UNREACHABLE, ServiceReach

_NOTE_EVERY_MS = 60_000
_CONSENT = ("consent.missing", "consent.expired", "consent.revoked")
# Why a store is not integrated, once that has been read.
_BETTER = ("integration.disabled", "integration.pending", "integration.removed")
# Calls that only an active integration lets through.
_INTEGRATED = ("menus.", "items.", "orders.", "tables.")
_INTEGRATED_CALLS = ("integrations.create", "integrations.read", "integrations.change")
_PUSHES = ("menus.push", "menus.batch", "items.", "tables.")

log = get_logger()


class ServiceWatch:
    """Hands one store's contacts on to the problem desk; `seen` is the client's `on_contact`."""

    def __init__(
        self,
        store: str,
        ledger: Ledger,
        desk: ProblemDesk,
        reach: ServiceReach,
        *,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reach = reach
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self._noted_ms: int | None = None
        self._noting: asyncio.Task[None] | None = None
        self._called_at = clock.monotonic()

    async def read_if_idle(self, read: Callable[[], Awaitable[object]], every_s: float) -> float:
        """Call `read` if no call was answered for `every_s` seconds; return when that may be next.

        A consent that ends while nothing is called is noticed by nothing else.
        """
        left_s = self._called_at + every_s - self._clock.monotonic()
        if left_s > 0:
            return left_s
        self._called_at = self._clock.monotonic()
        try:
            await read()
        except ServiceError as failure:  # `seen` has taken note of it
            log.debug("service.idle_read", store=self._store, code=failure.code)
        return every_s

    def seen(self, contact: Contact) -> None:
        """Take note of what came of a call."""
        if contact.ok:
            self._called_at = self._clock.monotonic()
        problem = problem_of(contact.failure) if contact.failure else None
        self._reach.called(contact)
        if contact.ok:
            self._note_contact()
        if problem == UNREACHABLE or (problem == "integration.missing" and self._knows_better()):
            return
        if problem is not None:
            for code in _CONSENT if problem in _CONSENT else ():
                if code != problem:
                    self._desk.close(code, self._store)
            self._desk.open(problem, self._store)
        elif contact.failure is None:
            self._all_well(contact.operation)

    async def close(self) -> None:
        """Wait for what is being written."""
        if self._noting is not None:
            await self._noting

    def _all_well(self, operation: str) -> None:
        for code in (*_CONSENT, "service.bad_client", "service.token_refused"):
            self._desk.close(code, self._store)
        if operation.startswith(_INTEGRATED) or operation in _INTEGRATED_CALLS:
            for code in ("integration.missing", *_BETTER):
                self._desk.close(code, self._store)
        if operation.startswith(_PUSHES):
            self._desk.close("menu.push_not_allowed", self._store)

    def _knows_better(self) -> bool:
        """Whether it is told already why the service says store.not_integrated."""
        return any(self._desk.is_open(code, self._store) for code in _BETTER)

    def _note_contact(self) -> None:
        now = self._clock.now_ms()
        recent = self._noted_ms is not None and 0 <= now - self._noted_ms < _NOTE_EVERY_MS
        if recent or (self._noting is not None and not self._noting.done()):
            return
        self._noted_ms = now
        self._noting = asyncio.get_running_loop().create_task(self._note(now))

    async def _note(self, now: int) -> None:
        try:
            await self._ledger.write(
                lambda db: put_fact(db, self._store, "service_contact", {"ok_at": now}, at=now)
            )
        except LedgerError:
            self._noted_ms = None  # the desk knows that the ledger cannot be written
