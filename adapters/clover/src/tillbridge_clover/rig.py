"""A Clover merchant for the conformance suite: an inventory export as the dashboard writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance import Rig
from tillbridge.adapter.conformance.workbook import Cell, write_workbook
from tillbridge.model.money import to_major
from tillbridge_clover.adapter import ADAPTER

_HEADER = ("Clover ID", "Name", "Description", "Price", "Price Type", "Hidden?", "Categories")
_NAME, _HIDDEN = 1, 5


class CloverRig(Rig):
    """One merchant, exported anew after each change; hidden items count as sold out."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rows: list[list[Cell]] = []
        self._export()

    def options(self) -> Mapping[str, Any]:
        """Name the export."""
        return {"export": "inventory.xlsx", "hidden": "sold_out"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export these items; prices are numbers, as a spreadsheet keeps them."""
        self._rows = [
            [
                item.external_id,
                item.name,
                "",
                Decimal(to_major(item.price, currency)),
                "Fixed",
                "No",
                "",
            ]
            for item in items
        ]
        self._export()
        return [replace(item, menus=()) for item in items]

    def rename(self, external_id: str, name: str) -> None:
        """Change the name; Clover keeps its id."""
        for row in self._rows:
            if row[0] == external_id:
                row[_NAME] = name
        self._export()

    def reorder(self) -> None:
        """Export from the last to the first."""
        self._rows.reverse()
        self._export()

    def sell_out(self, external_id: str) -> None:
        """Hide it on the till."""
        for row in self._rows:
            if row[0] == external_id:
                row[_HIDDEN] = "Yes"
        self._export()

    def exports(self) -> Sequence[Path]:
        """Return the export."""
        return [self.folder / "inventory.xlsx"]

    def go_offline(self) -> None:
        """Take the export away."""
        self.exports()[0].rename(self.folder / "away")

    def come_back(self) -> None:
        """Bring it back."""
        (self.folder / "away").rename(self.exports()[0])

    def _export(self) -> None:
        write_workbook(self.exports()[0], {"Items": [_HEADER, *self._rows]}, dimension="A1")


RIG = CloverRig
