"""One store's catalogue flow: what wakes it, and what others may ask of it.

The daemon runs `run()` as a supervised task and calls the triggers; they return at once, and many
of them make one round. Availability, the menu and the floor plan each have a lane of their own.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, time, timedelta, tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from tillbridge.config import AssumptionSettings, StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.log import get_logger
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu import items_by_id, variant_owners
from tillbridge.ledger.models import Hold, StoreOverride
from tillbridge.ledger.overrides import drop_overrides, mark_sent, put_override
from tillbridge.ledger.pushes import approve_hold, dismiss_hold
from tillbridge.menu.assess import Assessment, Assessor, Rules
from tillbridge.menu.availability_round import SUBJECT as AVAILABILITY
from tillbridge.menu.availability_round import AvailabilityRounds
from tillbridge.menu.exports import read_now
from tillbridge.menu.guard import Limits
from tillbridge.menu.jobs import Jobs
from tillbridge.menu.lane import Lane
from tillbridge.menu.menu_round import MenuRounds
from tillbridge.menu.plan import PlanLimits
from tillbridge.menu.ports import CataloguePos, CatalogueService, Desk
from tillbridge.menu.report import PlanReport, report_of
from tillbridge.menu.shared import Shared
from tillbridge.menu.wishes import Wish

if TYPE_CHECKING:
    from tillbridge.menu.table_round import TableRounds

log = get_logger()

_MILLISECOND = timedelta(milliseconds=1)


def rules_of(settings: StoreSettings, assumptions: AssumptionSettings) -> Rules:
    """Return the settings that decide, of one store."""
    return Rules(
        Limits(
            settings.menu.max_removed_percent,
            settings.menu.max_price_change_percent,
            settings.currency,
            settings.menu.max_changed_percent,
            settings.menu.max_added_percent,
            settings.menu.approve_first,
        ),
        PlanLimits(
            assumptions.background_threshold,
            assumptions.batch_max_items,
            settings.menu.full_push_percent,
        ),
        assumptions.service_restores_snoozed,
        settings.menu.max_sold_out_percent,
    )


class CatalogueFlow:
    """The flow of one store. Used from the event loop."""

    def __init__(  # noqa: PLR0913 -- what a flow stands between
        self,
        store: str,
        settings: StoreSettings,
        assumptions: AssumptionSettings,
        *,
        pos: CataloguePos,
        service: CatalogueService,
        ledger: Ledger,
        desk: Desk,
        clock: Clock,
        job_poll_s: float,
        base_url: str,
    ) -> None:
        self._shared = Shared(
            store,
            pos,
            service,
            ledger,
            desk,
            clock,
            menu_lane=Lane(clock),
            availability_lane=Lane(clock),
            tables_lane=Lane(clock),
            base_url=base_url,
        )
        self._store = store
        self._timezone = ZoneInfo(settings.timezone) if settings.timezone else None
        rules = rules_of(settings, assumptions)
        self._rules = rules
        jobs = Jobs(ledger, service, store, clock=clock, poll_s=job_poll_s)
        self._menu = MenuRounds(self._shared, rules, jobs)
        self._availability = AvailabilityRounds(
            self._shared,
            rules,
            self._menu,
            jobs,
        )
        self._max_tables_removed_percent = settings.tables.max_removed_percent
        if not pos.reads_availability:
            self._shared.words = {}

    @cached_property
    def tables(self) -> "TableRounds":
        """The floor plan's rounds."""
        # Only where the till tells one, or somebody asks.
        from tillbridge.menu.table_round import TableRounds  # noqa: PLC0415 -- (as above)

        return TableRounds(self._shared, max_removed_percent=self._max_tables_removed_percent)

    # -- what wakes it

    def export_changed(self) -> None:
        """The menu's export has changed."""
        self._menu.wish(Wish(since=self._shared.clock.monotonic()))

    def availability_changed(self) -> None:
        """The availability file has changed."""
        self._availability.file_changed()

    def tables_changed(self) -> None:
        """The floor plan's export has changed."""
        self.tables.changed()

    def service_back(self) -> None:
        """The service, the consent or the integration is back: what waited goes out."""
        self._menu.try_again()
        self._availability.changed()
        if self._shared.pos.reads_tables:
            self.tables.try_again()

    def full_compare(self) -> None:
        """Read the whole export and compare it with everything the service has (daily)."""
        self._menu.wish(Wish(whole=True))

    def daily(self) -> None:
        """Compare everything, and push the floor plan: what others have changed is mended."""
        self.full_compare()
        if self._shared.pos.reads_tables:
            self.tables.refresh()

    def resync(self) -> None:
        """The storefront shows other prices than the POS has: read everything, and push it all.

        The ledger cannot tell what differs: as far as it knows, the service has the POS's prices.
        """
        self._menu.mistrusted()

    # -- what others ask

    async def push_again(self) -> PlanReport | None:
        """Make a round now, and return what it came to (None: the export cannot be read).

        What the service refused before is tried again. Raises ServiceError, JobLost, LedgerError.
        """
        return await self._push_now(Wish(forgive=True))

    async def push_full(self) -> PlanReport | None:
        """Push it all now, refused items included; a plan that must wait still waits.

        As `push_again`.
        """
        return await self._push_now(Wish(full=True, forgive=True))

    async def _push_now(self, wish: Wish) -> PlanReport | None:
        await self._availability.read()
        assessment = await self._menu.now(wish)
        return None if assessment is None else await self._report(assessment)

    async def approve(self) -> Hold | None:
        """Release the plan that waits (None: none does); it is pushed if it is still the same."""
        hold = await self._shared.ledger.write(partial(_approve, self._store))
        if hold is not None:
            log.info("menu.approved", store=self._store, digest=hold.digest)
            self._menu.try_again()
        return hold

    async def dismiss(self, *, by: str) -> Hold | None:
        """Leave the menu as it is: this very plan is not offered again (None: none waits)."""
        at = self._shared.clock.now_ms()
        hold = await self._shared.ledger.write(
            lambda connection: dismiss_hold(connection, self._store, by=by, at=at)
        )
        if hold is not None:
            log.info("menu.dismissed", store=self._store, digest=hold.digest)
            self._shared.desk.close("menu.held", self._store)
        return hold

    async def take_off(self, external_id: str, *, until: int | None, by: str) -> None:
        """86 an item or a variant over what the POS says, until `until` (ms) or until restored."""
        await self._put_overrides([external_id], until, by)

    async def restore(self, external_id: str) -> bool:
        """Lift the override of an item; False where there was none."""
        lifted = await self._shared.ledger.write(
            lambda connection: drop_overrides(connection, self._store, [external_id])
        )
        self._availability.changed()
        return lifted > 0

    async def out_of_stock(self, external_ids: Sequence[str]) -> None:
        """86 what the POS could not sell, until the store's day ends.

        The POS's next export says what holds from then on; a person may restore it before.
        """
        until = end_of_day(self._shared.clock.now_ms(), self._timezone)
        await self._put_overrides(external_ids, until, "order")

    async def plan_only(self) -> PlanReport:
        """Return what a round would push; pushes nothing. Raises BridgeError."""
        await self._availability.read()
        full = await self._menu.is_whole_due()
        export = await read_now(self._shared.pos.read_catalogue)
        assessor = Assessor(
            self._store, self._rules, self._shared.clock.now_ms(), self._shared.words, full=full
        )
        assessment = await self._shared.ledger.read(assessor.whole(export))
        return await self._report(assessment)

    async def _report(self, assessment: Assessment) -> PlanReport:
        return await asyncio.to_thread(report_of, assessment, self._rules.guard.currency)

    # -- running

    async def run(self) -> None:
        """Run until cancelled. Reads everything at the start."""
        # First, so that nothing sold out goes on sale with the first push.
        await self._shared.supervisor.attempt(AVAILABILITY, self._availability.read)
        self._shared.menu_lane.poke()
        self._shared.tables_lane.poke()
        async with asyncio.TaskGroup() as lanes:
            lanes.create_task(self._menu.run(), name=f"menu-{self._store}")
            lanes.create_task(self._availability.run(), name=f"availability-{self._store}")
            if self._shared.pos.reads_tables:
                lanes.create_task(self.tables.run(), name=f"tables-{self._store}")

    async def _put_overrides(self, external_ids: Sequence[str], until: int | None, by: str) -> None:
        at = self._shared.clock.now_ms()

        def put(connection: Connection) -> None:
            for external_id in external_ids:
                override = StoreOverride(
                    store=self._store, external_id=external_id, until=until, by=by, at=at
                )
                put_override(connection, override)
            owners = variant_owners(connection, self._store, external_ids)
            known = items_by_id(connection, self._store, {*external_ids, *owners.values()})
            # What was off sale already has nothing to reach the storefront any more.
            mark_sent(connection, self._store, [each.item for each in known.values()], at=at)

        await self._shared.ledger.write(put)
        log.info("item.taken_off", store=self._store, items=len(external_ids), by=by)
        self._availability.changed()


def end_of_day(now_ms: int, timezone: tzinfo | None) -> int:
    """Return the next midnight of that time zone (None: this machine's), in ms since the epoch."""
    now = datetime.fromtimestamp(now_ms / 1000, tz=timezone or datetime.now().astimezone().tzinfo)
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=now.tzinfo)
    return round(midnight.timestamp() * 1000)


def _approve(store: str, connection: Connection) -> Hold | None:
    return approve_hold(connection, store)
