"""Reports to the service how orders go on: one call after another, for each order by itself.

What cannot be reported now is reported later; the orders themselves never wait for it.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tillbridge.core import supervision
from tillbridge.core.errors import Conflict, OutcomeUnknown, RateLimited, Refused, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger import orders
from tillbridge.ledger.models import OrderRow
from tillbridge.model.order import ReasonCode
from tillbridge.orders.commit import OrderRepository
from tillbridge.orders.lifecycle import (
    Call,
    Standing,
    after_answer,
    after_conflict,
    after_lost_answer,
    standing_after_restart,
    standing_of_new,
)
from tillbridge.orders.reasons import customer_text
from tillbridge.orders.state import (
    CallRefused,
    ReportsTooLate,
    ServiceClosed,
    ServiceKnows,
    call_for,
)
from tillbridge.orders.write_queue import backoff_s
from tillbridge.service.answers import NOT_INTEGRATED

if TYPE_CHECKING:
    from tillbridge.service.client import ServiceClient

log = get_logger()

_AT_ONCE = 4  # calls in flight for one store
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_UNREPORTED_AFTER_S = 30.0
_UNREPORTED = "order.untold"

# Refusals that end when the store is integrated again, or the merchant consents.
_WAITING_CODES = frozenset({NOT_INTEGRATED, "auth.consent_revoked"})


@dataclass(slots=True)
class _Waiting:
    """An order whose call could not be made, since when (monotonic seconds)."""

    since: float
    failures: int = 1
    answer: str = ""


def waits(failure: ServiceError) -> bool:
    """Return whether the same call may succeed later; where not, it never will."""
    if isinstance(failure, Refused):
        return failure.code in _WAITING_CODES
    return not isinstance(failure, Conflict)


class ServiceNotifier:
    """Reports one store's orders to the service."""

    def __init__(
        self,
        repository: OrderRepository,
        service: "ServiceClient",
        *,
        auto_accepted: bool,
        late_report_s: float,
    ) -> None:
        self._orders = repository
        self._service = service
        self._auto_accepted = auto_accepted
        self._late_report_ms = late_report_s * 1000
        self._standings: dict[str, Standing] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._changed: dict[str, OrderRow | None] = {}  # the newest row; None: it has to be read
        self._busy: set[str] = set()
        self._crashes: dict[str, int] = {}  # how often in a row reporting an order has failed
        self._tasks: asyncio.TaskGroup | None = None
        self.worker = Worker("notifier", self._step, repository.supervisor, repository.clock)
        self._back = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._calling = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    @property
    def waiting(self) -> int:
        """How many orders wait because they could not be reported to the service."""
        return len(self._waiting)

    def order_is_new(self, order_id: str) -> None:
        """Take note of an order that has just arrived: nothing was reported of it, ever."""
        self._standings.setdefault(order_id, standing_of_new(auto_accepted=self._auto_accepted))

    def take(self, row: OrderRow) -> None:
        """Report what there is to report of the order of this row, the newest one."""
        self._changed[row.order_id] = row
        self.worker.wake()

    def service_back(self) -> None:
        """Try at once what waits: the service answers again, or the merchant has consented."""
        self._back.set()
        self._back = asyncio.Event()

    async def drain(self) -> None:
        """Begin no more calls, and wait for those in flight."""
        self._draining = True
        await self._idle.wait()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Report in these tasks from now on."""
        self._tasks = tasks
        self._busy.clear()  # of a group that has failed
        self.worker.wake()

    async def _step(self) -> None:
        """Report each order that has changed, beside the others."""
        for order_id in [each for each in self._changed if each not in self._busy]:
            if self._tasks is not None:
                self._busy.add(order_id)
                self._tasks.create_task(self._report(order_id), name=f"report {order_id}")

    async def _report(self, order_id: str) -> None:
        work = partial(self._report_all, order_id)
        try:
            if await self._orders.supervisor.attempt("notifier", work, order=order_id):
                self._crashes.pop(order_id, None)
            else:
                # The order waits; the others are reported meanwhile.
                crashes = self._crashes[order_id] = self._crashes.get(order_id, 0) + 1
                pause = supervision.backoff_s(crashes)
                asyncio.get_running_loop().call_later(pause, self._again, order_id)
        finally:
            self._busy.discard(order_id)
            if self._changed:
                self.worker.wake()

    def _again(self, order_id: str) -> None:
        self._changed.setdefault(order_id, None)
        self.worker.wake()

    async def _report_all(self, order_id: str) -> None:
        while order_id in self._changed and not self._draining:
            row = self._changed.pop(order_id) or await self._orders.order(order_id)
            if row is None or row.closed_at is not None:
                self._forget(order_id)
                return
            await self._report_next(row)

    async def _report_next(self, row: OrderRow) -> None:
        """Make the next call of the order, if there is one; its row is taken again after it."""
        standing = self._standings.get(row.order_id) or standing_after_restart(
            row.service_state, row.desired_state, auto_accepted=self._auto_accepted
        )
        call = call_for(row, standing)
        if call is None:
            self._reported(row.order_id)
            return
        if call is not Call.CANCEL and await self._is_too_late(row):
            await self._end_reports(row)
            return
        started = self._orders.clock.monotonic()
        try:
            await self._call(call, row)
        except ServiceError as failure:
            await self._after_failure(row, standing, call, failure)
        else:
            took_ms = round((self._orders.clock.monotonic() - started) * 1000)
            await self._keep_standing(row, after_answer(call), call, took_ms=took_ms)

    async def _call(self, call: Call, row: OrderRow) -> None:
        async with self._slots:
            self._calling += 1
            self._idle.clear()
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
                        await self._service.cancel(
                            row.order_id, customer_text(code), code, row.message
                        )
            finally:
                self._calling -= 1
                if not self._calling:
                    self._idle.set()

    async def _after_failure(
        self, row: OrderRow, standing: Standing, call: Call, failure: ServiceError
    ) -> None:
        if isinstance(failure, Conflict) and row.refused and call is not Call.CANCEL:
            # A call before it was refused, so that this one says nothing of where the order is.
            await self._refused(row, call, failure)
        elif isinstance(failure, Conflict):
            settled = after_conflict(standing, call)
            log.info(
                "order.conflict",
                store=self._orders.store,
                order=row.order_id,
                call=call,
                told=None if settled is None else settled.told,
            )
            if settled is None:
                await self._close(row, call, failure)
            else:
                await self._keep_standing(row, settled, call, took_ms=None)
        elif waits(failure):
            if isinstance(failure, OutcomeUnknown):
                self._standings[row.order_id] = after_lost_answer(standing, call)
            await self._wait(row, call, failure)
        elif failure.code == "order.not_found":
            await self._close(row, call, failure)
        else:
            await self._refused(row, call, failure)

    async def _keep_standing(
        self, row: OrderRow, standing: Standing, call: Call, *, took_ms: int | None
    ) -> None:
        """Note where the order is; `took_ms` None where the service says it was there already."""
        self._standings[row.order_id] = standing
        event = _EVENTS[call]
        now_ms = self._orders.clock.now_ms()
        detail: dict[str, object] = {"code": row.reason_code} if call is Call.CANCEL else {}
        if took_ms is None:
            detail["already"] = True
        else:
            detail["ms"] = took_ms

        change = await self._orders.commit(row.order_id, ServiceKnows(standing.told, event, detail))
        log.info(event, store=self._orders.store, order=row.order_id, **detail)
        if call is Call.ACCEPT:
            took_s = max(0.0, (now_ms - row.received_at) / 1000)  # a clock may be set back
            self._orders.metrics.time_to_accept.labels(store=self._orders.store).observe(took_s)
        self._reported(row.order_id)
        if change is None or change.after.closed_at is not None:
            self._forget(row.order_id)

    async def _refused(self, row: OrderRow, call: Call, failure: ServiceError) -> None:
        """Make this call no more: the service will not have it. The order goes on."""
        answer = {"code": failure.code, "status": failure.status}
        await self._orders.commit(row.order_id, CallRefused(call, _words_of(failure), answer))
        log.warning(
            "order.call_refused",
            store=self._orders.store,
            order=row.order_id,
            call=call,
            **answer,
        )
        self._reported(row.order_id)

    async def _is_too_late(self, row: OrderRow) -> bool:
        """Return whether the report waited for an integration until it is wrong to make it.

        The ledger tells, so that a restart makes no difference. It is asked of old reports alone.
        """
        if self._orders.clock.now_ms() - row.updated_at <= self._late_report_ms:
            return False
        entries = await self._orders.ledger.read(
            lambda connection: orders.read_log(connection, row.store, row.order_id)
        )
        return any(
            each.event == _UNREPORTED
            and each.at >= row.updated_at
            and each.detail.get("code") == NOT_INTEGRATED
            for each in entries
        )

    async def _end_reports(self, row: OrderRow) -> None:
        minutes = (self._orders.clock.now_ms() - row.updated_at) // 60_000
        words = _("it waited {minutes} minutes for the store's integration").format(minutes=minutes)
        await self._orders.commit(row.order_id, ReportsTooLate(words))
        log.warning("order.too_late", store=self._orders.store, order=row.order_id, minutes=minutes)
        self._reported(row.order_id)

    async def _close(self, row: OrderRow, call: Call, failure: ServiceError) -> None:
        """Close the order: the service says that it is over there."""
        detail = {"why": "order.closed_by_service", "call": call.value, "code": failure.code}
        await self._orders.commit(row.order_id, ServiceClosed(detail))
        log.warning(
            "order.closed",
            store=self._orders.store,
            order=row.order_id,
            status=failure.status,
            **detail,
        )
        self._reported(row.order_id)
        self._forget(row.order_id)

    async def _wait(self, row: OrderRow, call: Call, failure: ServiceError) -> None:
        waiting = self._waiting.get(row.order_id)
        if waiting is None:
            waiting = self._waiting[row.order_id] = _Waiting(self._orders.clock.monotonic())
            log.warning(
                "order.untold",
                store=self._orders.store,
                order=row.order_id,
                call=call,
                code=failure.code,
                status=failure.status,
            )
        else:
            waiting.failures += 1
        await self._note_answer(row, waiting, call, failure)
        self._report_waiting()
        pause = backoff_s(waiting.failures, _FIRST_WAIT_S, _LONGEST_WAIT_S)
        if isinstance(failure, RateLimited):
            pause = max(pause, failure.retry_after_s)
        back = self._back
        try:
            async with asyncio.timeout(pause):
                await back.wait()
        except TimeoutError:
            pass
        self._changed.setdefault(row.order_id, row)

    async def _note_answer(
        self, row: OrderRow, waiting: _Waiting, call: Call, failure: ServiceError
    ) -> None:
        """Add to the order's life what the service answered, unless it says the same again."""
        answer = failure.code or type(failure).__name__
        if waiting.answer == f"{call} {answer}":
            return
        waiting.answer = f"{call} {answer}"
        now_ms = self._orders.clock.now_ms()
        detail: dict[str, object] = {"call": call, "code": answer, "status": failure.status}
        await self._orders.write(
            lambda connection: orders.log_event(
                connection, row.store, row.order_id, "order.untold", now_ms, **detail
            )
        )

    def _reported(self, order_id: str) -> None:
        if self._waiting.pop(order_id, None) is not None:
            self._report_waiting()

    def _report_waiting(self) -> None:
        now = self._orders.clock.monotonic()
        store, tracker = self._orders.store, self._orders.tracker
        late = any(now - each.since >= _UNREPORTED_AFTER_S for each in self._waiting.values())
        if late or (self._waiting and tracker.is_open(_UNREPORTED, store)):
            found = [Found(_UNREPORTED, detail={"count": len(self._waiting)})]
        else:
            found = []
        tracker.report(Scope(store, frozenset({_UNREPORTED})), found)

    def _forget(self, order_id: str) -> None:
        self._standings.pop(order_id, None)
        self._reported(order_id)


def _words_of(failure: ServiceError) -> str:
    """Return what the service answered, in one line for a person."""
    answer = " ".join(filter(None, [str(failure.status or ""), failure.code]))
    return f"{failure.text} ({answer})" if answer else failure.text


_EVENTS = {
    Call.ACCEPT: "order.accepted",
    Call.PREPARING: "order.preparing",
    Call.READY: "order.ready",
    Call.CANCEL: "order.cancelled",
}
