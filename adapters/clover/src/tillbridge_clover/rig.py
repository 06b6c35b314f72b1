"""A Clover merchant for the conformance suite: an inventory export as the dashboard writes it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance.file_rig import FileRig
from tillbridge.adapter.conformance.workbook import Cell, write_workbook
from tillbridge.model.money import major
from tillbridge_clover.adapter import ADAPTER

_HEADER = ("Clover ID", "Name", "Description", "Price", "Price Type", "Hidden?", "Categories")


class CloverRig(FileRig):
    """One merchant; hidden items count as sold out, and the sheets lie about their size."""

    adapter: ClassVar[Adapter] = ADAPTER
    export_name = "inventory.xlsx"
    id_column = 0
    name_column = 1
    sold_out = (5, "Yes")

    def options(self) -> Mapping[str, Any]:
        """Name the export."""
        return {"export": self.export_name, "hidden": "sold_out"}

    def row(self, item: Item, number: int, currency: str) -> list[Cell]:
        """Return a row; its price is a number, as a spreadsheet keeps it."""
        price = major(item.price, currency)
        return [item.external_id, item.name, "", price, "Fixed", "No", ""]

    def export(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write the workbook."""
        write_workbook(self.path, {"Items": [_HEADER, *rows]}, dimension="A1")


RIG = CloverRig
