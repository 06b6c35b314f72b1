"""Keeps a store's status at the service in line with `closure`, and pauses it for an absent POS.

The wanted status is stored before it is sent, so that after a crash or an outage of the service the
bridge still knows who paused the store, and does not mistake its own act for somebody else's.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import LedgerError, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger.audit import AuditTrail
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.orders import latest_but
from tillbridge.service.caller import LATE_S
from tillbridge.stores import closure
from tillbridge.stores.closure import (
    BUSY_MINUTES,
    BusyMode,
    ClosureReasons,
    Pause,
    Planned,
    Status,
    StoreClosure,
    Who,
    causes_of,
    closure_of,
    decide_pause,
    is_unsteady,
)

_LONGEST_REASON = 200
_AGAIN_S = 15.0  # between two tries while the service is unreachable
_AT_ONCE_S = 5.0  # what took longer may have been sent several times
_WALL_CLOCK_S = 30.0  # ends given by the wall clock are checked this often, in case it was set
_PLAN_GOOD_MS = 6 * 3600 * 1000  # a schedule is evaluated again by then, whatever it planned

# The problem for each reason, except the schedule, which is not a problem.
_PROBLEMS = {
    Who.PERSON: "store.paused_by_staff",
    Who.OTHERS: "store.paused_elsewhere",
    Who.POS_AWAY: "store.paused",
    Who.POS_CLOSED: "store.closed_in_till",
}

# Why the bridge itself closes and opens a store, for the audit trail; others' acts are already
# there.
_CLOSED = {
    Who.POS_AWAY: "the till is offline",
    Who.POS_CLOSED: "the till is closed",
    Who.BUSY: "as many orders as busy mode allows",
    Who.SCHEDULE: "the schedule",
}
_OPENED = {
    Who.POS_AWAY: "the till is back",
    Who.POS_CLOSED: "the till is open",
    Who.SCHEDULE: "the schedule",
    Who.BUSY: "room for another order",
    Who.PERSON: "the pause is over",
}

_STATUSES: dict[str, Status] = {"active": "active", "inactive": "inactive"}

log = get_logger()


class StoreStatusReconciler:
    """One store. `service_store_id` is None until it is integrated; `plan` is the schedule's."""

    def __init__(self, context: StoreContext, service_store_id: Callable[[], str | None]) -> None:
        self.context = context
        self._store = context.store
        self._client = context.service
        self._trail = AuditTrail(context.bridge.ledger, context.bridge.clock)
        self._by_hand = False  # a person is asking for it right now
        self._closed_by: Who | None = None  # until now, for when that ends
        self._service_store_id = service_store_id
        self._ledger = context.bridge.ledger
        self._clock = context.bridge.clock
        self._plan: Callable[[int], Planned] = lambda _now: Planned()
        self._planned: Planned | None = None  # valid from `_planned_ms` on
        self._planned_ms = 0
        self._reasons: ClosureReasons | None = None  # None: not read from the ledger yet
        self._fact: object = None  # as stored
        self._lock = asyncio.Lock()
        self._look_every_s = context.bridge.settings.service.store_look_s
        self._looked_at = self._clock.monotonic()
        self._look_due = True
        self._asked_to_look_at = -math.inf  # monotonic; earlier reads are too old
        self._look_from = 0.0  # monotonic; until then whoever reads the integration may report it
        self._sent_at = -math.inf  # monotonic; when the service last answered a change
        self._not_before = 0.0
        self._failing = False  # since the service last accepted a status
        self.worker = Worker("store_status", self._step, context.supervisor, self._clock)
        self.worker.wake()

    # -- reports from others; each raises LedgerError if it cannot be stored

    async def pause(self, *, by: str, reason: str, until_ms: int | None) -> StoreClosure:
        """Close the store for a person. Raises ServiceError if that could not be sent.

        Of the `reason` one line is stored.
        """
        line = " ".join(reason.split())[:_LONGEST_REASON]
        async with self._lock:
            pause = Pause(self._clock.now_ms(), until_ms, by, line)
            log.info("store.paused_by_staff", store=self._store, by=by, until_ms=until_ms)
            return await self._change_by_hand(closure.paused_by(await self._known(), pause))

    async def be_busy(self, *, by: str, orders: int, until_ms: int | None) -> StoreClosure:
        """Accept at most this many orders in `BUSY_MINUTES`, on behalf of a person.

        Raises as `pause`.
        """
        async with self._lock:
            busy = BusyMode(self._clock.now_ms(), orders, until_ms, by)
            log.info("store.busy", store=self._store, by=by, orders=orders, until_ms=until_ms)
            return await self._change_by_hand(replace(await self._known(), busy=busy))

    async def be_busy_no_more(self, *, by: str) -> StoreClosure:
        """End busy mode. Raises as `pause`."""
        async with self._lock:
            log.info("store.not_busy", store=self._store, by=by)
            reasons = replace(await self._known(), busy=None, full=None)
            return await self._change_by_hand(reasons)

    def order_arrived(self) -> None:
        """A new order came: in busy mode it may be the last for a while."""
        if self._reasons is None or self._reasons.busy is not None:
            self.worker.wake()

    async def resume(self, *, by: str) -> StoreClosure:
        """Open the store for a person, whoever paused it; the bridge's own pause stays.

        Raises ServiceError if that could not be sent.
        """
        async with self._lock:
            now = self._clock.now_ms()
            reasons = closure.resumed(await self._known(), self._planned_at(now), now)
            log.info("store.resumed_by_staff", store=self._store, by=by)
            return await self._change_by_hand(reasons)

    async def pos_away(self, *, by: Literal["bridge", "cancel"] = "bridge") -> None:
        """Close the store because its till is away. A failing service is retried later.

        An order cancelled with POS_OFFLINE ("cancel") may already have informed the service, which
        can then pause the store itself; that counts as the bridge's act.
        """
        async with self._lock:
            reasons = await self._known()
            pause = reasons.pos_away or Pause(self._clock.now_ms(), by="bridge")
            # Whoever closed it may have opened it since, and orders would be lost.
            self._look_due = self._look_due or reasons.pos_away is None
            if by == "cancel" and reasons.service_status == "active":
                reasons = replace(reasons, sending="inactive")
            await self._change_quietly(replace(reasons, pos_away=pause))

    async def pos_back(self) -> None:
        """The till is back: end the bridge's own pause. As `pos_away`."""
        async with self._lock:
            await self._change_quietly(replace(await self._known(), pos_away=None))

    async def pos_returning(self, reason: str) -> None:
        """Record why the store stays closed although the till is back; "" while it is away."""
        async with self._lock:
            reasons = await self._known()
            if reasons.pos_away is not None and reasons.pos_away.reason != reason:
                pause = replace(reasons.pos_away, reason=reason)
                await self._change_quietly(replace(reasons, pos_away=pause))

    async def pos_closed(self, reason: str) -> None:
        """Close the store because its till takes no orders; open it again if `reason` is "".

        As `pos_away`.
        """
        async with self._lock:
            reasons = await self._known()
            before = reasons.pos_closed
            if reason != ("" if before is None else before.reason):
                since = self._clock.now_ms() if before is None else before.since_ms
                pause = Pause(since, by="bridge", reason=reason) if reason else None
                await self._change_quietly(replace(reasons, pos_closed=pause))

    async def is_paused_for_pos(self) -> bool:
        """Return whether the bridge itself keeps the store closed."""
        return (await self._known()).pos_away is not None

    async def closure(self) -> StoreClosure:
        """Return whether the store is closed now, and by what, including the schedule."""
        now = self._clock.now_ms()
        reasons = closure.at_time(await self._known(), self._planned_at(now), now)
        return closure_of(reasons)

    def next_change_ms(self) -> int | None:
        """Return when the schedule next opens or closes the store; None if never."""
        return self._planned_at(self._clock.now_ms()).until_ms

    def follow(self, plan: Callable[[int], Planned]) -> None:
        """Follow this schedule from now on."""
        self._plan, self._planned = plan, None
        self.worker.wake()

    def look(self, *, within_s: float = 0.0) -> None:
        """Read the store's status from the service: somebody else may have changed it.

        With `within_s`, read it after that time, unless `noticed` comes first.
        """
        now = self._clock.monotonic()
        asked = self._look_due and self._asked_to_look_at > -math.inf
        if within_s and asked and self._look_from <= now:
            return  # a read is already due
        self._look_due = True
        if not within_s:
            self._asked_to_look_at = now
        self._look_from = now + within_s
        self._not_before = 0.0
        self.worker.wake()

    async def noticed(self, status: str | None, *, asked_at: float) -> None:
        """Record the status from a read that began at `asked_at` (monotonic)."""
        async with self._lock:
            if status not in _STATUSES or asked_at <= self._sent_at:
                return  # it may be from before the last change
            await self._seen(_STATUSES[status], await self._known())
            if asked_at >= self._asked_to_look_at:
                self._look_due = False
            self.worker.wake()

    async def settle(self) -> None:
        """Update the service now. A failing service is retried later."""
        async with self._lock:
            await self._change_quietly(await self._known())

    # -- inside

    async def _step(self) -> float:
        """Do what is due, and return for how many seconds there is nothing to do."""
        if self._clock.monotonic() - self._looked_at >= self._look_every_s:
            self._look_due = True
        if self._look_due:
            self._looked_at = self._clock.monotonic()
        try:
            await self.settle()
        except LedgerError:
            return _AGAIN_S
        reasons = await self._known()
        waits = [self._look_every_s]
        if self._look_due and (left_s := self._look_from - self._clock.monotonic()) > 0:
            waits.append(left_s)
        if (
            reasons.service_status != closure_of(reasons).status
            and self._service_store_id() is not None
        ):
            waits.append(_AGAIN_S)
        timed = (reasons.person, reasons.full, reasons.busy)
        ends = [self.next_change_ms(), *(each.until_ms for each in timed if each is not None)]
        now = self._clock.now_ms()
        waits += [min(_WALL_CLOCK_S, (end - now) / 1000) for end in ends if end is not None]
        return max(0.01, min(waits))

    async def _change_by_hand(self, reasons: ClosureReasons) -> StoreClosure:
        self._not_before, self._by_hand = 0.0, True
        try:
            return await self._change(reasons)
        finally:
            self._by_hand = False

    async def _change_quietly(self, reasons: ClosureReasons) -> None:
        try:
            await self._change(reasons)
        except ServiceError as failure:
            if not self._failing:
                log.warning(
                    "store.status_not_sent",
                    store=self._store,
                    code=failure.code,
                    detail=failure.text,
                )
            self._failing = True

    async def _change(self, reasons: ClosureReasons) -> StoreClosure:
        """Store the reasons, and send the resulting status. Raises ServiceError, LedgerError."""
        now = self._clock.now_ms()
        reasons = closure.at_time(reasons, self._planned_at(now), now)
        if (busy := reasons.busy) is not None:
            since = now - BUSY_MINUTES * 60_000
            reached = await self._ledger.read(
                latest_but, store=self._store, place=busy.orders, since_ms=since
            )
            reasons = closure.throttled(reasons, reached, now)
        await self._save(reasons)
        store_id, monotonic = self._service_store_id(), self._clock.monotonic()
        differs = reasons.service_status != closure_of(reasons).status
        look = self._look_due and monotonic >= self._look_from
        if store_id is None or not (differs or look) or monotonic < self._not_before:
            return closure_of(reasons)
        try:
            reasons = await self._send(store_id, reasons)
        except ServiceError:
            self._not_before = self._clock.monotonic() + _AGAIN_S
            raise
        self._failing = False
        return closure_of(reasons)

    async def _send(self, store_id: str, reasons: ClosureReasons) -> ClosureReasons:
        # Before the store is closed as well: somebody else may already have closed it.
        if (
            self._look_due
            or reasons.service_status is None
            or closure_of(reasons).status == "inactive"
        ):
            self._look_due = False  # first, so that a look requested during this read stays due
            try:
                found = {store.store_id: store.status for store in await self._client.stores()}
            except BaseException:
                self._look_due = True
                raise
            status = _STATUSES.get(found.get(store_id) or "")
            reasons = reasons if status is None else await self._seen(status, reasons)
        now = closure_of(reasons)
        if reasons.service_status == now.status:
            return reasons
        if reasons.sending is not None:
            reasons = self._may_be_late(reasons, reasons.sending)
        await self._save(replace(reasons, sending=now.status))
        began = self._clock.monotonic()
        try:
            await self._client.set_store_status(store_id, now.status)
        finally:
            self._sent_at = self._clock.monotonic()
        if self._sent_at - began > _AT_ONCE_S:
            reasons = self._may_be_late(reasons, now.status)
        reasons = replace(reasons, service_status=now.status, sending=None)
        await self._save(reasons)
        event = "store.resumed" if now.who is None else "store.paused"
        log.info(event, store=self._store, by=now.who or "", reason=now.reason)
        why = _CLOSED.get(now.who) if now.who else _OPENED.get(self._closed_by or Who.OTHERS)
        if why and not self._by_hand:
            action = "store.pause" if now.who else "store.resume"
            await self._trail.own(action, self._store, why=why, reason=now.reason)
        return reasons

    def _may_be_late(self, reasons: ClosureReasons, status: Status) -> ClosureReasons:
        """Remember a call that nobody has answered until its effect would have been seen."""
        until_ms = self._clock.now_ms() + round((LATE_S + self._look_every_s) * 1000)
        return replace(reasons, late=status, late_until_ms=until_ms)

    async def _seen(self, status: Status, reasons: ClosureReasons) -> ClosureReasons:
        """Return the reasons with the store's status at the service."""
        now = self._clock.now_ms()
        planned = self._planned_at(now)
        after = closure.at_time(closure.seen(reasons, status, planned, now), planned, now)
        if after.others and not reasons.others:
            log.warning("store.paused_elsewhere", store=self._store)
        elif (
            reasons.service_status == "inactive"
            and after.service_status == "active"
            and "active" not in {reasons.sending, reasons.late}
        ):
            log.warning("store.resumed_elsewhere", store=self._store)
        await self._save(after)
        return after

    def _planned_at(self, now: int) -> Planned:
        known, until = self._planned, self._planned_ms + _PLAN_GOOD_MS
        if known is not None and known.until_ms is not None:
            until = min(until, known.until_ms)
        if known is None or not self._planned_ms <= now < until:
            known = self._plan(now)
            self._planned, self._planned_ms = known, now
        return known

    async def _known(self) -> ClosureReasons:
        if self._reasons is None:
            self._fact, before = await self._ledger.read(self._read)
            self._reasons = closure.from_json(self._fact)
            if self._fact is None and isinstance(before, dict):
                self._reasons = _of_an_older_version(before, self._clock.now_ms())
            self._remember(self._reasons)
        return self._reasons

    def _read(self, db: Connection) -> tuple[object, object]:
        return get_fact(db, self._store, "standing"), get_fact(db, self._store, "pause")

    async def _save(self, reasons: ClosureReasons) -> None:
        """Store the reasons, and report them."""
        fact = {**closure.to_json(reasons), "next_change_ms": self.next_change_ms()}
        if fact != self._fact:
            at = self._clock.now_ms()

            def write(db: Connection) -> None:
                put_fact(db, self._store, "standing", fact, at=at)
                drop_fact(db, self._store, "pause")

            await self._ledger.write(write)
            self._fact = fact
            self.worker.wake()
        self._reasons = reasons
        causes = self._remember(reasons)
        found = [
            Found(_PROBLEMS[who], detail=_detail(who, pause))
            for who, pause in causes
            if who in _PROBLEMS and (who is causes[0][0] or who is Who.POS_AWAY)
        ]
        scope = Scope(self._store, frozenset(_PROBLEMS.values()))
        self.context.bridge.problems.report(scope, found)

    def _remember(self, reasons: ClosureReasons) -> list[tuple[Who, Pause]]:
        """Return what keeps the store closed, once the service has that status."""
        causes = causes_of(reasons) if reasons.service_status == "inactive" else []
        self._closed_by = causes[0][0] if causes else self._closed_by
        return causes


def _detail(who: Who, pause: Pause) -> dict[str, str]:
    if who is Who.PERSON:
        return {"by": pause.by or "?", "reason": f" ({pause.reason})" if pause.reason else ""}
    return {"detail": pause.reason or _("the till is offline")}


def _of_an_older_version(before: dict[str, Any], now_ms: int) -> ClosureReasons:
    """Return the reasons if the ledger only knows the bridge's own pause."""
    pause = Pause(before.get("since_ms", now_ms), by="bridge")
    if before.get("told"):
        return ClosureReasons(pos_away=pause, service_status="inactive")
    return ClosureReasons(pos_away=pause, service_status="active", sending="inactive")


# -- Pauses a store while its till is away or closed, and resumes it when the till is back.


_LOOK_EVERY_S = 1.0
_UNSTEADY = _("the connection to the till is unstable; it has to be steady for 10 minutes first")


class PosPause:
    """Watches one store's POS: at each change, and every second while it matters."""

    def __init__(self, reconciler: StoreStatusReconciler) -> None:
        context = reconciler.context
        self._reconciler = reconciler
        self._clock = context.bridge.clock
        self._settings = context.settings.orders
        self._online: bool | None = None  # as of the last step
        self._since = 0.0
        self._order_lost = False
        self._pauses: deque[float] = deque(maxlen=100)
        self._lock = asyncio.Lock()
        self._pos_online = True
        self._pos_closed = ""
        self.worker = Worker("pos_pause", self._step, context.supervisor, self._clock)

    def pos_changed(self, *, online: bool) -> None:
        """The POS can be reached again, or no longer."""
        self._pos_online = online
        self.worker.wake()

    def pos_closed(self, why: str) -> None:
        """The POS takes no orders, because of `why`; "" if it takes them."""
        self._pos_closed = why
        self.worker.wake()

    def order_lost(self) -> None:
        """An order was cancelled because the POS cannot be reached."""
        self._order_lost = True
        self.worker.wake()

    async def opened_by_person(self) -> None:
        """Resume as soon as the POS is back, however often it has come and gone.

        Raises LedgerError.
        """
        async with self._lock:
            self._pauses.clear()
            if self._online is not None and await self._act(self._clock.monotonic()):
                self.worker.wake()

    async def _step(self) -> float | None:
        try:
            waits = await self.pos_is(online=self._pos_online, closed=self._pos_closed)
        except LedgerError:
            waits = True  # the intent could not be stored, so nothing was sent: try again later
        return _LOOK_EVERY_S if waits else None

    async def pos_is(self, *, online: bool, closed: str = "") -> bool:
        """Record the state of the POS, and pause or resume the store if it is time.

        `closed` says why a reachable POS takes no orders, "" if it takes them. Returns whether to
        call again in a while. Raises LedgerError if the intent cannot be stored; a failing service
        is retried later.
        """
        async with self._lock:
            if online:
                await self._reconciler.pos_closed(
                    closed if self._settings.pause_after_s > 0 else ""
                )
            now = self._clock.monotonic()
            if online != self._online:
                self._online, self._since = online, now
            if online:
                self._order_lost = False
            return await self._act(now) or not online

    async def _act(self, now: float) -> bool:
        """Return whether the store is still paused."""
        paused = await self._reconciler.is_paused_for_pos()
        decision = decide_pause(
            now,
            online=bool(self._online),
            since=self._since,
            paused_by_bridge=paused,
            pauses=self._pauses,
            settings=self._settings,
            order_lost=self._order_lost,
        )
        if decision == "pause":
            await self._reconciler.pos_away(by="cancel" if self._order_lost else "bridge")
            self._pauses.append(now)
        elif decision == "resume":
            await self._reconciler.pos_back()
        elif paused:
            unsteady = self._online and is_unsteady(now, self._pauses, self._settings)
            await self._reconciler.pos_returning(_UNSTEADY if unsteady else "")
        return await self._reconciler.is_paused_for_pos()
