"""Catalogues made up for tests: a few by hand, and any at all by hypothesis."""

from collections.abc import Mapping

from hypothesis import strategies as st

from tillbridge.model.catalogue import (
    AddOn,
    AddOnGroup,
    Catalogue,
    Category,
    Item,
    ItemTax,
    Menu,
    TaxComponent,
    Variant,
)

IDS = [f"i{number}" for number in range(6)]

_texts = st.text(max_size=4)
_prices = st.integers(min_value=0, max_value=5000)
_part_ids = st.sampled_from(["a", "b", "c"])
_until = st.none() | st.integers(min_value=1, max_value=10_000)


@st.composite
def items(draw: st.DrawFn, external_id: str) -> Item:
    available = draw(st.booleans())
    return Item(
        external_id=external_id,
        name=draw(_texts),
        price=draw(_prices),
        description=draw(_texts),
        available=available,
        snooze_until=None if available else draw(_until),
        categories=tuple(draw(st.lists(_part_ids, unique=True, max_size=2))),
        addon_groups=tuple(draw(st.lists(_part_ids, unique=True, max_size=2))),
        variants=tuple(
            Variant(f"{external_id}-{size}", size, draw(_prices), draw(st.booleans()))
            for size in draw(st.lists(st.sampled_from("SML"), unique=True, max_size=2))
        ),
        tax=draw(st.none() | st.just(ItemTax("VAT", (TaxComponent("State", "8.25"),)))),
        menus=("menu",),
    )


@st.composite
def catalogues(draw: st.DrawFn, *, min_size: int = 0) -> Catalogue:
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, min_size=min_size))
    return Catalogue.of(
        [draw(items(external_id)) for external_id in ids],
        categories=[Category(each, draw(_texts)) for each in draw(_some_parts())],
        add_ons=[AddOn(each, draw(_texts), draw(_prices)) for each in draw(_some_parts())],
        addon_groups=[
            AddOnGroup(each, draw(_texts), add_ons=tuple(draw(_some_parts())))
            for each in draw(_some_parts())
        ],
        menus=[Menu("menu", "Menu")] if draw(st.booleans()) else [],
    )


def _some_parts() -> st.SearchStrategy[list[str]]:
    return st.lists(_part_ids, unique=True, max_size=3)


def dishes(count: int, **changed: Mapping[str, object]) -> Catalogue:
    """Return a menu of `count` dishes in two categories; `changed` holds other fields by id."""
    made = []
    for number in range(1, count + 1):
        fields: dict[str, object] = {
            "external_id": f"p{number}",
            "name": f"Dish {number}",
            "price": 100 * number,
            "categories": ("Mains",) if number * 2 <= count else ("Sides",),
            "menus": ("menu",),
        }
        made.append(Item(**{**fields, **changed.get(f"p{number}", {})}))  # type: ignore[arg-type]
    return Catalogue.of(
        made,
        categories=[Category("Mains", "Mains"), Category("Sides", "Sides")],
        menus=[Menu("menu", "Menu")],
    )


def without(catalogue: Catalogue, *external_ids: str) -> Catalogue:
    """Return the menu without some of its items."""
    return Catalogue.of(
        [item for key, item in catalogue.items.items() if key not in external_ids],
        categories=catalogue.categories.values(),
        menus=catalogue.menus.values(),
    )


def content(catalogue: Catalogue) -> tuple[Mapping[str, object], ...]:
    """Return what a catalogue says, without bad rows and fingerprints."""
    return (
        dict(catalogue.items),
        dict(catalogue.categories),
        dict(catalogue.add_ons),
        dict(catalogue.addon_groups),
        dict(catalogue.menus),
    )
