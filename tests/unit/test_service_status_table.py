"""What the client does about each row of the specification's status table, and of its codes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.mocked_service import MockedService, mocked_service
from tests.support.service_link import INTEGRATION
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
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceClient

# Specification: Errors. 422 has no row of its own; endpoints declare it, and no row repeats it.
TABLE = """
| 400 | malformed request: validation failure, unknown field, bad enum value | no |
| 401 | missing, expired or invalid credential | refresh token, retry once |
| 403 | authenticated but not allowed: revoked consent, wrong environment | no |
| 404 | resource does not exist, or no active integration covers it | no |
| 409 | conflict with current state, e.g. duplicate create | no; read state and reconcile |
| 422 | declared by most endpoints; its codes are not shown | no |
| 429 | rate limited; response carries Retry-After | yes, after the delay |
| 500, 502, 503 | server failure | yes, exponential backoff with jitter, capped attempts |
| 504 | gateway time-out; the request may have been applied | yes, after reading resource state |
"""
RETRY = {
    int(status): retry.strip()
    for row in TABLE.strip().splitlines()
    for statuses, _meaning, retry in [row.strip("| ").split(" | ")]
    for status in statuses.split(", ")
}
# Error codes of the specification by their status; "" is an answer without one.
CODES = {
    400: ["", "request.validation", "request.unknown_field", "some.new_code"],
    403: ["", "menu.push_not_allowed", "some.new_code"],
    404: [
        "",
        "store.not_found",
        "store.not_integrated",
        "menu.job_not_found",
        "menu.item_not_found",
        "order.not_found",
        "some.new_code",
    ],
    409: ["", "integration.already_exists", "order.invalid_transition", "some.new_code"],
    422: ["", "some.new_code"],
    500: ["", "internal.error", "some.new_code"],
    502: ["", "menu.forward_failed", "some.new_code"],
    503: ["", "some.new_code"],
    504: ["", "some.new_code"],
}

READ = "GET /pos/stores"
ACCEPT = "POST /pos/orders/ord_1/accept"
PAUSE = "PUT /pos/stores/st_main/status"
REFRESH = "POST /oauth2/refresh"
INTEGRATE = "POST /pos/integrate-store/st_main"
SHOW = "GET /pos/integrations/st_main"
REMOVE = "DELETE /pos/integrations/st_main"

Act = Callable[[ServiceClient], Awaitable[object]]
ACTS: dict[str, Act] = {
    READ: lambda client: client.stores(),
    ACCEPT: lambda client: client.accept("ord_1"),
    PAUSE: lambda client: client.set_store_status("st_main", "inactive"),
}
each_act = pytest.mark.parametrize("line", ACTS)


def rows(*statuses: int) -> pytest.MarkDecorator:
    """Parametrize with each of the statuses and each code that it has."""
    return pytest.mark.parametrize(
        ("status", "code"), [(status, code) for status in statuses for code in CODES[status]]
    )


def stores(status: str) -> list[dict[str, Any]]:
    """The body of an answer to READ: one store."""
    return [{"store_id": "st_main", "name": "Main", "status": status}]


async def failing(service: MockedService, line: str, failure: type[ServiceError]) -> ServiceError:
    """Make the call; it must raise that very type."""
    with pytest.raises(failure) as raised:
        await ACTS[line](service.client)
    assert type(raised.value) is failure
    return raised.value


def test_the_table_has_the_rows_that_the_tests_below_go_through() -> None:
    never = {status for status, retry in RETRY.items() if retry.startswith("no")}
    assert never == {400, 403, 404, 409, 422}
    assert set(RETRY) - never == {401, 429, 500, 502, 503, 504}


async def refused(line: str, status: int, code: str, failure: type[ServiceError]) -> None:
    async with mocked_service() as service:
        service.answer(line, status, code=code)
        raised = await failing(service, line, failure)
        assert (raised.status, raised.code) == (status, code)
        assert raised.text == f"The ordering service says: as the test says: {status}"
        assert service.lines == [line]
        assert service.waits == []


@each_act
@rows(400)
async def test_a_400_is_refused_and_never_repeated(line: str, status: int, code: str) -> None:
    await refused(line, status, code, Refused)


@each_act
@pytest.mark.parametrize("code", ["auth.token_expired", "auth.invalid_token", "", "some.new_code"])
async def test_a_401_refreshes_the_token_and_repeats_the_call_once(line: str, code: str) -> None:
    async with mocked_service() as service:
        service.answer(line, 401, code=code)
        service.answer(REFRESH, body={"access_token": "second", "expires_in": 3600})
        service.answer(line, body=[])
        await ACTS[line](service.client)
        assert service.lines == [line, REFRESH, line]
        tokens = [call.authorization for call in service.calls]
        assert tokens == ["Bearer first", "", "Bearer second"]
        assert service.calls[1].body == {
            "grant_type": "refresh_token",
            "refresh_token": "refresh-me",
        }
        assert service.waits == []


@each_act
async def test_a_second_401_stands(line: str) -> None:
    async with mocked_service() as service:
        service.answer(line, 401, code="auth.invalid_token", times=2)
        service.answer(REFRESH, body={"access_token": "second", "expires_in": 3600})
        await failing(service, line, Unauthorised)
        assert service.lines == [line, REFRESH, line]


@each_act
async def test_a_401_that_blames_the_app_is_refused_without_a_new_token(line: str) -> None:
    await refused(line, 401, "auth.invalid_client", Refused)


@each_act
@rows(403)
async def test_a_403_is_refused_and_never_repeated(line: str, status: int, code: str) -> None:
    await refused(line, status, code, Refused)


@each_act
async def test_a_403_of_a_revoked_consent_ends_all_calls_until_there_is_a_new_one(
    line: str,
) -> None:
    async with mocked_service() as service:
        service.answer(line, 403, code="auth.consent_revoked")
        for _call in range(3):
            lost = await failing(service, line, ConsentLost)
            assert lost.code == "auth.consent_revoked"
        assert service.lines == [line]


async def test_a_400_of_the_refresh_ends_all_calls_until_there_is_a_new_consent() -> None:
    async with mocked_service() as service:
        service.answer(READ, 401, code="auth.token_expired")
        service.answer(REFRESH, 400, code="auth.invalid_grant")
        for _call in range(3):
            lost = await failing(service, READ, ConsentLost)
            assert lost.code == "auth.invalid_grant"
        assert service.lines == [READ, REFRESH]


@each_act
@rows(404)
async def test_a_404_is_refused_and_never_repeated(line: str, status: int, code: str) -> None:
    await refused(line, status, code, Refused)


@each_act
@rows(409)
async def test_a_409_is_a_conflict_and_never_repeated(line: str, status: int, code: str) -> None:
    await refused(line, status, code, Conflict)


@each_act
@rows(422)
async def test_a_422_is_refused_and_never_repeated(line: str, status: int, code: str) -> None:
    await refused(line, status, code, Refused)


@pytest.fixture
async def skip(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Awaitable[None]]:
    """Let seconds pass on the event loop's clock, and everything happen that is due then."""
    loop, passed = asyncio.get_running_loop(), [0.0]
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + passed[0])

    async def pass_s(seconds: float) -> None:
        passed[0] += seconds
        for _turn in range(50):
            await asyncio.sleep(0)

    return pass_s


@each_act
@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "90"}, 90),
        ({}, 1),
        (
            {
                "Retry-After": "Sun, 22 Nov 2026 10:00:30 GMT",
                "Date": "Sun, 22 Nov 2026 10:00:00 GMT",
            },
            30,
        ),
    ],
    ids=["seconds", "none", "date"],
)
async def test_a_429_is_repeated_when_retry_after_has_passed_and_not_before(
    line: str,
    headers: dict[str, str],
    wait_s: float,
    skip: Callable[[float], Awaitable[None]],
) -> None:
    async with mocked_service() as service:
        service.answer(line, 429, code="rate.limited", headers=headers)
        service.answer(line, body=[])
        call = asyncio.ensure_future(ACTS[line](service.client))
        await skip(0)
        assert service.lines == [line]
        await skip(wait_s - 0.5)
        assert service.lines == [line]
        await skip(0.6)
        await call
        assert service.lines == [line, line]


async def test_a_429_holds_back_every_call_not_only_the_one_that_met_it(
    skip: Callable[[float], Awaitable[None]],
) -> None:
    async with mocked_service() as service:
        service.answer(READ, 429, headers={"Retry-After": "60"})
        service.answer(ACCEPT)
        service.answer(READ, body=[])
        first = asyncio.ensure_future(ACTS[READ](service.client))
        await skip(0)
        second = asyncio.ensure_future(ACTS[ACCEPT](service.client))
        await skip(59)
        assert service.lines == [READ]
        await skip(2)
        await asyncio.gather(first, second)
        assert service.lines == [READ, ACCEPT, READ], "orders go first"


@each_act
async def test_a_429_that_asks_for_too_much_patience_stands_and_nobody_calls(line: str) -> None:
    async with mocked_service(Limits(rate_limit_patience_s=120)) as service:
        service.answer(line, 429, headers={"Retry-After": "900"})
        for _call in range(3):
            with pytest.raises(RateLimited) as limited:
                await ACTS[line](service.client)
            assert 890 < limited.value.retry_after_s <= 900
        assert service.lines == [line]


async def server_failure(line: str, status: int, code: str) -> None:
    """Fail three times and then answer; then fail for good, until attempts end at the cap."""
    async with mocked_service() as service:
        service.answer(line, status, code=code, times=3)
        service.answer(line, body=[])
        await ACTS[line](service.client)
        assert service.lines == [line] * 4
        assert service.waits == [0.5, 1.0, 2.0]
    async with mocked_service(Limits(max_attempts=4, backoff_cap_s=1.5)) as service:
        service.answer(line, status, code=code, times=4)
        down = await failing(service, line, ServiceDown)
        assert (down.status, down.code) == (status, code)
        assert service.waits == [0.5, 1.0, 1.5]


@each_act
@rows(500)
async def test_a_500_is_repeated_with_growing_waits_and_capped_attempts(
    line: str, status: int, code: str
) -> None:
    await server_failure(line, status, code)


@each_act
@rows(502)
async def test_a_502_is_repeated_with_growing_waits_and_capped_attempts(
    line: str, status: int, code: str
) -> None:
    await server_failure(line, status, code)


@each_act
@rows(503)
async def test_a_503_is_repeated_with_growing_waits_and_capped_attempts(
    line: str, status: int, code: str
) -> None:
    await server_failure(line, status, code)


@rows(504)
async def test_a_504_of_a_read_is_repeated_as_a_server_failure_is(status: int, code: str) -> None:
    await server_failure(READ, status, code)


@pytest.mark.parametrize("applied", [True, False])
@rows(504)
async def test_a_504_of_a_write_reads_the_state_before_it_repeats_the_write(
    status: int, code: str, *, applied: bool
) -> None:
    async with mocked_service() as service:
        service.answer(PAUSE, status, code=code)
        service.answer(READ, body=stores("inactive" if applied else "active"))
        if not applied:
            service.answer(PAUSE)
        await ACTS[PAUSE](service.client)
        assert service.lines == ([PAUSE, READ] if applied else [PAUSE, READ, PAUSE])
        assert service.waits == [0.5], "a moment before the state is read"


async def test_a_504_of_an_order_is_repeated_and_the_conflict_shows_that_it_was_applied() -> None:
    async with mocked_service() as service:
        service.answer(ACCEPT, 504)
        service.answer(ACCEPT, 409, code="order.invalid_transition")
        await ACTS[ACCEPT](service.client)
        assert service.lines == [ACCEPT, ACCEPT]


async def test_a_conflict_of_another_code_after_a_504_proves_nothing() -> None:
    async with mocked_service() as service:
        service.answer(ACCEPT, 504)
        service.answer(ACCEPT, 409, code="some.new_code")
        await failing(service, ACCEPT, Conflict)


async def test_a_write_whose_504s_do_not_end_is_of_unknown_outcome() -> None:
    async with mocked_service(Limits(max_attempts=3)) as service:
        service.answer(PAUSE, 504, times=3)
        service.answer(READ, body=stores("active"), times=3)
        await failing(service, PAUSE, OutcomeUnknown)
        assert service.lines == [PAUSE, READ] * 3
        assert service.waits == [0.5, 1.0, 2.0]


async def test_a_504_whose_state_cannot_be_read_is_not_repeated_and_of_unknown_outcome() -> None:
    async with mocked_service(Limits(max_attempts=2)) as service:
        service.answer(PAUSE, 504)
        service.answer(READ, 503, times=2)
        await failing(service, PAUSE, OutcomeUnknown)
        assert service.lines == [PAUSE, READ, READ]


async def test_a_504_stays_an_unknown_outcome_where_the_repeat_fails_otherwise() -> None:
    async with mocked_service(Limits(max_attempts=2)) as service:
        service.answer(ACCEPT, 504)
        service.answer(ACCEPT, 503)
        await failing(service, ACCEPT, OutcomeUnknown)


async def test_a_504_of_an_integration_that_was_made_is_a_conflict_since_its_secret_is_lost() -> (
    None
):
    async with mocked_service() as service:
        service.answer(INTEGRATE, 504)
        service.answer(SHOW, body={"integration_id": "int_1", "store_id": "st_main"})
        with pytest.raises(Conflict) as conflict:
            await service.client.integrate("st_main", INTEGRATION)
        assert conflict.value.code == "integration.already_exists"
        assert service.lines == [INTEGRATE, SHOW]


async def test_a_504_of_a_removal_is_settled_by_the_404_that_the_store_is_not_integrated() -> None:
    async with mocked_service() as service:
        service.answer(REMOVE, 504)
        service.answer(SHOW, 404, code="store.not_integrated")
        await service.client.remove_integration("st_main")
        assert service.lines == [REMOVE, SHOW]


@pytest.mark.parametrize("body", [{}, {"webhook_secret": ""}, []])
async def test_an_integration_whose_secret_is_not_shown_is_an_unreadable_answer(
    body: object,
) -> None:
    async with mocked_service() as service:
        service.answer("POST /pos/integrate-store/st_main", 201, body)
        with pytest.raises(Refused) as refused:
            await service.client.integrate("st_main", INTEGRATION)
    assert refused.value.code == "answer.unreadable"
