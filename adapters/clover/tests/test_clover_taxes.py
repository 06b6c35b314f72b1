"""Which tax rates are charged online, where the export marks several."""

from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, ExportUnreadable, Item
from tillbridge.adapter.conformance.changes import Told
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge_clover.adapter import CloverAdapter
from tillbridge_clover.options import CloverOptions

ITEMS = [
    ["Clover ID", "Name", "Price", "Default tax rates?", "Tax Rates"],
    ["S", "Soup", "5.00", "Yes", ""],
    ["B", "Beer", "4.00", "No", "Cash Tax, Card Tax, Bottle Fee"],
]
TAXES = [
    ["Tax Rate ID", "Name", "Tax Rate", "Default?"],
    ["1", "Cash Tax", "0.16", "Yes"],
    ["2", "Card Tax", "0.05", "Yes"],
    ["3", "Bottle Fee", "", "No"],
]


def adapter(folder: Path, **options: object) -> CloverAdapter:
    write_workbook(folder / "inventory.xlsx", {"Items": ITEMS, "Tax Rates": TAXES})
    said = CloverOptions.model_validate({"export": "inventory.xlsx", **options})
    return CloverAdapter(said, AdapterContext("bar", "USD", "loc", folder))


def rates(item: Item) -> list[str]:
    return [] if item.tax is None else [each.rate for each in item.tax.components]


@pytest.mark.parametrize(
    ("options", "charged"),
    [
        ({}, ["16", "5"]),
        ({"taxes": ["card tax"]}, ["5"]),
        ({"taxes": ["Card Tax", "Bottle Fee"]}, ["5"]),
        ({"taxes": []}, []),
    ],
)
def test_the_taxes_of_the_options_count(
    options: dict[str, object], charged: list[str], tmp_path: Path
) -> None:
    found = adapter(tmp_path, **options).read_catalogue()
    assert [rates(item) for item in found.items.values()] == [charged, charged]
    assert found.bad_rows == ()


def test_a_tax_that_the_export_does_not_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExportUnreadable, match='has no tax "VAT"; it has "Cash Tax"') as odd:
        adapter(tmp_path, taxes=["VAT"]).read_catalogue()
    assert odd.value.fix == "Correct the option taxes."


def test_other_taxes_are_other_items(tmp_path: Path) -> None:
    told = Told()
    told.follow(adapter(tmp_path))
    told.follow(adapter(tmp_path, taxes=["Card Tax"]))
    assert [rates(item) for _fingerprint, item in told.records.values()] == [["5"], ["5"]]
