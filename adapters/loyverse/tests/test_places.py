"""What the bridge finds wrong with an item later, it can tell by row and column of the file."""

import asyncio
from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, Catalogue
from tillbridge.pos.runner import PosRunner
from tillbridge_loyverse.adapter import ADAPTER
from tillbridge_loyverse.options import LoyverseOptions

HEADER = (
    "Handle,SKU,Nombre,Categoria,Descripcion,Vendido por peso,"
    "Opcion 1 nombre,Opcion 1 valor,Opcion 2 nombre,Opcion 2 valor,Opcion 3 nombre,Opcion 3 valor,"
    "Coste,SKU del articulo incluido,Cantidad incluida,Disponible [Bar],Precio [Bar]"
)


def read(folder: Path, *rows: str) -> Catalogue:
    (folder / "items.csv").write_text("\n".join((HEADER, *rows, "")), "utf-8")
    context = AdapterContext("bar", "EUR", "loc", folder)
    adapter = ADAPTER.open(LoyverseOptions(export=Path("items.csv")), context)
    runner = PosRunner(
        adapter,
        store="bar",
        adapter="loyverse",
        ticket_timeout_s=20,
    )
    return asyncio.run(runner.read_catalogue())


def row(handle: str, name: str) -> str:
    return f"{handle},,{name},Food,,N,,,,,,,0.00,,,Y,4.50"


@pytest.mark.parametrize("name", ["x" * 600, "\u00e9" * 10_000])
def test_a_name_that_is_too_long_is_told_by_row_and_column(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, row("soup", "Soup"), row("long", name))
    assert list(found.items) == ["soup"]
    [bad] = found.bad_rows
    assert (bad.place, bad.field, bad.external_id) == ("items.csv, row 3", "Nombre", "long")
    assert "longer than 500" in bad.text
