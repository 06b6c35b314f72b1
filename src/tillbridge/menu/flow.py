"""One store's menu flow: what wakes it, and what others may ask of it.

The daemon runs `run()` as a supervised task and calls the triggers; they return at once, and many
of them make one round. Availability, the menu and the floor plan each have a lane of their own.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.core.log import get_logger
from tillbridge.ledger.menu import items_by_id, variant_owners
from tillbridge.ledger.models import Hold, StoreOverride
from tillbridge.ledger.overrides import drop_overrides, mark_sent, put_override
from tillbridge.ledger.pushes import approve_hold, dismiss_hold
from tillbridge.menu.availability import AvailabilitySync
from tillbridge.menu.compare import Overlay, compare
from tillbridge.menu.lane import MenuContext, PushProgress, SyncRequest, read_now
from tillbridge.menu.plan import Assessment, guard_and_plan
from tillbridge.menu.review import NOTHING, Differing, ReviewView, review_view
from tillbridge.menu.sync import WHOLE, MenuSync
from tillbridge.menu.tables import ANYWAY, TableSync
from tillbridge.menu.views import PlanView, plan_view

log = get_logger()


class MenuFlow:
    """The flow of one store. Used from the event loop."""

    def __init__(self, store: StoreContext) -> None:
        settings = store.settings
        self._ctx = MenuContext(store)
        self._store = store.store
        self._timezone = ZoneInfo(settings.timezone) if settings.timezone else None
        self._menu = MenuSync(self._ctx)
        self._availability = AvailabilitySync(self._ctx, self._menu)
        self._menu.on_end = self._availability.request
        self.tables = TableSync(self._ctx)

    # -- what wakes it

    def export_changed(self) -> None:
        """The menu's export has changed."""
        self._menu.request(SyncRequest(since=self._ctx.clock.monotonic()))

    def availability_changed(self) -> None:
        """The availability file has changed."""
        self._availability.export_changed()

    def tables_changed(self) -> None:
        """The floor plan's export has changed."""
        self.tables.request()

    def service_back(self) -> None:
        """The service, the consent or the integration is back: what waited goes out."""
        self._menu.retry()
        self._availability.changed()
        self.tables.retry()

    def full_compare(self) -> None:
        """Read the whole export and compare it with everything the service has (daily)."""
        self._menu.request(WHOLE)

    def daily(self) -> None:
        """Compare everything, and push the floor plan: what others have changed is mended."""
        self.full_compare()
        self.tables.request(ANYWAY)

    def resync(self) -> None:
        """The storefront shows other prices than the POS has: read everything, and push it all.

        The ledger cannot show what differs: as far as it knows, the service has the POS's prices.
        """
        self._menu.distrust()

    # -- what others ask

    async def push_again(self, *, full: bool = False) -> PlanView | None:
        """Make a round now, and return what it came to (None: the export cannot be read).

        What the service refused before is tried again; `full` pushes it all. A plan that must wait
        still waits. Raises ServiceError, JobLost, LedgerError.
        """
        await self._availability.read()
        assessment = await self._menu.now(SyncRequest(full=full, retry_refused=True))
        if assessment is None:
            return None
        return await asyncio.to_thread(plan_view, assessment, self._ctx.rules.currency)

    async def differing(self) -> Differing | None:
        """Return what the till had, at its last reading, that the storefront has not got."""
        known = self._menu.differing
        if known is None:
            return None
        changes = known.changes
        ids = {*changes.added, *changes.changed, *changes.removed}
        accepted = await self._ctx.read(items_by_id, ids)
        items = {key: each.item for key, each in accepted.items()}
        return await asyncio.to_thread(known.still_open, items)

    async def review(self, page: int, *, read: bool = True) -> ReviewView:
        """Return what differs, for a person.

        `read`: if nothing is known to differ, the till is read again. Raises BridgeError.
        """
        found = await self.differing()
        if found is None and read:
            assessment = await self._assess()
            found = Differing.of(
                assessment.comparison,
                assessment.reasons,
                assessment.suspects,
                self._ctx.clock.now_ms(),
            )
        return await asyncio.to_thread(
            review_view, found or NOTHING, page, self._ctx.rules.currency
        )

    async def plan_only(self) -> PlanView:
        """Return what a round would push; pushes nothing. Raises BridgeError."""
        assessment = await self._assess()
        return await asyncio.to_thread(plan_view, assessment, self._ctx.rules.currency)

    async def _assess(self) -> Assessment:
        await self._availability.read()
        full = await self._menu.is_whole_due()
        export = await read_now(self._ctx.pos.read_catalogue)
        overlay = Overlay(self._ctx.clock.now_ms(), self._ctx.by_pos)
        comparison = await self._ctx.read(compare, export, overlay)
        return await asyncio.to_thread(
            guard_and_plan, comparison, self._ctx.rules, overlay.now_ms, full=full
        )

    async def approve(self) -> Hold | None:
        """Release the plan that waits (None: none does); it is pushed if it is still the same."""
        hold = await self._ctx.write(approve_hold)
        if hold is not None:
            log.info("menu.approved", store=self._store, digest=hold.digest)
            self._menu.retry()
        return hold

    async def dismiss(self, *, by: str) -> Hold | None:
        """Leave the menu as it is: this very plan is not offered again (None: none waits)."""
        hold = await self._ctx.write(dismiss_hold, by=by, at=self._ctx.clock.now_ms())
        if hold is not None:
            log.info("menu.dismissed", store=self._store, digest=hold.digest)
            self._ctx.report("menu.held")
        return hold

    async def take_off_sale(self, *external_ids: str, until: int | None, by: str) -> None:
        """86 items or variants over what the POS says, until `until` (ms) or until restored."""
        at = self._ctx.clock.now_ms()
        await self._ctx.write(_put_overrides, external_ids, until=until, by=by, at=at)
        log.info("item.off_sale", store=self._store, items=len(external_ids), by=by)
        self._availability.changed()

    async def restore(self, external_id: str) -> bool:
        """Lift the override of an item; False if there was none."""
        lifted = await self._ctx.write(drop_overrides, [external_id])
        self._availability.changed()
        return lifted > 0

    async def out_of_stock(self, external_ids: Sequence[str]) -> None:
        """86 what the POS could not sell, until the store's day ends.

        The POS's next export says what holds from then on; a person may restore it before.
        """
        until = end_of_day(self._ctx.clock.now_ms(), self._timezone)
        await self.take_off_sale(*external_ids, until=until, by="order")

    @property
    def progress(self) -> PushProgress | None:
        """How far the menu's way to the storefront is; None while nothing is on its way."""
        return self._ctx.progress

    # -- running

    async def run(self) -> None:
        """Run until cancelled. Reads everything at the start."""
        # First, so that nothing sold out goes on sale with the first push.
        await self._ctx.supervisor.attempt(self._availability.subject, self._availability.read)
        self._menu.request()
        self.tables.request()
        async with asyncio.TaskGroup() as group:
            for lane in (self._menu, self._availability, self.tables):
                group.create_task(lane.worker.run(), name=f"{lane.subject}-{self._store}")


def end_of_day(now_ms: int, timezone: tzinfo | None) -> int:
    """Return the next midnight of that time zone (None: this machine's), in ms since the epoch."""
    now = datetime.fromtimestamp(now_ms / 1000, tz=timezone or datetime.now().astimezone().tzinfo)
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=now.tzinfo)
    return round(midnight.timestamp() * 1000)


def _put_overrides(
    connection: Connection,
    store: str,
    external_ids: Sequence[str],
    *,
    until: int | None,
    by: str,
    at: int,
) -> None:
    for external_id in external_ids:
        override = StoreOverride(store=store, external_id=external_id, until=until, by=by, at=at)
        put_override(connection, override)
    owners = variant_owners(connection, store, external_ids)
    known = items_by_id(connection, store, {*external_ids, *owners.values()})
    # What was off sale already has nothing to reach the storefront any more.
    mark_sent(connection, store, [each.item for each in known.values()], at=at)
