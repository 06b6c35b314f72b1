"""Holds: a menu plan that waits for a person, at most one a store. Instants are ms."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.schema import holds

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
