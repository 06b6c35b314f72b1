"""The availability lane: what is sold out goes out at once, whatever the menu lane is at.

It reads what the POS says of availability, lays staff overrides over it, and tells the service
what differs from what it has. Snoozes that end bring the item back by themselves.
"""

import time
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from tillbridge.adapter import AvailabilityReading
from tillbridge.core.errors import LedgerError, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.ledger.overrides import drop_overrides, get_overrides
from tillbridge.menu.acknowledging import portions
from tillbridge.menu.assess import Assessor, Rules, snooze_ended
from tillbridge.menu.compare import Comparison
from tillbridge.menu.diff import ItemChange
from tillbridge.menu.exports import ExportReader, milliseconds_since
from tillbridge.menu.failures import after_failure, all_well
from tillbridge.menu.jobs import Jobs
from tillbridge.menu.menu_round import MenuRounds
from tillbridge.menu.plan import SetAvailability
from tillbridge.menu.sending import Sender
from tillbridge.menu.shared import Shared
from tillbridge.menu.sold_out import ask_about_sold_out
from tillbridge.model.catalogue import Availability, Item, Variant

log = get_logger()

SUBJECT = "availability"


class AvailabilityRounds:
    """The availability lane of one store."""

    def __init__(
        self,
        shared: Shared,
        rules: Rules,
        menu_rounds: MenuRounds,
        jobs: Jobs,
    ) -> None:
        self._shared = shared
        self._rules = rules
        self._menu_rounds = menu_rounds
        self._lane = shared.availability_lane
        self._reader = ExportReader(
            shared.store, SUBJECT, lane=self._lane, desk=shared.desk, clock=shared.clock
        )
        self._sender = Sender(
            shared.ledger,
            shared.service,
            jobs,
            shared.store,
            clock=shared.clock,
            in_flight=shared.in_flight,
        )
        self._unread = shared.pos.reads_availability
        self._since: float | None = None
        self._asked: dict[str, tuple[Variant, ...]] = {}

    def file_changed(self) -> None:
        """Ask for a round that reads what the POS says."""
        self._unread = self._shared.pos.reads_availability
        self.changed()

    def changed(self) -> None:
        """Ask for a round: an override was made or lifted."""
        if self._since is None:
            self._since = self._shared.clock.monotonic()
        self._lane.poke()

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        await self._lane.run(SUBJECT, self._shared.supervisor, self.round)

    async def round(self) -> None:
        """Make one round."""
        since, self._since = self._since, None
        try:
            await self.read()
            async with self._shared.in_flight.turn:
                await self._round(since)
        except (ServiceError, LedgerError) as failure:
            after_failure(
                failure,
                self._shared.store,
                lane=self._lane,
                desk=self._shared.desk,
                subject=SUBJECT,
            )

    async def read(self) -> None:
        """Read what the POS says, if that has changed."""
        if not self._unread:
            return
        reading = await self._reader.read(self._shared.pos.read_availability)
        if reading is None:
            return
        self._unread = False
        self._reader.tell_bad_rows(reading.bad_rows)
        before = self._shared.words
        try:
            self._shared.words = await self._words(reading)
        except Exception:
            self._unread = True
            raise
        # A till that is asked every few seconds mostly says the same.
        tell = log.debug if self._shared.words == before else log.info
        tell("availability.read", store=self._shared.store, items=len(reading.items))

    async def _words(self, reading: AvailabilityReading) -> Mapping[str, Availability]:
        """Return the words of a reading; what only a bad row names keeps the state it had."""
        before = self._shared.words
        nameless = any(not row.external_id for row in reading.bad_rows)
        kept = {row.external_id for row in reading.bad_rows if row.external_id}
        if not kept and not nameless:
            return reading.items
        if before is None:
            before = await self._shared.ledger.read(self._told_off)
        return {
            **{
                key: word
                for key, word in before.items()
                if key in kept or (nameless and not word.available)
            },
            **reading.items,
        }

    def _told_off(self, connection: Connection) -> dict[str, Availability]:
        return {
            key: Availability(available=False, until=each.item.snooze_until)
            for key, each in menu.overlaid_items(connection, self._shared.store).items()
            if not each.item.available
        }

    async def _round(self, since: float | None) -> None:
        store_id = await self._shared.store_id()
        if store_id is None:
            return
        now_ms = self._shared.clock.now_ms()
        assessor = Assessor(self._shared.store, self._rules, now_ms, self._shared.words)
        unsure = frozenset(self._shared.unsure)
        comparison = await self._shared.ledger.read(assessor.availability(unsure))
        self._lane.poke_at(comparison.next_change)
        await self._drop_ended_overrides(now_ms)
        self._ask_for_variants(comparison)
        toggled = [
            each
            for each in comparison.changes.changed.values()
            if _availability_of(each.before) != _availability_of(each.after)
            or each.after.external_id in unsure
        ]
        await self._tell(store_id, toggled, now_ms, since)
        await ask_about_sold_out(self._shared, max_percent=self._rules.max_sold_out_percent)
        all_well(self._shared.store, lane=self._lane, desk=self._shared.desk, subject=SUBJECT)

    def _ask_for_variants(self, comparison: Comparison) -> None:
        """Let the menu lane tell variants, which no availability call can name; ask once."""
        asked = {
            external_id: change.after.variants
            for external_id, change in comparison.changes.changed.items()
            if "variants" in change.fields
        }
        if asked and asked != self._asked:
            self._shared.menu_lane.poke()
        self._asked = asked

    async def _tell(
        self, store_id: str, toggled: Iterable[ItemChange], now_ms: int, since: float | None
    ) -> None:
        ended = [each.after for each in toggled if self._ended(each, now_ms)]
        if ended:
            await self._sender.acknowledge_availability(ended)
        items = [each.after for each in toggled if not self._ended(each, now_ms)]
        started = time.perf_counter()
        for portion in portions(items, self._rules.plan.batch_max_items):
            ids = frozenset(each.external_id for each in portion)
            sent = await self._sender.send_availability(store_id, SetAvailability(tuple(portion)))
            self._shared.unsure -= ids
            self._shared.unsure |= sent.named
            if sent.missing:
                await self._menu_rounds.drifted(sent.missing)
        if items:
            now = self._shared.clock.monotonic()
            log.info(
                "availability.pushed",
                store=self._shared.store,
                items=len(items),
                ms=milliseconds_since(started),
                since_change_ms=None if since is None else round((now - since) * 1000),
            )

    def _ended(self, change: ItemChange, now_ms: int) -> bool:
        """Whether this is a snooze that the service ends by itself (setting)."""
        return self._rules.service_restores_snoozed and snooze_ended(change, now_ms)

    async def _drop_ended_overrides(self, now_ms: int) -> None:
        overrides = await self._shared.ledger.read(
            lambda connection: get_overrides(connection, self._shared.store)
        )
        ended = [
            key
            for key, each in overrides.items()
            if each.until is not None and each.until <= now_ms
        ]
        if ended:
            await self._shared.ledger.write(
                lambda connection: drop_overrides(connection, self._shared.store, ended)
            )


def _availability_of(item: Item) -> tuple[bool, int | None]:
    return item.available, item.snooze_until
