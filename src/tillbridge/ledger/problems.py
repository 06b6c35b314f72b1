"""Open problems, as kept in the ledger."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.schema import problems
from tillbridge.problems import PROBLEMS


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
    return json.dumps(dict(detail), ensure_ascii=False, default=str)
