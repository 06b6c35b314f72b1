"""People at the pages of the bridges: they mark dishes as sold out, and put them back on sale."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.soak.stores import Store
from tillbridge.cli.control import find_running
from tillbridge.core.errors import BridgeError

#: The dishes that nobody else minds; all others can always be ordered.
_DISHES = ("p10", "p11", "p12")
_ANSWERS_WITHIN_S = 30.0  # a bridge that asks another one waits for as long as that lives
_EACH = 4  # clicks at each bridge once nothing befalls it

Dish = tuple[str, str]  # name of the store, external id


class People:
    """What was answered has to hold; a click without an answer may be done later, or never.

    A dish of which that is unknown is left alone until all has come together.
    """

    def __init__(self, stores: Sequence[Store], trade: random.Random, counts: Counter[str]) -> None:
        self.folders: list[Path] = []  # the data folders of the bridges
        self.sold_out: dict[Dish, bool] = {}  # as was answered last
        self.unsure: set[Dish] = set()
        self._dishes = [(store.name, item) for store in stores for item in _DISHES]
        self._trade = trade
        self._counts = counts
        self._asking: set[asyncio.Task[str]] = set()

    async def trade(self) -> None:
        """Click, here and there: at any bridge, whichever serves the store."""
        while True:
            await asyncio.sleep(self._trade.uniform(0, 0.6))
            dish, folder = self._trade.choice(self._dishes), self._trade.choice(self.folders)
            if dish not in self.unsure:
                failure = await self._click(folder, dish, off=self._trade.random() < 0.5)
                self._counts["unanswered clicks" if failure else "clicks"] += 1

    async def click_in_peace(self) -> list[str]:
        """Click at all bridges at once, none of which anything befalls; return what failed."""
        dishes = self._trade.sample(self._dishes, min(len(self._dishes), _EACH * len(self.folders)))
        clicks = [
            self._click(self.folders[number % len(self.folders)], dish, off=number % 2 == 0)
            for number, dish in enumerate(dishes)
        ]
        self._counts["clicks"] += len(clicks)
        return [failure for failure in await asyncio.gather(*clicks) if failure]

    async def leave(self) -> None:
        """Wait for the last answer, which nobody reads."""
        await asyncio.gather(*self._asking)

    def differ(self, sold_out: dict[Dish, bool]) -> list[Dish]:
        """Return the dishes that are not as was answered."""
        return [
            dish
            for dish, off in self.sold_out.items()
            if dish not in self.unsure and sold_out[dish] is not off
        ]

    def look(self, sold_out: dict[Dish, bool]) -> None:
        """See what has become of the clicks without an answer, once all has come together."""
        for dish in self.unsure:
            self.sold_out[dish] = sold_out[dish]
        self.unsure.clear()

    async def _click(self, folder: Path, dish: Dish, *, off: bool) -> str:
        self.unsure.add(dish)
        asked = asyncio.create_task(asyncio.to_thread(_ask, folder, dish, off))
        self._asking.add(asked)
        asked.add_done_callback(self._asking.discard)
        failure = await asyncio.shield(asked)
        if not failure:
            self.sold_out[dish] = off
            self.unsure.discard(dish)
        return failure


def _ask(folder: Path, dish: Dish, off: bool) -> str:
    """Return why the bridge has not done it: it may be dead, or die meanwhile. "" if it has."""
    store, item = dish
    operation = "item.86" if off else "item.restore"
    try:
        bridge = find_running(folder)
        if bridge is None:
            return f"no bridge in {folder.name}"
        bridge.perform(operation, {"store": store, "item": item}, timeout_s=_ANSWERS_WITHIN_S)
    except BridgeError as failure:
        return f"{operation} of {item} of {store} in {folder.name}: {failure}"
    return ""
