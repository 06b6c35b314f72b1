"""What an adapter can do, one small protocol per capability.

An adapter is one object with the methods of the capabilities it has; the core looks which are
there. Methods are plain blocking calls. The core runs them outside its event loop, in whichever
thread is free: those that read one after the other, those about tickets one after the other, never
two calls of the same kind at once. They state facts, and raise a failure of
`tillbridge.adapter.failures` for anything else; they never retry, buffer or persist.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Protocol, runtime_checkable

from tillbridge.adapter.values import (
    AvailabilityReading,
    Change,
    Health,
    ListedTicket,
    TablesReading,
    Ticket,
    TicketMark,
    TicketUpdate,
)
from tillbridge.model.catalogue import BadRow, Catalogue, CatalogueChanges
from tillbridge.model.order import Order


@runtime_checkable
class ReadsCatalogue(Protocol):
    """Reads the whole menu."""

    def read_catalogue(self) -> Catalogue:
        """Return what the POS sells now. Raises ExportUnreadable or PosOffline."""
        ...


@runtime_checkable
class ReadsCatalogueChanges(Protocol):
    """Reads only the changes of a large menu; an addition to ReadsCatalogue, for speed."""

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return what differs from the records with the fingerprints in `known`.

        Raises as `read_catalogue` does.
        """
        ...


@runtime_checkable
class ReadsAvailability(Protocol):
    """Reads what is sold out, separately from the menu: the fast path for 86ing."""

    def read_availability(self) -> AvailabilityReading:
        """Return what the POS says, by external id; for items it does not name, the menu counts.

        Raises ExportUnreadable or PosOffline.
        """
        ...


@runtime_checkable
class ReadsTables(Protocol):
    """Reads the floor plan."""

    def read_tables(self) -> TablesReading:
        """Return all tables. Raises ExportUnreadable or PosOffline."""
        ...


@runtime_checkable
class WritesTickets(Protocol):
    """Writes orders into the POS. `key` (the order's id) makes writing idempotent."""

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order so that `key` finds it; return its ticket once the POS has confirmed it.

        Raises a PosFailure, or TicketOutcomeUnknown if the POS may have the order.
        """
        ...

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket that was written with `key`, or None if there is certainly none.

        Raises PosOffline if the POS cannot say now, TicketOutcomeUnknown if nobody ever can.
        """
        ...


@runtime_checkable
class MarksTickets(Protocol):
    """Writes tickets that cannot be looked up again, on paper, where a mark warns people.

    If `find_ticket` raises TicketOutcomeUnknown, the core writes the ticket again, marked. Such an
    adapter can also be the fallback for a till that cannot take an order.
    """

    def write_marked_ticket(self, order: Order, key: str, marks: AbstractSet[TicketMark]) -> Ticket:
        """Write the order with these marks, and return its ticket once it is confirmed.

        Return a ticket that was certainly printed before as it is. Raises as `write_ticket` does.
        """
        ...


@runtime_checkable
class HoldsLateOrders(Protocol):
    """Waits for a person to release old orders, so that nobody cooks yesterday's backlog."""

    def hold_older_than_s(self) -> float:
        """Return how old an order may be (seconds since it was placed); 0 means no limit."""
        ...


@runtime_checkable
class WritesLate(Protocol):
    """Writes into a POS that may carry out a write after the bridge has stopped waiting for it.

    `find_ticket` may then return None for a ticket that is still to come. The core writes no second
    ticket until that time is over, and waits twice as long after each further unknown outcome.
    """

    def late_write_s(self) -> float:
        """Return for how many seconds after its time-out a write may still take effect."""
        ...


@runtime_checkable
class ListsTickets(Protocol):
    """Lists the tickets in the POS, so that duplicate and missing tickets are noticed."""

    def list_tickets(self) -> Sequence[ListedTicket]:
        """Return all tickets written with a key in the last two days, in any state, oldest first.

        Raises PosOffline.
        """
        ...

    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        """Cancel this ticket, and no other of the same key; cancelling it twice does nothing.

        Raises a PosFailure; a plain one if a person has to do it, since staff have started it.
        """
        ...


@runtime_checkable
class CancelsTickets(Protocol):
    """Cancels written tickets."""

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Cancel the ticket; cancelling it twice, or one that does not exist, does nothing.

        Raises a PosFailure.
        """
        ...


@runtime_checkable
class ReportsTicketUpdates(Protocol):
    """Reads status updates of tickets. Each is returned again until it is handled.

    The former name, `TellsTicketUpdates`, still works.
    """

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the updates not yet handled, oldest first. Raises PosOffline."""
        ...

    def update_handled(self, update: TicketUpdate) -> None:
        """Do not return this update any more: the bridge has stored it."""
        ...


@runtime_checkable
class ReportsUnreadableUpdates(Protocol):
    """Reports updates that could not be understood; an addition to ReportsTicketUpdates.

    The former name, `TellsUnreadableUpdates`, still works.
    """

    def unreadable_updates(self) -> Sequence[BadRow]:
        """Return what could not be understood, until a person has removed it."""
        ...


@runtime_checkable
class ReportsHealth(Protocol):
    """Reports whether the POS is online. A probe has no side effects and answers quickly."""

    def health(self) -> Health:
        """Return whether the POS can be reached. Never raises if the POS is off."""
        ...


@runtime_checkable
class NamesFiles(Protocol):
    """Names the files to watch: if one changes, there is something to read.

    An adapter without it is polled every `poll_s` seconds.
    """

    def catalogue_files(self) -> Sequence[Path]:
        """Return the files the catalogue is read from."""
        ...

    def availability_files(self) -> Sequence[Path]:
        """Return the files availability is read from."""
        ...

    def table_files(self) -> Sequence[Path]:
        """Return the files the tables are read from."""
        ...

    def update_folders(self) -> Sequence[Path]:
        """Return the folders in which ticket updates appear as files."""
        ...


@runtime_checkable
class NotifiesChanges(Protocol):
    """Notifies the bridge of changes, so that it need not poll all the time.

    The bridge still polls once a minute, in case a notification is lost. The former name,
    `TellsChanges`, still works.
    """

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """From now on, call `listener`, from any thread, whenever something has changed.

        The bridge subscribes once.
        """
        ...


@runtime_checkable
class ReportsFaults(Protocol):
    """Reports faults of the adapter itself, not of the till; not a capability of a till.

    The former name, `TellsTrouble`, still works.
    """

    def trouble(self) -> str:
        """Return what is wrong in one plain sentence, or "" if nothing is. Returns at once."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Keeps a connection or a program open, which must be closed; no capability of a till."""

    def close(self) -> None:
        """Close it; no calls follow. Safe to repeat; returns within a second."""
        ...


# The first names of these; adapters that use them work as they are.
TellsChanges = NotifiesChanges
TellsTrouble = ReportsFaults
TellsTicketUpdates = ReportsTicketUpdates
TellsUnreadableUpdates = ReportsUnreadableUpdates
