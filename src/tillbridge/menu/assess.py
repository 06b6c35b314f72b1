"""From a comparison to a decision: nothing, these calls, or a person has to look. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tillbridge.config import AssumptionSettings, StoreSettings
from tillbridge.ledger.models import Hold
from tillbridge.menu.compare import Comparison
from tillbridge.menu.describe import summary_of
from tillbridge.menu.diff import ContentDigest, Diff, ItemChange, apply
from tillbridge.menu.guard import Finding, Limits, findings
from tillbridge.menu.plan import Kind, Plan, PlanLimits, choose, plan
from tillbridge.model.catalogue import Catalogue
from tillbridge.model.menu_summary import MenuSummary


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide, of one store."""

    guard: Limits
    plan: PlanLimits
    service_restores_snoozed: bool = False
    max_sold_out_percent: float = 80
    max_tables_removed_percent: float = 20

    @classmethod
    def of(cls, settings: StoreSettings, assumptions: AssumptionSettings) -> "Rules":
        """Return the rules that the settings give."""
        return cls(
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
            settings.tables.max_removed_percent,
        )


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a reading comes to.

    `reasons` say why the plan waits for a person; then `plan` holds only what may go out meanwhile
    (availability), and `suspects` are the ids of the items the reasons are about, the worst first.
    `digest` names the plan's content. `needs_whole` asks for the whole export, which a full push
    takes. `first` sums up a menu that the storefront has nothing to compare with.
    """

    comparison: Comparison
    plan: Plan
    digest: str
    reasons: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    approved: bool = False
    needs_whole: bool = False
    summary: Mapping[str, Any] | None = None
    first: MenuSummary | None = None

    @property
    def hold(self) -> Hold | None:
        """The plan that waited until now."""
        return self.comparison.hold


def guard_and_plan(
    comparison: Comparison, rules: Rules, now_ms: int, *, full: bool = False
) -> Assessment:
    """Return the calls that bring the service in line, or why a person has to look first.

    `full`: a full push is asked for, whatever it costs. Takes its time for a large menu: run it
    beside the event loop.
    """
    assessment = _decided(comparison, rules, now_ms, full=full)
    if comparison.totals.items or not comparison.changes.added:
        return assessment
    return replace(assessment, first=MenuSummary.of(comparison.current))


def availability_alone(assessment: Assessment, rules: Rules) -> Assessment:
    """Return what may go out while the service refuses the rest."""
    steps = plan("availability", _meanwhile(assessment.comparison.changes), Catalogue(), rules.plan)
    return replace(assessment, plan=steps, reasons=assessment.reasons or ("",))


def snooze_ended(change: ItemChange, now_ms: int) -> bool:
    """Whether the change is that a snooze, sent to the service with its end, is over."""
    until = change.before.snooze_until
    return change.after.available and until is not None and until <= now_ms


def _decided(comparison: Comparison, rules: Rules, now_ms: int, *, full: bool) -> Assessment:
    if rules.service_restores_snoozed:
        comparison = _without_ended_snoozes(comparison, now_ms)
    changes, hold = comparison.changes, comparison.hold
    if not changes and not full:
        return Assessment(comparison, Plan("nothing"), "")
    digest = ContentDigest(changes).text
    approved = hold is not None and hold.approved and hold.digest == digest
    found = findings(changes, comparison.totals, rules.guard)
    if found and not approved:
        return _held(comparison, rules, digest, found)
    kind: Kind = "full"
    if not full:
        kind = choose(
            changes,
            acknowledged=comparison.totals.items,
            menus=comparison.menus,
            limits=rules.plan,
        )
    if kind == "full" and not comparison.whole:
        return Assessment(comparison, Plan("full"), digest, needs_whole=True)
    target = apply(changes, comparison.acknowledged) if kind == "full" else Catalogue()
    return Assessment(
        comparison, plan(kind, changes, target, rules.plan), digest, approved=approved
    )


def _held(
    comparison: Comparison, rules: Rules, digest: str, found: tuple[Finding, ...]
) -> Assessment:
    changes = comparison.changes
    suspects = tuple(dict.fromkeys(each for finding in found for each in finding.items))
    return Assessment(
        comparison,
        plan("availability", _meanwhile(changes), Catalogue(), rules.plan),
        digest,
        tuple(each.text for each in found),
        suspects,
        summary=summary_of(
            changes, comparison.acknowledged, comparison.current, rules.guard.currency, suspects
        ),
    )


def _without_ended_snoozes(comparison: Comparison, now_ms: int) -> Comparison:
    """Leave out snoozes that the service ends by itself; the availability lane notes them."""
    changed = {
        external_id: change
        for external_id, change in comparison.changes.changed.items()
        if not (change.availability_only and snooze_ended(change, now_ms))
    }
    return replace(comparison, changes=replace(comparison.changes, changed=changed))


def _meanwhile(changes: Diff) -> Diff:
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
