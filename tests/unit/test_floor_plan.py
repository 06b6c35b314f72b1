"""What a push of the floor plan would change, and when it waits for a person."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import BadRow, TablesReading
from tillbridge.ledger.models import AcceptedTable
from tillbridge.menu.tables import (
    TablePlan,
    after_printing,
    checked,
    dead_codes,
    guard_tables,
    known_codes,
    plan_tables,
    table_changes,
    wanted_tables,
)
from tillbridge.model.restaurant import Table
from tillbridge.pos.validation import valid_tables

ids = st.text("abc12", min_size=1, max_size=2)
tables = st.builds(
    Table,
    external_id=ids,
    name=st.text("xyz", min_size=1, max_size=2),
    seats=st.none() | st.integers(0, 12),
    zone=st.sampled_from(["", "hall", "garden"]),
)
floors = st.lists(tables, unique_by=lambda each: each.external_id).map(
    lambda found: tuple(sorted(found, key=lambda each: each.external_id))
)
percents = st.floats(0, 100)


def hall(count: int) -> tuple[Table, ...]:
    return tuple(Table(f"t{number:02}", f"Table {number}", 4) for number in range(1, count + 1))


def planned(
    read: tuple[Table, ...], accepted: tuple[Table, ...], *bad_rows: BadRow, approved: str = ""
) -> TablePlan:
    reading = TablesReading(read, bad_rows)
    return plan_tables(reading, accepted, max_removed_percent=50, approved_digest=approved)


@given(before=floors, after=floors)
def test_the_changes_lead_from_one_plan_to_the_other(
    before: tuple[Table, ...], after: tuple[Table, ...]
) -> None:
    changes = table_changes(before, after)
    result = {each.external_id: each for each in before}
    for gone in changes.removed:
        assert result.pop(gone.external_id) == gone
    for was, is_now in changes.changed:
        assert result[was.external_id] == was != is_now
        result[is_now.external_id] = is_now
    for new in changes.added:
        assert new.external_id not in result
        result[new.external_id] = new
    assert tuple(result[key] for key in sorted(result)) == after
    assert bool(changes) is (before != after)


@given(floor=floors)
def test_a_plan_that_is_accepted_changes_nothing(floor: tuple[Table, ...]) -> None:
    plan = planned(floor, floor)
    assert not plan.changes
    assert not plan.reasons
    assert plan.wanted == floor


@given(before=floors, after=floors, percent=percents)
def test_a_plan_that_takes_nothing_away_never_waits(
    before: tuple[Table, ...], after: tuple[Table, ...], percent: float
) -> None:
    both = wanted_tables(after, before, frozenset({""}))
    changes = table_changes(before, both)
    assert not changes.removed
    assert guard_tables(changes, len(before), max_removed_percent=percent) == ()


@given(before=floors, after=floors, low=percents, high=percents)
def test_a_laxer_limit_holds_nothing_more(
    before: tuple[Table, ...], after: tuple[Table, ...], low: float, high: float
) -> None:
    changes = table_changes(before, after)
    strict = guard_tables(changes, len(before), max_removed_percent=min(low, high))
    lax = guard_tables(changes, len(before), max_removed_percent=max(low, high))
    assert strict or not lax


@given(before=floors, one=floors, other=floors)
def test_the_digest_names_the_plan(
    before: tuple[Table, ...], one: tuple[Table, ...], other: tuple[Table, ...]
) -> None:
    same = planned(one, before).digest == planned(other, before).digest
    assert same is (one == other)


@pytest.mark.parametrize(
    ("known", "left", "waits"),
    [(20, 15, False), (20, 10, False), (20, 9, True), (8, 3, False), (8, 2, True), (3, 0, True)],
)
def test_more_than_half_of_the_tables_and_more_than_five_wait(
    known: int, left: int, waits: bool
) -> None:
    plan = planned(hall(left), hall(known))
    assert plan.waits is waits
    assert bool(plan.reasons) is waits


def test_the_reason_names_the_tables() -> None:
    plan = planned(hall(6), hall(20))
    (reason,) = plan.reasons
    assert reason.startswith("14 of 20 tables removed (Table 7, Table 8, ")
    assert reason.endswith(", Table 14 and 6 more)")


def test_an_approval_counts_for_that_very_plan() -> None:
    held = planned(hall(2), hall(20))
    assert not planned(hall(2), hall(20), approved=held.digest).waits
    assert planned(hall(3), hall(20), approved=held.digest).waits
    renamed = (replace(hall(2)[0], name="Bar"), hall(2)[1])
    assert planned(renamed, hall(20), approved=held.digest).waits


def test_a_table_with_a_bad_row_stays_as_it_was() -> None:
    row = BadRow("tables.csv, row 3", "seats is 'four', which is no whole number.", "", "t02")
    plan = planned((hall(3)[0], hall(3)[2]), hall(3), row)
    assert not plan.changes
    assert plan.bad_rows == (row,)


def test_a_bad_row_without_an_id_lets_no_table_go() -> None:
    plan = planned(hall(1), hall(3), BadRow("tables.csv, row 3", "no id", ""))
    assert not plan.changes


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (Table("t1", "Again"), "appears twice"),
        (Table("", "No id"), "has no id"),
        (Table("t2", "  "), "has no name"),
    ],
)
def test_what_an_adapter_should_not_say_is_a_bad_row(table: Table, told: str) -> None:
    reading = checked(TablesReading((Table("t1", "First"), table)))
    assert reading.tables == (Table("t1", "First"),)
    (row,) = reading.bad_rows
    assert told in row.text
    assert row.fix
    assert row.external_id == ("" if table.external_id == "t1" else table.external_id)


@pytest.mark.parametrize("seats", [-1, True, "four"])
def test_seats_that_are_no_number_are_a_bad_row_before_the_plan(seats: Any) -> None:  # noqa: ANN401 -- as an adapter may
    reading = valid_tables(TablesReading((Table("t1", "First"), Table("t2", "x", seats))))
    assert reading.tables == (Table("t1", "First"),)
    (row,) = reading.bad_rows
    assert row.external_id == "t2"
    assert row.text


def coded(*tokens: str) -> tuple[AcceptedTable, ...]:
    return tuple(
        AcceptedTable.of(
            Table(f"t{number}", f"Table {number}"), f"tbl_{number}", token, f"u/{token}"
        )
        if token
        else AcceptedTable.of(Table(f"t{number}", f"Table {number}"))
        for number, token in enumerate(tokens, 1)
    )


def test_a_code_counts_as_printed_from_the_first_push_on() -> None:
    known = known_codes({}, (), coded("a", "b", ""))
    assert known.keys() == {"t1", "t2"}
    assert dead_codes(known, coded("a", "b", "c")) == ()
    assert dead_codes(known, coded("a", "B", "c")) == ("Table 2",)


def test_codes_of_a_ledger_that_remembers_no_print_count_too() -> None:
    known = known_codes({}, coded("a", "b"), coded("A", "b"))
    assert dead_codes(known, coded("A", "b")) == ("Table 1",)


def test_a_new_sheet_mends_the_tables_on_it_only() -> None:
    now = coded("A", "B")
    known = known_codes({}, coded("a", "b"), now)
    sheet = {"t1": now[0].code, "gone": "x"}
    known = after_printing(known, sheet, now)
    assert dead_codes(known, now) == ("Table 2",)
    assert "gone" not in known


def test_a_table_that_comes_back_with_its_code_is_well() -> None:
    known = known_codes({}, (), coded("a", "b"))
    known = known_codes(known, coded("a", "b"), coded("a"))
    assert dead_codes(known, coded("a", "b")) == ()
    assert dead_codes(known, coded("a", "x")) == ("Table 2",)


def test_neither_the_token_nor_the_address_shows_in_a_log() -> None:
    shown = repr(coded("secret-token")[0])
    assert "secret-token" not in shown
