"""A power cut, played on the record of what a program asked of its disk (power_cut.c).

A disk may forget whatever it was not asked to sync. `Disk` holds what is safe, and what is not yet:

- bytes are safe once their file was synced after they were written;
- a name (made, moved, removed) is safe once its folder was synced, or the file it leads to, and
  with it all that was done to names before: file systems keep a journal of these.

`lights_out` drops what is not safe: all of it, or, with a `chance`, what chance drops: pages of
4096 bytes each for itself, and names from some moment on.
"""

import random
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_RECORD = struct.Struct("=IIIc3xQq")
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """One call: its kind, the file, an offset, length or count, up to two names, and bytes."""

    what: str
    inode: int
    number: int
    first: str
    second: str
    content: bytes


def records(journal: Path) -> Iterator[Record]:
    """Yield what is whole in the journal: the last one may have been cut off."""
    told = memoryview(journal.read_bytes())
    at = 0
    while at + _RECORD.size <= len(told):
        length, first, second, what, inode, number = _RECORD.unpack_from(told, at)
        at += _RECORD.size
        if at + first + second + length > len(told):
            return
        names = bytes(told[at : at + first + second])
        content = bytes(told[at + first + second : at + first + second + length])
        at += first + second + length
        yield Record(
            what.decode(), inode, number, names[:first].decode(), names[first:].decode(), content
        )


@dataclass(slots=True)
class _File:
    safe: bytearray = field(default_factory=bytearray)
    unsafe: list[tuple[int, Record]] = field(default_factory=list)


@dataclass(slots=True)
class Disk:
    """What is safe on the disk below `root`, and what a cut would take."""

    root: Path
    _files: dict[str, _File] = field(default_factory=dict)  # by their safe names
    _folders: dict[str, int] = field(default_factory=dict)  # their inodes, by their names
    _names: list[tuple[int, Record, _File]] = field(default_factory=list)  # not safe yet, in order
    _inodes: dict[int, _File] = field(default_factory=dict)  # as the program sees them
    _seen: dict[str, int] = field(default_factory=dict)  # the inodes of names, as it sees them
    _count: int = 0

    @classmethod
    def of(cls, root: Path) -> "Disk":
        """Return the disk before the program starts: all that is there is safe."""
        disk = cls(root)
        for path in [root, *root.rglob("*")]:
            inode = path.stat().st_ino
            if path.is_dir():
                disk._folders[str(path)] = inode
            else:
                file = _File(bytearray(path.read_bytes()))
                disk._files[str(path)] = file
                disk._inodes[inode], disk._seen[str(path)] = file, inode
        return disk

    def play(self, journal: Path) -> None:
        """Do all that the journal tells."""
        for record in records(journal):
            self._play(record)
            self._count += 1

    @property
    def unsafe_writes(self) -> int:
        """How many writes a cut may take now."""
        return sum(len(file.unsafe) for file in self._inodes.values())

    def _play(self, record: Record) -> None:
        match record.what:
            case "W" | "T":
                self._file(record.inode).unsafe.append((self._count, record))
            case "S":
                self._sync(record)
            case "D":
                self._folders[record.first] = record.inode  # made once, long before any cut
            case "N":
                # The number of a file that is gone is given to the next one.
                if record.inode not in self._seen.values():
                    self._inodes[record.inode] = _File()
                self._seen[record.first] = record.inode
                self._names.append((self._count, record, self._file(record.inode)))
            case "M":
                inode = self._seen.pop(record.first, record.inode)
                self._seen[record.second] = inode
                self._names.append((self._count, record, self._file(inode)))
            case "R":
                inode = self._seen.pop(record.first, 0)
                self._names.append((self._count, record, self._file(inode)))
            case other:
                raise ValueError(other)

    def _file(self, inode: int) -> _File:
        return self._inodes.setdefault(inode, _File())

    def _sync(self, sync: Record) -> None:
        folders = {path for path, inode in self._folders.items() if inode == sync.inode}
        file = None if folders else self._file(sync.inode)
        covered = 0
        for number, (count, record, leads_to) in enumerate(self._names, 1):
            home = str(Path(record.second or record.first).parent)
            if count < sync.number and (leads_to is file or home in folders):
                covered = number
        for _count, record, leads_to in self._names[:covered]:
            self._name(record, leads_to)
        self._names = self._names[covered:]
        if file is not None:
            for count, record in file.unsafe:
                if count < sync.number:
                    _write(file.safe, record)
            file.unsafe = [each for each in file.unsafe if each[0] >= sync.number]

    def _name(self, record: Record, file: _File) -> None:
        if record.what == "N":
            self._files[record.first] = file
        elif record.what == "R":
            self._files.pop(record.first, None)
        else:
            self._files.pop(record.first, None)
            self._files[record.second] = file

    def lights_out(self, chance: random.Random | None = None) -> None:
        """Take what is not safe, and put what is left in place of the folder."""
        if chance is not None:
            for _count, record, file in self._names[: chance.randint(0, len(self._names))]:
                self._name(record, file)
        shutil.rmtree(self.root)
        for folder in sorted(self._folders):
            Path(folder).mkdir()
        for name, file in self._files.items():
            content = bytearray(file.safe)
            for _count, record in file.unsafe if chance is not None else ():
                for piece in _pages(record):
                    if chance is not None and chance.random() < 0.5:
                        _write(content, piece)
            if not name.endswith("-shm"):  # memory of SQLite's processes: it makes it anew
                Path(name).write_bytes(content)


def _pages(record: Record) -> Iterator[Record]:
    """Yield a write in pieces that a disk keeps or forgets each for itself."""
    if record.what != "W":
        yield record
        return
    start, end = record.number, record.number + len(record.content)
    while start < end:
        stop = min(end, (start // _PAGE + 1) * _PAGE)
        piece = record.content[start - record.number : stop - record.number]
        yield Record("W", record.inode, start, "", "", piece)
        start = stop


def _write(content: bytearray, record: Record) -> None:
    if record.what == "T":
        del content[record.number :]
        content.extend(bytes(record.number - len(content)))
        return
    end = record.number + len(record.content)
    content.extend(bytes(max(0, end - len(content))))
    content[record.number : end] = record.content
