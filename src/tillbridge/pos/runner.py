"""One store's POS, awaited: the adapter's blocking methods, each kind in a lane of its own.

Here, once, everything an adapter may do wrong becomes one of the failures the core knows: an
exception that no adapter should raise, an answer of the wrong kind, no answer at all. What each
method of an adapter is held to is a row of `PosRunner`: its lane, its time, what its answer has
to be, and the failure that its defects become.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from tillbridge import adapter as api
from tillbridge.core.i18n import _, joined
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import describe
from tillbridge.pos.call_lane import CallLane, call_in
from tillbridge.pos.validation import (
    MAX_LINE,
    storable,
    storable_rows,
    storable_text,
    valid_availability,
    valid_catalogue,
    valid_changes,
    valid_failure,
    valid_health,
    valid_listed,
    valid_paths,
    valid_tables,
    valid_updates,
)

P = ParamSpec("P")
T = TypeVar("T")

Report = Callable[[Scope, Iterable[Found]], None]
"""Makes what is open within the scope exactly what is found (`ProblemTracker.report`)."""

_AT_ONCE_S = 1.0
_END_WITHIN_S = 3.0  # a program is asked to end first, and then ended


@dataclass(frozen=True, slots=True)
class _Policy:
    """What a method of an adapter is held to.

    `kind` is what it returns, `valid` makes that usable, outside the event loop. A defect of the
    adapter is raised as `defect`, and so is the end of patience with a call about tickets. One
    that reads may take as long as it needs (`hangs_after_s` makes a problem of it).
    """

    kind: type | UnionType
    valid: Callable[[Any], Any] | None = None
    defect: type[api.ExportUnreadable | api.PosFailure] = api.ExportUnreadable


def _call(
    method: Callable[Concatenate[Any, P], T], policy: _Policy
) -> "Callable[Concatenate[PosRunner, P], Coroutine[Any, Any, T]]":
    """Return the method of a capability as a coroutine of the runner.

    It returns what the adapter's method returns, and raises as the policy defines. Cancelled before
    its turn, the call is never made.
    """
    operation, reads = method.__name__, policy.defect is api.ExportUnreadable

    async def call(self: "PosRunner", /, *args: P.args, **kwargs: P.kwargs) -> T:
        if (asked := getattr(self._pos, operation, None)) is None:
            msg = f"this adapter has no {method.__qualname__}: look before asking"
            raise TypeError(msg)
        lane = self._reading if reads else self._tickets
        work = partial(self._made, policy, partial(asked, *args, **kwargs), operation)
        submitted = lane.submit(work, operation)
        outcome = asyncio.wrap_future(submitted)
        try:
            await asyncio.wait({outcome}, timeout=None if reads else self._ticket_timeout_s)
        except asyncio.CancelledError:
            outcome.cancel()
            raise
        if not outcome.done():
            # Only a call that never began has surely done nothing.
            never_began = submitted.cancel()
            outcome.cancel()
            raise (api.PosOffline if never_began else policy.defect)(self._no_answer())
        try:
            answer: T = outcome.result()
        except (api.ExportUnreadable, api.PosFailure) as failure:
            if isinstance(failure, api.ExportUnreadable) and not reads:
                raise self._defect(operation, failure, policy) from failure
            valid_failure(failure)
            self._returned(operation)
            raise
        except Exception as failure:
            raise self._defect(operation, failure, policy) from failure
        self._returned(operation)
        return answer

    call.__name__, call.__doc__ = operation, method.__doc__
    return call


def _can(capability: type) -> cached_property[bool]:
    """Return whether the adapter has the capability, as a property; looking is slow."""
    return cached_property(lambda self: isinstance(self._pos, capability))


def _seconds(capability: type, method: Callable[[Any], float]) -> property:
    """Return the seconds that the adapter names at once, 0 where it names none, as a property."""

    def seconds(self: "PosRunner") -> float:
        if not isinstance(self._pos, capability):
            return 0.0
        asked = getattr(self._pos, method.__name__)
        found = self._at_once(method.__name__, lambda: float(asked()), 0.0, _AT_ONCE_S)
        return max(0.0, found) if math.isfinite(found) else 0.0

    return property(seconds, doc=method.__doc__)


def _files(
    method: Callable[[Any], Sequence[Path]],
) -> "Callable[[PosRunner], Sequence[Path]]":
    """Return the adapter's files (or folders), none where it names none, as a method."""

    def paths(self: "PosRunner") -> Sequence[Path]:
        if not self._names_files:
            return ()
        named = getattr(self._pos, method.__name__)
        none: tuple[Path, ...] = ()
        return self._at_once(method.__name__, lambda: valid_paths(named()), none, _AT_ONCE_S)

    return paths


# A reference that cannot be stored is made to be: the order is written.
_STORABLE = partial(storable, most=MAX_LINE)
# An adapter that breaks off a write in a way it should not may have written it, too.
_WRITES = _Policy(api.Ticket, _STORABLE, api.TicketOutcomeUnknown)
_HEALTH = _Policy(api.Health, valid_health, api.PosOffline)


class PosRunner:
    """An adapter's object as coroutines. What it cannot do raises TypeError: look first.

    `ticket_timeout_s` is how long a call about tickets may take. A write that takes longer raises
    TicketOutcomeUnknown; it continues, and the next call about tickets comes after it.
    A call that still runs after `hangs_after_s` is a problem until it returns. `may_act` is asked
    before each call, in its thread.
    """

    def __init__(
        self,
        pos: object,
        *,
        store: str,
        adapter: str,
        ticket_timeout_s: float,
        hangs_after_s: float = math.inf,
        report: Report = lambda _scope, _found: None,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._pos = pos
        self._may_act = may_act
        self._store = store
        self._adapter = adapter
        self._ticket_timeout_s = ticket_timeout_s
        self._report = report
        # What is wrong, by problem code and subject; empty where nothing is. What is not here is
        # not known: a problem may stand in the ledger from before a restart.
        self._reported: dict[tuple[str, str], dict[str, str]] = {}
        self._closed = False
        self._trouble = ""
        self._listeners: list[Callable[[api.Change], None]] = []
        self._reading = self._lane("reading", hangs_after_s)
        self._tickets = self._lane("tickets", hangs_after_s)
        self._probe: Future[api.Health] | None = None
        self._odd_updates: tuple[api.BadRow, ...] = ()

    # -- what the adapter can do

    reads_catalogue = _can(api.ReadsCatalogue)
    reads_changes = _can(api.ReadsCatalogueChanges)
    reads_availability = _can(api.ReadsAvailability)
    reads_tables = _can(api.ReadsTables)
    writes_tickets = _can(api.WritesTickets)
    cancels_tickets = _can(api.CancelsTickets)
    marks_tickets = _can(api.MarksTickets)
    lists_tickets = _can(api.ListsTickets)
    reports_updates = _can(api.ReportsTicketUpdates)
    reports_health = _can(api.ReportsHealth)
    notifies_changes = _can(api.NotifiesChanges)
    _names_files = _can(api.NamesFiles)
    _reports_faults = _can(api.ReportsFaults)
    _has_unreadable_updates = _can(api.ReportsUnreadableUpdates)

    # -- its methods, as the protocols in `tillbridge.adapter` describe them

    read_catalogue = _call(
        api.ReadsCatalogue.read_catalogue, _Policy(api.Catalogue, valid_catalogue)
    )
    read_changes = _call(
        api.ReadsCatalogueChanges.read_changes, _Policy(api.CatalogueChanges, valid_changes)
    )
    read_availability = _call(
        api.ReadsAvailability.read_availability,
        _Policy(api.AvailabilityReading, valid_availability),
    )
    read_tables = _call(api.ReadsTables.read_tables, _Policy(api.TablesReading, valid_tables))
    write_ticket = _call(api.WritesTickets.write_ticket, _WRITES)
    write_marked_ticket = _call(api.MarksTickets.write_marked_ticket, _WRITES)
    find_ticket = _call(
        api.WritesTickets.find_ticket, _Policy(api.Ticket | None, _STORABLE, api.PosOffline)
    )
    cancel_ticket = _call(
        api.CancelsTickets.cancel_ticket, _Policy(NoneType, defect=api.PosFailure)
    )
    list_tickets = _call(
        api.ListsTickets.list_tickets, _Policy(Iterable, valid_listed, api.PosOffline)
    )
    cancel_listed_ticket = _call(
        api.ListsTickets.cancel_listed_ticket, _Policy(NoneType, defect=api.TicketOutcomeUnknown)
    )
    update_handled = _call(
        api.ReportsTicketUpdates.update_handled, _Policy(NoneType, defect=api.PosFailure)
    )

    _read_updates = _call(
        api.ReportsTicketUpdates.read_updates,
        _Policy(Iterable, lambda found: valid_updates(tuple(found)), api.PosOffline),
    )
    _unreadable_updates = _call(
        api.ReportsUnreadableUpdates.unreadable_updates,
        _Policy(Iterable, storable_rows, api.PosOffline),
    )

    async def read_updates(self) -> Sequence[api.TicketUpdate]:
        """Return the news not yet handled, oldest first. Raises PosOffline.

        News that cannot be stored is left out; `unreadable_updates` has it.
        """
        good, self._odd_updates = cast(
            "tuple[Sequence[api.TicketUpdate], tuple[api.BadRow, ...]]", await self._read_updates()
        )
        return good

    async def unreadable_updates(self) -> Sequence[api.BadRow]:
        """Return the news that could not be understood, by the adapter or here."""
        if not self._has_unreadable_updates:
            return self._odd_updates
        return (*await self._unreadable_updates(), *self._odd_updates)

    async def health(self) -> api.Health:
        """Return whether the POS is there; one that does not report it is. Never raises.

        One that has not answered for `ticket_timeout_s` is offline, until it answers.
        """
        if not self.reports_health:
            return api.Health(online=True)
        if self._probe is None or self._probe.done():
            work = partial(
                self._made, _HEALTH, cast("api.ReportsHealth", self._pos).health, "health"
            )
            self._probe = self._tickets.submit(work, "health")
        answered = asyncio.wrap_future(self._probe)
        done, _pending = await asyncio.wait({answered}, timeout=self._ticket_timeout_s)
        if not done:
            answered.add_done_callback(lambda late: late.cancelled() or late.exception())
            return api.Health(online=False, detail=self._no_answer())
        try:
            health = answered.result()
        except Exception as failure:  # noqa: BLE001 -- an adapter's, whatever it is
            return api.Health(online=False, detail=self._failed("health", failure))
        self._returned("health")
        return health

    # -- what it answers at once

    @property
    def adapter(self) -> str:
        """The adapter's name, for people."""
        return self._adapter

    hold_older_than_s = _seconds(api.HoldsLateOrders, api.HoldsLateOrders.hold_older_than_s)
    late_write_s = _seconds(api.WritesLate, api.WritesLate.late_write_s)
    catalogue_files = _files(api.NamesFiles.catalogue_files)
    availability_files = _files(api.NamesFiles.availability_files)
    table_files = _files(api.NamesFiles.table_files)
    update_folders = _files(api.NamesFiles.update_folders)

    def on_change(self, callback: Callable[[api.Change], None]) -> None:
        """Call `callback` in the running event loop when the POS reports a change."""
        if not isinstance(self._pos, api.NotifiesChanges):
            return
        self._listeners.append(callback)
        if len(self._listeners) > 1:
            return  # the menu's flow and the orders' both listen to one till
        changed = partial(call_in, asyncio.get_running_loop(), self._notify_listeners)
        self._at_once("on_change", partial(self._pos.on_change, changed), None, _AT_ONCE_S)

    async def close(self) -> None:
        """Let go of the POS; a call that hangs is not waited for."""
        self._closed = True
        self._reading.close()
        self._tickets.close()
        if isinstance(self._pos, api.Closes):
            ended = asyncio.wrap_future(CallLane(f"{self._store}-close").submit(self._pos.close))
            await asyncio.wait({ended}, timeout=_END_WITHIN_S)
            if not ended.done():
                ended.add_done_callback(lambda late: late.cancelled() or late.exception())
                get_logger().error("adapter.hangs", **self._place("close"), ran_s=_END_WITHIN_S)
            elif (failure := ended.exception()) is not None:
                self._failed("close", failure)

    # -- inside

    def _notify_listeners(self, change: object) -> None:
        if isinstance(change, api.Change):
            for callback in self._listeners:
                callback(change)

    def _lane(self, lane: str, hangs_after_s: float) -> CallLane:
        return CallLane(f"{self._store}-{lane}", hangs_after_s=hangs_after_s, on_hang=self.hangs)

    def _made(self, policy: _Policy, call: Callable[[], object], operation: str) -> Any:  # noqa: ANN401 -- as the policy makes of it
        """Make a call outside the event loop, and return its answer made usable.

        Raises TypeError for one that is none. What this bridge may not do any more is not done: it
        may have waited here while another one took the store over.
        """
        if not self._may_act():
            reads = policy.defect is api.ExportUnreadable
            text = _("This bridge does not serve the store any more.")
            raise api.ExportUnreadable(text) if reads else api.PosOffline(text)
        try:
            answer = call()
            if not isinstance(answer, policy.kind):
                msg = f"{operation} returned {type(answer).__name__}"
                raise TypeError(msg)
            return answer if policy.valid is None or answer is None else policy.valid(answer)
        finally:
            if self._reports_faults:
                try:
                    trouble = cast("api.ReportsFaults", self._pos).trouble()
                    self._trouble = storable_text(trouble, MAX_LINE)
                except Exception:  # noqa: BLE001 -- an adapter's, whatever it is
                    get_logger().exception("adapter.failed", **self._place("trouble"))

    def _at_once(self, operation: str, call: Callable[[], T], otherwise: T, within_s: float) -> T:
        """Return what a call returns that has to answer at once, `otherwise` where it does not.

        It is waited for once; until it has returned, it is not called again.
        """
        if self._reported.get(("adapter.hangs", f"{self._adapter}.{operation}")):
            return otherwise
        made = CallLane(f"{self._store}-{operation}").submit(call)
        wait([made], within_s)
        if not made.done():
            self.hangs(operation, within_s)
            returned = partial(call_in, asyncio.get_running_loop(), self.hangs, operation, None)
            made.add_done_callback(lambda _made: returned())
            return otherwise
        if (failure := made.exception()) is not None:
            self._failed(operation, failure)
            return otherwise
        self._returned(operation)
        return made.result()

    def _no_answer(self) -> str:
        return _("The till has not answered for {seconds:g} seconds.").format(
            seconds=self._ticket_timeout_s
        )

    # -- what is wrong with it

    def hangs(self, operation: str, ran_s: float | None) -> None:
        """Report a call that hangs (it has run for so long), or that it has returned (None)."""
        if self._closed:
            return
        subject = f"{self._adapter}.{operation}"
        if ran_s is None:
            get_logger().info("adapter.returned", **self._place(operation))
            self._set("adapter.hangs", subject)
        else:
            get_logger().error("adapter.hangs", **self._place(operation), ran_s=round(ran_s))
            since = f"{datetime.now(UTC) - timedelta(seconds=ran_s):%Y-%m-%d %H:%M} UTC"
            self._set("adapter.hangs", subject, operation=operation, since=since)

    def _defect(self, operation: str, failure: Exception, policy: _Policy) -> Exception:
        text = self._failed(operation, failure)
        if policy.defect is api.ExportUnreadable:
            fix = _("Tell the adapter's vendor; the log has the details.")
            return api.ExportUnreadable(text, fix=fix)
        return policy.defect(text)

    def _failed(self, operation: str, failure: BaseException) -> str:
        """Take note of what an adapter should not do; return that in words.

        It is logged each time, and reported as it was the first time.
        """
        detail = f"{operation}: {describe(failure)}"
        get_logger().error("adapter.failed", **self._place(operation), exc_info=failure)
        known = self._reported.get(("adapter.failed", f"{self._adapter}.{operation}"))
        self._returned(operation, **(known or {"detail": detail}))
        return _("The adapter {adapter} failed ({detail}).").format(
            adapter=self._adapter, detail=detail
        )

    def _returned(self, operation: str, **fault: str) -> None:
        """Take note that an operation has returned, with its `fault` or without one."""
        subject = f"{self._adapter}.{operation}"
        self._set("adapter.failed", subject, **fault)
        self._set("adapter.hangs", subject)
        if self._reports_faults:
            trouble = {"detail": self._trouble} if self._trouble else {}
            self._set("adapter.keeps_dying", self._adapter, **trouble)

    def _set(self, code: str, subject: str, **detail: str) -> None:
        """Report that a problem is open, or without details that it is not, where that is new."""
        if self._reported.get((code, subject)) != detail:
            self._reported[code, subject] = detail
            found = [Found(code, subject, {"adapter": self._adapter, **detail})] if detail else []
            self._report(Scope.of_one(code, self._store, subject), found)

    def _place(self, operation: str) -> dict[str, str]:
        return {"store": self._store, "adapter": self._adapter, "operation": operation}


# -- what is wrong with an export that was read, as its problem says it


def unreadable_detail(failure: api.ExportUnreadable) -> dict[str, str]:
    """Return the detail of `export.unreadable`."""
    place = joined("", (failure.place, ": "))
    if not failure.place or failure.text.startswith(failure.place):
        place = ""  # the text names it already
    remedy = failure.fix or _("Export again from the till.")
    return {"detail": joined("", (place, failure.text)), "remedy": remedy}


def bad_rows_detail(bad_rows: Sequence[api.BadRow]) -> dict[str, object] | None:
    """Return the detail of `export.bad_rows`; None where every row could be read."""
    if not bad_rows:
        return None
    first = bad_rows[0]
    remedy = first.fix or _("Correct the item in the till, then export again.")
    return {
        "count": len(bad_rows),
        "detail": joined(": ", (first.place, first.text)),
        "remedy": remedy,
    }
