"""Noticing that files changed, and when they are quiet.

What counts is how a file looks (its number, size and times), not what events report: it is looked
at when an event hints at it, and every `poll_s` seconds in any case. A file counts as changed once
it has looked the same for `settle_ms`, counted from its own last change: other files that keep
changing beside it delay nothing, and a file that is being written is left alone until it is done.

Nothing relies on the events (`FolderEvents`): a network share sends none, and a folder that is
deleted and made again is another folder to the system. They only make it fast. One watch,
`watchfiles.awatch`, serves all stores on every system. It collects what the system reports once a
step, so a change arrives one to two steps late; the quiet time counts from the file's own last
change, so a step that fits into it several times delays no export.
"""

import asyncio
import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_ISREG

from watchfiles import awatch
from watchfiles.main import FileChange

from tillbridge.core.log import get_logger
from tillbridge.pos.call_thread import CallThread, OnHang

_LONGEST_STEP_MS = 50
_SHORTEST_STEP_MS = 10
_STEPS_PER_SETTLE = 3
_STANDS_WITHIN_MS = 1000  # a watch in which nothing changes for so long reports that it stands
_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class _Listener:
    folder: str
    names: frozenset[str] | None  # None: whatever changes in the folder
    on_hint: Callable[[], None]


class FolderEvents:
    """Hints to listeners that something may have changed. `run` is one supervised task."""

    def __init__(self) -> None:
        self._listeners: tuple[_Listener, ...] = ()
        self._step_ms = _LONGEST_STEP_MS
        self._renewed = asyncio.Event()
        self._stop = threading.Event()
        self._failure_logged = False

    def listen(
        self,
        folder: Path,
        names: frozenset[str] | None,
        on_hint: Callable[[], None],
        *,
        settle_ms: int | None = None,
    ) -> None:
        """Call `on_hint` in the loop when one of `names` (None: anything) in `folder` changed.

        The hint comes within `settle_ms` of the change.
        """
        self._listeners = (*self._listeners, _Listener(os.fspath(folder), names, on_hint))
        if settle_ms is not None:
            step_ms = max(_SHORTEST_STEP_MS, settle_ms // _STEPS_PER_SETTLE)
            self._step_ms = min(self._step_ms, step_ms)
        self.renew()

    def renew(self) -> None:
        """Watch the folders anew: one of them has come, or no longer sends its events."""
        self._renewed.set()
        self._stop.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        # In a thread of its own, with an event loop of its own: opening a watch on a share that
        # hangs blocks, and must not hold the bridge.
        worker = CallThread("folder-events")
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._renewed.clear()
                self._stop = stop = threading.Event()
                await worker.run(
                    partial(self._watch_here, self._listeners, self._step_ms, stop, loop)
                )
                # The watch failed, or no folder exists yet: wait for a reason to try again.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._renewed.wait()
        finally:
            self._stop.set()
            worker.close()

    def _watch_here(
        self,
        listeners: tuple[_Listener, ...],
        step_ms: int,
        stop: threading.Event,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Watch in this thread until `stop`, or until the system ends the watch."""
        folders = frozenset(each.folder for each in listeners if Path(each.folder).is_dir())
        if folders:
            asyncio.run(self._watch(folders, listeners, step_ms, stop, loop))

    async def _watch(
        self,
        folders: frozenset[str],
        listeners: tuple[_Listener, ...],
        step_ms: int,
        stop: threading.Event,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        stands = False
        try:
            async for changes in awatch(
                *sorted(folders),
                watch_filter=None,
                debounce=step_ms,
                step=step_ms,
                stop_event=stop,
                rust_timeout=_STANDS_WITHIN_MS,
                yield_on_timeout=True,
                recursive=False,
            ):
                if not stands:
                    stands = True
                    _call_in(loop, partial(self._stands, listeners))
                if changes:
                    _call_in(loop, partial(self._pass_on, changes, folders, listeners))
        except* (OSError, RuntimeError) as failures:  # awatch raises some of them in a group
            # No events: a limit of the system, or a file system without them.
            _call_in(loop, partial(self._no_events, failures.exceptions[0]))

    def _stands(self, listeners: tuple[_Listener, ...]) -> None:
        """Hint to everybody: what changed before the watch stood is in no event."""
        self._failure_logged = False
        for listener in listeners:
            listener.on_hint()

    def _pass_on(
        self,
        changes: set[FileChange],
        folders: frozenset[str],
        listeners: tuple[_Listener, ...],
    ) -> None:
        paths = {path for _change, path in changes}
        if paths & folders:  # a folder itself came or went
            self.renew()
        touched = {os.path.split(path) for path in paths - folders}
        for listener in listeners:
            if any(
                listener.folder == folder and (listener.names is None or name in listener.names)
                for folder, name in touched
            ):
                listener.on_hint()

    def _no_events(self, failure: Exception) -> None:
        """Log once that there are none: polling still works."""
        if not self._failure_logged:
            self._failure_logged = True
            get_logger().warning("watch.no_events", detail=str(failure))


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and every listener with it
        loop.call_soon_threadsafe(callback)


# -- files

_Identity = tuple[int, int]
_Listing = frozenset[tuple[str, int, int]]  # name, time of the last change, size

_NOTICED_WITHIN_S = 1.0  # an event would have reported a change by then


@dataclass(frozen=True, slots=True)
class _Look:
    """What a file looked like. `identity` is device and number, None where it is not there."""

    identity: _Identity | None
    size: int = 0
    changed_ns: tuple[int, ...] = ()


@dataclass(slots=True)
class _File:
    path: Path
    settle_s: float
    on_change: Callable[[], None]
    reported: _Look = _Look(None)  # as it was when it was last reported
    pending: _Look | None = None  # as it is since it changed
    due: float = 0.0  # when that is reported, on the monotonic clock


@dataclass(slots=True)
class _Folder:
    path: Path
    on_change: Callable[[], None]
    reported: _Listing = frozenset()


@dataclass(frozen=True, slots=True)
class _View:
    """One look at everything."""

    files: Sequence[_Look]
    folders: Sequence[_Listing]
    parents: tuple[_Identity | None, ...]
    at_ns: int


class FileWatch:
    """The files of one store; `run` is one supervised task.

    A thread of its own looks at them, so that a share that hangs delays no other store. Subscribe
    before `run` begins: the first look reports every file that is there.
    """

    def __init__(
        self,
        events: FolderEvents,
        *,
        store: str,
        poll_s: float,
        hangs_after_s: float = math.inf,
        on_hang: OnHang = lambda _name, _ran_s: None,
    ) -> None:
        self._events = events
        self._hangs_after_s = hangs_after_s
        self._on_hang = on_hang
        self._store = store
        self._poll_s = poll_s
        self._files: list[_File] = []
        self._folders: list[_Folder] = []
        self._parents: tuple[Path, ...] = ()
        self._known_parents: tuple[_Identity | None, ...] | None = None
        self._hinted = asyncio.Event()

    def subscribe(
        self, files: Sequence[Path], settle_ms: int, on_change: Callable[[], None]
    ) -> None:
        """Call `on_change` in the loop whenever one of `files` changed, came or went, and settled.

        Several files that change together may be reported once each.
        """
        for path in files:
            absolute = path.absolute()
            self._files.append(_File(absolute, settle_ms / 1000, on_change))
            self._add_parent(absolute.parent)
            names = frozenset({absolute.name})
            self._events.listen(absolute.parent, names, self._hinted.set, settle_ms=settle_ms)

    def subscribe_folder(self, folder: Path, on_change: Callable[[], None]) -> None:
        """Call `on_change` in the loop as soon as a file in `folder` came, went or changed.

        Hidden files and sub-folders do not count.
        """
        absolute = folder.absolute()
        self._folders.append(_Folder(absolute, on_change))
        self._add_parent(absolute)
        self._events.listen(absolute, None, self._hinted.set)

    async def run(self) -> None:
        """Watch until cancelled."""
        worker = CallThread(
            f"{self._store}-watch", hangs_after_s=self._hangs_after_s, on_hang=self._on_hang
        )
        next_poll = time.monotonic()
        try:
            while True:
                polled = time.monotonic() >= next_poll
                if polled:
                    next_poll = time.monotonic() + self._poll_s
                self._hinted.clear()
                view = await worker.run(self._view, "watch")
                self._take(view, polled=polled)
                due = [file.due for file in self._files if file.pending is not None]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min((next_poll, *due)) - time.monotonic()):
                        await self._hinted.wait()
        finally:
            worker.close()

    def _add_parent(self, folder: Path) -> None:
        self._parents = tuple(dict.fromkeys((*self._parents, folder)))

    def _view(self) -> _View:
        """Look at everything (in the worker's thread)."""
        parents = tuple(_look(folder).identity for folder in self._parents)
        files = tuple(_look(file.path) for file in self._files)
        folders = tuple(_listing(folder.path) for folder in self._folders)
        return _View(files, folders, parents, time.time_ns())

    def _take(self, view: _View, *, polled: bool) -> None:
        """Compare a look with what was reported, and report what is due."""
        now = time.monotonic()
        missed = False  # by the events
        for file, look in zip(self._files, view.files, strict=True):
            if look == file.reported:
                file.pending = None
            elif look != file.pending:
                missed = missed or (polled and _is_old(look, view.at_ns))
                file.pending = look
                file.due = now + _left_to_settle(look, file.settle_s, view.at_ns)
            elif now >= file.due:
                file.reported = look
                file.pending = None
                file.on_change()
        for folder, listing in zip(self._folders, view.folders, strict=True):
            if listing != folder.reported:
                folder.reported = listing
                folder.on_change()
        if self._known_parents is None:
            self._known_parents = view.parents
        elif missed or view.parents != self._known_parents:
            self._known_parents = view.parents
            self._events.renew()


def _look(path: Path) -> _Look:
    try:
        status = path.stat()
    except OSError:
        return _Look(None)
    times = (status.st_ctime_ns, status.st_mtime_ns)
    return _Look((status.st_dev, status.st_ino), status.st_size, times)


def _listing(folder: Path) -> _Listing:
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    status = entry.stat(follow_symlinks=False)
                    if S_ISREG(status.st_mode):
                        found.add((entry.name, status.st_mtime_ns, status.st_size))
    except OSError:  # not there now, or changing at this moment: the next look shows it
        return frozenset(found)
    return frozenset(found)


def _is_old(look: _Look, at_ns: int) -> bool:
    """Return whether an event should have reported this long before."""
    return all(at_ns - changed_ns > _NOTICED_WITHIN_S * 1e9 for changed_ns in look.changed_ns)


def _left_to_settle(look: _Look, settle_s: float, at_ns: int) -> float:
    """Return how long the file must yet stay as it is, in seconds.

    It has been quiet since the times it bears, where they can be believed: a share's clock may be
    off, ours may have jumped, a file may have been given a time of its own. Else it is from now.
    """
    latest_s = settle_s + _NOTICED_WITHIN_S
    ages_s = [(at_ns - changed_ns) / 1e9 for changed_ns in look.changed_ns]
    believable = [age_s for age_s in ages_s if 0 <= age_s <= latest_s]
    return max(0.0, settle_s - min(believable, default=0.0))
