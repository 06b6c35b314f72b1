"""Menu pushes: their history, and those of which the end is not known yet.

A push is written down before it is sent, so that after a crash the bridge knows what may have
reached the service. Instants are ms since the epoch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlmodel import col

from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.models import Hold, Push, all_rows, first_row, upsert


def begin_push(
    connection: Connection,
    store: str,
    kind: str,
    summary: Mapping[str, Any],
    pending: str,
    *,
    at: int,
) -> int:
    """Write down that a push is about to be sent; return its id."""
    return connection.execute(
        insert(Push)
        .values(
            store=store,
            kind=kind,
            started_at=at,
            state="running",
            summary=summary,
            pending=pending,
        )
        .returning(col(Push.id))
    ).scalar_one()


def push_became_job(
    connection: Connection, push_id: int, *, job_id: str, poll_url: str, pending: str
) -> None:
    """The service took the push as a job; `pending` is what is acknowledged when it succeeds."""
    connection.execute(
        update(Push).filter_by(id=push_id).values(job_id=job_id, poll_url=poll_url, pending=pending)
    )


def end_push(connection: Connection, push_id: int, state: str, message: str, *, at: int) -> None:
    """Write down how the push ended, with the service's own words."""
    connection.execute(
        update(Push)
        .filter_by(id=push_id)
        .values(state=state, message=message, finished_at=at, pending=None)
    )


def running_pushes(connection: Connection, store: str) -> list[Push]:
    """Return the pushes of which the end is not known, oldest first."""
    return all_rows(
        connection,
        select(Push).filter_by(store=store, state="running").order_by(col(Push.id)),
    )


def pending_of(connection: Connection, push_id: int) -> str | None:
    """Return what the push carries while its end is open."""
    return connection.scalar(select(col(Push.pending)).filter_by(id=push_id))


def push_page(
    connection: Connection, store: str, limit: int, *, before: int | None = None
) -> list[Push]:
    """Return the latest pushes before the one with this id, newest first."""
    query = select(Push).filter_by(store=store)
    if before is not None:
        query = query.where(col(Push.id) < before)
    return all_rows(connection, query.order_by(col(Push.id).desc()).limit(limit))


def push_counts(connection: Connection) -> list[tuple[str, str, int]]:
    """Return how many pushes each store has in each state."""
    key = col(Push.store), col(Push.state)
    rows = connection.execute(select(*key, func.count()).group_by(*key))
    return [(store, state, count) for store, state, count in rows]


# -- holds: a plan that waits for a person, at most one a store


DISMISSED = "menu_dismissed"  # the fact: the plan a person did not want {digest, by, at}


def get_hold(connection: Connection, store: str) -> Hold | None:
    """Return the plan that waits, or is released and not yet pushed."""
    return first_row(connection, select(Hold).filter_by(store=store))


def put_hold(
    connection: Connection,
    store: str,
    digest: str,
    reasons: Sequence[str],
    summary: Mapping[str, Any],
    *,
    at: int,
) -> None:
    """Let the plan wait, in place of an older one; another content loses an approval."""
    hold = Hold(store=store, digest=digest, since=at, reasons=list(reasons), summary=summary)
    connection.execute(upsert(Hold, "digest", "reasons", "summary"), dict(hold))


def approve_hold(connection: Connection, store: str) -> Hold | None:
    """Release the plan that waits; None where none does."""
    connection.execute(update(Hold).filter_by(store=store).values(approved_digest=col(Hold.digest)))
    drop_fact(connection, store, DISMISSED)
    return get_hold(connection, store)


def carry_approval(connection: Connection, store: str, digest: str) -> None:
    """Let an approval stand for what is left of its plan after a part was accepted."""
    connection.execute(
        update(Hold)
        .filter_by(store=store)
        .where(col(Hold.approved_digest) == col(Hold.digest))
        .values(digest=digest, approved_digest=digest)
    )


def dismiss_hold(connection: Connection, store: str, *, by: str, at: int) -> Hold | None:
    """Note that the person `by` does not want the plan that waits; None where none does.

    It is not offered again: a plan with other content is.
    """
    hold = get_hold(connection, store)
    if hold is None or hold.approved:
        return None
    dismissed = {"digest": hold.digest, "by": by, "at": at}
    put_fact(connection, store, DISMISSED, dismissed, at=at)
    return hold


def is_dismissed(connection: Connection, store: str, digest: str) -> bool:
    """Return whether a person did not want the plan with this content."""
    dismissed = get_fact(connection, store, DISMISSED)
    return isinstance(dismissed, Mapping) and dismissed.get("digest") == digest


def drop_hold(connection: Connection, store: str) -> None:
    """Nothing waits any more."""
    connection.execute(delete(Hold).filter_by(store=store))
