"""A menu read as its difference says the same as the menu read whole."""

import csv
import io
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.folder_till import menu_till
from tillbridge.adapter import Catalogue, CatalogueChanges, ExportUnreadable
from tillbridge.adapter.conformance.changes import Told
from tillbridge.pos.folder import items, table_file

HEADER = "external_id,name,price,parent_id\n"
FINGERPRINT_OF_DISH_0 = 1398223495098931088


def changes(
    folder: Path, old: str, new: str, **options: object
) -> tuple[Catalogue, CatalogueChanges]:
    """The old menu, and what a reading of the new one says differs from it."""
    before = menu_till(folder, old).read_catalogue()
    till = menu_till(folder, new, **options)
    return before, till.read_changes(frozenset(before.fingerprints.values()))


def test_nothing_is_told_of_an_unchanged_menu(tmp_path: Path) -> None:
    menu = HEADER + "1,Soup,1,\np,Pizza,9,\np1,Small,9,p\n"
    _, told = changes(tmp_path, menu, menu)
    assert not told.fresh.items
    assert not told.unseen
    assert told.items_read == 2


def test_a_changed_row_is_fresh_and_its_old_self_unseen(tmp_path: Path) -> None:
    before, told = changes(
        tmp_path, HEADER + "1,Soup,1,\n2,Tea,2,\n", HEADER + "2,Tea,3,\n1,Soup,1,\n"
    )
    assert {each.external_id: each.price for each in told.fresh.items.values()} == {"2": 300}
    assert told.unseen == {before.fingerprints["2"]}
    assert told.items_read == 2


def test_a_removed_row_is_unseen(tmp_path: Path) -> None:
    before, told = changes(tmp_path, HEADER + "1,Soup,1,\n2,Tea,2,\n", HEADER + "1,Soup,1,\n")
    assert not told.fresh.items
    assert told.unseen == {before.fingerprints["2"]}


@pytest.mark.parametrize(
    "rows",
    [
        "p,Pizza,9,\np1,Small,8,p\np2,Large,9,p\n",  # a variant's price
        "p,Pizza,9,\np2,Large,9,p\np1,Small,9,p\n",  # their order
        "p,Pizza,9,\np1,Small,9,p\n",  # one less
        "p,Pizza,9,\n",  # none left
        "p1,Small,9,p\np2,Large,9,p\np,Pizza!,9,\n",  # the item itself
    ],
)
def test_a_change_of_its_variants_is_a_change_of_the_item(tmp_path: Path, rows: str) -> None:
    old = "p,Pizza,9,\np1,Small,9,p\np2,Large,9,p\n"
    before, told = changes(tmp_path, HEADER + old, HEADER + rows)
    whole = menu_till(tmp_path, HEADER + rows).read_catalogue()
    assert dict(told.fresh.items) == dict(whole.items)
    assert told.unseen == {before.fingerprints["p"]}


def test_an_item_that_gets_its_first_variant_is_fresh(tmp_path: Path) -> None:
    old = HEADER + "1,Soup,1,\np,Pizza,9,\n"
    before, told = changes(tmp_path, old, old + "p1,Small,9,p\n")
    assert [len(each.variants) for each in told.fresh.items.values()] == [1]
    assert told.unseen == {before.fingerprints["p"]}
    assert told.items_read == 2


def test_a_bad_row_is_told_at_every_reading(tmp_path: Path) -> None:
    menu = HEADER + "1,Soup,1,\n2,Tea,?,\n"
    _, told = changes(tmp_path, menu, menu)
    assert [row.place for row in told.fresh.bad_rows] == ["menu.csv, row 3"]


def test_a_new_row_with_a_known_id_is_fresh_while_the_known_one_is_seen(tmp_path: Path) -> None:
    menu = HEADER + "1,Soup,1,\n"
    before, told = changes(tmp_path, menu, menu + "1,Stew,3,\n")
    assert told.fresh.items["1"].name == "Stew"
    assert before.fingerprints["1"] not in told.unseen, "which says that the first row still counts"


@pytest.mark.parametrize(
    "options",
    [{"currency": "JPY"}, {"columns": {"name": "price", "price": "name"}}],
    ids=["currency", "columns"],
)
def test_another_meaning_of_the_rows_makes_all_of_them_fresh(
    tmp_path: Path, options: dict[str, object]
) -> None:
    menu = HEADER + "1,7,1,\n2,8,2,\n"
    before, told = changes(tmp_path, menu, menu, **options)
    assert set(told.fresh.items) == {"1", "2"}
    assert told.unseen == set(before.fingerprints.values())


def test_fingerprints_fit_a_signed_column_and_stay_from_run_to_run(tmp_path: Path) -> None:
    menu = HEADER + "".join(f"{number},Dish,1,\n" for number in range(200))
    fingerprints = menu_till(tmp_path, menu).read_catalogue().fingerprints
    assert all(-(2**63) <= each < 2**63 for each in fingerprints.values())
    assert len(set(fingerprints.values())) == 200
    # Stored in ledgers: if this changes, raise _READING_VERSION and let everything be read anew.
    assert fingerprints["0"] == FINGERPRINT_OF_DISH_0


ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from(["Soup", "Tea", "", "Stew"]),
        st.sampled_from(["1", "2", "", "?"]),
        st.sampled_from(["", "", "", "a", "b", "z"]),
    ),
    max_size=8,
    unique_by=lambda row: row[0],
)


def menu_of(rows: list[tuple[str, ...]]) -> str:
    return HEADER + "".join(",".join(row) + "\n" for row in rows)


@pytest.mark.parametrize("few_rows", [0, 2_000], ids=["in two passes", "in one pass"])
@given(old=ROWS, new=ROWS)
def test_the_difference_and_the_old_menu_give_the_new_one(
    tmp_path_factory: pytest.TempPathFactory,
    few_rows: int,
    old: list[tuple[str, ...]],
    new: list[tuple[str, ...]],
) -> None:
    folder = tmp_path_factory.mktemp("till")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_FEW_ROWS", few_rows)
        before, told = changes(folder, menu_of(old), menu_of(new))
    after = menu_till(folder, menu_of(new)).read_catalogue()
    kept = {
        external_id: item
        for external_id, item in before.items.items()
        if before.fingerprints[external_id] not in told.unseen
    }
    assert not kept.keys() & told.fresh.items.keys()
    assert {**kept, **told.fresh.items} == dict(after.items)
    assert told.items_read == len(after.items)
    assert set(told.fresh.bad_rows) == set(after.bad_rows)
    merged = {**{each: before.fingerprints[each] for each in kept}, **told.fresh.fingerprints}
    assert merged == dict(after.fingerprints)


LINES = ["1,Soup,1,", "p,Pizza,9,", "p1,Small,9,p", "p2,Large,11,p", "2,Tea,2,", "late,Rum,5,t"]
LINES.append("t,Toddy,,")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    copies=st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 3)), min_size=1, max_size=5),
    by=st.sampled_from([{}, {"sold_out_at_stock": "-5"}]),
)
def test_a_row_that_stands_there_again_changes_nothing(
    copies: list[tuple[str, int]], by: dict[str, object], tmp_path: Path
) -> None:
    rows = list(LINES)
    for row, further in copies:
        rows.insert(rows.index(row) + 1 + further, row)
    once = menu_till(tmp_path, HEADER + "\n".join(LINES) + "\n", **by)
    told = Told()
    told.follow(once)
    expected = once.read_catalogue()
    again = menu_till(tmp_path, HEADER + "\n".join(rows) + "\n", **by)
    found = again.read_catalogue()
    assert (found.items, found.bad_rows) == (expected.items, ())
    told.follow(again)
    assert not again.read_changes(told.known).fresh.items
    told.follow(menu_till(tmp_path, HEADER + "\n".join(LINES) + "\n", **by))


CELLS = st.text('a1 ,;"\n\r\x00\x1f\x85\u2028\ufeff\N{SNOWMAN}', max_size=12)


@given(
    cells=st.lists(CELLS, max_size=12),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-8-torn"]),
    delimiter=st.sampled_from([",", ";", "\N{SNOWMAN}", " ", "a"]),
    portion=st.integers(1, 40),
    has_header=st.booleans(),
    known=st.sets(st.integers(0, 11)),
)
def test_lines_without_quotation_marks_are_the_rows_that_csv_makes_of_them(
    tmp_path_factory: pytest.TempPathFactory,
    cells: list[str],
    encoding: str,
    delimiter: str,
    portion: int,
    has_header: bool,
    known: set[int],
) -> None:
    text = delimiter.join(["x", "y"]) + "\n" + "".join(cells)
    path = tmp_path_factory.mktemp("till") / "menu.csv"
    codec = encoding.removesuffix("-torn")
    path.write_bytes(text.encode(codec)[: -1 if encoding.endswith("torn") else None])
    names = ("x", "y") if has_header else ("column 1",)

    def found(known: Collection[int], **patched: int) -> tuple[object, set[int], object]:
        unseen = set(known)
        source = table_file.TableSource(
            path, names, encoding=codec, delimiter=delimiter, has_header=has_header
        )
        try:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in patched.items():
                    patch.setattr(table_file, name, value)
                rows = table_file.read_table(
                    source, lambda table: [*table.unknown_rows(frozenset(known), unseen, 7)]
                )
        except ExportUnreadable as failure:
            return str(failure), set(), failure.place
        return rows, unseen, None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "field_size_limit", lambda: -1)  # all is parsed by csv
        whole = found(())
        rows = whole[0] if isinstance(whole[0], list) else []
        some = {row[2] for at, row in enumerate(rows) if at in known} | {1}
        expected = found(some)
    assert found((), _PORTION=portion) == whole
    assert found(some, _PORTION=portion) == expected
    if isinstance(whole[0], list) and not encoding.endswith("torn"):
        lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
        numbered = enumerate(csv.reader(lines, delimiter=delimiter), 1)
        filled = [(at, row) for at, row in numbered if any(map(str.strip, row))]
        assert [row[:2] for row in rows] == filled[has_header:]
        assert expected[1] == {1}


def test_what_is_wrong_with_a_table_is_placed_below_rows_of_any_kind(tmp_path: Path) -> None:
    rows = '1,Soup,1,\n2,"Tea,\nhot",2,\n' * 3000
    menu = f"{HEADER}{rows}3,{'x' * 131_073},3,\n4,Stew,4,\n"
    with pytest.raises(ExportUnreadable) as caught:
        menu_till(tmp_path, menu).read_catalogue()
    assert caught.value.place == "menu.csv, line 9002"
