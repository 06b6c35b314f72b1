import contextlib
import csv
import io
import os
import string
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folder_till import menu_till, open_till
from tillbridge.adapter import Category, ExportUnreadable, Item, Menu, Variant, export_files

HEADER = "external_id,name,price\n"


def item(external_id: str, name: str, price: int, **fields: object) -> Item:
    plain: Any = Item(external_id, name, price, menus=("menu",))
    return cast("Item", replace(plain, **fields))


def read(folder: Path, content: str | bytes, **options: object) -> dict[str, Item]:
    catalogue = menu_till(folder, content, **options).read_catalogue()
    assert catalogue.bad_rows == ()
    return dict(catalogue.items)


def bad(folder: Path, row: str, header: str = HEADER) -> tuple[str, str, str, str]:
    catalogue = menu_till(folder, f"{header}ok,Fine,1\n{row}\nok2,Fine,1\n").read_catalogue()
    assert set(catalogue.items) == {"ok", "ok2"}, "one bad row takes no good one with it"
    (only,) = catalogue.bad_rows
    assert only.fix
    return only.place, only.external_id, only.field, only.text


def unreadable(folder: Path, content: str | bytes, **options: object) -> ExportUnreadable:
    with pytest.raises(ExportUnreadable) as caught:
        menu_till(folder, content, **options).read_catalogue()
    assert caught.value.fix
    return caught.value


# -- what a row says


def test_every_column_is_read(tmp_path: Path) -> None:
    catalogue = menu_till(
        tmp_path,
        "external_id,name,price,description,category,available,image_url,addon_groups\n"
        '1,Soup,"4,50","Hot,\nand thick",Starters|Vegan,no,https://x.example/1.jpg,g1|g2\n',
        menu_name="Evening",
    ).read_catalogue()
    assert catalogue.items == {
        "1": item(
            "1",
            "Soup",
            450,
            description="Hot,\nand thick",
            image_url="https://x.example/1.jpg",
            available=False,
            categories=("Starters", "Vegan"),
            addon_groups=("g1", "g2"),
        )
    }
    assert dict(catalogue.categories) == {
        "Starters": Category("Starters", "Starters"),
        "Vegan": Category("Vegan", "Vegan"),
    }
    assert dict(catalogue.menus) == {"menu": Menu("menu", "Evening")}
    assert list(catalogue.fingerprints) == ["1"]


def test_prices_are_in_the_minor_units_of_the_stores_currency(tmp_path: Path) -> None:
    assert read(tmp_path, HEADER + "1,Ramen,980\n", currency="JPY")["1"].price == 980
    assert read(tmp_path, HEADER + "1,Kebab,1.250\n", currency="KWD")["1"].price == 1250


@pytest.mark.parametrize("word", ["", "true", "YES", "1", "x", "ja", "Sí", "oui", " y "])
def test_words_for_yes_put_an_item_on_sale(tmp_path: Path, word: str) -> None:
    content = f"external_id,name,price,available\n1,Soup,1,{word}\n"
    assert read(tmp_path, content)["1"].available


@pytest.mark.parametrize("word", ["false", "No", "0", "nein", "n"])
def test_words_for_no_take_it_off_sale(tmp_path: Path, word: str) -> None:
    content = f"external_id,name,price,available\n1,Soup,1,{word}\n"
    assert not read(tmp_path, content)["1"].available


def test_variants_come_in_their_order_and_lend_their_lowest_price(tmp_path: Path) -> None:
    content = (
        "external_id,name,price,variant_name,parent_id\n"
        "p-l,Pizza,12.00,Large,p\n"
        "p,Pizza,,,\n"
        "s,Salad,5,,\n"
        "p-s,Small pizza,9.00,,p\n"
    )
    items = read(tmp_path, content)
    assert items["p"] == item(
        "p",
        "Pizza",
        900,
        variants=(Variant("p-l", "Large", 1200), Variant("p-s", "Small pizza", 900)),
    )
    assert items["s"] == item("s", "Salad", 500)


# -- bad rows


@pytest.mark.parametrize(
    ("row", "external_id", "field"),
    [
        ("7,Soup", "7", ""),
        ("7,Soup,1,surplus", "7", ""),
        (",Soup,1", "", "external_id"),
        ("7,,1", "7", "name"),
        ("7,Soup,", "7", "price"),
        ("7,Soup,free", "7", "price"),
        ("7,Soup,-1", "7", "price"),
        ("7,Soup,1.005", "7", "price"),
        ("7,Soup,1e3", "7", "price"),
        ("7,Soup,99999999999999", "7", "price"),
        ("7,So\x00up,1", "7", "name"),
        ("7,So\x1bup,1", "7", "name"),
        ("7," + "x" * 600 + ",1", "7", "name"),
    ],
)
def test_a_bad_row_is_told_and_stands_for_its_item(
    tmp_path: Path, row: str, external_id: str, field: str
) -> None:
    place, item_id, name, _text = bad(tmp_path, row)
    assert (place, item_id, name) == ("menu.csv, row 3", external_id, field)


def test_a_word_that_is_neither_yes_nor_no_is_a_bad_row(tmp_path: Path) -> None:
    header = "external_id,name,price,available\n"
    content = f"{header}1,Soup,1,perhaps\n"
    (only,) = menu_till(tmp_path, content).read_catalogue().bad_rows
    assert (only.field, only.value) == ("available", "perhaps")


def test_rows_are_counted_as_a_spreadsheet_does(tmp_path: Path) -> None:
    content = (
        "external_id,name,price,description\n"
        '1,Soup,1,"two\nlines"\n'
        "\n"
        ",,,\n"
        "5,Bad,?,\n"
    )  # fmt: skip
    (only,) = menu_till(tmp_path, content).read_catalogue().bad_rows
    assert only.place == "menu.csv, row 5"


def test_the_first_of_two_rows_with_one_id_counts(tmp_path: Path) -> None:
    catalogue = menu_till(tmp_path, HEADER + "1,Soup,1\n2,Tea,2\n1,Stew,3\n").read_catalogue()
    assert catalogue.items["1"] == item("1", "Soup", 100)
    (only,) = catalogue.bad_rows
    assert only.place == "menu.csv, row 4"
    assert "row 2" in only.text
    assert only.external_id == "", "the item is good: the bad row must not hold it back"


def test_a_row_that_stands_there_twice_is_read_once_and_no_alarm(tmp_path: Path) -> None:
    till = menu_till(tmp_path, HEADER + "1,Soup,1\n2,Tea,2\n1,Soup,1\n")
    catalogue = till.read_catalogue()
    assert list(catalogue.items) == ["1", "2"]
    assert catalogue.bad_rows == ()


def test_a_reading_says_where_its_items_stand_and_what_the_columns_are_called(
    tmp_path: Path,
) -> None:
    content = "Nr,Name,Preis\n1,Soup,1\n\n2,Tea,2\n"
    columns = {"external_id": "Nr", "price": "Preis"}
    source = menu_till(tmp_path, content, columns=columns).read_catalogue().source
    assert dict(source.places) == {"1": "menu.csv, row 2", "2": "menu.csv, row 4"}
    assert source.columns["price"] == "Preis"


def test_an_item_with_a_bad_variant_stays_as_it_was(tmp_path: Path) -> None:
    content = (
        "external_id,name,price,variant_name,parent_id\n"
        "p,Pizza,9,,\np-s,,9,Small,p\np-l,,lots,Large,p\nt,Tea,2,,\n"
    )
    catalogue = menu_till(tmp_path, content).read_catalogue()
    assert set(catalogue.items) == set(catalogue.fingerprints) == {"t"}
    assert [(row.place, row.external_id) for row in catalogue.bad_rows] == [
        ("menu.csv, row 4", "p")
    ]


def test_variants_of_nothing_are_bad_rows(tmp_path: Path) -> None:
    content = "external_id,name,price,parent_id\nt,Tea,2,\nx,Large,9,nowhere\n"
    catalogue = menu_till(tmp_path, content).read_catalogue()
    assert set(catalogue.items) == {"t"}
    assert [(row.field, row.external_id) for row in catalogue.bad_rows] == [
        ("parent_id", "nowhere")
    ]


def test_rows_that_a_stray_quote_swallows_keep_their_items(tmp_path: Path) -> None:
    content = (
        "external_id,name,price,description\n"
        '1,Soup,1,"12 inch\n'
        "2,Tea,2,\n"
        '3,Cake,3,"\n'
        "4,Pie,4,\n"
    )  # fmt: skip
    catalogue = menu_till(tmp_path, content).read_catalogue()
    assert set(catalogue.items) == {"4"}
    assert {row.external_id for row in catalogue.bad_rows} == {"1", "2", "3"}


def test_a_description_of_several_lines_is_no_swallowed_row(tmp_path: Path) -> None:
    content = 'external_id,name,price,description\n1,Soup,1,"Hot, thick\nand 2, or 3, sorts"\n'
    assert read(tmp_path, content)["1"].description == "Hot, thick\nand 2, or 3, sorts"


# -- dialects


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8"),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("cp1252"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_usual_way_to_write_a_table_is_understood(
    tmp_path: Path, encode: Callable[[str], bytes], delimiter: str, newline: str
) -> None:
    rows = [["external_id", "name", "price"], ["1", "Crème brûlée", "4,50"], ["2", "Tea", "2.00"]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=newline).writerows(rows)
    assert read(tmp_path, encode(text.getvalue())) == {
        "1": item("1", "Crème brûlée", 450),
        "2": item("2", "Tea", 200),
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_above_the_header_there_can_be_the_title_of_a_report(
    tmp_path: Path, delimiter: str
) -> None:
    title = "Items, all stores\n\nPrinted: 26.11.2026 10:33\n"
    table = "external_id,name,price\n1,Soup,4.50\n,,\n2,Tea,x\n".replace(",", delimiter)
    catalogue = menu_till(tmp_path, title + table).read_catalogue()
    assert catalogue.items == {"1": item("1", "Soup", 450)}
    assert [row.place for row in catalogue.bad_rows] == ["menu.csv, row 7"]
    grouped = menu_till(tmp_path, title + table, group_by="external_id").read_catalogue()
    assert set(grouped.items) == {"1"}


def test_a_header_that_is_below_a_title_is_named_where_a_column_is_missing(tmp_path: Path) -> None:
    failure = unreadable(tmp_path, "Menu\n\nPLU,Dish,Amount\n1,Soup,4.50\n")
    assert "Its columns are: PLU, Dish, Amount." in failure.text
    assert failure.place == "menu.csv, row 3"


@pytest.mark.parametrize("page", ["<!DOCTYPE html>\n<table>", '<?xml version="1.0"?><menu/>'])
def test_a_web_page_under_another_name_is_told(tmp_path: Path, page: str) -> None:
    for options in ({}, {"group_by": "handle"}):
        failure = unreadable(tmp_path, page, **options)
        assert "is a web page or XML under another name" in failure.text
        assert not failure.passing


def test_a_header_can_have_line_breaks(tmp_path: Path) -> None:
    content = 'external_id,name,"price\n(EUR)"\n1,Soup,4.50\n'
    assert read(tmp_path, content, columns={"price": "price (EUR)"}) == {
        "1": item("1", "Soup", 450)
    }


def test_columns_without_a_name_at_the_end_need_not_be_in_each_row(tmp_path: Path) -> None:
    content = "external_id,name,price,,\n1,Soup,4.50\n2,Tea,2,,\n3,Pie,3,x,\n"
    assert set(read(tmp_path, content)) == {"1", "2", "3"}


def test_the_end_that_programs_of_dos_write_is_no_row(tmp_path: Path) -> None:
    catalogue = menu_till(tmp_path, HEADER + "1,Soup,4.50\r\n\x1a").read_catalogue()
    assert (set(catalogue.items), catalogue.bad_rows) == ({"1"}, ())
    assert catalogue.ends_with_newline


def test_text_is_read_that_is_wrapped_for_excel_or_for_the_web(tmp_path: Path) -> None:
    content = HEADER + '="007",Fish &amp; Chips,="4.50"\n"=""008""",AT&T; 2 &lt; 3,2\n'
    assert read(tmp_path, content) == {
        "007": item("007", "Fish & Chips", 450),
        "008": item("008", "AT&T; 2 < 3", 200),
    }
    grouped = menu_till(tmp_path, content, group_by="external_id").read_catalogue()
    assert {key: each.name for key, each in grouped.items.items()} == {
        "007": "Fish & Chips",
        "008": "AT&T; 2 < 3",
    }


def test_damaged_utf8_garbles_no_name_that_is_right(tmp_path: Path) -> None:
    content = HEADER.encode() + "1,Crème,1\n2,Brûlée,2\n".encode() + b"3,Bad\xff,3\n"
    catalogue = menu_till(tmp_path, content).read_catalogue()
    assert [each.name for each in catalogue.items.values()] == ["Crème", "Brûlée"]
    assert [row.external_id for row in catalogue.bad_rows] == ["3"]


def test_an_encoding_that_is_set_is_the_one_used(tmp_path: Path) -> None:
    content = HEADER.encode() + "1,Žemle,1\n".encode("cp1250")
    assert read(tmp_path, content, encoding="cp1250")["1"].name == "Žemle"
    failure = unreadable(tmp_path, HEADER.encode() + b"1,\xff,1\n", encoding="utf-8")
    assert not failure.passing


def test_a_spreadsheets_hint_and_blank_lines_may_stand_above_the_header(tmp_path: Path) -> None:
    assert set(read(tmp_path, "sep=;\r\n\r\nexternal_id;name;price\r\n1;Soup;1,5\r\n")) == {"1"}


def test_headers_are_matched_whatever_their_case_and_blanks(tmp_path: Path) -> None:
    assert set(read(tmp_path, " External_ID , NAME,Price \n1,Soup,1\n")) == {"1"}


def test_other_headers_are_named_by_the_option_columns(tmp_path: Path) -> None:
    content = "\ufeffItem Name,Product Price\nPlain Papadum,0.8\nRed Sauce,0.5\nPlain Papadum,0.9\n"
    columns = {"external_id": "Item Name", "name": "item name", "price": "Product Price"}
    catalogue = menu_till(tmp_path, content, columns=columns).read_catalogue()
    assert [(each.external_id, each.price) for each in catalogue.items.values()] == [
        ("Plain Papadum", 80),
        ("Red Sauce", 50),
    ]
    assert [row.place for row in catalogue.bad_rows] == ["menu.csv, row 4"]


def test_a_missing_column_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    failure = unreadable(tmp_path, "Item Name,Product Price\nSoup,1\n")
    assert "Item Name, Product Price" in failure.text
    assert "columns" in failure.fix
    assert not failure.passing
    renamed = {"category": "Group"}
    assert "Group" in unreadable(tmp_path, HEADER + "1,Soup,1\n", columns=renamed).text


def test_blank_fields_beyond_the_header_do_no_harm(tmp_path: Path) -> None:
    assert set(read(tmp_path, HEADER + "1,Soup,1,,\n")) == {"1"}


# -- files that are not finished


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\x00" * 64,
        b"external_id,na",
        HEADER.encode() + b"1,Soup,1\n2,Te",
        HEADER.encode() + b'1,Soup,1\n2,"Te',
        HEADER.encode() + b'1,Soup,1\n2,"Tea, green\n',
        HEADER.encode() + "1,Crème".encode()[:-3],
        (HEADER + "1,Soup,1\n").encode("utf-16")[:-1],
    ],
)
def test_a_file_that_is_cut_short_is_still_being_written(tmp_path: Path, content: bytes) -> None:
    assert unreadable(tmp_path, content).passing


def test_a_last_line_without_an_end_is_whole_if_its_fields_are(tmp_path: Path) -> None:
    assert set(read(tmp_path, HEADER + "1,Soup,1\n2,Tea,2")) == {"1", "2"}


def test_a_header_alone_is_a_menu_of_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, HEADER) == {}


def test_a_missing_file_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(ExportUnreadable) as caught:
        open_till(tmp_path, menu="menu.csv").read_catalogue()
    assert caught.value.passing


def test_a_folder_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "menu.csv").mkdir()
    with pytest.raises(ExportUnreadable):
        open_till(tmp_path, menu="menu.csv").read_catalogue()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user who can be refused")
def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    till = menu_till(tmp_path, HEADER)
    (tmp_path / "menu.csv").chmod(0)
    with pytest.raises(ExportUnreadable) as caught:
        till.read_catalogue()
    assert caught.value.passing


def test_a_file_that_changes_while_it_is_read_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = menu_till(tmp_path, HEADER + "1,Soup,1\n")
    look = export_files._signature
    looks = 0

    def changing(path: Path) -> tuple[int, int, int, int]:
        nonlocal looks
        looks += 1
        if looks == 2:
            path.write_text(HEADER + "1,Soup,1\n2,Tea,2\n")
        return look(path)

    monkeypatch.setattr(export_files, "_signature", changing)
    with pytest.raises(ExportUnreadable) as caught:
        till.read_catalogue()
    assert caught.value.passing
    assert set(till.read_catalogue().items) == {"1", "2"}


def test_a_quote_that_is_never_closed_in_a_large_file_is_found(tmp_path: Path) -> None:
    rows = "".join(f"{number},Dish,1\n" for number in range(20_000))
    failure = unreadable(tmp_path, HEADER + '0,"Soup,1\n' + rows)
    assert "quotation" in failure.text + failure.fix


@pytest.mark.parametrize("end", ['3,"Pie,2\n', "Total"])
def test_a_file_that_stays_half_written_is_named_with_its_row(tmp_path: Path, end: str) -> None:
    till = menu_till(tmp_path, HEADER + "1,Soup,1\n2,Tea,2\n" + end)
    with pytest.raises(ExportUnreadable) as fresh:
        till.read_catalogue()
    assert fresh.value.passing

    long_ago = time.time() - 3600
    os.utime(tmp_path / "menu.csv", (long_ago, long_ago))
    with pytest.raises(ExportUnreadable) as caught:
        till.read_catalogue()
    assert not caught.value.passing
    assert caught.value.place == "menu.csv, row 4"
    assert caught.value.fix


@pytest.mark.parametrize(
    "word",
    "Sold out|SOLD-OUT|ausverkauft|Nicht verfügbar|Épuisé|Rupture de stock|agotado"
    "|No disponible|esaurito|Non disponibile|inaktiv".split("|"),
)
def test_sold_out_is_understood_in_the_tills_language(tmp_path: Path, word: str) -> None:
    content = f"external_id,name,price,available\n1,Soup,1,{word}\n2,Tea,2,verfügbar\n"
    found = read(tmp_path, content)
    assert [each.available for each in found.values()] == [False, True]


def test_a_stock_of_86_is_no_word_for_sold_out(tmp_path: Path) -> None:
    content = "external_id,name,price,available\n1,Soup,1,86\n2,Tea,2,85\n3,Pie,3,yes\n"
    found = menu_till(tmp_path, content).read_catalogue()
    assert list(found.items) == ["3"]
    assert [each.external_id for each in found.bad_rows] == ["1", "2"]


def test_marks_of_the_direction_of_writing_around_a_text_say_nothing(tmp_path: Path) -> None:
    row = "\u200f3\u200f,\u202bלחם\u202c,\u202a4.50\u202c\n"
    assert read(tmp_path, HEADER + row) == {"3": item("3", "לחם", 450)}


def test_sizes_without_their_item_are_warned_of(tmp_path: Path) -> None:
    content = "external_id,name,size,price\n1,Pizza,S,8\n2,Pizza,L,9\n"
    columns = {"variant_name": "size"}
    (warning,) = menu_till(tmp_path, content, columns=columns).read_catalogue().facts.warnings
    assert "size" in warning.text
    assert "group_by" in warning.fix
    grouped = menu_till(tmp_path, content, columns=columns, group_by="name").read_catalogue()
    assert grouped.facts.warnings == ()
    assert [each.variant_name for each in grouped.items["Pizza"].variants] == ["S", "L"]


# -- whatever the bytes

NAMES = st.text(string.ascii_letters + " äöçñ,;|'\"\t-&", min_size=1, max_size=12).map(
    lambda name: "n" + " ".join(name.split())
)


@given(
    names=st.lists(NAMES, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], delimiter: str, encoding: str
) -> None:
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    table.writerow(["external_id", "name", "price"])
    table.writerows([number, name, f"{number}.25"] for number, name in enumerate(names))
    folder = tmp_path_factory.mktemp("till")
    # Words of random letters say nothing of their encoding.
    named = {"encoding": encoding} if encoding == "cp1252" else {}
    items = read(folder, text.getvalue().encode(encoding), **named)
    assert items == {
        str(number): item(str(number), " ".join(name.split()), number * 100 + 25)
        for number, name in enumerate(names)
    }


@given(content=st.binary(max_size=200), header=st.booleans())
def test_no_bytes_raise_anything_but_what_is_promised(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, header: bool
) -> None:
    folder = tmp_path_factory.mktemp("till")
    for name in ("menu.csv", "menu.json"):
        till = menu_till(folder, (HEADER.encode() if header else b"") + content, menu=name)
        with contextlib.suppress(ExportUnreadable):
            till.read_catalogue()


def test_half_a_price_is_not_believed_while_the_file_grows_in_place(tmp_path: Path) -> None:
    till = menu_till(tmp_path, f"{HEADER}a,Soup,12.50\n")
    assert till.read_catalogue().items["a"].price == 1250
    (tmp_path / "menu.csv").write_text(f"{HEADER}a,Soup,12.5")
    with pytest.raises(ExportUnreadable) as caught:
        till.read_catalogue()
    assert caught.value.passing

    long_ago = time.time() - 5
    os.utime(tmp_path / "menu.csv", (long_ago, long_ago))
    assert till.read_catalogue().items["a"].price == 1250


def test_a_renamed_file_without_a_last_line_end_is_believed_at_once(tmp_path: Path) -> None:
    till = menu_till(tmp_path, f"{HEADER}a,Soup,12.50\n")
    till.read_catalogue()
    (tmp_path / "menu.new").write_text(f"{HEADER}a,Soup,13")
    (tmp_path / "menu.new").replace(tmp_path / "menu.csv")
    assert till.read_catalogue().items["a"].price == 1300


@pytest.mark.parametrize(
    ("end", "ended"), [("\n", True), ("\r\n", True), ("\r", True), ("", False)]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_a_reading_states_whether_its_file_ends_with_a_line_end(
    tmp_path: Path, encoding: str, end: str, *, ended: bool
) -> None:
    content = f"{HEADER}1,Café,1\n2,Thé,2{end}".encode(encoding)
    assert menu_till(tmp_path, content).read_catalogue().ends_with_newline is ended


def test_add_ons_without_a_last_line_end_count_as_the_menu_does(tmp_path: Path) -> None:
    (tmp_path / "addons.csv").write_text("group_id,external_id,name,price\ng,a,Ham,1")
    till = menu_till(tmp_path, HEADER + "1,Soup,1\n", addons="addons.csv")
    assert till.read_catalogue().ends_with_newline is False


def test_a_json_menu_says_nothing_of_line_ends(tmp_path: Path) -> None:
    till = menu_till(tmp_path, '{"items": []}', menu="menu.json")
    assert till.read_catalogue().ends_with_newline is None


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"1,Tea,1\n", "ascii"),
        ("1,Thé,1\n".encode(), "utf-8"),
        ("1,Thé,1\n".encode("cp1252"), "cp1252"),
    ],
)
def test_a_reading_states_how_its_file_is_encoded(
    tmp_path: Path, content: bytes, encoding: str
) -> None:
    till = menu_till(tmp_path, HEADER.encode() + content)
    assert till.read_catalogue().facts.encodings["menu.csv"].encoding == encoding
    grouped = menu_till(tmp_path, HEADER.encode() + content, group_by="external_id")
    assert grouped.read_catalogue().facts.encodings["menu.csv"].encoding == encoding


def test_a_menu_in_utf_16_without_a_mark_is_read_in_any_script(tmp_path: Path) -> None:
    content = f"{HEADER}1,Борщ украинский,350\n2,お茶,200\n".encode("utf-16-le")
    assert {each.name for each in read(tmp_path, content).values()} == {"Борщ украинский", "お茶"}
