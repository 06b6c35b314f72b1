"""What the orders of a store bring about in the rooms next door."""

from collections.abc import Sequence

from tillbridge.catalogue.flow import CatalogueFlow
from tillbridge.daemon.pausing import Pausing


class Effects:
    """Hands on what orders find out: to the menu, and to whoever pauses the store."""

    def __init__(self, catalogue: CatalogueFlow, pausing: Pausing) -> None:
        self._catalogue = catalogue
        self._pausing = pausing

    async def items_out(self, external_ids: Sequence[str]) -> None:
        """Take these items off sale."""
        await self._catalogue.out_of_stock(external_ids)

    async def price_mismatch(self) -> None:
        """Synchronise the menu again."""
        self._catalogue.resync()

    def pos_offline(self, detail: str) -> None:  # noqa: ARG002 -- the problem desk has it already
        """Begin to count towards a pause."""
        self._pausing.pos_went()

    def order_lost(self) -> None:
        """Pause without waiting any longer."""
        self._pausing.order_lost()

    def pos_online(self) -> None:
        """Begin to count towards resuming."""
        self._pausing.pos_came()
