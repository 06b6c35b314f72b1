"""The orders of one store, from its inbox to its POS and back to the service.

    inbox ─ intake ─▶ orders ─ writer ─▶ POS ─ updates ─▶ orders ─ notifier ─▶ service

Each worker leaves what it knows in the ledger before it does the next thing, so that any of them
can be cut off anywhere; `run` first resumes all that is open. What a worker has to do next it
takes from the changes that are committed, and from nothing else.
"""

import asyncio
import shlex
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Ends, Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger.models import OrderRow, TicketState
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper, was_never_written
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders import events, state
from tillbridge.orders.intake import Intake, IntakeResult
from tillbridge.orders.notifier import ServiceNotifier
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import ByPerson, cancellation
from tillbridge.orders.reconciler import TicketReconciler, UpdateReader
from tillbridge.orders.repository import (
    OF_ONE,
    OF_SEVERAL,
    PROBLEM_STAYS_MS,
    OrderRepository,
    display_name,
    end_what_is_over,
    publish,
)
from tillbridge.orders.ticket_writer import TicketWriter
from tillbridge.orders.views import no_such_order, possible_actions

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.pos.runner import PosRunner

log = get_logger()

_TIDY_EVERY_S = 600.0
_FALLBACK_EVERY_S = 60.0
_FALLBACK_OFFLINE = "fallback.offline"
_LOOK = _("See it with: tillbridge orders show {order}")


class OrdersFlow:
    """One store's orders. `run` is supervised; everything else is called from the event loop.

    `effects` brings about elsewhere what follows from orders.
    """

    def __init__(self, context: StoreContext, effects: "StoreServices") -> None:
        self._currency = context.settings.currency
        self._effects = effects
        self._orders = OrderRepository(context)
        self._orders.on_change = self._dispatch
        self._undispatched: set[str] = set()  # orders with a change that no worker knows of
        supervisor, clock = context.supervisor, context.bridge.clock
        self._effecting = Worker("effects", self._apply_effects, supervisor, clock)
        self._tidying = Worker("tidy", self.tidy, supervisor, clock)
        self._redispatching = Worker("dispatch", self._dispatch_again, supervisor, clock)
        self.intake = Intake(context.settings, self._orders, self._effecting.wake)
        self._notifier = ServiceNotifier(context, self._orders)
        self.presence = PosPresence(context, self._orders, effects)
        self._writer = TicketWriter(context, self._orders, self.presence)
        self._updates = UpdateReader(context, self._orders, self.presence)
        self._reconciler = TicketReconciler(context, self._orders, self.presence, self._updates)
        self._reads_updates = context.pos.orders.reports_updates
        self._paper: PosRunner | None = self._writer.paper
        self._paper_ready: bool | None = None  # as was last logged
        # What happened since: the inbox, news of the POS, and the service that is back.
        self.deliveries_arrived = self.intake.deliveries_arrived
        self.updates_changed = self._updates.worker.wake
        self.updates_are_watched = self._updates.is_woken_by_files
        self.pos_changed = self.presence.worker.wake
        self.service_back = self._notifier.service_back
        self.close = self._orders.close

    async def run(self) -> None:
        """Resume what is open, then work until cancelled. One step that fails stops no other."""
        await self._resume()
        supervisor = self._orders.supervisor
        async with asyncio.TaskGroup() as group:

            def start(*workers: Worker) -> None:
                for worker in workers:
                    worker.wake()
                    group.create_task(worker.run(), name=worker.name)

            start(self.intake.worker, self._effecting)  # the inbox waits for no till that is slow
            await supervisor.attempt("presence", self.presence.probe)
            if self._reads_updates:
                await supervisor.attempt("updates", self._updates.read)
                start(self._updates.worker)
            start(self._writer.worker, *self._notifier.workers, self.presence.worker)
            start(self._reconciler.worker, self._tidying, self._redispatching)
            if self._paper is not None:
                check = partial(self._check_fallback, self._paper)
                start(Worker("fallback", check, supervisor, self._orders.clock))

    async def drain(self) -> None:
        """Begin nothing more; return once no call to the POS or the service is under way.

        The caller bounds the wait, and cancels `run` afterwards. Whatever is cut off is resumed at
        the next start.
        """
        calling = (self._writer.worker, *self._notifier.workers)
        await asyncio.gather(*(each.drain() for each in calling))

    # -- what follows from what was committed

    def _dispatch(self, change: state.Change) -> None:
        """Let the workers take their next work from a change; where that fails, again later."""
        order_id = change.after.order_id
        try:
            self._writer.update(change)
            self._notifier.update(change)
            if was_never_written(change.after):  # a ticket may come late
                self._reconciler.worker.wake()
        except Exception as failure:  # noqa: BLE001 -- it is committed, whatever this is
            pause_s = self._orders.supervisor.failed("dispatch", failure, order=order_id)
            self._undispatched.add(order_id)
            self._redispatching.wake_in(pause_s)
        else:
            self._undispatched.discard(order_id)
            self._orders.supervisor.works("dispatch", order=order_id)

    async def _dispatch_again(self) -> None:
        if self._undispatched:
            await self._orders.write(publish, *self._undispatched)

    async def _resume(self) -> None:
        """Resume every open order where the process before this one left it."""
        rows = await self._orders.write(publish)
        if self._paper is None:  # there may have been one, perhaps in trouble
            self._orders.report(_FALLBACK_OFFLINE)
        if (row := next(filter(_is_cancelled_for_prices, rows), None)) is not None:
            # The process may have ended before the menu was synchronised: rather twice than never.
            again = events.CancelRequested(
                ReasonCode.PRICE_MISMATCH, row.message, price_mismatch=True
            )
            change = state.Change(row, row, event=again)
            self.intake.results.append(IntakeResult("resumed", "order.created", change))
        if rows:
            log.info("orders.resumed", store=self._orders.store, count=len(rows))

    async def _apply_effects(self) -> None:
        """Bring about elsewhere what follows from deliveries; what fails is tried again."""
        results = self.intake.results
        while results:
            result = results.popleft()
            try:
                event = None if result.change is None else result.change.event
                if isinstance(event, events.CancelRequested):
                    await self.presence.cancelled(event)
                self._effects.delivery_processed(result)
            except BaseException:
                results.append(result)  # behind the others, which it must not hold up
                raise

    # -- what a person asks for

    async def retry(self, order_id: str, *, by: str = "staff") -> str:
        """Try at once what is left to do for the order; one that was given up is begun again.

        A call that the service refused is made again. Returns a sentence for whoever asked. Raises
        BridgeError where there is nothing to try.
        """
        row = await self._known(order_id)
        if row.service_state is OrderState.CANCELLED:
            fix = _("Ask the customer to order again.")
            raise _refusal(row, _("Order {order} is cancelled at the ordering service."), fix)
        if row.service_state is OrderState.COMPLETED:
            raise _refusal(row, _("Order {order} is completed."))
        cancel_again = events.Call.CANCEL in row.refused
        if row.ticket is TicketState.WITHDRAWN and not cancel_again:
            text = _("The ticket of order {order} was removed from the till.")
            raise _refusal(row, text, _("Enter it by hand if it is still wanted."))
        reported = is_on_paper(row) or not state.next_call(row.service_state, row.desired_state)
        if row.closed_at is not None and row.ticket is TicketState.WRITTEN and reported:
            raise _refusal(row, _("There is nothing left to do for order {order}."))
        change = await self._orders.commit(order_id, events.Retried(by))
        after = row if change is None else change.after
        if cancel_again:
            text = _("The ordering service is asked again to cancel order {order}.")
        elif after.ticket in UNWRITTEN:
            text = _("Order {order} is being written to the till.")
        else:
            text = _("Order {order} is being reported to the ordering service.")
        return text.format(order=display_name(row))

    async def cancel(self, order_id: str, code: ReasonCode, *, by: str = "staff") -> str:
        """Cancel the order, in the POS too where it can; return a sentence for whoever asked.

        Raises BridgeError if the service has finished it already.
        """
        row = await self._known(order_id)
        if row.service_state in state.FINAL:
            raise _refusal(row, _("Order {order} is already closed."), _LOOK)
        wanted = cancellation(ByPerson(code, by))
        await self.presence.cancelled(wanted)
        await self._orders.commit(order_id, wanted)
        return _("Order {order} is being cancelled.").format(order=display_name(row))

    async def done(self, order_id: str, how: events.ByHand, *, by: str = "staff") -> str:
        """Stop trying: `by` has typed the order into the till, or settled it in some other way.

        Returns a sentence for whoever asked. Raises BridgeError if it is over already, or the
        till has the ticket that was "typed".
        """
        row = await self._known(order_id)
        may = possible_actions(row)
        if not may["settled"]:
            raise _refusal(row, _("Order {order} is already closed."), _LOOK)
        if not may[how]:
            raise _refusal(row, _("Order {order} is not waiting for the till."), _LOOK)
        await self._orders.commit(order_id, events.Handled(how, by))
        if how == "typed":
            text = _("Order {order} counts as entered by hand and is reported as accepted.")
        else:
            text = _("Order {order} is left to you: the bridge does nothing more.")
        return text.format(order=display_name(row))

    async def _known(self, order_id: str) -> OrderRow:
        row = await self._orders.order(order_id)
        if row is None:
            raise no_such_order(order_id)
        return row

    # -- what comes round; each step returns in how many seconds

    async def _check_fallback(self, paper: "PosRunner") -> float:
        """Report whether the printer could stand in now."""
        health = await paper.health()
        if health.online is not self._paper_ready:
            self._paper_ready = health.online
            event = "fallback.ready" if health.online else _FALLBACK_OFFLINE
            write = log.info if health.online else log.warning
            write(event, store=self._orders.store, detail=health.detail)
        found = Found(_FALLBACK_OFFLINE, detail={"detail": health.detail or "?"})
        self._orders.report(_FALLBACK_OFFLINE, *([] if health.online else [found]))
        return _FALLBACK_EVERY_S

    async def tidy(self) -> float:
        """Close what is over and was never closed, and end what nobody has seen for a day."""
        now_ms = self._orders.clock.now_ms()
        await self._orders.write(end_what_is_over, self._currency, now_ms)
        problems = self._orders.problems
        for problem in problems.current():
            if (
                problem.kind.ends is Ends.DAY
                and problem.code not in OF_ONE | OF_SEVERAL  # they follow from the orders
                and problem.store == self._orders.store
                and now_ms - problem.since > PROBLEM_STAYS_MS
            ):
                problems.report(Scope.of_one(*problem.key), ())
        return _TIDY_EVERY_S


def _is_cancelled_for_prices(row: OrderRow) -> bool:
    """Return whether the policy has cancelled the order, and the service may not know it yet."""
    return bool(row.unseen.get(state.CANCELLED_UNSEEN, {}).get("cause") == "price_differs")


def _refusal(row: OrderRow, text: str, fix: str = "") -> BridgeError:
    return BridgeError(
        text.format(order=display_name(row)),
        fix=fix.format(order=shlex.quote(str(display_name(row)))),
    )
