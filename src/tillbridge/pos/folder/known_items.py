"""Which items of a JSON menu are known, by the digests of their texts."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from xxhash import xxh3_64_intdigest

from tillbridge.pos.folder import json_values as values
from tillbridge.pos.folder.cells import BadCell

FLAT_MENU_ID = "menu"
"""Of the menu of the flat shape, which names it and gives it no id."""

_READING_VERSION = 2  # part of every fingerprint, as in menu_csv
_TO_SIGNED = 1 << 63


class KnownItems:
    """The fingerprints of a reading: of the text of each item, and the menus it is on.

    An item with `odd` fields, of which people are told, has a fingerprint by which it is not known
    before it is read.
    """

    def __init__(self, known: AbstractSet[int]) -> None:
        self._known = known
        self.unseen = set(known)
        self._seeds: dict[str, int] = {}

    def menu_of(self, members: Mapping[str, Any] | None) -> str | None:
        """Return the id of the menu with these members, None where they do not tell it (yet)."""
        if members is None:
            return FLAT_MENU_ID
        try:
            return values.external_id(members)
        except BadCell:
            return None

    def take(self, digest: int, menu_id: str | None) -> bool:
        """Return whether that item on that menu is known, and take it out of those not seen."""
        if menu_id is None:
            return False
        seed = self._seeds.get(menu_id)
        if seed is None:
            seed = self._seeds[menu_id] = _seed((menu_id,), odd=False)
        fingerprint = (digest ^ seed) - _TO_SIGNED
        if fingerprint in self.unseen:
            self.unseen.remove(fingerprint)
            return True
        return False

    def put_back(self, digest: int, menu_id: str) -> None:
        """Take back that it was seen."""
        self.unseen.add(fingerprint_of(digest, (menu_id,)))

    def give_back(self) -> None:
        """Take back all that was said."""
        self.unseen = set(self._known)


def fingerprint_of(digest: int, menus: Iterable[str], *, odd: bool = False) -> int:
    """Return the fingerprint of an item whose text has this digest."""
    return (digest ^ _seed(tuple(menus), odd=odd)) - _TO_SIGNED


@lru_cache(maxsize=1024)
def _seed(menus: tuple[str, ...], *, odd: bool) -> int:
    return xxh3_64_intdigest(repr((_READING_VERSION, menus, odd)).encode())
