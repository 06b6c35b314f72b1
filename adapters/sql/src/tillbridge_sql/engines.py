"""MySQL's tables that know no transactions: an order in them could be written by half."""

from sqlalchemy import Connection, text

from tillbridge.adapter import PosFailure
from tillbridge.adapter.texts import _
from tillbridge_sql.queries import STEPS, Queries

_WITHOUT = text(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
    " AND table_type = 'BASE TABLE' AND engine NOT IN ('InnoDB', 'ndbcluster', 'ROCKSDB')"
)


def check_tables(connection: Connection, database: str, queries: Queries) -> None:
    """Raise PosFailure where a table that an order is written to has no transactions."""
    if database != "mysql":
        return
    written = {word for name in STEPS for each in queries.all(name) for word in each.words}
    for (table,) in connection.execute(_WITHOUT):
        if str(table).lower() in written:
            raise PosFailure(
                _(
                    "The table {table} knows no transactions: an order could be written by "
                    "half. Let the database's keeper run ALTER TABLE {table} ENGINE=InnoDB."
                ).format(table=table)
            )
