"""A damaged ledger: noticed at start, set aside, and as much of it as can be read carried over.

What the menu was comes back from the POS and the service. Orders must not be written twice: each
that is not known to be in the POS is marked as begun with an unknown outcome, so that the POS is
asked before anything is written (invariant 2).
"""

import contextlib
import re
import sqlite3
from pathlib import Path

from tillbridge.core.errors import LedgerError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.backup import back_ups, stamp
from tillbridge.ledger.database import LEDGER_FILE, is_damage, is_read_failure
from tillbridge.ledger.migrate import bring_up_to_date

log = get_logger()

# Checking the indexes too reads everything several times over: only where that is quick.
_FULL_CHECK_BELOW_BYTES = 16 * 1024 * 1024
_CHECKS = 3  # before what is found counts: a disk that failed once reads the next time
_READ_AT_ONCE = 1024 * 1024
_ERROR_CODE = re.compile(r"error code=(\d{1,6})\b")


def rebuild_if_damaged(data_dir: Path, *, at: int) -> Path | None:
    """Check the ledger; set a damaged one aside and begin a new one with what can be saved.

    Returns where the damaged one is, None where nothing was wrong. Raises LedgerError where the
    file cannot be opened at all, which says nothing about what is in it.
    """
    path = data_dir / LEDGER_FILE
    if not path.exists():
        return None
    damage = find_damage(path)
    if not damage:
        return None
    aside = set_aside(path, at)
    log.error("ledger.damaged", detail=damage, set_aside=aside.name)
    bring_up_to_date(data_dir, at=at)
    saved = _carry_over(data_dir, aside, at)
    log.warning("ledger.rebuilt", set_aside=aside.name, **saved)
    return aside


def find_damage(path: Path) -> str:
    """Return what is wrong with the database in one line, "" where it is sound.

    A disk that fails to read is no damage: SQLite then cannot say what is in the file. Raises
    LedgerError where the disk goes on failing, or where the file cannot be opened at all.
    """
    damage = _check(path)
    for _attempt in range(_CHECKS - 1):
        if not damage:
            break
        _read_through(path)
        first, damage = damage, _check(path)
        if damage == first and not _of_the_disk(damage):
            return damage
    if _of_the_disk(damage):
        raise _unread(path, damage)
    return damage


def _check(path: Path) -> str:
    try:
        # Read-only: looking must change nothing, the -wal file of a damaged ledger included.
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            small = path.stat().st_size < _FULL_CHECK_BELOW_BYTES
            check = "PRAGMA integrity_check(1)" if small else "PRAGMA quick_check(1)"
            (verdict,) = connection.execute(check).fetchone()
            if verdict != "ok":
                return str(verdict)
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
            # Our tables without our version: the page that told of it is gone.
            return "no schema version" if names and "alembic_version" not in names else ""
    except sqlite3.Error as failure:
        if is_damage(failure):
            return str(failure)
        if is_read_failure(failure):
            # As the check itself puts it where it meets such a failure further on.
            return f"{failure}: error code={failure.sqlite_errorcode}"
        raise LedgerError(
            _("The ledger {path} cannot be opened: {detail}.").format(path=path, detail=failure),
            fix=_("Check the disk, its free space, and that the bridge's user may write there."),
        ) from failure


def _read_through(path: Path) -> None:
    """Read what the database is in from its first byte to its last. Raises LedgerError."""
    for kind in ("", "-wal"):
        try:
            with path.with_name(path.name + kind).open("rb") as file:
                while file.read(_READ_AT_ONCE):
                    pass
        except FileNotFoundError:
            continue
        except OSError as failure:
            raise _unread(path, reason_of(failure)) from failure


def _of_the_disk(damage: str) -> bool:
    """Whether the check speaks of a page that the system did not give it."""
    codes = [int(code) for code in _ERROR_CODE.findall(damage)]
    return any(code & 0xFF == sqlite3.SQLITE_IOERR for code in codes)


def _unread(path: Path, detail: str) -> LedgerError:
    return LedgerError(
        _("The disk failed to read the ledger {path}: {detail}.").format(path=path, detail=detail),
        fix=_(
            "The ledger is as it was. Start the bridge again; if this comes back, check the disk"
            " and its cable, and restore a back-up on a sound disk."
        ),
    )


def set_aside(path: Path, at: int) -> Path:
    """Give a damaged ledger, with what SQLite keeps beside it, another name; return it."""
    aside = path.with_name(f"{path.name}.damaged-{stamp(at)}")
    path.rename(aside)
    for kind in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + kind).rename(aside.with_name(aside.name + kind))
    return aside


def _carry_over(data_dir: Path, aside: Path, at: int) -> dict[str, int]:
    # Only for a ledger that broke.
    from tillbridge.ledger.salvage import Salvage  # noqa: PLC0415 -- (as above)

    with contextlib.closing(
        sqlite3.connect(data_dir / LEDGER_FILE, isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        salvage = Salvage(connection)
        salvage.take_all_from(aside)
        for saved in back_ups(data_dir)[:1]:
            salvage.take_orders_from(saved)
        salvage.ask_the_pos_first(aside.name, at)
        connection.execute("COMMIT")
        return salvage.counts
