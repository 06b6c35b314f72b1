"""The retry policy is the specification's status table."""

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
    Unreachable,
)
from tillbridge.service.answers import (
    Decision,
    GiveUp,
    HoldAll,
    Kind,
    Limits,
    ReadState,
    RefreshToken,
    Wait,
    backoff,
    decide,
)

LIMITS = Limits(max_attempts=4, backoff_first_s=0.5, backoff_cap_s=3, rate_limit_patience_s=60)


def on(
    failure: ServiceError, attempt: int = 1, *, kind: Kind = Kind.WRITE, refreshed: bool = False
) -> Decision:
    return decide(failure, attempt, kind=kind, refreshed=refreshed, random=1.0, limits=LIMITS)


def test_a_401_refreshes_the_token_once() -> None:
    assert on(Unauthorised("no")) == RefreshToken()
    assert on(Unauthorised("no"), refreshed=True) == GiveUp()


def test_a_401_refreshes_even_where_only_one_try_is_allowed() -> None:
    assert on(Unauthorised("no"), LIMITS.max_attempts) == RefreshToken()


@pytest.mark.parametrize("failure", [Refused("no"), Conflict("no"), ConsentLost("no")])
@pytest.mark.parametrize("kind", Kind)
def test_what_will_never_work_is_never_repeated(failure: ServiceError, kind: Kind) -> None:
    assert on(failure, kind=kind) == GiveUp()


def test_a_429_holds_everybody_for_retry_after() -> None:
    assert on(RateLimited("slow down", retry_after_s=7)) == HoldAll(7)


def test_a_429_that_asks_for_more_patience_than_there_is_stands() -> None:
    assert on(RateLimited("slow down", retry_after_s=61)) == GiveUp()


@pytest.mark.parametrize("failure", [Unreachable("gone"), ServiceDown("ill", status=503)])
@pytest.mark.parametrize("kind", Kind)
def test_a_failing_service_is_tried_again_after_a_while(failure: ServiceError, kind: Kind) -> None:
    waits = [on(failure, attempt, kind=kind) for attempt in range(1, 5)]
    assert waits == [Wait(0.5), Wait(1.0), Wait(2.0), GiveUp()]


def test_a_write_of_unknown_outcome_reads_the_state_first() -> None:
    assert on(OutcomeUnknown("?")) == ReadState(0.5, repeat=True)


def test_the_last_try_of_a_write_reads_the_state_too_but_is_not_repeated() -> None:
    assert on(OutcomeUnknown("?"), 4) == ReadState(3.0, repeat=False)


def test_a_read_has_no_unknown_outcome() -> None:
    assert on(OutcomeUnknown("?"), kind=Kind.READ) == Wait(0.5)


failures = st.one_of(
    st.sampled_from(
        [Unreachable, ServiceDown, OutcomeUnknown, Unauthorised, ConsentLost, Conflict, Refused]
    ).map(lambda kind: kind("x")),
    st.floats(min_value=0, max_value=1e6).map(lambda s: RateLimited("x", retry_after_s=s)),
)


@given(
    failure=failures,
    attempt=st.integers(1, 10**6),
    kind=st.sampled_from(Kind),
    refreshed=st.booleans(),
    random=st.floats(0, 1),
    limits=st.builds(
        Limits,
        max_attempts=st.integers(1, 20),
        backoff_first_s=st.floats(0.01, 10),
        backoff_cap_s=st.floats(0.01, 600),
        rate_limit_patience_s=st.floats(0, 600),
    ),
)
def test_every_decision_keeps_within_the_limits(
    failure: ServiceError, attempt: int, kind: Kind, refreshed: bool, random: float, limits: Limits
) -> None:
    decision = decide(
        failure, attempt, kind=kind, refreshed=refreshed, random=random, limits=limits
    )
    match decision:
        case Wait(seconds=seconds):
            assert 0 <= seconds <= limits.backoff_cap_s
            assert attempt < limits.max_attempts
            assert isinstance(failure, Unreachable | ServiceDown | OutcomeUnknown)
        case ReadState(seconds=seconds, repeat=repeat):
            assert 0 <= seconds <= limits.backoff_cap_s
            assert kind is Kind.WRITE
            assert repeat == (attempt < limits.max_attempts)
        case HoldAll(seconds=seconds):
            assert isinstance(failure, RateLimited)
            assert seconds == failure.retry_after_s <= limits.rate_limit_patience_s
        case RefreshToken():
            assert isinstance(failure, Unauthorised)
            assert not refreshed


@given(attempt=st.integers(1, 60), random=st.floats(0, 1))
def test_jitter_is_full_and_its_bound_doubles_up_to_the_cap(attempt: int, random: float) -> None:
    bound = min(LIMITS.backoff_cap_s, LIMITS.backoff_first_s * 2.0 ** (attempt - 1))
    assert backoff(attempt, random=random, limits=LIMITS) == pytest.approx(random * bound)
