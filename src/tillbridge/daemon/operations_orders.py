"""What commands and the page ask about orders: lists, one whole, and what is done about one."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.actor import current_actor
from tillbridge.core.i18n import _
from tillbridge.daemon.rooms import House, StoreRooms
from tillbridge.ledger import search
from tillbridge.ledger.community import parent_of
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_past import items_then
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import event_of, find_called, read_log
from tillbridge.model.instant import to_iso
from tillbridge.model.order import ReasonCode
from tillbridge.orders.problems import the_one
from tillbridge.orders.state import ByHand
from tillbridge.web import order_part
from tillbridge.web.ports import Answer

_NEW_MS = 4 * 3_600_000
_SEEN = "orders_seen"  # the fact: up to when somebody has looked at new orders (ms)


class OrderOperations:
    """The operations."""

    def __init__(
        self, house: House, stores: Mapping[str, StoreRooms], later: Callable[[str], str]
    ) -> None:
        self._ledger = house.ledger
        self._settings = house.settings
        self._clock = house.clock
        self._stores = stores
        self._later = later

    async def list(
        self, *, text: str = "", state: str = "", store: str = "", page: int = 1
    ) -> Answer:
        """Return a page of orders, newest first."""
        stores = (store,) if store in self._settings.stores else None
        wanted = search.OrderFilter(text, state, stores)

        now = self._clock.now_ms()

        def read(connection: Connection) -> Answer:
            found = search.find_page(connection, wanted, page=max(1, page))
            # What is older than some hours needs no more noise.
            seen = max(_seen_at(get_fact(connection, "", _SEEN)), now - _NEW_MS)
            return {
                "orders": [
                    {
                        **order_part.order_part(row, found.handled.get(row.order_id)),
                        "new": row.received_at > seen,
                        **_worth(row),
                    }
                    for row in found.rows
                ],
                "count": found.count,
                "page": max(1, page),
                "pages": max(1, -(-found.count // search.PER_PAGE)),
                "unseen": search.received_since(connection, seen, stores=stores),
            }

        answer = await self._ledger.read(read)
        return {**answer, "sound": self._settings.status_page.new_orders_sound}

    async def show(self, order_id: str) -> Answer:
        """Return an order whole."""

        def read(connection: Connection) -> Answer:
            return _whole(connection, the_one(find_called(connection, order_id), order_id))

        return await self._ledger.read(read)

    async def seen(self) -> Answer:
        """Take note that somebody has looked at the new orders: they sound no more."""
        now = self._clock.now_ms()
        await self._ledger.write(
            lambda connection: put_fact(connection, "", _SEEN, {"at": now}, at=now)
        )
        return {"ok": True, "text": _("Noted: you have seen the new orders.")}

    async def retry(self, order_id: str) -> Answer:
        """Try at once what still has to be done for an order."""
        row, rooms = await self._rooms_of(order_id)
        return self._told(await rooms.orders.retry(row.order_id, by=current_actor().who))

    async def cancel(self, order_id: str, *, reason_code: str) -> Answer:
        """Cancel an order."""
        row, rooms = await self._rooms_of(order_id)
        code = ReasonCode(reason_code)
        return self._told(await rooms.orders.cancel(row.order_id, code, by=current_actor().who))

    async def done(self, order_id: str, *, how: str) -> Answer:
        """Leave an order to a person."""
        row, rooms = await self._rooms_of(order_id)
        by_hand: ByHand = "typed" if how == "typed" else "settled"
        return self._told(await rooms.orders.done(row.order_id, by_hand, by=current_actor().who))

    def _told(self, text: str) -> Answer:
        return {"ok": True, "text": self._later(text)}

    async def _rooms_of(self, name: str) -> tuple[OrderRow, StoreRooms]:
        rows = await self._ledger.read(lambda connection: find_called(connection, name))
        row = the_one([row for row in rows if row.store in self._stores], name)
        return row, self._stores[row.store]


def _whole(connection: Connection, row: OrderRow) -> Answer:
    entries = read_log(connection, row.store, row.order_id)
    event_id = event_of(entries)
    delivery = search.arrived(connection, row.store, event_id) if event_id else None
    parent = parent_of(connection, row.order_id)
    ordered = order_part.lines_part(row)
    if ordered is not None:
        then = _menu_then(connection, row, ordered["lines"])
        ordered["lines"] = [
            {**line, "menu": menu} for line, menu in zip(ordered["lines"], then, strict=True)
        ]
    return {
        **order_part.order_part(row, search.handled_entry(connection, row.store, row.order_id)),
        "may": order_part.may_be_done(row),
        "life": order_part.life_part(row, entries, delivery),
        "delivery": None
        if delivery is None
        else {
            "event_id": delivery.event_id,
            "delivery_id": delivery.delivery_id,
            "received_at": to_iso(delivery.received_at),
        },
        "ordered": ordered,
        "order": json.loads(row.payload) if row.payload else None,
        "community_order": None
        if parent is None
        else {
            "community": parent.community.partition("/")[2],
            "order_id": parent.order_id,
            "order_number": parent.order_number,
            "status": parent.status,
        },
    }


def _menu_then(
    connection: Connection, row: OrderRow, lines: Sequence[Mapping[str, Any]]
) -> list[Answer | None]:
    """Return for each line what the menu said when it was placed; None where it had no such item.

    `name`, `price` (minor units) and `on_sale`.
    """
    ids = {line["external_id"] for line in lines if line["external_id"]}
    then = items_then(connection, row.store, ids, row.placed_at or row.received_at)
    told: list[Answer | None] = []
    for line in lines:
        item = then.get(line["external_id"] or "")
        if item is None:
            told.append(None)
            continue
        variant = next(
            (each for each in item.variants if each.external_id == line["variant"]), None
        )
        told.append(
            {
                "name": item.name,
                "price": item.price if variant is None else variant.price,
                "on_sale": item.available and (variant is None or variant.available),
            }
        )
    return told


def _worth(row: OrderRow) -> Answer:
    ordered = order_part.lines_part(row) or {"lines": (), "total": None, "currency": ""}
    return {
        "items": sum(
            line["quantity"] if isinstance(line["quantity"], int) else 1
            for line in ordered["lines"]
        ),
        "total": ordered["total"],
        "currency": ordered["currency"],
    }


def _seen_at(fact: object) -> int:
    at = fact.get("at") if isinstance(fact, Mapping) else None
    return at if isinstance(at, int) else 0
