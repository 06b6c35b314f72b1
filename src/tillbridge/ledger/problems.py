"""Open problems in the ledger, and the report that makes them follow from state."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.core.problems import PROBLEMS, Found, Scope
from tillbridge.ledger.after_commit import publish
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.problem_history import PastProblem, keep_past
from tillbridge.ledger.schema import problems


@dataclass(frozen=True, slots=True)
class ProblemsChanged:
    """What a report has changed: what is open or has another detail now, and what is over."""

    present: tuple[OpenProblem, ...]
    over: tuple[OpenProblem, ...]


def report(connection: Connection, scope: Scope, found: Iterable[Found], at: int) -> None:
    """Make what is open within the scope exactly what is found, at `at` (ms).

    Call it in the transaction that changed the state from which the problems follow. What stays
    open keeps its `since`. Whoever watches the ledger hears of the change after the commit
    (`ProblemsChanged`). ValueError for a problem outside the scope, KeyError for an unknown code.
    """
    now = {}
    for each in found:
        if not scope.covers(each.code, scope.store, each.subject):
            msg = f"{each.code} of {each.subject!r} is outside the scope of the report"
            raise ValueError(msg)
        now[each.code, each.subject] = _json(each.detail)
    before = {(each.code, each.subject): each for each in _in_scope(connection, scope)}
    over = tuple(problem for key, problem in before.items() if key not in now)
    for gone in over:
        close_problem(connection, gone.code, gone.store, gone.subject)
        keep_past(connection, PastProblem(gone.code, gone.store, gone.subject, gone.since, at))
    present = []
    for (code, subject), text in now.items():
        known = before.get((code, subject))
        detail = json.loads(text)
        if known is None or known.detail != detail:
            since = at if known is None else known.since
            open_problem(connection, code, scope.store, subject, detail, since)
            present.append(OpenProblem(code, scope.store, subject, since, detail))
    if present or over:
        publish(connection, ProblemsChanged(tuple(present), over))


def _in_scope(connection: Connection, scope: Scope) -> list[OpenProblem]:
    query = select(problems).where(
        problems.c.store == scope.store, problems.c.code.in_(sorted(scope.codes))
    )
    if scope.subject is not None:
        query = query.where(problems.c.subject == scope.subject)
    return [
        OpenProblem(row.code, row.store, row.subject, row.since, json.loads(row.detail))
        for row in connection.execute(query)
    ]


def open_problem(
    connection: Connection, code: str, store: str, subject: str, detail: Mapping[str, Any], at: int
) -> None:
    """Open the problem; of one that is open already only the detail changes.

    KeyError for a code that the registry does not know.
    """
    kind = PROBLEMS[code]
    statement = insert(problems).values(
        code=kind.code, store=store, subject=subject, since=at, detail=_json(detail)
    )
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[problems.c.code, problems.c.store, problems.c.subject],
            set_={"detail": statement.excluded.detail},
        )
    )


def close_problem(connection: Connection, code: str, store: str, subject: str) -> None:
    """Close the problem, if it is open."""
    connection.execute(
        delete(problems).where(
            problems.c.code == code, problems.c.store == store, problems.c.subject == subject
        )
    )


def open_problems(connection: Connection) -> tuple[OpenProblem, ...]:
    """Return the open problems, oldest first; codes this version does not know are left out."""
    rows = connection.execute(select(problems).order_by(problems.c.since, problems.c.code))
    return tuple(
        OpenProblem(row.code, row.store, row.subject, row.since, json.loads(row.detail))
        for row in rows
        if row.code in PROBLEMS
    )


def _json(detail: Mapping[str, Any]) -> str:
    # Halves of characters, as JSON allows them and SQLite does not, become question marks.
    text = json.dumps(dict(detail), ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode()
