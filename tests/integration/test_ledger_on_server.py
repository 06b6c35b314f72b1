"""The schema of a ledger on PostgreSQL: created from the tables, or migrated to them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from tests.support.ledger_harness import StoppedClock, delivery
from tests.support.postgresql import new_database, on_postgresql
from tillbridge import ledger_schemas
from tillbridge.ledger import facts, postgresql
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import metadata
from tillbridge.ledger.server import connect

pytestmark = on_postgresql()

# What a ledger of schema 0005 does not have yet.
BACK_TO_0005 = """
DROP TABLE bridges, leases, requests, secrets;
UPDATE alembic_version SET version_num = '0005'
"""


def differences(url: str) -> list[object]:
    engine = postgresql.engine_of(url)
    with engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))


async def open_once(folder: Path, url: str) -> None:
    ledger = await Ledger.open(folder, clock=StoppedClock(), url=url)
    await ledger.close()


async def test_a_new_ledger_is_what_the_tables_say(tmp_path: Path) -> None:
    url = new_database()
    await open_once(tmp_path, url)
    assert differences(url) == []
    with closing(connect(url)) as connection:
        narrow = "SELECT table_name FROM information_schema.columns WHERE data_type = 'integer'"
        mine = f"{narrow} AND table_schema = current_schema()"
        assert connection.execute(mine.encode()).fetchall() == [], "milliseconds need 64 bits"


async def test_an_older_ledger_is_migrated_with_its_rows(tmp_path: Path) -> None:
    url = new_database()
    ledger = await Ledger.open(tmp_path, clock=StoppedClock(), url=url)
    assert await ledger.write(delivery("before"))
    await ledger.close()
    with closing(connect(url)) as connection:
        connection.execute(BACK_TO_0005)
    ledger = await Ledger.open(tmp_path, clock=StoppedClock(), url=url)
    assert not await ledger.write(delivery("before")), "the event is known"
    await ledger.close()
    assert differences(url) == []
    with closing(connect(url)) as connection:
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert version == (ledger_schemas()[-1],)


async def test_text_that_the_server_cannot_store_is_stored_all_the_same(tmp_path: Path) -> None:
    def put(connection: Connection) -> None:
        facts.put_fact(connection, "ma\0in", "na\ud800me", {"text": "a\0b\ud800"}, at=0)

    ledger = await Ledger.open(tmp_path, clock=StoppedClock(), url=new_database())
    try:
        await ledger.write(put)
        assert await ledger.get_fact("ma\0in", "na\ud800me") == {"text": "a\0b?"}
        assert await ledger.write(delivery("e\0vt"))
        assert not await ledger.write(delivery("e\0vt"))
    finally:
        await ledger.close()


JSON = """
SELECT json_extract(source, path), json_type(source, path), json_array_length(source, path)
FROM (VALUES (%s::text, %s::text)) AS given(source, path)
"""


@pytest.mark.parametrize(
    ("source", "path", "found"),
    [
        ('{"total": 1250}', "$.total", ("1250", "integer", 0)),
        ('{"total": "1250"}', "$.total", ("1250", "text", 0)),
        ('{"total": 12.5}', "$.total", ("12.5", "real", 0)),
        ('{"on": false}', "$.on", ("0", "false", 0)),
        ('{"at": null}', "$.at", (None, "null", 0)),
        ('{"at": 99999999999999999999}', "$.at", ("99999999999999999999", "real", 0)),
        ('{"list": ["a", "b"]}', "$.list", ('["a", "b"]', "array", 2)),
        ('["id", "name"]', "$[0]", ("id", "text", 0)),
        ('{"customer": {"name": "Ana"}}', "$.customer.name", ("Ana", "text", 0)),
        ('{"name": "a\\u0000b"}', "$.name", ("a\ufffdb", "text", 0)),
        ("{}", "$.total", (None, None, None)),
        ("", "$.total", (None, None, None)),
        ("{", "$.total", (None, None, None)),
    ],
)
def test_json_is_looked_into_as_by_sqlite(
    json_database: psycopg.Connection, source: str, path: str, found: tuple[object, ...]
) -> None:
    assert json_database.execute(JSON, (source, path)).fetchone() == found


@pytest.fixture(scope="module")
def json_database() -> Iterator[psycopg.Connection]:
    with closing(connect(new_database())) as connection:
        connection.execute(postgresql.FUNCTIONS_FILE.read_bytes())
        yield connection
