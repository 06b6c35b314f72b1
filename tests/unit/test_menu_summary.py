"""A menu in a few numbers: what an owner looks at before it is sold for the first time."""

from tillbridge.adapter import AddOn, AddOnGroup, BadRow, Catalogue, Category, Item, Variant
from tillbridge.model.catalogue import MenuSummary, Priced
from tillbridge.model.export_facts import ExportFacts, FileEncoding, LeftOut

SIZES = (Variant("s", "Small", 300), Variant("l", "Large", 0))
MENU = Catalogue.of(
    [
        Item("latte", "Latte", 0, variants=SIZES, addon_groups=("Milk",)),
        Item("pita", "Pita", 0, addon_groups=("Filling",)),
        Item("water", "Tap water", 0, available=False),
        Item("steak", "Steak", 3400, categories=("mains",)),
    ],
    categories=[Category("mains", "Mains")],
    add_ons=[AddOn("oat", "Oat", 60), AddOn("falafel", "Falafel", 650), AddOn("x", "X", 1)],
    addon_groups=[
        AddOnGroup("Milk", "Milk", 0, 1, add_ons=("oat",)),
        AddOnGroup("Filling", "Filling", 1, 1, required=True, add_ons=("falafel",)),
        AddOnGroup("Unused", "Unused", add_ons=("x",)),
    ],
    bad_rows=[BadRow("menu.csv, row 3", "It has no name.", "Name it.")],
    facts=ExportFacts(
        encodings={"menu.csv": FileEncoding("utf-8")},
        left_out=(LeftOut("Flour", "category", "Raw"),),
        not_offered=("Sauce",),
    ),
)


def test_a_summary_counts_what_guests_see() -> None:
    found = MenuSummary.of(MENU)
    assert (found.items, found.sizes, found.categories, found.sold_out) == (4, 2, 1, 1)
    assert (found.choices, found.options, found.bad_rows) == (2, 2, 1)
    assert found.free == ("Latte (Large)", "Tap water")
    assert found.cheapest == Priced("Latte (Small)", 300)
    assert found.dearest == Priced("Steak", 3400)
    assert found.not_offered == ("Sauce",)


def test_an_empty_menu_has_a_summary_too() -> None:
    assert MenuSummary.of(Catalogue()) == MenuSummary()


def test_machines_get_the_amount_as_text_too() -> None:
    said = MenuSummary.of(MENU).to_json("USD")
    assert said["dearest"] == {"name": "Steak", "price": 3400, "amount": "34.00"}
    assert said["encodings"] == {"menu.csv": "utf-8"}
    assert said["left_out"] == [{"name": "Flour", "reason": "category", "detail": "Raw"}]
