"""The audit trail: who did what, each entry chained to the previous one by its hash.

Changing, removing or inserting an entry breaks the chain at that place; the fact `audit_head` shows
missing entries at the end. What this does not protect against: docs/decisions.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, insert, select
from sqlmodel import Session, col

from tillbridge.core.actor import Actor, acting_as, current_actor
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.database import all_rows
from tillbridge.ledger.facts import get_fact, hold_fact, put_fact
from tillbridge.ledger.models import AuditEntry
from tillbridge.model.instant import to_iso

if TYPE_CHECKING:
    from tillbridge.ledger.ledger import Ledger

log = get_logger()

FIRST = "0" * 64  # the predecessor of the first entry
_HEAD = "audit_head"
_AT_ONCE = 1000  # entries held in memory


@dataclass(frozen=True, slots=True)
class Act:
    """An action. `who` is "page:NAME", "command:OS USER" or "bridge".

    `target` is an id (order, item, table); `detail` contains no customer data and no secret.
    """

    action: str
    who: str
    role: str = ""
    store: str = ""
    target: str = ""
    detail: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """Where the chain breaks: the id of the first entry that does not fit, and why."""

    entry: int
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking the chain: number of entries, last hash, and the first break."""

    entries: int
    head: str
    broken: Break | None = None


def append(connection: Connection, act: Act, *, at: int) -> AuditEntry:
    """Add an entry; call it inside a job of the ledger's one writer."""
    hold_fact(connection, "", _HEAD, at=at)  # the chain grows at one bridge at a time
    query = select(col(AuditEntry.id), col(AuditEntry.hash)).order_by(col(AuditEntry.id).desc())
    number, previous = connection.execute(query.limit(1)).one_or_none() or (0, FIRST)
    entry = AuditEntry(
        id=number + 1,
        at=at,
        who=act.who,
        role=act.role,
        action=act.action,
        store=act.store,
        target=act.target,
        detail=_canonical(act.detail or {}),
        previous=previous,
        hash="",
    )
    entry.hash = chained(entry)
    connection.execute(insert(AuditEntry).values(dict(entry)))
    put_fact(connection, "", _HEAD, {"id": entry.id, "hash": entry.hash}, at=at)
    return entry


def chained(entry: AuditEntry) -> str:
    """Return the entry's hash: SHA-256 of its canonical JSON, including the previous hash."""
    fields = {**entry.model_dump(exclude={"hash"}), "detail": entry.details}
    return hashlib.sha256(_canonical(fields).encode()).hexdigest()


def to_json(entry: AuditEntry, **more: str) -> dict[str, Any]:
    """Return an entry as JSON values, with what `more` is known of its target."""
    named = entry.model_dump(include={"who", "role", "action", "store", "target"}) | more
    at, detail = to_iso(entry.at), dict(entry.details)
    return {"id": entry.id, "at": at, **named, "detail": detail, "hash": entry.hash}


def latest(
    connection: Connection,
    limit: int = 100,
    *,
    before: int | None = None,
    who: str = "",
    action: str = "",
    store: str = "",
) -> list[AuditEntry]:
    """Return the last entries, newest first; with `before`, those before that entry.

    Optionally only those of one actor, of one store, or of actions whose name starts with `action`.
    """
    query = select(AuditEntry).order_by(col(AuditEntry.id).desc()).limit(limit)
    if before is not None:
        query = query.where(col(AuditEntry.id) < before)
    if who:
        query = query.where(col(AuditEntry.who) == who)
    if action:
        query = query.where(col(AuditEntry.action).startswith(action, autoescape=True))
    if store:
        query = query.where(col(AuditEntry.store) == store)
    return all_rows(connection, query)


def actors(connection: Connection) -> list[str]:
    """Return the names of everybody who ever did something."""
    query = select(col(AuditEntry.who)).distinct().order_by(col(AuditEntry.who))
    return list(connection.execute(query).scalars())


def check(connection: Connection) -> Checked:
    """Check the whole chain; report where it breaks first."""
    number, head = 0, FIRST
    for entry in _walk(connection):
        fault = ""
        if entry.id != number + 1:
            fault = _("Entries are missing before this one.")
        elif entry.previous != head:
            fault = _("It does not follow the entry before it: one of the two was changed.")
        elif entry.hash != chained(entry):
            fault = _("It was changed after it was written.")
        if fault:
            return Checked(number, head, Break(entry.id, fault))
        number, head = entry.id, entry.hash
    head_fact = get_fact(connection, "", _HEAD)
    known = (
        (head_fact.get("id"), head_fact.get("hash")) if isinstance(head_fact, dict) else (0, FIRST)
    )
    if known != (number, head):
        return Checked(number, head, Break(number + 1, _("Entries are missing at the end.")))
    return Checked(number, head)


def _walk(connection: Connection) -> Iterator[AuditEntry]:
    with Session(connection) as session:
        entries = session.scalars(select(AuditEntry).order_by(col(AuditEntry.id)))
        for portion in entries.partitions(_AT_ONCE):
            yield from portion
            session.expunge_all()


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# -- where what people do is written down, and what the bridge does by itself


class AuditTrail:
    """The audit trail of a ledger."""

    def __init__(self, ledger: "Ledger", clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def own(self, action: str, store: str, **about: Any) -> None:  # noqa: ANN401 -- as `note`
        """Add what the bridge has done by itself, as what people do is added."""
        with acting_as(Actor()):
            await self.note(action, store=store, **about)

    async def note(
        self, action: str, *, store: str = "", target: str = "", ok: bool = True, **detail: object
    ) -> None:
        """Add an entry; the log has its hash too, so that the ledger has a witness.

        Never raises: what was done is done, and the log has a failure.
        """
        doer = current_actor()
        doer.noted = True
        logged = {"ok": ok, **detail}
        role = "" if doer.role is None else doer.role.word
        act = Act(action, doer.who, role, store, target, logged)
        at = self._clock.now_ms()
        try:
            entry = await self._ledger.write(append, act, at=at)
        except LedgerError:
            log.error("audit.not_written", action=action, who=doer.who, store=store, target=target)
            return
        log.info(
            "audit.noted",
            entry=entry.id,
            action=action,
            who=doer.who,
            store=store,
            digest=entry.hash,
        )
