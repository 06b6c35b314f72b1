"""What a cook types finds the item, among twenty thousand too."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.support.ledger_harness import opened
from tillbridge.ledger import menu
from tillbridge.ledger.menu_codec import AcceptedItem, PushContent
from tillbridge.ledger.search import find_items, fold, rank_of
from tillbridge.model.catalogue import Item, Variant

pytestmark = pytest.mark.usefixtures("each_database")

NAMES = ("Pizza Margherita", "Pizza Funghi", "Café au lait", "Spaghetti pizzaiola", "Öl & Essig")


def fill(connection: Connection, names: tuple[str, ...] = NAMES) -> None:
    items = [Item(f"p{number}", name, 100 + number) for number, name in enumerate(names)]
    sizes = (Variant("cola-s", "small", 250), Variant("cola-l", "large", 400, available=False))
    items.append(Item("cola", "Cola", 250, variants=sizes))
    accepted = tuple(AcceptedItem.of(each, each, None) for each in items)
    menu.acknowledge(connection, "main", PushContent(items=accepted), at=1)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("pi", ["Pizza Funghi", "Pizza Margherita", "Spaghetti pizzaiola"]),
        ("pm", ["Pizza Margherita"]),
        ("PIZZA f", ["Pizza Funghi"]),
        ("ma pi", ["Pizza Margherita"]),
        ("cafe", ["Café au lait"]),
        ("ol", ["Öl & Essig", "Cola", "Cola large", "Cola small", "Spaghetti pizzaiola"]),
        ("large", ["Cola large"]),
        ("zzz", []),
        ("%", []),
        ("p3", ["Spaghetti pizzaiola"]),
    ],
)
async def test_a_few_letters_are_enough(tmp_path: Path, typed: str, found: list) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        answer = await ledger.read(lambda each: find_items(each, "main", typed, limit=10))
        assert [f"{each.name} {each.variant}".strip() for each in answer.items] == found
        assert answer.count == len(found)


async def test_a_variant_is_off_where_it_or_its_item_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(fill)
        answer = await ledger.read(lambda each: find_items(each, "main", "cola", limit=10))
        assert {each.external_id: each.on_sale for each in answer.items} == {
            "cola": True,
            "cola-s": True,
            "cola-l": False,
        }


async def test_one_of_twenty_thousand_items_is_found(tmp_path: Path) -> None:
    names = tuple(f"Dish number {number} à la carte" for number in range(20_000))
    async with opened(tmp_path) as ledger:
        await ledger.write(lambda connection: fill(connection, names))
        page = await ledger.read(
            lambda each: find_items(each, "main", "di 1999", limit=5, offset=5)
        )
        assert page.count == 11
        assert page.items[0].name == "Dish number 19994 à la carte"


def test_what_begins_so_comes_before_what_only_holds_it() -> None:
    ranks = [rank_of("pi", fold(name), "x") for name in ("Pie", "Apple pie", "Spice")]
    assert ranks == [0, 1, 4]
