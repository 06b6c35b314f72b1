"""The floor plan: a small CSV."""

from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import BadRow, TablesReading
from tillbridge.adapter import Table as DiningTable
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.table_file import Table, TableSource, read_table


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
        return TablesReading(tuple(tables.values()), tuple(bad_rows))
