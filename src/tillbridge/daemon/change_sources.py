"""How a store's flows hear of something new in the POS: by files, by its own word, by asking.

A POS that tells of changes by itself is asked once a minute, in case one was not heard.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tillbridge.adapter import Change
from tillbridge.config import StoreSettings
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.supervision import Supervisor
from tillbridge.menu.flow import MenuFlow
from tillbridge.orders.flow import OrdersFlow
from tillbridge.pos.folder_events import FolderEvents
from tillbridge.pos.store_pos import StorePos
from tillbridge.pos.watch import FileWatch

_ASKED_ALL_THE_SAME_S = 60.0


class ChangeSources:
    """Watches what an adapter names; what it names no file for is read every `poll_s` seconds."""

    def __init__(
        self, store: str, settings: StoreSettings, tills: StorePos, events: FolderEvents
    ) -> None:
        self._settings = settings
        self._tills = tills
        self._watch = FileWatch(
            events,
            store=store,
            poll_s=settings.pos.poll_s,
            hangs_after_s=settings.pos.hangs_after_s,
            on_hang=tills.menu.hangs,
        )
        self._polled: list[Callable[[], None]] = []
        self._poll_s = (
            max(settings.pos.poll_s, _ASKED_ALL_THE_SAME_S)
            if tills.menu.notifies_changes
            else settings.pos.poll_s
        )

    def subscribe(self, catalogue: MenuFlow, orders: OrdersFlow) -> None:
        """Let the flows be told; before `run` begins."""
        menu, settle_ms = self._tills.menu, self._settings.menu.settle_ms
        heard: dict[Change, Callable[[], None]] = {}
        for change, there, files, on_change in (
            (
                Change.CATALOGUE,
                menu.reads_catalogue,
                menu.catalogue_files(),
                catalogue.export_changed,
            ),
            (
                Change.AVAILABILITY,
                menu.reads_availability,
                menu.availability_files(),
                catalogue.availability_changed,
            ),
            (Change.TABLES, menu.reads_tables, menu.table_files(), catalogue.tables_changed),
        ):
            if there:
                heard[change] = on_change
            if files:
                self._watch.subscribe(files, settle_ms, on_change)
            elif there:
                self._polled.append(on_change)
        of_orders = {Change.UPDATES: orders.updates_changed, Change.HEALTH: orders.pos_changed}
        if self._tills.orders is menu:  # one adapter, which is asked to tell once
            heard |= of_orders
        else:
            self._tills.orders.on_change(lambda change: of_orders.get(change, _nothing)())
        menu.on_change(lambda change: heard.get(change, _nothing)())
        for folder in self._tills.orders.update_folders():
            self._watch.subscribe_folder(folder, orders.updates_changed)

    def watch(self, files: Sequence[Path], on_change: Callable[[], None]) -> None:
        """Watch further files; before `run` begins."""
        if files:
            self._watch.subscribe(files, self._settings.menu.settle_ms, on_change)

    @property
    def run(self) -> Callable[[], Awaitable[None]]:
        """What watches the files until cancelled."""
        return self._watch.run

    def plan(self, scheduler: Scheduler, supervisor: Supervisor) -> None:
        """Plan to read what tells of its changes by nothing else."""
        if self._polled:
            scheduler.every(
                "poll", self._poll_s, self._poll, first_s=self._poll_s, supervisor=supervisor
            )

    async def _poll(self) -> None:
        for on_change in self._polled:
            on_change()


def _nothing() -> None:
    """Hear of a change that nobody reads."""
