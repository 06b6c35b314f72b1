"""How long each problem has lasted, what was sent of it, and what an alert says. Pure.

An episode is a problem from its first opening until it has been gone for `settle_s`: one that is
back sooner goes on as the same. Its age counts on the monotonic clock, so that a wall clock that
jumps sends nothing twice and forgets nothing. A message holds no customer's data: a problem's words
have none.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tillbridge.config.bridge import AlertSettings
from tillbridge.core.formats import clock_time
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import OpenProblem, Severity, anchor
from tillbridge.model.instant import to_iso

Key = tuple[str, str, str]  # code, store, subject
Episodes = Mapping[Key, "Episode"]
Group = tuple[str, str, Literal["open", "over"]]  # code, store: what goes into one message

_FORGOTTEN_S = 86_400.0  # an end that could not be sent for a day is not sent any more


@dataclass(frozen=True, slots=True)
class Episode:
    """A problem as the alerts know it. Ages in seconds.

    `over_s` is for how long it has been gone, None while it is open. `sent` is the number of steps
    that each channel has sent; 0 once it has sent the end.
    """

    problem: OpenProblem
    age_s: float = 0.0
    over_s: float | None = None
    acknowledged: bool = False
    sent: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Due:
    """What a channel has to send: that problems are there (`step` of them counted), or are over."""

    kind: Literal["open", "over"]
    keys: tuple[Key, ...]
    step: int = 0


def is_alerted(problem: OpenProblem, settings: AlertSettings) -> bool:
    """Return whether alerts are about such a problem at all. Never about the alerts themselves."""
    minor = settings.severity == "down" and problem.kind.severity is not Severity.DOWN
    if minor or problem.code.startswith("alerts."):
        return False
    ours = problem.store and not problem.store.startswith("communities/")
    return not ours or not settings.stores or problem.store in settings.stores


def follow(
    episodes: Episodes,
    open_now: Sequence[OpenProblem],
    acknowledged: Collection[Key],
    elapsed_s: float,
    settings: AlertSettings,
) -> dict[Key, Episode]:
    """Return the episodes `elapsed_s` seconds later, with the problems that are open now."""
    passed = max(0.0, elapsed_s)
    present = {each.key: each for each in open_now if is_alerted(each, settings)}
    after: dict[Key, Episode] = {}
    for key, episode in episodes.items():
        problem = present.get(key)
        older = replace(episode, age_s=episode.age_s + passed)
        if problem is None:
            gone = 0.0 if episode.over_s is None else episode.over_s + passed
            ended = replace(older, over_s=gone)
            if not _is_finished(ended, settings):
                after[key] = ended
        elif episode.over_s is None or episode.over_s < settings.settle_s:
            # Nobody has seen it gone for so long: that it is over was sent to nobody.
            after[key] = replace(older, problem=problem, over_s=None)
        # else it was over, and this is another one
    for key, problem in present.items():
        known = after.get(key) or Episode(problem)
        after[key] = replace(known, acknowledged=known.acknowledged or key in acknowledged)
    return after


def due(episodes: Episodes, channel: str, settings: AlertSettings, *, quiet: bool) -> list[Due]:
    """Return what the channel has to send now, the worst first; problems of one kind go together.

    While it is `quiet`, warnings wait.
    """
    found: dict[Group, list[Key]] = {}
    steps: dict[Group, int] = {}
    for key, episode in episodes.items():
        severity = episode.problem.kind.severity
        if quiet and severity is not Severity.DOWN:
            continue
        sent = episode.sent.get(channel, 0)
        if episode.over_s is not None:
            if sent and episode.over_s >= settings.settle_s:
                found.setdefault((*key[:2], "over"), []).append(key)
            continue
        reached = _steps_reached(episode.age_s, settings)
        if reached > sent and not episode.acknowledged:
            group: Group = (*key[:2], "open")
            found.setdefault(group, []).append(key)
            steps[group] = max(reached, steps.get(group, 0))
    each_due = [Due(group[2], tuple(keys), steps.get(group, 0)) for group, keys in found.items()]
    return sorted(each_due, key=lambda each: _rank(episodes[each.keys[0]]))


def record_sent(
    episodes: Episodes, channel: str, what: Due, settings: AlertSettings
) -> dict[Key, Episode]:
    """Return the episodes once the channel has sent this, or is about to."""
    after = dict(episodes)
    for key in what.keys:
        episode = after[key]
        count = 0 if what.kind == "over" else _steps_reached(episode.age_s, settings)
        after[key] = replace(episode, sent={**episode.sent, channel: count})
    return after


def record_unsent(
    episodes: Episodes, before: Episodes, channel: str, what: Due
) -> dict[Key, Episode]:
    """Return the episodes once it is sure that the channel has not sent this: as `before`."""
    after = dict(episodes)
    for key in what.keys:
        if key in after and key in before:
            sent = before[key].sent.get(channel, 0)
            after[key] = replace(after[key], sent={**after[key].sent, channel: sent})
    return after


def next_in_s(episodes: Episodes, settings: AlertSettings) -> float | None:
    """Return in how many seconds something may be due at the soonest; None without episodes."""
    waits = []
    for episode in episodes.values():
        if episode.over_s is not None:
            waits.append(max(0.0, settings.settle_s - episode.over_s))
        elif not episode.acknowledged:
            steps = (60 * minutes for minutes in settings.repeat_min)
            waits += [step - episode.age_s for step in steps if step > episode.age_s]
    return min(waits) if waits else None


def _steps_reached(age_s: float, settings: AlertSettings) -> int:
    return sum(60 * minutes <= age_s for minutes in settings.repeat_min)


def _is_finished(episode: Episode, settings: AlertSettings) -> bool:
    gone = episode.over_s or 0.0
    if gone < settings.settle_s:
        return False
    return gone >= max(_FORGOTTEN_S, settings.settle_s) or not any(episode.sent.values())


def _rank(episode: Episode) -> tuple[bool, int]:
    return (episode.problem.kind.severity is not Severity.DOWN, episode.problem.since)


_SHOWN = 10
_SUBJECT_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Message:
    """An alert in words. `id` is the same whenever the same thing is sent."""

    id: str
    kind: str  # open | again | over | test
    subject: str
    lines: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def text(self) -> str:
        """The whole of it as plain text."""
        return "\n".join((self.subject, "", *self.lines)) + "\n"


def compose(
    what: Due, episodes: Sequence[Episode], *, who: str, waiting: str, docs_url: str, now_ms: int
) -> Message:
    """Return the message about these problems, which are of one kind and one store.

    `waiting` is the sentence about orders that wait for the till, or "".
    """
    first = min(episodes, key=lambda each: each.problem.since).problem
    more = len(episodes) - 1
    over = what.kind == "over"
    head = _("Resolved: {text}") if over else "{text}"
    subject = head.format(text=first.text)
    if more:
        subject += " " + ngettext("(and {n} more)", "(and {n} more)", more).format(n=more)
    title = f"{who}: {subject}" if who else subject
    kind = "over" if over else "open" if what.step <= 1 else "again"
    lines = [each.problem.text for each in episodes[:_SHOWN]]
    fixes = list(dict.fromkeys(each.problem.fix for each in episodes[:_SHOWN]))
    docs = f"{docs_url}#{anchor(first.code)}"
    since = clock_time(first.since, now_ms)
    if len(episodes) > _SHOWN:
        count = len(episodes) - _SHOWN
        lines.append(ngettext("... and {n} more.", "... and {n} more.", count).format(n=count))
    if over:
        lines.append(_("It began at {since} and is resolved.").format(since=since))
    else:
        lines += [_("Since: {since}").format(since=since)]
        lines += [waiting] if waiting else []
        stop = _("To stop these messages: tillbridge problems ack {code}").format(code=first.code)
        lines += ["", _("What to do:"), *fixes, "", stop]
    lines += [_("Code: {code}").format(code=first.code), _("More: {docs}").format(docs=docs)]
    return Message(
        id=_identity(what, episodes),
        kind=kind,
        subject=_one_line(title),
        lines=tuple(map(_printable, lines)),
        facts={
            "code": first.code,
            "severity": str(first.kind.severity),
            "store": first.store,
            "store_title": who,
            "problems": [
                {"subject": each.problem.subject, "text": str(each.problem.text)}
                for each in episodes
            ],
            "since": to_iso(first.since),
            "fix": "" if over else str(fixes[0]),
            "docs": docs,
        },
    )


def trial(now_ms: int) -> Message:
    """Return a message that only shows that a way works."""
    return Message(
        id=hashlib.sha256(f"test {now_ms}".encode()).hexdigest()[:32],
        kind="test",
        subject=_("tillbridge: this is a test"),
        lines=(
            _("This is a test. Alerts from the bridge arrive here."),
            _("You do not need to do anything."),
        ),
        facts={"code": "", "severity": "", "store": "", "since": to_iso(now_ms)},
    )


def _identity(what: Due, episodes: Sequence[Episode]) -> str:
    """Return the same value for the same step of the same problems: receivers can compare it."""
    parts = sorted(
        f"{each.problem.code}/{each.problem.store}/{each.problem.subject}/{each.problem.since}"
        for each in episodes
    )
    identity = f"{what.kind} {what.step} {' '.join(parts)}"
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _printable(text: str) -> str:
    """Return a line without what could break a header, or steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def _one_line(text: str) -> str:
    line = " ".join(_printable(text).split())
    return line if len(line) <= _SUBJECT_LONGEST else line[: _SUBJECT_LONGEST - 1] + "…"
