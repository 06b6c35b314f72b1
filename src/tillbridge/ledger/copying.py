"""A ledger copied from the data folder to a database server, or back, with nobody using either.

Row by row in the order of the primary keys, a portion a transaction, with how far it is in the
mark of the copy (`facts.mark_of`): a copy that was cut off goes on where it was. Then the rows of
both are counted and summed up to a digest, and only then the copy counts, and the other does not.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import xxhash
from sqlalchemy import (
    Boolean,
    Connection,
    Table,
    column,
    func,
    insert,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.expression import TableClause

from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.facts import PLACE, SHARED_FACTS, mark_of, put_mark
from tillbridge.ledger.models import metadata
from tillbridge.ledger.vault import Vault

log = get_logger()

# Of the bridges that run, and of their secrets, which the vault copies.
_NOT_COPIED = {"bridges", "leases", "requests", "secrets"}
# Where one of several bridges has rows of its own; the audit trail is one chain for all.
_OWN_ROWS = {"facts", "problems", "problem_history"}
_PORTION = 500  # rows; some have an order's whole text

Report = Callable[[str, int, int], None]
"""Is told what is under way, and how many rows of how many are done."""

_Row = tuple[Any, ...]


def insert_rows(connection: Connection, into: TableClause, rows: Sequence[_Row]) -> None:
    """Insert rows, whose values are those of all columns. Raises DBAPIError."""
    names = [each.name for each in into.columns]
    connection.execute(insert(into), [dict(zip(names, row, strict=True)) for row in rows])


@dataclass(frozen=True, slots=True)
class Side:
    """A ledger that nobody else uses. `place` names it for people.

    `begin` is SQL that begins a transaction on `connection`, which begins none by itself. `vault`
    opens its secrets, and makes them if there are none. `own` is the store of the bridge's own rows
    (`facts.own_key`). `insert` is the quickest way to insert rows. `as_stored` returns a text as
    this database can store it. `finish` makes a copy usable after its last transaction.
    """

    place: str
    connection: Connection
    begin: str
    vault: Callable[[], Vault]
    own: str = ""
    insert: Callable[[Connection, TableClause, Sequence[_Row]], None] = insert_rows
    as_stored: Callable[[str], str] = str
    finish: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Copied:
    """What was copied: rows by table, and the number of secrets."""

    rows: dict[str, int] = field(default_factory=dict)
    secrets: int = 0


def copy_ledger(source: Side, target: Side, *, at: int, report: Report) -> Copied:
    """Copy the ledger and its secrets, or go on with that; then `target` counts. Blocks.

    `at` is now (ms). Raises ConfigError if these two cannot be copied, LedgerError if a copy is not
    the same or a database refuses; the source then still counts.
    """
    mark = _begun(source, target, at)
    todo = [each for each in metadata.sorted_tables if each.name not in _NOT_COPIED]
    totals = {each.name: _count(source.connection, each) for each in todo}
    whole = 2 * sum(totals.values())  # copied, and compared
    done = 0
    for each in todo:
        report_rows = partial(
            _report_rows, report, _("Copying {table}").format(table=each.name), done, whole
        )
        _copy(source, target, each, mark, at, report_rows)
        done += totals[each.name]
    copied = Copied()
    for each in todo:
        report_rows = partial(
            _report_rows, report, _("Comparing {table}").format(table=each.name), done, whole
        )
        copied.rows[each.name] = _compare(source, target, each, report_rows)
        done += totals[each.name]
    copied.secrets = _copy_secrets(source.vault(), target.vault())
    _set_sequences(target.connection, todo)
    with _transaction(source):
        put_mark(source.connection, {"moved_to": target.place, "id": mark["id"]}, at=at)
    with _transaction(target):
        put_mark(target.connection, {}, at=at)
    target.finish()
    log.info("ledger.copied", place=target.place, secrets=copied.secrets, **copied.rows)
    return copied


def _report_rows(report: Report, what: str, before: int, whole: int, done: int) -> None:
    report(what, before + done, whole)


def _begun(source: Side, target: Side, at: int) -> dict[str, Any]:
    """Return the mark of the copy, begun now or before."""
    theirs, ours = mark_of(target.connection), mark_of(source.connection)
    if "copied_from" in theirs:
        if theirs["copied_from"] != source.place:
            raise ConfigError(
                _("{target} is an unfinished copy of {other}, not of {source}.").format(
                    target=target.place, other=theirs["copied_from"], source=source.place
                ),
                fix=_("Delete it, and begin again."),
            )
        return dict(theirs)
    if "copied_from" in ours:
        raise ConfigError(
            _("{source} is itself an unfinished copy of {other}.").format(
                source=source.place, other=ours["copied_from"]
            ),
            fix=_("Finish that one first, or delete it."),
        )
    if "moved_to" in ours:
        raise ConfigError(
            _("{source} was copied to {other}, which counts from then on.").format(
                source=source.place, other=ours["moved_to"]
            ),
            fix=_("Copy that one: set url in [ledger] as it is for it."),
        )
    mark = {"copied_from": source.place, "id": secrets.token_hex(8), "tables": {}}
    with _transaction(target):
        put_mark(target.connection, mark, at=at)
    return mark


@contextlib.contextmanager
def _transaction(side: Side) -> Iterator[None]:
    sql = side.connection.exec_driver_sql
    sql(side.begin)
    try:
        yield
        sql("COMMIT")
    except BaseException:
        with contextlib.suppress(DBAPIError):
            sql("ROLLBACK")
        raise


# -- rows


def _plain(of: Table) -> TableClause:
    """Return the table without the types of its columns: values are copied as they are stored."""
    return table(of.name, *(column(each.name) for each in of.columns))


def _keys(of: Table, plain: TableClause) -> list[ColumnElement[Any]]:
    return [plain.c[each.name] for each in of.primary_key.columns]


def _portions(
    side: Side, of: Table, stored_by: Side, after: Sequence[Any] | None = None
) -> Iterator[tuple[list[_Row], list[Any]]]:
    """Yield the rows, as `stored_by` stores them, in portions, each with the last one's key."""
    plain = _plain(of)
    keys = _keys(of, plain)
    places = [list(of.columns).index(each) for each in of.primary_key.columns]
    query = select(plain).order_by(*keys).limit(_PORTION)
    adopt = _adopter(of, side.own, stored_by.own)
    convert = [_converter(each.type, stored_by) for each in of.columns]
    while True:
        further = query if after is None else query.where(tuple_(*keys) > tuple(after))
        read = [tuple(row) for row in side.connection.execute(further)]
        if not read:
            return
        after = [read[-1][place] for place in places]
        rows = [tuple(f(value) for f, value in zip(convert, row, strict=True)) for row in read]
        yield [adopt(row) for row in rows if not _is_mark(of, row)], list(after)


def _is_mark(of: Table, row: _Row) -> bool:
    return of.name == "facts" and row[:2] == PLACE


def _adopter(of: Table, own: str, new_own: str) -> Callable[[_Row], _Row]:
    """Return what changes whose a row is, where it is the bridge's own."""
    if own == new_own or of.name not in _OWN_ROWS:
        return lambda row: row
    names = [each.name for each in of.columns]
    place, name = names.index("store"), names.index("name") if "name" in names else None

    def adopted(row: _Row) -> _Row:
        is_shared = name is not None and row[name] in SHARED_FACTS
        if row[place] != own or is_shared:
            return row
        return (*row[:place], new_own, *row[place + 1 :])

    return adopted


def _converter(kind: Any, target: Side) -> Callable[[Any], Any]:  # noqa: ANN401 -- any column type, any value
    def convert(value: Any) -> Any:  # noqa: ANN401 -- (as above)
        if isinstance(value, str):
            return target.as_stored(value)
        if isinstance(kind, Boolean) and value is not None:
            return bool(value)
        return bytes(value) if isinstance(value, memoryview) else value

    return convert


def _copy(
    source: Side,
    target: Side,
    of: Table,
    mark: dict[str, Any],
    at: int,
    report_rows: Callable[[int], None],
) -> None:
    """Copy what is left of a table."""
    reached = mark["tables"].get(of.name, {"after": None, "rows": 0})
    plain, done = _plain(of), reached["rows"]
    for rows, last in _portions(source, of, target, reached["after"]):
        done += len(rows)
        mark["tables"][of.name] = {"after": last, "rows": done}
        try:
            with _transaction(target):
                if rows:
                    target.insert(target.connection, plain, rows)
                put_mark(target.connection, mark, at=at)
        except DBAPIError as failure:
            raise _unstored(target, of, rows, failure) from None
        report_rows(done)


def _unstored(target: Side, of: Table, rows: Sequence[_Row], failure: DBAPIError) -> LedgerError:
    """Return which row could not be stored, and why."""
    place = "?"
    for row in rows:
        if (found := _refusal(target, of, row)) is not None:
            places = (list(of.columns).index(key) for key in of.primary_key.columns)
            place = ", ".join(str(row[each]) for each in places)
            failure = found
            break
    return LedgerError(
        _("{place} does not take the row {row} of {table}: {detail}").format(
            place=target.place, row=place, table=of.name, detail=failure.orig
        ),
        fix=_("The present database still counts. Try again; if it happens again, report this."),
    )


def _refusal(target: Side, of: Table, row: _Row) -> DBAPIError | None:
    """Return why a row cannot be stored; nothing is."""
    sql = target.connection.exec_driver_sql
    try:
        sql(target.begin)
        insert_rows(target.connection, _plain(of), [row])
    except DBAPIError as failure:
        return failure
    finally:
        with contextlib.suppress(DBAPIError):
            sql("ROLLBACK")
    return None


def _count(connection: Connection, of: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(_plain(of))) or 0)


# -- whether it is the same


def _compare(source: Side, target: Side, of: Table, report_rows: Callable[[int], None]) -> int:
    """Return how many rows a table has; LedgerError if they are not the same."""
    theirs = _digest(target, of, target, lambda _done: None)
    ours = _digest(source, of, target, report_rows)
    if ours != theirs:
        raise LedgerError(
            _("The copy of {table} differs: {n} rows, and {m} in the copy.").format(
                table=of.name, n=ours[0], m=theirs[0]
            ),
            fix=_(
                "The present database still counts. Delete the copy and begin again, with every "
                "bridge stopped; if it happens again, report this."
            ),
        )
    return ours[0]


def _digest(
    side: Side, of: Table, stored_by: Side, report_rows: Callable[[int], None]
) -> tuple[int, int]:
    """Return the number of rows, and a sum of their hashes: databases sort differently."""
    count = total = 0
    for rows, _last in _portions(side, of, stored_by):
        count += len(rows)
        for row in rows:
            total += xxhash.xxh3_128_intdigest(repr(row).encode("utf-8", "surrogatepass"))
        report_rows(count)
    return count, total % 2**128


def _copy_secrets(source: Vault, target: Vault) -> int:
    """Copy all secrets, remove others, and return how many there are."""
    for name in target.names():
        if source.get(name) is None:
            target.drop(name)
    for name in source.names():
        if (value := source.get(name)) is not None:
            target.put(name, value)
    return len(source.names())


def _set_sequences(connection: Connection, tables: Sequence[Table]) -> None:
    """Let PostgreSQL count on from the highest number; SQLite looks at the table."""
    if connection.dialect.name != "postgresql":
        return
    for each in tables:
        if [key.name for key in each.primary_key.columns] == ["id"]:
            highest = connection.scalar(select(func.max(column("id"))).select_from(_plain(each)))
            connection.execute(
                text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :next, false)"),
                {"table": each.name, "next": (highest or 0) + 1},
            )
