"""From the inbox to orders: deliveries are taken in as they come, a batch by one write."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.supervision import backoff_s
from tillbridge.ledger.inbox import OpenDelivery, open_deliveries
from tillbridge.orders.arrivals import (
    BATCH,
    Delivered,
    DeliveredBefore,
    Duplicate,
    IntakePolicy,
    Kept,
    NewOrder,
    NotRead,
    TakenIn,
    take_in,
    take_one,
)
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.checks import Findings

log = get_logger()


@dataclass(frozen=True, slots=True)
class _SetAside:
    """What could not be taken in, by event or order, and when (monotonic, s) it is tried again."""

    name: str
    failures: int
    again_at: float


class Intake:
    """Takes in what the receiver has committed, and tells what came of it."""

    def __init__(self, policy: IntakePolicy, books: StoreBooks) -> None:
        self._policy = policy
        self._books = books
        self._arrived = asyncio.Event()
        self._set_aside: dict[int, _SetAside] = {}  # by the delivery's row id
        self._unhanded: dict[str, tuple[TakenIn, _SetAside]] = {}  # by the order's id
        self._arrived.set()  # what was committed before this life of the process
        # Since when (monotonic, s) something waits and nothing of it was taken in; None: all is in.
        self.behind_since: float | None = time.monotonic()

    def deliveries_arrived(self) -> None:
        """Look into the inbox."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self._arrived.set()

    async def run(self, on_taken: Callable[[TakenIn], Awaitable[None]]) -> None:
        """Take in deliveries as they come; hands each to `on_taken`, after the commit.

        A delivery that cannot be taken in is set aside, and tried again later; the others go on.
        """
        try:
            while True:
                self._arrived.set()
                await self._take_all(on_taken)
                await self._until_due()
        except Exception:
            # It is tried again; that nothing gets on meanwhile is no reason to end the process.
            self.behind_since = None
            raise

    async def _take_all(self, on_taken: Callable[[TakenIn], Awaitable[None]]) -> None:
        await self._hand_on_again(on_taken)
        while self._arrived.is_set():
            self._arrived.clear()
            while taken := await self.take_batch():
                self.behind_since = time.monotonic()
                for each in taken:
                    self._report(each)
                    await self._hand_on(each, on_taken)
        self.behind_since = None

    async def _hand_on(
        self, taken: TakenIn, on_taken: Callable[[TakenIn], Awaitable[None]]
    ) -> None:
        """Hand on what is committed; where that fails unexpectedly, again later."""
        order_id = _order_of(taken)
        if await self._books.supervisor.attempt("intake", partial(on_taken, taken), order=order_id):
            self._unhanded.pop(order_id, None)
            return
        before = self._unhanded.get(order_id)
        aside = self._later(None if before is None else before[1], order_id)
        self._unhanded[order_id] = (taken, aside)

    async def _hand_on_again(self, on_taken: Callable[[TakenIn], Awaitable[None]]) -> None:
        now = self._books.clock.monotonic()
        for taken, aside in tuple(self._unhanded.values()):
            if aside.again_at <= now:
                await self._hand_on(taken, on_taken)

    def _later(self, before: _SetAside | None, name: str) -> _SetAside:
        failures = 1 if before is None else before.failures + 1
        return _SetAside(name, failures, self._books.clock.monotonic() + backoff_s(failures))

    async def _until_due(self) -> None:
        """Wait for a delivery, or for the time of one that was set aside."""
        aside = (*self._set_aside.values(), *(each for _taken, each in self._unhanded.values()))
        due = min((each.again_at for each in aside), default=None)
        wait_s = None if due is None else max(0.0, due - self._books.clock.monotonic())
        try:
            async with asyncio.timeout(wait_s):
                await self._arrived.wait()
        except TimeoutError:
            pass

    async def take_batch(self) -> list[TakenIn]:
        """Take in one batch; empty where nothing waits, but for what is set aside."""
        now_ms = self._books.clock.now_ms()
        skip = self._skipped()
        try:
            taken = await self._books.keep(
                lambda connection: take_in(connection, self._policy, now_ms, skip=skip)
            )
        except LedgerError:
            raise
        except Exception:  # noqa: BLE001 -- one of them cannot be taken in, whatever the cause
            return await self._take_singly(now_ms)
        for delivery in self._set_aside.keys() - skip:
            self._taken_after_all(delivery)
        return taken

    async def _take_singly(self, now_ms: int) -> list[TakenIn]:
        """Take in one delivery after another, each by a write of its own; set the bad one aside."""
        taken: list[TakenIn] = []
        skip = self._skipped()
        limit = BATCH + len(skip)
        waiting = await self._books.ledger.read(
            lambda connection: open_deliveries(connection, limit, store=self._policy.store)
        )
        for each in waiting:
            if each.id in skip:
                continue
            job = partial(take_one, policy=self._policy, waiting=each, now_ms=now_ms)
            try:
                taken.append(await self._books.keep(job))
            except LedgerError:
                raise
            except Exception as failure:  # noqa: BLE001 -- (as above)
                self._put_aside(each, failure)
            else:
                self._taken_after_all(each.id)
        return taken

    def _skipped(self) -> frozenset[int]:
        now = self._books.clock.monotonic()
        return frozenset(key for key, each in self._set_aside.items() if each.again_at > now)

    def _put_aside(self, delivery: OpenDelivery, failure: Exception) -> None:
        name = delivery.delivery.event_id
        self._set_aside[delivery.id] = self._later(self._set_aside.get(delivery.id), name)
        self._books.supervisor.failed("intake", failure, order=name)

    def _taken_after_all(self, delivery: int) -> None:
        aside = self._set_aside.pop(delivery, None)
        if aside is not None:
            self._books.supervisor.works("intake", order=aside.name)

    def _report(self, taken: TakenIn) -> None:
        store = self._policy.store
        match taken:
            case NewOrder(row, lines, found, cancelled):
                log.info("order.received", store=store, order=row.order_id, lines=lines)
                self._log_findings(row.order_id, found)
                if cancelled is not None:
                    log.warning(
                        "order.to_cancel", store=store, order=row.order_id, code=cancelled.code
                    )
            case Duplicate(order_id):
                log.info("order.duplicate", store=store, order=order_id)
            case DeliveredBefore(order_id):
                log.warning("order.delivered_before", store=store, order=order_id)
            case Delivered(order_id, known):
                log.info("order.completed", store=store, order=order_id, known=known)
            case Kept(event_type):
                log.info("event.kept", store=store, event_type=event_type)
            case NotRead(event_id, text):
                log.error("order.unreadable", store=store, event_id=event_id, why=text)

    def _log_findings(self, order_id: str, found: Findings) -> None:
        if found:
            log.warning(
                "order.check_found",
                store=self._policy.store,
                order=order_id,
                unknown_items=len(found.unknown_items),
                prices=len(found.prices),
                currency=found.currency,
                quantities=len(found.quantities),
            )


def _order_of(taken: TakenIn) -> str:
    match taken:
        case NewOrder(row=row):
            return row.order_id
        case Delivered(order_id=order_id) | Duplicate(order_id=order_id):
            return order_id
        case _:
            return ""
