"""Which rows of a reading have which ids: an id is that of one thing alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tillbridge.adapter.texts import one_line

_Cells = TypeVar("_Cells", bound=Sequence[str])


@dataclass(frozen=True, slots=True)
class Clash:
    """A row has an id that an earlier row has.

    `is_same` says whether the whole record equals the earlier one: then nothing is lost.
    """

    external_id: str
    row: int
    first_row: int
    is_same: bool


def all_differ(cells: Sequence[str]) -> bool:
    """Return whether no two of these cells hold one id, so that none need be claimed.

    Nearly every export has an id once, and is known for that at a glance.
    """
    text = "".join(cells)
    if " " in text or not text.isprintable():
        cells = list(map(one_line, cells))
    blank = cells.count("")
    return len(set(cells)) == len(cells) - blank + bool(blank)


def distinct_rows(rows: Iterable[tuple[int, _Cells]]) -> list[tuple[int, _Cells]]:
    """Return the rows without those that say what a row above says: nothing of them is lost."""
    first: dict[tuple[str, ...], tuple[int, _Cells]] = {}
    for row in rows:
        first.setdefault(tuple(row[1]), row)
    return list(first.values())


class ClaimedIds:
    """The ids in one reading, including those of known records; the first record keeps its ids."""

    __slots__ = ("_claims",)

    def __init__(self) -> None:
        self._claims: dict[str, tuple[int, int]] = {}

    def claim(self, ids: Iterable[tuple[str, int]], fingerprint: int) -> Clash | None:
        """Claim the ids of a record, each with its row; claim none if one of them is taken.

        A row can have an id twice, as item and as its only size.
        """
        own: dict[str, tuple[int, int]] = {}
        for external_id, row in ids:
            if (taken := self._claims.get(external_id)) is not None:
                return Clash(external_id, row, taken[0], is_same=taken[1] == fingerprint)
            first = own.setdefault(external_id, (row, fingerprint))[0]
            if first != row:
                return Clash(external_id, row, first, is_same=False)
        self._claims |= own
        return None
