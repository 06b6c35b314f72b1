"""What the last reading of the menu was, so that an unchanged one need not be read again.

A query that looks at the whole menu at once, and answers with a number, costs a till far less than
the menu itself; and the bridge asks every few seconds. Every now and then the menu is read all the
same, in case the query looks past something.
"""

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tillbridge.adapter import BadRow, Catalogue, CatalogueChanges
from tillbridge.model.export_facts import ExportFacts
from tillbridge_sql.cells import Row

_READ_ANYWAY_S = 900.0

Mark = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class _Last:
    mark: Mark
    fingerprints: frozenset[int]
    items: int
    bad_rows: tuple[BadRow, ...]
    facts: ExportFacts
    at: float


class MenuMemory:
    """The mark and the fingerprints of the last reading."""

    def __init__(self) -> None:
        self._last: _Last | None = None

    def unchanged(self, mark: Sequence[Row], known: AbstractSet[int]) -> CatalogueChanges | None:
        """Return what an unchanged menu differs from `known`; None where it must be read."""
        last = self._last
        if last is None or last.mark != _mark(mark) or time.monotonic() > last.at + _READ_ANYWAY_S:
            return None
        if not all(each in known for each in last.fingerprints):
            return None
        return CatalogueChanges(
            fresh=Catalogue.of(bad_rows=last.bad_rows, facts=last.facts),
            unseen=frozenset(each for each in known if each not in last.fingerprints),
            items_read=last.items,
        )

    def changes(
        self, mark: Sequence[Row], menu: Catalogue, known: AbstractSet[int]
    ) -> CatalogueChanges:
        """Keep a reading, and return what it differs from `known`.

        `mark` was read in the same moment's state, so no change can fall between the two.
        """
        seen = frozenset(menu.fingerprints.values())
        self._last = (
            _Last(
                *(_mark(mark), seen, len(menu.items), menu.bad_rows, menu.facts, time.monotonic())
            )
            if mark
            else None
        )
        fresh = {
            key: item for key, item in menu.items.items() if menu.fingerprints[key] not in known
        }
        return CatalogueChanges(
            fresh=Catalogue(
                items=fresh,
                categories=menu.categories,
                add_ons=menu.add_ons,
                addon_groups=menu.addon_groups,
                menus=menu.menus,
                bad_rows=menu.bad_rows,
                facts=menu.facts,
                source=menu.source,
                fingerprints={key: menu.fingerprints[key] for key in fresh},
            ),
            unseen=frozenset(each for each in known if each not in seen),
            items_read=len(menu.items),
        )


def _mark(rows: Sequence[Row]) -> Mark:
    return tuple(tuple((name, repr(value)) for name, value in row.items()) for row in rows)
