"""The menu lane: read the export, compare, guard, plan, push, remember. One round at a time."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from tillbridge.catalogue.assess import Assessment, Assessor, Rules
from tillbridge.catalogue.collector import collector_at_rest, pass_over
from tillbridge.catalogue.compare import Comparison, changes_from
from tillbridge.catalogue.digest import ContentDigest
from tillbridge.catalogue.exports import ExportReader, milliseconds_since
from tillbridge.catalogue.failures import PUSH_NOT_ALLOWED, after_failure, all_well
from tillbridge.catalogue.jobs import Jobs
from tillbridge.catalogue.known import KnownFingerprints
from tillbridge.catalogue.pending import pending_from
from tillbridge.catalogue.plan import Kind, plan
from tillbridge.catalogue.push import Pusher, PushResult
from tillbridge.catalogue.sending import (
    PORTION,
    JobLost,
    Sender,
    acknowledge,
    doubt_items,
    portions,
)
from tillbridge.catalogue.shared import Shared
from tillbridge.catalogue.words import counts_of
from tillbridge.errors import LedgerError, ServiceError
from tillbridge.ledger import holds, menu, pushes
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.menu_refused import forgive_items, refused_items
from tillbridge.ledger.menu_rows import AcceptedItem
from tillbridge.ledger.pushes import Push
from tillbridge.log import get_logger
from tillbridge.model.catalogue import Catalogue, CatalogueChanges

log = get_logger()

SUBJECT = "menu"
PENDING = "menu_pending"  # the fact: how many changes the service has not accepted yet
DRIFT_CALM_S = 1800.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What the next round shall do beyond the usual: compare everything, or push it all."""

    whole: bool = False
    full: bool = False
    since: float | None = None  # monotonic, when the export changed

    def joined(self, other: "Wish") -> "Wish":
        """Return both wishes in one."""
        begun = [each for each in (self.since, other.since) if each is not None]
        return Wish(self.whole or other.whole, self.full or other.full, min(begun, default=None))


class DriftPauses:
    """How long to wait before a full push for drift: not at all at first, then ever longer."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._pause = 0.0

    def pause(self, now: float) -> float:
        """Return the pause in seconds for drift that is seen `now` (monotonic)."""
        calm = self._last is None or now - self._last > DRIFT_CALM_S
        self._pause = 0.0 if calm else min(max(30.0, self._pause * 2), DRIFT_CALM_S / 2)
        self._last = now
        return self._pause


class MenuRounds:
    """The menu lane of one store."""

    def __init__(self, shared: Shared, rules: Rules, jobs: Jobs) -> None:
        self._shared = shared
        self._rules = rules
        self._store = shared.store
        self._ledger = shared.ledger
        self._reader = ExportReader(
            shared.store, SUBJECT, lane=shared.menu_lane, desk=shared.desk, clock=shared.clock
        )
        self._jobs = jobs
        sender = Sender(
            shared.ledger,
            shared.service,
            jobs,
            shared.store,
            clock=shared.clock,
            in_flight=shared.in_flight,
        )
        self._pusher = Pusher(shared.ledger, sender, shared.store, clock=shared.clock)
        self._one_at_a_time = asyncio.Lock()
        self._wish = Wish()
        self._known: KnownFingerprints | None = None
        self._in_vain = ""  # the digest of a plan that the service refuses as a whole
        self._drift = DriftPauses()

    def wish(self, wish: Wish) -> None:
        """Ask for a round."""
        self._wish = self._wish.joined(wish)
        if wish.whole or wish.full:
            self._in_vain = ""
        self._shared.menu_lane.poke()

    def try_again(self) -> None:
        """Ask for a round although the service refused the same plan before."""
        self._in_vain = ""
        self._shared.menu_lane.poke()

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        while True:
            await self._shared.menu_lane.wait()
            await self.round()

    async def round(self) -> Assessment | None:
        """Make one round; None where the export could not be read or the service not be told.

        None too for a POS without a menu.
        """
        if not self._shared.pos.reads_catalogue:
            return None
        async with self._one_at_a_time:
            return await self._guarded_round()

    async def _guarded_round(self) -> Assessment | None:
        wish, self._wish = self._wish, Wish()
        try:
            return await self._round(wish)
        except (ServiceError, JobLost, LedgerError) as failure:
            self._wish = wish.joined(self._wish)
            self._known = None
            after_failure(
                failure,
                self._store,
                lane=self._shared.menu_lane,
                desk=self._shared.desk,
                subject=SUBJECT,
            )
            return None
        finally:
            self._shared.availability_lane.poke()

    async def _round(self, wish: Wish) -> Assessment | None:
        store_id = await self._shared.store_id()
        if store_id is not None:
            await self._settle_open_pushes(store_id)
        assessment = await self._assess(wish)
        if assessment is None:
            self._wish = wish.joined(self._wish)
            if store_id is not None:
                await self._variants_meanwhile(store_id)
            return None
        await self._take_note(assessment)
        if store_id is None:
            return assessment
        if assessment.reasons:
            await self._hold(assessment)
        elif assessment.hold is not None and not assessment.approved:
            await self._ledger.write(lambda connection: holds.drop_hold(connection, self._store))
            log.info("menu.hold_dissolved", store=self._store)
        if not assessment.reasons:
            self._shared.desk.close("menu.held", self._store)
        if assessment.digest and assessment.digest == self._in_vain:
            await self._push(store_id, assessment.without_content(self._rules), wish)
        else:
            await self._push(store_id, assessment, wish)
        if assessment.reasons or self._in_vain:
            await self._variants_meanwhile(store_id)
        return assessment

    async def _variants_meanwhile(self, store_id: str) -> None:
        """Take variants off sale, or back on, while the menu cannot be read or must wait.

        No availability call names a variant, so that this takes the item object.
        """
        comparison = await self._ledger.read(
            Assessor(
                self._store, self._rules, self._shared.clock.now_ms(), self._shared.words
            ).variants()
        )
        kind: Kind = "patch" if len(comparison.changes.changed) == 1 else "batch"
        if comparison.changes:
            steps = plan(kind, comparison.changes, Catalogue(), self._rules.plan)
            await self._pusher.run(store_id, steps, comparison.records)
            self._known = None

    # -- reading

    async def _assess(self, wish: Wish) -> Assessment | None:
        assessor = Assessor(
            self._store,
            self._rules,
            self._shared.clock.now_ms(),
            self._shared.words,
            full=wish.full,
        )
        known = await self._known_fingerprints()
        if known and not (wish.whole or wish.full):
            assessment = await self._assess_changes(assessor, known)
            if assessment is None or not assessment.needs_whole:
                return assessment
        with collector_at_rest():
            return await self._assess_whole(assessor)

    async def _assess_whole(self, assessor: Assessor) -> Assessment | None:
        started = time.perf_counter()
        export = await self._reader.read(self._shared.pos.read_catalogue)
        if export is None:
            return None
        self._tell_read(len(export.items), len(export.items), len(export.bad_rows), started)
        assessment = await self._ledger.read(assessor.whole(export))
        pass_over(len(export.items))
        return assessment

    async def _assess_changes(
        self, assessor: Assessor, known: KnownFingerprints
    ) -> Assessment | None:
        started = time.perf_counter()
        reading = await self._reader.read(lambda: self._read_changes(known))
        if reading is None:
            return None
        fresh = reading.fresh
        self._tell_read(reading.items_read, len(fresh.items), len(fresh.bad_rows), started)
        return await self._ledger.read(assessor.changes(reading))

    async def _read_changes(self, known: KnownFingerprints) -> CatalogueChanges:
        if self._shared.pos.reads_changes:
            return await self._shared.pos.read_changes(known)
        export: Catalogue = await self._shared.pos.read_catalogue()
        return await asyncio.to_thread(changes_from, export, known)

    async def _known_fingerprints(self) -> KnownFingerprints:
        if self._known is None:
            self._known = KnownFingerprints(
                await self._ledger.read(
                    lambda connection: menu.known_fingerprints(connection, self._store)
                )
            )
        return self._known

    def _tell_read(self, items: int, fresh: int, bad_rows: int, started: float) -> None:
        log.info(
            "export.read",
            store=self._store,
            items=items,
            fresh=fresh,
            bad_rows=bad_rows,
            ms=milliseconds_since(started),
        )

    # -- remembering what was read

    async def _take_note(self, assessment: Assessment) -> None:
        comparison = assessment.comparison
        self._reader.tell_bad_rows(comparison.bad_rows)
        at = self._shared.clock.now_ms()

        def note(connection: Connection) -> None:
            menu.refresh_items(connection, self._store, comparison.refreshed[:PORTION])
            forgive_items(connection, self._store, comparison.forgiven)
            fact = {"read_at": at, "items": comparison.items_read}
            put_fact(connection, self._store, "export", fact, at=at)
            pending = sum(counts_of(comparison.changes).values())
            put_fact(connection, self._store, PENDING, pending, at=at)

        await self._ledger.write(note)
        for portion in portions(comparison.refreshed[PORTION:], PORTION):
            await self._ledger.write(partial(_refresh, self._store, portion))
        if comparison.refreshed or comparison.forgiven:
            self._known = None
            await self._tell_refused()

    async def _hold(self, assessment: Assessment) -> None:
        waits = assessment.hold is not None and assessment.hold.digest == assessment.digest
        if not waits:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: holds.put_hold(
                    connection,
                    self._store,
                    assessment.digest,
                    assessment.reasons,
                    assessment.summary or {},
                    at=at,
                )
            )
            log.warning("menu.held", store=self._store, reasons=list(assessment.reasons))
        self._shared.desk.open("menu.held", self._store, detail="; ".join(assessment.reasons))

    # -- pushing

    async def _push(self, store_id: str, assessment: Assessment, wish: Wish) -> None:
        comparison = assessment.comparison
        if not assessment.plan.steps:
            await self._nothing_to_push(comparison)
            return
        counts = counts_of(comparison.changes)
        log.info(
            "menu.planned",
            store=self._store,
            kind=assessment.plan.kind,
            calls=len(assessment.plan.steps),
            **counts,
        )
        started = time.perf_counter()
        left = None
        if not assessment.reasons:
            left = await asyncio.to_thread(ContentDigest, comparison.changes)
        try:
            result = await self._pusher.run(store_id, assessment.plan, comparison.records, left)
        finally:
            self._known = None
        await self._after_push(assessment, result)
        log.info(
            "menu.pushed",
            store=self._store,
            kind=assessment.plan.kind,
            taken=result.taken,
            refused=len(result.refused),
            ms=milliseconds_since(started),
            **_since(wish, self._shared.clock.monotonic()),
        )
        await self._known_fingerprints()

    async def _after_push(self, assessment: Assessment, result: PushResult) -> None:
        desk, lane = self._shared.desk, self._shared.menu_lane
        await self._tell_refused()
        if result.drifted:
            await self.drifted(result.drifted)
            return
        if result.failure:
            self._in_vain = assessment.digest
            desk.open("menu.push_failed", self._store, SUBJECT, detail=result.failure)
            return
        all_well(self._store, lane=lane, desk=desk, subject=SUBJECT)
        desk.close(PUSH_NOT_ALLOWED, self._store)
        if result.refused:
            lane.poke()  # what was left out of the narrowed calls
        gone = _gone(assessment.comparison)
        at = self._shared.clock.now_ms()

        def finish(connection: Connection) -> None:
            put_fact(connection, self._store, "last_synced_at", at, at=at)
            if not assessment.reasons:
                put_fact(connection, self._store, PENDING, len(result.refused), at=at)
                menu.forget_parts(connection, self._store, gone)
                holds.drop_hold(connection, self._store)

        await self._ledger.write(finish)

    async def _nothing_to_push(self, comparison: Comparison) -> None:
        all_well(self._store, lane=self._shared.menu_lane, desk=self._shared.desk, subject=SUBJECT)
        self._shared.desk.close(PUSH_NOT_ALLOWED, self._store)
        gone = _gone(comparison)
        if any(gone.values()) and not comparison.changes.needs_push:
            await self._ledger.write(
                lambda connection: menu.forget_parts(connection, self._store, gone)
            )

    async def drifted(self, external_ids: frozenset[str]) -> None:
        """Take note that the service does not know these items: forget them, and push it all.

        A service that goes on losing what it took is not pressed: each full push for drift waits
        longer than the one before.
        """
        await self._ledger.write(
            lambda connection: menu.forget_items(connection, self._store, external_ids)
        )
        self._known = None
        self._wish = self._wish.joined(Wish(full=True))
        pause = self._drift.pause(self._shared.clock.monotonic())
        log.warning(
            "menu.drifted", store=self._store, items=len(external_ids), pushed_in_s=round(pause)
        )
        if pause:
            self._shared.menu_lane.poke_in(pause)
        else:
            self._shared.menu_lane.poke()

    async def _tell_refused(self) -> None:
        refused = await self._ledger.read(lambda connection: refused_items(connection, self._store))
        if not refused:
            self._shared.desk.close("menu.items_refused", self._store)
            return
        external_id, refusal = next(iter(refused.items()))
        self._shared.desk.open(
            "menu.items_refused",
            self._store,
            count=len(refused),
            detail=f"{external_id}: {refusal.reason}",
        )

    # -- pushes that were under way when the bridge stopped

    async def _settle_open_pushes(self, store_id: str) -> None:
        running = await self._ledger.read(
            lambda connection: pushes.running_pushes(connection, self._store)
        )
        for push in running:
            if push.id not in self._shared.in_flight.pushes:
                await self._settle(store_id, push)

    async def _settle(self, store_id: str, push: Push) -> None:
        state, message = "lost", ""
        if push.job_id is not None:
            end = await self._jobs.follow(store_id, push)
            state, message = end.state, end.message
            if end.items is not None and end.items < push.summary.get("items", 0):
                state = "lost"  # some items were refused: pushing again tells which
        text = await self._ledger.read(lambda connection: pushes.pending_of(connection, push.id))
        pending = await asyncio.to_thread(pending_from, text or "")
        at = self._shared.clock.now_ms()
        if state == "success":
            await acknowledge(self._ledger, self._store, replace(pending, ids=()), at=at)
        else:
            for portion in portions(list(pending.all_ids), PORTION):
                await self._ledger.write(partial(doubt_items, self._store, portion))
        self._known = None

        def finish(connection: Connection) -> None:
            pushes.end_push(connection, push.id, state, message, at=at)
            if state == "success":
                put_fact(connection, self._store, "last_synced_at", at, at=at)

        await self._ledger.write(finish)
        log.info("menu.push_settled", store=self._store, kind=push.kind, state=state)


def _gone(comparison: Comparison) -> dict[str, frozenset[str]]:
    changes = comparison.changes
    return {
        "categories": changes.categories.gone,
        "add_ons": changes.add_ons.gone,
        "addon_groups": changes.addon_groups.gone,
        "menus": changes.menus.gone,
    }


def _since(wish: Wish, now: float) -> dict[str, int]:
    return {} if wish.since is None else {"since_change_ms": round((now - wish.since) * 1000)}


def _refresh(store: str, accepted: Sequence[AcceptedItem], connection: Connection) -> None:
    menu.refresh_items(connection, store, accepted)
