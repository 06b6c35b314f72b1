"""From a reading to a decision: nothing, these calls, or a person has to look.

Runs in the ledger's reader, so that even a menu of 200,000 items never holds the event loop.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from tillbridge.ledger.models import Hold
from tillbridge.ledger.overrides import get_overrides
from tillbridge.ledger.pushes import get_hold
from tillbridge.menu.compare import (
    Comparison,
    compare_availability,
    compare_changes,
    compare_whole,
)
from tillbridge.menu.describe import summary_of
from tillbridge.menu.diff import ContentDigest, Diff, ItemChange, apply
from tillbridge.menu.guard import Finding, Limits, findings
from tillbridge.menu.overlay import Overlay
from tillbridge.menu.plan import Kind, Plan, PlanLimits, choose, plan
from tillbridge.model.catalogue import Availability, Catalogue, CatalogueChanges
from tillbridge.model.menu_summary import MenuSummary


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide, of one store."""

    guard: Limits
    plan: PlanLimits
    service_restores_snoozed: bool = False
    max_sold_out_percent: float = 80


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a reading comes to.

    `reasons` say why the plan waits for a person; then `plan` holds only what may go out meanwhile
    (availability), and `suspects` are the ids of the items the reasons are about, the worst first.
    `digest` names the plan's content, `hold` is the plan that waited until now. `needs_whole` asks
    for the whole export, which a full push takes. `first` sums up a menu that the storefront has
    nothing to compare with.
    """

    comparison: Comparison
    plan: Plan
    digest: str
    reasons: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    hold: Hold | None = None
    approved: bool = False
    needs_whole: bool = False
    summary: Mapping[str, Any] | None = None
    first: MenuSummary | None = None

    def without_content(self, rules: Rules) -> "Assessment":
        """Return what may go out while the service refuses the rest: availability."""
        steps = plan("availability", meanwhile(self.comparison.changes), Catalogue(), rules.plan)
        return replace(self, plan=steps, reasons=self.reasons or ("",))


@dataclass(frozen=True, slots=True)
class Assessor:
    """Assesses readings of one store; `words` is what the POS says of availability."""

    store: str
    rules: Rules
    now_ms: int
    words: Mapping[str, Availability] | None
    full: bool = False  # a full push is asked for, whatever it costs

    def whole(self, export: Catalogue) -> Callable[[Connection], Assessment]:
        """Return the assessment of a whole export."""
        return lambda connection: self._assessed(
            connection, compare_whole(connection, self.store, export, self._overlay(connection))
        )

    def changes(self, reading: CatalogueChanges) -> Callable[[Connection], Assessment]:
        """Return the assessment of a reading told as changes."""
        return lambda connection: self._assessed(
            connection, compare_changes(connection, self.store, reading, self._overlay(connection))
        )

    def variants(self) -> Callable[[Connection], Comparison]:
        """Return the comparison of availability alone, of items whose variants it changes."""

        def compared(connection: Connection) -> Comparison:
            found = compare_availability(connection, self.store, self._overlay(connection))
            return replace(found, changes=Diff(changed=found.changes.content))

        return compared

    def availability(self, unsure: AbstractSet[str]) -> Callable[[Connection], Comparison]:
        """Return the comparison of availability alone; `unsure` items are told again."""
        return lambda connection: compare_availability(
            connection, self.store, self._overlay(connection), unsure=unsure
        )

    def _overlay(self, connection: Connection) -> Overlay:
        overrides = get_overrides(connection, self.store)
        ends = {external_id: each.until for external_id, each in overrides.items()}
        return Overlay(self.now_ms, self.words, ends)

    def _assessed(self, connection: Connection, comparison: Comparison) -> Assessment:
        assessment = self._decided(connection, comparison)
        if comparison.totals.items or not comparison.changes.added:
            return assessment
        return replace(assessment, first=MenuSummary.of(comparison.current))

    def _decided(self, connection: Connection, comparison: Comparison) -> Assessment:
        if self.rules.service_restores_snoozed:
            comparison = self._without_ended(comparison)
        changes = comparison.changes
        hold = get_hold(connection, self.store)
        if not changes and not self.full:
            return Assessment(comparison, Plan("nothing"), "", hold=hold)
        digest = ContentDigest(changes).text
        approved = hold is not None and hold.approved and hold.digest == digest
        found = findings(changes, comparison.totals, self.rules.guard)
        if found and not approved:
            return self._held(comparison, digest, found, hold)
        kind = self._kind(comparison)
        if kind == "full" and not comparison.whole:
            return Assessment(comparison, Plan("full"), digest, hold=hold, needs_whole=True)
        target = apply(changes, comparison.acknowledged) if kind == "full" else Catalogue()
        return Assessment(
            comparison,
            plan(kind, changes, target, self.rules.plan),
            digest,
            hold=hold,
            approved=approved,
        )

    def _held(
        self, comparison: Comparison, digest: str, found: tuple[Finding, ...], hold: Hold | None
    ) -> Assessment:
        changes = comparison.changes
        suspects = tuple(dict.fromkeys(each for finding in found for each in finding.items))
        return Assessment(
            comparison,
            plan("availability", meanwhile(changes), Catalogue(), self.rules.plan),
            digest,
            tuple(each.text for each in found),
            suspects,
            hold,
            summary=summary_of(
                changes,
                comparison.acknowledged,
                comparison.current,
                self.rules.guard.currency,
                suspects,
            ),
        )

    def _without_ended(self, comparison: Comparison) -> Comparison:
        """Leave out snoozes that the service ends by itself; the availability lane notes them."""
        changed = {
            external_id: change
            for external_id, change in comparison.changes.changed.items()
            if not (change.availability_only and snooze_ended(change, self.now_ms))
        }
        return replace(comparison, changes=replace(comparison.changes, changed=changed))

    def _kind(self, comparison: Comparison) -> Kind:
        if self.full:
            return "full"
        return choose(
            comparison.changes,
            acknowledged=comparison.totals.items,
            menus=comparison.menus,
            limits=self.rules.plan,
        )


def snooze_ended(change: ItemChange, now_ms: int) -> bool:
    """Whether the change is that a snooze, told to the service with its end, is over."""
    until = change.before.snooze_until
    return change.after.available and until is not None and until <= now_ms


def meanwhile(changes: Diff) -> Diff:
    """Return the changes of availability alone, which never wait: of items the service has."""
    return Diff(
        changed={
            external_id: replace(change, fields=frozenset({"available", "snooze_until"}))
            for external_id, change in changes.changed.items()
            if change.fields & {"available", "snooze_until"}
            and (change.before.available, change.before.snooze_until)
            != (change.after.available, change.after.snooze_until)
        }
    )
