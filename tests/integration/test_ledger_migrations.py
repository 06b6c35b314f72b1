"""Every ledger there ever was becomes one of today, with what was in it.

`tests/data/ledgers/NNNN.sql` is a ledger of schema NNNN with data in it, as SQL. A new migration
adds the dump of the version before: `python -m tests.support.dump_ledger FILE`.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect

from tests.support.ledger_harness import delivery, opened
from tillbridge import ledger_schemas
from tillbridge.core.errors import LedgerError
from tillbridge.ledger import backup
from tillbridge.ledger.backup import back_ups
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.models import metadata
from tillbridge.ledger.sqlite import writer_engine

LEDGERS = sorted((Path(__file__).parents[1] / "data" / "ledgers").glob("*.sql"))


def made_from(dump: Path, data_dir: Path) -> dict[str, list[tuple]]:
    """Make a ledger from the dump; return its rows by table."""
    with closing(sqlite3.connect(data_dir / LEDGER_FILE)) as connection:
        connection.executescript(dump.read_text("utf-8"))
        return rows_of(connection)


def rows_of(connection: sqlite3.Connection) -> dict[str, list[tuple]]:
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {
        name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=str)
        for (name,) in names
        if name != "alembic_version"
    }


def shape(connection: Connection) -> dict[str, object]:
    """Return everything of a schema that matters, in an order of its own."""
    inspector = inspect(connection)
    columns = {
        f"{table}.{each['name']}": (str(each["type"]), each["nullable"], each["default"])
        for table in inspector.get_table_names()
        for each in inspector.get_columns(table)
    }
    keys = {table: inspector.get_pk_constraint(table) for table in inspector.get_table_names()}
    unique = {
        table: sorted(str(each) for each in inspector.get_unique_constraints(table))
        for table in inspector.get_table_names()
    }
    indexes = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    )
    return {
        "columns": columns,
        "keys": keys,
        "unique": unique,
        "indexes": {name: "".join(sql.replace('"', "").split()) for name, sql in indexes},
    }


def test_each_version_has_its_dump() -> None:
    assert [dump.stem for dump in LEDGERS] == list(ledger_schemas())


def test_the_migrations_make_what_the_tables_say(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    backup.bring_up_to_date(tmp_path / "new", at=0)
    (tmp_path / LEDGER_FILE).touch()
    shapes = []
    for folder in (tmp_path, tmp_path / "new"):
        engine = writer_engine(folder / LEDGER_FILE)
        with engine.connect() as connection:
            if folder == tmp_path:
                backup.upgrade(connection, "head")
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, metadata) == []
            version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            assert version == ledger_schemas()[-1]
            shapes.append(shape(connection))
        engine.dispose()
    assert shapes[0] == shapes[1], "a new ledger is one that went through all migrations"


@pytest.mark.parametrize("dump", LEDGERS, ids=lambda dump: dump.stem)
async def test_an_older_ledger_keeps_what_was_in_it(dump: Path, tmp_path: Path) -> None:
    before = made_from(dump, tmp_path)
    assert all(before[name] for name in metadata.tables if name in before), "the dump has a gap"
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is None
        assert await ledger.write(delivery())
    with closing(sqlite3.connect(tmp_path / LEDGER_FILE)) as connection:
        after = rows_of(connection)
    for name, rows in before.items():
        assert len(after.get(name, [])) == len(rows) + (name == "inbox")
    is_old = dump.stem != ledger_schemas()[-1]
    assert bool(back_ups(tmp_path)) == is_old, "a backup is made before a migration"


async def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, known = made_from(LEDGERS[-1], tmp_path), ledger_schemas()

    def fail(connection: Connection, to: str) -> None:
        connection.exec_driver_sql("DROP TABLE orders")
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(backup, "ledger_schemas", lambda: (*known, "9999"))
    monkeypatch.setattr(backup, "upgrade", fail)
    with pytest.raises(LedgerError, match=r"on fire.*Nothing was changed"):
        async with opened(tmp_path):
            pass
    monkeypatch.undo()
    with closing(sqlite3.connect(tmp_path / LEDGER_FILE)) as connection:
        assert rows_of(connection) == before
    async with opened(tmp_path) as ledger:
        assert ledger.rebuilt_from is None


async def test_a_migration_is_run_with_a_back_up_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ledger_schemas()
    made_from(LEDGERS[-1], tmp_path)
    done: list[str] = []
    monkeypatch.setattr(backup, "ledger_schemas", lambda: (*known, "9999"))
    monkeypatch.setattr(
        backup, "upgrade", lambda connection, to: done.append(back_ups(tmp_path)[0].name)
    )
    async with opened(tmp_path):
        assert len(done) == 1
    engine = create_engine(f"sqlite:///{back_ups(tmp_path)[0]}")
    with engine.connect() as connection:
        assert inspect(connection).get_table_names()
    engine.dispose()
