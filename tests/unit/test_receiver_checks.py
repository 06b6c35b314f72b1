"""Signatures, envelopes and which secrets count."""

import hmac
import json
import string
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.ledger.vault import WebhookSecret, counting, webhook_secrets
from tillbridge.receiver.deliveries import (
    Endpoint,
    Envelope,
    NotAnEnvelope,
    _looks_real,
    read_envelope,
    signer_of,
)

if TYPE_CHECKING:
    from tillbridge.ledger.vault import Vault


def signature(body: bytes, secret: bytes) -> str:
    return hmac.new(secret, body, "sha256").hexdigest()


texts = st.text(st.characters(codec="utf-8"), min_size=1)


def known(*secrets: str) -> list[WebhookSecret]:
    return [WebhookSecret(each, since_ms=0) for each in secrets]


@given(body=st.binary(), secrets=st.lists(texts, min_size=1, max_size=3, unique=True))
def test_each_of_the_secrets_signs(body: bytes, secrets: list[str]) -> None:
    for secret in secrets:
        signer = signer_of(body, signature(body, secret.encode()), known(*secrets))
        assert signer is not None
        assert signer.secret == secret


@given(body=st.binary(), header=st.text(), secrets=st.lists(texts, max_size=2))
def test_nothing_else_is_a_signature(body: bytes, header: str, secrets: list[str]) -> None:
    assert signer_of(body, header, known(*secrets)) is None


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: " " + text,
        lambda text: "sha256=" + text,
        lambda text: "",
        lambda text: "\udcff" + text[1:],
        lambda text: "ä" * 64,
    ],
)
def test_a_header_that_is_almost_right_is_wrong(change: Callable[[str], str]) -> None:
    body, secret = b"{}", "a secret whose digest has letters"
    right = signature(body, secret.encode())
    assert set(right) & set(string.ascii_lowercase)
    assert signer_of(body, change(right), known(secret)) is None


def test_without_a_secret_nothing_is_signed() -> None:
    assert signer_of(b"", signature(b"", b""), ()) is None


def event(**changed: object) -> bytes:
    fields = {"event_type": "order.created", "event_id": "evt_1", "data": {}, **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not ...}).encode()


def test_an_envelope_may_hold_more_and_other_kinds_than_are_known() -> None:
    body = event(event_type="unheard.of", store_id="st_1", location_id=17, more=[1], data=None)
    assert read_envelope(body) == Envelope(
        event_type="unheard.of", event_id="evt_1", store_id="st_1", location_id="17", data=None
    )
    assert read_envelope(b"\xef\xbb\xbf" + event()) == read_envelope(event())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe{}",
        event() + b"x",
        event(data=...),
        event(event_id=...),
        event(event_id=""),
        event(event_id=7),
        event(event_id=None),
        event(event_id="e" * 600),
        event(event_id="half \ud800"),
        event(event_type=...),
        event(event_type=["x"]),
        event().replace(b"{}", b"NaN"),
        event().replace(b"{}", b"9" * 5000),
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda body: repr(body[:40]),
)
def test_what_is_no_envelope_is_told_without_its_content(body: bytes) -> None:
    with pytest.raises(NotAnEnvelope) as failure:
        read_envelope(body)
    assert "evt_1" not in str(failure.value)
    assert failure.value.__cause__ is None


@given(st.binary())
def test_any_bytes_are_an_envelope_or_refused(body: bytes) -> None:
    try:
        read_envelope(body)
    except NotAnEnvelope:
        return
    raise AssertionError(body)


DAY_MS = 24 * 3600 * 1000
NEW, OLD, OLDER = (WebhookSecret(name, at) for name, at in (("c", 1000), ("b", 500), ("a", 0)))
ENDED = WebhookSecret("c", 1000, ended_ms=2000)


@pytest.mark.parametrize(
    ("secrets", "now", "count"),
    [
        ((), 0, ()),
        ((NEW,), 10 * DAY_MS, (NEW,)),
        ((NEW, OLD, OLDER), 1001, (NEW, OLD, OLDER)),
        ((NEW, OLD, OLDER), 499 + DAY_MS, (NEW, OLD, OLDER)),
        ((NEW, OLD, OLDER), 999 + DAY_MS, (NEW, OLD)),
        ((NEW, OLD, OLDER), 1000 + DAY_MS, (NEW,)),
        ((NEW, OLD), 0, (NEW, OLD)),  # the clock was set back
        ((ENDED, OLD), 999 + DAY_MS, (ENDED, OLD)),
        ((ENDED, OLD), 1999 + DAY_MS, (ENDED,)),
        ((ENDED, OLD), 2000 + DAY_MS, ()),
    ],
)
def test_a_secret_counts_for_a_day_after_it_was_replaced_or_ended(
    secrets: tuple[WebhookSecret, ...], now: int, count: tuple[WebhookSecret, ...]
) -> None:
    assert counting(secrets, now, old_secret_s=24 * 3600) == count


@given(now=st.integers(0, 10_000))
def test_with_no_time_for_old_secrets_only_the_newest_counts(now: int) -> None:
    assert counting((NEW, OLD, OLDER), max(now, 1000), old_secret_s=0) == (NEW,)


def test_secrets_come_out_of_the_vault_and_an_empty_one_never_counts() -> None:
    stored = [{"secret": "b", "since_ms": 5}, {"secret": "", "since_ms": 3}]
    vault = cast("Vault", {"s/webhook_secrets": json.dumps(stored)})
    assert webhook_secrets(vault, "s") == (WebhookSecret("b", 5),)
    assert webhook_secrets(cast("Vault", {}), "s") == ()


@pytest.mark.parametrize(
    ("body", "is_real"),
    [
        (b'{"event_type": "x", "event_id": "e", "store_id": "st_1", "data": {}}', True),
        (b'{"event_type": "x", "event_id": "e", "community_id": "com_1", "data": {}}', True),
        (b'{"event_type": "x", "event_id": "e", "store_id": "st_2", "data": {}}', False),
        (b'{"event_type": "x", "event_id": "e", "data": {}}', False),  # anybody may leave it out
        (b"not json", False),
    ],
)
def test_only_who_knows_the_stores_id_looks_like_the_service(body: bytes, is_real: bool) -> None:
    store, community = Endpoint((), store_id="st_1"), Endpoint((), community_id="com_1")
    assert (_looks_real(body, store) or _looks_real(body, community)) is is_real
    assert _looks_real(body, Endpoint(())) is False


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b"[]", "the body is not an object"),
        (b"{", "the body is not JSON"),
        (b'{"event_type": "x"}', "the field event_id is missing or no text"),
    ],
)
def test_the_log_says_what_is_wrong_with_an_envelope(body: bytes, wrong: str) -> None:
    with pytest.raises(NotAnEnvelope) as caught:
        read_envelope(body)
    assert str(caught.value) == wrong
