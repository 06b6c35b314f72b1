"""What a menu round is asked for beyond the usual, and how long drift waits."""

from dataclasses import dataclass

DRIFTS_AT_ONCE = 5
DRIFT_CALM_S = 1800.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What the next round shall do beyond the usual.

    Compare everything, push it all, or send what the service refused before (`forgive`).
    """

    whole: bool = False
    full: bool = False
    forgive: bool = False
    since: float | None = None  # monotonic, when the export changed

    def joined(self, other: "Wish") -> "Wish":
        """Return both wishes in one."""
        begun = [each for each in (self.since, other.since) if each is not None]
        return Wish(
            whole=self.whole or other.whole,
            full=self.full or other.full,
            forgive=self.forgive or other.forgive,
            since=min(begun, default=None),
        )


class DriftPauses:
    """How long to wait before a full push for drift: the first few go at once, then ever longer.

    A menu that somebody else edits by hand drifts a few times; one that drifts with every push
    would keep the service busy for nothing.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._in_a_row = 0

    def pause(self, now: float) -> float:
        """Return the pause in seconds for drift that is seen `now` (monotonic)."""
        if self._last is None or now - self._last > DRIFT_CALM_S:
            self._in_a_row = 0
        self._last = now
        self._in_a_row += 1
        if self._in_a_row <= DRIFTS_AT_ONCE:
            return 0.0
        doubled = min(self._in_a_row - DRIFTS_AT_ONCE - 1, 10)
        return min(30.0 * 2.0**doubled, DRIFT_CALM_S / 2)
