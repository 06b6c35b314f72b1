"""How long each problem has lasted, and what has been told of it. Pure: no clock, no network.

An episode is a problem from its first opening until it has been gone for `settle_s`: one that is
back sooner goes on as the same. Its age counts on the monotonic clock, so that a wall clock that
jumps tells nothing twice and forgets nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tillbridge.core.problems import OpenProblem, Severity

Key = tuple[str, str, str]  # code, store, subject
Episodes = Mapping[Key, "Episode"]

_FORGOTTEN_S = 86_400.0  # an end that could not be told for a day is not told any more


@dataclass(frozen=True, slots=True)
class Rules:
    """When alerts are due. `steps_s`: the ages at which a problem is told, in seconds, rising."""

    steps_s: tuple[float, ...] = (0.0, 300.0, 600.0)
    settle_s: float = 60.0
    severities: frozenset[Severity] = frozenset(Severity)
    stores: frozenset[str] = frozenset()  # empty: all


@dataclass(frozen=True, slots=True)
class Episode:
    """A problem as the alerts know it. Ages in seconds.

    `over_s` is for how long it has been gone, None while it is open. `told` is the number of steps
    that each channel has sent; 0 once it has sent the end.
    """

    problem: OpenProblem
    age_s: float = 0.0
    over_s: float | None = None
    acknowledged: bool = False
    told: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Due:
    """What a channel has to send: that problems are there (`step` of them counted), or are over."""

    kind: Literal["open", "over"]
    keys: tuple[Key, ...]
    step: int = 0


def key_of(problem: OpenProblem) -> Key:
    """Return what tells a problem from all others."""
    return (problem.code, problem.store, problem.subject)


def is_told(problem: OpenProblem, rules: Rules) -> bool:
    """Return whether alerts are about such a problem at all. Never about the alerts themselves."""
    if problem.code.startswith("alerts.") or problem.kind.severity not in rules.severities:
        return False
    ours = problem.store and not problem.store.startswith("communities/")
    return not ours or not rules.stores or problem.store in rules.stores


def follow(
    episodes: Episodes,
    open_now: Sequence[OpenProblem],
    acknowledged: Collection[Key],
    elapsed_s: float,
    rules: Rules,
) -> dict[Key, Episode]:
    """Return the episodes `elapsed_s` seconds later, with the problems that are open now."""
    passed = max(0.0, elapsed_s)
    present = {key_of(each): each for each in open_now if is_told(each, rules)}
    after: dict[Key, Episode] = {}
    for key, episode in episodes.items():
        problem = present.get(key)
        older = replace(episode, age_s=episode.age_s + passed)
        if problem is None:
            gone = 0.0 if episode.over_s is None else episode.over_s + passed
            ended = replace(older, over_s=gone)
            if not _is_finished(ended, rules):
                after[key] = ended
        elif episode.over_s is None or episode.over_s < rules.settle_s:
            # Nobody has seen it gone for so long: that it is over was told to nobody.
            after[key] = replace(older, problem=problem, over_s=None)
        # else it was over, and this is another one
    for key, problem in present.items():
        known = after.get(key) or Episode(problem)
        after[key] = replace(known, acknowledged=known.acknowledged or key in acknowledged)
    return after


def due(episodes: Episodes, channel: str, rules: Rules, *, quiet: bool) -> list[Due]:
    """Return what the channel has to send now, the worst first; problems of one kind go together.

    While it is `quiet`, warnings wait.
    """
    found: dict[tuple[str, str, Literal["open", "over"]], list[Key]] = {}
    steps: dict[tuple[str, str, Literal["open", "over"]], int] = {}
    for key, episode in episodes.items():
        severity = episode.problem.kind.severity
        if quiet and severity is not Severity.DOWN:
            continue
        told = episode.told.get(channel, 0)
        if episode.over_s is not None:
            if told and episode.over_s >= rules.settle_s:
                found.setdefault((*key[:2], "over"), []).append(key)
            continue
        reached = _steps_reached(episode.age_s, rules)
        if reached > told and not episode.acknowledged:
            group: tuple[str, str, Literal["open", "over"]] = (*key[:2], "open")
            found.setdefault(group, []).append(key)
            steps[group] = max(reached, steps.get(group, 0))
    each_due = [Due(group[2], tuple(keys), steps.get(group, 0)) for group, keys in found.items()]
    return sorted(each_due, key=lambda each: _rank(episodes[each.keys[0]]))


def taken(episodes: Episodes, channel: str, what: Due, rules: Rules) -> dict[Key, Episode]:
    """Return the episodes once the channel has sent this, or is about to."""
    after = dict(episodes)
    for key in what.keys:
        episode = after[key]
        count = 0 if what.kind == "over" else _steps_reached(episode.age_s, rules)
        after[key] = replace(episode, told={**episode.told, channel: count})
    return after


def given_back(episodes: Episodes, before: Episodes, channel: str, what: Due) -> dict[Key, Episode]:
    """Return the episodes once it is sure that the channel has not sent this: as `before`."""
    after = dict(episodes)
    for key in what.keys:
        if key in after and key in before:
            told = before[key].told.get(channel, 0)
            after[key] = replace(after[key], told={**after[key].told, channel: told})
    return after


def next_in_s(episodes: Episodes, rules: Rules) -> float | None:
    """Return in how many seconds something may be due at the soonest; None without episodes."""
    waits = []
    for episode in episodes.values():
        if episode.over_s is not None:
            waits.append(max(0.0, rules.settle_s - episode.over_s))
        elif not episode.acknowledged:
            waits += [step - episode.age_s for step in rules.steps_s if step > episode.age_s]
    return min(waits) if waits else None


def _steps_reached(age_s: float, rules: Rules) -> int:
    return sum(step <= age_s for step in rules.steps_s)


def _is_finished(episode: Episode, rules: Rules) -> bool:
    gone = episode.over_s or 0.0
    if gone < rules.settle_s:
        return False
    return gone >= max(_FORGOTTEN_S, rules.settle_s) or not any(episode.told.values())


def _rank(episode: Episode) -> tuple[bool, int]:
    return (episode.problem.kind.severity is not Severity.DOWN, episode.problem.since)
