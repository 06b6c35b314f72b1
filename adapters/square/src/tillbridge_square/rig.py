"""A Square seller for the conformance suite: an item library as the dashboard writes it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance.file_rig import FileRig
from tillbridge.adapter.conformance.workbook import Cell, write_workbook
from tillbridge.model.money import major
from tillbridge_square.adapter import ADAPTER

_HEADER = (
    "Reference Handle",
    "Token",
    "Item Name",
    "Variation Name",
    "Categories",
    "Square Online Item Visibility",
    "Price",
    "Archived",
    "Sellable",
)


class SquareRig(FileRig):
    """One location; the header stands in the second row."""

    adapter: ClassVar[Adapter] = ADAPTER
    export_name = "library.xlsx"
    id_column = 1
    name_column = 2
    sold_out = (5, "unavailable")

    def options(self) -> Mapping[str, Any]:
        """Name the export."""
        return {"export": self.export_name}

    def row(self, item: Item, number: int, currency: str) -> list[Cell]:
        """Return the row of an item's only variation."""
        price = major(item.price, currency)
        handle = f"#item-{number}"
        return [handle, item.external_id, item.name, "Regular", "", "visible", price, "N", ""]

    def export(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write the workbook."""
        write_workbook(self.path, {"Items": [[], _HEADER, *rows]})


RIG = SquareRig
