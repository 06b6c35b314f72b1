"""Migrates the ledger's schema to this version, with a backup first.

Importing alembic takes almost half a second, so it is imported only if there is a migration to run:
a new ledger is created directly from the tables; a test proves that this equals the migrations.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from tillbridge.core.compatibility import ledger_schemas
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.backup import back_up, copy_database
from tillbridge.ledger.database import LEDGER_FILE, writer_engine
from tillbridge.ledger.models import metadata

log = get_logger()

_MIGRATIONS = Path(__file__).parent / "migrations"


def bring_up_to_date(data_dir: Path, *, at: int) -> None:
    """Create the schema of a new ledger, or migrate an older one.

    Raises LedgerError if the ledger is from a newer program, or if a migration fails: the ledger is
    then unchanged.
    """
    engine = writer_engine(data_dir / LEDGER_FILE)
    try:
        current, is_new = _state(engine)
        if is_new:
            _create(engine)
            return
    finally:
        engine.dispose()
    if current == ledger_schemas()[-1]:
        return
    if current not in ledger_schemas():
        raise LedgerError(
            _(
                "The database in {data_dir} was written by a newer tillbridge (schema {schema})."
            ).format(data_dir=data_dir, schema=current),
            fix=_("Install that version again, or restore a backup made before it first ran."),
        )
    _migrate(data_dir, current, at)


def _state(engine: Engine) -> tuple[str, bool]:
    """Return the schema's version ("" without one), and whether there are no tables at all."""
    with engine.connect() as connection:
        tables = inspect(connection).get_table_names()
        if "alembic_version" not in tables:
            return "", not tables
        return str(connection.scalar(text("SELECT version_num FROM alembic_version")) or ""), False


def _create(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
            " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
        connection.exec_driver_sql(
            "INSERT INTO alembic_version (version_num) VALUES (?)", (ledger_schemas()[-1],)
        )
        connection.exec_driver_sql("COMMIT")


def _migrate(data_dir: Path, current: str, at: int) -> None:
    saved = back_up(data_dir, at=at)
    path = data_dir / LEDGER_FILE
    engine = writer_engine(path)
    try:
        with engine.connect() as connection:
            upgrade(connection, "head")
    except Exception as failure:
        engine.dispose()
        for kind in ("-wal", "-shm"):
            path.with_name(path.name + kind).unlink(missing_ok=True)
        copy_database(saved, path)
        raise LedgerError(
            _("The database could not be updated to this version: {detail}.").format(
                detail=failure
            ),
            fix=_("Nothing was changed. Install the previous version, and report this."),
        ) from failure
    finally:
        engine.dispose()
    log.info(
        "ledger.migrated", schema_from=current, schema_to=ledger_schemas()[-1], back_up=saved.name
    )


def upgrade(connection: Connection, to: str) -> None:
    """Run the migrations up to version `to` ("head": all) in one transaction."""
    from alembic import command  # noqa: PLC0415 -- takes half a second, and is rarely needed
    from alembic.config import Config  # noqa: PLC0415 -- (as above)

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    # Batch mode copies tables and drops the old ones: references must not follow.
    connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    command.upgrade(config, to)
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("PRAGMA foreign_keys = ON")
