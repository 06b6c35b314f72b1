"""A rig for tills that are known by one exported file: only its rows differ from till to till."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from tillbridge.adapter.conformance.rig import Rig
from tillbridge.adapter.conformance.workbook import Cell
from tillbridge.model.catalogue import Item


class FileRig(Rig):
    """A till that exports after each change; each row is an item, with columns for id and name.

    `sold_out` is the column, and its value for an item that is off sale.
    """

    export_name: ClassVar[str]
    id_column: ClassVar[int]
    name_column: ClassVar[int]
    sold_out: ClassVar[tuple[int, Cell]]

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rows: list[list[Cell]] = []
        self.export([])

    @property
    def path(self) -> Path:
        """Where the export lies."""
        return self.folder / self.export_name

    @abstractmethod
    def row(self, item: Item, number: int, currency: str) -> list[Cell]:
        """Return the item's row; `number` counts from 0."""

    @abstractmethod
    def export(self, rows: Sequence[Sequence[Cell]]) -> None:
        """Write the export with these rows, by temporary file and rename."""

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export a row for each item."""
        self._rows = [self.row(item, number, currency) for number, item in enumerate(items)]
        self.export(self._rows)
        return [replace(item, menus=()) for item in items]

    def rename(self, external_id: str, name: str) -> None:
        """Change the cell of the name."""
        self._set(external_id, self.name_column, name)

    def reorder(self) -> None:
        """Export from the last to the first."""
        self._rows.reverse()
        self.export(self._rows)

    def sell_out(self, external_id: str) -> None:
        """Set the sold-out cell."""
        self._set(external_id, *self.sold_out)

    def exports(self) -> Sequence[Path]:
        """Return the export."""
        return [self.path]

    def go_offline(self) -> None:
        """Remove the export, like a network share that disappears."""
        self.path.rename(self.folder / "away")

    def come_back(self) -> None:
        """Bring it back."""
        (self.folder / "away").rename(self.path)

    def _set(self, external_id: str, column: int, value: Cell) -> None:
        for row in self._rows:
            if row[self.id_column] == external_id:
                row[column] = value
        self.export(self._rows)
