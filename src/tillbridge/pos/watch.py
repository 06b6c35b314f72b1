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

from tillbridge.core.log import get_logger
from tillbridge.pos.call_lane import CallLane, OnHang, call_in

_LONGEST_STEP_MS = 50
_SHORTEST_STEP_MS = 10
_STEPS_PER_SETTLE = 3
_WATCHING_WITHIN_MS = 1000  # a watch in which nothing changes for so long reports that it stands
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

    def forget(self, on_hint: Callable[[], None]) -> None:
        """Call this no more."""
        self._listeners = tuple(each for each in self._listeners if each.on_hint != on_hint)
        self.renew()

    def renew(self) -> None:
        """Watch the folders again: one has appeared, or no longer sends its events."""
        self._renewed.set()
        self._stop.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        # In a thread of its own, with an event loop of its own: opening a watch on a share that
        # hangs blocks, and must not hold the bridge.
        lane = CallLane("folder-events")
        loop = asyncio.get_running_loop()

        try:
            while True:
                self._renewed.clear()
                self._stop = threading.Event()
                watch = partial(self._watch_here, self._stop, loop)
                await asyncio.wrap_future(lane.submit(watch))
                # The watch failed, or no folder exists yet: wait for a reason to try again.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._renewed.wait()
        finally:
            self._stop.set()
            lane.close()

    def _watch_here(self, stop: threading.Event, loop: asyncio.AbstractEventLoop) -> None:
        """Watch in this thread until `stop`, or until the system ends the watch."""
        folders = {each.folder for each in self._listeners if Path(each.folder).is_dir()}
        if folders:
            asyncio.run(self._watch(folders, stop, loop))

    async def _watch(
        self, folders: set[str], stop: threading.Event, loop: asyncio.AbstractEventLoop
    ) -> None:
        is_watching = False
        try:
            async for changes in awatch(
                *sorted(folders),
                watch_filter=None,
                debounce=self._step_ms,
                step=self._step_ms,
                stop_event=stop,
                rust_timeout=_WATCHING_WITHIN_MS,
                yield_on_timeout=True,
                recursive=False,
            ):
                if not is_watching:
                    is_watching = True
                    call_in(loop, self._hint_all)
                if changes:
                    call_in(loop, self._hint, {path for _change, path in changes}, folders)
        except* (OSError, RuntimeError) as failures:  # awatch raises some of them in a group
            # No events: a limit of the system, or a file system without them.
            call_in(loop, self._no_events, str(failures.exceptions[0]))

    def _hint_all(self) -> None:
        """Hint to everybody: what changed before the watch stood is in no event."""
        self._failure_logged = False
        for listener in self._listeners:
            listener.on_hint()

    def _hint(self, paths: set[str], folders: set[str]) -> None:
        """Hint to those who listen to what changed."""
        if paths & folders:  # a folder itself came or went
            self.renew()
        touched = {os.path.split(path) for path in paths - folders}
        for listener in self._listeners:
            if any(
                listener.folder == folder and (listener.names is None or name in listener.names)
                for folder, name in touched
            ):
                listener.on_hint()

    def _no_events(self, detail: str) -> None:
        """Log once that there are none: polling still works."""
        if not self._failure_logged:
            self._failure_logged = True
            get_logger().warning("watch.no_events", detail=detail)


# -- files

_Identity = tuple[int, int]

_NOTICED_WITHIN_S = 1.0  # an event would have reported a change by then


@dataclass(frozen=True, slots=True)
class _Look:
    """What a file looked like, or (`names`) a folder.

    `identity` is device and number, None if it is not there; `names` has, of each file, name,
    time of the last change and size.
    """

    identity: _Identity | None
    size: int = 0
    changed_ns: tuple[int, ...] = ()
    names: frozenset[tuple[str, int, int]] = frozenset()


_NOTHING = _Look(None)


@dataclass(slots=True)
class _Watched:
    path: Path
    on_change: Callable[[], None]
    settle_s: float | None  # None: a folder, which is reported at once
    reported: _Look = _NOTHING  # as it was when it was last reported
    pending: _Look | None = None  # as it is since it changed
    due: float = 0.0  # when that is reported, on the monotonic clock


class FileWatch:
    """The files of one store; `run` is one supervised task.

    They are looked at in a lane of their own, so that a share that hangs delays no other store.
    Subscribe before `run` begins: the first look reports every file that is there.
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
        self._poll_s = poll_s
        self._lane = partial(
            CallLane, f"{store}-watch", hangs_after_s=hangs_after_s, on_hang=on_hang
        )
        self._watched: list[_Watched] = []
        self._folders: dict[Path, None] = {}  # in which they are
        self._hinted = asyncio.Event()
        self._hint = self._hinted.set

    def subscribe(
        self, files: Sequence[Path], settle_ms: int, on_change: Callable[[], None]
    ) -> None:
        """Call `on_change` in the loop whenever one of `files` changed, came or went, and settled.

        Several files that change together may be reported once each.
        """
        for path in map(Path.absolute, files):
            self._watched.append(_Watched(path, on_change, settle_ms / 1000))
            self._folders[path.parent] = None
            names = frozenset({path.name})
            self._events.listen(path.parent, names, self._hint, settle_ms=settle_ms)

    def subscribe_folder(self, folder: Path, on_change: Callable[[], None]) -> None:
        """Call `on_change` in the loop as soon as a file in `folder` came, went or changed.

        It is called every `poll_s` seconds as well while a file is there. Hidden files and
        sub-folders do not count.
        """
        path = folder.absolute()
        self._watched.append(_Watched(path, on_change, None))
        self._folders[path] = None
        self._events.listen(path, None, self._hint)

    def close(self) -> None:
        """Watch for nobody any more; after `run`."""
        if self._watched:
            self._events.forget(self._hint)

    async def run(self) -> None:
        """Watch until cancelled."""
        lane = self._lane()
        next_poll = time.monotonic()
        known_folders: Sequence[_Identity | None] | None = None
        try:
            while True:
                if polled := time.monotonic() >= next_poll:
                    next_poll = time.monotonic() + self._poll_s
                self._hinted.clear()
                looks, folders, at_ns = await asyncio.wrap_future(
                    lane.submit(self._look_at_all, "watch")
                )
                missed = self._report(looks, at_ns, polled=polled) and polled
                if known_folders is not None and (missed or folders != known_folders):
                    self._events.renew()
                known_folders = folders
                due = [each.due for each in self._watched if each.pending is not None]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min((next_poll, *due)) - time.monotonic()):
                        await self._hinted.wait()
        finally:
            lane.close()

    def _look_at_all(self) -> tuple[Sequence[_Look], Sequence[_Identity | None], int]:
        """Look at everything, and at which folders they are in (outside the event loop)."""
        looks = [
            _look(each.path) if each.settle_s is not None else _listing(each.path)
            for each in self._watched
        ]
        return looks, [_look(each).identity for each in self._folders], time.time_ns()

    def _report(self, looks: Sequence[_Look], at_ns: int, *, polled: bool) -> bool:
        """Report what is due; return whether an event should have hinted at something before."""
        now = time.monotonic()
        missed = False
        for each, look in zip(self._watched, looks, strict=True):
            if look == each.reported:
                each.pending = None
                if polled and look.names:
                    each.on_change()
            elif each.settle_s is not None and look != each.pending:
                ages_s = [(at_ns - changed_ns) / 1e9 for changed_ns in look.changed_ns]
                missed = missed or all(age_s > _NOTICED_WITHIN_S for age_s in ages_s)
                each.pending = look
                # It has been quiet since the times it bears, where they can be believed: a share's
                # clock may be off, ours may have jumped, a file may have been given a time of its
                # own. Else it is from now.
                latest_s = each.settle_s + _NOTICED_WITHIN_S
                quiet_s = min((age_s for age_s in ages_s if 0 <= age_s <= latest_s), default=0.0)
                each.due = now + max(0.0, each.settle_s - quiet_s)
            elif now >= each.due:
                each.reported = look
                each.pending = None
                each.on_change()
        return missed


def _look(path: Path) -> _Look:
    try:
        status = path.stat()
    except OSError:
        return _NOTHING
    times = (status.st_ctime_ns, status.st_mtime_ns)
    return _Look((status.st_dev, status.st_ino), status.st_size, times)


def _listing(folder: Path) -> _Look:
    found = set()
    # Not there now, or changing at this moment: the next look shows it.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                status = entry.stat(follow_symlinks=False)
                if S_ISREG(status.st_mode):
                    found.add((entry.name, status.st_mtime_ns, status.st_size))
    return _Look(None, names=frozenset(found))
