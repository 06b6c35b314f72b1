"""What an adapter reads beside the menu, and what it notifies of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tillbridge.model.catalogue import Availability, BadRow, Source
from tillbridge.model.restaurant import Table


@dataclass(frozen=True, slots=True)
class AvailabilityReading:
    """What the POS says is sold out or on sale, by external id (of items and of variants).

    Items that `items` does not name are as the menu says. An item that only a bad row names keeps
    the state it had.
    """

    items: Mapping[str, Availability] = field(default_factory=dict)
    bad_rows: tuple[BadRow, ...] = ()
    source: Source = field(default_factory=Source, compare=False)


@dataclass(frozen=True, slots=True)
class TablesReading:
    """The whole floor plan; a table that only a bad row names keeps the state it had."""

    tables: tuple[Table, ...] = ()
    bad_rows: tuple[BadRow, ...] = ()
    source: Source = field(default_factory=Source, compare=False)


class Change(StrEnum):
    """What there is to read anew."""

    CATALOGUE = "catalogue"
    AVAILABILITY = "availability"
    TABLES = "tables"
    UPDATES = "updates"
    HEALTH = "health"
