"""Change events of the file system, as hints.

Nothing relies on them: a network share sends none, and a folder that is deleted and made again is
another folder to the system. They only make it fast; `tillbridge.pos.watch` compares the
files themselves.

One watch, `watchfiles.awatch`, serves all stores on every system. It collects what the system
reports once a step, so a change arrives one to two steps late. The quiet time counts from the
file's own last change, so a step that fits into it several times delays no export.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from watchfiles import awatch
from watchfiles.main import FileChange

from tillbridge.core.log import get_logger
from tillbridge.pos.call_thread import CallThread

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
