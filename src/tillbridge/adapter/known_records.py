"""Reading a menu as its difference, for adapters: which records of an export are known already.

A till exports the whole menu whenever one dish has changed. Finding the few records that are new
takes a fraction of what making items of all of them takes, and nothing need be remembered for it:
the bridge passes the fingerprints of the records it has, and an adapter returns the others.

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        records = KnownRecords(known, header, self._currency)
        for row in rows:
            fingerprint = records.new(row)
            if fingerprint is not None:
                ...  # make an item of it, or a bad row; keep the item's fingerprint
        return records.changes(Catalogue.of(items, fingerprints=fingerprints))

    def read_catalogue(self) -> Catalogue:
        return self.read_changes(frozenset()).fresh

Beside the record itself, all that decides which item it means must be given to `KnownRecords`: the
columns, the options, the currency, what other files say about it. Where one of these changes, all
records are new. A record that makes no item, or a bad row, is new each time, as it must be reported
each time; and the ids of known records are not looked at: where a new record has the id of a
known one, both are reported, and the bridge finds it out.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from xxhash import xxh3_64_intdigest

from tillbridge.model.catalogue import Catalogue, CatalogueChanges

# The rows of one item, each with its number.
RowsT = TypeVar("RowsT", bound=Sequence[tuple[int, Sequence[str]]])

_MARK = "\x1f"  # between the texts of a record
_TO_SIGNED = 1 << 63  # a ledger's integers are signed


class KnownRecords:
    """The records of one reading, identified by their fingerprints.

    `meaning` is everything besides a record that determines its item. Its `repr` counts, so it must
    consist of values: texts, numbers, tuples, frozen dataclasses. Include a version number, and
    raise it when the same record comes to mean another item.
    """

    __slots__ = ("_known", "_seed", "_unseen")

    def __init__(self, known: AbstractSet[int], *meaning: object) -> None:
        self._known = len(known)
        self._unseen = set(known)
        self._seed = xxh3_64_intdigest(repr(meaning).encode("utf-8", "surrogatepass"))

    def new(self, record: Iterable[str]) -> int | None:
        """Return the fingerprint of a new record, or None for a known one.

        `record` is all the texts that make up an item, in a fixed order; if it has several rows,
        those of all rows. A record that appears twice is known once.
        """
        fingerprint = self.fingerprint(record)
        return None if self.is_known(fingerprint) else fingerprint

    def fingerprint(self, record: Iterable[str]) -> int:
        """Return the fingerprint of a record without counting it as seen.

        With it, an adapter can distinguish a record that appears twice from two that share an id.
        """
        # JSON may have half of a character.
        content = _MARK.join(record).encode("utf-8", "surrogatepass")
        return xxh3_64_intdigest(content, self._seed) - _TO_SIGNED

    def new_items(
        self, items: Iterable[RowsT], read: Callable[[Sequence[str]], Iterable[str]], width: int
    ) -> list[tuple[RowsT, int]]:
        """Return the items of several rows whose records are new, with their fingerprints.

        A record is what `read` returns for each row. An item with a row that does not have `width`
        cells is bad in itself: it is returned every time, with 0.
        """
        new: list[tuple[RowsT, int]] = []
        # Done for each row of an export, whenever the till writes it.
        join, digest, seed, unseen = _MARK.join, xxh3_64_intdigest, self._seed, self._unseen
        for rows in items:
            cells = rows[0][1]
            if len(rows) > 1:
                if any(len(each) != width for _number, each in rows):
                    new.append((rows, 0))
                    continue
                record: Iterable[str] = [cell for _number, each in rows for cell in read(each)]
            elif len(cells) != width:
                new.append((rows, 0))
                continue
            else:
                record = read(cells)
            content = join(record).encode("utf-8", "surrogatepass")
            fingerprint = digest(content, seed) - _TO_SIGNED
            if fingerprint in unseen:
                unseen.remove(fingerprint)
            else:
                new.append((rows, fingerprint))
        return new

    def is_known(self, fingerprint: int) -> bool:
        """Return whether a record is known, and count it as seen, once."""
        if fingerprint not in self._unseen:
            return False
        self._unseen.remove(fingerprint)
        return True

    def changes(self, fresh: Catalogue) -> CatalogueChanges:
        """Return the changes, once every record has been checked.

        `fresh` is the content of the new records: items with their fingerprints, the parts they
        name, bad rows; and all parts that can change while no item does: add-ons and their groups,
        and categories whose names differ from their ids.
        """
        return CatalogueChanges(
            fresh=fresh,
            unseen=frozenset(self._unseen),
            items_read=self._known - len(self._unseen) + len(fresh.items),
        )
