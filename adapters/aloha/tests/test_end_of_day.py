"""The end of the day: Aloha takes its files away and brings them back, one after the other."""

from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, ExportUnreadable
from tillbridge_aloha.adapter import AlohaAdapter
from tillbridge_aloha.dbf_writing import Field, write_dbf
from tillbridge_aloha.options import AlohaOptions

_ITM: list[Field] = [("ID", "N", 10, 0), ("LONGNAME", "C", 20, 0), ("PRICE", "N", 9, 3)]
_CAT: list[Field] = [("ID", "N", 10, 0), ("NAME", "C", 20, 0)]
_CIT: list[Field] = [("CATEGORY", "N", 10, 0), ("ITEMID", "N", 10, 0)]


def test_a_table_that_is_gone_for_a_moment_empties_no_category(tmp_path: Path) -> None:
    write_dbf(tmp_path / "ITM.DBF", _ITM, [{"ID": 1, "LONGNAME": "Soup", "PRICE": 4}])
    write_dbf(tmp_path / "CAT.DBF", _CAT, [{"ID": 5, "NAME": "Food"}])
    write_dbf(tmp_path / "CIT.DBF", _CIT, [{"CATEGORY": 5, "ITEMID": 1}])
    context = AdapterContext("main", "USD", "loc", tmp_path)
    adapter = AlohaAdapter(AlohaOptions(folder=Path()), context)
    before = adapter.read_catalogue()
    (tmp_path / "CIT.DBF").rename(tmp_path / "CIT.OLD")
    with pytest.raises(ExportUnreadable, match=r"CIT\.DBF was there") as told:
        adapter.read_catalogue()
    assert told.value.passing
    (tmp_path / "CIT.OLD").rename(tmp_path / "CIT.DBF")
    assert adapter.read_catalogue() == before


def test_the_files_of_modifiers_are_watched_and_recorded_while_they_are_there(
    tmp_path: Path,
) -> None:
    context = AdapterContext("main", "USD", "loc", tmp_path)
    adapter = AlohaAdapter(AlohaOptions(folder=Path()), context)
    menu = ["ITM.DBF", "CAT.DBF", "CIT.DBF"]
    assert [path.name for path in adapter.catalogue_files()] == menu
    (tmp_path / "gnditem.dbf").touch()
    assert [path.name for path in adapter.catalogue_files()] == [*menu, "gnditem.dbf"]
    without = AlohaAdapter(AlohaOptions(folder=Path(), modifiers="none"), context)
    assert [path.name for path in without.catalogue_files()] == menu
