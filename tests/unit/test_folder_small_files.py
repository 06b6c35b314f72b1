"""Availability, tables and add-ons: the small files beside a menu."""

from pathlib import Path

import pytest

from tests.support.folder_till import open_till
from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    Availability,
    AvailabilityReading,
    ExportUnreadable,
    Table,
    TablesReading,
)

EVENING_MS = 1_795_201_200_000  # 2026-11-20T19:00:00Z


def availability(folder: Path, content: str, **options: object) -> AvailabilityReading:
    (folder / "sold-out.csv").write_text(content, encoding="utf-8")
    till = open_till(folder, availability="sold-out.csv", **options)
    return till.read_availability()


def tables(folder: Path, content: str) -> TablesReading:
    (folder / "tables.csv").write_text(content, encoding="utf-8")
    return open_till(folder, tables="tables.csv").read_tables()


def test_availability_tells_what_is_sold_out_and_until_when(tmp_path: Path) -> None:
    reading = availability(
        tmp_path,
        "external_id,available,snooze_until\n"
        "1,no,\n"
        "2,yes,2026-11-20T19:00:00Z\n"
        "3,0,2026-11-20T19:00:00Z\n"
        "4,0,2026-11-20T20:00+01:00\n",
    )
    assert dict(reading.items) == {
        "1": Availability(available=False),
        "2": Availability(available=True),
        "3": Availability(available=False, until=EVENING_MS),
        "4": Availability(available=False, until=EVENING_MS),
    }
    assert reading.bad_rows == ()


@pytest.mark.parametrize("ends", ["2026-11-20T20:00:00", "2026-11-20 20:00", "2026-11-20"])
def test_a_time_without_a_zone_is_a_bad_row_with_its_remedy(tmp_path: Path, ends: str) -> None:
    content = f"external_id,available,snooze_until\n7,no,{ends}\n1,no,\n"
    reading = availability(tmp_path, content)
    assert set(reading.items) == {"1"}
    (only,) = reading.bad_rows
    assert (only.place, only.external_id) == ("sold-out.csv, row 2", "7")
    assert "+01:00 or 2026-11-20T" in only.fix
    assert "timezone" in only.fix


def test_the_option_timezone_says_what_a_time_without_a_zone_means(tmp_path: Path) -> None:
    content = "external_id,available,snooze_until\n1,no,2026-11-20T20:00\n2,no,{}Z\n"
    reading = availability(tmp_path, content.format("2026-11-20T19:00"), timezone="Europe/Berlin")
    assert {each.until for each in reading.items.values()} == {EVENING_MS}
    with pytest.raises(ValueError, match="no time zone"):
        availability(tmp_path, content, timezone="Europe/Nowhere")


@pytest.mark.parametrize(
    "ends", ["9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-05:00", "2100-01-01T00:00Z"]
)
def test_for_ever_is_sold_out_with_no_end(tmp_path: Path, ends: str) -> None:
    reading = availability(tmp_path, f"external_id,available,snooze_until\n7,no,{ends}\n")
    assert dict(reading.items) == {"7": Availability(available=False)}
    assert reading.bad_rows == ()


@pytest.mark.parametrize(
    "ends", ["1970-01-21T18:42:00Z", "1999-12-31T23:59:00+14:00", "0001-01-01"]
)
def test_a_time_of_long_ago_is_a_bad_row(tmp_path: Path, ends: str) -> None:
    content = f"external_id,available,snooze_until\n7,no,{ends}\n"
    reading = availability(tmp_path, content, timezone="UTC")
    assert len(reading.bad_rows) == 1


def test_the_last_row_of_an_id_counts_so_that_a_till_may_append(tmp_path: Path) -> None:
    reading = availability(tmp_path, "external_id,available\n1,no\n1,yes\n")
    assert dict(reading.items) == {"1": Availability(available=True)}


@pytest.mark.parametrize("row", ["7,perhaps,", "7,,", ",no,", "7,no,tomorrow", "7"])
def test_a_bad_row_of_availability_is_told_and_left_out(tmp_path: Path, row: str) -> None:
    header = "external_id,available,snooze_until\n"
    reading = availability(tmp_path, f"{header}{row}\n1,no,\n")
    assert set(reading.items) == {"1"}
    (only,) = reading.bad_rows
    assert only.place == "sold-out.csv, row 2"
    assert only.fix


def test_the_menus_header_names_hold_for_availability_too(tmp_path: Path) -> None:
    columns = {"external_id": "SKU", "price": "Cost"}
    for header in ("SKU", "external_id"):
        reading = availability(tmp_path, f"{header};available\n1;no\n", columns=columns)
        assert set(reading.items) == {"1"}


def test_an_empty_availability_file_is_still_being_written(tmp_path: Path) -> None:
    with pytest.raises(ExportUnreadable) as caught:
        availability(tmp_path, "")
    assert caught.value.passing
    assert availability(tmp_path, "external_id,available\n").items == {}


def test_tables_are_read(tmp_path: Path) -> None:
    reading = tables(
        tmp_path,
        "external_id,name,seats,zone\nt1,Window,4,Terrace\nt2,Bar,,\nt1,Twice,2,\nt3,Odd,many,\n",
    )
    assert reading.tables == (Table("t1", "Window", 4, "Terrace"), Table("t2", "Bar"))
    assert [(row.place, row.external_id) for row in reading.bad_rows] == [
        ("tables.csv, row 4", ""),
        ("tables.csv, row 5", "t3"),
    ]


def test_add_ons_stand_in_a_file_beside_the_menu(tmp_path: Path) -> None:
    (tmp_path / "menu.csv").write_text("external_id,name,price,addon_groups\n1,Soup,4,g1\n")
    (tmp_path / "extras.csv").write_text(
        "group_id,group_name,min_select,max_select,required,external_id,name,price\n"
        "g1,Sides,1,2,yes,a1,Bread,1.00\n"
        "g1,,,,,a2,Rice,1.50\n"
        "g2,Sauces,,,,a1,Bread,1.00\n"
        "g2,,,,,a1,Bread,9.00\n"
        "g3,Broken,3,2,,a3,Egg,1\n"
    )
    till = open_till(tmp_path, menu="menu.csv", addons="extras.csv")
    catalogue = till.read_catalogue()
    assert dict(catalogue.add_ons) == {
        "a1": AddOn("a1", "Bread", 100),
        "a2": AddOn("a2", "Rice", 150),
    }
    assert dict(catalogue.addon_groups) == {
        "g1": AddOnGroup("g1", "Sides", 1, 2, required=True, add_ons=("a1", "a2")),
        "g2": AddOnGroup("g2", "Sauces", add_ons=("a1",)),
    }
    assert [row.place for row in catalogue.bad_rows] == ["extras.csv, row 5", "extras.csv, row 6"]
    told = till.read_changes(frozenset(catalogue.fingerprints.values()))
    assert not told.fresh.items
    assert set(told.fresh.add_ons) == {"a1", "a2"}
