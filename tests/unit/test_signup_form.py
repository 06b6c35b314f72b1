import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.service.oauth import SignupAddress, SignupRequest, signup_body
from tillbridge.stores.consent import FIELDS, fault_of, faults_of, missing, request_of

FULL = {
    "store-name": "Trattoria  Sant'Ambrogio",
    "email": "anna@example.com",
    "first-name": "Anna",
    "last-name": "Rossi",
    "phone": "+39 (02) 123.45-67",
    "street": "Via Roma 1",
    "city": "Milano",
    "state": "MI",
    "zip": "20121",
    "country": "IT",
    "locale": "it_it",
}


def test_a_form_becomes_the_specifications_request() -> None:
    wanted = request_of(FULL, location_id="loc-1", flow_type="signup")
    assert wanted == SignupRequest(
        email="anna@example.com",
        store_name="Trattoria Sant'Ambrogio",
        location_id="loc-1",
        first_name="Anna",
        last_name="Rossi",
        business_phone="+39021234567",
        address=SignupAddress("Via Roma 1", "Milano", "MI", "IT", "20121"),
        locale="it-IT",
        flow_type="signup",
    )


def test_what_is_not_said_is_not_sent() -> None:
    wanted = request_of({"store-name": "Bar", "email": "a@b.example"}, location_id="", flow_type="")
    assert signup_body(wanted, redirect_uri="http://127.0.0.1/cb", state="s") == {
        "email": "a@b.example",
        "store_name": "Bar",
        "redirect_uri": "http://127.0.0.1/cb",
        "state": "s",
    }


def test_the_whole_body_has_the_specifications_names() -> None:
    body = signup_body(
        request_of(FULL, location_id="loc-1", flow_type="login"), redirect_uri="http://r", state="s"
    )
    assert body["address"] == {
        "street_address": "Via Roma 1",
        "city": "Milano",
        "state": "MI",
        "country": "IT",
        "zip": "20121",
    }
    assert body.keys() == {
        "location_id",
        "store_name",
        "email",
        "first_name",
        "last_name",
        "business_phone",
        "address",
        "locale",
        "redirect_uri",
        "state",
        "flow_type",
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "anna"),
        ("email", "anna@example"),
        ("email", "anna@@example.com"),
        ("email", "Anna <anna@example.com>"),
        ("phone", "02 1234567"),
        ("phone", "+0 1234567"),
        ("phone", "+39 12"),
        ("phone", "+39 02 1234567 ext 4"),
        ("locale", "italian"),
        ("locale", "en-USA"),
        ("store-name", "x" * 201),
        ("city", "Mila\x07no"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_write(field: str, value: str) -> None:
    fault = fault_of(field, value)
    assert fault is not None
    assert fault.field == field
    assert fault.fix


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "anna.rossi+web@mail.example.co.uk"),
        ("phone", "0039 02 1234567"),
        ("phone", "+1 (415) 555-0100"),
        ("locale", "en"),
        ("locale", "zh-Hant-TW"),
        ("locale", "es-419"),
        ("first-name", ""),
    ],
)
def test_what_people_write_is_taken(field: str, value: str) -> None:
    assert fault_of(field, value) is None


def test_required_fields_are_named_together() -> None:
    assert missing({}) == ("store-name", "email")
    assert missing({"email": " ", "store-name": "Bar"}) == ("email",)


@given(st.dictionaries(st.sampled_from([each.name for each in FIELDS]), st.text(max_size=40)))
def test_no_text_breaks_the_check_and_a_right_form_is_always_sendable(
    values: dict[str, str],
) -> None:
    if not faults_of(values):
        body = signup_body(
            request_of(values, location_id="l", flow_type=""), redirect_uri="r", state="s"
        )
        assert all(body.values())
        assert all(body.get("address", {"": "x"}).values())
