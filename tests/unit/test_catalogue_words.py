"""A difference in words: the same words in the same order, whoever asks and however often."""

from dataclasses import replace

from tillbridge.menu.describe import sentences
from tillbridge.menu.diff import diff
from tillbridge.model.catalogue import (
    AddOnGroup,
    Catalogue,
    Category,
    Item,
    ItemTax,
    TaxComponent,
    Variant,
)


def catalogue(*items: Item) -> Catalogue:
    return Catalogue(
        items={item.external_id: item for item in items},
        categories={"c": Category("c", "Pizza")},
    )


def dish(external_id: str, name: str, price: int = 950) -> Item:
    return Item(external_id, name, price, categories=("c",))


def test_names_stand_in_the_order_of_the_alphabet() -> None:
    names = ("Napoli", "diavola", "Funghi", "Margherita")
    before = catalogue(*(dish(f"p{place}", name) for place, name in enumerate(names)))
    changes = diff(before, catalogue())
    expected = ["diavola", "Funghi", "Margherita", "Napoli"]
    lines = list(sentences(changes, before, catalogue(), "USD"))
    assert lines == [f"- {name}, 9.50" for name in expected]


def test_what_made_a_plan_wait_stands_first_with_names_and_prices() -> None:
    before = catalogue(*(dish(f"p{place:02}", f"Dish {place:02}") for place in range(30)))
    after = catalogue(
        *(dish(f"p{place:02}", f"Dish {place:02}", 951) for place in range(29)),
        dish("p29", "Dish 29", 95_000),
    )
    changes = diff(before, after)
    lines = list(sentences(changes, before, after, "USD", ("p29",)))
    assert lines[:2] == ["~ Dish 29: price 9.50 -> 950.00", "~ Dish 00: price 9.50 -> 9.51"]
    assert len(lines) == 30


def test_changes_are_told_in_the_words_of_a_menu() -> None:
    sizes = (Variant("s", "Small", 300), Variant("l", "Large", 500))
    tax = ItemTax("VAT", (TaxComponent("State", "3"),))
    before = catalogue(replace(dish("p1", "Latte"), variants=sizes, tax=tax, addon_groups=("g",)))
    before = replace(before, addon_groups={"g": AddOnGroup("g", "Milk")})
    after = catalogue(replace(dish("p1", "Latte"), variants=sizes[:1], categories=()))
    (line, *_rest) = sentences(diff(before, after), before, after, "USD")
    assert line == (
        "~ Latte: choices Milk -> -; categories Pizza -> -; tax VAT 3 % -> -; "
        "sizes Small 3.00, Large 5.00 -> Small 3.00"
    )
