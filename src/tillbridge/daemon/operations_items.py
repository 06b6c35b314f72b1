"""What the kitchen asks: which items are off sale, where is this one; and take it off sale."""

from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.daemon.rooms import House, StoreRooms
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu import (
    accepted_ids,
    items_by_id,
    items_off_by_pos,
    overlaid_items,
    variant_owners,
)
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.menu_past import off_since
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.overrides import get_overrides
from tillbridge.ledger.search import FoundItem, find_items
from tillbridge.model.business_day import next_day_opens
from tillbridge.model.hours import hours_from_json
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major
from tillbridge.web.order_words import who
from tillbridge.web.ports import Answer
from tillbridge.web.words import clock_time

_HOUR_MS = 3_600_000


class ItemOperations:
    """The operations."""

    def __init__(
        self, rooms_of: Callable[[str], StoreRooms], house: House, later: Callable[[str], str]
    ) -> None:
        self._rooms_of = rooms_of
        self._ledger = house.ledger
        self._clock = house.clock
        self._later = later

    async def off(self, store: str) -> Answer:
        """Return what is off sale, the latest first, and when the usual ends are."""
        rooms = self._rooms_of(store)
        now = self._clock.now_ms()
        zone = ZoneInfo(rooms.settings.timezone) if rooms.settings.timezone else None

        def read(connection: Connection) -> Answer:
            hours = hours_from_json(get_fact(connection, store, "store_hours"))
            opens = next_day_opens(hours, zone, now)
            return {
                "items": _off(connection, store, now),
                "ends": {"opening_ms": opens, "hour_ms": now + _HOUR_MS},
            }

        return await self._ledger.read(read)

    async def find(self, store: str, text: str, *, limit: int = 40, offset: int = 0) -> Answer:
        """Return items and variants that fit the letters, best first."""
        currency = self._rooms_of(store).settings.currency

        def read(connection: Connection) -> Answer:
            found = find_items(connection, store, text, limit=limit, offset=offset)
            stopped = get_overrides(connection, store)
            return {
                "items": [_found(each, currency, stopped) for each in found.items],
                "count": found.count,
            }

        return await self._ledger.read(read)

    async def take_off(
        self, store: str, external_id: str, *, until_ms: int | None, by: str
    ) -> Answer:
        """Take an item off sale, whatever the POS says."""
        rooms = self._rooms_of(store)
        await self._check_item(store, external_id)
        now = self._clock.now_ms()
        if until_ms is not None and until_ms <= now:
            raise ConfigError(
                _("That time is over."), fix=_("Give a time to come, or none at all.")
            )
        await rooms.catalogue.take_off(external_id, until=until_ms, by=by)
        text = (
            _("{item} is off sale until it is restored.")
            if until_ms is None
            else _("{item} is off sale until {until}.")
        )
        until = "" if until_ms is None else clock_time(until_ms, now)
        name = await self._name(store, external_id)
        return {"ok": True, "text": self._later(text).format(item=name, until=until)}

    async def restore(self, store: str, external_id: str) -> Answer:
        """Lift the staff's word on an item."""
        restored = await self._rooms_of(store).catalogue.restore(external_id)
        name = await self._name(store, external_id)
        if not restored:
            text = _("{item} was not taken off sale here.")
            return {"ok": False, "text": text.format(item=name)}
        text = self._later(_("{item} is again as the till says."))
        return {"ok": True, "text": text.format(item=name)}

    async def _name(self, store: str, external_id: str) -> str:
        """Return what people call an item or a variant; its id where the menu has none."""

        def name(connection: Connection) -> str:
            owner = variant_owners(connection, store, [external_id]).get(external_id, external_id)
            found = items_by_id(connection, store, {owner}).get(owner)
            if found is None:
                return external_id
            variant = _variant_of(found, external_id)
            return f"{found.item.name} {variant}".rstrip()

        return await self._ledger.read(name)

    async def _check_item(self, store: str, external_id: str) -> None:
        def known(connection: Connection) -> bool:
            return bool(
                accepted_ids(connection, store, [external_id])
                or variant_owners(connection, store, [external_id])
            )

        if not await self._ledger.read(known):
            raise BridgeError(
                _("The menu has no item {item}.").format(item=external_id),
                fix=_("Give its id in the till, which the export calls external_id."),
            )


def _found(item: FoundItem, currency: str, stopped: Mapping[str, StoreOverride]) -> Answer:
    return {
        "external_id": item.external_id,
        "item_id": item.item_id,
        "name": item.name,
        "variant": item.variant,
        "price": to_major(item.price, currency),
        "currency": currency,
        "on_sale": item.on_sale,
        "pos_on_sale": item.pos_on_sale,
        "stopped": item.external_id in stopped,
    }


def _off(connection: Connection, store: str, now: int) -> list[Answer]:
    overrides = {
        key: each
        for key, each in get_overrides(connection, store).items()
        if each.until is None or each.until > now
    }
    owners = variant_owners(connection, store, overrides)
    named = items_by_id(connection, store, {*overrides, *owners.values()})
    by_people = [
        _stopped(key, each, named.get(owners.get(key, key))) for key, each in overrides.items()
    ]
    by_pos = [
        each
        for key, each in {
            **items_off_by_pos(connection, store),
            **overlaid_items(connection, store),
        }.items()
        if key not in overrides and not each.item.available
    ]
    since = off_since(connection, store, [each.item.external_id for each in by_pos])
    told = [*by_people, *(_off_by_pos(each, since) for each in by_pos)]
    return sorted(told, key=lambda each: (each["since"] or "", each["name"]), reverse=True)


def _stopped(external_id: str, override: StoreOverride, owner: AcceptedItem | None) -> Answer:
    item = None if owner is None else owner.item
    variant = "" if owner is None else _variant_of(owner, external_id)
    took = None if override.sent_at is None else max(0, override.sent_at - override.at)
    by_till = override.by == "order"
    return {
        "external_id": external_id,
        "name": external_id if item is None else item.name,
        "variant": variant,
        "how": "order" if by_till else "staff",
        "by": "" if by_till else who(override.by),
        "since": to_iso(override.at),
        "until": None if override.until is None else to_iso(override.until),
        "reached_at": None if override.sent_at is None else to_iso(override.sent_at),
        "reached_ms": took,
    }


def _variant_of(owner: AcceptedItem, external_id: str) -> str:
    """Return the name of an item's variant; "" for the item itself."""
    variants = owner.item.variants
    return next((each.variant_name for each in variants if each.external_id == external_id), "")


def _off_by_pos(accepted: AcceptedItem, since: Mapping[str, int]) -> Answer:
    item = accepted.item
    at, until = since.get(item.external_id), item.snooze_until
    return {
        "external_id": item.external_id,
        "name": item.name,
        "variant": "",
        "how": "till",
        "by": "",
        "since": None if at is None else to_iso(at),
        "until": None if until is None else to_iso(until),
        "reached_at": None if at is None else to_iso(at),
        "reached_ms": None,
    }
