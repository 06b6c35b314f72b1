"""An order in words and as JSON: what happened, and what may be done about it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import RejectReason, TicketStatus
from tillbridge.core.actor import by_whom
from tillbridge.core.formats import short_span
from tillbridge.ledger.models import LogEntry, OrderRow, TicketState
from tillbridge.model.order import OrderState
from tillbridge.orders.sentences import sentence
from tillbridge.orders.views import lines_view, log_view, order_view, possible_actions
from tillbridge.web.site.orders import _then, _what_done_does

ROW = OrderRow(
    store="main",
    order_id="ord_1",
    received_at=1_000,
    payload="",
    desired_state=OrderState.CREATED,
    service_state=OrderState.CREATED,
)
DETAIL = st.dictionaries(
    st.sampled_from(["by", "code", "why", "how", "reason", "reference", "call", "lines", "ms"]),
    st.one_of(st.none(), st.integers(), st.text(), st.just("{by} {0} {")),
)


@given(
    st.sampled_from(
        [
            "order.received",
            "order.written",
            "order.withdrawn",
            "order.closed",
            "order.handled",
            "order.retried",
            "order.to_cancel",
            "order.untold",
            "order.wait",
            "order.call_refused",
            "order.seen",
            "ticket.left",
            "something.else",
        ]
    ),
    DETAIL,
)
def test_every_event_has_a_sentence_whatever_it_tells(event: str, detail: dict) -> None:
    assert sentence(event, detail).strip()


def test_text_from_outside_is_no_pattern() -> None:
    found = {"unknown_items": ["{by}"], "prices": ["{0}"], "by": "page:x"}
    assert "{by}" in sentence("order.check_found", found)
    assert "{0}" in sentence("order.check_found", found)
    assert "{code}" in sentence("order.wait", {"reason": "{code}"})


def test_who_acted_is_named_for_people() -> None:
    assert by_whom("page:anna") == "anna"
    assert by_whom("page") == "somebody at the page"
    assert by_whom("command:root") == "root on the command line"
    told = sentence("order.handled", {"by": "page:anna", "how": "typed"})
    assert told == "anna entered it into the till by hand."


def test_the_life_begins_with_the_delivery_and_tells_the_times_between() -> None:
    entries = [
        LogEntry(
            at=1_040, event="order.received", detail={"lines": 2}, store="main", order_id="ord_1"
        ),
        LogEntry(at=990, event="order.wait", detail={}, store="main", order_id="ord_1"),
    ]
    life = log_view(ROW, entries, None)
    assert [each["event"] for each in life] == ["delivery.kept", "order.received", "order.wait"]
    assert [each["after_ms"] for each in life] == [None, 40, 0]
    assert life[1]["text"] == "Order read: 2 lines."


@pytest.mark.parametrize(
    ("name", "variant", "differs"),
    [
        ("Margherita", None, False),
        ("Margherita (Large)", "P01-L", False),
        ("Large Margherita", "P01-L", False),
        ("Funghi (Large)", "P01-L", True),
        ("Margherita (Large)", None, True),
    ],
)
def test_the_name_of_a_variant_is_no_difference(
    name: str, variant: str | None, differs: bool
) -> None:
    menu = {"name": "Margherita", "price": 900, "on_sale": True}
    line: Any = {"name": name, "variant": variant, "unit_price": 900, "menu": menu}
    assert ("as “Margherita”" in _then(line, "EUR")) == differs


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "stops trying to send order 7 to the till"),
        ({"ticket": TicketState.WRITTEN}, "Order 7 is in the till. The bridge stops following it"),
        ({"ticket": TicketState.REFUSED, "closed_at": 5}, "Order 7 is closed"),
    ],
)
def test_handled_by_hand_says_what_it_does(change: dict, says: str) -> None:
    row = ROW.replace(**change)
    order: Any = {**order_view(row), "may": possible_actions(row)}
    assert says in _what_done_does(order).format(order=7)


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({}, {"retry", "cancel", "typed", "settled"}),
        ({"ticket": TicketState.WRITTEN}, {"cancel", "settled"}),
        (
            {"ticket": TicketState.WRITTEN, "desired_state": OrderState.ACCEPTED},
            {"retry", "cancel", "settled"},
        ),
        ({"desired_state": OrderState.CANCELLED}, {"retry", "settled"}),
        ({"service_state": OrderState.CANCELLED, "closed_at": 5}, set()),
        ({"closed_at": 5}, {"retry"}),
        (
            {"service_state": OrderState.COMPLETED, "closed_at": 5, "ticket": TicketState.WRITTEN},
            set(),
        ),
    ],
)
def test_only_what_makes_sense_is_offered(change: dict, may: set) -> None:
    offered = possible_actions(ROW.replace(**change))
    assert {name for name, yes in offered.items() if yes} == may


@pytest.mark.parametrize("payload", ["", "not json", "[]", "{}"])
def test_an_order_that_cannot_be_read_has_no_lines(payload: str) -> None:
    assert lines_view(ROW.replace(payload=payload)) is None


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_240, "1.2 s"),
        (65_000, "1 min 5 s"),
        (7_800_000, "2 h 10 min"),
        (400_000_000, "4 days"),
    ],
)
def test_a_measurement_is_short(ms: int, text: str) -> None:
    assert short_span(ms) == text


@pytest.mark.parametrize("status", TicketStatus)
def test_news_of_the_kitchen_is_told_in_words(status: TicketStatus) -> None:
    event = f"ticket.{status}"
    assert not sentence(event, {}).startswith(event)


def test_a_rejection_says_why_in_the_tills_own_words_too() -> None:
    told = {"reason": RejectReason.CAPACITY, "message": "oven {by} broken."}
    assert sentence("ticket.rejected", told) == (
        "The kitchen rejected it: the kitchen is too busy; oven {by} broken."
    )
    assert sentence("ticket.rejected", {"reason": "other", "message": ""}) == (
        "The kitchen rejected it."
    )
