"""The small tables beside a menu: add-ons, what is sold out, and the floor plan."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

from tillbridge.adapter import (
    AdapterContext,
    AddOn,
    AddOnGroup,
    Availability,
    AvailabilityReading,
    BadRow,
    Catalogue,
    Source,
    TablesReading,
)
from tillbridge.adapter import Table as DiningTable
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.texts import _
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.items import RowValues
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, TableSource, read_table


class SideTables:
    """Reads the tables that the options name."""

    def __init__(self, options: FolderOptions, context: AdapterContext) -> None:
        def source(path: Path | None, required: str, optional: str) -> TableSource:
            return options.table(
                context.base_dir / (path or Path()),
                required.split(),
                optional.split(),
                must_rename=False,
            )

        self._options = options
        self._currency = context.currency
        self._zone = None if options.timezone is None else ZoneInfo(options.timezone)
        self._add_ons = source(
            options.addons,
            "group_id external_id name price",
            "group_name min_select max_select required",
        )
        self._availability = source(options.availability, "external_id available", "snooze_until")
        self._tables = source(options.tables, "external_id name", "seats zone")

    def read_add_ons(self) -> Catalogue:
        """Return the add-ons, their groups and the bad rows.

        The first row of a group describes it; an add-on may be in many groups. Raises
        ExportUnreadable.
        """
        return read_table(self._add_ons, self._add_ons_of)

    def read_availability(self) -> AvailabilityReading:
        """Return what the till says is sold out. Raises ExportUnreadable.

        Of several rows with one id the last counts, so a till may append to the file.
        """
        return read_table(self._availability, self._availability_of)

    def read_tables(self) -> TablesReading:
        """Return all tables; of several rows with one id the first counts.

        Raises ExportUnreadable.
        """
        return read_table(self._tables, _tables_of)

    def _add_ons_of(self, table: Table) -> Catalogue:
        add_ons: dict[str, AddOn] = {}
        groups: dict[str, AddOnGroup] = {}
        prices = PriceReader.of(table.written("price"), self._currency, self._options.decimal)
        values = RowValues(prices)

        bad_rows: list[BadRow] = []
        for fields, place in _rows(table):
            try:
                add_on = _add_on(fields, add_ons, values)
                group = _group(fields, groups)
            except BadCell as bad:
                bad_rows.append(bad.at(place))
                continue
            add_ons[add_on.external_id] = add_on
            members = tuple(dict.fromkeys((*group.add_ons, add_on.external_id)))
            groups[group.external_id] = replace(group, add_ons=members)
        at_end = table.passed.ends_with_newline()
        return Catalogue(
            add_ons=add_ons, addon_groups=groups, bad_rows=tuple(bad_rows), ends_with_newline=at_end
        )

    def _availability_of(self, table: Table) -> AvailabilityReading:
        items: dict[str, Availability] = {}
        places: dict[str, str] = {}

        bad_rows: list[BadRow] = []
        for fields, place in _rows(table):
            try:
                external_id = cells.text("external_id", fields["external_id"], needed=True)
                available = cells.yes_or_no("available", fields["available"])
                ends = fields["snooze_until"]
                until = None if available else cells.instant("snooze_until", ends, self._zone)
            except BadCell as bad:
                bad_rows.append(bad.at(place, external_id=cells.plain(fields["external_id"])))
                continue
            items[external_id] = Availability(available, until)
            places[external_id] = place
        columns = {**table.shown, "until": table.shown.get("snooze_until", "")}
        return AvailabilityReading(items, tuple(bad_rows), Source(places, columns))


_Fields = Mapping[str, str]


def _rows(table: Table) -> Iterator[tuple[_Fields, str]]:
    """Yield every row with its place."""
    for number, row in table.rows():
        yield table.fields(row), table.place(number)


def _add_on(fields: _Fields, known: Mapping[str, AddOn], values: RowValues) -> AddOn:
    name = cells.text("name", fields["name"], needed=True)
    add_on = AddOn(
        external_id=cells.text("external_id", fields["external_id"], needed=True),
        name=name,
        price=values.price_of("price", fields["price"], name),
    )
    if known.get(add_on.external_id, add_on) != add_on:
        raise BadCell(
            "external_id",
            add_on.external_id,
            _("Add-on {external_id!r} has another name or price in a row above.").format(
                external_id=add_on.external_id
            ),
            _("Give add-ons that differ ids of their own; the first row counts."),
        )
    return add_on


def _group(fields: _Fields, known: Mapping[str, AddOnGroup]) -> AddOnGroup:
    group_id = cells.text("group_id", fields["group_id"], needed=True)
    if group_id in known:
        return known[group_id]
    least = cells.whole_number("min_select", fields["min_select"], empty=0) or 0
    most = cells.whole_number("max_select", fields["max_select"], empty=0) or 0
    if most and most < least:
        raise BadCell(
            "max_select",
            most,
            _("max_select {most} is less than min_select {least}.").format(most=most, least=least),
            _("Correct the numbers in the till."),
        )
    return AddOnGroup(
        external_id=group_id,
        name=cells.text("group_name", fields["group_name"]) or group_id,
        min_select=least,
        max_select=most,
        required=cells.yes_or_no("required", fields["required"], empty=least > 0),
    )


def _tables_of(table: Table) -> TablesReading:
    tables: dict[str, DiningTable] = {}
    places: dict[str, str] = {}

    bad_rows: list[BadRow] = []
    for fields, place in _rows(table):
        external_id = cells.plain(fields["external_id"])
        try:
            dining_table = DiningTable(
                external_id=cells.text("external_id", fields["external_id"], needed=True),
                name=cells.text("name", fields["name"], needed=True),
                seats=cells.whole_number("seats", fields["seats"], empty=None),
                zone=cells.text("zone", fields["zone"]),
            )
        except BadCell as bad:
            is_second = external_id in tables
            bad_rows.append(bad.at(place, external_id="" if is_second else external_id))
            continue
        if external_id in tables:
            second = BadCell(
                "external_id",
                external_id,
                _("external_id {external_id!r} stands in a row above already.").format(
                    external_id=external_id
                ),
                _("Give each table an id of its own; the first row counts."),
            )
            bad_rows.append(second.at(place))
            continue
        tables[external_id], places[external_id] = dining_table, place
    return TablesReading(tuple(tables.values()), tuple(bad_rows), Source(places, table.shown))
