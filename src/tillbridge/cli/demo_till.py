"""The tills of the demo: a sample till of files, or any adapter's own till for tests (its rig).

The bridge knows them only by what an adapter reads and writes, as it does a real till.
"""

import csv
import io
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from tillbridge.cli.demo_kitchen import FolderKitchen, replace


class NotHere(Exception):
    """This till cannot do what a scene shows; the text says why."""


class DemoTill(Protocol):
    """What the demo does to a till. `code` is an item's id in the demo's own menu."""

    @property
    def config(self) -> str:
        """The tables of bridge.toml for it."""
        ...

    @property
    def place(self) -> tuple[str, str]:
        """Where it is, and what there is to change, for people."""
        ...

    @property
    def tells_progress(self) -> bool:
        """Whether it tells how orders go on."""
        ...

    @property
    def tickets(self) -> Mapping[str, list[str]]:
        """The tickets in it: order id, and the external ids of its lines."""
        ...

    def id_of(self, code: str) -> str:
        """Return the id that the till has given an item."""
        ...

    def item_ids(self) -> set[str]:
        """Return the ids of the items, without those of their variants."""
        ...

    def sell_out(self, code: str) -> None:
        """Take an item off sale. Raises NotHere."""
        ...

    def restock(self, code: str) -> None:
        """Put it on sale again."""
        ...

    def reprice(self, code: str, price: str) -> None:
        """Give an item another price, in major units."""
        ...

    def export_nothing(self) -> None:
        """Export a menu of nothing, as a till does by mistake."""
        ...

    def export_menu(self) -> None:
        """Export the menu."""
        ...

    async def work(self) -> None:
        """Take tickets and cook."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class SampleTill:
    """A till of files: its folder holds `export/` (menu), `orders/` and `updates/`."""

    tells_progress = True

    def __init__(self, folder: Path, *, cooking_s: float) -> None:
        """Make the folders and the first export."""
        self.folder = folder
        self._export = folder / "export"
        self._export.mkdir(parents=True, exist_ok=True)
        self._kitchen = FolderKitchen(folder, cooking_s=cooking_s)
        rows = csv.DictReader(io.StringIO(stored("menu.csv")))
        self._columns = list(rows.fieldnames or [])
        self._rows = {row["external_id"]: row for row in rows}
        replace(self._export / "addons.csv", stored("addons.csv"))
        self.export_menu()

    @property
    def config(self) -> str:
        """The folder adapter, for both."""
        return (
            '[stores.main.pos]\nadapter = "folder"\nmenu = "till/export/menu.csv"\n'
            'addons = "till/export/addons.csv"\norders_dir = "till/orders"\n'
            'updates_dir = "till/updates"\n\n[stores.main.orders]\naccept = "when_confirmed"\n'
        )

    @property
    def place(self) -> tuple[str, str]:
        """Its folder."""
        return str(self.folder), "export/menu.csv, orders/, updates/"

    @property
    def tickets(self) -> Mapping[str, list[str]]:
        """The kitchen's."""
        return self._kitchen.tickets

    def id_of(self, code: str) -> str:
        """Return the same: it is its own menu."""
        return code

    def item_ids(self) -> set[str]:
        """Return the ids of the items, without those of their variants."""
        return {row["external_id"] for row in self._rows.values() if not row["parent_id"]}

    def sell_out(self, code: str) -> None:
        """Say so in the menu."""
        self._change(code, available="false")

    def restock(self, code: str) -> None:
        """Say so in the menu."""
        self._change(code, available="true")

    def reprice(self, code: str, price: str) -> None:
        """Say so in the menu."""
        self._change(code, price=price)

    def export_nothing(self) -> None:
        """Write the header alone."""
        menu = self._export / "menu.csv"
        menu.write_text(",".join(self._columns) + "\n", encoding="utf-8")

    def export_menu(self) -> None:
        """Write the menu as tills do: a new file, renamed over the old one."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns)
        writer.writeheader()
        writer.writerows(self._rows.values())
        replace(self._export / "menu.csv", text.getvalue())

    async def work(self) -> None:
        """Let the kitchen work."""
        await self._kitchen.work()

    def close(self) -> None:
        """Hold nothing."""

    def _change(self, code: str, **values: str) -> None:
        self._rows[code].update(values)
        self.export_menu()


def stored(name: str) -> str:
    """Return a file of the demo's store."""
    return files("tillbridge.cli").joinpath("demo_store", name).read_text(encoding="utf-8")
