"""From the inbox to orders: deliveries are taken in as they come, a batch by one write."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tillbridge.log import get_logger
from tillbridge.orders.arrivals import (
    Delivered,
    DeliveredBefore,
    Duplicate,
    IntakePolicy,
    Kept,
    NewOrder,
    NotRead,
    TakenIn,
    take_in,
)
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.checks import Findings, in_short

log = get_logger()


class Intake:
    """Takes in what the receiver has committed, and tells what came of it."""

    def __init__(self, policy: IntakePolicy, books: StoreBooks) -> None:
        self._policy = policy
        self._books = books
        self._arrived = asyncio.Event()
        self._arrived.set()  # what was committed before this life of the process
        # Since when (monotonic, s) something waits and nothing of it was taken in; None: all is in.
        self.behind_since: float | None = time.monotonic()

    def deliveries_arrived(self) -> None:
        """Look into the inbox."""
        if self.behind_since is None:
            self.behind_since = time.monotonic()
        self._arrived.set()

    async def run(self, on_taken: Callable[[TakenIn], Awaitable[None]]) -> None:
        """Take in deliveries as they come; hands each to `on_taken`, after the commit."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while taken := await self.take_batch():
                self.behind_since = time.monotonic()
                for each in taken:
                    self._report(each)
                    await on_taken(each)
            if not self._arrived.is_set():
                self.behind_since = None

    async def take_batch(self) -> list[TakenIn]:
        """Take in one batch; empty where nothing waits."""
        now_ms = self._books.clock.now_ms()
        return await self._books.keep(lambda connection: take_in(connection, self._policy, now_ms))

    def _report(self, taken: TakenIn) -> None:
        store = self._policy.store
        match taken:
            case NewOrder(row, lines, found, cancelled):
                log.info("order.received", store=store, order=row.order_id, lines=lines)
                self._report_findings(row.order_id, found)
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
                self._books.desk.open("order.unreadable", store, event_id, detail=text)

    def _report_findings(self, order_id: str, found: Findings) -> None:
        store = self._policy.store
        if found:
            log.warning(
                "order.check_found",
                store=store,
                order=order_id,
                unknown_items=len(found.unknown_items),
                prices=len(found.prices),
            )
        for code, phrases in (
            ("order.unknown_item", found.unknown_items),
            ("order.price_differs", found.prices),
        ):
            if phrases:
                self._books.desk.open(
                    code, store, order_id, order=order_id, detail=in_short(phrases)
                )
