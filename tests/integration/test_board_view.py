"""The 86 board as the ledger fills it: categories, tiles, sizes, and what guests see of them."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.support.ledger_harness import opened
from tillbridge.ledger import menu
from tillbridge.ledger.menu_codec import AcceptedItem, Parts, PushContent
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.pushes import mark_sent, put_override
from tillbridge.menu.board import BoardView, board_view
from tillbridge.model.catalogue import Category, Item, Variant

pytestmark = pytest.mark.usefixtures("each_database")

NOW = 1_795_287_720_000


def item(
    key: str,
    name: str,
    *categories: str,
    available: bool = True,
    variants: tuple[Variant, ...] = (),
) -> Item:
    return Item(key, name, 950, categories=categories, available=available, variants=variants)


def fill(connection: Connection, *items: Item, in_till: bool = True) -> None:
    accepted = tuple(AcceptedItem(each, None, in_till or each.available) for each in items)
    parts = Parts(
        categories={"pizza": Category("pizza", "Pizza"), "cold": Category("cold", "Antipasti")}
    )
    menu.acknowledge(connection, "main", PushContent(items=accepted, parts=parts), at=NOW - 1)


def look(connection: Connection, text: str = "", category: str = "", page: int = 1) -> BoardView:
    return board_view(
        connection, "main", text=text, category=category, page=page, currency="EUR", now=NOW
    )


async def test_a_small_menu_is_open_by_category_and_by_name(tmp_path: Path) -> None:
    items = (
        item("p2", "margherita", "pizza"),
        item("p1", "Funghi", "pizza", "cold"),
        item("w", "Water"),
    )
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: fill(connection, *items))
        board = await ledger.read(look)
        assert [
            (each["name"], [tile["name"] for tile in each["tiles"]]) for each in board["sections"]
        ] == [("Antipasti", ["Funghi"]), ("Pizza", ["Funghi", "margherita"]), ("", ["Water"])]
        assert board["is_whole"]
        assert board["count"] == 3


async def test_a_tile_says_what_guests_see(tmp_path: Path) -> None:
    sizes = (Variant("c-s", "small", 250), Variant("c-l", "large", 400))
    cola = item("c", "Cola", "cold", variants=sizes)
    gone = item("g", "Gone", "cold", available=False)

    def work(connection: Connection) -> None:
        fill(connection, item("a", "A", "cold"), item("b", "B", "cold"), cola)
        fill(connection, gone, in_till=False)
        fill(connection, item("r", "Returning", "cold", available=False))
        for key in ("a", "b", "c-l"):
            put_override(
                connection,
                StoreOverride(store="main", external_id=key, until=NOW + 1, by="x", at=NOW),
            )
        mark_sent(connection, "main", {"b"}, at=NOW)

    async with opened(tmp_path) as ledger:
        await ledger.write(work)
        board = await ledger.read(look)
        tiles = {each["name"]: each for each in board["sections"][0]["tiles"]}
        assert {name: each["state"] for name, each in tiles.items()} == {
            "A": "hiding",
            "B": "off",
            "Cola": "on",
            "Gone": "till",
            "Returning": "returning",
        }
        assert [(each["name"], each["state"]) for each in tiles["Cola"]["sizes"]] == [
            ("small", "on"),
            ("large", "hiding"),
        ]
        assert tiles["Cola"]["price"] == 250
        assert board["off_count"] == 5


async def test_an_override_that_is_over_counts_no_more(tmp_path: Path) -> None:
    def work(connection: Connection) -> None:
        fill(connection, item("a", "A"))
        over = StoreOverride(store="main", external_id="a", until=NOW, by="x", at=NOW - 9)
        put_override(connection, over)

    async with opened(tmp_path) as ledger:
        await ledger.write(work)
        board = await ledger.read(look)
        assert [each["state"] for each in board["sections"][0]["tiles"]] == ["on"]


async def test_a_large_menu_opens_one_category_by_the_page(tmp_path: Path) -> None:
    items = [item(f"p{number:04}", f"Dish {number:04}", "pizza") for number in range(300)]
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: fill(connection, *items, item("w", "Water")))
        shut = await ledger.read(look)
        assert shut["sections"] == []
        assert [(each["name"], each["count"]) for each in shut["categories"]] == [
            ("Pizza", 300),
            ("", 1),
        ]
        last = await ledger.read(lambda connection: look(connection, category="pizza", page=99))
        assert (last["page"], last["pages"]) == (5, 5)
        tiles = last["sections"][0]["tiles"]
        assert [tiles[0]["name"], tiles[-1]["name"]] == ["Dish 0240", "Dish 0299"]
        other = await ledger.read(lambda connection: look(connection, category="-"))
        assert [each["name"] for each in other["sections"][0]["tiles"]] == ["Water"]
        unknown = await ledger.read(lambda connection: look(connection, category="soup"))
        assert unknown["sections"] == []


async def test_a_menu_of_many_sizes_is_opened_by_category(tmp_path: Path) -> None:
    sizes = tuple(Variant(f"s{number}", f"size {number}", 100) for number in range(9))
    items = [item(f"p{number}", f"Dish {number}", "pizza", variants=sizes) for number in range(40)]
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: fill(connection, *items))
        assert not (await ledger.read(look))["is_whole"]


async def test_letters_find_a_dish_once_whatever_its_sizes(tmp_path: Path) -> None:
    sizes = (Variant("c-s", "small", 250), Variant("c-l", "large", 400))
    async with opened(tmp_path) as ledger:
        await ledger.write(
            lambda connection: fill(connection, item("c", "Cola", variants=sizes), item("w", "W"))
        )
        board = await ledger.read(lambda connection: look(connection, text="co"))
        assert [each["name"] for each in board["sections"][0]["tiles"]] == ["Cola"]
        assert board["found"] == 1
