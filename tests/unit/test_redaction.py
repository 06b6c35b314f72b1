"""Secrets are masked by name, by value and by form, wherever they stand."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core import redaction
from tillbridge.core.redaction import (
    MASK,
    learn_secret,
    leaves,
    masked,
    masked_field,
    masked_traceback,
    masked_value,
)

pytestmark = pytest.mark.usefixtures("forgetful")
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.fixture(scope="module")
def forgetful() -> Iterator[None]:
    """Forget what was learnt here: "000000" would be masked in every text of later tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_known", redaction.KnownTexts())
        patch.setattr(redaction, "_learnt", redaction._learnt.copy())
        yield


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "client_secret",
        "webhook_secret",
        "refresh_token",
        "access_token",
        "Authorization",
        "X-Service-Signature",
        "password",
        "cookie",
        "api_key",
        "secrets",
    ],
)
def test_a_field_named_for_a_secret_is_masked(name: str) -> None:
    assert masked_field(name, "anything") == MASK
    assert masked_field(name, ["anything"]) == MASK
    assert masked_value({"outer": [{name: "anything"}]}) == {"outer": [{name: MASK}]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token_type", "Bearer"),
        ("token_expires_at", "2026-11-21T19:02:00.000Z"),
        ("code", "auth.token_expired"),
        ("code", "ITEM_OUT_OF_STOCK"),
        ("reason_code", "OTHER"),
        ("tokens", 3),
        ("order", "ord_123"),
        ("secret_missing", "integration.secret_missing"),
    ],
)
def test_what_only_sounds_secret_is_shown(name: str, value: object) -> None:
    assert masked_field(name, value) == value


def test_an_authorization_code_is_masked() -> None:
    assert masked_field("code", "SplxlOBeZQQYbYS6WxSbIA") == MASK


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-ghi", f"Authorization: Bearer {MASK}"),
        ("sent Basic YXBwOnNlY3JldA==", f"sent Basic {MASK}"),
        (f"token was {JWT}!", f"token was {MASK}!"),
        ("client_secret=hush&grant_type=x", f"client_secret={MASK}&grant_type=x"),
        (
            '{"refresh_token": "hush", "expires_in": 3}',
            f'{{"refresh_token": "{MASK}", "expires_in": 3}}',
        ),
        ("{'webhook_secret': 'hush'}", f"{{'webhook_secret': '{MASK}'}}"),
        ('"{\\"access_token\\":\\"hush\\"}"', f'"{{\\"access_token\\":\\"{MASK}\\"}}"'),
        ("GET /cb?code=abc&state=def HTTP", f"GET /cb?code={MASK}&state={MASK} HTTP"),
        ("X-Service-Signature: " + "ab" * 32, f"X-Service-Signature: {MASK}"),
        ("auth.token_expired: the token has expired", "auth.token_expired: the token has expired"),
        ("ord_123 accepted", "ord_123 accepted"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@given(st.text(min_size=6, max_size=40).filter(lambda text: text.strip() == text))
def test_a_learnt_secret_is_masked_wherever_it_stands(secret: str) -> None:
    learn_secret(secret)
    shown = str(masked_value({"a": [f"before {secret} after", secret.encode("utf-8", "ignore")]}))
    assert secret not in shown.replace(MASK, "") or secret in "{'a': ['before  after', '']}"


def test_a_learnt_secret_is_masked_as_urls_and_base64_write_it() -> None:
    learn_secret("p@ss word/with=signs")
    assert masked("x=p%40ss%20word%2Fwith%3Dsigns") == f"x={MASK}"
    assert MASK in masked("cEBzcyB3b3JkL3dpdGg9c2lnbnM=")


def test_a_short_text_is_not_learnt() -> None:
    learn_secret("main")
    assert masked("the main store") == "the main store"


def fails(secret: str) -> None:
    raise ValueError(f"wrong: {secret}")


def test_a_traceback_is_masked_and_holds_no_locals() -> None:
    planted = f"planted{'-in-' * 2}traceback"  # so that no line of the source shows it
    learn_secret(planted)
    with pytest.raises(ValueError, match="wrong") as caught:
        fails(planted)
    shown = masked_traceback(caught.value)
    assert "Traceback" in shown
    assert planted not in shown
    assert f"ValueError: wrong: {MASK}" in shown


def test_an_endless_value_ends() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert masked_value(endless)


def test_leaves_have_the_names_around_them_and_no_name_is_lost() -> None:
    value = {"a": [{"b": 1}, "c"], "d": {}, "e": [None, []]}
    assert list(leaves(value)) == [
        (("a", "b"), 1),
        (("a",), "c"),
        (("d",), ""),
        (("e",), None),
        (("e",), ""),
    ]
