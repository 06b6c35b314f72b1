"""Our own word on a community's items: kept first, then told, until the service has taken it.

Specification: PATCH /communities/{communityId}/catalogue/items/{itemId}.
"""

from functools import partial

from tillbridge.communities.availability import over, to_tell
from tillbridge.communities.shared import Shared
from tillbridge.core.errors import Refused
from tillbridge.core.log import get_logger
from tillbridge.ledger.community import Word, drop_word, get_words, put_word, settle_word

log = get_logger()


class Words:
    """Says what this bridge says of a community's items."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def say(self, item_id: str, *, available: bool, until: int | None, by: str) -> None:
        """Keep a word; it is told by the next `tell`. Raises LedgerError."""
        at = self._shared.clock.now_ms()
        word = Word(item_id, available, until, by, at)
        await self._shared.ledger.write(
            lambda connection: put_word(connection, self._shared.key, word)
        )
        log.info("community.said", community=self._shared.name, item=item_id, available=available)

    async def all(self) -> dict[str, Word]:
        """Return what is said, by item id."""
        words = await self._shared.ledger.read(partial(get_words, community=self._shared.key))
        return {each.item_id: each for each in words}

    async def tell(self) -> None:
        """Tell the service what it does not know yet. Raises ServiceError, LedgerError.

        A word on an item that the community does not have any more is dropped.
        """
        shared = self._shared
        words = (await self.all()).values()
        for item_id in over(words, shared.clock.now_ms()):
            await self._drop(item_id)
        for word in to_tell(words, shared.clock.now_ms()):
            try:
                if word.available:
                    await shared.calls.restore(word.item_id)
                else:
                    await shared.calls.take_off(word.item_id, until_ms=word.until)
            except Refused as failure:
                if failure.status != 404:
                    raise
                log.warning("community.item_gone", community=shared.name, item=word.item_id)
                await self._drop(word.item_id)
                continue
            told_at = shared.clock.now_ms()
            await shared.ledger.write(
                partial(settle_word, community=shared.key, word=word, told_at=told_at)
            )
            log.info("community.told", community=shared.name, item=word.item_id)

    async def _drop(self, item_id: str) -> None:
        await self._shared.ledger.write(
            partial(drop_word, community=self._shared.key, item_id=item_id)
        )
