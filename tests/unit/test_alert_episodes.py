"""Which alert is due when: once a step until acknowledged, once when it is over, never twice."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tillbridge.alerts.dispatcher import from_fact, is_quiet, to_fact
from tillbridge.alerts.episodes import (
    Due,
    Episode,
    Key,
    Message,
    compose,
    due,
    follow,
    next_in_s,
    record_sent,
    record_unsent,
)
from tillbridge.config.bridge import AlertSettings
from tillbridge.core.problems import OpenProblem

RULES = AlertSettings(repeat_min=[0, 5, 10], settle_s=60)
OFFLINE = OpenProblem("pos.offline", "main", "", 1_000, {"detail": "no answer"})
HELD = OpenProblem("menu.held", "main", "", 2_000, {"detail": "31 items"})


@dataclass
class Told:
    """What one way told in the course of things."""

    episodes: Mapping[Key, Episode] = field(default_factory=dict)
    said: list[Due] = field(default_factory=list)
    at: float = 0

    def later(
        self, seconds: float, *problems: OpenProblem, ack: frozenset[Key] = frozenset()
    ) -> None:
        """Let time pass by single seconds, as a bridge that looks whenever something is due."""
        left = seconds
        first = True
        while first or left > 0:
            first = False
            step = min(left, 1.0)
            left -= step
            self.at += step
            self.episodes = follow(self.episodes, problems, ack, step, RULES)
            for what in due(self.episodes, "email", RULES, quiet=False):
                self.episodes = record_sent(self.episodes, "email", what, RULES)
                self.said.append(what)

    def restart(self) -> None:
        """Forget all but what is in the ledger."""
        self.episodes = from_fact(json.loads(json.dumps(to_fact(self.episodes, 0))))[0]

    @property
    def kinds(self) -> list[tuple[str, int]]:
        return [(what.kind, what.step) for what in self.said]


def test_a_problem_is_told_at_once_and_at_each_step_and_when_it_is_over() -> None:
    sent = Told()
    sent.later(3_000, OFFLINE)
    assert sent.kinds == [("open", 1), ("open", 2), ("open", 3)]
    sent.later(59)
    assert len(sent.said) == 3
    sent.later(2)
    assert sent.kinds[3:] == [("over", 0)]
    sent.later(3_000)
    assert len(sent.said) == 4
    assert sent.episodes == {}


def test_an_acknowledged_problem_is_told_no_more_until_it_is_over() -> None:
    sent = Told()
    sent.later(10, OFFLINE)
    sent.later(5_000, OFFLINE, ack=frozenset({OFFLINE.key}))
    sent.later(100)
    assert sent.kinds == [("open", 1), ("over", 0)]


def test_an_acknowledgement_outlasts_a_short_absence() -> None:
    sent = Told()
    sent.later(10, OFFLINE)
    sent.later(10, OFFLINE, ack=frozenset({OFFLINE.key}))
    sent.later(10)
    sent.later(2_000, OFFLINE)
    assert sent.kinds == [("open", 1)]


def test_a_problem_that_flaps_is_one_message() -> None:
    sent = Told()
    for _ in range(12):
        sent.later(10, OFFLINE)
        sent.later(14)
    assert sent.kinds == [("open", 1)]


def test_a_problem_that_comes_back_later_is_another_one() -> None:
    sent = Told()
    sent.later(10, OFFLINE)
    sent.later(70)
    sent.later(10, OFFLINE)
    assert sent.kinds == [("open", 1), ("over", 0), ("open", 1)]


def test_what_a_way_has_never_told_it_does_not_call_over() -> None:
    episodes = follow({}, [OFFLINE], set(), 0, RULES)
    episodes = follow(episodes, [], set(), 1, RULES)
    episodes = follow(episodes, [], set(), 100, RULES)
    assert episodes == {}


def test_what_could_not_be_told_is_due_again() -> None:
    before = follow({}, [OFFLINE], set(), 0, RULES)
    (what,) = due(before, "email", RULES, quiet=False)
    during = record_sent(before, "email", what, RULES)
    assert due(during, "email", RULES, quiet=False) == []
    assert due(during, "webhook", RULES, quiet=False) == [what]
    after = record_unsent(during, before, "email", what)
    assert due(after, "email", RULES, quiet=False) == [what]


def test_after_a_long_silence_one_message_stands_for_all_steps() -> None:
    episodes = follow({}, [OFFLINE], set(), 0, RULES)
    episodes = follow(episodes, [OFFLINE], set(), 10_000, RULES)
    (what,) = due(episodes, "email", RULES, quiet=False)
    assert what.step == 3
    assert due(record_sent(episodes, "email", what, RULES), "email", RULES, quiet=False) == []


def test_problems_of_one_kind_and_store_go_out_together_the_worst_first() -> None:
    orders = [OpenProblem("order.not_written", "main", f"o{n}", 5_000 + n) for n in range(3)]
    other = OpenProblem("order.not_written", "bar", "o9", 9_000)
    episodes = follow({}, [HELD, *orders, other], set(), 0, RULES)
    found = due(episodes, "email", RULES, quiet=False)
    assert [each.keys[0][:2] for each in found] == [
        ("order.not_written", "main"),
        ("order.not_written", "bar"),
        ("menu.held", "main"),
    ]
    assert len(found[0].keys) == 3


def test_warnings_wait_for_the_morning_and_what_is_down_does_not() -> None:
    episodes = follow({}, [OFFLINE, HELD], set(), 0, RULES)
    assert [each.keys[0][0] for each in due(episodes, "email", RULES, quiet=True)] == [
        "pos.offline"
    ]
    assert len(due(episodes, "email", RULES, quiet=False)) == 2


def test_only_what_is_wanted_is_told() -> None:
    rules = AlertSettings(severity="down", stores=["bar"])
    machine = OpenProblem("ledger.unwritable", "", "", 1)
    community = OpenProblem("community.order_missing", "communities/hall", "o1", 1)
    there = OpenProblem("pos.offline", "bar", "", 1)
    episodes = follow({}, [OFFLINE, HELD, machine, community, there], set(), 0, rules)
    assert set(episodes) == {machine.key, community.key, there.key}


def test_no_alert_is_about_alerts() -> None:
    about = OpenProblem("alerts.not_sent", "", "email", 1, {"way": "email"})
    assert follow({}, [about], set(), 0, RULES) == {}


@pytest.mark.parametrize(
    ("seconds", "open_now", "next_s"),
    [(0, True, 300), (299, True, 1), (601, True, None), (0, False, 60)],
)
def test_the_next_look_is_when_something_may_be_due(
    seconds: float, open_now: bool, next_s: float | None
) -> None:
    episodes = follow({}, [OFFLINE], set(), 0, RULES)
    after = follow(episodes, [OFFLINE] if open_now else [], set(), seconds, RULES)
    if not open_now:
        after = {
            key: Episode(each.problem, over_s=0, sent={"email": 1})
            for key, each in episodes.items()
        }
    assert next_in_s(after, RULES) == next_s


Act = tuple[str, float]
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["open", "gone", "ack", "restart", "clock back"]),
        st.floats(min_value=0, max_value=400, allow_nan=False),
    ),
    max_size=25,
)


@given(ACTS)
@example([("open", 0.0), ("gone", 60.0), ("open", 1.0)])  # back in the second in which it ends
def test_no_step_is_ever_told_twice_whatever_happens(acts: list[Act]) -> None:
    sent = Told()
    problems: tuple[OpenProblem, ...] = ()
    ack: frozenset[Key] = frozenset()
    for act, seconds in acts:
        match act:
            case "open":
                problems = (OFFLINE,)
            case "gone":
                problems, ack = (), frozenset()
            case "ack" if problems:
                ack = frozenset({OFFLINE.key})
            case "restart":
                sent.restart()
            case "clock back":
                sent.episodes = follow(sent.episodes, problems, ack, -seconds, RULES)
        before = len(sent.said)
        sent.later(seconds, *problems, ack=ack)
        if ack:
            assert [what.kind for what in sent.said[before:]] == []
    sent.later(100)
    # Between two ends each step is told once at most, and rising; an end follows what was told.
    open_steps: list[int] = []
    for kind, step in sent.kinds:
        if kind == "open":
            assert step not in open_steps
            assert open_steps == sorted(open_steps)
            open_steps.append(step)
        else:
            assert open_steps
            open_steps = []
    assert open_steps == []
    assert sent.episodes == {}
    assert all(count <= len(sent.said) for count in Counter(sent.kinds).values())


@given(st.times())
def test_quiet_hours_over_midnight_are_those_that_are_not_their_opposite(now: time) -> None:
    assert is_quiet("23:00-07:00", now) is not is_quiet("07:00-23:00", now)
    assert is_quiet(None, now) is False


def message(
    what: Due, *problems: OpenProblem, who: str = "Trattoria", waiting: str = ""
) -> Message:
    episodes = [Episode(each) for each in problems]
    return compose(
        what, episodes, who=who, waiting=waiting, docs_url="docs/problems.md", now_ms=5_000
    )


def test_a_message_says_what_is_wrong_since_when_and_what_to_do() -> None:
    sent = message(
        Due("open", (OFFLINE.key,), 1),
        OFFLINE,
        waiting="2 orders wait for the till, the oldest for 3 minutes.",
    )
    assert sent.subject == "Trattoria: The till is not taking orders: no answer"
    assert "2 orders wait for the till, the oldest for 3 minutes." in sent.lines
    assert OFFLINE.fix in sent.lines
    assert "Code: pos.offline" in sent.lines
    assert "More: docs/problems.md#posoffline" in sent.lines
    assert "To stop these messages: tillbridge problems ack pos.offline" in sent.lines
    assert sent.kind == "open"
    assert message(Due("open", (OFFLINE.key,), 2), OFFLINE).kind == "again"


def test_a_message_about_an_end_asks_for_nothing() -> None:
    sent = message(Due("over", (OFFLINE.key,)), OFFLINE)
    assert sent.subject == "Trattoria: Resolved: The till is not taking orders: no answer"
    assert "What to do:" not in sent.lines


def test_several_of_a_kind_are_one_message() -> None:
    orders = [
        OpenProblem("order.not_written", "main", f"o{n}", n, {"order": f"o{n}", "detail": "?"})
        for n in range(14)
    ]
    sent = message(Due("open", tuple(each.key for each in orders), 1), *orders)
    assert sent.subject.endswith("(and 13 more)")
    assert "... and 4 more." in sent.lines


def test_no_word_of_a_problem_breaks_a_header_or_steers_a_terminal() -> None:
    nasty = OpenProblem(
        "pos.offline", "main", "", 1, {"detail": "x\r\nBcc: a@b.c\n\x1b[2J" + "y" * 300}
    )
    sent = message(Due("open", (nasty.key,), 1), nasty)
    assert "\n" not in sent.subject
    assert "\r" not in sent.text
    assert "\x1b" not in sent.text
    assert len(sent.subject) <= 120


def test_the_same_message_has_the_same_id_and_another_another() -> None:
    first = Due("open", (OFFLINE.key,), 1)
    assert message(first, OFFLINE).id == message(first, OFFLINE, who="Other").id
    assert message(first, OFFLINE).id != message(Due("open", (OFFLINE.key,), 2), OFFLINE).id
