"""Whether a store takes orders, who says so, and why: one rule over all causes. Pure.

A store is open when nothing and nobody keeps it closed. Each cause stands by itself, so that none
undoes another: the till's return ends the bridge's pause and not a person's, a person's word to
open ends a person's pause and not the bridge's. What others do at the service counts as a
person's word. See docs/store.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from tillbridge.model.instant import end_or_never

Status = Literal["active", "inactive"]

_A_DAY_MS = 24 * 3600 * 1000


class Who(StrEnum):
    """Who keeps a store closed; where several do, the first of these is named."""

    PERSON = "person"
    OTHERS = "somebody else"
    POS_AWAY = "bridge"
    POS_CLOSED = "till"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Pause:
    """One cause. Instants in ms; `until_ms` None: until somebody or something ends it."""

    since_ms: int
    until_ms: int | None = None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """What the schedule says: closed or not, until when (None: for good), and why it is closed."""

    closed: bool = False
    until_ms: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Causes:
    """What keeps a store closed; None for what does not.

    `opened_until_ms`: a person opened the store although the schedule says closed; that counts
    until then. `told` is what the service was known to have last, `telling` what it was being told
    when that may have been cut off; None where nothing is known.
    """

    person: Pause | None = None
    others: Pause | None = None
    pos_away: Pause | None = None
    pos_closed: Pause | None = None
    scheduled: Pause | None = None
    opened_until_ms: int | None = None
    told: Status | None = None
    telling: Status | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What follows: `who` None where the store is open. Instants in ms."""

    status: Status
    who: Who | None = None
    by: str = ""
    reason: str = ""
    since_ms: int | None = None
    until_ms: int | None = None


OPEN = Standing("active")


def standing_of(causes: Causes) -> Standing:
    """Return what follows from the causes: open if there is none."""
    for who, pause in (
        (Who.PERSON, causes.person),
        (Who.OTHERS, causes.others),
        (Who.POS_AWAY, causes.pos_away),
        (Who.POS_CLOSED, causes.pos_closed),
        (Who.SCHEDULE, causes.scheduled),
    ):
        if pause is not None:
            return Standing("inactive", who, pause.by, pause.reason, pause.since_ms, pause.until_ms)
    return OPEN


def as_time_goes(causes: Causes, planned: Planned, now_ms: int) -> Causes:
    """End what is over, and let the schedule have its say."""
    person, opened = causes.person, causes.opened_until_ms
    if person is not None and person.until_ms is not None and person.until_ms <= now_ms:
        person = None
    if not planned.closed or (opened is not None and opened <= now_ms):
        opened = None
    scheduled = None
    if planned.closed and opened is None:
        before = causes.scheduled
        since = now_ms if before is None else before.since_ms
        scheduled = Pause(since, planned.until_ms, reason=planned.reason)
    return replace(causes, person=person, opened_until_ms=opened, scheduled=scheduled)


def paused_by(causes: Causes, pause: Pause) -> Causes:
    """A person closes the store: in place of what staff said before, beside what others did."""
    return replace(causes, person=pause, opened_until_ms=None)


def resumed(causes: Causes, planned: Planned, now_ms: int) -> Causes:
    """A person opens the store: whoever paused it, and against the schedule until its next change.

    The bridge's pause stays while the till is away or closed.
    """
    opened = None
    if planned.closed:
        opened = now_ms + _A_DAY_MS if planned.until_ms is None else planned.until_ms
    return replace(causes, person=None, others=None, scheduled=None, opened_until_ms=opened)


def seen(causes: Causes, status: Status, planned: Planned, now_ms: int) -> Causes:
    """Take note of what the service says the store is: others may have changed it.

    What was being told when it was cut off is no surprise.
    """
    known = replace(causes, told=status, telling=None)
    if status == causes.told:
        return replace(known, telling=causes.telling)
    if status == causes.telling:
        return known
    if status == "inactive":
        return replace(known, others=causes.others or Pause(now_ms))
    if causes.told is None:
        return known  # nobody has been told anything yet
    return resumed(known, planned, now_ms)


def to_json(causes: Causes) -> dict[str, Any]:
    """Return the JSON value that is kept for the causes."""
    return {
        **{
            name: {
                "since_ms": pause.since_ms,
                "until_ms": pause.until_ms,
                "by": pause.by,
                "reason": pause.reason,
            }
            for name in _PAUSES
            if (pause := getattr(causes, name)) is not None
        },
        "opened_until_ms": causes.opened_until_ms,
        "told": causes.told,
        "telling": causes.telling,
    }


def from_json(kept: object) -> Causes:
    """Return the causes of `to_json`; none for anything else."""
    if not isinstance(kept, Mapping):
        return Causes()
    pauses = {name: _pause(kept.get(name)) for name in _PAUSES}
    return Causes(
        **pauses,
        opened_until_ms=end_or_never(_whole(kept.get("opened_until_ms"))),
        told=kept.get("told"),
        telling=kept.get("telling"),
    )


_PAUSES = ("person", "others", "pos_away", "pos_closed", "scheduled")


def _pause(kept: object) -> Pause | None:
    if not isinstance(kept, Mapping) or not isinstance(kept.get("since_ms"), int):
        return None
    until_ms = end_or_never(_whole(kept.get("until_ms")))
    return Pause(kept["since_ms"], until_ms, str(kept.get("by", "")), str(kept.get("reason", "")))


def _whole(kept: object) -> int | None:
    return kept if isinstance(kept, int) else None
