"""The audit trail: who did what, each entry chained to the one before by its hash.

An entry that is changed, removed or put in breaks the chain where it stood; the fact `audit_head`
tells that entries are missing at the end. What this does not protect against: docs/decisions.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select

from tillbridge.core.i18n import _
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.schema import audit

FIRST = "0" * 64  # what the first entry follows
_HEAD = "audit_head"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that was done. `who` is "page:NAME", "command:OS USER" or "bridge".

    `target` is an id (order, item, table); `detail` holds no customer's data and no secret.
    """

    action: str
    who: str
    role: str = ""
    store: str = ""
    target: str = ""
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the trail; `at` in ms since the epoch, `previous` the hash it follows."""

    id: int
    at: int
    act: Act
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Break:
    """Where the chain breaks: the first entry that does not fit (its id), and why."""

    entry: int
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking the chain: how many entries, the last hash, and the first break."""

    entries: int
    head: str
    broken: Break | None = None


def append(connection: Connection, act: Act, *, at: int) -> AuditEntry:
    """Add an entry; call it inside a job of the ledger's one writer."""
    last = connection.execute(
        select(audit.c.id, audit.c.hash).order_by(audit.c.id.desc()).limit(1)
    ).first()
    number, previous = (1, FIRST) if last is None else (last.id + 1, last.hash)
    digest = chained(number, at, act, previous)
    connection.execute(
        insert(audit).values(
            id=number,
            at=at,
            who=act.who,
            role=act.role,
            action=act.action,
            store=act.store,
            target=act.target,
            detail=_canonical(act.detail or {}),
            previous=previous,
            hash=digest,
        )
    )
    put_fact(connection, "", _HEAD, {"id": number, "hash": digest}, at=at)
    return AuditEntry(number, at, act, previous, digest)


def chained(number: int, at: int, act: Act, previous: str) -> str:
    """Return the entry's hash: SHA-256 over its canonical JSON, the previous hash included."""
    fields = {
        "id": number,
        "at": at,
        "who": act.who,
        "role": act.role,
        "action": act.action,
        "store": act.store,
        "target": act.target,
        "detail": act.detail or {},
        "previous": previous,
    }
    return hashlib.sha256(_canonical(fields).encode()).hexdigest()


def latest(
    connection: Connection, limit: int = 100, *, before: int | None = None
) -> list[AuditEntry]:
    """Return the last entries, newest first; those before the entry `before` for more."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    return list(_entries(connection, query if before is None else query.where(audit.c.id < before)))


def check(connection: Connection) -> Checked:
    """Walk the whole chain, and say where it breaks first."""
    number, head = 0, FIRST
    for entry in _entries(connection, select(audit).order_by(audit.c.id)):
        fault = ""
        if entry.id != number + 1:
            fault = _("Entries are missing before this one.")
        elif entry.previous != head:
            fault = _("It does not follow the entry before it: one of the two was changed.")
        elif entry.hash != chained(entry.id, entry.at, entry.act, entry.previous):
            fault = _("It was changed after it was written.")
        if fault:
            return Checked(number, head, Break(entry.id, fault))
        number, head = entry.id, entry.hash
    told = get_fact(connection, "", _HEAD)
    known = (told.get("id"), told.get("hash")) if isinstance(told, dict) else (0, FIRST)
    if known != (number, head):
        return Checked(number, head, Break(number + 1, _("Entries are missing at the end.")))
    return Checked(number, head)


def _entries(connection: Connection, query: Select[Any]) -> Iterator[AuditEntry]:
    for row in connection.execute(query):
        yield _entry(row)


def _entry(row: Row[Any]) -> AuditEntry:
    try:
        detail = json.loads(row.detail)
    except ValueError:
        detail = {"unreadable": True}  # then the hash does not fit either
    act = Act(row.action, row.who, row.role, row.store, row.target, detail)
    return AuditEntry(row.id, row.at, act, row.previous, row.hash)


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
