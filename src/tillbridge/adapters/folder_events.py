"""Change events of the file system, as hints.

Nobody relies on them: a network share sends none, and a folder that is deleted and made again is
another folder to the system. They only make it fast; `tillbridge.adapters.watch` looks at the
files themselves.

One native watch serves all stores. On Linux it is the kernel's own (`inotify`), which sleeps while
nothing happens. Elsewhere it is watchfiles', which wakes up once a step to collect what the system
noted, so the step is as long as the shortest settle time allows, within which its delay is hidden.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tillbridge.adapters.inotify import FolderNotices
from tillbridge.adapters.worker import Worker
from tillbridge.log import get_logger

_MAX_STEP_MS = 100
_MIN_STEP_MS = 10
_STEPS_PER_SETTLE = 2  # a change is told one to two steps after it happened
_AGAIN_S = 60.0
_BUSY_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class _Listener:
    folder: str
    names: frozenset[str] | None  # None: whatever changes in the folder
    on_hint: Callable[[], None]

    def hears(self, folder: str, name: str) -> bool:
        return self.folder == folder and (self.names is None or name in self.names)


class FolderEvents:
    """Tells listeners that something may have changed. `run` is one supervised task."""

    def __init__(self) -> None:
        self._listeners: tuple[_Listener, ...] = ()
        self._step_ms = _MAX_STEP_MS
        self._renewed = asyncio.Event()
        self._stop = threading.Event()
        self._told_failure = False

    def listen(
        self,
        folder: Path,
        names: frozenset[str] | None,
        on_hint: Callable[[], None],
        *,
        settle_ms: int | None = None,
    ) -> None:
        """Call `on_hint` in the loop when one of `names` (None: anything) in `folder` changed.

        The hint comes early enough to be hidden in `settle_ms`.
        """
        self._listeners = (*self._listeners, _Listener(os.fspath(folder), names, on_hint))
        if settle_ms is not None:
            step_ms = max(_MIN_STEP_MS, settle_ms // _STEPS_PER_SETTLE)
            self._step_ms = min(self._step_ms, step_ms)
        self.renew()

    def renew(self) -> None:
        """Watch the folders anew: one of them has come, or no longer sends its events."""
        self._renewed.set()
        self._stop.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        worker = Worker("folder-events")
        watch = self._by_kernel if sys.platform.startswith("linux") else self._by_library
        try:
            while True:
                self._renewed.clear()
                await watch(worker)
                # Watching ended by itself, or there is no folder yet: wait to be told to try again.
                try:
                    async with asyncio.timeout(_AGAIN_S):
                        await self._renewed.wait()
                except TimeoutError:
                    continue
        finally:
            self._stop.set()
            worker.close()

    async def _by_kernel(self, worker: Worker) -> None:
        """Watch in the event loop until the folders are to be watched anew."""
        listeners = self._listeners
        try:
            # A share that hangs must not hold the loop.
            notices = await worker.run(lambda: _open_notices(_folders_of(listeners)))
        except OSError as failure:
            self._no_events(failure)
            return
        if notices is None:
            return
        self._told_failure = False
        loop = asyncio.get_running_loop()
        pause: asyncio.TimerHandle | None = None

        def listen() -> None:
            loop.add_reader(notices.fileno(), hear)

        def hear() -> None:
            # What is busy is heard once in a while, however often it changes.
            nonlocal pause
            loop.remove_reader(notices.fileno())
            pause = loop.call_later(_BUSY_PAUSE_S, listen)
            self._pass_on(notices.read(), listeners)

        listen()
        try:
            for listener in listeners:  # what happened until now is nobody's event
                listener.on_hint()
            await self._renewed.wait()
        finally:
            if pause is not None:
                pause.cancel()
            loop.remove_reader(notices.fileno())
            notices.close()

    def _pass_on(self, touched: set[tuple[str, str]], listeners: tuple[_Listener, ...]) -> None:
        if any(not name for _folder, name in touched):  # a folder itself came or went
            self.renew()
        for listener in listeners:
            if any(listener.hears(*at) for at in touched):
                listener.on_hint()

    def _no_events(self, failure: Exception) -> None:
        """Tell, once, that there are none (a limit of the system): looking still works."""
        if not self._told_failure:
            self._told_failure = True
            get_logger().warning("watch.no_events", detail=str(failure))

    async def _by_library(self, worker: Worker) -> None:
        """Watch in the worker's thread until the folders are to be watched anew."""
        loop = asyncio.get_running_loop()
        self._stop = stop = threading.Event()
        await worker.run(partial(self._watch, self._listeners, self._step_ms, stop, loop))

    def _watch(
        self,
        listeners: tuple[_Listener, ...],
        step_ms: int,
        stop: threading.Event,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Watch in this thread until `stop`, or until the system does not go on."""
        # Takes a while, and here nobody waits for it. The backend, since only it tells when the
        # watch stands.
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 -- as above

        folders = _folders_of(listeners)
        if not folders:
            return
        try:
            with RustNotify(folders, False, False, 0, False, True) as notify:  # noqa: FBT003 -- it knows no names
                self._told_failure = False
                for listener in listeners:  # what happened until now is nobody's event
                    _tell(loop, listener.on_hint)
                while True:
                    batch = notify.watch(step_ms, step_ms, 0, stop)
                    if isinstance(batch, str):  # told to stop
                        return
                    paths = {path for _change, path in batch}
                    touched = {
                        (path, "") if path in folders else os.path.split(path) for path in paths
                    }
                    _tell(loop, partial(self._pass_on, touched, listeners))
        except (OSError, RuntimeError) as failure:
            # No events (a limit of the system, a file system without them).
            _tell(loop, partial(self._no_events, failure))


def _folders_of(listeners: tuple[_Listener, ...]) -> list[str]:
    return sorted({each.folder for each in listeners if Path(each.folder).is_dir()})


def _open_notices(folders: Sequence[str]) -> FolderNotices | None:
    return FolderNotices(folders) if folders else None


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everybody who listens
        loop.call_soon_threadsafe(what)
