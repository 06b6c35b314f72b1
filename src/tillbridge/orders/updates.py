"""What the POS tells of its tickets: kept in the ledger first, then confirmed to the adapter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge.adapter import BadRow, PosFailure, TicketStatus, TicketUpdate
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.supervision import backoff_s
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow
from tillbridge.orders.commit import OrderRepository, commit, report_unknown
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import Cancellation, cancellation, failure_note
from tillbridge.orders.state import PosSaid, cancel_of

if TYPE_CHECKING:
    from tillbridge.pos.runner import PosRunner

log = get_logger()

_UNREADABLE = "pos.update_unreadable"


@dataclass(frozen=True, slots=True)
class KeptUpdate:
    """What became of a piece of news: the order as it is now, and whether it was news."""

    row: OrderRow
    news: bool


def keep_update(
    connection: Connection,
    store: str,
    update: TicketUpdate,
    cancelled: Cancellation | None,
    now_ms: int,
) -> KeptUpdate | None:
    """Keep what the POS told; None where the order is not known. Told twice, it counts once."""
    row = orders.get_order(connection, store, update.order_id)
    if row is None:
        report_unknown(connection, store, update.order_id, now_ms, unknown=True)
        return None
    event = f"ticket.{update.status}"
    news = not orders.has_event(connection, store, update.order_id, event)
    if news:
        why = {"reason": update.reason, "message": update.message} if update.reason else {}
        orders.log_event(connection, store, update.order_id, event, now_ms, **why)
    change = commit(
        connection,
        store,
        update.order_id,
        PosSaid(update.status) if cancelled is None else cancel_of(cancelled, pos_has_none=True),
        now_ms,
    )
    return KeptUpdate(row if change is None else change.after, news)


class UpdateReader:
    """Reads and commits the POS's news."""

    def __init__(
        self,
        repository: OrderRepository,
        pos: "PosRunner",
        presence: PosPresence,
        on_change: Callable[[OrderRow], None],
    ) -> None:
        self._orders = repository
        self._pos = pos
        self._presence = presence
        self._on_change = on_change
        self._failing = ""
        self._set_aside: dict[str, tuple[int, float]] = {}  # failures and next try, by its key

    async def read(self) -> None:
        """Read and keep all there is."""
        try:
            for update in await self._pos.read_updates():
                await self._handle(update)
            self._report_unreadable(await self._pos.unreadable_updates())
        except PosFailure as failure:
            note = failure_note(failure)
            if note != self._failing:
                self._failing = note
                log.warning("pos.updates_failed", store=self._orders.store, reason=note)
        else:
            self._failing = ""

    async def _handle(self, update: TicketUpdate) -> None:
        """Keep the news and confirm it; news at which this fails unexpectedly waits for its time.

        Raises PosFailure.
        """
        now = self._orders.clock.monotonic()
        failures, again_at = self._set_aside.get(update.key, (0, now))
        if again_at > now:
            return
        try:
            await self.take(update)
        except LedgerError:
            raise
        except Exception as failure:  # noqa: BLE001 -- one piece of news must not stop the others
            failures += 1
            self._set_aside[update.key] = (failures, now + backoff_s(failures))
            self._orders.supervisor.failed("updates", failure, order=update.order_id)
            return
        if self._set_aside.pop(update.key, None) is not None:
            self._orders.supervisor.works("updates", order=update.order_id)
        await self._pos.update_handled(update)

    def _report_unreadable(self, bad: Sequence[BadRow]) -> None:
        """Let a person know of news that nobody could understand, for as long as it lies there."""
        self._orders.tracker.report(
            Scope(self._orders.store, frozenset({_UNREADABLE})),
            [
                Found(_UNREADABLE, each.place, {"detail": f"{each.place}: {each.text}"})
                for each in bad
            ],
        )

    async def take(self, update: TicketUpdate) -> None:
        """Keep a piece of news, and bring about what follows from it."""
        store, order_id = self._orders.store, update.order_id
        cancelled = cancellation(update) if update.status is TicketStatus.REJECTED else None
        if cancelled is not None:
            row = await self._orders.order(order_id)
            if row is not None and row.closed_at is None:
                await self._presence.cancelled(cancelled)
        now_ms = self._orders.clock.now_ms()
        kept = await self._orders.write(
            lambda connection: keep_update(connection, store, update, cancelled, now_ms)
        )
        if kept is None:
            log.warning("ticket.unknown_order", store=store, order=order_id, status=update.status)
            return
        if kept.news:
            reason = None if cancelled is None else cancelled.code
            event = f"ticket.{update.status}"
            log.info(event, store=store, order=order_id, reason=reason)
        self._on_change(kept.row)
