"""Backups of the ledger: complete, taken while it is in use, and deleted after a while.

A backup is `ledger-<instant>.db`, with the encrypted secrets beside it in `ledger-<instant>.vault`.
Neither contains their key.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge import ledger_schemas
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.files import sync_folder
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import schema
from tillbridge.ledger.database import LEDGER_FILE, VAULT_FILE, as_the_folder_is, write_durably
from tillbridge.ledger.sqlite import find_damage, writer_engine
from tillbridge.model.instant import to_iso

if TYPE_CHECKING:
    from tillbridge.config.bridge import Settings

BACKUPS_FOLDER = "backups"
BACKUPS_STORED = 7


def refuse_server(settings: "Settings") -> None:
    """Raise ConfigError if the ledger is on a database server, which has its own backups."""
    if settings.ledger.url is not None:
        raise ConfigError(
            _("The database is on a PostgreSQL server, which has its own backups."),
            fix=_(
                "Back it up and restore it with the server's tools (pg_dump, pgBackRest, Barman), "
                "and keep the key of [ledger]; see docs/operate.md."
            ),
        )


def stamp(at_ms: int) -> str:
    """Return the instant for a file name: `20261121T190200.000Z`, which sorts by time."""
    return to_iso(at_ms).replace("-", "").replace(":", "")


def back_up(data_dir: Path, *, at: int, newest: int = BACKUPS_STORED) -> Path:
    """Copy the ledger into `backups/` and keep the newest ones. Raises OSError, sqlite3.Error."""
    folder = data_dir / BACKUPS_FOLDER
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        as_the_folder_is(data_dir, folder)
    target = back_up_into(data_dir, folder, at=at)
    for old in back_ups(data_dir)[newest:]:
        forget(old)
    return target


def back_up_into(data_dir: Path, folder: Path, *, at: int) -> Path:
    """Copy the ledger into any folder, keeping what is there. Raises the same as `back_up`."""
    target = folder / f"ledger-{stamp(at)}.db"
    vault = data_dir / VAULT_FILE
    # First: restoring a ledger without its vault would make the merchant consent again.
    with contextlib.suppress(FileNotFoundError):
        write_durably(vault_of(target), vault.read_bytes())
    copy_database(data_dir / LEDGER_FILE, target)
    return target


def checked(copy: Callable[[], Path], *, fix: str) -> Path:
    """Make a backup, and look whether it is sound.

    Raises LedgerError, with `fix` where it is the copying that fails.
    """
    try:
        saved = copy()
    except (OSError, sqlite3.Error) as failure:
        raise LedgerError(
            _("The backup failed: {detail}.").format(detail=failure), fix=fix
        ) from failure
    if damage := find_damage(saved):
        raise LedgerError(
            _("The backup {path} is damaged: {damage}.").format(path=saved, damage=damage),
            fix=_("Check the disk, then restart the bridge: it repairs a damaged database."),
        )
    return saved


def back_ups(data_dir: Path) -> list[Path]:
    """Return the backups, newest first."""
    return sorted((data_dir / BACKUPS_FOLDER).glob("ledger-*.db"), reverse=True)


def vault_of(saved: Path) -> Path:
    """Return the path of this backup's secrets."""
    return saved.with_suffix(".vault")


def forget(saved: Path) -> None:
    """Delete a backup, or another copy of the ledger."""
    for kind in ("", "-wal", "-shm"):
        saved.with_name(saved.name + kind).unlink(missing_ok=True)
    vault_of(saved).unlink(missing_ok=True)


def copy_database(source: Path, target: Path) -> None:
    """Copy a database that may be in use, durably; `target` appears complete or not at all."""
    beside = target.with_name(f"{target.name}.new")
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        as_the_folder_is(target.parent, file)
    finally:
        os.close(file)
    try:
        with (
            contextlib.closing(sqlite3.connect(source)) as original,
            contextlib.closing(sqlite3.connect(beside)) as copy,
        ):
            original.backup(copy)
            # A copy in a single file: it has no -wal file.
            copy.execute("PRAGMA journal_mode = DELETE")
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def set_asides(data_dir: Path) -> list[Path]:
    """Return ledgers that were set aside: damaged, or replaced by a backup; newest first."""
    found = (
        *data_dir.glob(f"{LEDGER_FILE}.damaged-*Z"),
        *data_dir.glob(f"{LEDGER_FILE}.replaced-*Z"),
    )
    return sorted(found, key=lambda path: path.name.rpartition("-")[2], reverse=True)


def forget_old_files(data_dir: Path, *, before: int) -> int:
    """Delete backups and set-aside ledgers older than this instant: they contain personal data too.

    Returns how many were deleted.
    """
    copies = (*back_ups(data_dir), *set_asides(data_dir))
    old = [path for path in copies if path.stat().st_mtime * 1000 < before]
    for path in old:
        forget(path)
    return len(old)


# -- the budget of the data folder: the oldest copies go first, the newest backup stays


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the ledger that may be deleted: path, size in bytes, and age (ms, mtime)."""

    path: Path
    size: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The size of the data folder in bytes, and which copies were deleted."""

    used: int
    gone: tuple[str, ...] = ()


def too_many(copies: Sequence[Copy], used: int, budget: int) -> tuple[Copy, ...]:
    """Return the copies to delete, oldest first, until `used` fits into `budget` bytes."""
    going: list[Copy] = []
    for copy in sorted(copies, key=lambda each: each.at_ms):
        if used <= budget:
            break
        going.append(copy)
        used -= copy.size
    return tuple(going)


def trim(data_dir: Path, budget: int) -> Trimmed:
    """Delete copies until the folder fits into `budget` bytes. Raises OSError."""
    used = sum(path.stat().st_size for path in data_dir.rglob("*") if path.is_file())
    copies = []
    for path in (*back_ups(data_dir)[1:], *set_asides(data_dir)):
        about, beside = path.stat(), vault_of(path)
        size = about.st_size + (beside.stat().st_size if beside.exists() else 0)
        copies.append(Copy(path, size, round(about.st_mtime * 1000)))
    going = too_many(copies, used, budget)
    for each in going:
        forget(each.path)
    return Trimmed(used - sum(each.size for each in going), tuple(e.path.name for e in going))


log = get_logger()

# -- migrates the schema to this version, with a backup first


def bring_up_to_date(data_dir: Path, *, at: int) -> None:
    """Create the schema of a new ledger, or migrate an older one.

    Raises LedgerError if the ledger is from a newer program, or if a migration fails: the ledger is
    then unchanged.
    """
    engine = writer_engine(data_dir / LEDGER_FILE)
    try:
        with engine.connect() as connection:
            current, tables = schema.state(connection)
            if not tables:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                schema.create(connection)
                connection.exec_driver_sql("COMMIT")
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
    # Batch mode copies tables and drops the old ones: references must not follow.
    connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    schema.upgrade(connection, to)
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("PRAGMA foreign_keys = ON")
