"""What an answer of the catalogue changes in its mirror. Pure.

A record is known by its kind and id. Of two with one id in an answer the last counts.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tillbridge.model.community import Record

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """Records to write, and keys to remove."""

    put: tuple[Record, ...]
    gone: tuple[Key, ...]


def replaced(known: Collection[Key], told: Iterable[Record]) -> Change:
    """Return what a whole answer changes: what it does not tell of is gone."""
    there = {_key(each): each for each in told if not each.removed}
    return Change(tuple(there.values()), tuple(key for key in known if key not in there))


def advanced(told: Iterable[Record]) -> Change:
    """Return what an incremental answer changes: what it does not tell of stays as it is."""
    last = {_key(each): each for each in told}
    return Change(
        tuple(each for each in last.values() if not each.removed),
        tuple(key for key, each in last.items() if each.removed),
    )


def _key(record: Record) -> Key:
    return (record.kind, record.record_id)
