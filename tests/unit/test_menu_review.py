"""A change for a person: nothing is left out, the worst stands first, names before ids."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.full_menus import totals_of
from tillbridge.menu.compare import Comparison
from tillbridge.menu.describe import PushView, push_columns
from tillbridge.menu.diff import diff
from tillbridge.menu.plan import Assessment, Plan, Step
from tillbridge.menu.push import details_of
from tillbridge.menu.review import (
    WORST,
    Differing,
    is_wild,
    review_page,
    row_line,
    rows_of,
    worst_of,
)
from tillbridge.menu.sync import differing_of
from tillbridge.model.catalogue import AddOn, BadRow, Catalogue, Category, Item, Variant

PRICES = st.integers(0, 20_000)
NAMES = st.sampled_from(["Lasagne", "Cola", "Éclair", "Tiramisu"])


@st.composite
def items(draw: st.DrawFn, key: str) -> Item:
    sizes = draw(st.lists(st.tuples(st.sampled_from("sml"), PRICES), max_size=2, unique_by=_first))
    return Item(
        key,
        draw(NAMES),
        draw(PRICES),
        description=draw(st.sampled_from(["", "Fresh"])),
        available=draw(st.booleans()),
        categories=tuple(draw(st.lists(st.sampled_from(["c1", "c2"]), max_size=1))),
        variants=tuple(Variant(f"{key}-{size}", size, price) for size, price in sizes),
    )


def _first(pair: tuple[str, int]) -> str:
    return pair[0]


@st.composite
def catalogues(draw: st.DrawFn) -> Catalogue:
    keys = draw(st.sets(st.sampled_from([f"p{number}" for number in range(12)])))
    heads = [Category("c1", "Pasta"), Category("c2", "Drinks")]
    return Catalogue.of([draw(items(key)) for key in sorted(keys)], categories=heads)


def differing(before: Catalogue, after: Catalogue, *suspects: str) -> Differing:
    return Differing(diff(before, after), before, after, suspects=suspects)


@given(catalogues(), catalogues(), st.integers(1, 7))
def test_the_pages_of_a_change_have_every_item_once(
    before: Catalogue, after: Catalogue, per_page: int
) -> None:
    found = differing(before, after)
    changes = found.changes
    pages = review_page(found, 1, per_page=per_page)["pages"]
    seen: Counter[str] = Counter()
    for number in range(1, pages + 1):
        page = review_page(found, number, per_page=per_page)
        rows = [each for group in page["groups"] for each in group["rows"]]
        assert len(rows) <= per_page
        seen.update(each["external_id"] for each in rows)
    assert seen == Counter([*changes.added, *changes.content, *changes.removed])


@given(catalogues(), catalogues())
def test_wild_prices_come_before_what_goes_and_the_wildest_first(
    before: Catalogue, after: Catalogue
) -> None:
    worst = worst_of(rows_of(differing(before, after)))
    kinds = [is_wild(each) for each in worst]
    assert kinds == sorted(kinds, reverse=True)
    jumps = [each["percent"] for each in worst if is_wild(each)]
    assert jumps == sorted(jumps, key=lambda each: each is not None), "free ones first"
    assert all(each["kind"] == "removed" for each in worst if not is_wild(each))


@given(catalogues(), catalogues())
def test_what_the_storefront_has_got_meanwhile_is_no_longer_open(
    before: Catalogue, after: Catalogue
) -> None:
    found = differing(before, after)
    assert not found.still_open(after.items).changes.needs_push
    still = found.still_open(before.items).changes
    assert still.added == found.changes.added
    assert still.removed == found.changes.removed


def menu(count: int, **prices: int) -> Catalogue:
    made = [Item(f"p{n}", f"Dish {n:04}", prices.get(f"p{n}", 1000)) for n in range(count)]
    return Catalogue.of(made)


def test_one_slipped_price_stands_above_thousands_that_are_removed() -> None:
    before, after = menu(3000), menu(40, p7=100_000)
    page = review_page(differing(before, after, *(f"p{n}" for n in range(40, 3000))), 1)
    first, second = page["worst"][:2]
    assert (first["name"], first["was"], first["price"]) == ("Dish 0007", 1000, 100_000)
    assert first["percent"] == 9900
    assert second["kind"] == "removed"
    assert len(page["worst"]) == 1 + WORST
    assert page["worst_more"] == 2960 - WORST
    assert page["counts"] == {"removed": 2960, "added": 0, "changed": 1}
    assert page["pages"] == 20


def test_a_half_price_and_a_price_that_moves_by_less_than_a_percent_are_told() -> None:
    before, after = menu(2), menu(2, p0=499, p1=1001)
    rows = {each["external_id"]: each for each in rows_of(differing(before, after))}
    assert rows["p0"]["percent"] == -51
    assert is_wild(rows["p0"])
    assert rows["p1"]["percent"] == 1


def test_sizes_and_options_are_told_with_both_prices() -> None:
    large = Variant("l", "Large", 1200)
    was = Item("p1", "Latte", 300, variants=(Variant("s", "Small", 300), large))
    now = replace(was, variants=(replace(large, price=1500), Variant("x", "Huge", 1900)))
    before = Catalogue.of([was], add_ons=[AddOn("a", "Oat milk", 50)])
    after = Catalogue.of([now], add_ons=[AddOn("a", "Oat milk", 5000)])
    item, option = rows_of(differing(before, after))
    assert item["fields"] == [
        {"field": "size", "name": "Small", "was": 300, "price": None},
        {"field": "size", "name": "Large", "was": 1200, "price": 1500},
        {"field": "size", "name": "Huge", "was": None, "price": 1900},
    ]
    assert (option["part"], option["name"], option["percent"]) == ("option", "Oat milk", 9900)
    assert row_line(item, "USD") == (
        "Latte: Small removed, Large $12.00 → $15.00, Huge added at $19.00"
    )


def test_a_line_has_the_name_and_the_prices_and_no_id() -> None:
    before, after = menu(2), menu(1, p0=1300)
    lines = {row_line(each, "USD") for each in rows_of(differing(before, after))}
    assert lines == {"Dish 0000: $10.00 → $13.00", "Dish 0001 removed"}


def pushed(step: Step, **names: str) -> str:
    view: PushView = {
        "id": 1, "kind": step.kind, "state": "success", "started_at": "", "took_ms": 40,
        "summary": {**step.summary, "details": details_of(step, names)}, "message": "",
        "job_id": None,
    }  # fmt: skip
    return push_columns(view, "USD")[0]


def test_a_push_is_told_by_names_and_prices() -> None:
    was, now = Item("A03", "Lasagne", 1250), Item("A03", "Lasagne", 1300)
    patch = Step("patch", (now,), before={"A03": was}, fields=frozenset({"price"}))
    assert pushed(patch) == "Lasagne: price $12.50 → $13.00"
    batch = Step("batch", (now, Item("A09", "Cola", 250)), ("A04",), before={"A03": was})
    assert pushed(batch, A04="Ravioli") == (
        "Lasagne: price $12.50 → $13.00; Cola added at $2.50; Ravioli removed"
    )
    off = Step("availability", (replace(now, available=False), Item("A09", "Cola", 250)))
    assert pushed(off) == "Sold out: Lasagne; Back on sale: Cola"


def test_a_large_push_is_counted_and_begins_with_its_first_dishes() -> None:
    gone = tuple(f"p{number}" for number in range(2960))
    text = pushed(Step("batch", (), gone), p0="Lasagne")
    assert text == "2,960 removed: Lasagne removed; p1 removed; p2 removed; and more"
    assert pushed(Step("full", tuple(menu(40).items.values()))) == "Whole menu, 40 items"


def test_a_push_of_an_older_version_is_told_by_what_it_remembered() -> None:
    view: PushView = {
        "id": 1, "kind": "patch", "state": "failed", "started_at": "", "took_ms": None,
        "summary": {"item": "A03", "name": "Lasagne", "fields": ["price"]}, "message": "",
        "job_id": None,
    }  # fmt: skip
    assert push_columns(view, "USD") == ("Lasagne: price", "refused", "")


def test_a_row_that_cannot_be_read_is_shown_where_nothing_else_differs() -> None:
    bad = BadRow("menu.csv, row 5", "The price is no number.", "Correct it in the till.", "p5")
    same = menu(3)
    read = replace(same, bad_rows=(bad,))
    for after, shown in ((read, (bad,)), (same, None)):
        changes = diff(same, after)
        comparison = Comparison(changes, same, after, totals_of(same, changes), menus=1)
        found = differing_of(Assessment(comparison, Plan("nothing")), 0)
        assert (found and found.after.bad_rows) == shown
