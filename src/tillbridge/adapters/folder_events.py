"""Change events of the file system, as hints.

Nobody relies on them: a network share sends none, and a folder that is deleted and made again is
another folder to the system. They only make it fast; `tillbridge.adapters.watch` looks at the
files themselves.

One native watch serves all stores. It wakes up once a step to collect what the system noted, so
the step is as long as the shortest settle time allows, within which its delay is hidden.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tillbridge.adapters.worker import Worker
from tillbridge.log import get_logger

_MAX_STEP_MS = 100
_MIN_STEP_MS = 10
_STEPS_PER_SETTLE = 2  # a change is told one to two steps after it happened
_AGAIN_S = 60.0


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
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._renewed.clear()
                self._stop = stop = threading.Event()
                await worker.run(partial(self._watch, self._listeners, self._step_ms, stop, loop))
                # Watching ended by itself, or there is no folder yet: wait to be told to try again.
                try:
                    async with asyncio.timeout(_AGAIN_S):
                        await self._renewed.wait()
                except TimeoutError:
                    continue
        finally:
            self._stop.set()
            worker.close()

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

        folders = sorted({each.folder for each in listeners if Path(each.folder).is_dir()})
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
                    self._pass_on(batch, listeners, folders, loop)
        except (OSError, RuntimeError) as failure:
            # No events (a limit of the system, a file system without them): looking still works.
            if not self._told_failure:
                self._told_failure = True
                get_logger().warning("watch.no_events", detail=str(failure), folders=folders)

    def _pass_on(
        self,
        batch: set[tuple[int, str]],
        listeners: tuple[_Listener, ...],
        folders: Sequence[str],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        if any(path in folders for _change, path in batch):  # a folder itself came or went
            _tell(loop, self.renew)
        touched = {os.path.split(path) for _change, path in batch}
        for listener in listeners:
            if any(listener.hears(*at) for at in touched):
                _tell(loop, listener.on_hint)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everybody who listens
        loop.call_soon_threadsafe(what)
