"""The menu lane: read the export, compare, guard, plan, push, remember. One round at a time."""

import asyncio
import time

from sqlalchemy import Connection

from tillbridge.core.errors import LedgerError, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.menu import clear_refusals, refused_items
from tillbridge.ledger.storefront import is_whole_due, whole_is_done, whole_is_due
from tillbridge.menu.assess import Assessment, Rules
from tillbridge.menu.compare import Comparison
from tillbridge.menu.describe import counts_of
from tillbridge.menu.diff import ContentDigest
from tillbridge.menu.exports import milliseconds_since
from tillbridge.menu.failures import PUSH_NOT_ALLOWED, after_failure, all_well
from tillbridge.menu.jobs import Jobs
from tillbridge.menu.menu_notes import PENDING, MenuNotes, note_source
from tillbridge.menu.menu_reading import SUBJECT, MenuReading
from tillbridge.menu.open_pushes import OpenPushes
from tillbridge.menu.plan import Kind, plan
from tillbridge.menu.push import Pusher, PushResult
from tillbridge.menu.sending import JobLost, Sender
from tillbridge.menu.shared import Shared
from tillbridge.menu.sold_out import ask_about_sold_out
from tillbridge.menu.storefront import MenuStorefront
from tillbridge.menu.wishes import DriftPauses, Wish
from tillbridge.model.catalogue import Catalogue

log = get_logger()


class MenuRounds:
    """The menu lane of one store."""

    def __init__(self, shared: Shared, rules: Rules, jobs: Jobs) -> None:
        self._shared = shared
        self._rules = rules
        self._store = shared.store
        self._ledger = shared.ledger
        self._reading = MenuReading(shared, rules)
        self._storefront = MenuStorefront(shared)
        self._notes = MenuNotes(shared, rules, self._reading)
        self._open_pushes = OpenPushes(shared, jobs)
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
        self._in_vain = ""  # the digest of a plan that the service refuses as a whole
        self._doubted = ""  # the digest of a refused plan after which everything was pushed
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

    def mistrusted(self) -> None:
        """Push it all: the storefront is said to show what the service never was told.

        As with drift, a till that says so with every order does not press the service.
        """
        self._wish = self._wish.joined(Wish(whole=True, full=True))
        self._in_vain = ""
        self._poke_after(self._drift.pause(self._shared.clock.monotonic()))

    async def run(self) -> None:
        """Make a round whenever one is asked for, for ever."""
        await self._shared.menu_lane.run(SUBJECT, self._shared.supervisor, self.round)

    async def round(self) -> Assessment | None:
        """Make one round; None where the export could not be read or the service not be told.

        None too for a POS without a menu.
        """
        try:
            return await self.now(Wish())
        except (ServiceError, JobLost, LedgerError):
            return None  # noted, and tried again where that can help

    async def now(self, more: Wish) -> Assessment | None:
        """Make one round, with a further wish; None where the export could not be read.

        None too for a POS without a menu. Raises ServiceError, JobLost or LedgerError.
        """
        if not self._shared.pos.reads_catalogue:
            return None
        async with self._one_at_a_time:
            return await self._guarded_round(more)

    async def _guarded_round(self, more: Wish) -> Assessment | None:
        wish, self._wish = self._wish.joined(more), Wish()
        try:
            return await self._round(wish)
        except (ServiceError, JobLost, LedgerError) as failure:
            self._wish = wish.joined(self._wish)
            self._reading.forget()
            after_failure(
                failure,
                self._store,
                lane=self._shared.menu_lane,
                desk=self._shared.desk,
                subject=SUBJECT,
            )
            raise
        except Exception:
            self._wish = wish.joined(self._wish)
            self._reading.forget()
            raise
        finally:
            self._shared.availability_lane.poke()

    async def _round(self, wish: Wish) -> Assessment | None:
        store_id = await self._shared.store_id()
        whole_due = store_id is not None and await self._storefront.settle()
        if whole_due:
            wish = wish.joined(Wish(whole=True, full=True))
            self._reading.forget()
        if wish.forgive:
            await self._forgive()
        if store_id is not None and await self._open_pushes.settle(store_id):
            self._reading.forget()
        assessment = await self._reading.assess(wish)
        if assessment is None:
            self._wish = wish.joined(self._wish)
            if store_id is not None:
                await self._variants_meanwhile(store_id)
            return None
        await self._notes.take(assessment, whole_due=whole_due)
        if store_id is None:
            return assessment
        await self._notes.hold_or_release(assessment)
        if assessment.digest != self._in_vain:
            self._in_vain = ""
        if self._in_vain:
            await self._push(store_id, assessment.without_content(self._rules), wish)
        else:
            await self._push(store_id, assessment, wish)
        if assessment.reasons or self._in_vain:
            await self._variants_meanwhile(store_id)
        await ask_about_sold_out(self._shared, max_percent=self._rules.max_sold_out_percent)
        return assessment

    async def _variants_meanwhile(self, store_id: str) -> None:
        """Take variants off sale, or back on, while the menu cannot be read or must wait.

        No availability call names a variant, so that this takes the item object.
        """
        comparison = await self._ledger.read(self._reading.assessor().variants())
        kind: Kind = "patch" if len(comparison.changes.changed) == 1 else "batch"
        if comparison.changes:
            steps = plan(kind, comparison.changes, Catalogue(), self._rules.plan)
            await self._pusher.run(store_id, steps, comparison.records)
            self._reading.forget()

    async def is_whole_due(self) -> bool:
        """Whether the next round has to push everything, for whoever only looks."""
        if not self._one_at_a_time.locked():
            async with self._one_at_a_time:
                return await self._storefront.settle()
        return await self._ledger.read(lambda connection: is_whole_due(connection, self._store))

    async def _forgive(self) -> None:
        """Let what the service refused be sent again.

        Only here, between two readings: a refused record counts as known, so that a reading with
        it and a comparison without it would take its item for gone.
        """

        def forgive(connection: Connection) -> None:
            clear_refusals(connection, self._store, refused_items(connection, self._store).keys())

        await self._ledger.write(forgive)
        self._in_vain = ""
        self._reading.forget()

    # -- pushing

    async def _push(self, store_id: str, assessment: Assessment, wish: Wish) -> None:
        comparison = assessment.comparison
        if not assessment.plan.steps:
            await self._nothing_to_push(assessment)
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
        if assessment.approved:
            left = await asyncio.to_thread(ContentDigest, comparison.changes)
        try:
            result = await self._pusher.run(store_id, assessment.plan, comparison.records, left)
        finally:
            self._reading.forget()
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
        await self._reading.known()

    async def _after_push(self, assessment: Assessment, result: PushResult) -> None:
        desk, lane = self._shared.desk, self._shared.menu_lane
        await self._notes.tell_refused()
        if result.drifted:
            await self.drifted(result.drifted)
            return
        if result.lacks or (result.failure and self._is_doubtful(assessment)):
            await self._lacking(result.failure)
            return
        if result.failure:
            self._in_vain = assessment.digest
            desk.open("menu.push_failed", self._store, SUBJECT, detail=result.failure)
            return
        self._all_well()
        if result.reservation:
            desk.open("menu.taken_in_part", self._store, detail=result.reservation)
        elif assessment.plan.kind == "full":
            desk.close("menu.taken_in_part", self._store)
        if result.refused:
            lane.poke()  # what was left out of the narrowed calls
        gone = _gone(assessment.comparison)
        at = self._shared.clock.now_ms()

        def finish(connection: Connection) -> None:
            put_fact(connection, self._store, "last_synced_at", at, at=at)
            if assessment.plan.kind == "full":
                whole_is_done(connection, self._store)
            if not assessment.reasons:
                put_fact(connection, self._store, PENDING, len(result.refused), at=at)
                menu.forget_parts(connection, self._store, gone)
                pushes.drop_hold(connection, self._store)
                note_source(connection, self._store, assessment.comparison.source, at=at)

        await self._ledger.write(finish)

    async def _nothing_to_push(self, assessment: Assessment) -> None:
        self._all_well()
        await self._notes.unchanged_source(assessment)
        if assessment.plan.kind == "full":  # of a menu without items: nothing is on either side
            await self._ledger.write(lambda connection: whole_is_done(connection, self._store))
        gone = _gone(assessment.comparison)
        if any(gone.values()) and not assessment.comparison.changes.needs_push:
            await self._ledger.write(
                lambda connection: menu.forget_parts(connection, self._store, gone)
            )

    def _all_well(self) -> None:
        if not self._in_vain:  # else the service still refuses the rest
            lane, desk = self._shared.menu_lane, self._shared.desk
            all_well(self._store, lane=lane, desk=desk, subject=SUBJECT)
            desk.close(PUSH_NOT_ALLOWED, self._store)

    async def drifted(self, external_ids: frozenset[str]) -> None:
        """Take note that the service does not know these items: forget them, and push it all.

        A service that goes on losing what it took is not pressed: each full push for drift waits
        longer than the one before.
        """
        at = self._shared.clock.now_ms()

        def forget(connection: Connection) -> None:
            menu.forget_items(connection, self._store, external_ids, at=at)
            whole_is_due(connection, self._store, pending=len(external_ids), at=at)

        await self._ledger.write(forget)
        self._push_all_soon(items=len(external_ids))

    def _is_doubtful(self, assessment: Assessment) -> bool:
        """Whether a refused plan may be refused for what the service lacks; once a plan.

        What differs is told on the ground of what the service had: a service that lost some of that
        refuses a change which it takes as part of a full push.
        """
        if assessment.plan.kind == "full" or self._doubted == assessment.digest:
            return False
        self._doubted = assessment.digest
        return True

    async def _lacking(self, why: str) -> None:
        """Take note that the service lacks what it once took, and push it all."""
        at = self._shared.clock.now_ms()
        await self._ledger.write(
            lambda connection: whole_is_due(connection, self._store, pending=1, at=at)
        )
        self._push_all_soon(detail=why)

    def _push_all_soon(self, **told: object) -> None:
        self._reading.forget()
        self._wish = self._wish.joined(Wish(full=True))
        pause = self._drift.pause(self._shared.clock.monotonic())
        log.warning("menu.drifted", store=self._store, pushed_in_s=round(pause), **told)
        self._poke_after(pause)

    def _poke_after(self, pause: float) -> None:
        if pause:
            self._shared.menu_lane.poke_in(pause)
        else:
            self._shared.menu_lane.poke()


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
