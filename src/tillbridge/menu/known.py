"""The fingerprints of the records the service has, small enough to keep: 8 bytes a record."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet


class KnownFingerprints(AbstractSet[int]):
    """A set of signed 64-bit numbers over a sorted array."""

    def __init__(self, in_order: "array[int]") -> None:
        self._in_order = in_order

    @classmethod
    def _from_iterable(cls, numbers: Iterable[int]) -> frozenset[int]:  # type: ignore[override] # what set operations give
        return frozenset(numbers)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._in_order, number)
        return place < len(self._in_order) and self._in_order[place] == number

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_order)

    def __len__(self) -> int:
        return len(self._in_order)
