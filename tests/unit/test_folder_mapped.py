"""Menus by a mapping: grouped rows, workbooks, files without ids or header, formats."""

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folder_till import menu_till, open_till
from tillbridge.adapter import Catalogue, ExportUnreadable, Item
from tillbridge.adapter.conformance.cases import Case, case_folders
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.pos.folder import json_paths
from tillbridge.pos.folder.json_paths import Document, Node, parse_path
from tillbridge.pos.folder.json_pieces import parse
from tillbridge.pos.folder.mapping import known_formats

CASES = Path(__file__).resolve().parents[1] / "data" / "folder" / "cases"
HEADER = "external_id,name,price\n"
SIZED = "Code,Dish,Size,Price\n"
BY_CODE: Mapping[str, object] = {
    "group_by": "Code",
    "columns": {"name": "Dish", "price": "Price", "variant_name": "Size"},
}
WITHOUT_IDS: Mapping[str, object] = {"ids": "derived"}


def read(folder: Path, content: str | bytes, **options: object) -> Catalogue:
    return menu_till(folder, content, **options).read_catalogue()


def prices(catalogue: Catalogue) -> dict[str, int]:
    return {item.external_id: item.price for item in catalogue.items.values()}


def unreadable(folder: Path, content: str, **options: object) -> ExportUnreadable:
    with pytest.raises(ExportUnreadable) as caught:
        read(folder, content, **options)
    assert caught.value.fix
    return caught.value


# -- sizes by a handle


def test_a_size_with_a_bad_price_names_its_row_and_keeps_its_item(tmp_path: Path) -> None:
    content = SIZED + "c,Cake,S,9\nc,Cake,L,lots\nt,Tea,,2\n"
    catalogue = read(tmp_path, content, **BY_CODE)
    assert set(catalogue.items) == {"t"}
    (bad,) = catalogue.bad_rows
    assert (bad.place, bad.external_id, bad.field) == ("menu.csv, row 3", "c", "Price")


def test_rows_of_one_handle_need_not_follow_each_other(tmp_path: Path) -> None:
    catalogue = read(tmp_path, SIZED + "c,Cake,S,9\nt,Tea,,2\nc,,L,12\n", **BY_CODE)
    assert [each.variant_name for each in catalogue.items["c"].variants] == ["S", "L"]


def test_a_repeated_size_is_told_each_time_also_when_its_item_is_known(tmp_path: Path) -> None:
    content = SIZED + "c,Cake,S,9\nc,Cake,s,10\n"
    before = read(tmp_path, content, **BY_CODE)
    assert [row.place for row in before.bad_rows] == ["menu.csv, row 3"]
    known = frozenset(before.fingerprints.values())
    told = menu_till(tmp_path, content, **BY_CODE).read_changes(known)
    assert not told.fresh.items
    assert not told.unseen
    assert told.fresh.bad_rows == before.bad_rows
    assert before.items["c"].price == 900
    assert "row 2" in before.bad_rows[0].text


def test_an_item_is_sold_out_once_all_its_sizes_are(tmp_path: Path) -> None:
    content = (
        "Code,Dish,Size,Price,Left\nc,Cake,S,9,no\nc,Cake,L,12,no\nd,Pie,S,9,no\nd,Pie,L,9,yes\n"
    )
    columns = {**BY_CODE["columns"], "available": "Left"}  # type: ignore[dict-item]  # (a dict)
    items = read(tmp_path, content, group_by="Code", columns=columns).items
    assert (items["c"].available, items["d"].available) == (False, True)


def test_rows_that_a_quotation_swallows_keep_their_groups(tmp_path: Path) -> None:
    content = SIZED + 'a,"12 inch,S,9\nb,Pie,S,4\nb,Pie,L,5\nc,"Tea,,2\nd,Cake,,3\n'
    catalogue = read(tmp_path, content, **BY_CODE)
    assert set(catalogue.items) == {"d"}
    assert {"a", "b"} <= {row.external_id for row in catalogue.bad_rows}


sizes = st.lists(
    st.tuples(
        st.sampled_from(["Soup", "Tea", "Crème brûlée", "1/2 Hähnchen"]),
        st.sampled_from(["S", "L", "XL"]),
        st.integers(1, 5_000),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda each: each[:2],
)


def table(rows: Sequence[tuple[str, str, int]]) -> str:
    lines = [f"Menu,{name},{size},{price / 100:.2f}\n" for name, size, price in rows]
    return "category,name,variant_name,price\n" + "".join(lines)


def sold(catalogue: Catalogue) -> dict[str, dict[str, int]]:
    return {
        item.external_id: {each.external_id: each.price for each in item.variants}
        for item in catalogue.items.values()
    }


@given(rows=sizes, seed=st.randoms(use_true_random=False), change=st.integers(1, 5_000))
def test_ids_of_ours_stay_when_rows_move_and_prices_change(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, int]],
    seed: object,
    change: int,
) -> None:
    folder = tmp_path_factory.mktemp("menu")
    first = sold(read(folder, table(rows), **WITHOUT_IDS))
    moved = list(rows)
    seed.shuffle(moved)  # type: ignore[attr-defined]  # a random.Random
    assert sold(read(folder, table(moved), **WITHOUT_IDS)) == first
    dearer = [(name, size, price + change) for name, size, price in rows]
    again = sold(read(folder, table(dearer), **WITHOUT_IDS))
    assert {key: set(each) for key, each in again.items()} == {
        key: set(each) for key, each in first.items()
    }


@given(rows=sizes, others=sizes)
def test_the_changes_of_a_grouped_menu_are_what_differs(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, int]],
    others: list[tuple[str, str, int]],
) -> None:
    folder = tmp_path_factory.mktemp("menu")
    options = {"group_by": "name"}
    before = read(folder, table(rows), **options)
    till = menu_till(folder, table(others), **options)
    told = till.read_changes(frozenset(before.fingerprints.values()))
    after = menu_till(folder, table(others), **options).read_catalogue()
    seen = {k: v for k, v in before.items.items() if before.fingerprints[k] not in told.unseen}
    assert {**seen, **told.fresh.items} == dict(after.items)
    assert told.items_read == len(after.items)


# -- ids


def test_a_menu_that_has_lost_its_ids_is_not_read(tmp_path: Path) -> None:
    failure = unreadable(tmp_path, "name,price\nSoup,4\n")
    assert "external_id" in failure.text
    assert 'ids = "derived"' in failure.fix


def test_ids_are_not_derived_where_the_file_has_them(tmp_path: Path) -> None:
    assert "another id" in unreadable(tmp_path, HEADER + "1,Soup,4\n", **WITHOUT_IDS).text
    with pytest.raises(ValueError, match="leave out one"):
        open_till(tmp_path, menu="menu.csv", ids="derived", columns={"external_id": "SKU"})


def test_a_dish_twice_is_told_each_time(tmp_path: Path) -> None:
    content = "category,name,price\nHot,Tea,2\nCold,Tea,3\nHot,tea,4\n"
    before = read(tmp_path, content, **WITHOUT_IDS)
    assert prices(before) == {"hot/tea": 200, "cold/tea": 300}
    (bad,) = before.bad_rows
    assert (bad.place, bad.external_id) == ("menu.csv, row 4", "")
    known = frozenset(before.fingerprints.values())
    told = menu_till(tmp_path, content, **WITHOUT_IDS).read_changes(known)
    assert (told.fresh.items, told.unseen, told.fresh.bad_rows) == ({}, frozenset(), (bad,))


def test_a_broken_row_of_a_menu_without_ids_stops_the_reading(tmp_path: Path) -> None:
    """Which dishes it swallows cannot be told, so that none may be removed."""
    content = 'category,name,price\nHot,"Soup,4\nHot,Tea,2\nHot,"Pie,3\nHot,Cake,3\n'
    assert "row 2" in unreadable(tmp_path, content, **WITHOUT_IDS).place


# -- workbooks


def book(folder: Path, **sheets: Sequence[Sequence[str | int]]) -> None:
    write_workbook(folder / "menu.xlsx", sheets)


def test_the_first_sheet_with_the_columns_is_the_menu(tmp_path: Path) -> None:
    book(
        tmp_path,
        Notes=[["Price list 2026"], ["valid from", "May"]],
        Menu=[
            ["Price list"],
            [],
            ["external_id", "name", "price"],
            ["1", "Soup", "4.50"],
            [2, "Tea", 2],
        ],
    )
    catalogue = open_till(tmp_path, menu="menu.xlsx").read_catalogue()
    assert prices(catalogue) == {"1": 450, "2": 200}
    assert catalogue.ends_with_newline is None


def test_a_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    sheet = [["external_id", "name", "price"], ["1", "Soup", "4.50"]]
    book(tmp_path, Old=sheet, Summer=[sheet[0], ["1", "Soup", "5"]])
    assert prices(open_till(tmp_path, menu="menu.xlsx", sheet="summer").read_catalogue()) == {
        "1": 500
    }
    with pytest.raises(ExportUnreadable, match='no sheet "Winter"') as caught:
        open_till(tmp_path, menu="menu.xlsx", sheet="Winter").read_catalogue()
    assert "Old, Summer" in caught.value.fix


def test_a_second_sheet_with_a_menu_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    header = ["external_id", "name", "price"]
    food: list[list[str | int]] = [[*header], ["1", "Soup", 4]]
    drinks: list[list[str | int]] = [[*header], ["2", "Tea", 2]]
    book(tmp_path, Food=food, Drinks=drinks, Old=[header])
    read = open_till(tmp_path, menu="menu.xlsx").read_catalogue()
    assert set(read.items) == {"1"}
    assert [each.place for each in read.facts.warnings] == ["menu.xlsx, sheet Drinks"]
    chosen = open_till(tmp_path, menu="menu.xlsx", sheet="Drinks").read_catalogue()
    assert (set(chosen.items), chosen.facts.warnings) == ({"2"}, ())


def test_a_row_of_a_workbook_is_named_as_the_spreadsheet_does(tmp_path: Path) -> None:
    book(tmp_path, Menu=[["SKU", "name", "price"], [], ["1", "Soup", "free"], ["2", "Tea"]])
    till = open_till(tmp_path, menu="menu.xlsx", columns={"external_id": "SKU"})
    rows = till.read_catalogue().bad_rows
    assert [(row.place, row.external_id) for row in rows] == [
        ("menu.xlsx, sheet Menu, row 3", "1"),
        ("menu.xlsx, sheet Menu, row 4", "2"),
    ]


def test_a_workbook_without_the_columns_names_those_it_has(tmp_path: Path) -> None:
    book(tmp_path, Menu=[["SKU", "Dish"], ["1", "Soup"]])
    with pytest.raises(ExportUnreadable, match="SKU, Dish"):
        open_till(tmp_path, menu="menu.xlsx").read_catalogue()


def test_shopify_in_a_workbook_says_its_format(tmp_path: Path) -> None:
    book(tmp_path, A=[["Handle", "Title", "Option1 Value", "Variant Price"], ["a", "A", "S", 1]])
    with pytest.raises(ExportUnreadable) as caught:
        open_till(tmp_path, menu="menu.xlsx").read_catalogue()
    assert 'format = "shopify"' in caught.value.fix
    assert prices(open_till(tmp_path, menu="menu.xlsx", format="shopify").read_catalogue()) == {
        "a": 100
    }


# -- what is left out, and prices


def test_what_costs_nothing_is_sold_left_out_or_refused(tmp_path: Path) -> None:
    content = "external_id,name,price,category\n1,Soup,4,Hot\n2,No onion,0,Hot\n3,Flour,9,Raw\n"
    assert set(read(tmp_path, content).items) == {"1", "2", "3"}
    left = read(tmp_path, content, zero_prices="leave_out", leave_out_categories=["raw"])
    assert set(left.items) == {"1"}
    assert [(each.name, each.reason) for each in left.facts.left_out] == [
        ("No onion", "zero_price"),
        ("Flour", "category"),
    ]
    refused = read(tmp_path, content, zero_prices="refuse")
    assert [(row.place, row.external_id) for row in refused.bad_rows] == [("menu.csv, row 3", "2")]


def test_another_choice_of_what_is_left_out_reads_all_anew(tmp_path: Path) -> None:
    content = HEADER + "1,Soup,4\n2,No onion,0\n"
    before = read(tmp_path, content)
    known = frozenset(before.fingerprints.values())
    told = menu_till(tmp_path, content, zero_prices="leave_out").read_changes(known)
    assert (set(told.fresh.items), told.unseen) == ({"1"}, known)


@pytest.mark.parametrize("options", [{}, {"group_by": "external_id"}])
def test_the_files_other_prices_tell_what_a_point_means(
    tmp_path: Path, options: Mapping[str, object]
) -> None:
    doubtful = HEADER + "1,Bandeja,25.000\n2,Agua,3.000\n"
    assert len(read(tmp_path, doubtful, currency="COP", **options).bad_rows) == 2
    told = read(tmp_path, doubtful + '3,Café,"1.234.567,50"\n', currency="COP", **options)
    assert prices(told) == {"1": 2_500_000, "2": 300_000, "3": 123_456_750}
    chosen = read(tmp_path, doubtful, currency="COP", decimal=",", **options)
    assert prices(chosen) == {"1": 2_500_000, "2": 300_000}


def test_prices_with_the_sign_of_their_currency_are_read(tmp_path: Path) -> None:
    content = HEADER.replace(",", ";") + "1;Açaí;R$ 18,00\n2;Suco;R$9,50\n"
    assert prices(read(tmp_path, content.encode("cp1252"), currency="BRL")) == {"1": 1800, "2": 950}


def test_a_description_loses_its_markup(tmp_path: Path) -> None:
    content = "external_id,name,price,description\n1,Soup,4,<p>Hot &amp; <b>thick</b></p>\n"
    assert read(tmp_path, content).items["1"].description == "Hot & thick"


def test_a_message_calls_columns_as_the_file_does(tmp_path: Path) -> None:
    content = "Код,Название,Цена (₽)\n1,Борщ,\n"
    columns = {"external_id": "Код", "name": "Название", "price": "Цена (₽)"}
    (bad,) = read(tmp_path, content, columns=columns).bad_rows
    assert (bad.field, bad.text) == ("Цена (₽)", "Цена (₽) is empty.")


def test_columns_by_position_read_the_first_row_too(tmp_path: Path) -> None:
    columns = {"external_id": 3, "name": 1, "price": 2}
    catalogue = read(tmp_path, "Soup\t4,50\t17\nTea\t2,00\t18\n", menu="menu.tsv", columns=columns)
    assert catalogue.items == {
        "17": Item("17", "Soup", 450, menus=("menu",)),
        "18": Item("18", "Tea", 200, menus=("menu",)),
    }


STOCK = (
    "Handle,Title,Option1 Value,Variant Price,Variant Inventory Tracker,Variant Inventory Qty\n"
    "a,Apple pie,Default Title,4,shopify,0\nb,Bun,Default Title,1,shopify,3\n"
    "c,Cake,S,9,shopify,-1\nc,,L,12,,0\n"
)


@pytest.mark.parametrize(
    ("options", "gone"), [({}, set()), ({"sold_out_at_stock": "0"}, {"a", "c/s"})]
)
def test_stock_counts_only_where_a_person_says_so(
    tmp_path: Path, options: Mapping[str, object], gone: set[str]
) -> None:
    items = read(tmp_path, STOCK, format="shopify", **options).items
    found = {each.external_id for each in items.values() if not each.available}
    found |= {each.external_id for each in items["c"].variants if not each.available}
    assert found == gone


def test_a_plain_menu_has_stock_too(tmp_path: Path) -> None:
    content = "external_id,name,price,Left\n1,Soup,4,0\n2,Tea,2,\n3,Pie,3,many\n"
    options = {"sold_out_at_stock": "0", "columns": {"stock": "Left"}}
    items = read(tmp_path, content, **options).items
    assert [each.external_id for each in items.values() if not each.available] == ["1"]


def test_a_reading_says_what_it_took_the_file_for_and_what_it_left_out(tmp_path: Path) -> None:
    folder = CASES / "shopify_fr"
    content = (folder / "products_export.csv").read_bytes()
    facts = read(tmp_path, content, format="shopify").facts
    assert facts.read_as == "Shopify"
    assert [(each.name, each.reason, each.detail) for each in facts.left_out] == [
        ("Galette des rois (4 parts)", "not_offered", "Status: draft"),
        ("Carte cadeau (25 €)", "not_offered", "Gift Card: true"),
    ]


def test_options_of_a_document_are_not_told_as_left_out(tmp_path: Path) -> None:
    content = (CASES / "uber_eats_en" / "menu.json").read_bytes()
    facts = read(tmp_path, content, menu="menu.json", format="uber_eats").facts
    assert [each.name for each in facts.left_out] == ["Not in any category"]


# -- formats


def test_every_format_is_known_by_its_raw_file_alone() -> None:
    for name, mapping in known_formats().items():
        assert mapping.title, name
        assert mapping.export, name
        assert mapping.detect or mapping.lines, name


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"format": "shopyfi"}, "shopify"),
        ({"format": "uber_eats"}, "for a JSON document"),
        ({"format": "nowhere.toml"}, "cannot be read"),
        ({"sheet": "Menu"}, "sheet: needs a menu that is a workbook"),
        ({"columns": {"external_id": 1, "name": "Dish"}}, "all columns"),
    ],
)
def test_options_that_cannot_be_are_refused_in_words(
    tmp_path: Path, options: Mapping[str, object], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        open_till(tmp_path, menu="menu.csv", **options)


def _table_cases() -> list[Path]:
    return [
        folder
        for folder in case_folders(CASES)
        if str(Case.of(folder).options["menu"]).endswith((".csv", ".txt"))
        and folder.name != "mapping_with_a_mistake"
    ]


@pytest.mark.parametrize("folder", _table_cases(), ids=lambda folder: folder.name)
def test_a_file_cut_anywhere_is_unreadable_or_says_that_it_has_no_last_line_end(
    tmp_path: Path, folder: Path
) -> None:
    case = Case.of(folder)
    for path in folder.glob("*.toml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = (folder / str(case.options["menu"])).read_bytes()
    for end in range(1, len(whole), 3):
        try:
            till = menu_till(tmp_path, whole[:end], currency=case.currency, **case.options)
            catalogue = till.read_catalogue()
        except ExportUnreadable:
            continue
        assert catalogue.ends_with_newline is whole[:end].endswith((b"\n", b"\r"))


# -- paths


@given(st.text(alphabet="ab.*^/[]=| ", max_size=20), st.dictionaries(st.text(), st.integers()))
def test_a_path_is_refused_as_a_value_or_finds_texts(text: str, value: dict[str, int]) -> None:
    try:
        path = parse_path(text)
    except ValueError:
        return
    root = Node({"a": [value, {"b": "x"}], "b": value})
    try:
        found = Document(root).texts(path, root)
    except ValueError:
        return
    assert all(found)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("name", ("Latte",)),
        (
            "t.*",
            ("Milchkaffee", "Latte"),
        ),
        ("none | name", ("Latte",)),
        ("=Extras | name", ("Extras",)),
        ("sizes[].price", ("3", "4.50")),
        ("/groups[id = group].name", ("Hot",)),
        ("/groups[members[] = id].name", ("Hot", "All")),
        ("sizes[id = =l].price", ("4.50",)),
        ("sizes[].^.name", ("Latte", "Latte")),
        ("sizes.price", ()),
        ("on", ("true",)),
    ],
)
def test_a_path_finds(path: str, found: tuple[str, ...]) -> None:
    text = """{"groups": [{"id": 1, "name": "Hot", "members": ["x"]},
        {"id": 2, "name": "All", "members": ["y", "x"]}],
        "items": [{"id": "x", "name": "Latte", "group": 1, "on": true, "no": null,
        "t": {"de": "Milchkaffee", "en": "Latte"},
        "sizes": [{"id": "s", "price": 3}, {"id": "l", "price": 4.50}]}]}"""
    document = Document(Node(parse(text)))
    (item,) = document.nodes(parse_path("items[]"), document.root)
    assert document.texts(parse_path(path), item) == found


def test_a_document_that_is_a_list_is_a_menu(tmp_path: Path) -> None:
    columns = 'external_id = "sku"\nname = "names.[]"\nprice = "cost"\ncategory = "^.title"'
    (tmp_path / "my.toml").write_text(f'[columns]\n{columns}\n[json]\nitems = "[]"\n', "utf-8")
    content = '[{"sku": 7, "names": ["Soup"], "cost": 4.5}, [], null, {"sku": 8, "cost": 2}]'
    read = menu_till(tmp_path, content, menu="menu.json", format="my.toml").read_catalogue()
    assert {key: (each.name, each.price) for key, each in read.items.items()} == {
        "7": ("Soup", 450)
    }
    assert [(row.place, row.external_id) for row in read.bad_rows] == [
        ("menu.json, item 2", ""),
        ("menu.json, item 3", "8"),
    ]


def test_objects_that_are_a_line_each_are_a_list(tmp_path: Path) -> None:
    columns = 'external_id = "_id"\nname = "name"\nprice = "price"'
    (tmp_path / "my.toml").write_text(f'[columns]\n{columns}\n[json]\nitems = "[]"\n', "utf-8")
    lines = ['{"_id": 7, "name": "Soup\u2028of\\nthe day", "price": 4.5}', '{"_id": 8, "price": 2}']

    def read(text: str) -> Catalogue:
        return menu_till(tmp_path, text, menu="menu.json", format="my.toml").read_catalogue()

    whole = read("\r\n".join(lines) + "\r\n\r\n")
    assert [(each.name, each.price) for each in whole.items.values()] == [("Soup of the day", 450)]
    assert [row.place for row in whole.bad_rows] == ["menu.json, item 2"]
    with pytest.raises(ExportUnreadable, match="not complete JSON"):
        read("\n".join(lines)[:-1])


def test_a_path_that_leads_to_an_object_says_so() -> None:
    with pytest.raises(ValueError, match="an object or a list"):
        json_paths.text_of({})


# -- documents that are not as their format has them

oddities = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**30),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{"id": []}]),
    st.just({"translations": {"en": {"a": 1}}}),
    st.just("\ud83d"),
)


def _places(value: object) -> list[tuple[object, object]]:
    """Every member of a document: the object or list, and the key."""
    inside: list[tuple[object, object]] = []
    if isinstance(value, dict):
        inside = [(value, key) for key in value]
    elif isinstance(value, list):
        inside = [(value, key) for key in range(len(value))]
    children = [value[key] for _holder, key in inside]  # type: ignore[index]  # a dict or a list
    return inside + [place for child in children for place in _places(child)]


@given(name=st.sampled_from(["iiko_ru", "iiko_menu_ru", "uber_eats_en"]), data=st.data())
def test_no_odd_value_in_a_document_is_more_than_a_bad_row(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    case = Case.of(CASES / name)
    document = json.loads((case.folder / str(case.options["menu"])).read_text("utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(_places(document)))
        holder[key] = copy.deepcopy(data.draw(oddities))  # type: ignore[index]  # a dict or a list
        if not _places(document):
            break
    text = json.dumps(document)
    folder = tmp_path_factory.mktemp("menu")
    try:
        till = menu_till(folder, text, currency=case.currency, **case.options)
        catalogue = till.read_catalogue()
    except ExportUnreadable:
        return
    assert catalogue.fingerprints.keys() == catalogue.items.keys()
    named = {group for item in catalogue.items.values() for group in item.addon_groups}
    assert named <= catalogue.addon_groups.keys()
    for group in catalogue.addon_groups.values():
        assert set(group.add_ons) <= catalogue.add_ons.keys()


@given(data=st.data())
def test_no_odd_cell_in_a_table_is_more_than_a_bad_row(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = data.draw(st.sampled_from(_table_cases()))
    case = Case.of(folder)
    content = bytearray((folder / str(case.options["menu"])).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 1] = data.draw(st.binary(max_size=3))
    home = tmp_path_factory.mktemp("menu")
    for path in folder.glob("*.toml"):
        (home / path.name).write_bytes(path.read_bytes())
    try:
        till = menu_till(home, bytes(content), currency=case.currency, **case.options)
        catalogue = till.read_catalogue()
    except ExportUnreadable:
        return
    assert catalogue.fingerprints.keys() == catalogue.items.keys()
