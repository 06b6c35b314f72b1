"""The floor plan: what a push would change, whether it may go out by itself, and dead codes. Pure.

A push is the whole plan, and the service deactivates the tables that are missing from it
(specification: Tables). So what the POS has is compared with what the service has accepted, and a
plan that takes many tables away waits for a person.

A printed QR code is dead once its table has another one. What was printed is remembered as one
short digest a table: of the code that was on the last sheet or, where none was printed here yet, of
the first code the service gave, which somebody may have printed elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xxhash

from tillbridge.adapter import BadRow, TablesReading
from tillbridge.core.i18n import _
from tillbridge.ledger.models import AcceptedTable
from tillbridge.menu.describe import listed
from tillbridge.model.table import Table

FEW = 5  # so many tables are a day's moving about, whatever the percentage


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table that stays and is described otherwise."""

    before: Table
    after: Table


@dataclass(frozen=True, slots=True)
class FloorChanges:
    """What differs between two floor plans, each part by external id."""

    added: tuple[Table, ...] = ()
    changed: tuple[TableChange, ...] = ()
    removed: tuple[Table, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """What a round comes to. `reasons` say why it waits for a person; `digest` names the plan."""

    wanted: tuple[Table, ...]
    changes: FloorChanges
    reasons: tuple[str, ...]
    digest: str
    bad_rows: tuple[BadRow, ...] = ()
    approved: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person has to release it first."""
        return bool(self.reasons) and not self.approved

    def to_json(self) -> dict[str, Any]:
        """Return the plan as `tables plan --json` prints it."""
        return {
            "tables": len(self.wanted),
            "changes": {
                "added": [_json(each) for each in self.changes.added],
                "changed": [_json(each.after) for each in self.changes.changed],
                "removed": [_json(each) for each in self.changes.removed],
            },
            "lines": list(sentences(self.changes)),
            "held": list(self.reasons),
            "approved": self.approved,
            "bad_rows": [
                {
                    "place": row.place,
                    "text": row.text,
                    "fix": row.fix,
                    "external_id": row.external_id,
                }
                for row in self.bad_rows
            ],
        }


def checked(reading: TablesReading) -> TablesReading:
    """Return the reading with what no adapter should have let through as bad rows."""
    tables: dict[str, Table] = {}
    bad_rows = list(reading.bad_rows)
    for table in reading.tables:
        fault = _fault(table, tables)
        if fault is None:
            tables[table.external_id] = table
        else:
            text, fix = fault
            stands_for = "" if table.external_id in tables else table.external_id
            place = _("table {id}").format(id=table.external_id or "?")
            bad_rows.append(BadRow(place, text, fix, stands_for))
    return TablesReading(tuple(tables.values()), tuple(bad_rows))


def plan_floor(
    reading: TablesReading,
    accepted: Sequence[Table],
    *,
    max_removed_percent: float,
    approved_digest: str = "",
) -> FloorPlan:
    """Return what a push would do; `accepted` is what the service has."""
    sound = checked(reading)
    unread = frozenset(row.external_id for row in sound.bad_rows)
    wanted = wanted_tables(sound.tables, accepted, unread)
    changes = floor_changes(accepted, wanted)
    digest = _digest(wanted, changes)
    return FloorPlan(
        wanted=wanted,
        changes=changes,
        reasons=guard_floor(changes, len(accepted), max_removed_percent=max_removed_percent),
        digest=digest,
        bad_rows=sound.bad_rows,
        approved=digest == approved_digest,
    )


def wanted_tables(
    read: Sequence[Table], accepted: Sequence[Table], unread: frozenset[str]
) -> tuple[Table, ...]:
    """Return the tables as they shall be, by external id; `unread` have a bad row and stay.

    A bad row that may stand for any table ("" in `unread`) lets no table go.
    """
    tables = {each.external_id: each for each in read}
    for each in accepted:
        if each.external_id not in tables and (each.external_id in unread or "" in unread):
            tables[each.external_id] = each
    return tuple(tables[external_id] for external_id in sorted(tables))


def floor_changes(before: Sequence[Table], after: Sequence[Table]) -> FloorChanges:
    """Return what differs; neither names a table twice."""
    was = {each.external_id: each for each in before}
    now = {each.external_id: each for each in after}
    return FloorChanges(
        added=tuple(now[key] for key in sorted(now.keys() - was.keys())),
        changed=tuple(
            TableChange(was[key], now[key])
            for key in sorted(now.keys() & was.keys())
            if was[key] != now[key]
        ),
        removed=tuple(was[key] for key in sorted(was.keys() - now.keys())),
    )


def guard_floor(
    changes: FloorChanges, known: int, *, max_removed_percent: float
) -> tuple[str, ...]:
    """Return why the plan must wait for a person; empty if it may go out."""
    removed = len(changes.removed)
    if not removed:
        return ()
    names = listed([each.name for each in changes.removed])
    if removed == known and not changes.added:
        return (
            _("the floor plan has no tables, and the storefront has {known} ({names})").format(
                known=known, names=names
            ),
        )
    if removed > FEW and removed * 100 > max_removed_percent * known:
        return (
            _("it takes away {removed} of {known} tables ({names})").format(
                removed=removed, known=known, names=names
            ),
        )
    return ()


def sentences(changes: FloorChanges) -> Iterator[str]:
    """Yield each change as a line that a person reads."""
    for table in changes.added:
        yield f"+ {table.external_id} {_described(table)}"
    for change in changes.changed:
        yield (
            f"~ {change.after.external_id} {_described(change.before)}"
            f" -> {_described(change.after)}"
        )
    for table in changes.removed:
        yield f"- {table.external_id} {_described(table)}"


def _fault(table: Table, above: dict[str, Table]) -> tuple[str, str] | None:
    """Return what is wrong with a table, and what to do; None for a sound one."""
    if not table.external_id.strip():
        return _("the table has no id."), _("Give each table an id that stays.")
    if table.external_id in above:
        return (
            _("the table {id} is there twice.").format(id=table.external_id),
            _("Give each table an id of its own; the first one counts."),
        )
    if not table.name.strip():
        return _("the table has no name."), _("Give it the name that guests read on it.")
    seats: object = table.seats  # whatever an adapter has put there
    if seats is not None and (isinstance(seats, bool) or not isinstance(seats, int) or seats < 0):
        return (
            _("seats is {seats!r}, which is no whole number.").format(seats=seats),
            _("Give the number of seats, or nothing."),
        )
    return None


def _described(table: Table) -> str:
    parts = [
        table.name,
        "" if table.seats is None else _("{seats} seats").format(seats=table.seats),
        table.zone,
    ]
    return ", ".join(filter(None, parts))


def _digest(wanted: Sequence[Table], changes: FloorChanges) -> str:
    text = repr((wanted, [each.external_id for each in changes.removed]))
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def _json(table: Table) -> dict[str, Any]:
    return {
        "external_id": table.external_id,
        "name": table.name,
        "seats": table.seats,
        "zone": table.zone,
    }


def known_codes(
    printed: Mapping[str, str], before: Sequence[AcceptedTable], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes after a push: a table without one gets the first it ever had."""
    known = dict(printed)
    for each in (*before, *now):
        if each.code:
            known.setdefault(each.table.external_id, each.code)
    return known


def dead_codes(printed: Mapping[str, str], now: Sequence[AcceptedTable]) -> tuple[str, ...]:
    """Return the names of the tables whose printed code is not their code any more."""
    return tuple(
        each.table.name
        for each in now
        if each.code and printed.get(each.table.external_id, each.code) != each.code
    )


def after_printing(
    printed: Mapping[str, str], sheet: Mapping[str, str], now: Sequence[AcceptedTable]
) -> dict[str, str]:
    """Return the printed codes once a sheet with these is made; tables nobody knows are left."""
    known = {each.table.external_id for each in now}
    return {**printed, **{key: code for key, code in sheet.items() if key in known}}
