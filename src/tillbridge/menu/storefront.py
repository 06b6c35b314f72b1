"""What the ledger remembers of the menu, brought in line with the storefront it belongs to.

Only the menu lane does this, at the beginning of its round, so that nothing it told an earlier
storefront is acknowledged afterwards.
"""

from functools import partial

from sqlalchemy import Connection

from tillbridge.core.log import get_logger
from tillbridge.ledger import menu
from tillbridge.ledger import storefront as books
from tillbridge.ledger.storefront import Kinship, Storefront
from tillbridge.menu.acknowledging import doubt, portions
from tillbridge.menu.shared import Shared

log = get_logger()

_PORTION = 1000  # items in one commit: a delivery must not wait long for its own


class MenuStorefront:
    """Decides whether the accepted menu still tells what the storefront has."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._store = shared.store
        self._ledger = shared.ledger

    async def settle(self) -> bool:
        """Compare the storefront with the one before; return whether a full push is due.

        At another store or another address the accepted menu is forgotten: nothing of it was ever
        told there. A new integration of the same store may have kept it or lost it: every item is
        told again, and the guard still compares with it.
        """

        def read(connection: Connection) -> tuple[Storefront | None, Storefront | None, list[str]]:
            known = books.remembered_storefront(connection, self._store, books.MENU)
            now = books.current_storefront(connection, self._store, self._shared.base_url)
            if now is None or books.kinship(known, now) is Kinship.SAME:
                return known, now, []
            return known, now, sorted(menu.all_ids(connection, self._store))

        known, now, ids = await self._ledger.read(read)
        if now is None:
            return False
        relation = books.kinship(known, now)
        if relation is not Kinship.SAME:
            await self._begin_anew(relation, ids)
        if known != now:
            at = self._shared.clock.now_ms()
            await self._ledger.write(
                lambda connection: books.remember_storefront(
                    connection, self._store, books.MENU, now, at=at
                )
            )
        return await self._ledger.read(
            lambda connection: books.is_whole_due(connection, self._store)
        )

    async def _begin_anew(self, relation: Kinship, ids: list[str]) -> None:
        log.warning(
            "menu.storefront_changed", store=self._store, what=relation.value, items=len(ids)
        )
        at = self._shared.clock.now_ms()
        if relation is Kinship.OTHER:
            for portion in portions(ids, _PORTION):
                await self._ledger.write(
                    partial(_forget, store=self._store, external_ids=list(portion), at=at)
                )
        else:
            await doubt(self._ledger, self._store, ids)
        await self._ledger.write(
            lambda connection: books.begin_anew(
                connection,
                self._store,
                parts=relation is Kinship.OTHER,
                pending=max(1, len(ids)),
                at=at,
            )
        )


def _forget(connection: Connection, *, store: str, external_ids: list[str], at: int) -> None:
    menu.forget_items(connection, store, external_ids, at=at)
