"""The small tables beside a menu: add-ons, what is sold out, and the floor plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from tillbridge.model.amount_text import DecimalSign
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, TableSource, read_table

_REQUIRED = ("group_id", "external_id", "name", "price")
_OPTIONAL = ("group_name", "min_select", "max_select", "required")


@dataclass(frozen=True, slots=True)
class AddOnsFile:
    """Reads the file. The first row of a group describes it; an add-on may be in many groups."""

    source: TableSource
    currency: str
    decimal: DecimalSign | None

    @classmethod
    def of(cls, path: Path, options: FolderOptions, context: AdapterContext) -> "AddOnsFile":
        """Return the reader of the add-ons at `path`."""
        source = TableSource(
            path=path,
            required=_REQUIRED,
            optional=_OPTIONAL,
            renamed=options.renamed,
            encoding=options.encoding,
            delimiter=options.delimiter,
            must_rename=False,
        )
        return cls(source, context.currency, options.decimal)

    def read(self) -> Catalogue:
        """Return the add-ons, their groups and the bad rows. Raises ExportUnreadable."""
        return read_table(self.source, self._read)

    def _read(self, table: Table) -> Catalogue:
        add_ons: dict[str, AddOn] = {}
        groups: dict[str, AddOnGroup] = {}
        bad_rows: list[BadRow] = []
        rows = list(table.rows())
        at = table.columns["price"]
        written = [row[at] for _number, row in rows if at < len(row)]
        prices = PriceReader.of(written, self.currency, self.decimal)
        for number, row in rows:
            last = len(row)
            fields = {name: row[at] for name, at in table.columns.items() if at < last}
            try:
                add_on = self._add_on(fields, add_ons, prices)
                group = self._group(fields, groups)
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
            ends_with_newline=table.ends_with_newline(),
        )

    def _add_on(
        self, fields: Mapping[str, str], known: Mapping[str, AddOn], prices: PriceReader
    ) -> AddOn:
        name = cells.needed("name", fields.get("name", ""))
        add_on = AddOn(
            external_id=cells.needed("external_id", fields.get("external_id", "")),
            name=name,
            price=cells.price(prices, "price", fields.get("price", ""), name),
        )
        if known.get(add_on.external_id, add_on) != add_on:
            raise BadCell(
                "external_id",
                add_on.external_id,
                f"Add-on {add_on.external_id!r} has another name or price in a row above.",
                "Give add-ons that differ ids of their own; the first row counts.",
            )
        return add_on

    def _group(self, fields: Mapping[str, str], known: Mapping[str, AddOnGroup]) -> AddOnGroup:
        group_id = cells.needed("group_id", fields.get("group_id", ""))
        if group_id in known:
            return known[group_id]
        least = cells.whole_number("min_select", fields.get("min_select", ""), empty=0) or 0
        most = cells.whole_number("max_select", fields.get("max_select", ""), empty=0) or 0
        if most and most < least:
            raise BadCell(
                "max_select",
                most,
                f"max_select {most} is less than min_select {least}.",
                "Mend the numbers in the till.",
            )
        return AddOnGroup(
            external_id=group_id,
            name=cells.text("group_name", fields.get("group_name", "")) or group_id,
            min_select=least,
            max_select=most,
            required=cells.yes_or_no("required", fields.get("required", ""), empty=least > 0),
        )


@dataclass(frozen=True, slots=True)
class AvailabilityFile:
    """Reads the file. Of several rows with one id the last counts, so a till may append to it."""

    source: TableSource
    zone: ZoneInfo | None = None  # of times that do not say theirs

    @classmethod
    def of(cls, path: Path, options: FolderOptions) -> "AvailabilityFile":
        """Return the reader of the file at `path`."""
        source = TableSource(
            path=path,
            required=("external_id", "available"),
            optional=("snooze_until",),
            renamed=options.renamed,
            encoding=options.encoding,
            delimiter=options.delimiter,
            must_rename=False,
        )
        return cls(source, None if options.timezone is None else ZoneInfo(options.timezone))

    def read_availability(self) -> AvailabilityReading:
        """Return what the till says. Raises ExportUnreadable."""
        return read_table(self.source, self._read)

    def _read(self, table: Table) -> AvailabilityReading:
        items: dict[str, Availability] = {}
        places: dict[str, str] = {}
        bad_rows: list[BadRow] = []
        for number, row in table.rows():
            last = len(row)
            fields = {name: row[at] for name, at in table.columns.items() if at < last}
            external_id = cells.plain(fields.get("external_id", ""))
            try:
                external_id = cells.needed("external_id", external_id)
                available = cells.yes_or_no("available", fields.get("available", ""))
                ends = fields.get("snooze_until", "")
                until = None if available else cells.instant("snooze_until", ends, self.zone)
            except BadCell as bad:
                bad_rows.append(bad.at(table.place(number), external_id=external_id))
            else:
                items[external_id] = Availability(available, until)
                places[external_id] = table.place(number)
        columns = _header_names(table)
        columns["until"] = columns.get("snooze_until", "")
        return AvailabilityReading(items, tuple(bad_rows), Source(places, columns))


@dataclass(frozen=True, slots=True)
class TablesFile:
    """Reads the file. Of several rows with one id the first counts."""

    source: TableSource

    @classmethod
    def of(cls, path: Path, options: FolderOptions) -> "TablesFile":
        """Return the reader of the file at `path`."""
        source = TableSource(
            path=path,
            required=("external_id", "name"),
            optional=("seats", "zone"),
            renamed=options.renamed,
            encoding=options.encoding,
            delimiter=options.delimiter,
            must_rename=False,
        )
        return cls(source)

    def read_tables(self) -> TablesReading:
        """Return all tables. Raises ExportUnreadable."""
        return read_table(self.source, self._read)

    def _read(self, table: Table) -> TablesReading:
        tables: dict[str, DiningTable] = {}
        places: dict[str, str] = {}
        bad_rows: list[BadRow] = []
        for number, row in table.rows():
            last = len(row)
            fields = {name: row[at] for name, at in table.columns.items() if at < last}
            external_id = cells.plain(fields.get("external_id", ""))
            try:
                dining_table = DiningTable(
                    external_id=cells.needed("external_id", external_id),
                    name=cells.needed("name", fields.get("name", "")),
                    seats=cells.whole_number("seats", fields.get("seats", ""), empty=None),
                    zone=cells.text("zone", fields.get("zone", "")),
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
        source = Source(places, _header_names(table))
        return TablesReading(tuple(tables.values()), tuple(bad_rows), source)


def _header_names(table: Table) -> dict[str, str]:
    return {ours: table.header[at] for ours, at in table.columns.items()}
