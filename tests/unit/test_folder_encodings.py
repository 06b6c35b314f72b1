"""The folder adapter states how each of its files was decoded."""

from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext
from tillbridge.model.export_facts import FileEncoding
from tillbridge.pos.folder.adapter import ADAPTER

MENU = "external_id,name,price\n1,Crème,4.50\n2,Thé vert,2.80\n"


@pytest.mark.parametrize(
    ("data", "options", "found"),
    [
        (MENU.encode(), {}, FileEncoding("utf-8")),
        (MENU.encode("utf-8-sig"), {}, FileEncoding("utf-8")),
        (MENU.encode("cp1252"), {}, FileEncoding("cp1252", bad_byte=27, bad_line=2)),
        (
            MENU.encode("cp1252"),
            {"encoding": "cp1252"},
            FileEncoding("cp1252", chosen=True, bad_byte=27, bad_line=2),
        ),
        (MENU.encode("utf-16-le"), {}, FileEncoding("utf-16-le")),
        (b"external_id,name,price\n1,Tea,2.80\n", {}, FileEncoding("ascii")),
        (MENU.encode().decode("cp1252").encode(), {}, FileEncoding("utf-8", encoded_twice=True)),
    ],
    ids=["utf-8", "mark", "western", "named", "utf-16", "ascii", "twice"],
)
def test_a_menu_says_how_it_was_decoded(
    tmp_path: Path, data: bytes, options: dict[str, str], found: FileEncoding
) -> None:
    (tmp_path / "menu.csv").write_bytes(data)
    said = ADAPTER.options.model_validate({"menu": "menu.csv", **options})
    pos = ADAPTER.open(said, AdapterContext("main", "EUR", "loc", tmp_path))
    assert pos.read_catalogue().facts.encodings == {"menu.csv": found}  # type: ignore[attr-defined] # it reads menus
