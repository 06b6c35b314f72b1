"""What the orders of a store bring about in the rooms next door."""

from collections.abc import Sequence

from tillbridge.core.actor import Actor, acting_as
from tillbridge.menu.flow import CatalogueFlow
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.stores.pos_pause import PosPause


class Effects:
    """Hands on what orders find out: to the menu, and to whoever pauses the store.

    What the bridge does by itself is in the audit trail like what people do.
    """

    def __init__(
        self, store: str, catalogue: CatalogueFlow, pauser: PosPause, trail: AuditTrail
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._pauser = pauser
        self._trail = trail

    async def items_out(self, external_ids: Sequence[str]) -> None:
        """Take these items off sale."""
        await self._catalogue.out_of_stock(external_ids)
        with acting_as(Actor()):
            for external_id in external_ids:
                await self._trail.note(
                    "item.86", store=self._store, target=external_id, why="out of stock"
                )

    async def price_mismatch(self) -> None:
        """Synchronise the menu again."""
        self._catalogue.resync()

    def pos_offline(self, detail: str) -> None:  # noqa: ARG002 -- the problem desk has it already
        """Begin to count towards a pause."""
        self._pauser.pos_went()

    def pos_closed(self, why: str) -> None:
        """Pause while the till takes no orders."""
        self._pauser.pos_closed(why)

    def order_lost(self) -> None:
        """Pause without waiting any longer."""
        self._pauser.order_lost()

    def pos_online(self) -> None:
        """Begin to count towards resuming."""
        self._pauser.pos_came()
