"""The ledger: is it sound, of this version, writable, and its write-ahead log in bounds?"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.i18n import _
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.result import Finding, coded, failed, ok, skipped, warning
from tillbridge.diagnostics.subject import Subject

_LONG_WAL = 256 * 2**20
_LOOK_S = 6.0  # a large ledger is not read to its end


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What was read. `sound` is None where there was no time to read all of it."""

    exists: bool = True
    failure: str = ""
    sound: bool | None = True
    faults: Sequence[str] = ()
    schema: str = ""
    newest: str = ""
    size: int = 0
    wal_size: int = 0
    writable: bool = True


async def check_ledger(subject: Subject) -> Finding:
    """Read the ledger on a connection that cannot write."""
    facts = await apart(lambda: look(subject.data_dir / "ledger.db", subject.writable))
    return verdict(facts, running=subject.running)


def look(path: Path, writable: bool | None) -> LedgerFacts:  # noqa: FBT001 -- a fact like others
    """Gather what is known; the file is not changed."""
    from tillbridge.ledger.migrate import versions  # noqa: PLC0415 -- brings SQLAlchemy

    if not path.exists():
        return LedgerFacts(exists=False)
    wal = path.with_name("ledger.db-wal")
    size, wal_size = path.stat().st_size, wal.stat().st_size if wal.exists() else 0
    if writable is None:
        writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    try:
        with contextlib.closing(_opened(path)) as connection:
            sound, faults = _quick_check(connection)
            schema = _schema(connection)
    except sqlite3.Error as failure:
        return LedgerFacts(failure=str(failure), size=size, wal_size=wal_size, writable=writable)
    return LedgerFacts(
        sound=sound,
        faults=faults,
        schema=schema,
        newest=versions()[-1],
        size=size,
        wal_size=wal_size,
        writable=writable,
    )


def verdict(facts: LedgerFacts, *, running: bool) -> Finding:
    """Return what is known of the ledger means."""
    details = {
        "schema": facts.schema,
        "size_mib": round(facts.size / 2**20, 1),
        "wal_mib": round(facts.wal_size / 2**20, 1),
        "sound": facts.sound,
    }
    if not facts.exists:
        return skipped(
            _("There is no ledger yet; the bridge makes it when it first runs."),
            _("If it ran before: check data_dir in [bridge]."),
        )
    if facts.failure or facts.sound is False:
        told = facts.failure or "; ".join(facts.faults[:2])
        return failed(
            _("The ledger is damaged or cannot be read: {detail}").format(detail=told),
            _("Restart the bridge: it sets a damaged ledger aside and saves what can be saved."),
            **details,
        )
    if not facts.writable:
        finding = failed(
            _("The ledger cannot be written: new orders are refused."),
            _("Free disk space, mend the disk, or give the file to the bridge's user."),
            **details,
        )
        return coded(finding, "ledger.unwritable")
    if facts.schema > facts.newest:
        return failed(
            _("The ledger was written by a newer tillbridge (schema {schema}).").format(
                schema=facts.schema
            ),
            _("Install that version again, or put a back-up of before in place."),
            **details,
        )
    if facts.schema < facts.newest:
        if running:
            return failed(
                _("The ledger's schema is {schema}, not {newest}.").format(
                    schema=facts.schema, newest=facts.newest
                ),
                _("Restart the bridge: it brings the ledger up to date."),
                **details,
            )
        return ok(_("The ledger is sound; it is brought up to date at the next start."), **details)
    if facts.wal_size > _LONG_WAL:
        return warning(
            _("The ledger's write-ahead log has grown to {mib} MiB.").format(
                mib=facts.wal_size // 2**20
            ),
            _("Something keeps the ledger open for reading; restart the bridge."),
            **details,
        )
    return ok(_("The ledger is sound ({mib} MiB).").format(mib=details["size_mib"]), **details)


def _opened(path: Path) -> sqlite3.Connection:
    uri = path.absolute().as_uri()
    try:
        connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=2)
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        # Without the right to make a -shm file SQLite reads no WAL.
        connection = sqlite3.connect(f"{uri}?immutable=1", uri=True, timeout=2)
    return connection


def _quick_check(connection: sqlite3.Connection) -> tuple[bool | None, Sequence[str]]:
    end = time.monotonic() + _LOOK_S
    connection.set_progress_handler(lambda: time.monotonic() > end, 20_000)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.OperationalError as failure:
        if "interrupted" in str(failure):
            return None, ()
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return found == ["ok"], () if found == ["ok"] else found


def _schema(connection: sqlite3.Connection) -> str:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError:
        return ""
    return str(row[0]) if row else ""
