"""Putting a back-up in the ledger's place, so that no order is written twice for it.

The back-up is older than the world: orders were written since, menus pushed. So what the present
ledger knows of orders is carried over where it can be read; an order that is not known to be in the
POS, and any that comes again, is asked for there before it is written (invariant 2); and what the
service accepted of the menu counts as unknown, so that it is pushed whole.

The new ledger is made ready beside the present one and takes its place by one rename. The present
one is kept as `ledger.db.replaced-<instant>`.
"""

import contextlib
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import audit
from tillbridge.ledger.backup import (
    VAULT_FILE,
    copy_database,
    forget,
    set_asides,
    stamp,
    vault_of,
)
from tillbridge.ledger.database import (
    LEDGER_FILE,
    LedgerLock,
    as_the_folder_is,
    driver_error,
    sync_folder,
    write_durably,
    writer_engine,
)
from tillbridge.ledger.migrate import bring_up_to_date
from tillbridge.ledger.recover import Salvage, find_damage, set_aside
from tillbridge.ledger.vault import Vault

log = get_logger()

_WORKPLACE = ".restore"
# What the service has accepted since the back-up is not known: it is sent anew.
_ACCEPTED = ("menu_items", "menu_parts", "menu_refused", "tables")
_KEPT_ASIDE = 3
_STAND_ALONE = "PRAGMA journal_mode = DELETE"  # all of it is in the one file, and no -wal is left


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of it.

    `replaced` is where the ledger from before is (None where there was none), `carried_over` how
    many rows about orders came from it, by table; `to_ask` how many orders the POS is asked about.
    """

    replaced: Path | None
    carried_over: dict[str, int]
    to_ask: int


def restore(data_dir: Path, saved: Path, *, at: int, who: str) -> Restored:
    """Make the back-up `saved` the ledger of `data_dir`; `who` is for the audit trail.

    Raises ConfigError where `saved` is no sound ledger of this program or an older one,
    LedgerLocked while a bridge runs, LedgerError where the disk refuses: the ledger is as it was.
    """
    _check(saved)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with LedgerLock(data_dir):
            return _restore(data_dir, saved, at, who)
    except (OSError, sqlite3.Error, DBAPIError) as failure:
        raise LedgerError(
            _("The back-up could not be put in place: {detail}.").format(
                detail=driver_error(failure) or failure
            ),
            fix=_("The ledger is as it was. Free disk space, or mend the disk, and try again."),
        ) from failure


def _check(saved: Path) -> None:
    another = _("Name another back-up: they are in the folder backups of the data folder.")
    if not saved.is_file():
        raise ConfigError(_("There is no back-up {path}.").format(path=saved), fix=another)
    damage = find_damage(saved)
    if damage:
        raise ConfigError(
            _("{path} is no sound ledger: {damage}.").format(path=saved, damage=damage),
            fix=another,
        )


def _restore(data_dir: Path, saved: Path, at: int, who: str) -> Restored:
    workplace = data_dir / _WORKPLACE
    shutil.rmtree(workplace, ignore_errors=True)
    workplace.mkdir(mode=0o700)
    try:
        as_the_folder_is(data_dir, workplace)
        _bring_vault(data_dir, saved)
        copy_database(saved, workplace / LEDGER_FILE)
        bring_up_to_date(workplace, at=at)
        present = data_dir / LEDGER_FILE
        carried_over, to_ask = _reconcile(workplace / LEDGER_FILE, present, saved.name, at)
        _note(workplace / LEDGER_FILE, audit.Act("ledger.restore", who, target=saved.name), at)
        replaced = _put_aside(present, at)
        (workplace / LEDGER_FILE).replace(present)
        sync_folder(data_dir)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    log.warning("ledger.restored", back_up=saved.name, to_ask=to_ask, **carried_over)
    return Restored(replaced, carried_over, to_ask)


def _bring_vault(data_dir: Path, saved: Path) -> None:
    """Bring the secrets too where there are none; those that are there are newer."""
    if not (data_dir / VAULT_FILE).exists():
        with contextlib.suppress(FileNotFoundError):
            write_durably(data_dir / VAULT_FILE, vault_of(saved).read_bytes())
    Vault(data_dir)  # raises where its key is not here: better now than at the next start


def _reconcile(ledger: Path, present: Path, saved: str, at: int) -> tuple[dict[str, int], int]:
    with contextlib.closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        salvage = Salvage(connection)
        if present.exists():
            salvage.take_newer_orders_from(present)
        salvage.ask_the_pos_first(saved, at)
        for table in _ACCEPTED:
            connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 -- names of our schema
        connection.execute(
            "UPDATE pushes SET state = 'lost', finished_at = ? WHERE state = 'running'", (at,)
        )
        (to_ask,) = connection.execute(
            "SELECT count(*) FROM orders WHERE ticket = 'writing' AND closed_at IS NULL"
        ).fetchone()
        connection.execute("COMMIT")
        return salvage.counts, to_ask


def _note(ledger: Path, act: audit.Act, at: int) -> None:
    engine = writer_engine(ledger)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            audit.append(connection, act, at=at)
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql(_STAND_ALONE)
    finally:
        engine.dispose()


def _put_aside(present: Path, at: int) -> Path | None:
    """Keep the present ledger under another name, and leave no -wal that is not the new one's."""
    if not present.exists():
        return None
    if find_damage(present):
        return set_aside(present, at)
    with contextlib.closing(sqlite3.connect(present, isolation_level=None)) as connection:
        connection.execute(_STAND_ALONE)
    aside = present.with_name(f"{present.name}.replaced-{stamp(at)}")
    copy_database(present, aside)
    for older in set_asides(present.parent)[_KEPT_ASIDE:]:
        forget(older)
    return aside
