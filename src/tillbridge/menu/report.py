"""What a round would do, for `tillbridge menu plan`: in words and as JSON."""

from dataclasses import dataclass
from typing import Any

from tillbridge.menu.assess import Assessment
from tillbridge.menu.describe import calls_of, changes_json, counts_of, sentences, summary_lines
from tillbridge.model.catalogue import BadRow


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan that is only looked at. `reasons` say why it would wait for a person.

    `first` sums up a first import in sentences, and `summary` as JSON; else they are empty.
    """

    kind: str
    items_read: int
    counts: dict[str, int]
    lines: tuple[str, ...]
    changes: dict[str, Any]
    calls: list[dict[str, Any]]
    reasons: tuple[str, ...]
    approved: bool
    bad_rows: tuple[BadRow, ...]
    first: tuple[str, ...] = ()
    summary: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as `menu plan --json` prints it; prices in minor units."""
        return {
            "kind": self.kind,
            "items_read": self.items_read,
            "counts": self.counts,
            "changes": self.changes,
            "calls": self.calls,
            "held": list(self.reasons),
            "approved": self.approved,
            "first_import": self.summary,
            "first_import_lines": list(self.first),
            "bad_rows": [
                {
                    "place": row.place,
                    "text": row.text,
                    "fix": row.fix,
                    "external_id": row.external_id,
                }
                for row in self.bad_rows
            ],
        }


def report_of(assessment: Assessment, currency: str) -> PlanReport:
    """Return the report of an assessment."""
    comparison, first = assessment.comparison, assessment.first
    changes = comparison.changes
    return PlanReport(
        kind="held" if assessment.reasons else assessment.plan.kind,
        items_read=comparison.items_read,
        counts=counts_of(changes),
        lines=tuple(
            sentences(
                changes,
                comparison.acknowledged,
                comparison.current,
                currency,
                assessment.suspects,
            )
        ),
        changes=changes_json(changes),
        calls=calls_of(assessment.plan),
        reasons=assessment.reasons,
        approved=assessment.approved,
        bad_rows=comparison.bad_rows,
        first=() if first is None else tuple(summary_lines(first, currency)),
        summary=None if first is None else first.to_json(currency),
    )
