"""The demo's kitchen: takes tickets as files, as the `folder` adapter writes them, and cooks."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class FolderKitchen:
    """`orders/` has the tickets, `updates/` their life; a step takes `cooking_s` seconds."""

    config = 'adapter = "folder"\norders_dir = "till/orders"\nupdates_dir = "till/updates"'

    def __init__(self, folder: Path, *, cooking_s: float) -> None:
        self._cooking_s = cooking_s
        self._taken: dict[str, dict[str, Any]] = {}
        self._orders = folder / "orders"
        self._updates = folder / "updates"
        for each in (self._orders, self._updates):
            each.mkdir(parents=True, exist_ok=True)

    @property
    def tickets(self) -> Mapping[str, list[str]]:
        """The tickets: order id, and the external ids of its lines."""
        return {
            key: [line["external_id"] for line in order["items"]]
            for key, order in self._taken.items()
        }

    async def work(self) -> None:
        """Take tickets as they appear and cook each: accepted, preparing, ready."""
        async with asyncio.TaskGroup() as kitchen:
            while True:
                for path in sorted(self._orders.glob("*.json")):
                    if path.stem not in self._taken:
                        self._taken[path.stem] = json.loads(path.read_text(encoding="utf-8"))
                        kitchen.create_task(self._cook(path.stem))
                await asyncio.sleep(0.05)

    async def _cook(self, order_id: str) -> None:
        for step, status in enumerate(("accepted", "preparing", "ready")):
            await asyncio.sleep(self._cooking_s)
            replace(
                self._updates / f"{order_id}-{step}.json",
                json.dumps({"order_id": order_id, "status": status}),
            )


def replace(path: Path, text: str) -> None:
    """Write a file as tills do: a new one, renamed over the old one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8", newline="")
    fresh.replace(path)
