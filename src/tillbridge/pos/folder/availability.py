"""What is sold out: a small CSV, read more often than the menu."""

from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from tillbridge.adapter import Availability, AvailabilityReading, BadRow
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, TableSource, read_table


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
        return AvailabilityReading(items, tuple(bad_rows))
