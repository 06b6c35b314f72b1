"""The orders of one store, from its inbox to its POS and back to the service.

    inbox ─ intake ─▶ orders ─ writer ─▶ POS ─ updates ─▶ orders ─ notifier ─▶ service

Each worker leaves what it knows in the ledger before it does the next thing, so that any of them
can be cut off anywhere; `run` first takes up all that is open. What a worker has to do next it
takes from the changes that are committed, and from nothing else.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Ends
from tillbridge.core.worker import Worker
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders import tickets
from tillbridge.orders.intake import Intake, TakenIn
from tillbridge.orders.notifier import ServiceNotifier
from tillbridge.orders.reasons import ByPerson, cancellation
from tillbridge.orders.reconciler import PosPresence, TicketReconciler, UpdateReader
from tillbridge.orders.repository import (
    OF_ONE,
    OF_SEVERAL,
    OrderRepository,
    SetAside,
    display_name,
    end_unseen,
    report_all,
)
from tillbridge.orders.state import (
    FINAL,
    ByHand,
    Call,
    Change,
    Handled,
    Lapsed,
    Retried,
    cancel_of,
    decide,
    next_call,
)
from tillbridge.orders.ticket_writer import TicketWriter

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import Effects

log = get_logger()

_TIDY_EVERY_S = 600.0
_FALLBACK_EVERY_S = 60.0
_PROBLEM_KEPT_MS = 24 * 3600 * 1000


class OrdersFlow:
    """One store's orders. `run` is supervised; everything else is called from the event loop.

    `effects` brings about elsewhere what follows from orders.
    """

    def __init__(self, context: StoreContext, effects: "Effects") -> None:
        settings, pos = context.settings, context.pos.orders
        self._settings = settings
        self._pos = pos
        self._effects = effects
        self._orders = OrderRepository(context)
        self._orders.on_change = self._dispatch
        self._aside = SetAside("dispatch", self._orders)  # by the order's id
        self._intake = Intake(settings, self._orders, self._taken_in)
        supervisor, clock = context.supervisor, context.bridge.clock
        self._probing = Worker("presence", self._probe, supervisor, clock)
        self._reading = Worker("updates", self._read_updates, supervisor, clock)
        self._reconciling = Worker("reconciler", self._reconcile, supervisor, clock)
        self._checking = Worker("fallback", self._check_fallback, supervisor, clock)
        self._tidying = Worker("tidy", self.tidy, supervisor, clock)
        self._redispatching = Worker("dispatch", self._dispatch_again, supervisor, clock)
        self._presence = PosPresence(self._orders, pos, effects, self._probing.wake)
        self._notifier = ServiceNotifier(
            self._orders,
            context.service,
            auto_accepted=settings.auto_accept_orders,
            late_report_s=context.bridge.settings.service.late_report_s,
        )
        self._paper = None
        if settings.fallback is not None and context.pos.fallback is not None:
            self._paper = tickets.FallbackPrinter(
                self._orders, context.pos.fallback, settings.fallback.after_s
            )
        self._writer = TicketWriter(self._orders, settings, pos, self._presence, self._paper)
        self._updates = UpdateReader(self._orders, pos, self._presence)
        self._reconciler = TicketReconciler(self._orders, pos, self._presence, self._updates)
        # What happened since: the inbox, news of the POS, and the service that is back.
        self.deliveries_arrived = self._intake.deliveries_arrived
        self.updates_changed = self._reading.wake
        self.pos_changed = self._probing.wake
        self.service_back = self._notifier.service_back

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

    async def run(self) -> None:
        """Take up what is open, then work until cancelled. One step that fails stops no other."""
        attempt = self._orders.supervisor.attempt
        await attempt("presence", partial(self._presence.probe, anything_to_write=True))
        if self._pos.tells_updates:
            await attempt("updates", self._updates.read)
        await self._take_up()
        workers = [self._intake.worker, self._writer.worker, *self._notifier.workers]
        workers += [self._probing, self._reconciling, self._tidying, self._redispatching]
        if self._pos.tells_updates:
            workers.append(self._reading)
        if self._paper is not None:
            workers.append(self._checking)
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                worker.wake()
                group.create_task(worker.run(), name=worker.name)

    async def drain(self) -> None:
        """Begin nothing more; return once no call to the POS or the service is under way.

        The caller bounds the wait, and cancels `run` afterwards. Whatever is cut off is taken up
        at the next start.
        """
        await asyncio.gather(self._writer.drain(), self._notifier.drain())

    # -- what follows from what was committed

    def _dispatch(self, change: Change) -> None:
        """Let the workers take their next work from a change; where that fails, again later."""
        try:
            self._writer.take(change)
            self._notifier.take(change)
        except Exception as failure:  # noqa: BLE001 -- it is committed, whatever this is
            order_id = change.after.order_id
            self._aside.failed(order_id, failure, order=order_id)
            self._redispatching.wake()
        else:
            if change.after.order_id in self._aside.waiting:
                self._aside.works(change.after.order_id)

    async def _dispatch_again(self) -> float | None:
        for order_id in self._aside.due():
            row = await self._orders.order(order_id)
            if row is not None:
                self._dispatch(Change(row, row))
        return self._aside.due_in()

    async def _take_up(self) -> None:
        """Take up every open order where the process before this one left it."""
        rows = await self._orders.read(orders.open_orders)
        if self._paper is None:  # there may have been one, perhaps in trouble
            self._orders.report(tickets.OFFLINE)
        for row in rows:
            self._dispatch(Change(row, row))
        if rows:
            log.info("orders.taken_up", store=self._orders.store, count=len(rows))

    async def _taken_in(self, taken: TakenIn) -> None:
        """Bring about elsewhere what follows from a delivery."""
        if taken.cancelled is not None:
            await self._presence.cancelled(taken.cancelled)
        self._effects.taken_in(taken)

    # -- what a person asks for

    async def retry(self, order_id: str, *, by: str = "staff") -> str:
        """Try at once what is left to do for the order; one that was given up is taken up again.

        A call that the service refused is made again. Returns a sentence for whoever asked. Raises
        BridgeError where there is nothing to try.
        """
        row = await self._known(order_id)
        order = display_name(row)
        if row.service_state is OrderState.CANCELLED:
            raise BridgeError(
                _("Order {order} is cancelled at the service.").format(order=order),
                fix=_("Ask the customer to order again."),
            )
        if row.service_state is OrderState.COMPLETED:
            raise BridgeError(_("Order {order} is completed.").format(order=order))
        cancel_again = Call.CANCEL in row.refused
        if row.ticket is TicketState.WITHDRAWN and not cancel_again:
            raise BridgeError(
                _("The ticket of order {order} was taken back out of the till.").format(
                    order=order
                ),
                fix=_("Write it by hand if it is still wanted."),
            )
        reported = is_on_paper(row) or next_call(row.service_state, row.desired_state) is None
        if row.closed_at is not None and row.ticket is TicketState.WRITTEN and reported:
            raise BridgeError(_("Nothing is left to do for order {order}.").format(order=order))
        change = await self._orders.commit(order_id, Retried(by))
        after = row if change is None else change.after
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
        if row.service_state in FINAL:
            raise _over(row)
        cancelled = cancellation(ByPerson(code))
        await self._presence.cancelled(cancelled)
        await self._orders.commit(order_id, cancel_of(cancelled, pos_has_none=False, by=by))
        return _("Order {order} is being cancelled.").format(order=display_name(row))

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
                _("Order {order} does not wait for the till.").format(order=display_name(row)),
                fix=_fix(row),
            )
        await self._orders.commit(order_id, Handled(how, by))
        if how == "typed":
            text = _("Order {order} counts as written by hand; the service is told.")
        else:
            text = _("Order {order} is left to you: the bridge does nothing more for it.")
        return text.format(order=display_name(row))

    async def _known(self, order_id: str) -> OrderRow:
        row = await self._orders.order(order_id)
        if row is None:
            raise BridgeError(
                _("There is no order {order}.").format(order=order_id),
                fix=_("See which there are with: tillbridge orders list"),
            )
        return row

    # -- what comes round; each step returns in how many seconds

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

    async def tidy(self) -> float:
        """Close what is over and was never closed, and end what nobody has seen for a day."""
        now_ms, store = self._orders.clock.now_ms(), self._orders.store
        for row in await self._orders.read(orders.open_orders):
            if decide(row, Lapsed(), now_ms).entries:
                await self._orders.commit(row.order_id, Lapsed())
        await self._orders.write(_report_anew, self._settings.currency, now_ms)
        problems = self._orders.problems
        for problem in problems.current():
            if (
                problem.kind.ends is Ends.DAY
                and problem.code not in OF_ONE | OF_SEVERAL  # they follow from the orders
                and problem.store == store
                and now_ms - problem.since > _PROBLEM_KEPT_MS
            ):
                problems.close(problem.code, store, problem.subject)
        return _TIDY_EVERY_S


def _report_anew(connection: Connection, store: str, currency: str, now_ms: int) -> None:
    """Report the problems of all orders anew; what no longer counts is not found any more."""

    def is_over(code: str, row: OrderRow) -> bool:
        what = row.unseen[code]
        if code == "order.other_currency" and what.get("theirs") == currency:
            return True
        at = what.get("at")
        old = not isinstance(at, int) or now_ms - at > _PROBLEM_KEPT_MS
        return old and PROBLEMS[code].ends is Ends.DAY

    end_unseen(connection, store, now_ms, is_over)
    report_all(connection, store, now_ms)


def _over(row: OrderRow) -> BridgeError:
    return BridgeError(
        _("Order {order} is over already.").format(order=display_name(row)), fix=_fix(row)
    )


def _fix(row: OrderRow) -> str:
    return _("Look at it with: tillbridge orders show {order}").format(order=row.order_id)
