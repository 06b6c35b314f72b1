"""Menu pushes: their history, and those of which the end is not known yet.

A push is written down before it is sent, so that after a crash the bridge knows what may have
reached the service. Instants are ms since the epoch.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from tillbridge.ledger.schema import pushes


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
