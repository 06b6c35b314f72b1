import json

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.model.order import Order, ReasonCode, parse_order
from tillbridge.orders.intake import (
    Findings,
    OnFinding,
    OrderCreated,
    OrderDelivered,
    OtherEvent,
    Prices,
    Unreadable,
    findings,
    in_short,
    named_ids,
    read_event,
    unseen_of,
    verdict,
)

MENU = {
    "soup": (450,),
    "pizza": (900,),
    "pizza-l": (1200,),
    "cheese": (100,),
    "fresh": (500, 550),
}


def order(*lines: dict, currency: str = "USD") -> Order:
    return parse_order({"id": "ord_1", "currency": currency, "items": list(lines)})


def found_in(placed: Order, menu: Prices | None, currency: str) -> Findings:
    return findings(placed, menu, currency) or Findings()


def line(external_id: str | None = "soup", price: int | None = 450, **more: object) -> dict:
    thing = {"product_name": "Thing", "external_id": external_id, "unit_price": price}
    return thing | {"quantity": 1} | more


def test_an_order_of_the_menu_has_no_findings() -> None:
    placed = order(
        line(),
        line("pizza", 1200, variant_external_id="pizza-l", options=[line("cheese", 100)]),
    )
    assert not findings(placed, MENU, "USD")


def test_an_item_the_ledger_does_not_know_is_found() -> None:
    found = found_in(order(line("lobster", 9900)), MENU, "USD")
    assert found.unknown_items == ("Thing (lobster)",)
    assert found.prices == ()


def test_a_line_or_an_option_without_an_id_is_found() -> None:
    found = found_in(order(line(None, 450), line(options=[line(None, 100)])), MENU, "USD")
    assert found.unknown_items == ("Thing (no external_id)",) * 2


def test_another_price_than_the_menu_had_is_found() -> None:
    found = found_in(order(line(price=400)), MENU, "USD")
    assert found.prices == ("Thing (soup) was ordered for 4.00, the menu said 4.50",)


def test_the_variants_price_counts_where_there_is_one() -> None:
    found = found_in(order(line("pizza", 900, variant_external_id="pizza-l")), MENU, "USD")
    assert len(found.prices) == 1


def test_an_options_price_is_compared_too() -> None:
    assert found_in(order(line(options=[line("cheese", 90)])), MENU, "USD").prices


def test_around_a_change_either_price_is_right() -> None:
    assert not findings(order(line("fresh", 500), line("fresh", 550)), MENU, "USD")


def test_a_price_that_is_not_told_is_not_compared() -> None:
    assert not findings(order(line(price=None)), MENU, "USD")


def test_a_fresh_ledger_finds_nothing() -> None:
    assert not findings(order(line("lobster", 1)), None, "USD")


def test_another_currency_is_found_even_so() -> None:
    found = found_in(order(line(), currency="EUR"), None, "USD")
    assert (found.currency, found.prices) == ("EUR", ())
    assert unseen_of(found, "USD", 5) == {
        "order.other_currency": {"at": 5, "theirs": "EUR", "ours": "USD"}
    }
    failed = verdict(found, "write_and_warn", "cancel")
    assert failed is not None
    assert failed.code is ReasonCode.PRICE_MISMATCH


def test_the_policy_decides() -> None:
    found = Findings(unknown_items=("a",), prices=("b",))
    write: OnFinding = "write_and_warn"
    cancel: OnFinding = "cancel"
    assert verdict(found, write, write) is None
    unknown = verdict(found, cancel, cancel)
    assert unknown is not None
    assert unknown.code is ReasonCode.ITEM_OUT_OF_STOCK
    prices = verdict(found, write, cancel)
    assert prices is not None
    assert prices.code is ReasonCode.PRICE_MISMATCH
    assert verdict(Findings(), cancel, cancel) is None


def test_many_findings_are_told_in_short() -> None:
    assert in_short(("a", "b", "c")) == "a (and 2 more)"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
lines = st.fixed_dictionaries(
    {},
    optional={
        "external_id": json_values,
        "variant_external_id": json_values,
        "unit_price": st.integers() | json_values,
        "product_name": json_values,
        "options": json_values,
    },
)


@given(st.lists(lines))
def test_no_order_is_too_odd_to_be_checked(odd: list[dict]) -> None:
    placed = parse_order({"id": "ord_1", "items": odd})
    found = found_in(placed, MENU, "USD")
    for phrase in (*found.unknown_items, *found.prices):
        assert phrase.isprintable()
    for external_id in named_ids(placed):
        external_id.encode()


def body(envelope: object = None, **more: object) -> bytes:
    return json.dumps(more or envelope).encode()


def test_an_order_is_read_out_of_its_event() -> None:
    event = read_event("order.created", body(data={"id": "ord_1", "x": "ř"}))
    assert isinstance(event, OrderCreated)
    assert event.order.id == "ord_1"
    assert json.loads(event.payload) == {"id": "ord_1", "x": "ř"}


def test_the_delivered_order_is_found_wherever_its_id_stands() -> None:
    for data in (
        {"id": "ord_1"},
        {"order_id": "ord_1"},
        {"order": {"id": "ord_1"}},
        {"order": {"order_id": "ord_1"}},
    ):
        assert read_event("order.delivered", body(data=data)) == OrderDelivered("ord_1")


def test_other_events_change_nothing() -> None:
    assert read_event("store.status_changed", b"whatever") == OtherEvent()


@given(st.sampled_from(["order.created", "order.delivered"]), st.binary() | json_values.map(body))
def test_reading_an_event_never_fails(event_type: str, raw: bytes) -> None:
    read_event(event_type, raw)


@given(st.sampled_from(["order.created", "order.delivered"]), json_values)
def test_reading_odd_data_never_fails(event_type: str, data: object) -> None:
    read_event(event_type, body(data=data, event_type=event_type))


def test_an_id_that_no_file_or_database_could_hold_is_unreadable() -> None:
    raw = b'{"data": {"id": "ord_\\ud800"}}'
    assert isinstance(read_event("order.created", raw), Unreadable)
    assert isinstance(read_event("order.delivered", raw), Unreadable)
