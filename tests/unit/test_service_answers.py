"""What the service answers, and the failure that each answer is."""

import json
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    OutcomeUnknown,
    RateLimited,
    Refused,
    ServiceDown,
    ServiceError,
    Unauthorised,
)
from tillbridge.model.community import (
    ChildOrder,
    DeliveryAttempt,
    ParentOrder,
    Record,
    Subscription,
)
from tillbridge.model.instant import from_iso
from tillbridge.service import types
from tillbridge.service.answers import Kind, failure_of, problem_of, retry_after_s
from tillbridge.service.transport import encode, parse_json
from tillbridge.service.types import UNREADABLE

NOW = from_iso("2026-11-21T12:00:00Z")


def parsed(raw: bytes) -> object:
    """The body as the transport hands it on: nothing where it is no JSON."""
    try:
        return parse_json(raw)
    except ValueError:
        return None


def failed(status: int, code: str = "", *, kind: Kind = Kind.WRITE, **headers: str) -> ServiceError:
    raw = json.dumps({"error": {"code": code, "message": "said"}}).encode()
    return failure_of(status, parsed(raw), headers, operation="x", kind=kind, now_ms=NOW)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "request.validation", Refused),
        (401, "auth.token_expired", Unauthorised),
        (401, "auth.invalid_token", Unauthorised),
        (401, "auth.invalid_client", Refused),
        (403, "auth.consent_revoked", ConsentLost),
        (403, "menu.push_not_allowed", Refused),
        (404, "store.not_integrated", Refused),
        (409, "integration.already_exists", Conflict),
        (418, "tea.pot", Refused),
        (422, "new.code", Refused),
        (429, "rate.limited", RateLimited),
        (500, "internal.error", ServiceDown),
        (502, "menu.forward_failed", ServiceDown),
        (503, "new.code", ServiceDown),
        (504, "", OutcomeUnknown),
        (524, "", OutcomeUnknown),
        (302, "", Refused),
    ],
)
def test_each_status_is_one_kind_of_failure(status: int, code: str, kind: type) -> None:
    failure = failed(status, code)
    assert type(failure) is kind
    assert failure.code == code or status == 429
    assert failure.status == status


def test_a_504_on_a_read_has_changed_nothing() -> None:
    assert type(failed(504, kind=Kind.READ)) is ServiceDown


@given(status=st.integers(300, 599), raw=st.binary(max_size=200), kind=st.sampled_from(Kind))
def test_no_body_is_too_odd(status: int, raw: bytes, kind: Kind) -> None:
    failure = failure_of(status, parsed(raw), {}, operation="x", kind=kind, now_ms=NOW)
    assert failure.status == status


@pytest.mark.parametrize(
    "raw", [b"<html>", b"[]", b'{"error": "no"}', b'{"error": {"code": 7}}', b"[" * 100_000]
)
def test_a_body_without_an_envelope_leaves_the_status_to_decide(raw: bytes) -> None:
    failure = failure_of(404, parsed(raw), {}, operation="x", kind=Kind.READ, now_ms=NOW)
    assert type(failure) is Refused
    assert failure.code == ""


def test_a_strangers_message_is_one_short_line() -> None:
    raw = json.dumps({"error": {"code": "a.b", "message": "x\n\x1b[31m" + "y" * 9999}}).encode()
    failure = failure_of(400, parsed(raw), {}, operation="x", kind=Kind.READ, now_ms=NOW)
    assert len(failure.text) < 400
    assert failure.text.isprintable()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "nan"}, 1),
        ({"Retry-After": "soon"}, 1),
        ({}, 1),
        ({"Retry-After": "9" * 30}, 86400),
        ({"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30),
        ({"Retry-After": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0),
        (
            {
                "Retry-After": "Sat, 21 Nov 2026 17:00:09 GMT",
                "Date": "Sat, 21 Nov 2026 17:00:00 GMT",
            },
            9,
        ),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_s(headers, now_ms=NOW) == seconds


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (failed(503), "service.unreachable"),
        (failed(504), "service.unreachable"),
        (failed(401, "auth.invalid_client"), "service.bad_client"),
        (failed(403, "auth.consent_revoked"), "consent.revoked"),
        (ConsentLost("x", code="auth.invalid_grant"), "consent.expired"),
        (ConsentLost("x", code="consent.missing"), "consent.missing"),
        (failed(404, "store.not_integrated"), "integration.missing"),
        (failed(403, "menu.push_not_allowed"), "menu.push_not_allowed"),
        (failed(400, "request.validation"), None),
    ],
)
def test_a_failure_is_the_problem_a_person_sees(failure: ServiceError, problem: str | None) -> None:
    assert problem_of(failure) == problem


def test_unknown_fields_are_ignored_and_missing_ones_are_none() -> None:
    integration = types.read(types.Integration, {"status": "active", "new": [1]}, "x")
    assert integration == types.Integration(store_id=None, status="active")


odd_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def bodies_of(*kinds: type, more: tuple[str, ...] = ("new",)) -> st.SearchStrategy[dict[str, Any]]:
    """Anything at all in the fields that these kinds of answer have."""
    names = {each.name for kind in kinds for each in fields(kind)}
    return st.dictionaries(st.sampled_from(sorted(names | set(more))), odd_values)


@given(bodies_of(types.Store))
def test_whatever_a_service_puts_into_its_fields_only_what_is_needed_can_be_missing(
    body: dict[str, Any],
) -> None:
    for kind in (types.Integration, types.TaxConfig, types.MenuStatus, types.BatchResult):
        types.read(kind, body, "x")
    assert types.read(types.Store, {**body, "store_id": 7}, "x").store_id == "7"


@given(
    bodies_of(ParentOrder, Subscription, DeliveryAttempt, more=("new", "child_orders")),
    bodies_of(ChildOrder),
)
def test_whatever_a_service_puts_into_a_communitys_answers_only_ids_can_be_missing(
    body: dict[str, Any], child: dict[str, Any]
) -> None:
    types.read(DeliveryAttempt, body, "x")
    assert types.read(Subscription, {**body, "webhook_id": 7}, "x").webhook_id == "7"
    children = [{**child, "order_id": "ord_c"}, None, "odd"]
    whole = {**body, "order_id": "ord_1", "status": "new", "child_orders": children}
    order = types.read(ParentOrder, whole, "x")
    assert (order.order_id, [each.order_id for each in order.children]) == ("ord_1", ["ord_c"])
    assert order.body == whole


@given(st.dictionaries(st.sampled_from(["available", "price", "snoozed_until"]), odd_values))
def test_a_record_of_a_catalogue_shows_what_can_be_read_and_none_otherwise(
    body: dict[str, Any],
) -> None:
    record = Record("item", "prd_1", "st_1", "Tea", body)
    assert record.available in {True, False, None}
    assert record.price is None or record.price == body["price"]
    assert record.snoozed_until is None or isinstance(record.snoozed_until, str)


def test_a_communitys_answer_says_what_it_lacks_and_a_subscription_may_say_id() -> None:
    assert types.read(Subscription, {"id": "wh_1", "events": ["a", 1]}, "x") == Subscription(
        "wh_1", events=("a",)
    )
    for kind, body, lacks in (
        (Subscription, {"name": "Till"}, "webhook_id"),
        (ParentOrder, {"order_id": "ord_1"}, "status"),
        (ParentOrder, {"order_id": "o", "status": "new", "child_orders": [{}]}, "order_id"),
        (ParentOrder, {"order_id": None, "status": "new"}, "order_id"),
    ):
        with pytest.raises(Refused) as refused:
            types.read(kind, body, "x")
        assert f"it has no {lacks}" in str(refused.value)
        assert refused.value.code == UNREADABLE


def test_what_is_missing_is_named_also_deep_inside() -> None:
    with pytest.raises(Refused) as refused:
        types.read(types.Store, {"store_id": ""}, "stores.list")
    assert "it has no store_id" in str(refused.value)


@pytest.mark.parametrize("body", [None, [], "text", 7, {}])
def test_an_answer_without_what_is_needed_is_unreadable(body: object) -> None:
    with pytest.raises(Refused) as refused:
        types.read_job(body, "menus.job")
    assert refused.value.code == UNREADABLE
    assert "menus.job" in str(refused.value)


def test_a_push_is_done_or_accepted() -> None:
    data = {"items": 3, "menus": 1}
    done = types.read_push({"status": "partial", "data": data}, status=200, operation="x")
    assert done == types.PushDone("partial", counts=types.PushCounts(menus=1, items=3))
    accepted = types.read_push(
        {"status": "accepted", "job_id": "job_1", "poll_url": "/pos/x"}, status=202, operation="x"
    )
    assert accepted == types.PushAccepted("job_1", "/pos/x")


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": "a.b", "message": "bad item"}},
        {"error": "bad item"},
        {"message": "bad item"},
        {"result": {"error": {"message": "bad item"}}},
    ],
)
def test_a_failed_job_tells_its_error_wherever_it_stands(error: dict[str, Any]) -> None:
    job = types.read_job({"job_id": "job_1", "status": "failed"} | error, "x")
    assert job.ended
    assert job.message == "bad item"


def test_a_job_status_nobody_has_seen_still_runs() -> None:
    assert not types.read_job({"job_id": "job_1", "status": "queued"}, "x").ended


def test_a_tax_rate_is_decimal_text() -> None:
    body = {"taxes": [{"components": [{"rate": Decimal("8.250")}, {"rate": 5}]}]}
    taxes = types.read(types.TaxConfig, body, "x").taxes
    assert [part.rate for part in taxes[0].components] == ["8.250", "5"]


def test_no_secret_shows_in_a_repr() -> None:
    tokens = types.Tokens("s3cret-a", "s3cret-r", 1, 2)
    made = types.IntegrationWithSecret(types.Integration("st_1"), "s3cret-w")
    assert "s3cret" not in f"{tokens!r} {made!r}"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)


@given(values)
def test_bodies_are_encoded_whatever_is_in_them(value: object) -> None:
    assert json.loads(encode(value)) == value
