"""The folder adapter is what its quality.toml says, by the suite that every vendor runs."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tillbridge.adapter import Item
from tillbridge.adapter.conformance import conformance_tests, read_quality
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.pos.folder.rig import RIG, FolderRig

QUALITY = read_quality(Path(str(resources.files("tillbridge.pos.folder"))) / "quality.toml")

test_conformance = conformance_tests(RIG, QUALITY)


class GroupedRig(FolderRig):
    """The same till, whose rows are grouped by their id: the reading by a mapping."""

    def options(self) -> Mapping[str, Any]:
        """Group the rows."""
        return {**super().options(), "group_by": "external_id"}


class WorkbookRig(FolderRig):
    """The same till, which exports a workbook."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._to_workbook()

    def options(self) -> Mapping[str, Any]:
        """Name the workbook."""
        return {**super().options(), "menu": "share/menu.xlsx"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export the items as a workbook."""
        sold = super().sell(items, currency)
        self._to_workbook()
        return sold

    def rename(self, external_id: str, name: str) -> None:
        """Export another name."""
        super().rename(external_id, name)
        self._to_workbook()

    def reorder(self) -> None:
        """Export from the last to the first."""
        super().reorder()
        self._to_workbook()

    def exports(self) -> Sequence[Path]:
        """Return the workbook."""
        return [self._share / "menu.xlsx"]

    def _to_workbook(self) -> None:
        write_workbook(self._share / "menu.xlsx", {"Menu": self._rows()})


test_grouped = conformance_tests(GroupedRig, QUALITY)
test_workbook = conformance_tests(WorkbookRig, QUALITY)
