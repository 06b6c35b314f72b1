"""What is wrong with an export, as the problems that people see: the same for all who read one."""

from collections.abc import Sequence

from tillbridge.adapter import BadRow, ExportUnreadable
from tillbridge.core.i18n import _
from tillbridge.core.problems import Found


def unreadable_problem(subject: str, failure: ExportUnreadable) -> Found:
    """Return the problem of an export (menu, availability, tables) that cannot be read at all."""
    place = f"{failure.place}: " if failure.place else ""
    return Found(
        "export.unreadable",
        subject,
        {
            "detail": f"{place}{failure.text}",
            "remedy": failure.fix or _("Export again from the till."),
        },
    )


def bad_rows_problem(subject: str, bad_rows: Sequence[BadRow]) -> Found:
    """Return the problem of rows that cannot be read; there is one at least."""
    first = bad_rows[0]
    return Found(
        "export.bad_rows",
        subject,
        {
            "count": len(bad_rows),
            "detail": f"{first.place}: {first.text}",
            "remedy": first.fix or _("Mend the row in the till and export again."),
        },
    )
