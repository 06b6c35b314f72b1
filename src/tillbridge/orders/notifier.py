"""Reports the progress of orders to the service: for each order one call after another.

What cannot be reported now is reported later; the orders themselves never wait for it.
Specification: Order lifecycle driven from the POS. No endpoint reads an order, so the bridge
estimates where the service has it: an answer may be lost, the service may accept by itself, or
somebody moves the order by hand. A refusal (409) rules out the state that the call leaves, which
makes the next call the read that the specification does not offer.
"""

import heapq
import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import Conflict, OutcomeUnknown, RateLimited, Refused, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.core.worker import Worker, backoff_s
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.events import (
    Call,
    CallRefused,
    ReportsTooLate,
    Retried,
    ServiceClosed,
    ServiceKnows,
)
from tillbridge.orders.reasons import customer_text
from tillbridge.orders.repository import OrderRepository
from tillbridge.orders.state import FINAL, FORWARD, LEADS_TO, LEAVES, RANK, Change, call_for
from tillbridge.service.answers import NOT_INTEGRATED

log = get_logger()

_AT_ONCE = 4  # calls in flight for one store
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_UNREPORTED_AFTER_S = 30.0
_UNREPORTED = "order.untold"

# Refusals that end when the store is integrated again, or the merchant consents.
_WAITING_CODES = frozenset({NOT_INTEGRATED, "auth.consent_revoked"})
_EVENTS = {
    Call.ACCEPT: "order.accepted",
    Call.PREPARING: "order.preparing",
    Call.READY: "order.ready",
    Call.CANCEL: "order.cancelled",
}


# -- where the service has an order


@dataclass(frozen=True, slots=True)
class StateEstimate:
    """Where the service has an order: `state` is believed, and `possible` all that may be true."""

    state: OrderState
    possible: frozenset[OrderState]

    @property
    def lowest(self) -> OrderState:
        """The state from which the next call leads on."""
        if self.state in self.possible:
            return self.state
        return min(self.possible - FINAL, key=RANK.__getitem__, default=self.state)


def estimate_of_new(*, auto_accepted: bool) -> StateEstimate:
    """Return the estimate for an order that has just arrived.

    The integration may differ from the configuration for a while, so both beginnings are possible.
    """
    return StateEstimate(
        OrderState.ACCEPTED if auto_accepted else OrderState.CREATED,
        frozenset({OrderState.CREATED, OrderState.ACCEPTED}),
    )


def estimate_after_restart(
    state: OrderState, desired: OrderState, *, auto_accepted: bool
) -> StateEstimate:
    """Return the estimate for an order known only by what the ledger says was reported.

    The last call may have been applied without its answer having been stored, so the state it leads
    to is possible too.
    """
    possible = {state}
    if state in FORWARD:
        possible.add(LEADS_TO[FORWARD[state]])
    if auto_accepted and state is OrderState.ACCEPTED:
        possible.add(OrderState.CREATED)
    if desired is OrderState.CANCELLED:
        possible.add(OrderState.CANCELLED)
    return StateEstimate(state, frozenset(possible))


def after_answer(call: Call) -> StateEstimate:
    """Return the estimate once the service has done what `call` asks."""
    return StateEstimate(LEADS_TO[call], frozenset({LEADS_TO[call]}))


def after_lost_answer(estimate: StateEstimate, call: Call) -> StateEstimate:
    """Return the estimate after `call` was sent and nobody knows whether it was applied."""
    return StateEstimate(estimate.state, estimate.possible | {LEADS_TO[call]})


def after_conflict(estimate: StateEstimate, call: Call) -> StateEstimate | None:
    """Return the estimate after 409 order.invalid_transition, or None: the service has closed it.

    A refused accept means accepted or later (somebody, or the service itself, was faster), a
    refused preparing means preparing or later; so the walk goes on. Ready is the last word: where
    that is refused too, and no lost answer explains it, the order is finished or cancelled. So is
    one that cannot be cancelled.
    """
    if call is Call.CANCEL:
        return after_answer(call) if LEADS_TO[call] in estimate.possible else None
    possible = estimate.possible - {LEAVES[call]} - FINAL
    if not possible:
        if call is Call.READY:
            return None
        possible = frozenset({LEADS_TO[call]})
    lowest = min(possible, key=RANK.__getitem__)
    return StateEstimate(max(estimate.state, lowest, key=RANK.__getitem__), possible)


def waits(failure: ServiceError) -> bool:
    """Return whether the same call may succeed later; where not, it never will."""
    if isinstance(failure, Refused):
        return failure.code in _WAITING_CODES
    return not isinstance(failure, Conflict)


# -- the worker


@dataclass(slots=True)
class _Report:
    """What is still to be reported of one open order. Times are monotonic seconds."""

    row: OrderRow  # the newest
    estimate: StateEstimate
    due: float = math.inf  # infinity: there is no call to make
    busy: bool = False
    waiting_since: float | None = None  # since when its call cannot be made
    failures: int = 0  # how often in a row since then
    answer: str = ""  # the last one that is in the order's log


class ServiceNotifier:
    """Reports one store's orders to the service, a few of them at once."""

    def __init__(self, context: StoreContext, repository: OrderRepository) -> None:
        self._orders = repository
        self._clock = repository.clock
        self._service = context.service
        self._auto_accepted = context.settings.auto_accept_orders
        self._late_report_ms = context.bridge.settings.service.late_report_s * 1000
        self._reports: dict[str, _Report] = {}  # of every open order, by its id
        self.workers = [
            Worker("notifier", self._step, repository.supervisor, repository.clock)
            for _number in range(_AT_ONCE)
        ]

    def update(self, change: Change) -> None:
        """Schedule the calls that the order needs after this change."""
        row, auto = change.after, self._auto_accepted
        report = self._reports.get(row.order_id)
        if report is None:
            if row.closed_at is not None:
                return
            estimate = (
                estimate_of_new(auto_accepted=auto)
                if change.before is None
                else estimate_after_restart(
                    row.service_state, row.desired_state, auto_accepted=auto
                )
            )
            report = self._reports[row.order_id] = _Report(row, estimate)
        report.row = row
        if call_for(row, report.estimate.lowest) is None:
            report.due = math.inf
            self._end_wait(report)
            if row.closed_at is not None and not report.busy:
                del self._reports[row.order_id]  # if it is busy, no second call begins beside it
            return
        if report.waiting_since is None or isinstance(change.event, Retried):
            report.due = -math.inf
        self._wake()

    def service_back(self) -> None:
        """Try at once what waits: the service answers again, or the merchant has consented."""
        for report in self._reports.values():
            if report.waiting_since is not None:
                report.due = -math.inf
        self._wake()

    def _wake(self) -> None:
        idle = (each for each in self.workers if each.busy_since is None)
        next(idle, self.workers[0]).wake()

    async def _step(self) -> float | None:
        """Make the call that is due first; return in how many seconds another one is.

        An order at which this fails unexpectedly waits; the others are reported meanwhile.
        """
        waiting = (each for each in self._reports.values() if not each.busy)
        ready = heapq.nsmallest(2, waiting, key=lambda each: each.due)
        now = self._clock.monotonic()
        if not ready or ready[0].due > now:
            to_report = any(each.busy or each.due < math.inf for each in self._reports.values())
            if not to_report and self._orders.problems.is_open(_UNREPORTED, self._orders.store):
                self._report_waiting()  # whichever process opened it
            return ready[0].due - now if ready and ready[0].due < math.inf else None
        if ready[1:] and ready[1].due <= now:
            self._wake()  # one of the others takes it
        report, order_id = ready[0], ready[0].row.order_id
        report.busy = True
        try:
            work = partial(self._report, report)
            pause_s = await self._orders.supervisor.attempt("notifier", work, order=order_id)
            if pause_s is not None:
                report.due = self._clock.monotonic() + pause_s
        finally:
            report.busy = False
            if report.row.closed_at is not None:
                self._reports.pop(order_id, None)
        return 0.0

    async def _report(self, report: _Report) -> None:
        """Make the next call of the order; its change brings the one after it."""
        row = report.row
        call = call_for(row, report.estimate.lowest)
        if call is None:
            report.due = math.inf
            return
        late_ms = self._clock.now_ms() - row.updated_at
        late = late_ms > self._late_report_ms
        if call is not Call.CANCEL and late and await self._waited_for_integration(row):
            minutes = late_ms // 60_000
            reason = _("it waited {minutes} minutes for the store to be connected")
            too_late = ReportsTooLate(reason.format(minutes=minutes))
            await self._orders.commit(row.order_id, too_late, minutes=minutes)
            return
        started = self._clock.monotonic()
        try:
            match call:
                case Call.ACCEPT:
                    await self._service.accept(row.order_id)
                case Call.PREPARING:
                    await self._service.set_preparing(row.order_id)
                case Call.READY:
                    await self._service.ready(row.order_id)
                case Call.CANCEL:
                    code = row.reason_code or ReasonCode.OTHER
                    await self._service.cancel(row.order_id, customer_text(code), code, row.message)
        except ServiceError as failure:
            await self._after_failure(report, row, call, failure)
        else:
            took_ms = round((self._clock.monotonic() - started) * 1000)
            await self._service_has(report, row, call, after_answer(call), ms=took_ms)

    async def _service_has(
        self, report: _Report, row: OrderRow, call: Call, estimate: StateEstimate, **detail: object
    ) -> None:
        """Commit where the service has the order: `already`, or since the call that took `ms`."""
        report.estimate, report.due = estimate, -math.inf
        self._end_wait(report)
        if call is Call.CANCEL:
            detail = {"code": row.reason_code, **detail}
        now_ms = self._clock.now_ms()
        event = ServiceKnows(estimate.state, _EVENTS[call], detail)
        await self._orders.commit(row.order_id, event)
        if call is Call.ACCEPT:
            took_s = max(0.0, (now_ms - row.received_at) / 1000)  # a clock may be set back
            self._orders.metrics.time_to_accept.labels(store=self._orders.store).observe(took_s)

    async def _after_failure(
        self, report: _Report, row: OrderRow, call: Call, failure: ServiceError
    ) -> None:
        if isinstance(failure, Conflict) and not (row.refused and call is not Call.CANCEL):
            settled = after_conflict(report.estimate, call)
            reached = None if settled is None else settled.state
            store, order_id = self._orders.store, row.order_id
            log.info("order.conflict", store=store, order=order_id, call=call, state=reached)
            if settled is None:
                await self._closed(row, call, failure)
            else:
                await self._service_has(report, row, call, settled, already=True)
        elif waits(failure):
            if isinstance(failure, OutcomeUnknown):
                report.estimate = after_lost_answer(report.estimate, call)
            await self._wait(report, call, failure)
        elif failure.code == "order.not_found":
            await self._closed(row, call, failure)
        else:
            # This call is not repeated; the order continues. A conflict comes here where a call
            # before it was refused, so that it says nothing of where the order is.
            answer = {"code": failure.code, "status": failure.status}
            refused = CallRefused(call, _describe(failure), answer)
            await self._orders.commit(row.order_id, refused)

    async def _closed(self, row: OrderRow, call: Call, failure: ServiceError) -> None:
        """Close the order: the service says that it is over there."""
        detail = {"why": "order.closed_by_service", "call": call.value, "code": failure.code}
        await self._orders.commit(row.order_id, ServiceClosed(detail), status=failure.status)

    async def _waited_for_integration(self, row: OrderRow) -> bool:
        """Return whether an old report waited for an integration: it is wrong to make it now.

        The ledger shows that, so that a restart makes no difference.
        """
        return any(
            each.event == _UNREPORTED
            and each.at >= row.updated_at
            and each.detail.get("code") == NOT_INTEGRATED
            for each in await self._orders.read(orders.read_log, row.order_id)
        )

    # -- what cannot be reported now

    async def _wait(self, report: _Report, call: Call, failure: ServiceError) -> None:
        """Make the call again later; each answer that is another one goes into the order's log."""
        now, order_id = self._clock.monotonic(), report.row.order_id
        if report.waiting_since is None:
            report.waiting_since = now
        report.failures += 1
        code = failure.code or type(failure).__name__
        if report.answer != f"{call} {code}":
            report.answer = f"{call} {code}"
            detail: dict[str, Any] = {"call": call, "code": code, "status": failure.status}
            log.warning(_UNREPORTED, store=self._orders.store, order=order_id, **detail)
            now_ms = self._clock.now_ms()
            note = partial(
                orders.log_event, order_id=order_id, event=_UNREPORTED, at=now_ms, **detail
            )
            await self._orders.write(note)
        self._report_waiting()
        pause = backoff_s(report.failures, _FIRST_WAIT_S, _LONGEST_WAIT_S)
        if isinstance(failure, RateLimited):
            pause = max(pause, failure.retry_after_s)
        report.due = self._clock.monotonic() + pause

    def _end_wait(self, report: _Report) -> None:
        if report.waiting_since is not None:
            report.waiting_since, report.failures, report.answer = None, 0, ""
            self._report_waiting()

    def _report_waiting(self) -> None:
        now, store = self._clock.monotonic(), self._orders.store
        since = [each.waiting_since for each in self._reports.values() if each.waiting_since]
        late = any(now - each >= _UNREPORTED_AFTER_S for each in since)
        still = bool(since) and self._orders.problems.is_open(_UNREPORTED, store)
        found = Found(_UNREPORTED, detail={"count": len(since)})
        self._orders.report(_UNREPORTED, *([found] if late or still else []))


def _describe(failure: ServiceError) -> str:
    """Return what the service answered, in one line for a person."""
    answer = " ".join(filter(None, [str(failure.status or ""), failure.code]))
    return f"{failure.text} ({answer})" if answer else failure.text
