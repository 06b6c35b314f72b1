"""The availability lane: what is sold out goes out at once, whatever the menu lane is at.

It reads what the POS says of availability, lays staff overrides over it, and sends the service
what differs from what it has. Snoozes that end bring the item back by themselves.
"""

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlalchemy import Connection

from tillbridge.adapter import AvailabilityReading
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.overrides import drop_overrides, get_overrides
from tillbridge.menu.compare import Comparison, Overlay, availability_of, compare_availability
from tillbridge.menu.guard import FEW
from tillbridge.menu.lane import MenuContext, SyncLane, SyncRequest
from tillbridge.menu.plan import portions, snooze_ended
from tillbridge.menu.push import acknowledge_availability, send_availability
from tillbridge.menu.sync import MenuSync
from tillbridge.model.catalogue import Availability, Item, Variant
from tillbridge.pos.runner import bad_rows_detail

log = get_logger()

MOSTLY_SOLD_OUT = "menu.mostly_sold_out"


class AvailabilitySync(SyncLane[None]):
    """The availability lane of one store."""

    def __init__(self, ctx: MenuContext, menu_sync: MenuSync) -> None:
        super().__init__(ctx, "availability")
        self._menu_sync = menu_sync
        self._unread = ctx.pos.reads_availability
        self._variants: dict[str, tuple[Variant, ...]] = {}  # that the menu lane was asked to push

    def export_changed(self) -> None:
        """Ask for a round that reads what the POS says."""
        self._unread = self.ctx.pos.reads_availability
        self.changed()

    def changed(self) -> None:
        """Ask for a round: an override was made or lifted."""
        self.request(SyncRequest(since=self.ctx.clock.monotonic()))

    async def round(self, request: SyncRequest) -> None:
        """Send the service what is sold out, and what is back."""
        await self.read()
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
        self.worker.wake_at(found.comparison.next_change)
        if found.ended_overrides:
            await ctx.write(drop_overrides, found.ended_overrides)
        # No availability call can name a variant: the menu lane pushes them; it is asked once.
        variants = {
            k: each.after.variants for k, each in changed.items() if "variants" in each.fields
        }
        if variants and variants != self._variants:
            self._menu_sync.request()
        self._variants = variants
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
        self.succeeded()

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
