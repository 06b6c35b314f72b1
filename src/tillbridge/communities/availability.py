"""Whether a community sells an item: the merchant's side and the community's, and both. Pure.

Specification: "effective availability is the AND of merchant-side and community-side availability";
a snooze ends by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.ledger.community import Word
from tillbridge.model.community import Record
from tillbridge.model.instant import to_iso


@dataclass(frozen=True, slots=True)
class Standing:
    """An item in a community. None: nobody has told.

    `own_available` is this bridge's word alone, `told_available` what the community's catalogue
    said last (both sides as of then), `effective` what holds now.
    """

    own_available: bool
    own_until: int | None
    own_told: bool
    told_available: bool | None
    effective: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return it as commands show it."""
        return {
            "available": self.effective,
            "own": {
                "available": self.own_available,
                "until": None if self.own_until is None else to_iso(self.own_until),
                "told": self.own_told,
            },
            "catalogue_available": self.told_available,
        }


def both(merchant: bool | None, community: bool | None) -> bool | None:  # noqa: FBT001 -- the two sides
    """Return the AND of the two sides; one that says no is enough, whatever the other is."""
    if merchant is False or community is False:
        return False
    return True if merchant and community else None


def holds(word: Word, now_ms: int) -> bool:
    """Whether a word takes its item off sale now."""
    return not word.available and (word.until is None or word.until > now_ms)


def standing(record: Record, word: Word | None, now_ms: int) -> Standing:
    """Return how an item stands at `now_ms`."""
    off = word is not None and holds(word, now_ms)
    return Standing(
        own_available=not off,
        own_until=word.until if word is not None and off else None,
        own_told=word is None or word.told_at is not None,
        told_available=record.available,
        effective=both(record.available, not off),
    )


def to_tell(words: Iterable[Word], now_ms: int) -> tuple[Word, ...]:
    """Return the words that the service is still to be told, oldest first."""
    waiting = [each for each in words if each.told_at is None and not _is_over(each, now_ms)]
    return tuple(sorted(waiting, key=lambda each: (each.at, each.item_id)))


def over(words: Iterable[Word], now_ms: int) -> tuple[str, ...]:
    """Return the items whose snooze has ended: the service restores them by itself."""
    return tuple(each.item_id for each in words if _is_over(each, now_ms))


def lifted(
    words: Iterable[Word], told: Mapping[str, Record], *, asked_at: int, now_ms: int
) -> tuple[str, ...]:
    """Return the items that somebody else has restored in the community.

    `told` are items of an answer that was asked for at `asked_at`: where one is on sale although
    our word, taken before then, says otherwise, the word is no longer the community's.
    """
    return tuple(
        each.item_id
        for each in words
        if each.told_at is not None
        and each.told_at < asked_at
        and holds(each, now_ms)
        and each.item_id in told
        and told[each.item_id].available is True
    )


def _is_over(word: Word, now_ms: int) -> bool:
    return not word.available and word.until is not None and word.until <= now_ms
