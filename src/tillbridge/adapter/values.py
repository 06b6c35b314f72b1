"""The values that adapters and the bridge exchange beside the menu: readings, tickets, health."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tillbridge.adapter.failures import PosFailure, PosOffline, TicketOutcomeUnknown
from tillbridge.model.catalogue import Availability, BadRow, Catalogue, Item, Source
from tillbridge.model.numbers import map_leaves
from tillbridge.model.restaurant import Table


@dataclass(frozen=True, slots=True)
class AvailabilityReading:
    """What the POS says is sold out or on sale, by external id (of items and of variants).

    For items that `items` does not name, the menu counts. An item that only a bad row names keeps
    its state.
    """

    items: Mapping[str, Availability] = field(default_factory=dict)
    bad_rows: tuple[BadRow, ...] = ()
    source: Source = field(default_factory=Source, compare=False)


@dataclass(frozen=True, slots=True)
class TablesReading:
    """The whole floor plan. A table that only a bad row names keeps its state."""

    tables: tuple[Table, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    source: Source = field(default_factory=Source, compare=False)


class Change(StrEnum):
    """What has changed and must be read again."""

    CATALOGUE = "catalogue"
    AVAILABILITY = "availability"
    TABLES = "tables"
    UPDATES = "updates"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Ticket:
    """An order in the POS; `reference` is the POS's own number or name for it."""

    reference: str


@dataclass(frozen=True, slots=True)
class ListedTicket:
    """One of the tickets that the POS has under a key.

    `record` identifies it among several with the same key, in the POS's own terms. `live` is False
    if it is cancelled or refunded.
    """

    key: str
    reference: str
    record: str
    live: bool = True


def written_once(find: Callable[[], Ticket | None], write: Callable[[], Ticket]) -> Ticket:
    """Return the ticket that `find` finds, else the one that `write` writes. For `write_ticket`.

    If the till refuses, it may be because it has the ticket, from a write that was cut off: then
    the result is what `find` finds now. Raises whatever they raise.
    """
    if (found := find()) is not None:
        return found
    try:
        return write()
    except (PosOffline, TicketOutcomeUnknown):
        raise
    except PosFailure:
        if (found := find()) is not None:
            return found
        raise


class TicketMark(StrEnum):
    """A mark at the top of a paper ticket, for people to read first."""

    POSSIBLE_DUPLICATE = "possible_duplicate"  # it may have been printed before
    NOT_IN_TILL = "not_in_till"  # the till could not take it: somebody must type it in
    TILL_MAY_HAVE_IT = "till_may_have_it"  # ... after looking: the till did not answer


class TicketStatus(StrEnum):
    """The progress of a ticket (contract: `updates_dir`)."""

    ACCEPTED = "accepted"
    PREPARING = "preparing"
    READY = "ready"
    COMPLETED = "completed"
    REJECTED = "rejected"


class RejectReason(StrEnum):
    """Why the POS rejects a ticket (contract: `updates_dir`, `reason`)."""

    ITEM_UNAVAILABLE = "item_unavailable"
    STORE_CLOSED = "store_closed"
    POS_OFFLINE = "pos_offline"
    CAPACITY = "capacity"
    PRICE_MISMATCH = "price_mismatch"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TicketUpdate:
    """A status update of a ticket, from the POS.

    `key` names this update to the adapter (a file name, a row id) for `update_handled`.
    `reason`, `external_ids` and `message` belong to a rejection.
    """

    key: str
    order_id: str
    status: TicketStatus
    reason: RejectReason | None = None
    external_ids: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting of the POS that spoils orders although they are written, and the remedy."""

    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the POS can be reached now. `detail` is one plain sentence for the technician.

    `closed` is a plain sentence if the POS is online but takes no orders now (no open session): the
    store is paused until it is "" again. `advice` stays until the POS is set up differently. `fix`
    is one sentence that says what to do if the POS is not online and the cause is known: a refused
    login needs another password, not a look at the till's plug.
    """

    online: bool
    detail: str = ""
    closed: str = ""
    advice: tuple[Advice, ...] = ()
    fix: str = ""


# -- what an adapter read, as JSON values: for people, for case folders, for comparing
#
# Fields that have their default are left out, so that a case shows what matters. Prices stay
# integer minor units, instants ms since the epoch.

Json = dict[str, Any]


def catalogue_json(catalogue: Catalogue) -> Json:
    """Return a catalogue: each kind of thing as a list, in the till's order.

    Of the export's facts what is left out and what to be warned of, which follow from its contents.
    """
    found = {
        name: [_plain(each) for each in getattr(catalogue, name).values()]
        for name in ("menus", "categories", "items", "add_ons", "addon_groups")
    }
    found["bad_rows"] = [_plain(each) for each in catalogue.bad_rows]
    found["left_out"] = [_plain(each) for each in catalogue.facts.left_out]
    found["warnings"] = [_plain(each) for each in catalogue.facts.warnings]
    return {name: things for name, things in found.items() if things}


def value_json(value: Item | Table) -> Json:
    """Return one item, or one table."""
    found: Json = _plain(value)
    return found


def part_json(reading: AvailabilityReading | TablesReading) -> Json:
    """Return what is on and off sale, by external id; or the floor plan."""
    found: Json
    if isinstance(reading, AvailabilityReading):
        found = {"items": {key: _plain(state) for key, state in reading.items.items()}}
    else:
        found = {"tables": [_plain(table) for table in reading.tables]}
    bad_rows = [_plain(row) for row in reading.bad_rows]  # all their words: a person reads them
    return {**found, "bad_rows": bad_rows} if bad_rows else found


def _plain(value: Any) -> Any:  # noqa: ANN401 -- a value of the model, or a part of one
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: map_leaves(part, _plain)
            for field in dataclasses.fields(value)
            if (part := getattr(value, field.name)) != field.default
        }
    return value
