"""What came of an order at the POS: kept in the ledger, logged, and told to people."""

from tillbridge.adapter import PosFailure, Ticket
from tillbridge.i18n import _
from tillbridge.ledger.orders import ON_PAPER, PERHAPS_ON_PAPER_ONLY, OrderRow
from tillbridge.log import get_logger
from tillbridge.orders import marks
from tillbridge.orders.aftermath import bring_about
from tillbridge.orders.books import StoreBooks
from tillbridge.orders.ports import OrderEffects
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import Cancellation, failure_note

log = get_logger()


class Outcomes:
    """The outcomes of one store's orders; `accepts`: a ticket is enough to accept an order."""

    def __init__(
        self, books: StoreBooks, presence: PosPresence, effects: OrderEffects, *, accepts: bool
    ) -> None:
        self._books = books
        self._presence = presence
        self._effects = effects
        self._accepts = accepts

    async def written(self, row: OrderRow, ticket: Ticket) -> None:
        """The POS has the ticket."""
        now_ms = self._books.clock.now_ms()
        await self._books.keep(
            lambda connection: marks.mark_written(
                connection, row, ticket.reference, now_ms, accepts=self._accepts
            ),
        )
        log.info(
            "order.written",
            store=self._books.store,
            order=row.order_id,
            reference=ticket.reference,
            ms=now_ms - row.received_at,
        )
        took_s = (now_ms - row.received_at) / 1000
        self._books.tally.took("time_to_ticket", took_s, store=self._books.store)
        self._over(row.order_id)

    async def printed(self, row: OrderRow, *, perhaps_only: bool) -> None:
        """It is on paper instead; `perhaps_only`: the POS may have it too."""
        now_ms = self._books.clock.now_ms()
        why = _why(row)
        reference = PERHAPS_ON_PAPER_ONLY if perhaps_only else ON_PAPER
        self.tell_on_paper(row)  # first: who finds it on paper may be done with it at once
        await self._books.keep(
            lambda connection: marks.mark_on_paper(
                connection, row, reference, why, now_ms, accepts=self._accepts
            )
        )
        log.warning("order.on_paper", store=self._books.store, order=row.order_id)
        self._over(row.order_id)

    def tell_on_paper(self, row: OrderRow) -> None:
        """Let a person know, also of one from before a crash: it stays until it is handled."""
        self._books.desk.open(
            "order.not_in_till", self._books.store, row.order_id, order=row.order_id, why=_why(row)
        )

    async def not_written(self, row: OrderRow, failure: PosFailure) -> bool:
        """The POS does not have it yet; return whether it still waits for the POS."""
        note = failure_note(failure)
        now_ms = self._books.clock.now_ms()
        waits = await self._books.keep(
            lambda connection: marks.mark_failed(connection, row, note, now_ms)
        )
        if note != row.last_failure:
            log.warning("order.wait", store=self._books.store, order=row.order_id, reason=note)
        return waits

    def tell_not_written(self, row: OrderRow, failure: PosFailure) -> None:
        """Let a person know: it has failed too often."""
        self._books.desk.open(
            "order.not_written",
            self._books.store,
            row.order_id,
            order=row.order_id,
            detail=failure.message or failure_note(failure),
        )

    async def to_cancel(
        self, row: OrderRow, cancelled: Cancellation, *, pos_has_none: bool
    ) -> None:
        """It is to be cancelled."""
        await bring_about(cancelled, self._effects, self._presence)
        now_ms = self._books.clock.now_ms()
        await self._books.keep(
            lambda connection: marks.cancel(
                connection, row, cancelled, now_ms, pos_has_none=pos_has_none
            ),
        )
        log.warning(
            "order.to_cancel",
            store=self._books.store,
            order=row.order_id,
            code=cancelled.code,
        )
        self._over(row.order_id)

    async def withdrawn(self, row: OrderRow, how: marks.HowEnded) -> None:
        """Nothing more is done about the ticket of a cancelled order."""
        store, order_id = self._books.store, row.order_id
        if how == "left_to_person":
            self._books.desk.open("order.not_withdrawn", store, order_id, order=order_id)
        now_ms = self._books.clock.now_ms()
        await self._books.keep(
            lambda connection: marks.mark_withdrawn(connection, row, now_ms, how=how),
        )
        log.info("order.withdrawn", store=store, order=order_id, how=how)
        self._books.desk.close("order.not_in_till", store, order_id)

    def _over(self, order_id: str) -> None:
        """End what a person was told of an order that was not in the POS."""
        for problem in ("order.not_written", "order.held"):
            self._books.desk.close(problem, self._books.store, order_id)


def _why(row: OrderRow) -> str:
    """Return why the till does not have it, in its own words."""
    return row.last_failure.partition(": ")[2] or row.last_failure or _("it did not answer")
