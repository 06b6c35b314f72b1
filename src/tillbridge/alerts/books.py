"""The alerts' part of the ledger: one fact with the episodes, so that no restart tells twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.alerts.episodes import Episode, Key
from tillbridge.core.problems import PROBLEMS, OpenProblem

FACT = "alerts"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The episodes, and when (ms) they were written down."""

    episodes: Mapping[Key, Episode]
    at: int


def to_fact(episodes: Mapping[Key, Episode], at: int) -> dict[str, Any]:
    """Return the episodes as a JSON value."""
    return {
        "at": at,
        "episodes": [
            {
                "code": each.problem.code,
                "store": each.problem.store,
                "subject": each.problem.subject,
                "since": each.problem.since,
                "detail": {name: str(value) for name, value in each.problem.detail.items()},
                "age_s": round(each.age_s, 3),
                "over_s": None if each.over_s is None else round(each.over_s, 3),
                "acknowledged": each.acknowledged,
                "told": dict(each.told),
            }
            for each in episodes.values()
        ],
    }


def from_fact(fact: object) -> Remembered:
    """Return what was written down; nothing where there is none. Codes that are gone are left."""
    if not isinstance(fact, Mapping):
        return Remembered({}, 0)
    episodes = {}
    for told in fact["episodes"]:
        if told["code"] not in PROBLEMS:
            continue
        problem = OpenProblem(
            told["code"], told["store"], told["subject"], told["since"], told["detail"]
        )
        key = (problem.code, problem.store, problem.subject)
        episodes[key] = Episode(
            problem, told["age_s"], told["over_s"], told["acknowledged"], told["told"]
        )
    return Remembered(episodes, fact["at"])
