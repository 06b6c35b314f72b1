"""Baskets of the storefront's visitors, by cookie; the oldest go when there are too many."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence

from tillbridge.sandbox.placing import Wanted

_MOST = 1000


class Baskets:
    """Lines by visitor and store, in memory."""

    def __init__(self) -> None:
        self._baskets: OrderedDict[tuple[str, str], list[Wanted]] = OrderedDict()

    def add(self, key: str | None, store_id: str, line: Wanted) -> str:
        """Put a line into the visitor's basket; returns the key for the cookie."""
        key = key if key and len(key) <= 64 else secrets.token_urlsafe(16)
        self._baskets.setdefault((key, store_id), []).append(line)
        self._baskets.move_to_end((key, store_id))
        while len(self._baskets) > _MOST:
            self._baskets.popitem(last=False)
        return key

    def lines(self, key: str | None, store_id: str) -> Sequence[Wanted]:
        """The visitor's lines, in the order in which they were added."""
        return tuple(self._baskets.get((key or "", store_id), ()))

    def remove(self, key: str | None, store_id: str, index: int) -> None:
        """Take one line out; an index that is not there is ignored."""
        lines = self._baskets.get((key or "", store_id), [])
        if 0 <= index < len(lines):
            del lines[index]

    def clear(self, key: str | None, store_id: str) -> None:
        """Empty a basket, once it has been ordered."""
        self._baskets.pop((key or "", store_id), None)

    def reset(self) -> None:
        """Forget everybody's."""
        self._baskets.clear()
