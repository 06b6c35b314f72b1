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
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Ends, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.commit import OrderRepository, end_unseen, report_all
from tillbridge.orders.intake import Delivered, Intake, IntakePolicy, NewOrder, TakenIn
from tillbridge.orders.lifecycle import Call, Standing, is_final, next_call
from tillbridge.orders.notifier import ServiceNotifier
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.problems import OF_ONE, OF_SEVERAL, called
from tillbridge.orders.reasons import ByPerson, cancellation
from tillbridge.orders.reconciler import TicketReconciler
from tillbridge.orders.state import ByHand, Change, Handled, Lapsed, Retried, cancel_of, decide
from tillbridge.orders.ticket_writer import TicketWriter, WritePolicy
from tillbridge.orders.tickets import FALLBACK_CODES, FallbackPrinter
from tillbridge.orders.updates import UpdateReader
from tillbridge.orders.write_queue import Patience

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import Effects
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
            self._taken_in,
        )
        supervisor, clock = repository.supervisor, repository.clock
        self._probing = Worker("presence", self._probe, supervisor, clock)
        self._reading = Worker("updates", self._read_updates, supervisor, clock)
        self._reconciling = Worker("reconciler", self._reconcile, supervisor, clock)
        self._checking = Worker("fallback", self._check_fallback, supervisor, clock)
        self._tidying = Worker("tidy", self._tidy, supervisor, clock)
        self._presence = PosPresence(repository, peers.pos, peers.effects, self._probing.wake)
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
        self._reading.wake()

    def pos_changed(self) -> None:
        """Probe the POS now: it says that it has gone or come back."""
        self._probing.wake()

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
        attempt = self._orders.supervisor.attempt
        await attempt("presence", partial(self._presence.probe, anything_to_write=True))
        if self._peers.pos.tells_updates:
            await attempt("updates", self._updates.read)
        await self._take_up()
        async with asyncio.TaskGroup() as group:
            self._notifier.begin(group)
            workers = [self._intake.worker, self._writer.worker, self._notifier.worker]
            workers += [self._probing, self._reconciling, self._tidying]
            if self._peers.pos.tells_updates:
                workers.append(self._reading)
            if self._paper is not None:
                workers.append(self._checking)
            for worker in workers:
                worker.wake()
                group.create_task(worker.run(), name=worker.name)

    async def drain(self) -> None:
        """Begin nothing more; return once no call to the POS or the service is under way.

        The caller bounds the wait, and cancels `run` afterwards. Whatever is cut off is taken up
        at the next start.
        """
        await asyncio.gather(self._writer.drain(), self._notifier.drain())

    # -- what a person asks for

    async def retry(self, order_id: str, *, by: str = "staff") -> str:
        """Try at once what is left to do for the order; one that was given up is taken up again.

        A call that the service refused is made again. Returns a sentence for whoever asked. Raises
        BridgeError where there is nothing to try.
        """
        row = await self._known(order_id)
        order = called(row)
        if row.service_state is OrderState.CANCELLED:
            raise BridgeError(
                _("Order {order} is cancelled at the service.").format(order=order),
                fix=_("Ask the customer to order again."),
            )
        if row.service_state is OrderState.COMPLETED:
            raise BridgeError(_("Order {order} is completed.").format(order=order))
        cancel_again = Call.CANCEL.value in row.refused
        if row.ticket is TicketState.WITHDRAWN and not cancel_again:
            raise BridgeError(
                _("The ticket of order {order} was taken back out of the till.").format(
                    order=order
                ),
                fix=_("Write it by hand if it is still wanted."),
            )
        if row.closed_at is not None and row.ticket is TicketState.WRITTEN and _all_reported(row):
            raise BridgeError(_("Nothing is left to do for order {order}.").format(order=order))
        change = await self._orders.commit(order_id, Retried(by))
        log.info("order.retried", store=self._orders.store, order=order_id)
        after = row if change is None else change.after
        self._writer.take(after, afresh=True)
        self._notifier.service_back()
        self._notifier.take(after)
        if cancel_again:
            return _("The service is asked once more to cancel order {order}.").format(order=order)
        if after.ticket in UNWRITTEN:
            return _("Order {order} is being written to the till.").format(order=order)
        return _("Order {order} is being told to the service.").format(order=order)

    async def cancel(self, order_id: str, code: ReasonCode, *, by: str = "staff") -> str:
        """Cancel the order, in the POS too where it can; return a sentence for whoever asked.

        Raises BridgeError where the service has finished it already.
        """
        row = await self._known(order_id)
        if is_final(row.service_state):
            raise _over(row)
        cancelled = cancellation(ByPerson(code))
        await self._presence.cancelled(cancelled)
        await self._orders.commit(order_id, cancel_of(cancelled, pos_has_none=False, by=by))
        log.warning("order.to_cancel", store=self._orders.store, order=order_id, code=code)
        return _("Order {order} is being cancelled.").format(order=called(row))

    async def done(self, order_id: str, how: ByHand, *, by: str = "staff") -> str:
        """Stop trying: `by` has typed the order into the till, or settled it in some other way.

        Returns a sentence for whoever asked. Raises BridgeError where it is over already, or the
        till has the ticket that was "typed".
        """
        row = await self._known(order_id)
        on_paper = is_on_paper(row)
        if row.closed_at is not None and not on_paper and not row.unseen:
            raise _over(row)
        waits = (row.ticket in UNWRITTEN and row.closed_at is None) or on_paper
        if how == "typed" and (not waits or row.desired_state is OrderState.CANCELLED):
            raise BridgeError(
                _("Order {order} does not wait for the till.").format(order=called(row)),
                fix=_fix(row),
            )
        await self._orders.commit(order_id, Handled(how, by))
        log.warning("order.handled", store=self._orders.store, order=order_id, how=how)
        if how == "typed":
            return _("Order {order} counts as written by hand; the service is told.").format(
                order=called(row)
            )
        return _("Order {order} is left to you: the bridge does nothing more for it.").format(
            order=called(row)
        )

    # -- inside

    async def _known(self, order_id: str) -> OrderRow:
        row = await self._orders.order(order_id)
        if row is None:
            raise BridgeError(
                _("There is no order {order}.").format(order=order_id),
                fix=_("See which there are with: tillbridge orders list"),
            )
        return row

    async def _take_up(self) -> None:
        """Take up every open order where the last life of the process left it."""
        rows = await self._orders.ledger.read(
            lambda connection: orders.open_orders(connection, self._orders.store)
        )
        if self._paper is None:  # the last life had one, perhaps in trouble
            self._orders.tracker.report(Scope(self._orders.store, FALLBACK_CODES), [])
        for row in rows:
            self._order_changed(row)
        if rows:
            log.info("orders.taken_up", store=self._orders.store, count=len(rows))

    async def _probe(self) -> float:
        await self._presence.probe(anything_to_write=self._writer.anything_to_write())
        if self._presence.probe_ok:
            self._writer.pos_there()
        return self._settings.pos.health_s

    async def _read_updates(self) -> float:
        await self._updates.read()
        return self._settings.pos.poll_s

    async def _reconcile(self) -> float:
        await self._reconciler.reconcile()
        return self._settings.pos.poll_s

    async def _check_fallback(self) -> float:
        if self._paper is not None:
            await self._paper.check()
        return _FALLBACK_EVERY_S

    async def _tidy(self) -> float:
        await self.tidy()
        return _TIDY_EVERY_S

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
        for problem in self._orders.tracker.current():
            if (
                problem.kind.ends is Ends.DAY
                and problem.code not in OF_ONE | OF_SEVERAL  # they follow from the orders
                and problem.store == self._orders.store
                and now_ms - problem.since > _PROBLEM_KEPT_MS
            ):
                self._orders.tracker.close(problem.code, problem.store, problem.subject)


def _all_reported(row: OrderRow) -> bool:
    """Return whether the service knows all that was wanted, or nobody is to tell it any more."""
    standing = Standing(row.service_state, frozenset({row.service_state}))
    return is_on_paper(row) or next_call(standing, row.desired_state) is None


def _over(row: OrderRow) -> BridgeError:
    return BridgeError(_("Order {order} is over already.").format(order=called(row)), fix=_fix(row))


def _fix(row: OrderRow) -> str:
    return _("Look at it with: tillbridge orders show {order}").format(order=row.order_id)
