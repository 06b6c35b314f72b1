"""An order's steps with their times and reports, what it costs, and how it leaves the house."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.order import OrderState, parse_order
from tillbridge.orders.sentences import (
    bill_lines,
    bill_of,
    dishes_of,
    failure_text,
    kind_of,
    reason_text,
    table_of,
    timeline,
)
from tillbridge.web.site.orders import _steps

ROW = OrderRow(
    store="main",
    order_id="ord_1",
    received_at=10_000,
    placed_at=9_100,
    payload="",
    desired_state=OrderState.CREATED,
    service_state=OrderState.CREATED,
)
IN_TILL = ROW.replace(
    ticket=TicketState.WRITTEN,
    written_at=10_400,
    desired_state=OrderState.ACCEPTED,
    service_state=OrderState.ACCEPTED,
)


def log(*events: tuple[str, int]) -> list[LogEntry]:
    return [
        LogEntry(store="main", order_id="ord_1", event=event, at=at, detail={})
        for event, at in events
    ]


def test_each_step_says_when_it_happened_and_when_it_was_reported() -> None:
    entries = log(
        ("order.received", 10_040),
        ("order.written", 10_400),
        ("order.accepted", 10_650),
        ("ticket.preparing", 70_000),
        ("order.preparing", 70_300),
        ("ticket.ready", 610_000),
    )
    row = IN_TILL.replace(desired_state=OrderState.READY, service_state=OrderState.PREPARING)
    steps = timeline(row, entries)
    assert [(each["key"], each["after_ms"], each["took_ms"]) for each in steps] == [
        ("placed", -900, None),
        ("received", 0, 900),
        ("saved", 40, 40),
        ("in_till", 400, 360),
        ("accepted", 400, 0),
        ("preparing", 60_000, 59_600),
        ("ready", 600_000, 540_000),
    ]
    told = {each["key"]: (each["reported"], each["reported_ms"]) for each in steps}
    assert told["accepted"] == ("yes", 250)
    assert told["preparing"] == ("yes", 300)
    assert told["ready"] == ("pending", None)
    assert told["in_till"] == ("", None), "the service need not hear of it"


def test_what_the_bridge_waits_for_comes_last() -> None:
    assert [each["key"] for each in timeline(ROW, log(("order.received", 10_040)))] == [
        "placed", "received", "saved", "in_till",
    ]  # fmt: skip
    waits = timeline(ROW, ())[-1]
    assert (waits["at"], waits["after_ms"]) == (None, None)
    assert timeline(ROW.replace(closed_at=1), ())[-1]["key"] == "received"


def test_a_cancelled_order_ends_with_its_cancel() -> None:
    row = ROW.replace(desired_state=OrderState.CANCELLED)
    steps = timeline(row, log(("order.to_cancel", 130_000)))
    assert (steps[-1]["key"], steps[-1]["reported"]) == ("cancelled", "pending")
    refused = timeline(row.replace(refused={"cancel": "no"}), log(("order.to_cancel", 130_000)))
    assert refused[-1]["reported"] == "refused"


EVENTS = ["order.received", "order.written", "order.accepted", "ticket.ready", "order.to_cancel"]


@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 10**9))),
    st.sampled_from(OrderState),
    st.one_of(st.none(), st.integers(0, 10**9)),
)
def test_bars_stay_within_their_drawing(
    events: list[tuple[str, int]], state: OrderState, placed_at: int | None
) -> None:
    row = ROW.replace(desired_state=state, service_state=state, placed_at=placed_at)
    steps = timeline(row, log(*events))
    assert [each["at"] for each in steps if each["at"] is not None] == sorted(
        each["at"] for each in steps if each["at"] is not None
    )
    for each in _steps(steps):
        if each["bar"]:
            assert 0 <= each["bar"]["x"] <= 1000 - each["bar"]["width"]
            assert each["bar"]["width"] >= 6, "one sees that it happened"


# -- what it costs

PAYLOAD: dict[str, Any] = {
    "id": "ord_1",
    "order_type": "delivery",
    "subtotal": 2000,
    "tax": 165,
    "tax_breakdown": [{"name": "Sales tax", "rate": 8.25, "amount": 165}],
    "delivery_fee": 300,
    "discount": 200,
    "tip": 250,
    "total_amount": 2515,
    "prices_include_tax": False,
    "items": [
        {"product_name": "Margherita (Large)", "quantity": 2},
        {"product_name": "Cola", "quantity": 1},
    ],
}


def test_the_amounts_of_an_order_are_listed_down_to_its_total() -> None:
    assert bill_lines(bill_of(PAYLOAD)) == [
        ("Subtotal", 2000),
        ("Discount", -200),
        ("Delivery fee", 300),
        ("Sales tax 8.25%", 165),
        ("Tip", 250),
        ("Total", 2515),
    ]


def test_what_the_service_did_not_say_is_not_listed() -> None:
    assert bill_lines(bill_of({})) == []
    odd = {"tax": "1", "tax_breakdown": [{"amount": 5}, 7], "tip": 0, "total_amount": 0}
    assert bill_lines(bill_of(odd)) == [("Tax", 5), ("Total", 0)]
    included = {"tax": 100, "prices_include_tax": True, "total_amount": 900}
    assert bill_lines(bill_of(included)) == [("Tax (included)", 100), ("Total", 900)]
    split = {**included, "tax_breakdown": [{"name": "MwSt", "rate": 19, "amount": 90}]}
    assert bill_lines(bill_of(split))[0] == ("Tax (included)", 100), "the parts are not all of it"


@given(
    st.dictionaries(
        st.sampled_from(sorted(PAYLOAD)),
        st.one_of(st.none(), st.integers(), st.text(), st.floats(), st.lists(st.integers())),
    )
)
def test_no_odd_amount_breaks_a_page(payload: dict[str, Any]) -> None:
    bill_lines(bill_of(payload))


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("delivery", "delivery"),
        ("Dine-In", "dine_in"),
        ("take away", "pickup"),
        ("", ""),
        ("drone", ""),
    ],
)
def test_how_an_order_leaves_the_house_is_known_by_its_type(written: str, kind: str) -> None:
    assert kind_of(written) == kind


@pytest.mark.parametrize(
    ("order", "table"),
    [
        ({"order_type": "dine_in", "special_instructions": "Table 5. No ice"}, "5"),
        ({"order_type": "dine_in", "special_instructions": "Table near the door"}, "near the door"),
        ({"order_type": "delivery", "special_instructions": "Table 5."}, ""),
        ({"order_type": "dine_in", "table_name": "T 7"}, "T 7"),
        ({"order_type": "dine_in", "table": {"name": "Bar"}}, "Bar"),
        ({"order_type": "dine_in", "table": ["x"]}, ""),
    ],
)
def test_the_table_is_found_where_an_order_has_one(order: dict[str, Any], table: str) -> None:
    assert table_of(parse_order({"id": "ord_1", **order})) == table


def test_a_list_names_the_first_dishes() -> None:
    items = [{"product_name": f"Dish {n}", "quantity": n} for n in range(5)]
    dishes, more = dishes_of(parse_order({"id": "ord_1", "items": items}))
    assert dishes[0] == {"name": "Dish 0", "quantity": "?"}
    assert (len(dishes), more) == (3, 2)


def test_reason_codes_are_words() -> None:
    assert reason_text("CAPACITY") == "The kitchen is too busy"
    assert reason_text("NEW_CODE") == "NEW_CODE"
    assert reason_text(None) == ""


def test_a_failure_of_the_till_is_told_in_its_own_words_or_in_ours() -> None:
    assert failure_text("offline: no heartbeat") == "no heartbeat"
    assert failure_text("offline") == "the till cannot be reached"
    assert failure_text("what: ever") == "what: ever"
    assert failure_text("") == ""
