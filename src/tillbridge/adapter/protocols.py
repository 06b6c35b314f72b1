"""What an adapter can do, one small protocol per capability.

An adapter is one object with the methods of the capabilities it has; the core looks which are
there. Methods are plain blocking calls: the core runs them in a thread of the adapter's own, one
for reading and one for tickets, never two calls of the same kind at once. They state facts, and
raise a failure of `tillbridge.adapter.failures` for anything else; they never retry, buffer or
persist.
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
    """Reads a large menu as its difference; an addition to ReadsCatalogue, for speed."""

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return what differs from the records whose fingerprints are `known`.

        Raises as `read_catalogue` does.
        """
        ...


@runtime_checkable
class ReadsAvailability(Protocol):
    """Reads what is sold out, apart from the menu: the fast path for 86ing."""

    def read_availability(self) -> AvailabilityReading:
        """Return by external id what the POS says; items it does not name are as the menu says.

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
    """Writes orders into the POS. `key` (the order's id) is what makes writing idempotent."""

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order, findable by `key`, and return its ticket once the POS has it for good.

        Raises a PosFailure; TicketOutcomeUnknown where the POS may have it.
        """
        ...

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket that was written with `key`, None where there is surely none.

        Raises PosOffline where the POS cannot say now, TicketOutcomeUnknown where nobody ever can.
        """
        ...


@runtime_checkable
class MarksTickets(Protocol):
    """Writes tickets that cannot be looked up again: on paper, where a mark warns a person.

    The core writes such a ticket again, marked, where `find_ticket` raises TicketOutcomeUnknown.
    An adapter that has this can also stand in for a till that cannot take an order.
    """

    def write_marked_ticket(self, order: Order, key: str, marks: AbstractSet[TicketMark]) -> Ticket:
        """Write the order with these marks, and return its ticket once it is surely there.

        A ticket that surely came out before is returned as it is. Raises as `write_ticket` does.
        """
        ...


@runtime_checkable
class HoldsLateOrders(Protocol):
    """Has a person release an old order before it is written: nobody cooks yesterday's backlog."""

    def hold_older_than_s(self) -> float:
        """Return how old an order may be (seconds since it was placed); 0 holds none."""
        ...


@runtime_checkable
class WritesLate(Protocol):
    """Writes into a POS that may carry out a write after its answer was given up.

    `find_ticket` may then say None of a ticket that is still to come. The core writes no second
    ticket until that time is over, and waits twice as long after each further unknown outcome.
    """

    def late_write_s(self) -> float:
        """Return how long a write may take effect after its answer was given up, in seconds."""
        ...


@runtime_checkable
class ListsTickets(Protocol):
    """Lists the tickets in the POS, so that one too many and one that is gone are noticed."""

    def list_tickets(self) -> Sequence[ListedTicket]:
        """Return all tickets written with a key in the last two days, in any state, oldest first.

        Raises PosOffline.
        """
        ...

    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        """Cancel this ticket, and no other of the same key; cancelling it twice does nothing.

        Raises a PosFailure; a plain one where a person has to do it, because staff has begun it.
        """
        ...


@runtime_checkable
class CancelsTickets(Protocol):
    """Takes a written ticket back out of the kitchen."""

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Cancel the ticket; cancelling one twice, or one that never was, does nothing.

        Raises a PosFailure.
        """
        ...


@runtime_checkable
class TellsTicketUpdates(Protocol):
    """Reads the status updates of tickets; each is returned again until it is handled."""

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the updates not yet handled, oldest first. Raises PosOffline."""
        ...

    def update_handled(self, update: TicketUpdate) -> None:
        """Return this update no more: the bridge has stored it."""
        ...


@runtime_checkable
class TellsUnreadableUpdates(Protocol):
    """Reports updates that could not be understood; an addition to TellsTicketUpdates."""

    def unreadable_updates(self) -> Sequence[BadRow]:
        """Return what could not be understood, until a person has cleared it away."""
        ...


@runtime_checkable
class ReportsHealth(Protocol):
    """Reports whether the POS is there. A probe has no side effects and answers soon."""

    def health(self) -> Health:
        """Return whether the POS can be reached; never raises for a POS that is off."""
        ...


@runtime_checkable
class NamesFiles(Protocol):
    """Says which files a change of which means there is something to read.

    An adapter without it is read every `poll_s` seconds.
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
    """Notifies the bridge of changes, so that it need not be asked all the time.

    It is asked once a minute all the same: a notification at a bad moment is not lost. Its first
    name, `TellsChanges`, means the same.
    """

    def on_change(self, hear: Callable[[Change], None]) -> None:
        """Call `hear`, from any thread, whenever something has changed from now on.

        The bridge subscribes once.
        """
        ...


@runtime_checkable
class ReportsFaults(Protocol):
    """Reports what is wrong with the adapter itself, not with the till; no capability of a till.

    Its first name, `TellsTrouble`, means the same.
    """

    def trouble(self) -> str:
        """Return what is wrong in one plain sentence, "" while nothing is; answers at once."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Holds something that must be let go of: a connection, a program; no capability of a till."""

    def close(self) -> None:
        """Let go of it; nothing is asked afterwards. Safe to repeat; answers within a second."""
        ...


# The first names of these; adapters that use them work as they are.
TellsChanges = NotifiesChanges
TellsTrouble = ReportsFaults
