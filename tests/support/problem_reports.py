"""One problem of a tracker opened or closed, as the state of a flow would."""

from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.problems import ProblemTracker


def report_open(
    tracker: ProblemTracker, code: str, store: str = "", subject: str = "", **detail: object
) -> None:
    """Report that this problem is there."""
    tracker.report(Scope.of_one(code, store, subject), [Found(code, subject, detail)])


def report_over(tracker: ProblemTracker, code: str, store: str = "", subject: str = "") -> None:
    """Report that this problem is not there any more."""
    tracker.report(Scope.of_one(code, store, subject), ())
