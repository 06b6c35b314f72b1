"""What an adapter read, as JSON values: for people, for case folders, for comparing.

Fields that have their default are left out, so that a case shows what matters. Prices stay integer
minor units, instants ms since the epoch.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tillbridge.adapter.values import AvailabilityReading, TablesReading
from tillbridge.model.catalogue import BadRow, Catalogue, Item
from tillbridge.model.restaurant import Table

Json = dict[str, Any]


def catalogue_json(catalogue: Catalogue) -> Json:
    """Return a catalogue: each kind of thing as a list, in the till's order.

    Of the export's facts what is left out and what to be warned of, which follow from its contents.
    """
    found = {
        name: [_plain(each) for each in getattr(catalogue, name).values()]
        for name in ("menus", "categories", "items", "add_ons", "addon_groups")
    }
    found["bad_rows"] = bad_rows_json(catalogue.bad_rows)
    found["left_out"] = [_plain(each) for each in catalogue.facts.left_out]
    found["warnings"] = [_plain(each) for each in catalogue.facts.warnings]
    return {name: things for name, things in found.items() if things}


def item_json(item: Item) -> Json:
    """Return one item."""
    found: Json = _plain(item)
    return found


def table_json(table: Table) -> Json:
    """Return one table."""
    found: Json = _plain(table)
    return found


def availability_json(reading: AvailabilityReading) -> Json:
    """Return what is on and off sale, by external id."""
    found: Json = {"items": {key: _plain(state) for key, state in reading.items.items()}}
    if reading.bad_rows:
        found["bad_rows"] = bad_rows_json(reading.bad_rows)
    return found


def tables_json(reading: TablesReading) -> Json:
    """Return the floor plan."""
    found: Json = {"tables": [_plain(table) for table in reading.tables]}
    if reading.bad_rows:
        found["bad_rows"] = bad_rows_json(reading.bad_rows)
    return found


def bad_rows_json(rows: tuple[BadRow, ...]) -> list[Json]:
    """Return bad rows; all their words, since a person reads them."""
    return [_plain(row) for row in rows]


def _plain(value: Any) -> Any:  # noqa: ANN401 -- a value of the model, or a part of one
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(part)
            for field in dataclasses.fields(value)
            if _differs(field, part := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return value


def _differs(field: "dataclasses.Field[Any]", value: object) -> bool:
    """Return whether a field says more than its default."""
    return field.default is dataclasses.MISSING or value != field.default
