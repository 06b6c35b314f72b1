"""The configuration read anew while the bridge runs: on SIGHUP, and when the file has changed.

What can count at once does; for the rest the page names the keys that wait for a restart. A file
that is no configuration changes nothing, and the page says what is wrong with it. What needs a
restart has another run of the bridge follow this one, and is taken back if that fails.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tillbridge.config.loading import LoadedSettings, load
from tillbridge.config.writing import Change, compare
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.pos.loader import checked_options, find_adapter

if TYPE_CHECKING:
    from tillbridge.web.authenticator import Authenticator


log = get_logger()

_UNUSABLE = Scope("", frozenset({"config.unusable"}))
_FILE = Scope("", frozenset({"config.unusable", "config.restart_needed"}))


class Reloader:
    """Calls `apply` with each configuration in the file of `loaded` that can be used.

    `apply` is given what differs from the one that counts; it raises ConfigError where what the
    file points at (a password's hash) cannot be had.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        tracker: ProblemTracker,
        apply: Callable[[LoadedSettings, Change], None],
    ) -> None:
        self._path = loaded.path
        self._counts = loaded
        self._seen = loaded.text  # of the last reading; "" where that could not be used
        self._waiting: tuple[str, ...] = ()  # keys, as they were logged
        self._tracker = tracker
        self._apply = apply
        tracker.report(_FILE, ())  # the last run's: this one has read the file

    def _is_known(self) -> bool:
        """Return whether the file is as it was read, as each is when the bridge starts."""
        try:
            return self._path.read_bytes().decode("utf-8-sig") == self._seen
        except (OSError, UnicodeDecodeError):
            return False  # reading it will say why

    async def read(self) -> None:
        """Read the file, and apply what can be applied; a text that is known says nothing new."""
        try:
            if await asyncio.to_thread(self._is_known):
                return
            self._seen = ""
            fresh = await asyncio.to_thread(load, self._path)
            change = compare(self._counts.settings, fresh.settings)
            if change.restart:  # nobody is to restart into what then cannot start
                await asyncio.to_thread(_check_adapters, fresh)
            if change.live:
                self._apply(fresh, change)
        except ConfigError as failure:
            log.error("config.unusable", detail=failure.text)
            found = Found("config.unusable", detail={"detail": failure.text, "remedy": failure.fix})
            self._tracker.report(_UNUSABLE, [found])
            return
        self._seen = fresh.text
        if change.live:
            self._counts = _with(self._counts, fresh, change.live)
        waiting = compare(self._counts.settings, fresh.settings).restart
        if change.live or waiting != self._waiting:
            log.info("config.read_anew", counts=change.live, after_restart=waiting)
        self._waiting = waiting
        found = Found("config.restart_needed", detail={"keys": _shown(waiting)})
        self._tracker.report(_FILE, [found] if waiting else ())


def _check_adapters(fresh: LoadedSettings) -> None:
    """Raise ConfigError for options that an adapter does not take."""
    for store, settings in fresh.settings.stores.items():
        for table, name, options in settings.adapters:
            checked_options(find_adapter(name), options, f"stores.{store}.{table}")


def _with(counts: LoadedSettings, fresh: LoadedSettings, keys: Collection[str]) -> LoadedSettings:
    """Return the settings that count, with these keys as they are in the fresh ones."""
    updated: dict[str, BaseModel] = {}
    for key in keys:
        table, name = key.split(".")[:2]
        old = updated.get(table) or getattr(counts.settings, table)
        value = getattr(getattr(fresh.settings, table), name)
        updated[table] = old.model_copy(update={name: value})
    settings = counts.settings.model_copy(update=updated)
    return replace(counts, settings=settings, text=fresh.text)


def _shown(keys: Collection[str], most: int = 5) -> str:
    named = [*keys][:most]
    return ", ".join(named) + (", ..." if len(keys) > most else "")


# -- another run

# Takes back what made the next run impossible; it is given why.
Undo = Callable[[BridgeError], None]

_GRACE_S = 0.5
_ALIVE_S = 5.0


class RestartController:
    """Ends the current run, and knows whether another one follows. Used in the event loop."""

    def __init__(self) -> None:
        self.end = asyncio.Event()
        self.again = False
        self.is_ready = False  # the current run serves
        self._stopped = False
        self._undo: Undo | None = None
        self._between: Callable[[], None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        # Why the run that was asked for could not be, for the page.
        self.refused: BridgeError | None = None
        # Who has signed in on the page, for the next run.
        self.authenticator: Authenticator | None = None
        # The store that the next run is to connect.
        self.to_connect = ""

    def stop(self) -> None:
        """End for good."""
        self._stopped = True
        self.again = False
        self.end.set()

    def restart(
        self, undo: Undo, *, connect: str = "", between: Callable[[], None] | None = None
    ) -> None:
        """End, and begin anew with what the file says now; `undo` is for a run that cannot be.

        `connect` is the store that is connected then. `between` is called in a thread while
        nothing uses the ledger; where it raises BridgeError, that is undone too.
        """
        if self._stopped or self.again:
            return
        self.again = True
        self.refused = None
        self.to_connect = connect
        self._undo = undo
        self._between = between
        # The answer to whoever asked for it, and what their browser fetches next, come first.
        self._ending = asyncio.get_running_loop().call_later(_GRACE_S, self.end.set)

    async def between_runs(self, alive: Callable[[], None]) -> None:
        """Do what was asked for between two runs; call `alive` meanwhile. Raises BridgeError."""
        work, self._between = self._between, None
        if work is None:
            return
        doing = asyncio.create_task(asyncio.to_thread(work))
        while not doing.done():
            await asyncio.wait({doing}, timeout=_ALIVE_S)
            alive()
        doing.result()

    def begin(self) -> None:
        """Note that another run begins."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self.is_ready = False
        if not self._stopped:
            self.end.clear()
            self.again = False

    def ready(self) -> None:
        """Note that this run is possible: what led to it stays."""
        self.is_ready = True
        self._undo = None

    def undo(self, failure: BridgeError) -> bool:
        """Undo what made a run impossible; False where there is nothing to undo."""
        undo, self._undo = self._undo, None
        if undo is None:
            return False
        log.error("bridge.configuration_reverted", error=failure.text)
        self.refused = failure
        self.to_connect = ""
        undo(failure)
        return True
