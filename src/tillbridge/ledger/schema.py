"""The schema of a ledger: its version, a new one, and migrations to this version.

Importing alembic takes almost half a second, so it is imported only if there is a migration to run:
a new ledger is created directly from the tables; a test proves that this equals the migrations.
"""

from pathlib import Path

from sqlalchemy import Connection, Dialect, inspect, text
from sqlalchemy.engine.mock import MockConnection

from tillbridge import ledger_schemas
from tillbridge.ledger.models import metadata

_MIGRATIONS = Path(__file__).parent / "migrations"
_compiled: dict[str, list[str]] = {}  # by database


def state(connection: Connection) -> tuple[str, list[str]]:
    """Return the schema's version ("" without one), and the names of all tables."""
    tables = inspect(connection).get_table_names()
    if "alembic_version" not in tables:
        return "", tables
    version = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return str(version or ""), tables


def create(connection: Connection) -> None:
    """Create all tables, in the caller's transaction."""
    for statement in _statements(connection.dialect):
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(
        text("INSERT INTO alembic_version (version_num) VALUES (:version)"),
        {"version": ledger_schemas()[-1]},
    )


def _statements(dialect: Dialect) -> list[str]:
    """Return the SQL that creates the tables. To compile it takes as long as to execute it."""
    if dialect.name in _compiled:
        return _compiled[dialect.name]
    made: list[str] = []
    collect = MockConnection(
        dialect, lambda ddl, *_: made.append(str(ddl.compile(dialect=dialect)))
    )
    metadata.create_all(collect, checkfirst=False)
    _compiled[dialect.name] = made
    return made


def upgrade(connection: Connection, to: str) -> None:
    """Run the migrations up to version `to` ("head": all), in the caller's transaction."""
    from alembic import command  # noqa: PLC0415 -- takes half a second, and is rarely needed
    from alembic.config import Config  # noqa: PLC0415 -- (as above)

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
