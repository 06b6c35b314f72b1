"""A menu that has everything a guest would miss, and the ways in which exports lose it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tillbridge.menu.diff import Diff
from tillbridge.menu.guard import FEW, RULES, Source, Totals, left_by_category, plain
from tillbridge.model.catalogue import (
    AddOn,
    AddOnGroup,
    Catalogue,
    Category,
    Item,
    ItemTax,
    TaxComponent,
    Variant,
)

Mutation = Callable[[Item], Item]


def full_menu(count: int, *, rate: str = "3") -> Catalogue:
    """Return a menu of `count` dishes with sizes, choices, a tax, a heading, texts and pictures."""
    categories = [Category(f"c{number}", f"Heading {number}") for number in range(10)]
    add_ons = [AddOn(f"a{number}", f"Option {number}", 50) for number in range(30)]
    groups = [
        AddOnGroup(f"g{n}", f"Choice {n}", 1, 1, True, tuple(f"a{3 * n + k}" for k in range(3)))
        for n in range(10)
    ]
    items = [
        Item(
            f"p{number}",
            f"Dish {number}",
            1000 + number,
            description=f"All about {number}",
            image_url=f"https://example.net/{number}.png",
            categories=(f"c{number % 10}",),
            addon_groups=(f"g{number % 10}", f"g{(number + 1) % 10}"),
            variants=(
                Variant(f"p{number}-s", "small", 1000 + number),
                Variant(f"p{number}-l", "large", 1500 + number),
            ),
            tax=tax(rate),
        )
        for number in range(count)
    ]
    return Catalogue.of(items, categories=categories, add_ons=add_ons, addon_groups=groups)


def tax(rate: str) -> ItemTax:
    return ItemTax("VAT", (TaxComponent("State", rate),))


# What a mutation does to an item, and the code of the finding that must follow.
LOSSES: Mapping[str, Mutation] = {
    "sizes_lost": lambda item: replace(item, variants=item.variants[:1]),
    "size_names_lost": lambda item: replace(
        item, variants=tuple(replace(each, variant_name="") for each in item.variants)
    ),
    "choices_lost": lambda item: replace(item, addon_groups=()),
    "taxes_lost": lambda item: replace(item, tax=None),
    "taxes_moved": lambda item: replace(item, tax=tax("30")),
    "renamed": lambda item: replace(item, name="X"),
    "headings_lost": lambda item: replace(item, categories=()),
    "descriptions_lost": lambda item: replace(item, description=""),
    "pictures_lost": lambda item: replace(item, image_url=""),
}


def mutated(catalogue: Catalogue, mutation: Mutation, ids: Sequence[str]) -> Catalogue:
    """Return the menu with these items changed."""
    items = {key: mutation(item) if key in ids else item for key, item in catalogue.items.items()}
    return replace(catalogue, items=items)


def doubled(catalogue: Catalogue, ids: Sequence[str]) -> Catalogue:
    """Return the menu with these dishes a second time, under other ids."""
    again = {f"new-{key}": replace(catalogue.items[key], external_id=f"new-{key}") for key in ids}
    return replace(catalogue, items={**catalogue.items, **again})


def totals_of(
    before: Catalogue,
    changes: Diff,
    *,
    accepted_from: Source | None = None,
    read_from: Source | None = None,
) -> Totals:
    """Return what the ledger would know of the accepted menu, as the guard asks for it."""
    per_category: dict[str, int] = {}
    for item in before.items.values():
        for category in item.categories:
            per_category[category] = per_category.get(category, 0) + 1
    staying = {plain(i.name) for key, i in before.items.items() if key not in changes.removed}
    twins = {key for key, item in changes.added.items() if plain(item.name) in staying}
    return Totals(
        items=len(before.items),
        category_items={key: per_category.get(key, 0) for key in left_by_category(changes)},
        category_names={key: each.name for key, each in before.categories.items()},
        having={
            name: sum(bool(getattr(item, name)) for item in before.items.values())
            for name in {rule.among for rule in RULES if rule.among}
        },
        parts={
            kind: len(getattr(before, kind)) for kind in ("categories", "add_ons", "addon_groups")
        },
        twins=frozenset(twins) if len(changes.added) > FEW else frozenset(),
        accepted_from=accepted_from or Source(),
        read_from=read_from or Source(),
    )
