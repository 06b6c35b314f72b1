"""The overview's data: the verdict, the way of an order, the charts."""

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_control import FakeControl
from tests.support.page_sample import busy
from tillbridge.core.formats import clock_time
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.day import Day, WaitingOrder
from tillbridge.ledger.figures import OrderCourse, StoreFigures, sales_of
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.model.instant import to_iso
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.overview import Bar, Charts, Span, overview
from tillbridge.web.site.overview import (
    HEIGHT,
    WIDTH,
    Remedy,
    drawn,
    kinds_of,
    page_of,
    remedies_of,
    top_of,
)

NOW = 1_795_287_720_000
MINUTE = 60_000


def told(*problems: OpenProblem, day: Day | None = None, **changed: Any) -> Any:  # noqa: ANN401 -- fields of several types
    facts = replace(
        BridgeFacts(
            version="1",
            running=True,
            adapters={"main": "folder"},
            stores={"main": StoreSnapshot()},
            problems=problems,
            started_at=NOW - MINUTE,
        ),
        **changed,
    )
    return overview(document(facts, NOW), facts, day or Day(NOW - 24 * 60 * MINUTE), NOW)


def links(answer: dict) -> dict[str, dict]:
    return {each["key"]: each for each in answer["chain"]["main"]}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("ledger.unwritable", "the database cannot be written"),
        ("integration.missing", "the store is not connected to this bridge"),
        ("bridge.stopped", "the bridge is not running"),
    ],
)
def test_the_verdict_says_since_when_no_order_can_arrive(code: str, why: str) -> None:
    since = NOW - 90 * MINUTE
    verdict = told(OpenProblem(code, "", "", since, {"detail": "x"}))["verdict"]
    at = clock_time(since, NOW)
    assert verdict["level"] == "down"
    assert verdict["text"] == f"No orders can arrive since {at}: {why}."


def test_a_time_of_another_day_has_its_date() -> None:
    assert ":" in clock_time(NOW, NOW)
    assert " " not in clock_time(NOW, NOW)
    assert " " in clock_time(NOW - 48 * 60 * MINUTE, NOW)


def test_the_chain_tells_each_links_last_success() -> None:
    day = Day(NOW - 24 * 60 * MINUTE, handled_ms=12)
    day.last_delivery["main"] = NOW - 2 * MINUTE
    day.last_ticket["main"] = NOW - 3 * MINUTE
    answer = told(
        day=day,
        stores={
            "main": StoreSnapshot(facts={"service_contact": {"ok_at": NOW - MINUTE, "took_ms": 45}})
        },
        pos_seen={"main": NOW - 1000},
        pos_took_ms={"main": 3},
    )
    chain = links(answer)
    assert [each["key"] for each in answer["chain"]["main"]] == [
        "service",
        "address",
        "bridge",
        "pos",
    ]
    assert {each["state"] for each in chain.values()} == {"ok"}
    assert chain["address"]["at"] == "2026-11-21T19:00:00.000Z"
    assert chain["bridge"]["since"] == "2026-11-21T19:01:00.000Z"
    assert {key: each["latency_ms"] for key, each in chain.items()} == {
        "service": 45,
        "address": None,
        "bridge": 12,
        "pos": 3,
    }
    assert chain["pos"]["at"] == "2026-11-21T19:01:59.000Z"


def test_what_is_not_known_says_so() -> None:
    chain = links(told())
    assert chain["service"]["state"] == "unknown"
    assert chain["address"]["state"] == "unknown"
    assert chain["pos"]["state"] == "unknown"


def test_a_problem_shows_at_its_link() -> None:
    chain = links(
        told(
            OpenProblem("pos.offline", "main", "", NOW, {"detail": "off"}),
            OpenProblem("consent.ending", "main", "", NOW, {"left": "a day"}),
            OpenProblem("ledger.unwritable", "", "", NOW, {"detail": "full"}),
            OpenProblem("receiver.bad_signature", "other", "", NOW),
        )
    )
    assert chain["pos"]["state"] == "down"
    assert chain["pos"]["codes"] == ["pos.offline"]
    assert chain["service"]["state"] == "warning"
    assert chain["bridge"]["state"] == "down"
    assert chain["address"]["state"] == "unknown"


def test_what_a_probe_from_outside_found_counts_for_the_address() -> None:
    chain = links(told(facts={"public_address": {"ok": True, "ok_at": NOW - MINUTE}}))
    assert chain["address"]["state"] == "ok"
    assert chain["address"]["since"] is None


def past(code: str, since: int, until: int, store: str = "") -> PastProblem:
    return PastProblem(code=code, store=store, subject="", since=since, until=until)


def test_a_link_works_since_its_last_outage() -> None:
    day = Day(NOW - 24 * 60 * MINUTE)
    day.past.extend(
        [
            past("service.unreachable", NOW - 90 * MINUTE, NOW - 60 * MINUTE, "main"),
            past("service.unreachable", NOW - 50 * MINUTE, NOW - 40 * MINUTE, "other"),
            past("menu.held", NOW - 30 * MINUTE, NOW - 20 * MINUTE, "main"),
        ]
    )
    facts = {
        "service_contact": {"ok_at": NOW - MINUTE},
        "integration": {"status": "active", "connected_at": NOW - 600 * MINUTE},
    }
    chain = links(told(day=day, stores={"main": StoreSnapshot(facts=facts)}))
    assert chain["service"]["since"] == to_iso(NOW - 60 * MINUTE)
    offline = OpenProblem("pos.offline", "main", "", NOW - 5 * MINUTE, {"detail": "off"})
    assert links(told(offline, day=day))["pos"]["since"] == to_iso(NOW - 5 * MINUTE)


def test_open_and_past_outages_are_told_and_other_problems_are_none() -> None:
    day = Day(NOW - 24 * 60 * MINUTE)
    day.past.extend(
        [
            past("bridge.stopped", NOW - 90 * MINUTE, NOW - 60 * MINUTE),
            past("menu.held", NOW - 90 * MINUTE, NOW, "main"),
            past("reach.no_answer", NOW - 30 * MINUTE, NOW - 20 * MINUTE),
        ]
    )
    answer = told(OpenProblem("pos.offline", "main", "", NOW - MINUTE, {"detail": "x"}), day=day)
    assert [(each["code"], each["ended"]) for each in answer["charts"]["outages"]] == [
        ("bridge.stopped", True),
        ("reach.", True),
        ("pos.offline", False),
    ]
    chart = drawn(answer["charts"], "day")
    assert [each["name"] for each in chart.outages] == [
        "Bridge not running",
        "Public address unreachable",
        "Till offline",
    ]
    assert round(chart.outages[0]["width"]) == round(WIDTH / 24 / 2)


def span(code: str, since: int, until: int, *, ended: bool = True) -> Span:
    return {"code": code, "store": "", "since": since, "until": until, "ended": ended}


def test_outages_of_a_kind_are_told_together_and_those_that_last_first() -> None:
    kinds = kinds_of(
        [
            span("pos.offline", NOW - 90 * MINUTE, NOW - 80 * MINUTE),
            span("bridge.stopped", NOW - 70 * MINUTE, NOW - 69 * MINUTE),
            span("service.unreachable", NOW - 2 * MINUTE, NOW, ended=False),
            span("pos.offline", NOW - 60 * MINUTE, NOW - 50 * MINUTE),
        ]
    )
    assert [(each["name"], each["times"], each["seconds"]) for each in kinds] == [
        ("Ordering service unreachable", "1 time", 120),
        ("Till offline", "2 times", 1200),
        ("Bridge not running", "1 time", 60),
    ]
    assert kinds[1]["since"] == NOW - 60 * MINUTE


def charts(bars: list[tuple[int, int]], spans: list[tuple[int, int]]) -> Charts:
    hour_ms = 60 * MINUTE
    hours: list[Bar] = [
        {
            "from_ms": NOW - (len(bars) - place) * hour_ms,
            "orders": orders + cancelled,
            "cancelled": cancelled,
            "revenue": {},
        }
        for place, (orders, cancelled) in enumerate(bars)
    ]
    return {
        "hours": hours,
        "days": hours[:7],
        "outages": [
            span("pos.offline", NOW + begin * hour_ms, NOW + (begin + length) * hour_ms)
            for begin, length in spans
        ],
        "until_ms": NOW,
        "zone": UTC,
    }


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=24, max_size=24),
    st.lists(st.tuples(st.integers(-50, 0), st.integers(0, 60)), max_size=8),
    st.sampled_from(["day", "week"]),
)
def test_everything_drawn_is_inside_the_chart(
    bars: list[tuple[int, int]], spans: list[tuple[int, int]], period: str
) -> None:
    chart = drawn(charts(bars, spans), period)
    assert chart.ticks[0] >= max(each["orders"] for each in chart.bars)
    assert chart.ticks[0] == 2 * chart.ticks[1]
    for bar in chart.bars:
        assert -0.1 <= bar["bad_y"] <= bar["good_y"] <= HEIGHT
        assert bar["bad_y"] + bar["bad"] <= bar["good_y"] + 0.2
    for each in chart.outages:
        assert 0 <= each["x"] <= each["x"] + each["width"] <= WIDTH + 0.1
    assert chart.orders == sum(each["orders"] for each in chart.bars)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 4), (1, 4), (4, 4), (5, 6), (11, 20), (21, 40), (41, 60), (61, 80), (101, 200)],
)
def test_an_axis_ends_with_a_round_number_and_one_order_does_not_fill_it(
    most: int, top: int
) -> None:
    assert top_of(most) == top


def test_of_no_orders_nothing_is_drawn() -> None:
    chart = drawn(told()["charts"], "week")
    assert [each["orders"] for each in chart.bars] == [0] * 7
    assert {each["good"] + each["bad"] for each in chart.bars} == {0}
    assert chart.kinds == []


def test_the_charts_of_several_stores_are_one() -> None:
    def sold(store: str, amount: int) -> StoreFigures:
        course = OrderCourse(NOW - MINUTE, amount=amount, currency="EUR")
        return StoreFigures(sales=sales_of([course], UTC, NOW))

    answer = told(
        adapters={"main": "folder", "bar": "folder"},
        figures={"main": sold("main", 100), "bar": sold("bar", 250)},
    )
    last = answer["charts"]["days"][-1]
    assert (last["orders"], last["revenue"]) == (2, {"EUR": 350})


def test_a_remedy_is_offered_with_what_it_needs() -> None:
    control = FakeControl()
    busy(control, "ord_7")
    problems = document(control.facts, control.now_ms)["problems"]
    offered = {
        each["code"]: [(remedy.path, dict(remedy.parts)) for remedy in remedies_of(each)]
        for each in problems
    }
    assert offered == {
        "pos.offline": [],
        "order.not_written": [
            ("/orders/{order}/retry", {"order": "ord_7"}),
            ("/orders/{order}/done", {"order": "ord_7"}),
        ],
        "menu.held": [
            ("/stores/{store}/menu/difference", {"store": "main"}),
            ("/stores/{store}/menu/dismiss", {"store": "main"}),
        ],
        "consent.ending": [("/stores/{store}/connect", {"store": "main"})],
    }


def test_an_order_that_was_never_tried_says_what_it_waits_for() -> None:
    day = Day(NOW - 24 * 60 * MINUTE)
    day.waiting.append(WaitingOrder("main", "ord_1", "A-1", NOW - MINUTE, 0, ""))
    day.waiting.append(WaitingOrder("main", "ord_2", "A-2", NOW - MINUTE, 2, "no paper"))
    day.waiting.append(WaitingOrder("main", "ord_3", "A-3", NOW - MINUTE, 1, "offline: no folder"))
    away = StoreSnapshot(facts={"pos_health": {"online": False, "detail": "off"}})
    assert [each["why"] for each in told(day=day)["waiting"]] == [
        "on its way",
        "no paper (2 tries)",
        "no folder (1 try)",
    ]
    # What is wrong with the till is said once, above.
    assert [each["why"] for each in told(day=day, stores={"main": away})["waiting"]] == [
        "the till is offline",
        "no paper (2 tries)",
        "the till is offline",
    ]


def test_a_problem_leads_to_the_page_that_tells_more() -> None:
    def page_for(code: str, store: str, subject: str = "") -> Remedy | None:
        problem: Any = {"code": code, "store": store, "subject": subject}
        return page_of(problem)

    page = page_for("order.price_differs", "main", "ord_7")
    assert page is not None
    assert (page.path, page.parts) == ("/orders/{order}", {"order": "ord_7"})
    untold = page_for("order.untold", "main")
    assert untold is not None
    assert untold.path == "/orders"
    assert page_for("export.bad_rows", "main", "tables") is None
    assert page_for("disk.over_budget", "") is None
