"""Whether the store should be paused because its POS is away. Pure.

A store is paused after the POS has been offline for `pause_after_s`, or at once when an order was
cancelled because of it: the next customer shall not meet the same. It is resumed once the POS has
been back for `resume_after_s`, only if it was the bridge that paused it. A POS that comes and goes
does not make the storefront blink: after `max_pauses_per_hour` pauses it must be steady for 10
minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

STEADY_S = 600.0
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class PauseRules:
    """The settings of [stores.NAME.orders]; `pause_after_s` 0 never pauses."""

    pause_after_s: float = 30.0
    resume_after_s: float = 5.0
    max_pauses_per_hour: int = 4


@dataclass(frozen=True, slots=True)
class Pause:
    """Set the store inactive."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Set the store active again."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Leave it as it is."""


def decide_pause(
    now: float,
    *,
    online: bool,
    since: float,
    paused_by_bridge: bool,
    pauses: Sequence[float],
    rules: PauseRules,
    order_lost: bool = False,
) -> Pause | Resume | Nothing:
    """Return what to do at `now`, the POS being online (or not) since `since`.

    `pauses` are the instants of earlier pauses; all instants in seconds on one monotonic clock.
    `order_lost` says that an order was cancelled since then because the POS was away.
    """
    steady_s = now - since
    if not online:
        long = order_lost or steady_s >= rules.pause_after_s
        due = rules.pause_after_s > 0 and long
        return Pause() if due and not paused_by_bridge else Nothing()
    if not paused_by_bridge:
        return Nothing()
    unsteady = is_unsteady(now, pauses, rules)
    needed_s = max(STEADY_S, rules.resume_after_s) if unsteady else rules.resume_after_s
    return Resume() if steady_s >= needed_s else Nothing()


def is_unsteady(now: float, pauses: Sequence[float], rules: PauseRules) -> bool:
    """Return whether the POS has come and gone so often that it must be steady for a while."""
    return sum(1 for at in pauses if now - at < _HOUR_S) >= rules.max_pauses_per_hour
