"""The stores of a soak: each has a till of another kind, and counts what its kitchen would cook."""

import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from decimal import Decimal
from pathlib import Path

from tests.support.tills import CornerShop, close_database, database_settings, telling_database
from tests.support.world import Till
from tillbridge.adapter import Item
from tillbridge_printer.emulated.escpos_server import EscPosServer

_ORDER = re.compile(r"ord_\w+")
_MENU = {f"p{number}": 500 + 25 * number for number in range(1, 13)}


class Store(ABC):
    """A store and its till; `plain` counts the tickets of each order that bear no mark."""

    def __init__(self, name: str) -> None:
        self.name, self.store_id = name, f"st_{name}"
        self.prices = dict(_MENU)
        self.plain: Counter[str] = Counter()
        self.marked: set[str] = set()

    def settings(self) -> str:
        """Return the store's tables of bridge.toml."""
        return f"""
[stores.{self.name}]
store_id = "{self.store_id}"
location_id = "loc-{self.name}"
currency = "USD"
notification_email = "owner@example.net"

[stores.{self.name}.pos]
{self.pos()}

[stores.{self.name}.orders]
accept_within_s = 3600
retry_s = 0.2
retry_cap_s = 1
{self.orders()}
"""

    @abstractmethod
    def pos(self) -> str:
        """Return the settings of the till."""

    def orders(self) -> str:
        """Return those of another adapter for orders."""
        return ""

    def reprice(self, external_id: str, price: int) -> None:
        """Change a price (minor units) and export it."""
        self.prices[external_id] = price
        self.export(external_id)

    @abstractmethod
    def export(self, changed: str = "") -> None:
        """Let the till have the prices."""

    @abstractmethod
    def look(self) -> None:
        """Count the tickets that have come."""

    def has(self, order: str) -> bool:
        """Return whether the kitchen has seen the order."""
        return order in self.plain or order in self.marked

    def close(self) -> None:  # noqa: B027 -- most tills have nothing to end
        """End the till; its bridge has ended."""


class FolderStore(Store):
    """Files; the till takes each ticket away, at a moment of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self.till = Till(folder / name)
        self.export()

    def pos(self) -> str:
        return (
            f'adapter = "folder"\nmenu = "{self.name}/export/menu.csv"\n'
            f'orders_dir = "{self.name}/orders"\nupdates_dir = "{self.name}/updates"'
        )

    def export(self, changed: str = "") -> None:
        for key, price in self.prices.items():
            self.till.rows[key]["price"] = str(Decimal(price).scaleb(-2))
        self.till.write_menu()

    def look(self) -> None:
        for ticket in self.till.orders.glob("*.json"):
            self.plain[ticket.stem] += 1
            ticket.unlink()


class PrinterStore(FolderStore):
    """The menu is a file, and orders come out of a printer."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        self.printer = EscPosServer()

    def orders(self) -> str:
        return (
            f'adapter = "printer"\nprinter = "tcp://127.0.0.1:{self.printer.port}"\ntimeout_s = 5'
        )

    def look(self) -> None:
        sheets = self.printer.machine.sheets
        while sheets:
            text = sheets.pop(0).text
            orders = _ORDER.findall(text)
            if "POSSIBLE DUPLICATE" in text:
                self.marked.update(orders)
            else:
                self.plain.update(orders)

    def close(self) -> None:
        self.printer.switch_off()


_GUARD = """\
        if (found := self.find_ticket(key)) is not None:
            return found
"""


class ProgramStore(Store):
    """A program that trusts the bridge to ask first: what it writes again is a second ticket."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self.shop = CornerShop(folder / name)
        careful = self.shop.program.read_text("utf-8")
        assert _GUARD in careful
        self.shop.program.write_text(careful.replace(_GUARD, ""), "utf-8")
        self._inodes: dict[str, int] = {}
        self.export()

    def pos(self) -> str:
        return self.shop.settings

    def export(self, changed: str = "") -> None:
        self.shop.sell(
            {"external_id": key, "name": f"Dish {key}", "price": str(Decimal(price).scaleb(-2))}
            for key, price in self.prices.items()
        )

    def look(self) -> None:
        for ticket in os.scandir(self.shop.folder / "tickets"):
            order, _dot, end = ticket.name.partition(".")
            if end == "json" and self._inodes.get(order) != ticket.inode():
                self._inodes[order] = ticket.inode()
                self.plain[order] += 1


class DatabaseStore(Store):
    """A database on PostgreSQL."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        items = [Item(key, f"Dish {key}", price) for key, price in self.prices.items()]
        self.rig = telling_database(folder / name, items)

    def pos(self) -> str:
        return database_settings(self.rig)

    def export(self, changed: str = "") -> None:
        without_tax = self.prices[changed] / 110
        statement = "UPDATE products SET pricesell = :price WHERE id = :id"
        self.rig.run(statement, id=changed, price=without_tax)

    def look(self) -> None:
        self.plain = Counter(ticket.key for ticket in self.rig.tickets())

    def close(self) -> None:
        close_database(self.rig)
