from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tillbridge.model.order import OrderState
from tillbridge.orders.events import Call
from tillbridge.orders.notifier import (
    StateEstimate,
    after_answer,
    after_conflict,
    after_lost_answer,
    estimate_after_restart,
    estimate_of_new,
)
from tillbridge.orders.state import FINAL, merged, next_call

S = OrderState
FORWARD = [S.CREATED, S.ACCEPTED, S.PREPARING, S.READY, S.COMPLETED]
NEEDS = {Call.ACCEPT: S.CREATED, Call.PREPARING: S.ACCEPTED, Call.READY: S.PREPARING}
GIVES = {
    Call.ACCEPT: S.ACCEPTED,
    Call.PREPARING: S.PREPARING,
    Call.READY: S.READY,
    Call.CANCEL: S.CANCELLED,
}


class Service:
    """The specification's lifecycle, as strict as it can be read."""

    def __init__(self, *, auto_accept: bool) -> None:
        self.state = S.ACCEPTED if auto_accept else S.CREATED

    def call(self, call: Call) -> bool:
        """Return False for 409."""
        allowed = self.state not in FINAL if call is Call.CANCEL else self.state is NEEDS[call]
        if allowed:
            self.state = GIVES[call]
        return allowed


def walk(
    service: Service, estimate: StateEstimate, desired: S
) -> tuple[list[Call], StateEstimate | None]:
    """Tell until there is nothing to tell; return the calls, and None where it was closed."""
    calls: list[Call] = []
    after: StateEstimate | None = estimate
    while after is not None and (call := next_call(after.lowest, desired)):
        calls.append(call)
        assert len(calls) < 20, "it never ends"
        after = after_answer(call) if service.call(call) else after_conflict(after, call)
    return calls, after


def test_a_till_that_jumps_to_ready_is_walked_there_in_order() -> None:
    calls, _ = walk(Service(auto_accept=False), estimate_of_new(auto_accepted=False), S.READY)
    assert calls == [Call.ACCEPT, Call.PREPARING, Call.READY]


def test_completed_by_the_till_is_walked_to_ready_and_waits_for_the_service() -> None:
    calls, after = walk(
        Service(auto_accept=False), estimate_of_new(auto_accepted=False), S.COMPLETED
    )
    assert calls == [Call.ACCEPT, Call.PREPARING, Call.READY]
    assert after is not None
    assert after.state is S.READY


def test_an_order_the_service_accepted_by_itself_is_not_accepted_again() -> None:
    calls, _ = walk(Service(auto_accept=True), estimate_of_new(auto_accepted=True), S.READY)
    assert calls == [Call.PREPARING, Call.READY]


def test_a_cancel_comes_from_any_state_before_completed() -> None:
    for told in FORWARD[:-1]:
        assert next_call(told, S.CANCELLED) is Call.CANCEL
    assert next_call(S.COMPLETED, S.CANCELLED) is None


def test_an_accept_that_is_refused_means_accepted_and_the_walk_goes_on() -> None:
    service = Service(auto_accept=True)  # although the configuration says otherwise
    calls, after = walk(service, estimate_of_new(auto_accepted=False), S.READY)
    assert calls == [Call.ACCEPT, Call.PREPARING, Call.READY]
    assert after is not None
    assert service.state is S.READY


def test_an_accept_that_was_taken_for_granted_is_made_up_for() -> None:
    service = Service(auto_accept=False)  # although the configuration says otherwise
    calls, after = walk(service, estimate_of_new(auto_accepted=True), S.READY)
    assert service.state is S.READY
    assert after is not None
    assert calls[:3] == [Call.PREPARING, Call.ACCEPT, Call.PREPARING]


def test_an_order_that_refuses_every_call_up_to_ready_is_closed() -> None:
    for state in (S.CANCELLED, S.COMPLETED):
        service = Service(auto_accept=False)
        service.state = state
        calls, after = walk(service, estimate_of_new(auto_accepted=False), S.READY)
        assert after is None
        assert calls == [Call.ACCEPT, Call.PREPARING, Call.READY]


def test_a_ready_whose_answer_was_lost_is_not_taken_for_a_closed_order() -> None:
    estimate = StateEstimate(S.PREPARING, frozenset({S.PREPARING}))
    after = after_conflict(after_lost_answer(estimate, Call.READY), Call.READY)
    assert after == StateEstimate(S.READY, frozenset({S.READY}))


def test_a_cancel_whose_answer_was_lost_is_done_when_the_service_refuses_it_again() -> None:
    estimate = StateEstimate(S.ACCEPTED, frozenset({S.ACCEPTED}))
    after = after_conflict(after_lost_answer(estimate, Call.CANCEL), Call.CANCEL)
    assert after is not None
    assert after.state is S.CANCELLED


def test_a_cancel_that_is_refused_closes_the_order() -> None:
    assert after_conflict(StateEstimate(S.READY, frozenset({S.READY})), Call.CANCEL) is None


def test_news_never_takes_an_order_back() -> None:
    assert merged(S.READY, S.PREPARING) is S.READY
    assert merged(S.ACCEPTED, S.READY) is S.READY


def test_cancelled_is_final_and_so_is_completed() -> None:
    for news in OrderState:
        assert merged(S.CANCELLED, news) is S.CANCELLED
        assert merged(S.COMPLETED, news) is S.COMPLETED


@given(st.sampled_from(OrderState), st.lists(st.sampled_from(OrderState)))
def test_news_told_twice_or_late_leads_to_the_same_end(start: S, news: list[S]) -> None:
    once = start
    for each in news:
        once = merged(once, each)
    again = once
    for each in news:
        again = merged(again, each)
    assert again is once


@given(st.booleans(), st.lists(st.sampled_from(OrderState), max_size=6))
def test_without_mishaps_no_call_is_ever_refused(auto: bool, news: list[S]) -> None:
    service = Service(auto_accept=auto)
    estimate, desired = estimate_of_new(auto_accepted=auto), S.CREATED
    for each in news:
        desired = merged(desired, each)
        while call := next_call(estimate.lowest, desired):
            assert service.call(call), f"{call} was told at {service.state}"
            estimate = after_answer(call)


class Mishaps(RuleBasedStateMachine):
    """Lost answers, restarts, a misconfigured integration, and a service that cancels by itself."""

    @initialize(configured=st.booleans(), real=st.booleans())
    def begin(self, configured: bool, real: bool) -> None:
        self.auto = configured
        self.service = Service(auto_accept=real)
        self.estimate: StateEstimate | None = estimate_of_new(auto_accepted=configured)
        self.desired = S.CREATED
        self.refused_in_a_row = 0
        self.gone = False  # the service has closed it by itself

    @rule(news=st.sampled_from([S.ACCEPTED, S.PREPARING, S.READY, S.COMPLETED, S.CANCELLED]))
    def the_till_tells(self, news: S) -> None:
        self.desired = merged(self.desired, news)

    @precondition(lambda self: self.estimate is not None)
    @rule(applied=st.booleans(), lost=st.booleans(), kept=st.booleans())
    def tell(self, applied: bool, lost: bool, kept: bool) -> None:
        assert self.estimate is not None
        call = next_call(self.estimate.lowest, self.desired)
        if call is None:
            return
        assert self.estimate.state not in FINAL, "a finished order is told of again"
        if lost:
            if applied:
                self.service.call(call)
            if kept:
                self.estimate = after_lost_answer(self.estimate, call)
            else:
                self.restart()
            return
        if self.service.call(call):
            self.refused_in_a_row = 0
            self.estimate = after_answer(call)
        else:
            self.refused_in_a_row += 1
            self.estimate = after_conflict(self.estimate, call)
            if self.estimate is None:
                assert self.service.state in FINAL, "a living order is given up"

    @precondition(lambda self: self.estimate is not None)
    @rule()
    def restart(self) -> None:
        assert self.estimate is not None
        self.refused_in_a_row = 0  # it has forgotten what was refused
        self.estimate = estimate_after_restart(
            self.estimate.state, self.desired, auto_accepted=self.auto
        )

    @precondition(lambda self: not self.gone and self.service.state not in FINAL)
    @rule()
    def the_service_cancels(self) -> None:
        self.service.state = S.CANCELLED
        self.gone = True

    @precondition(lambda self: self.service.state is S.READY)
    @rule()
    def it_is_delivered(self) -> None:
        self.service.state = S.COMPLETED
        assert self.estimate is not None
        self.estimate = StateEstimate(S.COMPLETED, frozenset({S.COMPLETED}))

    @invariant()
    def refusals_end(self) -> None:
        assert getattr(self, "refused_in_a_row", 0) <= 8

    def teardown(self) -> None:
        if not hasattr(self, "estimate") or self.estimate is None:
            return
        _, after = walk(self.service, self.estimate, self.desired)
        if self.gone or self.service.state in FINAL or after is None:
            return
        reached = FORWARD.index(self.service.state)
        assert reached >= min(FORWARD.index(self.desired), FORWARD.index(S.READY)) or (
            self.auto and self.desired in {S.CREATED, S.ACCEPTED}
        )


TestMishaps = Mishaps.TestCase
