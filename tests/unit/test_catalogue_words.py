"""A difference in words: the same words in the same order, whoever asks and however often."""

from tillbridge.catalogue.diff import diff
from tillbridge.catalogue.words import sentences, summary_of
from tillbridge.model.catalogue import Catalogue, Category, Item


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
    by_category = summary_of(changes, before, catalogue(), "USD")["by_category"]
    assert by_category == {"Pizza": {"removed": expected}}
    lines = [line for line in sentences(changes, "USD") if "category" not in line]
    assert [line.rsplit(" ", 1)[1] for line in lines] == expected


def test_a_price_that_changes_is_told_with_both_prices() -> None:
    before = catalogue(dish("p1", "Napoli"), dish("p2", "Funghi"))
    after = catalogue(dish("p1", "Napoli", 9500), dish("p2", "Pizza Funghi"))
    summary = summary_of(diff(before, after), before, after, "USD")
    assert summary["by_category"] == {
        "Pizza": {"changed": ["Napoli: 9.50, now 95.00", "Pizza Funghi"]}
    }
