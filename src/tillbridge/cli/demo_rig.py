"""Any adapter's till in the demo: its rig, the till for tests that stands beside each adapter."""

import asyncio
import csv
import io
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tillbridge.adapter import Item, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig
from tillbridge.cli.demo_kitchen import FolderKitchen
from tillbridge.cli.demo_till import NotHere, SampleTill, stored
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.money import to_minor
from tillbridge.pos.kit import Kit, find_kit
from tillbridge.pos.toml_text import toml_lines

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
        own = "\n".join(toml_lines({**self._own, **self._rig.options()}))
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
