"""Which items two calls are telling the service at the same time.

Availability does not wait for a menu push. Where both tell the same item, nobody knows whose word
the service heard last: the availability of such an item is told once more after the push.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager


class InFlight:
    """The calls under way of one store."""

    def __init__(self) -> None:
        self.pushes: set[int] = set()  # rows of the ledger that this process will end
        self._menu: list[AbstractSet[str]] = []
        self._availability: list[tuple[AbstractSet[str], set[str]]] = []

    @contextmanager
    def menu(self, external_ids: AbstractSet[str]) -> Iterator[None]:
        """Hold while a menu call tells these items."""
        for ids, clashed in self._availability:
            clashed.update(ids & external_ids)
        self._menu.append(external_ids)
        try:
            yield
        finally:
            self._menu = [each for each in self._menu if each is not external_ids]

    @contextmanager
    def availability(self, external_ids: AbstractSet[str]) -> Iterator[set[str]]:
        """Hold while an availability call tells these items; yields those that clash."""
        clashed: set[str] = set()
        for ids in self._menu:
            clashed |= ids & external_ids
        entry = (external_ids, clashed)
        self._availability.append(entry)
        try:
            yield clashed
        finally:
            self._availability = [each for each in self._availability if each is not entry]
