"""One store's POS, awaited: the adapter's blocking methods, each kind in a thread of its own.

Here, once, everything an adapter may do wrong becomes one of the failures the core knows: an
exception that no adapter should raise, an answer of the wrong kind, no answer at all.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar

from tillbridge.adapter import (
    AvailabilityReading,
    BadRow,
    CancelsTickets,
    Catalogue,
    CatalogueChanges,
    Change,
    Closes,
    ExportUnreadable,
    Health,
    HoldsLateOrders,
    ListedTicket,
    ListsTickets,
    MarksTickets,
    NamesFiles,
    Order,
    PosFailure,
    PosOffline,
    ReadsAvailability,
    ReadsCatalogue,
    ReadsCatalogueChanges,
    ReadsTables,
    ReportsHealth,
    TablesReading,
    TellsChanges,
    TellsTicketUpdates,
    TellsTrouble,
    TellsUnreadableUpdates,
    Ticket,
    TicketMark,
    TicketOutcomeUnknown,
    TicketUpdate,
    WritesLate,
    WritesTickets,
)
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.supervision import describe
from tillbridge.pos.storable import storable_rows, valid_failure, valid_line
from tillbridge.pos.validation import (
    valid_availability,
    valid_catalogue,
    valid_changes,
    valid_health,
    valid_listed,
    valid_paths,
    valid_tables,
    valid_ticket,
    valid_updates,
)
from tillbridge.pos.worker import Worker

T = TypeVar("T")

OnFault = Callable[[str, str | None], None]
"""Told the operation and what went wrong, or None once that operation works (again)."""

OnTrouble = Callable[[str | None], None]
"""Told what is wrong with the adapter itself, or None once nothing is."""


class PosRunner:
    """An adapter's object as coroutines. What it cannot do raises TypeError: look first.

    `ticket_timeout_s` is how long a call about tickets may take. A write that takes longer raises
    TicketOutcomeUnknown; it goes on in its thread, and the next call about tickets comes after it.
    """

    def __init__(
        self,
        pos: object,
        *,
        store: str,
        adapter: str,
        ticket_timeout_s: float,
        on_fault: OnFault,
        on_trouble: OnTrouble = lambda _trouble: None,
    ) -> None:
        self._pos = pos
        self._store = store
        self._adapter = adapter
        self._ticket_timeout_s = ticket_timeout_s
        self._on_fault = on_fault
        self._on_trouble = on_trouble
        # None is not known: a problem may stand in the ledger from before a restart.
        self._faulty: dict[str, bool] = {}
        self._trouble: str | None = None
        self._hearers: list[Callable[[Change], None]] = []
        self._reading = Worker(f"{store}-reading")
        self._tickets = Worker(f"{store}-tickets")
        self._probe: asyncio.Future[Health] | None = None
        self._odd_updates: tuple[BadRow, ...] = ()

    @property
    def adapter(self) -> str:
        """The adapter's name, for people."""
        return self._adapter

    @property
    def reads_catalogue(self) -> bool:
        """Whether there is a menu to read."""
        return isinstance(self._pos, ReadsCatalogue)

    @property
    def reads_changes(self) -> bool:
        """Whether the menu can be read as its difference."""
        return isinstance(self._pos, ReadsCatalogueChanges)

    @property
    def reads_availability(self) -> bool:
        """Whether the POS tells availability apart from the menu."""
        return isinstance(self._pos, ReadsAvailability)

    @property
    def reads_tables(self) -> bool:
        """Whether there is a floor plan to read."""
        return isinstance(self._pos, ReadsTables)

    @property
    def writes_tickets(self) -> bool:
        """Whether orders can be written."""
        return isinstance(self._pos, WritesTickets)

    @property
    def cancels_tickets(self) -> bool:
        """Whether a written order can be taken back."""
        return isinstance(self._pos, CancelsTickets)

    @property
    def marks_tickets(self) -> bool:
        """Whether tickets can be written with marks for a person to read."""
        return isinstance(self._pos, MarksTickets)

    @property
    def hold_older_than_s(self) -> float:
        """How old an order may be without a person asking for it (seconds); 0 for any age."""
        if not isinstance(self._pos, HoldsLateOrders):
            return 0.0
        return self._seconds("hold_older_than_s", self._pos.hold_older_than_s)

    @property
    def late_write_s(self) -> float:
        """How long a write may take effect after its answer was given up (seconds); 0: never."""
        if not isinstance(self._pos, WritesLate):
            return 0.0
        return self._seconds("late_write_s", self._pos.late_write_s)

    @property
    def lists_tickets(self) -> bool:
        """Whether the POS lists its tickets, so that one too many and one that is gone are seen."""
        return isinstance(self._pos, ListsTickets)

    @property
    def tells_updates(self) -> bool:
        """Whether the POS tells how tickets go on."""
        return isinstance(self._pos, TellsTicketUpdates)

    @property
    def reports_health(self) -> bool:
        """Whether the POS says if it is there."""
        return isinstance(self._pos, ReportsHealth)

    @property
    def tells_changes(self) -> bool:
        """Whether the POS tells by itself that there is something to read."""
        return isinstance(self._pos, TellsChanges)

    def on_change(self, hear: Callable[[Change], None]) -> None:
        """Call `hear` in the running event loop when the POS tells of a change."""
        if not isinstance(self._pos, TellsChanges):
            return
        self._hearers.append(hear)
        if len(self._hearers) > 1:
            return  # the menu's flow and the orders' both listen to one till
        loop = asyncio.get_running_loop()

        def told(change: Change) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended; nobody listens
                loop.call_soon_threadsafe(self._heard, change)

        self._pos.on_change(told)

    def _heard(self, change: object) -> None:
        if isinstance(change, Change):
            for hear in self._hearers:
                hear(change)

    def catalogue_files(self) -> Sequence[Path]:
        """Return the files the menu is read from; none where the adapter names none."""
        return self._paths("catalogue_files")

    def availability_files(self) -> Sequence[Path]:
        """Return the files availability is read from; none where the adapter names none."""
        return self._paths("availability_files")

    def table_files(self) -> Sequence[Path]:
        """Return the files the tables are read from; none where the adapter names none."""
        return self._paths("table_files")

    def update_folders(self) -> Sequence[Path]:
        """Return the folders news of tickets appears in; none where the adapter names none."""
        return self._paths("update_folders")

    async def read_catalogue(self) -> Catalogue:
        """Return the whole menu. Raises ExportUnreadable, PosFailure."""
        if not isinstance(self._pos, ReadsCatalogue):
            raise _unable("ReadsCatalogue")
        pos = self._pos
        return await self._read("read_catalogue", pos.read_catalogue, Catalogue, valid_catalogue)

    async def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return what differs from the records `known`. Raises ExportUnreadable, PosFailure."""
        if not isinstance(self._pos, ReadsCatalogueChanges):
            raise _unable("ReadsCatalogueChanges")
        pos = self._pos
        return await self._read(
            "read_changes", lambda: pos.read_changes(known), CatalogueChanges, valid_changes
        )

    async def read_availability(self) -> AvailabilityReading:
        """Return what is sold out. Raises ExportUnreadable, PosFailure."""
        if not isinstance(self._pos, ReadsAvailability):
            raise _unable("ReadsAvailability")
        pos = self._pos
        return await self._read(
            "read_availability", pos.read_availability, AvailabilityReading, valid_availability
        )

    async def read_tables(self) -> TablesReading:
        """Return the floor plan. Raises ExportUnreadable, PosFailure."""
        if not isinstance(self._pos, ReadsTables):
            raise _unable("ReadsTables")
        pos = self._pos
        return await self._read("read_tables", pos.read_tables, TablesReading, valid_tables)

    async def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order. Raises PosFailure: TicketOutcomeUnknown where the POS may have it.

        An adapter that breaks off in a way it should not may have written it, too.
        """
        if not isinstance(self._pos, WritesTickets):
            raise _unable("WritesTickets")
        pos = self._pos
        found: Ticket = await self._about_tickets(
            "write_ticket",
            lambda: pos.write_ticket(order, key),
            Ticket,
            TicketOutcomeUnknown,
            valid_ticket,
        )
        return found

    async def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket written with `key`.

        Raises PosOffline where nobody can say now, TicketOutcomeUnknown where nobody ever can.
        """
        if not isinstance(self._pos, WritesTickets):
            raise _unable("WritesTickets")
        pos = self._pos
        found: Ticket | None = await self._about_tickets(
            "find_ticket", lambda: pos.find_ticket(key), Ticket | None, PosOffline, valid_ticket
        )
        return found

    async def write_marked_ticket(
        self, order: Order, key: str, marks: AbstractSet[TicketMark]
    ) -> Ticket:
        """Write the order with marks. Raises PosFailure, as `write_ticket` does."""
        if not isinstance(self._pos, MarksTickets):
            raise _unable("MarksTickets")
        pos = self._pos
        found: Ticket = await self._about_tickets(
            "write_marked_ticket",
            lambda: pos.write_marked_ticket(order, key, marks),
            Ticket,
            TicketOutcomeUnknown,
            valid_ticket,
        )
        return found

    async def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Take the ticket back; safe to repeat. Raises PosFailure."""
        if not isinstance(self._pos, CancelsTickets):
            raise _unable("CancelsTickets")
        pos = self._pos
        await self._about_tickets(
            "cancel_ticket", lambda: pos.cancel_ticket(order, key, reason), NoneType, PosFailure
        )

    async def list_tickets(self) -> Sequence[ListedTicket]:
        """Return the tickets in the POS, oldest first. Raises PosOffline."""
        if not isinstance(self._pos, ListsTickets):
            raise _unable("ListsTickets")
        pos = self._pos
        found: Sequence[ListedTicket] = await self._about_tickets(
            "list_tickets", lambda: tuple(pos.list_tickets()), tuple, PosOffline, valid_listed
        )
        return found

    async def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        """Take back this ticket and no other; safe to repeat. Raises PosFailure."""
        if not isinstance(self._pos, ListsTickets):
            raise _unable("ListsTickets")
        pos = self._pos
        await self._about_tickets(
            "cancel_listed_ticket",
            lambda: pos.cancel_listed_ticket(ticket, order, reason),
            NoneType,
            TicketOutcomeUnknown,
        )

    async def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the news not yet handled, oldest first. Raises PosOffline.

        News that cannot be kept is left out, and told by `unreadable_updates`.
        """
        if not isinstance(self._pos, TellsTicketUpdates):
            raise _unable("TellsTicketUpdates")
        pos = self._pos
        good: tuple[TicketUpdate, ...]
        good, self._odd_updates = await self._about_tickets(
            "read_updates", lambda: tuple(pos.read_updates()), tuple, PosOffline, valid_updates
        )
        return good

    async def update_handled(self, update: TicketUpdate) -> None:
        """Take note that the news is kept for good. Raises PosFailure."""
        if not isinstance(self._pos, TellsTicketUpdates):
            raise _unable("TellsTicketUpdates")
        pos = self._pos
        await self._about_tickets(
            "update_handled", lambda: pos.update_handled(update), NoneType, PosFailure
        )

    async def unreadable_updates(self) -> Sequence[BadRow]:
        """Return the news that could not be understood, by the adapter or here."""
        if not isinstance(self._pos, TellsUnreadableUpdates):
            return self._odd_updates
        pos = self._pos
        told: tuple[BadRow, ...] = await self._about_tickets(
            "unreadable_updates",
            lambda: tuple(pos.unreadable_updates()),
            tuple,
            PosOffline,
            storable_rows,
        )
        return (*told, *self._odd_updates)

    async def health(self) -> Health:
        """Return whether the POS is there; one that says nothing of it is. Never raises.

        One that has not answered for `ticket_timeout_s` is offline, until it answers.
        """
        if not isinstance(self._pos, ReportsHealth):
            return Health(online=True)
        if self._probe is None or self._probe.done():
            _call, self._probe = self._tickets.submit(self._pos.health)
        probe = self._probe
        done, _waiting = await asyncio.wait({probe}, timeout=self._ticket_timeout_s)
        if not done:
            return Health(online=False, detail=self._no_answer())
        try:
            health = valid_health(self._checked("health", probe.result(), Health))
        except Exception as failure:  # noqa: BLE001 -- an adapter's, whatever it is
            return Health(online=False, detail=self._fault("health", failure))
        self._works("health")
        return health

    def close(self) -> None:
        """Let go of the POS, and let the threads end; one that hangs is not waited for."""
        if isinstance(self._pos, Closes):
            try:
                self._pos.close()
            except Exception as failure:  # noqa: BLE001 -- an adapter's, whatever it is
                self._fault("close", failure)
        self._reading.close()
        self._tickets.close()

    def _paths(self, operation: str) -> Sequence[Path]:
        if not isinstance(self._pos, NamesFiles):
            return ()
        try:
            return valid_paths(getattr(self._pos, operation)())
        except Exception as failure:  # noqa: BLE001 -- an adapter's, whatever it is
            self._fault(operation, failure)
            return ()

    def _seconds(self, operation: str, call: Callable[[], float]) -> float:
        try:
            seconds = float(call())
        except Exception as failure:  # noqa: BLE001 -- an adapter's, whatever it is
            self._fault(operation, failure)
            return 0.0
        return max(0.0, seconds) if math.isfinite(seconds) else 0.0

    async def _read(
        self,
        operation: str,
        call: Callable[[], T],
        kind: type[T],
        valid: Callable[[T], T],
    ) -> T:
        def read() -> T:
            return valid(self._checked(operation, call(), kind))

        try:
            result = await self._reading.run(read)
        except (ExportUnreadable, PosFailure) as failure:
            valid_failure(failure)
            self._works(operation)
            raise
        except Exception as failure:
            text = self._fault(operation, failure)
            raise ExportUnreadable(
                text, fix=_("Tell the adapter's vendor; the log has the details.")
            ) from failure
        self._works(operation)
        return result

    async def _about_tickets(
        self,
        operation: str,
        function: Callable[[], T],
        kind: type | UnionType,
        unexpected: type[PosFailure],
        valid: Callable[[Any], Any] | None = None,
    ) -> Any:  # noqa: ANN401 -- as `valid` makes of it
        call, outcome = self._tickets.submit(function)
        try:
            done, _waiting = await asyncio.wait({outcome}, timeout=self._ticket_timeout_s)
        except asyncio.CancelledError:
            call.withdraw()
            raise
        if not done:
            outcome.add_done_callback(_forget)
            # Only a call that never began has surely done nothing.
            raise (PosOffline if call.withdraw() else unexpected)(self._no_answer())
        try:
            result: Any = self._checked(operation, outcome.result(), kind)
            if valid is not None and result is not None:
                result = valid(result)
        except PosFailure as failure:
            valid_failure(failure)
            self._works(operation)
            raise
        except Exception as failure:
            raise unexpected(self._fault(operation, failure)) from failure
        self._works(operation)
        return result

    def _checked(self, operation: str, result: T, kind: type | UnionType) -> T:
        if not isinstance(result, kind):
            raise TypeError(f"{operation} returned {type(result).__name__}")
        return result

    def _no_answer(self) -> str:
        return _("The till has not answered for {seconds:g} seconds.").format(
            seconds=self._ticket_timeout_s
        )

    def _fault(self, operation: str, failure: BaseException) -> str:
        """Log and tell what an adapter should not do, and return it in words."""
        detail = f"{operation}: {describe(failure)}"
        get_logger().error(
            "adapter.failed",
            store=self._store,
            adapter=self._adapter,
            operation=operation,
            exc_info=failure,
        )
        if not self._faulty.get(operation, False):
            self._faulty[operation] = True
            self._on_fault(operation, detail)
        self._look_for_trouble()
        return _("The adapter {adapter} failed ({detail}).").format(
            adapter=self._adapter, detail=detail
        )

    def _works(self, operation: str) -> None:
        if self._faulty.get(operation, True):
            self._faulty[operation] = False
            self._on_fault(operation, None)
        self._look_for_trouble()

    def _look_for_trouble(self) -> None:
        if isinstance(self._pos, TellsTrouble):
            try:
                trouble = valid_line(self._pos.trouble())
            except Exception:  # noqa: BLE001 -- an adapter's, whatever it is
                get_logger().exception("adapter.failed", store=self._store, operation="trouble")
                return
            if trouble != self._trouble:
                self._trouble = trouble
                self._on_trouble(trouble or None)


def _unable(capability: str) -> TypeError:
    return TypeError(f"this adapter has no capability {capability}: look before asking")


def _forget(outcome: asyncio.Future[Any]) -> None:
    """Take note of a late outcome that nobody waits for any more."""
    if not outcome.cancelled():
        outcome.exception()
