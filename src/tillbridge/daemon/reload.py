"""The configuration read anew while the bridge runs: on SIGHUP, and when the file has changed.

What can count at once does; for the rest the page names the keys that wait for a restart. A file
that is no configuration changes nothing, and the page says what is wrong with it.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace

from pydantic import BaseModel

from tillbridge.config import LoadedSettings, load
from tillbridge.config.live import Change, compare
from tillbridge.core.errors import ConfigError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemTracker

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
        self._waiting: tuple[str, ...] = ()  # keys, as they were logged
        self._tracker = tracker
        self._apply = apply
        tracker.report(_FILE, ())  # the last run's: this one has read the file

    async def read(self) -> None:
        """Read the file, and apply what can be applied."""
        try:
            fresh = await asyncio.to_thread(load, self._path)
            change = compare(self._counts.settings, fresh.settings)
            if change.live:
                self._apply(fresh, change)
        except ConfigError as failure:
            log.error("config.unusable", detail=failure.text)
            found = Found("config.unusable", detail={"detail": failure.text, "remedy": failure.fix})
            self._tracker.report(_UNUSABLE, [found])
            return
        if change.live:
            self._counts = _with(self._counts, fresh, change.live)
        waiting = compare(self._counts.settings, fresh.settings).restart
        if change.live or waiting != self._waiting:
            log.info("config.read_anew", counts=change.live, after_restart=waiting)
        self._waiting = waiting
        found = Found("config.restart_needed", detail={"keys": _shown(waiting)})
        self._tracker.report(_FILE, [found] if waiting else ())


def _with(counts: LoadedSettings, fresh: LoadedSettings, keys: Collection[str]) -> LoadedSettings:
    """Return the settings that count, with these keys as they are in the fresh ones."""
    updated: dict[str, BaseModel] = {}
    for key in keys:
        table, name = key.split(".")[:2]
        old = updated.get(table) or getattr(counts.settings, table)
        value = getattr(getattr(fresh.settings, table), name)
        updated[table] = old.model_copy(update={name: value})
    settings = counts.settings.model_copy(update=updated)
    return replace(counts, settings=settings, lines=fresh.lines)


def _shown(keys: Collection[str], most: int = 5) -> str:
    named = [*keys][:most]
    return ", ".join(named) + (", ..." if len(keys) > most else "")
