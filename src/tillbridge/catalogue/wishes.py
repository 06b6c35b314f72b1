"""What a menu round is asked for beyond the usual, and how long drift waits."""

from dataclasses import dataclass

DRIFT_CALM_S = 1800.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What the next round shall do beyond the usual: compare everything, or push it all."""

    whole: bool = False
    full: bool = False
    since: float | None = None  # monotonic, when the export changed

    def joined(self, other: "Wish") -> "Wish":
        """Return both wishes in one."""
        begun = [each for each in (self.since, other.since) if each is not None]
        return Wish(self.whole or other.whole, self.full or other.full, min(begun, default=None))


class DriftPauses:
    """How long to wait before a full push for drift: not at all at first, then ever longer."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._pause = 0.0

    def pause(self, now: float) -> float:
        """Return the pause in seconds for drift that is seen `now` (monotonic)."""
        calm = self._last is None or now - self._last > DRIFT_CALM_S
        self._pause = 0.0 if calm else min(max(30.0, self._pause * 2), DRIFT_CALM_S / 2)
        self._last = now
        return self._pause
