"""A sample till for the demo: it exports its menu to a file, takes tickets, and cooks.

It knows the bridge only through the files of the `folder` adapter, as a real till would.
"""

import asyncio
import csv
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any


class SampleTill:
    """A till: its folder holds `export/` (menu), `orders/` (tickets), `updates/` (their life)."""

    def __init__(self, folder: Path, *, cooking_s: float) -> None:
        """Make the folders and the first export; each step of cooking takes `cooking_s` seconds."""
        self.folder = folder
        self.cooking_s = cooking_s
        self.tickets: dict[str, dict[str, Any]] = {}
        self._export = folder / "export"
        self._orders = folder / "orders"
        self._updates = folder / "updates"
        for each in (self._export, self._orders, self._updates):
            each.mkdir(parents=True, exist_ok=True)
        rows = csv.DictReader(io.StringIO(_stored("menu.csv")))
        self._columns = list(rows.fieldnames or [])
        self._rows = {row["external_id"]: row for row in rows}
        _replace(self._export / "addons.csv", _stored("addons.csv"))
        self.export_menu()

    def export_menu(self) -> None:
        """Write the menu as tills do: a new file, renamed over the old one."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns)
        writer.writeheader()
        writer.writerows(self._rows.values())
        _replace(self._export / "menu.csv", text.getvalue())

    def change(self, external_id: str, **values: str) -> None:
        """Change fields of an item (`price="9.90"`, `available="false"`) and export the menu."""
        self._rows[external_id].update(values)
        self.export_menu()

    def item_ids(self) -> set[str]:
        """Return the ids of the items, without those of their variants."""
        return {row["external_id"] for row in self._rows.values() if not row["parent_id"]}

    async def work(self) -> None:
        """Take tickets as they appear and cook each: accepted, preparing, ready."""
        async with asyncio.TaskGroup() as kitchen:
            while True:
                for path in sorted(self._orders.glob("*.json")):
                    if path.stem not in self.tickets:
                        self.tickets[path.stem] = json.loads(path.read_text(encoding="utf-8"))
                        kitchen.create_task(self._cook(path.stem))
                await asyncio.sleep(0.05)

    async def _cook(self, order_id: str) -> None:
        for step, status in enumerate(("accepted", "preparing", "ready")):
            await asyncio.sleep(self.cooking_s)
            _replace(
                self._updates / f"{order_id}-{step}.json",
                json.dumps({"order_id": order_id, "status": status}),
            )


def _stored(name: str) -> str:
    return files("tillbridge.cli").joinpath("demo_store", name).read_text(encoding="utf-8")


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8", newline="")
    fresh.replace(path)
