"""A Loyverse account for the conformance suite: an export as its Back Office writes it."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance.file_rig import FileRig
from tillbridge.adapter.conformance.workbook import Cell
from tillbridge.model.money import to_major
from tillbridge_loyverse.adapter import ADAPTER

_HEADER = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar],In stock [Bar],"
    "Low stock [Bar]"
).split(",")


class LoyverseRig(FileRig):
    """One store; the handle is the id."""

    adapter: ClassVar[Adapter] = ADAPTER
    export_name = "export_items.csv"
    id_column = 0
    name_column = 2
    sold_out = (17, "N")

    def options(self) -> Mapping[str, Any]:
        """Name the export."""
        return {"export": self.export_name}

    def row(self, item: Item, number: int, currency: str) -> list[Cell]:
        """Return a row without options and stock."""
        row: list[Cell] = [""] * len(_HEADER)
        row[0:3] = [item.external_id, str(10_000 + number), item.name]
        row[5], row[12], row[16] = "N", "0.00", "N"
        row[17:19] = ["Y", to_major(item.price, currency)]
        return row

    def export(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write the CSV."""
        text = io.StringIO(newline="")
        csv.writer(text).writerows([_HEADER, *rows])
        part = self.path.with_suffix(".part")
        part.write_bytes(text.getvalue().encode())
        part.replace(self.path)


RIG = LoyverseRig
