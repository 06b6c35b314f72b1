import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.sandbox import bodies, validation
from tillbridge.sandbox.validation import ServiceError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
MODELS: dict[str, validation.Model[Any]] = {
    "signup": bodies.Signup,
    "token": bodies.token_request("scope"),
    "refresh": bodies.Refresh,
    "integrate": bodies.Integrate,
    "settings": bodies.StoreSettings,
    "settings, verbatim": bodies.VerbatimStoreSettings,
    "push": bodies.menu_push,
    "batch": bodies.Batch,
    "availability": bodies.AvailabilityBatch,
    "patch": bodies.ItemPatch,
    "tables": bodies.Tables,
    "cancel": bodies.Cancel,
    "item patch": bodies.CommunityItemPatch,
    "subscribe": bodies.Subscribe,
    "hours": bodies.Hours,
}


class Address(validation.Body):
    u: validation.Url


class Price(validation.Body):
    price: validation.Money


class Note(validation.Body):
    note: validation.Text


class Inner(validation.Body):
    c: bool


class Middle(validation.Body):
    b: list[Inner]


class Outer(validation.Body):
    a: Middle


def parse(value: object, model: validation.Model[Any]) -> dict[str, Any]:
    body: validation.Body = validation.parse(json.dumps(value).encode(), "application/json", model)
    return body.sent()


def refused(raw: bytes, model: validation.Model[Any]) -> ServiceError | None:
    try:
        validation.parse(raw, "application/json", model)
    except ServiceError as error:
        return error
    return None


@given(value=JSON, name=st.sampled_from(sorted(MODELS)))
def test_whatever_arrives_is_taken_or_refused_with_a_named_field(value: object, name: str) -> None:
    refusal = refused(json.dumps(value).encode(), MODELS[name])
    if refusal is not None:
        assert refusal.status == 400
        assert refusal.code in {"request.validation", "request.unknown_field"}
        assert ":" in refusal.message


@given(st.binary())
def test_bytes_that_are_no_json_object_are_a_validation_failure(raw: bytes) -> None:
    refusal = refused(raw, validation.Empty)
    assert refusal is None or refusal.status == 400


@pytest.mark.parametrize("name", sorted(MODELS))
def test_app_id_is_refused_everywhere(name: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        parse({"app_id": "app_123", "grant_type": "authorization_code"}, MODELS[name])
    assert refusal.value.code == "request.unknown_field"
    if name != "token":
        assert refusal.value.message.startswith(("app_id:", "grant_type:"))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_null_is_no_value_of_any_field(name: str) -> None:
    model: Any = MODELS[name]
    for field in getattr(model, "model_fields", bodies.MenusPush.model_fields):
        with pytest.raises(ServiceError) as refusal:
            parse({field: None}, model)
        assert refusal.value.code == "request.validation"


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 10.5])
def test_money_is_a_whole_number_of_minor_units(value: object) -> None:
    with pytest.raises(ServiceError, match=r"^price: must be an integer in minor units"):
        parse({"price": value}, Price)


@pytest.mark.parametrize(
    "value", ["http://127.0.0.1:8088/hook", "https://till.example/a?b=c", "http://[::1]:80/"]
)
def test_absolute_addresses_pass(value: str) -> None:
    assert parse({"u": value}, Address)


@pytest.mark.parametrize("value", ["", "/hook", "till.example", "http://", "http://a:b/", 5, "x:y"])
def test_other_addresses_do_not(value: object) -> None:
    with pytest.raises(ServiceError, match=r"^u: "):
        parse({"u": value}, Address)


def test_the_path_leads_to_the_field() -> None:
    with pytest.raises(ServiceError, match=r"^a\.b\[1\]\.c: must be true or false, not \"no\"$"):
        parse({"a": {"b": [{"c": True}, {"c": "no"}]}}, Outer)


def test_a_deep_body_is_refused_and_not_a_crash() -> None:
    raw = b'{"items": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ServiceError) as refusal:
        validation.parse(raw, "application/json", bodies.AvailabilityBatch)
    assert refusal.value.status == 400


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(ServiceError) as refusal:
        parse({"c": "x" * 10_000}, Inner)
    assert len(refusal.value.message) < 150


@pytest.mark.parametrize("note", ["ice \ud83d", "\udce9", "\ude00\ud83d"])
def test_half_a_character_is_refused_as_the_senders_mistake(note: str) -> None:
    with pytest.raises(ServiceError, match="half a character"):
        parse({"note": note}, Note)


def test_half_a_character_in_bytes_is_refused_too() -> None:
    assert refused(b'{"note": "\xed\xa0\xbd"}', Note) is not None


def test_a_whole_character_in_two_escapes_is_taken() -> None:
    raw = b'{"note": "ice \\ud83d\\ude00"}'
    assert validation.parse(raw, "application/json", Note).sent() == {"note": "ice \U0001f600"}
