"""What differs between an integration and the configuration, and what follows from it."""

from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.service.types import Integration, IntegrationRequest, Store
from tillbridge.stores.integration import settle_s
from tillbridge.stores.integration_plan import (
    IntegrationPlan,
    Kind,
    State,
    changed_elsewhere,
    plan_of,
    state_of,
)
from tillbridge.stores.integration_reconciler import problem_of_state

URLS = st.sampled_from(["https://a.example/webhooks/main", "https://b.example/webhooks/main"])
WAYS = st.sampled_from(["none", "quiqqy_to_pos", "pos_to_quiqqy", "bidirectional"])
LOCATIONS = st.sampled_from(["loc-1", "loc-2"])
EMAILS = st.sampled_from(["a@example.net", "b@example.net"])
WANTED = st.builds(IntegrationRequest, URLS, WAYS, LOCATIONS, st.booleans(), st.none() | EMAILS)
NOW = st.builds(
    Integration,
    store_id=st.just("st_main"),
    integration_id=st.just("int_1"),
    webhook_url=st.none() | URLS,
    menu_sync_direction=st.none() | WAYS,
    auto_accept_orders=st.none() | st.booleans(),
    external_store_id=st.none() | LOCATIONS,
    notification_email=st.none() | EMAILS,
)


def planned(now: Integration, wanted: IntegrationRequest) -> IntegrationPlan:
    return plan_of(State.INTEGRATED, now, wanted, secret_known=True)


@given(now=NOW, wanted=WANTED)
def test_only_what_differs_is_sent(now: Integration, wanted: IntegrationRequest) -> None:
    body = planned(now, wanted).body
    for each in fields(IntegrationRequest):
        had, want = getattr(now, each.name), getattr(wanted, each.name)
        if each.name in body:
            assert body[each.name] == want != had
        elif each.name != "external_store_id":
            assert want in {None, had}
    assert "external_store_id" not in body


@given(now=NOW, wanted=WANTED)
def test_applying_twice_sends_nothing(now: Integration, wanted: IntegrationRequest) -> None:
    plan = planned(now, wanted)
    changed: dict[str, Any] = {each.field: each.wanted for each in plan.differences}
    after = replace(now, **changed)
    assert planned(after, wanted).kind is Kind.NOTHING
    assert planned(after, wanted).body == {}


@given(now=NOW, wanted=WANTED, known=st.booleans())
def test_another_location_or_an_unknown_secret_takes_a_new_integration(
    now: Integration, wanted: IntegrationRequest, known: bool
) -> None:
    plan = plan_of(State.INTEGRATED, now, wanted, secret_known=known)
    moved = now.external_store_id not in {None, wanted.external_store_id}
    if not known:
        assert plan.kind is Kind.ROTATE
    elif moved:
        assert plan.kind is Kind.REINTEGRATE
    else:
        assert plan.kind in {Kind.NOTHING, Kind.CHANGE}
    assert bool(plan.costs) == (plan.kind in {Kind.ROTATE, Kind.REINTEGRATE})
    assert (plan.location is not None) == moved
    assert len(plan.lines) == len(plan.body) + moved


@given(now=st.none() | NOW, wanted=WANTED, state=st.sampled_from(list(State)))
def test_what_is_not_integrated_is_never_changed(
    now: Integration | None, wanted: IntegrationRequest, state: State
) -> None:
    plan = plan_of(state, now, wanted, secret_known=True)
    if state is not State.INTEGRATED or now is None:
        assert plan.body == {}
        assert plan.kind in {Kind.WAIT, Kind.INTEGRATE}
        assert problem_of_state(plan) is not None


@given(now=NOW, wanted=WANTED)
def test_only_what_was_taken_as_wanted_can_have_been_changed_by_others(
    now: Integration, wanted: IntegrationRequest
) -> None:
    plan = planned(now, wanted)
    taken = {each.name: getattr(wanted, each.name) for each in fields(IntegrationRequest)}
    assert changed_elsewhere(plan, taken) == plan.differences
    before = {each.name: getattr(now, each.name) for each in fields(IntegrationRequest)}
    assert changed_elsewhere(plan, before) == ()
    assert changed_elsewhere(plan, {}) == ()


def test_the_state_is_what_the_store_says() -> None:
    assert state_of(Store("st", integration_status="disabled")) is State.DISABLED
    assert state_of(Store("st", integration_status="active")) is State.INTEGRATED
    assert state_of(Store("st", integration_status="new word")) is State.NOT_INTEGRATED
    there = Store("st", integration_status=None, integration=Integration("st"))
    assert state_of(there) is State.INTEGRATED


@given(absent_s=st.floats(0, 40_000), least_s=st.floats(60, 200))
def test_what_was_placed_during_an_absence_has_come_once_it_is_settled(
    absent_s: float, least_s: float
) -> None:
    waited_s = settle_s(absent_s, least_s)
    repeated_s = (60, 360, 2160, 9360, 30_960)  # since it was placed
    for placed_s in (0.0, absent_s / 2, absent_s):  # before the start
        due = [at - placed_s for at in repeated_s if at >= placed_s]
        assert not due or due[0] <= waited_s


def test_nothing_is_waited_for_where_that_is_not_wanted() -> None:
    assert settle_s(1000, 0) == 0
    assert settle_s(1, 75) == 75
    assert settle_s(100, 75) == 310


def test_each_standing_has_its_problem() -> None:
    for plan, problem in (
        (IntegrationPlan(Kind.WAIT, State.DISABLED), "integration.disabled"),
        (IntegrationPlan(Kind.WAIT, State.PENDING), "integration.pending"),
        (IntegrationPlan(Kind.INTEGRATE, State.NOT_INTEGRATED), "integration.missing"),
        (IntegrationPlan(Kind.ROTATE, State.INTEGRATED), "integration.secret_missing"),
        (IntegrationPlan(Kind.CHANGE, State.INTEGRATED), None),
        (IntegrationPlan(Kind.NOTHING, State.INTEGRATED), None),
    ):
        assert problem_of_state(plan) == problem
