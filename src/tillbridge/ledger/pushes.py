"""Menu pushes: their history, and those of which the end is not known yet.

A push is written down before it is sent, so that after a crash the bridge knows what may have
reached the service. Instants are ms since the epoch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.schema import holds, pushes


@dataclass(frozen=True, slots=True)
class Push:
    """A push.

    `kind`: full, batch, patch, availability; `state`: running, success, partial, failed, lost.
    """

    id: int
    kind: str
    started_at: int
    finished_at: int | None
    state: str
    summary: Mapping[str, Any]
    message: str
    job_id: str | None
    poll_url: str | None


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
    push_id: int = connection.execute(
        insert(pushes)
        .values(
            store=store,
            kind=kind,
            started_at=at,
            state="running",
            summary=json.dumps(dict(summary), ensure_ascii=False),
            pending=pending,
        )
        .returning(pushes.c.id)
    ).scalar_one()
    return push_id


def push_became_job(
    connection: Connection, push_id: int, *, job_id: str, poll_url: str, pending: str
) -> None:
    """The service took the push as a job; `pending` is what is acknowledged when it succeeds."""
    connection.execute(
        update(pushes)
        .where(pushes.c.id == push_id)
        .values(job_id=job_id, poll_url=poll_url, pending=pending)
    )


def end_push(connection: Connection, push_id: int, state: str, message: str, *, at: int) -> None:
    """Write down how the push ended, with the service's own words."""
    connection.execute(
        update(pushes)
        .where(pushes.c.id == push_id)
        .values(state=state, message=message, finished_at=at, pending=None)
    )


def running_pushes(connection: Connection, store: str) -> tuple[Push, ...]:
    """Return the pushes of which the end is not known, oldest first."""
    return _pushes(
        connection,
        select(pushes)
        .where(pushes.c.store == store, pushes.c.state == "running")
        .order_by(pushes.c.id),
    )


def pending_of(connection: Connection, push_id: int) -> str | None:
    """Return what the push carries while its end is open."""
    return connection.execute(select(pushes.c.pending).where(pushes.c.id == push_id)).scalar()


def push_page(
    connection: Connection, store: str, limit: int, *, before: int | None = None
) -> tuple[Push, ...]:
    """Return the latest pushes before the one with this id, newest first."""
    query = select(pushes).where(pushes.c.store == store)
    if before is not None:
        query = query.where(pushes.c.id < before)
    return _pushes(connection, query.order_by(pushes.c.id.desc()).limit(limit))


def _pushes(connection: Connection, query: Any) -> tuple[Push, ...]:  # noqa: ANN401 -- a select of any columns
    return tuple(_push(row) for row in connection.execute(query))


def _push(row: Row[Any]) -> Push:
    return Push(
        id=row.id,
        kind=row.kind,
        started_at=row.started_at,
        finished_at=row.finished_at,
        state=row.state,
        summary=json.loads(row.summary),
        message=row.message,
        job_id=row.job_id,
        poll_url=row.poll_url,
    )


# -- holds: a plan that waits for a person, at most one a store


DISMISSED = "menu_dismissed"  # the fact: the plan a person did not want {digest, by, at}


@dataclass(frozen=True, slots=True)
class Hold:
    """A plan that waits. `digest` names its content; `approved` tells that a person released it."""

    digest: str
    since: int
    reasons: tuple[str, ...]
    summary: Mapping[str, Any]
    approved: bool


def get_hold(connection: Connection, store: str) -> Hold | None:
    """Return the plan that waits, or is released and not yet pushed."""
    row = connection.execute(select(holds).where(holds.c.store == store)).one_or_none()
    if row is None:
        return None
    return Hold(
        digest=row.digest,
        since=row.since,
        reasons=tuple(json.loads(row.reasons)),
        summary=json.loads(row.summary),
        approved=row.approved_digest == row.digest,
    )


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
    statement = insert(holds).values(
        store=store,
        digest=digest,
        since=at,
        reasons=json.dumps(list(reasons), ensure_ascii=False),
        summary=json.dumps(dict(summary), ensure_ascii=False),
        approved_digest=None,
    )
    new = statement.excluded
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[holds.c.store],
            set_={"digest": new.digest, "reasons": new.reasons, "summary": new.summary},
        )
    )


def approve_hold(connection: Connection, store: str) -> Hold | None:
    """Release the plan that waits; None where none does."""
    connection.execute(
        update(holds).where(holds.c.store == store).values(approved_digest=holds.c.digest)
    )
    drop_fact(connection, store, DISMISSED)
    return get_hold(connection, store)


def carry_approval(connection: Connection, store: str, digest: str) -> None:
    """Let an approval stand for what is left of its plan after a part was accepted."""
    connection.execute(
        update(holds)
        .where(holds.c.store == store, holds.c.approved_digest == holds.c.digest)
        .values(digest=digest, approved_digest=digest)
    )


def dismiss_hold(connection: Connection, store: str, *, by: str, at: int) -> Hold | None:
    """Note that the person `by` does not want the plan that waits; None where none does.

    It is not offered again: a plan with other content is.
    """
    hold = get_hold(connection, store)
    if hold is None or hold.approved:
        return None
    kept = {"digest": hold.digest, "by": by, "at": at}
    put_fact(connection, store, DISMISSED, kept, at=at)
    return hold


def is_dismissed(connection: Connection, store: str, digest: str) -> bool:
    """Return whether a person did not want the plan with this content."""
    kept = get_fact(connection, store, DISMISSED)
    return isinstance(kept, Mapping) and kept.get("digest") == digest


def drop_hold(connection: Connection, store: str) -> None:
    """Nothing waits any more."""
    connection.execute(delete(holds).where(holds.c.store == store))
