"""The capabilities of an adapter's object, by name."""

from collections.abc import Mapping

from tillbridge.adapter.protocols import (
    CancelsTickets,
    HoldsLateOrders,
    ListsTickets,
    MarksTickets,
    NamesFiles,
    ReadsAvailability,
    ReadsCatalogue,
    ReadsCatalogueChanges,
    ReadsTables,
    ReportsHealth,
    TellsChanges,
    TellsTicketUpdates,
    TellsUnreadableUpdates,
    WritesLate,
    WritesTickets,
)

CAPABILITIES: Mapping[str, type] = {
    "catalogue": ReadsCatalogue,
    "catalogue_changes": ReadsCatalogueChanges,
    "availability": ReadsAvailability,
    "tables": ReadsTables,
    "tickets": WritesTickets,
    "marks": MarksTickets,
    "cancel": CancelsTickets,
    "late": HoldsLateOrders,
    "late_writes": WritesLate,
    "list": ListsTickets,
    "updates": TellsTicketUpdates,
    "unreadable_updates": TellsUnreadableUpdates,
    "health": ReportsHealth,
    "files": NamesFiles,
    "changes": TellsChanges,
}


def capabilities_of(pos: object) -> frozenset[str]:
    """Return the names of what an opened adapter can do."""
    return frozenset(name for name, kind in CAPABILITIES.items() if isinstance(pos, kind))
