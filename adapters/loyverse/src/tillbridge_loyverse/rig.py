"""A Loyverse account for the conformance suite: an export as its Back Office writes it."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance import Rig
from tillbridge.model.money import to_major
from tillbridge_loyverse.adapter import ADAPTER

_HEADER = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar],In stock [Bar],"
    "Low stock [Bar]"
).split(",")
_NAME, _FOR_SALE = 2, 17


class LoyverseRig(Rig):
    """One store, exported anew after each change."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rows: list[list[str]] = []
        self._export()

    def options(self) -> Mapping[str, Any]:
        """Name the export."""
        return {"export": "export_items.csv"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export these items; the handle is the id."""
        self._rows = [
            [
                item.external_id,
                str(10_000 + number),
                item.name,
                *[""] * 2,
                "N",
                *[""] * 6,
                "0.00",
                *[""] * 3,
                "N",
                "Y",
                to_major(item.price, currency),
                *[""] * 2,
            ]
            for number, item in enumerate(items)
        ]
        self._export()
        return [replace(item, menus=()) for item in items]

    def rename(self, external_id: str, name: str) -> None:
        """Change the name; Loyverse keeps handle and SKU."""
        for row in self._rows:
            if row[0] == external_id:
                row[_NAME] = name
        self._export()

    def reorder(self) -> None:
        """Export from the last to the first."""
        self._rows.reverse()
        self._export()

    def sell_out(self, external_id: str) -> None:
        """Take it off sale in the store."""
        for row in self._rows:
            if row[0] == external_id:
                row[_FOR_SALE] = "N"
        self._export()

    def exports(self) -> Sequence[Path]:
        """Return the export."""
        return [self.folder / "export_items.csv"]

    def go_offline(self) -> None:
        """Take the export away."""
        self.exports()[0].rename(self.folder / "away")

    def come_back(self) -> None:
        """Bring it back."""
        (self.folder / "away").rename(self.exports()[0])

    def _export(self) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows([_HEADER, *self._rows])
        part = self.folder / "part"
        part.write_bytes(text.getvalue().encode())
        part.replace(self.exports()[0])


RIG = LoyverseRig
