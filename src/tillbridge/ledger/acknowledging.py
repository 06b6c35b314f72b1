"""Takes note of problems: alerts stop, the page still shows them.

It counts for the very problem that was open then: by `since` it is told from a later one.
"""

from collections.abc import Iterable

from sqlalchemy import Connection

from tillbridge.ledger.acknowledgement import FACT, by_problem, row_of
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.open_problem import OpenProblem


def acknowledge(
    connection: Connection,
    which: Iterable[OpenProblem],
    open_now: Iterable[OpenProblem],
    *,
    by: str,
    at: int,
) -> None:
    """Take note of `which` at `at` (ms); what is open no more is forgotten."""
    present = {row_of(each) for each in open_now}
    noted = {row_of(each): {"at": at, "by": by} for each in which}
    rows = [
        {"code": code, "store": store, "subject": subject, "since": since, **told}
        for (code, store, subject, since), told in {
            **noted,
            **by_problem(get_fact(connection, "", FACT)),
        }.items()
        if (code, store, subject, since) in present
    ]
    put_fact(connection, "", FACT, rows, at=at)
