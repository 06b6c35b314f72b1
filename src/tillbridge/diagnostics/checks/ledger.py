"""Whether the ledger is whole, its disk or its server keeps what is written, and has room."""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge import ledger_schemas
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.formats import number
from tillbridge.core.i18n import _
from tillbridge.core.problems import Found
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import (
    Finding,
    Subject,
    coded,
    detailed,
    failed,
    of_problem,
    ok,
    skipped,
    warning,
)

if TYPE_CHECKING:
    from tillbridge.ledger.server import Server

_MIB = 2**20
_LONG_WAL = 256 * _MIB
_CLOCK_S = 2.0  # a time server keeps clocks much closer
_LOOK_S = 6.0  # a large ledger is not read to its end


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What was read. `sound` is None if there was no time to read all of it."""

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
    """Read the ledger on a connection that cannot write, or look at the server that it is on."""
    try:
        url = subject.loaded.ledger_url()
    except ConfigError as failure:
        return failed(failure.text, failure.fix)
    if url is not None:
        return await _check_server(subject, url)
    path = subject.loaded.data_dir / "ledger.db"
    facts = await in_thread(lambda: look_at_ledger(path, subject.writable))
    return ledger_verdict(facts, running=subject.running)


def look_at_ledger(path: Path, writable: bool | None) -> LedgerFacts:  # noqa: FBT001 -- a fact like others
    """Gather what is known; the file is not changed."""
    if not path.exists():
        return LedgerFacts(exists=False)
    wal = path.with_name("ledger.db-wal")
    size, wal_size = path.stat().st_size, wal.stat().st_size if wal.exists() else 0
    if writable is None:
        writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    facts = LedgerFacts(size=size, wal_size=wal_size, writable=writable)
    try:
        with contextlib.closing(_opened(path)) as connection:
            sound, faults = _quick_check(connection)
            schema = _schema(connection)
    except sqlite3.Error as failure:
        return replace(facts, failure=str(failure))
    return replace(facts, sound=sound, faults=faults, schema=schema, newest=ledger_schemas()[-1])


def ledger_verdict(facts: LedgerFacts, *, running: bool) -> Finding:
    """Return what is known of the ledger means."""
    if not facts.exists:
        return skipped(
            _("There is no database yet: the bridge creates it at its first start."),
            _("If the bridge has run before, check data_dir in [bridge]."),
        )
    return detailed(
        _of_file(facts, running=running),
        schema=facts.schema,
        size_mib=round(facts.size / _MIB, 1),
        wal_mib=round(facts.wal_size / _MIB, 1),
        sound=facts.sound,
    )


def _of_file(facts: LedgerFacts, *, running: bool) -> Finding:
    if facts.failure or facts.sound is False:
        faults = facts.failure or "; ".join(facts.faults[:2])
        return failed(
            _("The database is damaged or cannot be read: {detail}").format(detail=faults),
            _(
                "Restart the bridge: it saves the damaged file, creates a new one and recovers "
                "what it can."
            ),
        )
    if not facts.writable:
        finding = failed(
            _("The bridge cannot save: it refuses new orders."),
            _("Free disk space, repair the disk, or give the bridge's user write permission."),
        )
        return coded(finding, "ledger.unwritable")
    if facts.schema > facts.newest:
        text = _("The database belongs to a newer tillbridge (schema {schema}).")
        return failed(
            text.format(schema=facts.schema),
            _("Install that version again, or restore a backup from before the update."),
        )
    if facts.schema < facts.newest:
        return _old_schema(facts.schema, running=running)
    if facts.wal_size > _LONG_WAL:
        text = _("The database's write-ahead log has grown to {mib} MiB.")
        return warning(
            text.format(mib=facts.wal_size // _MIB),
            _("Another program keeps the database open. Close it, or restart the bridge."),
        )
    mib = number(round(facts.size / _MIB, 1))
    return ok(_("The database is intact ({mib} MiB).").format(mib=mib))


def _old_schema(schema: str, *, running: bool) -> Finding:
    if not running:
        return ok(_("The database is intact. The next start updates it."))
    text = _("The database's schema is {schema}, not {newest}.")
    return failed(
        text.format(schema=schema, newest=ledger_schemas()[-1]),
        _("Restart the bridge: it updates the database."),
    )


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


async def _check_server(subject: Subject, url: str) -> Finding:
    """Connect as the bridge does, and look; nothing is changed."""
    # Only for those who have a server: its driver takes a tenth of a second.
    from tillbridge.ledger.server import look_at  # noqa: PLC0415 -- (as above)

    try:
        server = await in_thread(lambda: look_at(url))
    except BridgeError as failure:
        return failed(failure.text, failure.fix)
    return server_verdict(server, running=subject.running, writable=subject.writable)


def server_verdict(server: "Server", *, running: bool, writable: bool | None) -> Finding:
    """Return what is known of the server means."""
    return detailed(
        _of_server(server, running=running, writable=writable),
        server=server.name,
        postgresql=server.version,
        schema=server.schema,
        standbys=server.standbys,
        clock_ahead_ms=round(server.clock_ahead_s * 1000),
        bridges=[each.name for each in server.bridges if each.is_alive],
        **server.settings,
    )


def _of_server(server: "Server", *, running: bool, writable: bool | None) -> Finding:
    from tillbridge.ledger.server import unfit  # noqa: PLC0415 -- (as above)

    if (refusal := unfit(server)) is not None:
        return failed(refusal.text, refusal.fix)
    if writable is False:
        finding = failed(
            _("The bridge cannot save: it refuses new orders."),
            _("Look into the log of the database server, and check its disk."),
        )
        return coded(finding, "ledger.unwritable")
    if not server.schema:
        text = _("The database {name} is empty: the bridge creates its tables at its first start.")
        return skipped(
            text.format(name=server.name),
            _("To take the present database along: tillbridge ledger copy"),
        )
    if server.schema < ledger_schemas()[-1]:
        return _old_schema(server.schema, running=running)
    if abs(server.clock_ahead_s) > _CLOCK_S:
        text = _("The clocks of this machine and of the database server differ by {seconds} s.")
        return warning(
            text.format(seconds=number(round(abs(server.clock_ahead_s), 1))),
            _("Let both be set by a time server: timedatectl set-ntp true"),
        )
    text = _("The database {name} (PostgreSQL {version}) writes each commit to disk.")
    if server.standbys:
        text = _(
            "The database {name} (PostgreSQL {version}) writes each commit to disk, and to the "
            "standbys {standbys}."
        )
    return ok(text.format(name=server.name, version=server.version, standbys=server.standbys))


_LOW = 1024 * _MIB  # or a twentieth of a smaller disk, but never less than
_LEAST = 100 * _MIB
_LARGE = 5 * 1024 * _MIB
# SQLite's locks and write-ahead log are not sound over a network.
_NETWORK = frozenset(
    "nfs nfs4 cifs smb2 smb3 smbfs afs ncpfs 9p fuse.sshfs fuse.davfs fuse.rclone ceph "
    "glusterfs fuse.glusterfs afpfs webdav".split()
)


@dataclass(frozen=True, slots=True)
class Disk:
    """What is known of the data folder and its disk; sizes in bytes."""

    path: str
    exists: bool = True
    free: int = 0
    total: int = 0
    used_by_us: int = 0
    read_only: bool = False
    may_write: bool = True
    kind: str = ""


async def check_disk(subject: Subject) -> Finding:
    """Look at the data folder's disk; writes nothing."""
    return disk_verdict(await in_thread(lambda: look_at_disk(subject.loaded.data_dir)))


def look_at_disk(folder: Path) -> Disk:
    """Gather what is known."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    usage = shutil.disk_usage(there)
    read_only = False
    if hasattr(os, "statvfs"):
        read_only = bool(os.statvfs(there).f_flag & getattr(os, "ST_RDONLY", 1))
    return Disk(
        str(folder),
        exists=folder.is_dir(),
        free=usage.free,
        total=usage.total,
        used_by_us=sum(_sizes(folder)) if folder.is_dir() else 0,
        read_only=read_only,
        may_write=os.access(there, os.W_OK),
        kind=kind_of(there.resolve(), _mounts()),
    )


def disk_verdict(disk: Disk) -> Finding:
    """Return what is known of the disk means."""
    return detailed(
        _of_disk(disk),
        path=disk.path,
        free_mib=disk.free // _MIB,
        total_mib=disk.total // _MIB,
        used_mib=round(disk.used_by_us / _MIB, 1),
        kind=disk.kind,
    )


def _of_disk(disk: Disk) -> Finding:
    if disk.read_only:
        text = _("The disk of {path} is read-only: the bridge refuses new orders.")
        return failed(
            text.format(path=disk.path),
            _("Check the disk: systems mount a failing one read-only. Then mount it writable."),
        )
    if not disk.may_write:
        return failed(
            _("This user may not write to {path}.").format(path=disk.path),
            _("Give the bridge's user write permission, or run this command as that user."),
        )
    if low := _low(disk.path, disk.free, disk.total):
        return of_problem(low)
    if disk.kind in _NETWORK or disk.path.startswith("\\\\"):
        text = _("{path} is on a network share ({kind}), which can damage a database.")
        return warning(
            text.format(path=disk.path, kind=disk.kind or "UNC"),
            _("Move data_dir in [bridge] to a disk of this machine."),
        )
    if disk.used_by_us > _LARGE:
        return warning(
            _("The data folder has grown to {mib} MiB.").format(mib=disk.used_by_us // _MIB),
            _("Look into {path}: you can delete old files in backups/.").format(path=disk.path),
        )
    return ok(_("{gib} GiB are free.").format(gib=number(round(disk.free / 2**30, 1))))


def low_disk(folder: Path) -> Found | None:
    """Return the problem of a disk that is nearly full; None if there is room. Blocks."""
    usage = shutil.disk_usage(folder)
    return _low(str(folder), usage.free, usage.total)


def _low(path: str, free: int, total: int) -> Found | None:
    if free >= min(_LOW, max(_LEAST, total // 20)):
        return None
    return Found("disk.low", detail={"mib": free // _MIB, "path": path})


def kind_of(path: Path, mounts: Iterable[tuple[str, str]]) -> str:
    """Return the kind of file system a path is on: that of the longest mount above it."""
    best, kind = -1, ""
    for mount, each in mounts:
        inside = path == Path(mount) or Path(mount) in path.parents
        if inside and len(mount) >= best:
            best, kind = len(mount), each
    return kind


def _mounts() -> list[tuple[str, str]]:
    try:
        lines = Path("/proc/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    parts = [line.split() for line in lines]
    return [(each[1].replace("\\040", " "), each[2]) for each in parts if len(each) > 2]


def _sizes(folder: Path) -> Iterable[int]:
    for root, _folders, files in os.walk(folder):
        for name in files:
            try:
                yield (Path(root) / name).stat().st_size
            except OSError:
                continue
