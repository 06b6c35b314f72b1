"""Counting what has happened since the start, for `/metrics`. Plain numbers, no library.

Labels come from the configuration or from the code, never from outside: their number is bounded.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

# Upper bounds of the durations that are told apart, in seconds; what is longer has no bound.
BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Spread:
    """How long something took: how often within each of `BOUNDS_S` (and beyond), and in all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


class Tally:
    """Counts by name and labels; used from the event loop."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Labels]] = {}
        self._spreads: dict[str, dict[Labels, Spread]] = {}

    def count(self, name: str, **labels: str) -> None:
        """Count one more `name` with these labels."""
        self._counts.setdefault(name, Counter())[tuple(sorted(labels.items()))] += 1

    def of(self, name: str) -> dict[Labels, int]:
        """Return how many there were of `name`, by labels."""
        return dict(self._counts.get(name, {}))

    def took(self, name: str, seconds: float, **labels: str) -> None:
        """Count one more `name` that took so long; a clock that was set back makes it 0."""
        spreads = self._spreads.setdefault(name, {})
        spreads.setdefault(tuple(sorted(labels.items())), Spread()).add(max(0.0, seconds))

    def spreads(self, name: str) -> dict[Labels, Spread]:
        """Return how long each `name` took, by labels."""
        return dict(self._spreads.get(name, {}))
