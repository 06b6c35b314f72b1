"""The floor plan as the service has accepted it, with each table's QR ordering address."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import xxhash
from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import tables
from tillbridge.model.table import Table


@dataclass(frozen=True, slots=True)
class AcceptedTable:
    """A table and what the service calls it; `qr_url` is what guests open."""

    table: Table
    table_id: str = ""
    qr_token: str = field(default="", repr=False)
    qr_url: str = field(default="", repr=False)

    @property
    def code(self) -> str:
        """A short digest of what guests scan, another one when that changes; "" for no code."""
        if not self.qr_url:
            return ""
        return xxhash.xxh3_64_hexdigest(
            f"{self.qr_token}\n{self.qr_url}".encode("utf-8", "surrogatepass")
        )


def get_tables(connection: Connection, store: str) -> tuple[AcceptedTable, ...]:
    """Return the accepted tables, by external id."""
    rows = connection.execute(
        select(tables).where(tables.c.store == store).order_by(tables.c.external_id)
    )
    return tuple(
        AcceptedTable(
            Table(row.external_id, row.name, row.seats, row.zone),
            row.table_id,
            row.qr_token,
            row.qr_url,
        )
        for row in rows
    )


def put_tables(connection: Connection, store: str, accepted: Sequence[AcceptedTable]) -> None:
    """Remember these tables, and only these, as accepted."""
    connection.execute(delete(tables).where(tables.c.store == store))
    if accepted:
        connection.execute(
            insert(tables),
            [
                {
                    "store": store,
                    "external_id": each.table.external_id,
                    "name": each.table.name,
                    "seats": each.table.seats,
                    "zone": each.table.zone,
                    "table_id": each.table_id,
                    "qr_token": each.qr_token,
                    "qr_url": each.qr_url,
                }
                for each in accepted
            ],
        )
