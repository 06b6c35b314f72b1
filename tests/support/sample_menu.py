"""A menu for pages: dishes with sizes and choices, some of which the till has otherwise."""

from typing import Any

from tillbridge.menu.diff import diff
from tillbridge.menu.review import Differing, row_of
from tillbridge.model.catalogue import Catalogue, Category, Item, Variant

HEADINGS = ("Pizza", "Pasta", "Drinks", "Desserts")
DISHES = (
    "Margherita,Funghi,Quattro Formaggi,Diavola,Napoli,Capricciosa,Lasagne,Carbonara,Ravioli,"
    "Cola,Lemonade,Water,Tiramisu,Panna Cotta,Gelato"
).split(",")


def differing(text: str, *, reasons: tuple[str, ...] = (), count: int = 12) -> Differing:
    """Return a change that removes, adds and changes dishes; names and texts hold `text`."""
    heads = {f"c{n}": Category(f"c{n}", f"{text} {n}") for n in range(len(HEADINGS))}
    before = [
        Item(
            f"p{number}",
            f"{text} {number}",
            950,
            description=text,
            categories=(f"c{number % len(heads)}",),
            variants=(Variant(f"p{number}-l", text, 1250),),
        )
        for number in range(count)
    ]
    after = [
        Item(
            each.external_id,
            f"{each.name}!" if number % 5 == 0 else each.name,
            95_000 if number == 1 else 1000,
            description=f"{text}!",
            categories=each.categories,
            variants=(Variant(f"{each.external_id}-l", text, 1300),),
        )
        for number, each in enumerate(before)
        if number % 3
    ]
    after.append(Item("new", f"{text} 99", 700, categories=("c1",)))
    was, now = Catalogue.of(before), Catalogue.of(after)
    names = Catalogue(categories=heads)
    return Differing(diff(was, now), names, names, reasons, ("p1",), 1)


def card(found: Differing, item: Item, text: str) -> dict[str, Any]:
    """Return a dish as the page shows it, with what the till has otherwise."""
    row = row_of(found, item.external_id)
    marks = {"added": "new", "removed": "removed", "changed": "changed"}
    return {
        "external_id": item.external_id,
        "name": item.name,
        "description": item.description,
        "picture": f"https://pictures.example/{item.external_id}.jpg",
        "price": item.price,
        "on_sale": not item.external_id.endswith("2"),
        "stopped": item.external_id.endswith("2"),
        "until": None,
        "sizes": [
            {
                "external_id": each.external_id,
                "name": each.variant_name,
                "price": each.price,
                "on_sale": False,
            }
            for each in item.variants
        ],
        "more_sizes": 0,
        "choices": [
            {
                "name": text,
                "least": 1,
                "most": 2,
                "options": [
                    {"name": text, "price": 150, "on_sale": True},
                    {"name": text, "price": 0, "on_sale": False},
                ],
                "more": 3,
            }
        ],
        "more_choices": 1,
        "mark": "" if row is None else marks[row["kind"]],
        "change": row,
        "refused": text if item.external_id == "p5" else "",
    }


def menu_page(found: Differing, text: str, *, count: int = 12) -> dict[str, Any]:
    """Return a page of a menu of so many dishes, as `menu.browse` answers it."""
    changes = found.changes
    items = [*changes.removed.values(), *(each.before for each in changes.changed.values())]
    items = [*items[:count], *changes.added.values()]
    groups: dict[str, list[Any]] = {}
    for item in items:
        name = found.after.categories[item.categories[0]].name
        groups.setdefault(name, []).append(card(found, item, text))
    return {
        "categories": [
            {"id": name, "name": name, "count": len(each), "differing": len(each)}
            for name, each in groups.items()
        ],
        "category": "",
        "item": "",
        "groups": [{"name": name, "items": each} for name, each in groups.items()],
        "count": len(items),
        "page": 1,
        "pages": 1,
        "items": len(items),
        "sizes": len(items) - 1,
        "differing": len(items),
        "held": bool(found.reasons),
        "currency": "EUR",
    }
