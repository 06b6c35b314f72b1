"""What a support bundle asks of the ledger: its size in rows, and what must not leave it."""

from collections.abc import Iterator

from sqlalchemy import Connection, inspect, select, text

from tillbridge.ledger.schema import community_orders, inbox, metadata, orders, tables


def schema_version(connection: Connection) -> str:
    """Return the version of the schema, "" where there is none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def row_counts(connection: Connection) -> dict[str, int]:
    """Return how many rows each table has; an older ledger has fewer tables."""
    there = set(inspect(connection).get_table_names())
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar() or 0  # noqa: S608 -- names of our own tables
        for name in sorted(there & set(metadata.tables))
    }


def payloads(connection: Connection) -> Iterator[str | bytes]:
    """Yield what the service sent of orders and is still here, as JSON, with customers' data."""
    there = set(inspect(connection).get_table_names())
    for table, column in (
        (orders, orders.c.payload),
        (inbox, inbox.c.body),
        (community_orders, community_orders.c.payload),
    ):
        if table.name in there:
            yield from connection.execute(select(column)).scalars()


def table_codes(connection: Connection) -> Iterator[str]:
    """Yield the codes of tables, and the addresses that hold them."""
    if inspect(connection).has_table(tables.name):
        for row in connection.execute(select(tables.c.qr_token, tables.c.qr_url)):
            yield from row
