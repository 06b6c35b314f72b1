"""What is sold out, and the tables, by named queries."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from tillbridge.adapter import (
    Availability,
    AvailabilityReading,
    BadRow,
    ExportUnreadable,
    Source,
    Table,
    TablesReading,
)
from tillbridge.adapter.texts import _
from tillbridge_sql import cells
from tillbridge_sql.asking import Asking
from tillbridge_sql.cells import CellError, Row


def read_availability(asking: Asking, connection: Connection) -> AvailabilityReading:
    """Return what the query `availability` names; of two with one id the last counts."""
    items: dict[str, Availability] = {}
    places: dict[str, str] = {}
    bad_rows = []
    for number, row in enumerate(_rows(asking, connection, "availability", ["external_id"]), 1):
        try:
            external_id = cells.id_of(row)
            available = cells.flag_of(row, "available", default=False)
            until = None if available else cells.instant_of(row, "snooze_until")
        except CellError as wrong:
            bad_rows.append(_bad("availability", number, row, wrong))
            continue
        items[external_id] = Availability(available, until)
        places[external_id] = _("{file}, row {row}").format(file="availability", row=number)
    source = Source(places, {"until": "snooze_until"})
    return AvailabilityReading(items, tuple(bad_rows), source)


def read_tables(asking: Asking, connection: Connection) -> TablesReading:
    """Return what the query `tables` gives; of two with one id the first counts."""
    tables: dict[str, Table] = {}
    places: dict[str, str] = {}
    bad_rows = []
    for number, row in enumerate(_rows(asking, connection, "tables", ["external_id", "name"]), 1):
        try:
            table = _table(row, tables)
        except CellError as wrong:
            bad_rows.append(_bad("tables", number, row, wrong))
        else:
            tables[table.external_id] = table
            places[table.external_id] = _("{file}, row {row}").format(file="tables", row=number)
    return TablesReading(tuple(tables.values()), tuple(bad_rows), Source(places))


def _table(row: Row, tables: Mapping[str, Table]) -> Table:
    external_id = cells.id_of(row)
    if external_id in tables:
        raise CellError("external_id", _("Its external_id appears twice."), external_id)
    return Table(
        external_id,
        cells.name_of(row),
        cells.number_of(row, "seats"),
        " ".join(cells.text_of(row, "zone").split()),
    )


def _rows(
    asking: Asking, connection: Connection, name: str, columns: Sequence[str]
) -> Sequence[Row]:
    rows = asking.rows(connection, name)
    if rows and (missing := [column for column in columns if column not in rows[0]]):
        raise ExportUnreadable(
            _("The query {name} gives no column {missing}.").format(name=name, missing=missing[0]),
            place=_("query {name}").format(name=name),
            fix=_("Let it give {names}.").format(names=", ".join(columns)),
        )
    return rows


def _bad(name: str, number: int, row: Row, wrong: CellError) -> BadRow:
    return BadRow(
        place=_("{file}, row {row}").format(file=name, row=number),
        text=wrong.text,
        fix=wrong.fix,
        external_id=cells.text_of(row, "external_id").strip(),
        field=wrong.column,
        value=wrong.value,
    )
