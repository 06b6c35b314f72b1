"""Reads who has taken note of which problem. Light to import, for `status` without a daemon."""

from collections.abc import Mapping
from typing import Any

from tillbridge.ledger.open_problem import OpenProblem

FACT = "problems_acknowledged"

Row = tuple[str, str, str, int]  # code, store, subject, since (ms)


def acknowledgement(fact: object, problem: OpenProblem) -> Mapping[str, Any] | None:
    """Return `at` (ms) and `by` of a problem's acknowledgement, by the fact; None without one."""
    return by_problem(fact).get(row_of(problem))


def by_problem(fact: object) -> dict[Row, dict[str, Any]]:
    """Return the acknowledgements of the fact by code, store, subject and since."""
    rows = fact if isinstance(fact, list) else []
    return {
        (row["code"], row["store"], row["subject"], row["since"]): {
            "at": row["at"],
            "by": row["by"],
        }
        for row in rows
    }


def row_of(problem: OpenProblem) -> Row:
    """Return what tells this very problem from another, and from a later one of its kind."""
    return (problem.code, problem.store, problem.subject, problem.since)
