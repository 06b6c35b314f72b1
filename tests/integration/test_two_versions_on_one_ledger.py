"""A bridge goes on while one of a newer version adds to the database."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tests.support.ledger_harness import StoppedClock, delivery
from tests.support.postgresql import new_database, on_postgresql
from tillbridge import ledger_schemas
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.ledger import orders
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger

NEXT = f"{int(ledger_schemas()[-1]) + 1:04}"
# What docs/hosting.md allows the next migration to do.
ADDS = (
    "CREATE TABLE of_the_next_version (name TEXT PRIMARY KEY)",
    "ALTER TABLE inbox ADD COLUMN later TEXT",
    "ALTER TABLE orders ADD COLUMN later TEXT NOT NULL DEFAULT 'x'",
    "ALTER TABLE facts ADD COLUMN later BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX of_the_next_version_by_store ON orders (store, order_id, later)",
)


# A database of its own: what the next version has made must not be left to other tests.
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=on_postgresql())])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else new_database()


@contextlib.asynccontextmanager
async def opened(data_dir: Path, url: str | None) -> AsyncIterator[Ledger]:
    ledger = await Ledger.open(data_dir, clock=StoppedClock(), url=url)
    try:
        yield ledger
    finally:
        await ledger.close()


def migrate_as_the_next_version(connection: Connection) -> None:
    for statement in ADDS:
        connection.execute(text(statement))
    connection.execute(text("UPDATE alembic_version SET version_num = :next"), {"next": NEXT})


async def test_a_running_bridge_bears_what_the_next_version_adds(
    tmp_path: Path, url: str | None
) -> None:
    async with opened(tmp_path, url) as ledger:
        assert await ledger.write(delivery("evt_before"))

        await ledger.write(migrate_as_the_next_version)

        assert await ledger.write(delivery("evt_after"))
        assert not await ledger.write(delivery("evt_before"))
        many = [ledger.write(delivery(f"evt_{number}")) for number in range(20)]
        assert all(await asyncio.gather(*many))
        await ledger.write(put_fact, "main", "known", {"a": 1}, at=5)
        assert await ledger.read(get_fact, "main", "known") == {"a": 1}
        waiting = await ledger.read(orders.open_deliveries, 100)
        assert {each.event_id for each in waiting} >= {"evt_before", "evt_after", "evt_19"}


async def test_it_does_not_start_on_what_the_next_version_has_made(
    tmp_path: Path, url: str | None
) -> None:
    async with opened(tmp_path, url) as ledger:
        await ledger.write(migrate_as_the_next_version)

    refusal = LedgerError if url is None else ConfigError
    with pytest.raises(refusal, match="newer tillbridge"):
        async with opened(tmp_path, url):
            pass
