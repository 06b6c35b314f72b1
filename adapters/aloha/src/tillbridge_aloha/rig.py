"""An Aloha till for the conformance suite: its folder of tables."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Item
from tillbridge.adapter.conformance import CannotDo
from tillbridge.adapter.conformance.file_rig import FileRig
from tillbridge.adapter.conformance.workbook import Cell
from tillbridge.model.money import to_major
from tillbridge_aloha.adapter import ADAPTER
from tillbridge_aloha.dbf_writing import Field, write_dbf

ITM: Sequence[Field] = (
    ("ID", "N", 10, 0),
    ("SHORTNAME", "C", 15, 0),
    ("LONGNAME", "C", 25, 0),
    ("ASKPRICE", "C", 1, 0),
    ("PRICE", "N", 15, 3),
)
CAT: Sequence[Field] = (("ID", "N", 10, 0), ("NAME", "C", 20, 0))
CIT: Sequence[Field] = (("CATEGORY", "N", 10, 0), ("ITEMID", "N", 10, 0))
_PAGE = "cp1251"
_STOP = 99


class AlohaRig(FileRig):
    """Ids are numbers; names have one code page and 25 letters."""

    adapter: ClassVar[Adapter] = ADAPTER
    export_name = "ITM.DBF"
    id_column = 0
    name_column = 1

    def options(self) -> Mapping[str, Any]:
        """Sell items without a price too, and keep a stop list."""
        return {"folder": ".", "zero_prices": "sell", "stop_list": "stop list"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Number the items, and write all tables. CannotDo for names that have no place there."""
        for item in items:
            try:
                fits = len(item.name.encode(_PAGE)) <= ITM[2][2]
            except UnicodeEncodeError:
                fits = False
            if not fits:
                raise CannotDo("A DBF file has one code page, and short names.")
        self._link([])
        sold = super().sell(items, currency)
        return [
            Item(str(number), item.name, item.price, item.description)
            for number, item in enumerate(sold, 1001)
        ]

    def row(self, item: Item, number: int, currency: str) -> list[Cell]:
        """Return id, name and price."""
        return [str(1001 + number), item.name, to_major(item.price, currency)]

    def export(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write ITM.DBF."""
        records = [
            {"ID": row[0], "LONGNAME": row[1], "ASKPRICE": "N", "PRICE": Decimal(str(row[2]))}
            for row in rows
        ]
        write_dbf(self.path, ITM, records, encoding=_PAGE)

    def sell_out(self, external_id: str) -> None:
        """Put it on the stop list."""
        self._link([{"CATEGORY": _STOP, "ITEMID": int(external_id)}])

    def _link(self, rows: Sequence[Mapping[str, object]]) -> None:
        write_dbf(self.folder / "CAT.DBF", CAT, [{"ID": _STOP, "NAME": "Stop list"}])
        write_dbf(self.folder / "CIT.DBF", CIT, rows)


RIG = AlohaRig
