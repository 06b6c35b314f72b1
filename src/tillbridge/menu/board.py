"""The 86 board: the menu in tiles, and what of it guests do not see. Read only."""

from collections.abc import Collection, Mapping
from typing import Literal, TypedDict

from sqlalchemy import Connection

from tillbridge.ledger.menu import item_count, items_by_id
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.search import (
    board_categories,
    board_items,
    count_sizes,
    find_items,
    find_options,
)
from tillbridge.menu.views import OffSale, items_off_sale, overrides_in_force
from tillbridge.model.catalogue import AddOn
from tillbridge.model.instant import to_iso

MOST_AT_ONCE = 120
"""How many items a menu has that is shown whole; a larger one is opened by category."""
MOST_LINES = 300
"""How many items and sizes it has together."""
PER_PAGE = 60
"""How many items of a category, where it is opened."""
MOST_CATEGORIES = 200
_MOST_SIZES = 12
_MOST_OFF = 48

TileState = Literal["on", "hiding", "off", "till", "returning"]
"""What guests see of an item: it is on sale; it is sold out, as staff said, and the storefront has
not confirmed it yet, or has; it is sold out in the till; it is going back on sale."""


class SizeView(TypedDict):
    """A size of an item, which can be sold out by itself."""

    external_id: str
    name: str
    state: TileState
    until: str | None


class TileView(TypedDict):
    """An item or an add-on; `price` (minor units) is the smallest where sizes have their own."""

    external_id: str
    name: str
    price: int
    state: TileState
    until: str | None
    sizes: list[SizeView]


class SectionView(TypedDict):
    """Tiles of a category; `name` "": of no category, or of a search."""

    id: str
    name: str
    count: int
    tiles: list[TileView]


class CategoryView(TypedDict):
    """A category that can be opened."""

    id: str
    name: str
    count: int


class BoardView(TypedDict):
    """What the board shows: `sections` are open, `categories` are all there are.

    `count` is of the items of the whole menu, `found` of those that fit what was asked for;
    `off` has the latest of the `off_count` that are sold out.
    """

    sections: list[SectionView]
    categories: list[CategoryView]
    is_whole: bool
    category: str
    count: int
    found: int
    page: int
    pages: int
    currency: str
    off: list[OffSale]
    off_count: int


def board_view(
    connection: Connection,
    store: str,
    *,
    text: str,
    category: str,
    page: int,
    currency: str,
    now: int,
) -> BoardView:
    """Return the tiles that fit `text`, else those of a category, else all if there are few."""
    overrides = overrides_in_force(connection, store, now)
    categories, count = board_categories(connection, store), item_count(connection, store)
    known = {each.external_id: each for each in categories}
    off = items_off_sale(connection, store, now)
    shown = sum(each.count for each in categories)
    category = category if category in known and not text else ""
    view: BoardView = {
        "sections": [],
        "categories": [
            {"id": each.external_id, "name": each.name, "count": each.count}
            for each in categories[:MOST_CATEGORIES]
        ],
        "is_whole": shown <= MOST_AT_ONCE and shown + count_sizes(connection, store) <= MOST_LINES,
        "category": category,
        "count": count,
        "found": count,
        "page": 1,
        "pages": 1,
        "currency": currency,
        "off": off[:_MOST_OFF],
        "off_count": len(off),
    }
    if text:
        found = find_items(connection, store, text, limit=PER_PAGE)
        ids = list(dict.fromkeys(each.item_id for each in found.items))
        items = items_by_id(connection, store, ids)
        tiles = [_tile(items[each], overrides) for each in ids if each in items]
        options = find_options(connection, store, text, limit=PER_PAGE - len(tiles))
        tiles += [_option_tile(each, overrides, on_sale=on_sale) for each, on_sale in options]
        view["sections"] = [{"id": "", "name": "", "count": len(tiles), "tiles": tiles}]
        view["found"] = found.items_count + len(options)
        return view
    if view["is_whole"]:
        chosen: Collection[str] = known
    else:
        chosen = [category] if category else []
        whole = known[category].count if category else 0
        view["pages"] = max(1, -(-whole // PER_PAGE))
        view["page"] = min(page, view["pages"])
    offset = (view["page"] - 1) * PER_PAGE
    limit = MOST_AT_ONCE if view["is_whole"] else PER_PAGE
    for key in chosen:
        some = board_items(connection, store, key, limit=limit, offset=offset)
        tiles = [_tile(each, overrides) for each in some]
        section = known[key]
        view["sections"].append(
            {"id": key, "name": section.name, "count": section.count, "tiles": tiles}
        )
    return view


def _tile(accepted: AcceptedItem, overrides: Mapping[str, StoreOverride]) -> TileView:
    item = accepted.item
    sizes: list[SizeView] = [
        {
            "external_id": each.external_id,
            "name": each.variant_name,
            "state": _state(
                overrides.get(each.external_id),
                on_sale=each.available,
                in_till=accepted.pos_variants.get(each.external_id, each.available),
            ),
            "until": _until(overrides.get(each.external_id)),
        }
        for each in item.variants[:_MOST_SIZES]
    ]
    return {
        "external_id": item.external_id,
        "name": item.name,
        "price": min((each.price for each in item.variants), default=item.price),
        "state": _state(
            overrides.get(item.external_id),
            on_sale=item.available,
            in_till=accepted.pos_available,
        ),
        "until": _until(overrides.get(item.external_id)),
        "sizes": sizes,
    }


def _option_tile(
    add_on: AddOn, overrides: Mapping[str, StoreOverride], *, on_sale: bool
) -> TileView:
    override = overrides.get(add_on.external_id)
    return {
        "external_id": add_on.external_id,
        "name": add_on.name,
        "price": add_on.price,
        "state": _state(override, on_sale=on_sale, in_till=False),
        "until": _until(override),
        "sizes": [],
    }


def _state(override: StoreOverride | None, *, on_sale: bool, in_till: bool) -> TileState:
    if override is not None:
        return "hiding" if override.sent_at is None else "off"
    if on_sale:
        return "on"
    return "returning" if in_till else "till"


def _until(override: StoreOverride | None) -> str | None:
    return to_iso(override.until) if override is not None else None
