"""This bridge's own availability of a community's items, and what follows for the items.

Specification: "effective availability is the AND of merchant-side and community-side availability";
a snooze ends by itself; PATCH /communities/{communityId}/catalogue/items/{itemId}. An override is
stored first, then pushed until the service has taken it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tillbridge.communities.context import CommunityContext
from tillbridge.core.errors import Refused
from tillbridge.core.log import get_logger
from tillbridge.ledger.models import CommunityOverride
from tillbridge.ledger.overrides import (
    community_overrides,
    drop_overrides,
    put_override,
    settle_override,
)
from tillbridge.model.community import Record
from tillbridge.model.instant import to_iso


@dataclass(frozen=True, slots=True)
class ItemAvailability:
    """An item in a community. None: nothing is known.

    `own_available` is this bridge's override alone, `catalogue_available` what the community's
    catalogue had last (both sides as of then), `effective` what holds now.
    """

    own_available: bool
    own_until: int | None
    own_pushed: bool
    catalogue_available: bool | None
    effective: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return it as commands show it."""
        return {
            "available": self.effective,
            "own": {
                "available": self.own_available,
                "until": None if self.own_until is None else to_iso(self.own_until),
                "told": self.own_pushed,
            },
            "catalogue_available": self.catalogue_available,
        }


def both(merchant: bool | None, community: bool | None) -> bool | None:  # noqa: FBT001 -- the two sides
    """Return the AND of the two sides; one that says no is enough, whatever the other is."""
    if merchant is False or community is False:
        return False
    return True if merchant and community else None


def holds(override: CommunityOverride, now_ms: int) -> bool:
    """Whether an override takes its item off sale now."""
    return not override.available and (override.until is None or override.until > now_ms)


def item_availability(
    record: Record, override: CommunityOverride | None, now_ms: int
) -> ItemAvailability:
    """Return how an item is at `now_ms`."""
    off = override is not None and holds(override, now_ms)
    return ItemAvailability(
        own_available=not off,
        own_until=override.until if override is not None and off else None,
        own_pushed=override is None or override.sent_at is not None,
        catalogue_available=record.available,
        effective=both(record.available, not off),
    )


def to_push(overrides: Iterable[CommunityOverride], now_ms: int) -> tuple[CommunityOverride, ...]:
    """Return the overrides that the service does not have yet, oldest first."""
    waiting = [each for each in overrides if each.sent_at is None and not _is_over(each, now_ms)]
    return tuple(sorted(waiting, key=lambda each: (each.at, each.external_id)))


def over(overrides: Iterable[CommunityOverride], now_ms: int) -> tuple[str, ...]:
    """Return the items whose snooze has ended: the service restores them by itself."""
    return tuple(each.external_id for each in overrides if _is_over(each, now_ms))


def lifted(
    overrides: Iterable[CommunityOverride],
    items: Mapping[str, Record],
    *,
    asked_at: int,
    now_ms: int,
) -> tuple[str, ...]:
    """Return the items that somebody else has restored in the community.

    `items` are those of an answer that was asked for at `asked_at`: where one is on sale although
    our override, taken before then, says otherwise, the override is no longer the community's.
    """
    return tuple(
        each.external_id
        for each in overrides
        if each.sent_at is not None
        and each.sent_at < asked_at
        and holds(each, now_ms)
        and each.external_id in items
        and items[each.external_id].available is True
    )


def _is_over(override: CommunityOverride, now_ms: int) -> bool:
    return not override.available and override.until is not None and override.until <= now_ms


log = get_logger()


class CommunityOverrides:
    """The overrides of one community."""

    def __init__(self, context: CommunityContext) -> None:
        self._context = context

    async def set(self, item_id: str, *, available: bool, until: int | None, by: str) -> None:
        """Store an override; the next `push` sends it. Raises LedgerError."""
        override = CommunityOverride(
            store=self._context.key,
            external_id=item_id,
            available=available,
            until=until,
            by=by,
            at=self._context.clock.now_ms(),
        )
        await self._context.ledger.write(partial(put_override, override=override))
        log.info(
            "community.override_set",
            community=self._context.name,
            item=item_id,
            available=available,
        )

    async def all(self) -> dict[str, CommunityOverride]:
        """Return the overrides, by item id."""
        key = self._context.key
        return await self._context.ledger.read(partial(community_overrides, community=key))

    async def push(self) -> None:
        """Send what the service does not have yet. Raises ServiceError, LedgerError.

        The override of an item that the community does not have any more is dropped.
        """
        context = self._context
        overrides = (await self.all()).values()
        for item_id in over(overrides, context.clock.now_ms()):
            await self._drop(item_id)
        for override in to_push(overrides, context.clock.now_ms()):
            try:
                if override.available:
                    await context.calls.restore(override.external_id)
                else:
                    await context.calls.take_off(override.external_id, until_ms=override.until)
            except Refused as failure:
                if failure.status != 404:
                    raise
                log.warning(
                    "community.item_gone", community=context.name, item=override.external_id
                )
                await self._drop(override.external_id)
                continue
            at = context.clock.now_ms()
            await context.ledger.write(partial(settle_override, sent=override, at=at))
            log.info("community.override_pushed", community=context.name, item=override.external_id)

    async def _drop(self, item_id: str) -> None:
        await self._context.ledger.write(
            partial(
                drop_overrides,
                store=self._context.key,
                external_ids=[item_id],
                kind=CommunityOverride,
            )
        )
