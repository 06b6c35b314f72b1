"""What differs in a floor plan, and whether a person has to look at it first. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import xxhash

from tillbridge.adapter import BadRow, TablesReading
from tillbridge.core.i18n import _, joined
from tillbridge.menu.describe import BadRowView, bad_row_json, listed
from tillbridge.model.restaurant import Table

FEW = 5  # so many tables are a day's moving about, whatever the percentage


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table that stays and is described otherwise."""

    before: Table
    after: Table


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What differs between two floor plans, each part by external id."""

    added: tuple[Table, ...] = ()
    changed: tuple[TableChange, ...] = ()
    removed: tuple[Table, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class TableFields(TypedDict):
    """A table as the till has it."""

    external_id: str
    name: str
    seats: int | None
    zone: str


class TablesChangesView(TypedDict):
    """What differs, each table with its fields."""

    added: list[TableFields]
    changed: list[TableFields]
    removed: list[TableFields]


class TablesPlanView(TypedDict):
    """A plan as `tables plan --json` prints it; `tables` counts all that are wanted."""

    tables: int
    changes: TablesChangesView
    lines: list[str]
    held: list[str]
    approved: bool
    bad_rows: list[BadRowView]


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What a round comes to. `reasons` say why it waits for a person; `digest` names the plan."""

    wanted: tuple[Table, ...]
    changes: TableChanges
    reasons: tuple[str, ...]
    digest: str
    bad_rows: tuple[BadRow, ...] = ()
    approved: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person has to release it first."""
        return bool(self.reasons) and not self.approved

    def to_json(self) -> TablesPlanView:
        """Return the plan as `tables plan --json` prints it."""
        return {
            "tables": len(self.wanted),
            "changes": {
                "added": [_fields(each) for each in self.changes.added],
                "changed": [_fields(each.after) for each in self.changes.changed],
                "removed": [_fields(each) for each in self.changes.removed],
            },
            "lines": list(sentences(self.changes)),
            "held": list(self.reasons),
            "approved": self.approved,
            "bad_rows": [bad_row_json(row) for row in self.bad_rows],
        }


def checked(reading: TablesReading) -> TablesReading:
    """Return the reading with what no adapter should have let through as bad rows."""
    tables: dict[str, Table] = {}
    bad_rows = list(reading.bad_rows)
    for table in reading.tables:
        external_id = table.external_id
        affected_id = external_id
        if not external_id.strip():
            text, fix = _("the table has no id."), _("Give each table an id that does not change.")
        elif external_id in tables:
            text = _("the table {id} appears twice.").format(id=external_id)
            fix, affected_id = _("Give each table a different id. The first one is used."), ""
        elif not table.name.strip():
            text, fix = _("the table has no name."), _("Give it the name that is on the table.")
        else:
            tables[external_id] = table
            continue
        place = _("table {id}").format(id=external_id or "?")
        bad_rows.append(BadRow(place, text, fix, affected_id))
    return TablesReading(tuple(tables.values()), tuple(bad_rows))


def plan_tables(
    reading: TablesReading,
    accepted: Sequence[Table],
    *,
    max_removed_percent: float,
    approved_digest: str = "",
) -> TablePlan:
    """Return what a push would do; `accepted` is what the service has."""
    sound = checked(reading)
    unread = frozenset(row.external_id for row in sound.bad_rows)
    wanted = wanted_tables(sound.tables, accepted, unread)
    changes = table_changes(accepted, wanted)
    digest = _digest(wanted, changes)
    return TablePlan(
        wanted=wanted,
        changes=changes,
        reasons=guard_tables(changes, len(accepted), max_removed_percent=max_removed_percent),
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


def table_changes(before: Sequence[Table], after: Sequence[Table]) -> TableChanges:
    """Return what differs; neither names a table twice."""
    was = {each.external_id: each for each in before}
    now = {each.external_id: each for each in after}
    return TableChanges(
        added=tuple(now[key] for key in sorted(now.keys() - was.keys())),
        changed=tuple(
            TableChange(was[key], now[key])
            for key in sorted(now.keys() & was.keys())
            if was[key] != now[key]
        ),
        removed=tuple(was[key] for key in sorted(was.keys() - now.keys())),
    )


def guard_tables(
    changes: TableChanges, known: int, *, max_removed_percent: float
) -> tuple[str, ...]:
    """Return why the plan must wait for a person; empty if it may go out."""
    removed = len(changes.removed)
    if removed and removed == known and not changes.added:
        text = _("the floor plan has no tables; the storefront has {known} ({names})")
    elif removed > FEW and removed * 100 > max_removed_percent * known:
        text = _("{removed} of {known} tables removed ({names})")
    else:
        return ()
    names = listed([each.name for each in changes.removed])
    return (text.format(removed=removed, known=known, names=names),)


def sentences(changes: TableChanges) -> Iterator[str]:
    """Yield each change as a line that a person reads."""
    for table in changes.added:
        yield f"+ {table.external_id} {_described(table)}"
    for change in changes.changed:
        was, is_now = _described(change.before), _described(change.after)
        yield f"~ {change.after.external_id} {was} -> {is_now}"
    for table in changes.removed:
        yield f"- {table.external_id} {_described(table)}"


def _fields(table: Table) -> TableFields:
    return {
        "external_id": table.external_id,
        "name": table.name,
        "seats": table.seats,
        "zone": table.zone,
    }


def _described(table: Table) -> str:
    seats = "" if table.seats is None else _("{seats} seats").format(seats=table.seats)
    return joined(", ", filter(None, [table.name, seats, table.zone]))


def _digest(wanted: Sequence[Table], changes: TableChanges) -> str:
    text = repr((wanted, [each.external_id for each in changes.removed]))
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))
