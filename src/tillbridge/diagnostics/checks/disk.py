"""The disk that the ledger is on: room, rights, and what kind of disk it is."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.i18n import _
from tillbridge.core.problems import Found
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.result import Finding, failed, of_problem, ok, warning
from tillbridge.diagnostics.subject import Subject

_MIB = 2**20
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
    return verdict(await apart(lambda: look(subject.data_dir)))


def look(folder: Path) -> Disk:
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


def verdict(disk: Disk) -> Finding:
    """Return what is known of the disk means."""
    details = {
        "path": disk.path,
        "free_mib": disk.free // _MIB,
        "total_mib": disk.total // _MIB,
        "used_mib": round(disk.used_by_us / _MIB, 1),
        "kind": disk.kind,
    }
    if disk.read_only:
        return failed(
            _("The disk of {path} is read-only: new orders are refused.").format(path=disk.path),
            _("Check the disk (systems mount a failing one read-only), then mount it writable."),
            **details,
        )
    if not disk.may_write:
        return failed(
            _("This user may not write to {path}.").format(path=disk.path),
            _("Give it to the bridge's user, or run this command as that user."),
            **details,
        )
    if low := _low(disk.path, disk.free, disk.total):
        return of_problem(low, **details)
    if disk.kind in _NETWORK or disk.path.startswith("\\\\"):
        return warning(
            _("{path} is on a network share ({kind}), where a ledger can be damaged.").format(
                path=disk.path, kind=disk.kind or "UNC"
            ),
            _("Move data_dir in [bridge] to a disk of this machine."),
            **details,
        )
    if disk.used_by_us > _LARGE:
        return warning(
            _("The data folder has grown to {mib} MiB.").format(mib=disk.used_by_us // _MIB),
            _("Look into {path}: old files in backups/ may go.").format(path=disk.path),
            **details,
        )
    return ok(_("{gib} GiB are free.").format(gib=round(disk.free / 2**30, 1)), **details)


def low_disk(folder: Path) -> Found | None:
    """Return the problem of a disk that is nearly full; None where there is room. Blocks."""
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
