"""The till of the demo: a sample restaurant whose staff press keys, by any adapter's own rig."""

import asyncio
import csv
import io
import json
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

from tillbridge.adapter import Item, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.money import to_minor
from tillbridge.pos.kit import Kit, find_kit
from tillbridge.pos.loader import module_of
from tillbridge.pos.recording import toml_lines


class NotHere(Exception):
    """This till cannot do what a scene shows; the text says why."""


_CURRENCY = "USD"
_LOOK_EVERY_S = 0.05
_SHORT = 18
_FILE_MENU = (
    'adapter = "folder"\nmenu = "till/export/menu.csv"\naddons = "till/export/addons.csv"\n'
)
_SILENT_S = 10
_FILE_ORDERS = (
    'orders_dir = "till/orders"\nupdates_dir = "till/updates"\n'
    f'heartbeat = "till/alive"\nheartbeat_s = {_SILENT_S}\n'
)
_CONFIRMED = 'accept = "when_confirmed"\n'


@dataclass(frozen=True, slots=True)
class DemoTill:
    """The till of the demo: what it sells, and the kitchen that its orders go to.

    `config` are its tables of bridge.toml; `place` says where it is, and what can be changed.
    """

    config: str
    place: tuple[str, str]
    menu: "FileMenu | RigMenu"
    kitchen: "FolderKitchen | RigKitchen"
    close: Callable[[], None] = lambda: None


def sample_till(folder: Path, *, cooking_s: float) -> DemoTill:
    """Return a till of files: `till/` holds `export/` (menu), `orders/` and `updates/`."""
    home = folder / "till"
    return DemoTill(
        _tables(_FILE_MENU + _FILE_ORDERS, _CONFIRMED),
        (str(home), "export/menu.csv, orders/, updates/"),
        FileMenu(home),
        FolderKitchen(home, cooking_s=cooking_s),
    )


def rig_till(name: str, folder: Path, *, cooking_s: float) -> DemoTill:
    """Return the till for tests that an adapter brings, in the folder of bridge.toml.

    One that only takes orders has its menu beside it, in files; orders of one that takes none go
    to a folder. Raises ConfigError.
    """
    kit = find_kit(name)
    if kit.rig is None or kit.quality is None:
        raise ConfigError(
            _("The adapter {name} has no till for tests, so the demo cannot use it.").format(
                name=name
            ),
            fix=_("Try: loyverse, square, clover, aloha."),
        )
    own = _own_options(kit)
    if module_of(str(own["adapter"])) is None:
        raise ConfigError(
            _("The adapter {name} is not installed, so the demo's bridge cannot load it.").format(
                name=own["adapter"]
            ),
            fix=_("Install it first: pip install -e {folder}").format(folder=kit.root or name),
        )
    rig, can, home = kit.rig(folder), kit.quality.capabilities, folder / "till"
    menu = RigMenu(rig) if "catalogue" in can else FileMenu(home)
    kitchen: FolderKitchen | RigKitchen = FolderKitchen(home, cooking_s=cooking_s)
    orders = f'adapter = "folder"\n{_FILE_ORDERS}'
    if "tickets" in can:
        reports = "updates" in can and type(rig).report_progress is not Rig.report_progress
        kitchen, orders = RigKitchen(rig, cooking_s=cooking_s, reports_progress=reports), ""
    tables = toml_lines({**own, **rig.options()})
    confirmed = _CONFIRMED if kitchen.reports_progress else ""
    try:
        exports = ", ".join(path.name for path in rig.exports())
    except CannotDo:
        exports = ""
    return DemoTill(
        _tables(tables, orders + confirmed) if menu.is_own else _tables(_FILE_MENU, tables),
        (str(folder), exports),
        menu,
        kitchen,
        rig.close,
    )


def _tables(pos: str, orders: str) -> str:
    return f"[stores.main.pos]\n{pos}\n[stores.main.orders]\n{orders}"


# -- menus: `code` is an item's id in the demo's own menu


class FileMenu:
    """The demo's menu in a file, exported again after each change."""

    is_own = False

    def __init__(self, folder: Path) -> None:
        """Make the folder and the first export."""
        self._export = folder / "export"
        self._export.mkdir(parents=True, exist_ok=True)
        rows = csv.DictReader(io.StringIO(stored("menu.csv")))
        self._columns = list(rows.fieldnames or [])
        self._rows = {row["external_id"]: row for row in rows}
        replace_file(self._export / "addons.csv", stored("addons.csv"))
        self.export()

    def id_of(self, code: str) -> str:
        """Return the same: it is its own menu."""
        return code

    def item_ids(self) -> set[str]:
        """Return the ids of the items, without those of their variants."""
        return {row["external_id"] for row in self._rows.values() if not row["parent_id"]}

    def sell_out(self, code: str) -> None:
        """Take an item off sale."""
        self._change(code, available="false")

    def restock(self, code: str) -> None:
        """Put it on sale again."""
        self._change(code, available="true")

    def reprice(self, code: str, price: str) -> None:
        """Give an item another price, in major units."""
        self._change(code, price=price)

    def export_nothing(self) -> None:
        """Export the header alone, as a till does by mistake."""
        menu = self._export / "menu.csv"
        menu.write_text(",".join(self._columns) + "\n", encoding="utf-8")

    def export_cut(self) -> None:
        """Export the first half alone, broken off in the middle of a row."""
        menu = self._export / "menu.csv"
        whole = menu.read_bytes()
        menu.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 6])

    def export_inflated(self) -> None:
        """Export every price a hundred times too high."""
        rows = (
            {**row, "price": str(Decimal(row["price"]) * 100)} if row["price"] else row
            for row in self._rows.values()
        )
        self._export_rows(rows)

    def export(self) -> None:
        """Write the menu as tills do: a new file, renamed over the old one."""
        self._export_rows(self._rows.values())

    def _export_rows(self, rows: Iterable[dict[str, str]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._columns)
        writer.writeheader()
        writer.writerows(rows)
        replace_file(self._export / "menu.csv", text.getvalue())

    def _change(self, code: str, **values: str) -> None:
        self._rows[code].update(values)
        self.export()


class RigMenu:
    """The demo's menu, without its sizes and extras, sold by a rig."""

    is_own = True

    def __init__(self, rig: Rig) -> None:
        """Sell it."""
        self._rig = rig
        self._items = _menu()
        self._ids: dict[str, str] = {}
        self.export()

    def id_of(self, code: str) -> str:
        """Return the id that the rig gave."""
        return self._ids[code]

    def item_ids(self) -> set[str]:
        """Return all ids."""
        return set(self._ids.values())

    def sell_out(self, code: str) -> None:
        """Take an item off sale. Raises NotHere."""
        try:
            self._rig.sell_out(self._ids[code])
        except CannotDo as reason:
            raise NotHere(reason.reason) from reason

    def restock(self, _code: str) -> None:
        """Sell everything again."""
        self.export()

    def reprice(self, code: str, price: str) -> None:
        """Sell it at another price, in major units."""
        minor = to_minor(price, _CURRENCY)
        self._items = [
            replace(item, price=minor) if item.external_id == code else item for item in self._items
        ]
        self.export()

    def export_nothing(self) -> None:
        """Sell nothing."""
        self._rig.sell([], _CURRENCY)

    def export(self) -> None:
        """Sell the menu."""
        try:
            sold = self._rig.sell(self._items, _CURRENCY)
        except CannotDo:  # some tills have no room for long names, nor for all letters
            self._items = [replace(item, name=_short(item.name)) for item in self._items]
            sold = self._rig.sell(self._items, _CURRENCY)
        self._ids = {
            ours.external_id: theirs.external_id
            for ours, theirs in zip(self._items, sold, strict=True)
        }


# -- kitchens: `tickets` are the lines' external ids by order id; a step takes `cooking_s` seconds


class FolderKitchen:
    """`orders/` has the tickets, `updates/` their progress."""

    reports_progress = True

    def __init__(self, folder: Path, *, cooking_s: float) -> None:
        self.cooking_s = cooking_s
        self.tickets: dict[str, list[str]] = {}
        self._orders = folder / "orders"
        self._away = folder / "orders.away"
        self._updates = folder / "updates"
        for each in (self._orders, self._updates):
            each.mkdir(parents=True, exist_ok=True)
        self._alive = folder / "alive"
        self._touched = 0.0
        self._runs = asyncio.Event()
        self._runs.set()
        self._touch()

    def stop(self) -> None:
        """End the till's program: it gives no sign of life, and nobody cooks."""
        self._runs.clear()

    def start(self) -> None:
        """Start it again."""
        self._runs.set()

    def take_away(self) -> None:
        """Let the folder of the orders vanish, as a share does that is not mounted any more."""
        if not self._away.exists():
            self._orders.rename(self._away)

    def give_back(self) -> None:
        """Let it be there again, with all that was in it."""
        if self._away.exists():
            for made in self._orders.glob("*.json"):  # by a bridge that was started meanwhile
                made.rename(self._away / made.name)
            shutil.rmtree(self._orders, ignore_errors=True)
            self._away.rename(self._orders)

    @property
    def runs(self) -> bool:
        """Whether the till's program runs."""
        return self._runs.is_set()

    @property
    def is_away(self) -> bool:
        """Whether the folder of the orders has vanished."""
        return self._away.exists()

    def _touch(self) -> None:
        """Give the sign of life, once in a second."""
        if time.monotonic() - self._touched >= 1:
            self._alive.touch()
            self._touched = time.monotonic()

    async def work(self) -> None:
        """Take tickets as they appear and cook each: accepted, preparing, ready."""
        async with asyncio.TaskGroup() as kitchen:
            while True:
                await asyncio.sleep(_LOOK_EVERY_S)
                await self._runs.wait()
                self._touch()
                for path in sorted(self._orders.glob("*.json")):
                    if path.stem not in self.tickets:
                        order = json.loads(path.read_text(encoding="utf-8"))
                        self.tickets[path.stem] = [line["external_id"] for line in order["items"]]
                        kitchen.create_task(self._cook(path.stem))

    async def _cook(self, order_id: str) -> None:
        for step, status in enumerate(("accepted", "preparing", "ready")):
            await asyncio.sleep(self.cooking_s)
            await self._runs.wait()
            replace_file(
                self._updates / f"{order_id}-{step}.json",
                json.dumps({"order_id": order_id, "status": status}),
            )


class RigKitchen:
    """The tickets in a rig, which reports their progress if it can."""

    def __init__(self, rig: Rig, *, cooking_s: float, reports_progress: bool) -> None:
        self._rig = rig
        self._cooking_s = cooking_s
        self.reports_progress = reports_progress
        self.tickets: dict[str, list[str]] = {}

    async def work(self) -> None:
        """Pick up tickets as they appear in the till, and let it report their progress."""
        async with asyncio.TaskGroup() as kitchen:
            while True:
                for ticket in await asyncio.to_thread(self._rig.tickets):
                    if ticket.key not in self.tickets:
                        self.tickets[ticket.key] = [key for key, _count in ticket.counts]
                        kitchen.create_task(self._cook(ticket.key))
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _cook(self, order_id: str) -> None:
        steps = (TicketStatus.ACCEPTED, TicketStatus.PREPARING, TicketStatus.READY)
        for status in steps if self.reports_progress else ():
            await asyncio.sleep(self._cooking_s)
            await asyncio.to_thread(self._rig.report_progress, order_id, status)


def stored(name: str) -> str:
    """Return a file of the demo's store."""
    return files("tillbridge.demo").joinpath("store", name).read_text(encoding="utf-8")


def replace_file(path: Path, text: str) -> None:
    """Write a file as tills do: a new one, renamed over the old one."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8", newline="")
    fresh.replace(path)


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
