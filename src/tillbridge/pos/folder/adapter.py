"""The adapter itself: which of its capabilities the options switch on, and what does the work.

An adapter is one object with the methods of what it can do. This one can do what its options name
files and folders for, so it takes each method from the part that has it.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Order,
    PosOffline,
    Ticket,
    TicketOutcomeUnknown,
)
from tillbridge.pos.folder.health import FolderHealth
from tillbridge.pos.folder.options import FolderOptions
from tillbridge.pos.folder.orders import OrderFiles
from tillbridge.pos.folder.updates import UpdateFiles


class FolderAdapter:
    """A till that is a few files: see `docs/adapters/folder.md`."""

    def __init__(self, options: FolderOptions, context: AdapterContext) -> None:
        def path(option: Path | None) -> Path | None:
            return None if option is None else context.base_dir / option

        menu, availability, tables = map(path, (options.menu, options.availability, options.tables))
        orders_dir = context.base_dir / options.orders_dir
        updates_dir = context.base_dir / options.updates_dir
        for folder in (orders_dir, updates_dir):
            _make_own(folder, context.base_dir)
        self._menu_files = _given(menu, path(options.addons))
        self._availability_files = _given(availability)
        self._table_files = _given(tables)
        self._update_folders = (updates_dir,)

        # A store has few of these, and what reads the others is not imported.
        if menu is not None and options.is_plain_table:
            from tillbridge.pos.folder.menu_csv import MenuCsv  # noqa: PLC0415 -- (as above)

            table = MenuCsv.of(menu, options, context)
            self.read_catalogue, self.read_changes = table.read_catalogue, table.read_changes
        elif menu is not None and not options.is_plain_document:
            from tillbridge.pos.folder.menu_mapped import (  # noqa: PLC0415 -- (as above)
                MenuMapped,
            )

            mapped = MenuMapped.of(menu, options, context)
            self.read_catalogue, self.read_changes = mapped.read_catalogue, mapped.read_changes
        elif menu is not None:
            from tillbridge.pos.folder.menu_json import MenuJson  # noqa: PLC0415 -- (as above)

            document = MenuJson.of(menu, options, context)
            self.read_catalogue, self.read_changes = document.read_catalogue, document.read_changes
        if availability is not None:
            from tillbridge.pos.folder.availability import (  # noqa: PLC0415 -- (as above)
                AvailabilityFile,
            )

            self.read_availability = AvailabilityFile.of(availability, options).read_availability
        if tables is not None:
            from tillbridge.pos.folder.tables import TablesFile  # noqa: PLC0415 -- (as above)

            self.read_tables = TablesFile.of(tables, options).read_tables
        orders = OrderFiles.of(orders_dir)
        self._orders = orders
        self.find_ticket = orders.find_ticket
        self.cancel_ticket = orders.cancel_ticket
        updates = UpdateFiles(updates_dir)
        self.read_updates = updates.read_updates
        self.update_handled = updates.update_handled
        self.unreadable_updates = updates.unreadable_updates
        written = (orders_dir, updates_dir)
        folders = dict.fromkeys(file.parent for file in self._menu_files)
        self._health = FolderHealth(
            tuple(folders),
            path(options.heartbeat),
            options.heartbeat_s,
            written=written,
            own=(updates_dir / "done", updates_dir / "bad"),
            private=(orders.orders.journal,),
        )
        self.health = self._health.health

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order as a file. Raises PosOffline, TicketOutcomeUnknown."""
        try:
            return self._orders.write_ticket(order, key)
        except (PosOffline, TicketOutcomeUnknown):
            self._health.look_again()
            raise

    def catalogue_files(self) -> Sequence[Path]:
        """Return the menu, and the add-ons beside it."""
        return self._menu_files

    def availability_files(self) -> Sequence[Path]:
        """Return the availability file, if there is one."""
        return self._availability_files

    def table_files(self) -> Sequence[Path]:
        """Return the file of the tables, if there is one."""
        return self._table_files

    def update_folders(self) -> Sequence[Path]:
        """Return the folder of news, if there is one."""
        return self._update_folders


def _make_own(folder: Path, base_dir: Path) -> None:
    """Make a folder that lies beside the configuration. Others are the till's to make.

    A folder elsewhere may be a share that is not mounted now: made here, on the bare mount point,
    it would take orders that no till ever reads.
    """
    if folder.resolve().is_relative_to(base_dir.resolve()):
        with contextlib.suppress(OSError):  # health tells that it is not there
            folder.mkdir(parents=True, exist_ok=True)


def _given(*paths: Path | None) -> tuple[Path, ...]:
    return tuple(path for path in paths if path is not None)


def _open(options: FolderOptions, context: AdapterContext) -> FolderAdapter:
    return FolderAdapter(options, context)


ADAPTER = Adapter(
    name="folder",
    summary="A till that exports its menu to files and takes orders as files",
    options=FolderOptions,
    open=_open,
)
