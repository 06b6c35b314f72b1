"""What an alert says: a subject, what is wrong, since when, and what to do. Pure.

No customer's data: a problem's words hold none. `who` is what people call the store.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tillbridge.alerts.episodes import Due, Episode
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import anchor
from tillbridge.model.instant import to_iso

_SHOWN = 10
_SUBJECT_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Message:
    """An alert in words. `id` is the same whenever the same thing is told."""

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
    head = _("Over: {text}") if over else "{text}"
    subject = head.format(text=first.text)
    if more:
        subject += " " + ngettext("(and {n} more)", "(and {n} more)", more).format(n=more)
    title = f"{who}: {subject}" if who else subject
    kind = "over" if over else "open" if what.step <= 1 else "again"
    texts = [each.problem.text for each in episodes[:_SHOWN]]
    fixes = list(dict.fromkeys(each.problem.fix for each in episodes[:_SHOWN]))
    docs = f"{docs_url}#{anchor(first.code)}"
    since = _local(first.since, now_ms)
    lines = list(texts)
    if len(episodes) > _SHOWN:
        count = len(episodes) - _SHOWN
        lines.append(ngettext("... and {n} more.", "... and {n} more.", count).format(n=count))
    if over:
        lines += [_("It began at {since} and is over.").format(since=since)]
    else:
        lines += [_("Since: {since}").format(since=since)]
        lines += [waiting] if waiting else []
        lines += ["", _("What to do:"), *fixes]
        lines += [
            "",
            _("To stop these messages: tillbridge problems ack {code}").format(code=first.code),
        ]
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
                {"subject": each.problem.subject, "text": each.problem.text} for each in episodes
            ],
            "since": to_iso(first.since),
            "fix": "" if over else fixes[0],
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
            _("This is a test: alerts of the bridge arrive here."),
            _("Nothing is to be done."),
        ),
        facts={"code": "", "severity": "", "store": "", "since": to_iso(now_ms)},
    )


def _identity(what: Due, episodes: Sequence[Episode]) -> str:
    """Return the same for the same step of the same problems, so that receivers can tell."""
    parts = sorted(
        f"{each.problem.code}/{each.problem.store}/{each.problem.subject}/{each.problem.since}"
        for each in episodes
    )
    told = f"{what.kind} {what.step} {' '.join(parts)}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _local(at_ms: int, now_ms: int) -> str:
    at, now = (datetime.fromtimestamp(ms / 1000).astimezone() for ms in (at_ms, now_ms))
    return at.strftime("%H:%M" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def _printable(text: str) -> str:
    """Return a line without what could break a header, or steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _one_line(text: str) -> str:
    line = " ".join(_printable(text).split())
    return line if len(line) <= _SUBJECT_LONGEST else line[: _SUBJECT_LONGEST - 1] + "…"
