"""The till of the demo: a sample restaurant whose staff press keys, by any adapter's own rig."""

import asyncio
import csv
import io
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from tillbridge.adapter import Item, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.money import to_minor
from tillbridge.pos.kit import Kit, find_kit
from tillbridge.pos.recording.record import toml_lines


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
        replace_file(self._export / "addons.csv", stored("addons.csv"))
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
        replace_file(self._export / "menu.csv", text.getvalue())

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
    return files("tillbridge.demo").joinpath("store", name).read_text(encoding="utf-8")


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
            replace_file(
                self._updates / f"{order_id}-{step}.json",
                json.dumps({"order_id": order_id, "status": status}),
            )


def replace_file(path: Path, text: str) -> None:
    """Write a file as tills do: a new one, renamed over the old one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8", newline="")
    fresh.replace(path)


_CURRENCY = "USD"
_LOOK_EVERY_S = 0.05
_SHORT = 18


class RigTill:
    """Sells the demo's menu in a rig. Orders go to it where it takes them, else to a folder.

    A till that only takes orders has its menu beside it, in files. Raises ConfigError.
    """

    def __init__(self, name: str, folder: Path, *, cooking_s: float) -> None:
        """Make the till in `folder`, which is the one of bridge.toml."""
        kit = find_kit(name)
        if kit.rig is None or kit.quality is None:
            raise ConfigError(
                _("The adapter {name} brings no till for tests, so it cannot be played.").format(
                    name=name
                ),
                fix=_("Try: loyverse, square, clover, aloha."),
            )
        self._own = _own_options(kit)
        self._can = kit.quality.capabilities
        self._cooking_s = cooking_s
        self._folder = folder
        self._rig: Rig = kit.rig(folder)
        self._items = _menu()
        self._ids: dict[str, str] = {}
        self._seen: dict[str, list[str]] = {}
        self._is_told = "updates" in self._can and type(self._rig).tell is not Rig.tell
        reads = "catalogue" in self._can
        takes = "tickets" in self._can
        self._files = None if reads else SampleTill(folder / "till", cooking_s=cooking_s)
        self._kitchen = None if takes else FolderKitchen(folder / "till", cooking_s=cooking_s)
        if reads:
            self.export_menu()

    @property
    def config(self) -> str:
        """The rig's options, as a restaurant would write them."""
        own = toml_lines({**self._own, **self._rig.options()})
        if self._files is not None:
            menu = 'adapter = "folder"\nmenu = "till/export/menu.csv"'
            menu += '\naddons = "till/export/addons.csv"'
            return f"[stores.main.pos]\n{menu}\n\n[stores.main.orders]\n{own}\n"
        orders = "" if self._kitchen is None else FolderKitchen.config
        if self.tells_progress:
            orders += '\naccept = "when_confirmed"'
        return f"[stores.main.pos]\n{own}\n\n[stores.main.orders]\n{orders}\n"

    @property
    def place(self) -> tuple[str, str]:
        """The folder, and what the till exports."""
        try:
            exports = ", ".join(path.name for path in self._rig.exports())
        except CannotDo:
            exports = ""
        return str(self._folder), exports

    @property
    def tells_progress(self) -> bool:
        """Whether the kitchen is a folder, or the till tells news."""
        return self._kitchen is not None or self._is_told

    @property
    def tickets(self) -> Mapping[str, list[str]]:
        """Those in the rig, or in the folder."""
        return self._kitchen.tickets if self._kitchen is not None else self._seen

    def id_of(self, code: str) -> str:
        """Return the id that the rig gave."""
        return code if self._files is not None else self._ids[code]

    def item_ids(self) -> set[str]:
        """Return all ids."""
        return self._files.item_ids() if self._files is not None else set(self._ids.values())

    def sell_out(self, code: str) -> None:
        """Let the rig sell out an item."""
        if self._files is not None:
            self._files.sell_out(code)
            return
        try:
            self._rig.sell_out(self._ids[code])
        except CannotDo as reason:
            raise NotHere(reason.reason) from reason

    def restock(self, code: str) -> None:
        """Sell everything again."""
        if self._files is not None:
            self._files.restock(code)
        else:
            self.export_menu()

    def reprice(self, code: str, price: str) -> None:
        """Sell it at another price."""
        if self._files is not None:
            self._files.reprice(code, price)
            return
        minor = to_minor(price, _CURRENCY)
        self._items = [
            replace(item, price=minor) if item.external_id == code else item for item in self._items
        ]
        self.export_menu()

    def export_nothing(self) -> None:
        """Sell nothing."""
        if self._files is not None:
            self._files.export_nothing()
        else:
            self._rig.sell([], _CURRENCY)

    def export_menu(self) -> None:
        """Sell the menu."""
        if self._files is not None:
            self._files.export_menu()
            return
        try:
            sold = self._rig.sell(self._items, _CURRENCY)
        except CannotDo:  # some tills have no room for long names, nor for all letters
            self._items = [replace(item, name=_short(item.name)) for item in self._items]
            sold = self._rig.sell(self._items, _CURRENCY)
        self._ids = {
            ours.external_id: theirs.external_id
            for ours, theirs in zip(self._items, sold, strict=True)
        }

    async def work(self) -> None:
        """Take tickets as they appear in the till, and let it tell how they go on."""
        if self._kitchen is not None:
            await self._kitchen.work()
            return
        async with asyncio.TaskGroup() as kitchen:
            while True:
                for ticket in await asyncio.to_thread(self._rig.tickets):
                    if ticket.key not in self._seen:
                        self._seen[ticket.key] = [external_id for external_id, _n in ticket.lines]
                        kitchen.create_task(self._cook(ticket.key))
                await asyncio.sleep(_LOOK_EVERY_S)

    def close(self) -> None:
        """Close the rig."""
        self._rig.close()

    async def _cook(self, order_id: str) -> None:
        steps = (TicketStatus.ACCEPTED, TicketStatus.PREPARING, TicketStatus.READY)
        for status in steps if self._is_told else ():
            await asyncio.sleep(self._cooking_s)
            await asyncio.to_thread(self._rig.tell, order_id, status)


def _own_options(kit: Kit) -> dict[str, Any]:
    """Return how bridge.toml names the adapter; a folder with process.toml by its program."""
    opening = kit.adapter.open
    command = getattr(opening, "command", None)
    if command is None:
        return {"adapter": kit.adapter.name}
    return {"adapter": "process", "command": list(command), "cwd": str(kit.package)}


def _short(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return plain[:_SHORT].strip()


def _menu() -> Sequence[Item]:
    """Return the items of the demo's menu; sizes and extras are what rigs have none of."""
    rows = csv.DictReader(io.StringIO(stored("menu.csv")))
    return [
        Item(row["external_id"], row["name"], to_minor(row["price"], _CURRENCY))
        for row in rows
        if not row["parent_id"]
    ]
