"""What the menu was at a moment, and when the storefront had what staff took off sale."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.support.catalogue_harness import catalogue_harness
from tests.support.catalogues import dishes
from tests.support.ledger_harness import opened
from tillbridge.ledger import menu
from tillbridge.ledger.menu import ids_ever, items_then, off_since
from tillbridge.ledger.menu_codec import AcceptedItem, PushContent
from tillbridge.ledger.models import StoreOverride
from tillbridge.ledger.prune import CutOffs, prune
from tillbridge.ledger.pushes import get_overrides
from tillbridge.model.catalogue import Item

pytestmark = pytest.mark.usefixtures("each_database")

SOUP = Item("soup", "Soup", 500)
BREAD = Item("bread", "Bread", 300)


def accept(connection: Connection, items: Sequence[Item], at: int) -> None:
    accepted = tuple(AcceptedItem.of(each, each, None) for each in items)
    menu.acknowledge(connection, "main", PushContent(items=accepted), at=at)


def evening(connection: Connection) -> None:
    accept(connection, [SOUP, BREAD], 1_000)
    accept(connection, [SOUP], 1_500)  # as it was: no trace
    accept(connection, [replace(SOUP, name="Hot soup", price=550)], 2_000)
    menu.forget_items(connection, "main", ["bread"], at=3_000)
    accept(connection, [BREAD], 4_000)
    off = AcceptedItem.of(replace(BREAD, available=False), BREAD, None)
    menu.change_items(connection, "main", [off], at=5_000)


async def test_the_menu_of_a_moment_is_remembered(tmp_path: Path) -> None:
    async with opened(tmp_path) as ledger:
        await ledger.write(evening)

        async def told(at: int) -> dict[str, tuple[str, int, bool]]:
            items = await ledger.read(
                lambda each: items_then(each, "main", ["soup", "bread", "never"], at)
            )
            return {key: (item.name, item.price, item.available) for key, item in items.items()}

        bread, soup = ("Bread", 300, True), ("Soup", 500, True)
        hot = ("Hot soup", 550, True)
        assert await told(999) == {}
        assert await told(1_000) == {"soup": soup, "bread": bread}
        assert await told(1_999) == {"soup": soup, "bread": bread}
        assert await told(2_000) == {"soup": hot, "bread": bread}
        assert await told(3_000) == {"soup": hot}
        assert await told(4_000) == {"soup": hot, "bread": bread}
        assert await told(5_000) == {"soup": hot, "bread": ("Bread", 300, False)}
        assert sorted(await ledger.read(lambda each: ids_ever(each, "main"))) == ["bread", "soup"]
        since = await ledger.read(lambda each: off_since(each, "main", ["bread", "soup"]))
        assert since == {"bread": 5_000, "soup": 2_000}
        cuts = CutOffs(personal_data=0, history=4_500)
        assert (await ledger.write(lambda each: prune(each, cuts))).forgotten == 3


async def test_how_long_an_86_takes_to_reach_the_storefront_is_known(tmp_path: Path) -> None:
    async with catalogue_harness(tmp_path) as harness:
        harness.pos.menu = dishes(3)
        await harness.flow.push_again()
        at = harness.clock.now_ms()
        await harness.flow.take_off_sale("p1", until=None, by="page:anna")
        before = (await harness.ask(get_overrides, StoreOverride))["p1"]
        assert (before.by, before.sent_at) == ("page:anna", None)
        await harness.flow._availability.step()
        after = (await harness.ask(get_overrides, StoreOverride))["p1"]
        assert after.sent_at is not None
        assert at <= before.at <= after.sent_at
        assert (await harness.on_sale())["p1"]["available"] is False
        await harness.flow.take_off_sale("p1", until=at + 3_600_000, by="page:bob")
        again = (await harness.ask(get_overrides, StoreOverride))["p1"]
        assert again.sent_at == again.at, "it was off already"
