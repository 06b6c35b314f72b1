"""The adapter itself: which of its capabilities the options switch on, and what does the work.

An adapter is one object with the methods of what it can do. This one can do what its options name
files and folders for, so it takes each method from the part that has it.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Catalogue,
    CatalogueChanges,
    Health,
)
from tillbridge.adapter.folders import make_own_folder, refusal, trouble_of, try_writing
from tillbridge.adapter.texts import _
from tillbridge.pos.folder.items import PlainTable
from tillbridge.pos.folder.mapped_menu import MappedMenu
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.orders import OrderFiles
from tillbridge.pos.folder.plain_json import PlainJson
from tillbridge.pos.folder.side_tables import SideTables
from tillbridge.pos.folder.updates import UpdateFiles


class FolderAdapter:
    """A till that is a few files: see `docs/adapters/folder.md`."""

    def __init__(self, options: FolderOptions, context: AdapterContext) -> None:
        def files(*names: Path | None) -> Callable[[], Sequence[Path]]:
            found = tuple(context.base_dir / name for name in names if name is not None)
            return lambda: found

        orders_dir = context.base_dir / options.orders_dir
        updates_dir = context.base_dir / options.updates_dir
        for folder in (orders_dir, updates_dir):
            _make_own(folder, context.base_dir)
        self.catalogue_files = files(options.menu, options.addons)
        self.availability_files = files(options.availability)
        self.table_files = files(options.tables)
        self.update_folders = files(options.updates_dir)

        side_tables = SideTables(options, context)
        if options.menu is not None:
            self.read_changes = read = _menu_reader(
                context.base_dir / options.menu, options, context, side_tables
            )
            self.read_catalogue: Callable[[], Catalogue] = lambda: read(frozenset()).fresh
        if options.availability is not None:
            self.read_availability = side_tables.read_availability
        if options.tables is not None:
            self.read_tables = side_tables.read_tables
        orders = OrderFiles(orders_dir)
        self.write_ticket = orders.write_ticket
        self.find_ticket = orders.find_ticket
        self.cancel_ticket = orders.cancel_ticket
        updates = UpdateFiles(updates_dir)
        self.read_updates = updates.read_updates
        self.update_handled = updates.update_handled
        self.unreadable_updates = updates.unreadable_updates
        health = FolderHealth(
            tuple(dict.fromkeys(file.parent for file in self.catalogue_files())),
            next(iter(files(options.heartbeat)()), None),
            options.heartbeat_s,
            written=(orders_dir, updates_dir),
            own=(updates_dir / "done", updates_dir / "bad"),
            private=(orders.orders.journal,),
        )
        self.health = health.health
        orders.on_failure = health.look_again


def _make_own(folder: Path, base_dir: Path) -> None:
    """Make a folder that lies beside the configuration. Others are the till's to make.

    A folder elsewhere may be a share that is not mounted now: made here, on the bare mount point,
    it would take orders that no till ever reads.
    """
    if folder.resolve().is_relative_to(base_dir.resolve()):
        with contextlib.suppress(OSError):  # health reports that it is missing
            folder.mkdir(parents=True, exist_ok=True)


def _menu_reader(
    menu: Path, options: FolderOptions, context: AdapterContext, side_tables: SideTables
) -> Callable[[AbstractSet[int]], CatalogueChanges]:
    if options.is_plain_document:
        return PlainJson(menu, options).read_changes
    read_add_ons: Callable[[], Catalogue] = partial(Catalogue, ends_with_newline=True)
    if options.addons is not None:
        read_add_ons = side_tables.read_add_ons
    reader = PlainTable if options.is_plain_table else MappedMenu
    return reader(menu, options, context, read_add_ons).read_changes


ADAPTER = Adapter(
    name="folder",
    summary=_("A till that exports its menu to files and takes orders as files"),
    options=FolderOptions,
    open=FolderAdapter,
)


_TRY_EVERY_S = 60.0


@dataclass(slots=True)
class FolderHealth:
    """Looks at the heartbeat if there is one, and at the folders that must be there.

    `written` are the till's folders that the bridge writes into and moves files out of: their
    rights are looked at each time, and a file is written into them at the start and for as long as
    they fail. `own` are the bridge's own folders within them, where a file is written every minute:
    a till that watches its own folders does not see that. Those that are not made yet are left out.
    Nobody but the bridge's user may have made the `private` ones of them.
    """

    folders: Sequence[Path]
    heartbeat: Path | None
    heartbeat_s: float
    written: Sequence[Path] = ()
    own: Sequence[Path] = ()
    private: Sequence[Path] = ()
    _tried_at: float | None = field(default=None, init=False)
    _failing: bool = field(default=True, init=False)  # at the start nobody knows
    _beat: tuple[float, float] | None = field(default=None, init=False)  # its time, seen when

    def health(self) -> Health:
        """Return whether the till takes orders; a folder that is gone means a vanished share."""
        found = self._folders()
        self._failing = not found.online
        return found if self._failing or self.heartbeat is None else self._alive(self.heartbeat)

    def look_again(self) -> None:
        """Write into every folder at the next look: writing an order has just failed."""
        self._failing = True

    def _folders(self) -> Health:
        for folder in (*self.written, *self.folders):
            if not folder.is_dir():
                return _away(folder, FileNotFoundError())
        own = [folder for folder in (*self.private, *self.own) if folder.is_dir()]
        now = time.monotonic()
        due = self._failing or self._tried_at is None or now - self._tried_at >= _TRY_EVERY_S
        for folder in (*self.written, *own):
            wrong = refusal(folder)
            if wrong is None and due and (self._failing or folder in own):
                wrong = _try_private(folder) if folder in self.private else try_writing(folder)
            if wrong is not None:
                return _away(folder, wrong)
        if due:
            self._tried_at = now
        return Health(online=True)

    def _alive(self, heartbeat: Path) -> Health:
        try:
            touched_at = heartbeat.stat().st_mtime
        except OSError:
            return Health(
                online=False,
                detail=_("The till's sign of life, the file {file}, is not there.").format(
                    file=str(heartbeat)
                ),
                fix=_("Check that the till's program runs."),
            )
        now = time.monotonic()
        if self._beat is None or self._beat[0] != touched_at:
            # A clock that was set says nothing of a till whose touch has been seen. Without that
            # its age counts, where a time in the future is a clock that is off.
            touched = self._beat is not None and touched_at > self._beat[0]
            age_s = 0.0 if touched else max(0.0, time.time() - touched_at)
            self._beat = (touched_at, now - age_s)
        if now - self._beat[1] > self.heartbeat_s:
            since = datetime.fromtimestamp(touched_at).astimezone()
            return Health(
                online=False,
                detail=_(
                    "Its program has given no sign of life since {time} (the file {file})."
                ).format(time=f"{since:%Y-%m-%d %H:%M:%S}", file=str(heartbeat)),
                fix=_("Check that the till is on and its program runs."),
            )
        return Health(online=True)


def _try_private(folder: Path) -> OSError | None:
    try:
        make_own_folder(folder)  # it is there: this only looks whose it is
    except OSError as failure:
        return failure
    return try_writing(folder)


def _away(folder: Path, failure: OSError) -> Health:
    trouble = trouble_of(folder, failure)
    return Health(online=False, detail=trouble.text, fix=trouble.fix)
