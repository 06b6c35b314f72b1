"""The small tables beside a menu: add-ons, what is sold out, and the floor plan."""

from collections.abc import Mapping
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
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
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
        """Return the add-ons, their groups and the bad rows; nothing without a file of them.

        The first row of a group describes it; an add-on may be in many groups. Raises
        ExportUnreadable.
        """
        if self._options.addons is None:
            return Catalogue(ends_with_newline=True)
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
        bad_rows: list[BadRow] = []
        decimal = self._options.decimal
        prices = PriceReader.of(table.written("price"), self._currency, decimal)
        for number, row in table.rows():
            fields = table.fields(row)
            try:
                add_on = _add_on(fields, add_ons, prices)
                group = _group(fields, groups)
            except BadCell as bad:
                bad_rows.append(bad.at(table.place(number)))
                continue
            add_ons[add_on.external_id] = add_on
            members = tuple(dict.fromkeys((*group.add_ons, add_on.external_id)))
            groups[group.external_id] = replace(group, add_ons=members)
        return Catalogue(
            add_ons=add_ons,
            addon_groups=groups,
            bad_rows=tuple(bad_rows),
            ends_with_newline=table.passed.ends_with_newline(),
        )

    def _availability_of(self, table: Table) -> AvailabilityReading:
        items: dict[str, Availability] = {}
        places: dict[str, str] = {}
        bad_rows: list[BadRow] = []
        for number, row in table.rows():
            fields = table.fields(row)
            external_id = cells.plain(fields["external_id"])
            try:
                external_id = cells.needed("external_id", external_id)
                available = cells.yes_or_no("available", fields["available"])
                ends = fields["snooze_until"]
                until = None if available else cells.instant("snooze_until", ends, self._zone)
            except BadCell as bad:
                bad_rows.append(bad.at(table.place(number), external_id=external_id))
            else:
                items[external_id] = Availability(available, until)
                places[external_id] = table.place(number)
        columns = {**table.shown, "until": table.shown.get("snooze_until", "")}
        return AvailabilityReading(items, tuple(bad_rows), Source(places, columns))


def _add_on(fields: Mapping[str, str], known: Mapping[str, AddOn], prices: PriceReader) -> AddOn:
    name = cells.needed("name", fields["name"])
    add_on = AddOn(
        external_id=cells.needed("external_id", fields["external_id"]),
        name=name,
        price=cells.price(prices, "price", fields["price"], name),
    )
    if known.get(add_on.external_id, add_on) != add_on:
        raise BadCell(
            "external_id",
            add_on.external_id,
            f"Add-on {add_on.external_id!r} has another name or price in a row above.",
            "Give add-ons that differ ids of their own; the first row counts.",
        )
    return add_on


def _group(fields: Mapping[str, str], known: Mapping[str, AddOnGroup]) -> AddOnGroup:
    group_id = cells.needed("group_id", fields["group_id"])
    if group_id in known:
        return known[group_id]
    least = cells.whole_number("min_select", fields["min_select"], empty=0) or 0
    most = cells.whole_number("max_select", fields["max_select"], empty=0) or 0
    if most and most < least:
        raise BadCell(
            "max_select",
            most,
            f"max_select {most} is less than min_select {least}.",
            "Mend the numbers in the till.",
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
    for number, row in table.rows():
        fields = table.fields(row)
        external_id = cells.plain(fields["external_id"])
        try:
            dining_table = DiningTable(
                external_id=cells.needed("external_id", external_id),
                name=cells.needed("name", fields["name"]),
                seats=cells.whole_number("seats", fields["seats"], empty=None),
                zone=cells.text("zone", fields["zone"]),
            )
            if external_id in tables:
                raise BadCell(  # noqa: TRY301 -- worded where every bad row is
                    "external_id",
                    external_id,
                    f"external_id {external_id!r} stands in a row above already.",
                    "Give each table an id of its own; the first row counts.",
                )
        except BadCell as bad:
            stands_for = "" if external_id in tables else external_id
            bad_rows.append(bad.at(table.place(number), external_id=stands_for))
        else:
            tables[external_id] = dining_table
            places[external_id] = table.place(number)
    return TablesReading(tuple(tables.values()), tuple(bad_rows), Source(places, table.shown))
