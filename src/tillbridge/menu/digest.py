"""A name for the content of a difference: equal differences have equal digests.

The digest is a sum over the entries, in any order, so that the digest of what is left after a part
was accepted is known by subtraction. Availability does not count: it goes out even while the rest
waits, and must not turn an approved plan into another one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import xxhash

from tillbridge.ledger.menu_codec import item_text, part_text
from tillbridge.menu.diff import PART_KINDS, Diff
from tillbridge.model.catalogue import Item

_MODULUS = 1 << 128


class ContentDigest:
    """The digest of a difference, and of what is left of it as parts of it are accepted."""

    def __init__(self, changes: Diff) -> None:
        self._items = {external_id: _number(text) for external_id, text in _items(changes)}
        self._parts = sum(_number(text) for text in _parts(changes))
        self._sum = sum(self._items.values())

    @property
    def text(self) -> str:
        """The digest of what is left; "" where that is nothing."""
        if not self._items and not self._parts:
            return ""
        return f"{(self._sum + self._parts) % _MODULUS:032x}"

    def accepted(self, external_ids: Iterable[str]) -> None:
        """Leave these items out; categories, add-ons and groups went with the first of them."""
        for external_id in external_ids:
            self._sum -= self._items.pop(external_id, 0)
        self._parts = 0


def _items(changes: Diff) -> Iterator[tuple[str, str]]:
    for external_id in changes.removed:
        yield external_id, f"removed {external_id}"
    for external_id, item in changes.added.items():
        yield external_id, f"added {_content(item)}"
    for external_id, change in changes.content.items():
        yield external_id, f"changed {_content(change.after)}"


def _parts(changes: Diff) -> Iterator[str]:
    for kind in PART_KINDS:
        for part in getattr(changes, kind).put.values():
            yield f"{kind} {part_text(part)}"


def _content(item: Item) -> str:
    if item.available and item.snooze_until is None:
        return item_text(item)
    return item_text(replace(item, available=True, snooze_until=None))


def _number(text: str) -> int:
    return xxhash.xxh3_128_intdigest(text.encode("utf-8", "surrogatepass"))
