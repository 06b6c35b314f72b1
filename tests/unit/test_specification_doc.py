"""docs/specification.md has a row for all of the specification, and each row what it promises."""

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from tillbridge.service.client import ServiceClient
from tillbridge.service.community_calls import CommunityCalls

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/specification.md").read_text("utf-8")
CODE = re.compile(r"\[`([\w.]+)`\]\(\.\./(src/[\w/]+\.py)\)")
TEST = re.compile(r"\[([\w ]+)\]\(\.\./(tests/[\w/]+\.py)\)")
ROWS = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ")
    and not line.startswith(("| endpoint ", "| what ", "| status ", "| code "))
]

# The specification's own lists: a row that is removed is missed.
ENDPOINTS = """
POST /pos/signup_url
GET /oauth2/authorize
POST /oauth2/token
POST /oauth2/refresh
GET /pos/stores
POST /pos/integrate-store/{store_id}
GET /pos/integrations/{store_id}
PUT /pos/integrations/{store_id}
DELETE /pos/integrations/{store_id}
PUT /pos/stores/{store_id}/settings
PUT /pos/stores/{store_id}/status
GET /pos/stores/{store_id}/tax-config
POST /pos/stores/{store_id}/menus
GET /pos/stores/{store_id}/menus/jobs/{job_id}
GET /pos/stores/{store_id}/menus/status
POST /pos/stores/{store_id}/menus/batch
POST /pos/stores/{store_id}/items/availability
PATCH /pos/stores/{store_id}/items/{ext_item_id}
POST /pos/stores/{store_id}/tables
POST /pos/orders/{order_id}/accept
POST /pos/orders/{order_id}/status
POST /pos/orders/{order_id}/ready
POST /pos/orders/{order_id}/cancel
GET /communities/{communityId}/catalogue
GET /communities/{communityId}/catalogue/items/{itemId}
PATCH /communities/{communityId}/catalogue/items/{itemId}
PUT /communities/{communityId}/stores/{storeId}/hours
POST /communities/{communityId}/webhooks
GET /webhooks/{webhookId}
PUT /webhooks/{webhookId}
DELETE /webhooks/{webhookId}
POST /webhooks/{webhookId}/test
GET /webhooks/{webhookId}/deliveries
GET /communities/{communityId}/orders/{orderId}
""".split("\n")[1:-1]
CODES = """
request.validation request.unknown_field auth.invalid_client auth.token_expired auth.invalid_token
auth.invalid_grant auth.consent_revoked store.not_found store.not_integrated
onboarding.merchant_exists integration.already_exists menu.push_not_allowed menu.forward_failed
menu.job_not_found menu.item_not_found order.not_found order.invalid_transition rate.limited
internal.error
""".split()
STATUSES = "400 401 403 404 409 422 429 500 502 503 504".split()
EVENTS = [
    "POS `order.created`",
    "POS `order.delivered`",
    "POS `store.status_changed`",
    "Community `order.created`",
    "Community `order.status_changed`",
]
HEADERS = "X-Service-Event X-Service-Delivery-Id X-Service-Signature X-Service-Location-Id".split()
LIMITS = [
    "roughly 100 items",
    "job retention: 1 hour",
    "every few seconds",
    "3600 seconds",
    "7 days",
    "60 seconds before expiry",
    "10 seconds",
    "6 in total",
    "429 with Retry-After",
]


# Each place that the specification marks as not shown, and the words by which the page answers it.
NOT_SHOWN = {
    "Store settings body, further fields": "Store settings body, full field list",
    "Fields of community catalogue, store and subscription records": "Bodies of the community",
    "Which request fields are required": "Which request fields are required",
    "Triggers of the integration's lifecycle": "Triggers for not_integrated",
    "Non-terminal menu job status values": "Non-terminal menu job status values",
    "States from which cancel is allowed": "States from which cancel is allowed",
    "Lifecycle names and the payload's status": "How lifecycle names map",
    "Transitions of community orders": "Transitions of a community order",
    "Field that rotates the webhook secret": "`rotate_secret_field`",
    "Bodies of accept": "`accept_body`",
    "Bodies and values of status": "`status_body`",
    "Bodies of ready": "`ready_body`",
    "Bodies of the community responses": "Bodies of the community responses",
    "Order placement, and endpoints of reporting": "Reporting endpoints and order placement",
    "Per-store webhook URL endpoints": "Paths of the per-store webhook URL endpoints",
    "Scope required per endpoint": "Scope required per endpoint",
    "What a delivery's receiver must return": "`delivery_success_status`",
    "Data of order.delivered": "Data of order.delivered",
    "Data of store.status_changed": "Data of store.status_changed",
    "Other POS event types": "Other POS event types",
    "Codes of generic 403, 409 and 422": "Codes of the generic 403, 409 and 422",
    "Numeric rate limits": "Numeric rate limits",
    "Maximum body size and counts per request": "`batch_max_items`",
    "Deprecation and compatibility": "Deprecation and compatibility policy",
    "Dated hours of communities": "`override_hours_field`",
    "Roughly how many items make a job": "`background_threshold`",
    "The community audience's value": "`community_audience`",
    "Name of a subscription's secret": "`subscription_secret_field`",
    "How scopes are asked for": "`scope_field`",
}


@lru_cache
def symbols(path: str) -> frozenset[str]:
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return frozenset(found)


def named(row: str) -> str:
    return row.split("|")[1].strip()


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_every_row_has_code_and_a_test_that_are_there(row: str) -> None:
    code, tests = CODE.findall(row), TEST.findall(row)
    assert code, "no code"
    assert tests, "no test"
    for symbol, path in code:
        assert symbol in symbols(path), f"{path} has no {symbol}"
    for words, path in tests:
        name = f"test_{words.replace(' ', '_')}"
        assert name in symbols(path), f"{path} has no {name}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_has_a_row(endpoint: str) -> None:
    (row, *_more) = [each for each in ROWS if each.startswith(f"| `{endpoint}`")]
    (served,) = set(re.findall(r"\.\./(src/tillbridge/sandbox/\w+\.py)", row))
    assert (ROOT / served).is_file()


@pytest.mark.parametrize("code", CODES)
def test_every_error_code_has_a_row(code: str) -> None:
    assert any(each.startswith(f"| `{code}` |") for each in ROWS)


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_a_row(status: str) -> None:
    assert any(each.startswith(f"| {status} |") for each in ROWS)


@pytest.mark.parametrize("words", [*EVENTS, *HEADERS, *LIMITS])
def test_every_event_header_and_limit_has_a_row(words: str) -> None:
    assert any(words in named(each) for each in ROWS)


def test_every_rule_of_authentication_has_a_row() -> None:
    assert [named(each)[:2] for each in ROWS if re.match(r"\| \d\. ", each)] == [
        f"{number}." for number in range(1, 10)
    ]


@pytest.mark.parametrize("group", [ServiceClient, CommunityCalls])
def test_every_call_of_the_client_stands_in_a_row(group: type) -> None:
    told = {symbol.split(".")[-1] for symbol, path in CODE.findall(PAGE) if "/service/" in path}
    calls = {
        name
        for kind in group.__mro__[:-2]
        for name, value in vars(kind).items()
        if not name.startswith("_") and callable(value)
    }
    assert calls <= told


def test_every_path_that_the_sandbox_serves_as_the_service_stands_in_a_row() -> None:
    served = set()
    for path in (ROOT / "src/tillbridge/sandbox").glob("*.py"):
        text = path.read_text("utf-8")
        served |= set(re.findall(r'"(/(?:pos|oauth2)/[\w/{}-]+)"', text))
    told = " ".join(named(each) for each in ROWS)
    assert served
    for each in served:
        assert each in told or f"{each}/" in told, each


@pytest.mark.parametrize("words", NOT_SHOWN.values(), ids=NOT_SHOWN.keys())
def test_every_place_that_is_not_shown_has_our_default(words: str) -> None:
    page = (ROOT / "docs/assumptions.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {words}")]
    assert all(cell.strip() for cell in row.strip("|").split("|"))
