"""One store's menu flow: what wakes it, and what others may ask of it.

The daemon runs `run()` as a supervised task and calls the triggers; they return at once, and many
of them make one round. Availability, the menu and the floor plan each have a lane of their own.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from tillbridge.adapter import AvailabilityReading
from tillbridge.core.context import StoreContext
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import groups_of, items_by_id, variant_owners
from tillbridge.ledger.models import Hold, StoreOverride
from tillbridge.ledger.pushes import (
    approve_hold,
    dismiss_hold,
    drop_overrides,
    get_overrides,
    ids_off,
    mark_sent,
    options_off,
    put_override,
)
from tillbridge.menu.compare import (
    Comparison,
    Overlay,
    availability_of,
    compare,
    compare_availability,
)
from tillbridge.menu.guard import FEW
from tillbridge.menu.lane import (
    MenuContext,
    ProgressView,
    SyncLane,
    SyncRequest,
    due_of,
    read_now,
)
from tillbridge.menu.plan import Assessment, guard_and_plan, portions, snooze_ended
from tillbridge.menu.push import acknowledge_availability, recall_again, send_availability
from tillbridge.menu.review import NOTHING, Differing, ReviewView, review_view
from tillbridge.menu.sync import WHOLE, MenuSync, differing_of
from tillbridge.menu.tables import ANYWAY, TableSync
from tillbridge.menu.views import PlanView, plan_view
from tillbridge.model.catalogue import Availability, Item
from tillbridge.model.instant import ONE_DAY, day_of, day_starts
from tillbridge.pos.runner import bad_rows_detail

# -- The availability lane: what is sold out goes out at once, whatever the menu lane is at.
#
# It reads what the POS says of availability, lays staff overrides over it, and sends the service
# what differs from what it has. Snoozes that end bring the item back by themselves.


MOSTLY_SOLD_OUT = "menu.mostly_sold_out"


class AvailabilitySync(SyncLane[None]):
    """The availability lane of one store."""

    def __init__(self, ctx: MenuContext, menu_sync: MenuSync) -> None:
        super().__init__(ctx, "availability")
        self._menu_sync = menu_sync
        self._unread = ctx.pos.reads_availability
        # What the menu lane was asked to push: variants, and groups of add-ons.
        self._asked: tuple[Mapping[str, object], Mapping[str, object]] = ({}, {})

    def export_changed(self) -> None:
        """Ask for a round that reads what the POS says."""
        self._unread = self.ctx.pos.reads_availability
        self.changed()

    def follow(self, assessment: Assessment | None) -> None:
        """Ask for a round after one of the menu, unless every item compared there stays on sale."""
        found = None if assessment is None else assessment.comparison
        if (
            found is None
            or found.whole
            or found.changes.added
            or found.changes.removed
            or found.next_change is not None
            or self.ctx.calls.unconfirmed
            or self.ctx.calls.again
            or self.ctx.calls.availability_calls
            or self.ctx.by_pos is None
            or not all(
                item.available
                and item.snooze_until is None
                and all(each.available for each in item.variants)
                for item in (*found.acknowledged.items.values(), *found.current.items.values())
            )
        ):
            self.request()

    async def round(self, request: SyncRequest) -> None:
        """Send the service what is sold out, and what is back."""
        await self.read()
        self._send_again()
        async with self.ctx.calls.turn:
            await self._send_changes(request.since)

    async def read(self) -> None:
        """Read what the POS says, if that has changed."""
        if not self._unread:
            return
        reading = await self.read_export(self.ctx.pos.read_availability)
        if reading is None:
            return
        self._unread = False
        self.ctx.report("export.bad_rows", bad_rows_detail(reading.bad_rows), self.subject)
        before = self.ctx.by_pos
        try:
            self.ctx.by_pos = await self._with_bad_rows(reading)
        except Exception:
            self._unread = True
            raise
        # A till that is asked every few seconds mostly answers the same.
        write = log.debug if self.ctx.by_pos == before else log.info
        write("availability.read", store=self.ctx.store, items=len(reading.items))

    def _send_again(self) -> None:
        """Have sent once more what a late call may have undone."""
        calls = self.ctx.calls
        if due := due_of(calls.again):
            log.info("menu.sent_again", store=self.ctx.store, items=len(due))
            calls.unconfirmed |= due
            calls.again = {key: each for key, each in calls.again.items() if key not in due}
            if not due.isdisjoint(calls.whole_again):
                self._menu_sync.request()
        if calls.again:
            now = asyncio.get_running_loop().time()
            self.worker.wake_in(min(calls.again.values()) - now)

    async def _with_bad_rows(self, reading: AvailabilityReading) -> Mapping[str, Availability]:
        """Return what was read; what only a bad row names stays as it was."""
        nameless = any(not row.external_id for row in reading.bad_rows)
        bad = {row.external_id for row in reading.bad_rows if row.external_id}
        if not bad and not nameless:
            return reading.items
        before = self.ctx.by_pos
        if before is None:
            before = await self.ctx.read(_off_at_service)
        unchanged = {
            key: each
            for key, each in before.items()
            if key in bad or (nameless and not each.available)
        }
        return {**unchanged, **reading.items}

    async def _send_changes(self, since: float | None) -> None:
        ctx = self.ctx
        overlay = Overlay(ctx.clock.now_ms(), ctx.by_pos)
        unconfirmed = frozenset(ctx.calls.unconfirmed)
        most = ctx.rules.menu.max_sold_out_percent
        found = await ctx.read(_look, overlay, unconfirmed=unconfirmed, max_percent=most)
        if found.store_id is None:
            return
        changed = found.comparison.changes.changed
        ctx.calls.unconfirmed -= unconfirmed - changed.keys()  # removed meanwhile
        self.worker.wake_at(found.comparison.next_change)
        if found.ended_overrides:
            await ctx.write(drop_overrides, found.ended_overrides)
        # No availability call can name a variant or an add-on: the menu lane pushes them; it is
        # asked once.
        variants = {
            k: each.after.variants for k, each in changed.items() if "variants" in each.fields
        }
        asked = variants, found.comparison.changes.addon_groups.put
        if any(asked) and asked != self._asked:
            self._menu_sync.request()
        self._asked = asked
        toggled = {
            key: each
            for key, each in changed.items()
            if availability_of(each.before) != availability_of(each.after) or key in unconfirmed
        }
        if ctx.rules.assumptions.service_restores_snoozed:
            ended = {k: e.after for k, e in toggled.items() if snooze_ended(e, overlay.now_ms)}
            if ended:  # the service has brought them back by itself
                await ctx.write(acknowledge_availability, ended, at=overlay.now_ms)
            toggled = {key: each for key, each in toggled.items() if key not in ended}
        if toggled:
            await self._send(found.store_id, [each.after for each in toggled.values()], since)
        # A person is asked whether most of the menu is sold out, but the answer is not waited for:
        # a kitchen that closes early looks just like an export that has lost a column.
        ctx.report(MOSTLY_SOLD_OUT, found.mostly_off)
        ctx.report(self.push_failed, None, self.subject)

    async def _send(self, store_id: str, items: Sequence[Item], since: float | None) -> None:
        ctx, started = self.ctx, time.perf_counter()
        for portion in portions(items, ctx.rules.assumptions.batch_max_items):
            sent = await send_availability(ctx, store_id, portion)
            ctx.calls.unconfirmed -= {each.external_id for each in portion}
            ctx.calls.unconfirmed |= sent.named
            if sent.missing:
                await self._menu_sync.drifted(sent.missing)
        now = ctx.clock.monotonic()
        log.info(
            "availability.pushed",
            store=ctx.store,
            items=len(items),
            ms=round((time.perf_counter() - started) * 1000),
            since_change_ms=None if since is None else round((now - since) * 1000),
        )


def is_most(off: int, known: int, max_percent: float) -> bool:
    """Whether so much is sold out that a person is asked. Pure."""
    return off > FEW and off * 100 > max_percent * known


@dataclass(frozen=True, slots=True)
class _Found:
    """What the ledger has; `mostly_off`: so much is off sale by the till, overrides apart."""

    store_id: str | None
    comparison: Comparison
    ended_overrides: Sequence[str]
    mostly_off: Mapping[str, int] | None


def _look(
    connection: Connection,
    store: str,
    overlay: Overlay,
    *,
    unconfirmed: AbstractSet[str],
    max_percent: float,
) -> _Found:
    store_id = get_fact(connection, store, "service_store_id")
    known = menu.item_count(connection, store)
    off_by_pos = {key for key, each in (overlay.by_pos or {}).items() if not each.available}
    off = menu.count_off_by_pos(connection, store) + len(off_by_pos)
    if off_by_pos and is_most(off, known, max_percent):  # then count each item once
        ids = {*menu.items_off_by_pos(connection, store), *off_by_pos}
        off = len(menu.accepted_ids(connection, store, ids))
    ended = [
        key
        for key, each in get_overrides(connection, store, StoreOverride).items()
        if each.until is not None and each.until <= overlay.now_ms
    ]
    return _Found(
        store_id if isinstance(store_id, str) else None,
        compare_availability(connection, store, overlay, unconfirmed=unconfirmed),
        ended,
        {"count": off, "known": known} if is_most(off, known, max_percent) else None,
    )


def _off_at_service(connection: Connection, store: str) -> dict[str, Availability]:
    return {
        key: Availability(available=False, until=each.item.snooze_until)
        for key, each in menu.overlaid_items(connection, store).items()
        if not each.item.available
    }


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
        self._menu.on_end = self._availability.follow
        self.tables = TableSync(self._ctx)
        # What has changed: the menu's export, what the POS says of availability, the floor plan.
        self.export_changed = self._menu.changed
        self.availability_changed = self._availability.export_changed
        self.tables_changed = self.tables.changed
        self.resync = self._menu.resync

    # -- what wakes it

    def service_back(self) -> None:
        """The service, the consent or the integration is back: what waited goes out."""
        self._menu.retry()
        self._availability.changed()
        self.tables.retry()

    def daily(self) -> None:
        """Compare everything, and push the floor plan: what others have changed is mended."""
        self._menu.request(WHOLE)
        self.tables.request(ANYWAY)

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
            found = differing_of(await self._assess(), self._ctx.clock.now_ms())
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
        """86 items, variants or add-ons over what the POS says, until `until` (ms) or a restore."""
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
        today = day_of(self._ctx.clock.now_ms(), self._timezone)
        until = day_starts(today + ONE_DAY, self._timezone)
        await self.take_off_sale(*external_ids, until=until, by="order")

    @property
    def progress(self) -> ProgressView:
        """How far the menu's way to the storefront is."""
        return self._ctx.progress

    # -- running

    async def run(self) -> None:
        """Run until cancelled. Reads everything at the start."""
        # First, so that nothing sold out goes on sale with the first push.
        for work in (partial(recall_again, self._ctx), self._availability.read):
            await self._ctx.supervisor.attempt(self._availability.subject, work)
        self._menu.request()
        self.tables.request()
        async with asyncio.TaskGroup() as group:
            for lane in (self._menu, self._availability, self.tables):
                group.create_task(lane.worker.run(), name=f"{lane.subject}-{self._store}")


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
    off = ids_off([each.item for each in known.values()])
    off |= options_off(groups_of(connection, store, external_ids))
    mark_sent(connection, store, off, at=at)
