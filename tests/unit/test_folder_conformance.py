"""The folder adapter is what its quality.toml says, by the suite that every vendor runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from tillbridge.adapter import Catalogue, Item
from tillbridge.adapter.conformance import Rig, conformance_tests, read_quality
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.pos.folder.rig import RIG, FolderRig

QUALITY = read_quality(Path(str(resources.files("tillbridge.pos.folder"))) / "quality.toml")

test_conformance = conformance_tests(RIG, QUALITY)


class GroupedRig(FolderRig):
    """The same till, whose rows are grouped by their id: the reading by a mapping."""

    sell_menu = Rig.sell_menu

    def options(self) -> Mapping[str, Any]:
        """Group the rows."""
        return {**super().options(), "group_by": "external_id"}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Export a row for each item: rows of one id would be its sizes."""
        return list(FolderRig.sell_menu(self, Catalogue.of(items), currency).items.values())


class WorkbookRig(FolderRig):
    """The same till, which exports a workbook."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._to_workbook()

    def options(self) -> Mapping[str, Any]:
        """Name the workbook."""
        return {**super().options(), "menu": "share/menu.xlsx"}

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Export the menu as a workbook."""
        sold = super().sell_menu(menu, currency)
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


_PLAIN = dict.fromkeys(("variants", "add_ons"), "test_folder_mapped.py has sizes in groups")
GROUPED = replace(QUALITY, done=QUALITY.done - _PLAIN.keys(), exempt={**QUALITY.exempt, **_PLAIN})
test_grouped = conformance_tests(GroupedRig, GROUPED)
test_workbook = conformance_tests(WorkbookRig, QUALITY)
