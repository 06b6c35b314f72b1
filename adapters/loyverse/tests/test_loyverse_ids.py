"""An id is that of one thing alone: of an item, or of one of its sizes."""

import csv
from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext
from tillbridge_loyverse.adapter import LoyverseAdapter
from tillbridge_loyverse.options import LoyverseOptions

HEADER = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar],In stock [Bar],"
    "Low stock [Bar]"
).split(",")


def row(handle: str, sku: str, name: str, size: str = "") -> list[str]:
    cells = dict.fromkeys(HEADER, "")
    cells |= {"Handle": handle, "SKU": sku, "Name": name, "Option 1 value": size}
    cells |= {"Option 1 name": "Size" if size and name else "", "Sold by weight": "N"}
    return list((cells | {"Available for sale [Bar]": "Y", "Price [Bar]": "4.50"}).values())


@pytest.mark.parametrize(
    ("rows", "sold", "place", "field"),
    [
        ([row("tea", "1", "Tea", "S"), row("tea", "1", "", "L")], [], 3, "SKU"),
        (
            [
                *(row("tea", "1", "Tea", "S"), row("tea", "2", "", "L")),
                *(row("mate", "3", "Mate", "S"), row("mate", "2", "", "L")),
            ],
            ["tea"],
            5,
            "SKU",
        ),
        ([row("tea", "1", "Tea"), row("tea", "2", "Mate")], ["tea"], 3, "Handle"),
        ([row("tea", "1", "Tea"), row("mate", "1", "Mate")], ["tea", "mate"], 0, ""),  # no ids
        ([row("tea", "1", "Tea"), row("tea", "1", "Tea")], ["tea"], 0, ""),  # the same again
    ],
)
def test_what_has_the_id_of_another_is_refused(
    rows: list[list[str]], sold: list[str], place: int, field: str, tmp_path: Path
) -> None:
    with (tmp_path / "export.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    context = AdapterContext("bar", "USD", "loc", tmp_path)
    options = LoyverseOptions.model_validate({"export": "export.csv"})
    found = LoyverseAdapter(options, context).read_catalogue()
    assert list(found.items) == sold
    told = [(each.place, each.field) for each in found.bad_rows]
    assert told == ([(f"export.csv, row {place}", field)] if place else [])
