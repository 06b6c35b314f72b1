"""The orders of one store, from its inbox to its POS and back to the service.

    inbox ─ intake ─▶ orders ─ writer ─▶ POS ─ updates ─▶ orders ─ notifier ─▶ service

Each worker leaves what it knows in the ledger before it does the next thing, so that any of them
can be cut off anywhere; `run` first takes up all that is open.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge.config import StoreSettings
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Ends, Scope
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow
from tillbridge.model.order import ReasonCode
from tillbridge.orders.commit import OrderRepository, end_unseen, report_all
from tillbridge.orders.intake import Delivered, Intake, IntakePolicy, NewOrder, TakenIn
from tillbridge.orders.notifier import ServiceNotifier
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.problems import OF_ONE, OF_SEVERAL
from tillbridge.orders.reconciler import TicketReconciler
from tillbridge.orders.staff import StaffRequests
from tillbridge.orders.state import ByHand, Change, Lapsed, decide
from tillbridge.orders.ticket_writer import TicketWriter, WritePolicy
from tillbridge.orders.tickets import FALLBACK_CODES, FallbackPrinter
from tillbridge.orders.updates import UpdateReader
from tillbridge.orders.write_queue import Patience

if TYPE_CHECKING:
    from tillbridge.daemon.effects import Effects
    from tillbridge.pos.runner import PosRunner
    from tillbridge.service.client import ServiceClient

log = get_logger()

_TIDY_EVERY_S = 600.0
_FALLBACK_EVERY_S = 60.0
_PROBLEM_KEPT_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class OrderPeers:
    """Whom one store's orders deal with: its POS, the service, and what an order brings about."""

    pos: "PosRunner"
    service: "ServiceClient"
    effects: "Effects"
    fallback: "PosRunner | None" = None  # the printer that stands in for the POS


class OrdersFlow:
    """One store's orders. `run` is supervised; everything else is called from the event loop."""

    def __init__(
        self,
        settings: StoreSettings,
        repository: OrderRepository,
        peers: OrderPeers,
        *,
        late_report_s: float = 900.0,
    ) -> None:
        self._settings = settings
        self._orders = repository
        self._peers = peers
        self._listener: Callable[[TakenIn], None] | None = None
        chosen = settings.orders
        self._intake = Intake(
            IntakePolicy(
                store=repository.store,
                currency=settings.currency,
                auto_accept_orders=settings.auto_accept_orders,
                unknown_item=chosen.unknown_item,
                price_differs=chosen.price_differs,
            ),
            repository,
        )
        self._presence = PosPresence(repository, peers.pos, peers.effects)
        self._notifier = ServiceNotifier(
            repository,
            peers.service,
            auto_accepted=settings.auto_accept_orders,
            late_report_s=late_report_s,
        )
        self._paper = None
        if settings.fallback is not None and peers.fallback is not None:
            self._paper = FallbackPrinter(repository, peers.fallback, settings.fallback.after_s)
        self._writer = TicketWriter(
            repository,
            WritePolicy(
                Patience(chosen.accept, chosen.accept_within_s, chosen.unconfirmed_reason),
                chosen.retry_s,
                chosen.retry_cap_s,
            ),
            peers.pos,
            self._presence,
            self._paper,
        )
        self._updates = UpdateReader(repository, peers.pos, self._presence, self._order_changed)

        self._reconciler = TicketReconciler(
            repository, peers.pos, self._presence, self._updates.take
        )
        self._staff = StaffRequests(repository, self._presence, self._writer, self._notifier)
        repository.listeners.append(self._changed)

    # -- what others tell it

    def on_taken_in(self, listener: Callable[[TakenIn], None]) -> None:
        """Hand each delivery that was taken in to `listener` too, which returns at once."""
        self._listener = listener

    def deliveries_arrived(self) -> None:
        """Look into the inbox: something was committed for this store."""
        self._intake.deliveries_arrived()

    def updates_changed(self) -> None:
        """Read the POS's news now, without waiting for the next poll."""
        self._updates.look()

    def pos_changed(self) -> None:
        """Probe the POS now: it says that it has gone or come back."""
        self._presence.probe_soon()

    def service_back(self) -> None:
        """Tell at once what waits: the service answers again, or the merchant has consented."""
        self._notifier.service_back()

    @property
    def pos_online(self) -> bool:
        """Whether the POS can be reached, as far as is known."""
        return self._presence.online

    @property
    def pos_seen_at(self) -> int | None:
        """When the POS was last found there, ms since the epoch; None: not since the start."""
        return self._presence.seen_at

    @property
    def behind_since(self) -> float | None:
        """Since when (monotonic, s) the inbox holds what is not taken in; None: nothing waits."""
        return self._intake.behind_since

    # -- its life

    async def run(self) -> None:
        """Take up what is open, then work until cancelled. One step that fails stops no other."""
        run, attempt = self._orders.supervisor.run, self._orders.supervisor.attempt
        await attempt("presence", partial(self._presence.probe, anything_to_write=True))
        if self._peers.pos.tells_updates:
            await attempt("updates", self._updates.read)
        await self._take_up()
        async with asyncio.TaskGroup() as group:
            group.create_task(run("intake", self._take_in), name="intake")
            group.create_task(run("writer", self._writer.run), name="writer")
            group.create_task(run("notifier", self._notifier.run), name="notifier")
            group.create_task(run("presence", self._watch_presence), name="presence")
            if self._peers.pos.tells_updates:
                every_s = self._settings.pos.poll_s
                updates = partial(self._updates.run, every_s)
                group.create_task(run("updates", updates), name="updates")
            reconcile = partial(self._reconciler.run, self._settings.pos.poll_s)
            group.create_task(run("reconciler", reconcile), name="reconciler")
            if self._paper is not None:
                watch = partial(self._paper.watch, _FALLBACK_EVERY_S)
                group.create_task(run("fallback", watch), name="fallback")
            group.create_task(run("tidy", self._tidy_up), name="tidy")

    async def drain(self) -> None:
        """Begin nothing more; return once no call to the POS or the service is under way.

        The caller bounds the wait, and cancels `run` afterwards. Whatever is cut off is taken up
        at the next start.
        """
        await asyncio.gather(self._writer.drain(), self._notifier.drain())

    # -- what a person asks for

    async def retry(self, order_id: str, *, by: str = "staff") -> str:
        """Try at once what is left to do for the order; see `StaffRequests.retry`."""
        return await self._staff.retry(order_id, by=by)

    async def cancel(self, order_id: str, code: ReasonCode, *, by: str = "staff") -> str:
        """Cancel the order, in the POS too where it can; see `StaffRequests.cancel`."""
        return await self._staff.cancel(order_id, code, by=by)

    async def done(self, order_id: str, how: ByHand, *, by: str = "staff") -> str:
        """Leave the order to a person; see `StaffRequests.done`."""
        return await self._staff.done(order_id, how, by=by)

    # -- inside

    async def _take_up(self) -> None:
        """Take up every open order where the last life of the process left it."""
        rows = await self._orders.ledger.read(
            lambda connection: orders.open_orders(connection, self._orders.store)
        )
        if self._paper is None:  # the last life had one, perhaps in trouble
            self._orders.desk.report(Scope(self._orders.store, FALLBACK_CODES), [])
        for row in rows:
            self._order_changed(row)
        if rows:
            log.info("orders.taken_up", store=self._orders.store, count=len(rows))

    async def _take_in(self) -> None:
        await self._intake.run(self._taken_in)

    async def _watch_presence(self) -> None:
        await self._presence.run(
            self._settings.pos.health_s, self._writer.anything_to_write, self._writer.pos_there
        )

    async def _taken_in(self, taken: TakenIn) -> None:
        self._let_know(taken)
        match taken:
            case NewOrder(row=row, order=order, cancelled=cancelled):
                self._notifier.order_is_new(row.order_id)
                if cancelled is None:
                    self._writer.take(row, order=order)
                else:
                    await self._presence.cancelled(cancelled)
                    self._notifier.take(row)
            case Delivered(row=row) if row is not None:
                self._order_changed(row)
            case _:
                pass

    def _let_know(self, taken: TakenIn) -> None:
        """Hand the delivery to the listener, whose failure must not cost the order."""
        if self._listener is not None:
            try:
                self._listener(taken)
            except Exception as failure:  # noqa: BLE001 -- (as above)
                self._orders.supervisor.failed("listener", failure)
            else:
                self._orders.supervisor.works("listener")

    def _changed(self, change: Change) -> None:
        self._order_changed(change.after)

    def _order_changed(self, row: OrderRow) -> None:
        self._writer.take(row)
        self._notifier.take(row)

    async def _report_all(self) -> None:
        """Report the problems of all orders anew; what no longer counts is not found any more."""
        store, currency = self._orders.store, self._settings.currency
        now_ms = self._orders.clock.now_ms()

        def is_over(code: str, row: OrderRow) -> bool:
            what = row.unseen[code]
            if code == "order.other_currency" and what.get("theirs") == currency:
                return True
            at = what.get("at")
            old = not isinstance(at, int) or now_ms - at > _PROBLEM_KEPT_MS
            return old and PROBLEMS[code].ends is Ends.DAY

        def job(connection: Connection) -> None:
            end_unseen(connection, store, now_ms, is_over)
            report_all(connection, store, now_ms)

        await self._orders.write(job)

    async def _tidy_up(self) -> None:
        while True:
            await self.tidy()
            await asyncio.sleep(_TIDY_EVERY_S)

    async def tidy(self) -> None:
        """Close what is over and was never closed, and end what nobody has seen for a day."""
        now_ms = self._orders.clock.now_ms()
        rows = await self._orders.ledger.read(
            lambda connection: orders.open_orders(connection, self._orders.store)
        )
        over = [row for row in rows if decide(row, Lapsed(), now_ms).entries]
        for row in over:
            await self._orders.commit(row.order_id, Lapsed())
        if over:
            log.info("orders.closed", store=self._orders.store, count=len(over))
        await self._report_all()
        for problem in self._orders.desk.current():
            if (
                problem.kind.ends is Ends.DAY
                and problem.code not in OF_ONE | OF_SEVERAL  # they follow from the orders
                and problem.store == self._orders.store
                and now_ms - problem.since > _PROBLEM_KEPT_MS
            ):
                self._orders.desk.close(problem.code, problem.store, problem.subject)
