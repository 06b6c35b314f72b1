"""What the kitchen asks: which items are off sale, where is this one; and take it off sale."""

from typing import TYPE_CHECKING, Annotated, TypedDict

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import clock_time, number, short_span
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.operations.arguments import ItemId, Store, Until, next_opening

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.menu.board import BoardView
    from tillbridge.menu.views import FoundView, OffSale
    from tillbridge.operations.bridge import Bridge

_SECOND_MS, _HOUR_MS = 1000, 3_600_000
_MOST_FOUND = 40


class Ends(TypedDict):
    """When an item that is taken off sale now can come back: instants in ms."""

    opening_ms: int
    hour_ms: int


class OffSaleNow(TypedDict):
    """What is off sale."""

    items: "list[OffSale]"
    ends: Ends


class Board(TypedDict):
    """The 86 board, and when what is taken off sale now comes back."""

    board: "BoardView"
    ends: Ends


@operation("item.86", role=Role.STAFF, command="item 86")
async def take_off(bridge: "Bridge", store: Store, item: ItemId, *, until: Until = None) -> Answer:
    """Mark an item as sold out, whatever the till says.

    Times are the store's local time; "tomorrow" is its next midnight, "opening" the first opening
    of its next day.

    Example: tillbridge item 86 main B1 --until 18:30
    """
    from tillbridge.menu.views import is_item, name_of_item

    now = bridge.clock.now_ms()
    if not await bridge.ledger.read(is_item, store.name, item):
        raise BridgeError(
            _("The menu has no item {item}.").format(item=item),
            fix=_(
                "Give its id in the till (external_id). To find it: tillbridge item find STORE TEXT"
            ),
        )
    await store.menu.take_off_sale(item, until=until, by=current_actor().who)
    text = (
        _("{item} is sold out until you restore it.")
        if until is None
        else _("{item} is sold out until {until}.")
    )
    end = "" if until is None else clock_time(until, now)
    name = await bridge.ledger.read(name_of_item, store.name, item)
    return {"ok": True, "text": bridge.later(text).format(item=name, until=end)}


@operation("item.restore", role=Role.STAFF, command="item restore")
async def restore(bridge: "Bridge", store: Store, item: ItemId) -> Answer:
    """Put an item back on sale: the till decides again.

    Example: tillbridge item restore main B1
    """
    from tillbridge.menu.views import name_of_item

    restored = await store.menu.restore(item)
    name = await bridge.ledger.read(name_of_item, store.name, item)
    if not restored:
        return {"ok": False, "text": _("{item} was not marked as sold out here.").format(item=name)}
    text = bridge.later(_("{item} is back on sale, unless it is sold out in the till."))
    return {"ok": True, "text": text.format(item=name)}


@operation("items.off", role=Role.LOOK, reads=True, command="item off")
async def off(bridge: "Bridge", store: Store) -> OffSaleNow:
    """List sold-out items: since when, until when, by whom, and whether guests still see them.

    Example: tillbridge item off main
    """
    from tillbridge.menu.views import items_off_sale

    now = bridge.clock.now_ms()
    items = await bridge.ledger.read(items_off_sale, store.name, now)
    return {"items": items, "ends": await _ends(bridge, store)}


async def _ends(bridge: "Bridge", store: "StoreServices") -> Ends:
    opening_ms = await next_opening(bridge, store)
    return {"opening_ms": opening_ms, "hour_ms": bridge.clock.now_ms() + _HOUR_MS}


@operation("items.board", role=Role.LOOK, reads=True)
async def board(
    bridge: "Bridge", store: Store, *, text: str = "", category: str = "", page: int = 1
) -> Board:
    """Return the menu in tiles: what fits the text, else a category, else all if that is little."""
    from tillbridge.menu.board import board_view

    now, currency = bridge.clock.now_ms(), store.settings.currency
    shown = await bridge.ledger.read(
        board_view,
        store.name,
        text=text,
        category=category,
        page=max(1, page),
        currency=currency,
        now=now,
    )
    return {"board": shown, "ends": await _ends(bridge, store)}


@operation("items.find", role=Role.LOOK, reads=True, command="item find")
async def find(
    bridge: "Bridge",
    store: Store,
    text: Annotated[str, Argument("TEXT", _("Part of a name, its initials, or an id."))],
) -> "FoundView":
    """Find items by a few letters, with the id that item 86 needs.

    Example: tillbridge item find main pm
    """
    from tillbridge.menu.views import items_found

    return await bridge.ledger.read(
        items_found, store.name, text, store.settings.currency, limit=_MOST_FOUND
    )


def taken_off_by(item: "OffSale") -> str:
    """Return who took the item off sale."""
    match item["how"]:
        case "till":
            return _("the till")
        case "order":
            return _("the till, when it refused an order")
        case _:
            return item["by"]


def reached(item: "OffSale") -> str:
    """Return whether guests still see it, and how long it took to hide it."""
    if item["how"] == "till":
        return _("Hidden from guests")
    if item["reached_ms"] is None:
        return _("Guests still see it …")
    if item["reached_ms"] == 0:
        return _("Hidden from guests ✓")
    took_ms = item["reached_ms"]
    if took_ms < _SECOND_MS:  # in seconds too: nobody in a kitchen counts milliseconds
        took = _("{n} s").format(n=number(max(round(took_ms / _SECOND_MS, 1), 0.1)))
    else:
        took = short_span(took_ms)
    return _("Hidden from guests ✓ (took {span})").format(span=took)
