"""Problems that are over: what the page's day shows. Instants are ms since the epoch."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from tillbridge.ledger.schema import problem_history


@dataclass(frozen=True, slots=True)
class PastProblem:
    """A problem that was open from `since` to `until`."""

    code: str
    store: str
    subject: str
    since: int
    until: int


def keep_past(connection: Connection, past: PastProblem) -> None:
    """Remember a problem that is over; of one that ended before it began nothing is left."""
    if past.until > past.since:
        connection.execute(
            insert(problem_history).values(
                code=past.code,
                store=past.store,
                subject=past.subject,
                since=past.since,
                until=past.until,
            )
        )


def past_problems(connection: Connection, *, ended_after: int) -> list[PastProblem]:
    """Return what ended after that instant, oldest first."""
    rows = connection.execute(
        select(problem_history)
        .where(problem_history.c.until > ended_after)
        .order_by(problem_history.c.since)
    )
    return [PastProblem(row.code, row.store, row.subject, row.since, row.until) for row in rows]
