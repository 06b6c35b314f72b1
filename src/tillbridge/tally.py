"""Counting what has happened since the start, for `/metrics`. Plain numbers, no library."""

from collections import Counter

Labels = tuple[tuple[str, str], ...]


class Tally:
    """Counts by name and labels; used from the event loop."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Labels]] = {}

    def count(self, name: str, **labels: str) -> None:
        """Count one more `name` with these labels."""
        self._counts.setdefault(name, Counter())[tuple(sorted(labels.items()))] += 1

    def of(self, name: str) -> dict[Labels, int]:
        """Return how many there were of `name`, by labels."""
        return dict(self._counts.get(name, {}))
