"""Taking known texts out of others: whatever they are, and however they are written."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core import redaction
from tillbridge.core.redaction import KnownTexts, parts_of_secret
from tillbridge.diagnostics.known import Scrubber, personal_of, pieces_of


@pytest.fixture(autouse=True, scope="module")
def _nothing_learnt() -> Iterator[None]:
    """What other tests have made the program learn is not masked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_known", KnownTexts())
        yield


LONG = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=8
)


@given(LONG, st.text(max_size=20), st.text(max_size=20))
def test_a_secret_is_gone_wherever_it_stands(secret: str, before: str, after: str) -> None:
    scrub = Scrubber([secret])
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1]):
        assert form.lower() not in scrub.known(f"{before} {form} {after}").lower()


@given(LONG, st.binary(max_size=9), st.binary(max_size=9))
def test_a_secret_is_gone_from_whatever_was_encoded_with_it(
    secret: str, before: bytes, after: bytes
) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        coded = encode(before + secret.encode() + after).decode()
        shown = Scrubber([secret]).known(coded)
        assert shown != coded
        assert "[secret]" in shown


@given(LONG, st.lists(LONG), st.lists(LONG))
def test_to_know_where_they_may_stand_changes_nothing_but_the_price(
    name: str, others: list[str], told: list[str]
) -> None:
    data = base64.b64encode(name.encode()).decode()
    value = {"said": [*told, f"x {name} y", quote(name), {"deep": data}], name: 5}
    everything = [name, *others, *told[:2]]
    known = Scrubber(personal=everything, among=pieces_of([value]))
    assert known.value(value) == Scrubber(personal=everything).value(value)


@given(st.text(), st.lists(LONG))
def test_a_text_without_a_secret_stays_as_it_is(text: str, secrets: list[str]) -> None:
    assert Scrubber().known(text) == text
    assert Scrubber(each for each in secrets if each not in text).known("plain") == "plain"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the till of Till", "the till of Till"),
        ("tilly", "tilly"),
        ("Anna has ordered", "[personal] has ordered"),
        ("ANNA", "[personal]"),
        ("Susanna", "Susanna"),
        ("Anna-Lena", "[personal]-Lena"),
    ],
)
def test_a_short_name_is_taken_out_as_a_word_only(text: str, shown: str) -> None:
    assert Scrubber(personal=["Anna", "Ann"]).known(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "ord_01HZX3Y7KQ2W9V8T6R5P4N3M2L in store main",
        "550e8400-e29b-41d4-a716-446655440000",
        "a" * 64,
        "2026-11-21T19:02:00.000Z",
        "tillbridge.pos.folder:ADAPTER",
        "https://ordering.example.com/v2/pos/orders?limit=5",
        "export.unreadable: line 12, column 3",
        "http://127.0.0.1:8088/webhooks/main",
        "public_address.unreachable since 1800000000000",
    ],
)
def test_what_helps_and_opens_nothing_stays(text: str) -> None:
    assert Scrubber().text(text) == text


def test_values_keep_their_shape() -> None:
    scrub = Scrubber(["s3cret-value", "739105"], ["Anna Berg"])
    told = {
        "n": 739105,
        "m": 5,
        "ok": True,
        "none": None,
        "half": 0.5,
        "s3cret-value": ["Anna Berg"],
    }
    assert scrub.value(told) == {
        "n": "[secret]", "m": 5, "ok": True, "none": None, "half": 0.5, "[secret]": ["[personal]"],
    }  # fmt: skip


def test_an_address_is_secret_whole_and_in_its_parts() -> None:
    parts = set(parts_of_secret("https://u%40x:p%2Fw@hooks.example.net/services/T00x9K/a?k=abc123"))
    assert {"u@x", "p/w", "u%40x:p%2Fw", "T00x9K", "abc123"} <= parts
    assert not parts & {"services", "hooks.example.net", "a"}


def test_of_an_order_what_the_customer_told_is_personal_and_the_dishes_are_not() -> None:
    order = {
        "id": "ord_1",
        "customer": {"name": "Anna Berg", "phone": 15558675309, "country": "US"},
        "special_instructions": "no onions\nring twice",
        "items": [{"product_name": "Pizza", "options": [{"special_instructions": "well done"}]}],
    }
    found = personal_of(order)
    assert {"Anna Berg", "15558675309", "no onions", "ring twice", "well done"} <= found
    assert not found & {"Pizza", "US", "ord_1"}
