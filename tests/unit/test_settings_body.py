"""What of the store's settings is sent: the camelCase body, and only what changed of it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.config.restaurant import Address, DeliveryTerms, Restaurant
from tillbridge.model.restaurant import Span
from tillbridge.stores.settings import changed_part, no_longer_given, settings_body

FULL = Restaurant(
    name="Trattoria",
    description="",
    image="https://www.example.com/a.jpg",
    phone="+39 02 1234",
    email="info@example.net",
    address=Address(street="Via Manzoni 1", city="Milano", state="MI", country="IT", zip="20121"),
    # As it is read, with amounts in minor units.
    delivery=DeliveryTerms.model_construct(enabled=False, minimum=1500, fee=0, radius_km="4.5"),
    pass_through={"acceptsScheduledOrders": True, "address": {"floor": 2}},
)
WEEK = ((), (Span(720, 870),), (), (), (), (Span(1110, 1440),), ())


def test_the_restaurants_words_become_the_services() -> None:
    assert settings_body(FULL, WEEK) == {
        "name": "Trattoria",
        "description": "",
        "imageUrl": "https://www.example.com/a.jpg",
        "address": {
            "street_address": "Via Manzoni 1",
            "city": "Milano",
            "state": "MI",
            "country": "IT",
            "zip": "20121",
            "floor": 2,
        },
        "deliverySettings": {
            "enabled": False,
            "min_order_amount": 1500,
            "delivery_fee": 0,
            "radius_km": 4.5,
        },
        "contactDetails": {"phone": "+39 02 1234", "email": "info@example.net"},
        "availability": {
            "monday": [],
            "tuesday": [{"open": "12:00", "close": "14:30"}],
            "wednesday": [],
            "thursday": [],
            "friday": [],
            "saturday": [{"open": "18:30", "close": "24:00"}],
            "sunday": [],
        },
        "acceptsScheduledOrders": True,
    }


def test_what_is_left_open_is_not_sent() -> None:
    assert settings_body(Restaurant(), None) == {}
    assert settings_body(None, None) == {}
    assert settings_body(Restaurant(phone="+39 02 1234"), None) == {
        "contactDetails": {"phone": "+39 02 1234"}
    }


def test_a_days_end_is_written_as_the_service_wants_it() -> None:
    body = settings_body(None, WEEK, end_of_day="23:59")
    assert body["availability"]["saturday"] == [{"open": "18:30", "close": "23:59"}]


def test_what_is_no_longer_given_is_known() -> None:
    before = settings_body(FULL, WEEK)
    after = settings_body(Restaurant(name="Trattoria", phone="+39 02 1234"), WEEK)
    assert set(no_longer_given(after, before)) == {
        "description",
        "imageUrl",
        "address",
        "deliverySettings",
        "contactDetails.email",
        "acceptsScheduledOrders",
    }


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from("abcdef"), values)


@given(bodies, st.none() | bodies)
def test_sending_what_changed_brings_the_service_in_line(
    body: dict[str, Any], accepted: dict[str, Any] | None
) -> None:
    part = changed_part(body, accepted)
    now = {**(accepted or {}), **part}
    assert all(now[key] == value for key, value in body.items())
    assert changed_part(body, now) == {}
    before = accepted or {}
    assert all(
        key not in before or json.dumps(before[key]) != json.dumps(value)
        for key, value in part.items()
    )


def test_true_is_not_one() -> None:
    assert changed_part({"toggle": True}, {"toggle": 1}) == {"toggle": True}
