"""The overview's data: the verdict, the way of an order, the strip of the last 24 hours."""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_control import FakeControl
from tests.support.page_sample import busy
from tillbridge.core.formats import clock_time
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.day import Day, WaitingOrder
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.overview import DayView, overview
from tillbridge.web.site.overview import HEIGHT, WIDTH, Remedy, drawn, page_of, remedies_of

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
        ("ledger.unwritable", "the ledger cannot be written"),
        ("integration.missing", "the store is not integrated with this bridge"),
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
    day = Day(NOW - 24 * 60 * MINUTE)
    day.last_delivery["main"] = NOW - 2 * MINUTE
    day.last_ticket["main"] = NOW - 3 * MINUTE
    answer = told(
        day=day,
        stores={"main": StoreSnapshot(facts={"service_contact": {"ok_at": NOW - MINUTE}})},
        pos_seen={"main": NOW - 1000},
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
    assert chain["address"]["what"] == "a delivery came"
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
    assert chain["address"]["note"] == ""


def test_open_and_past_outages_are_spans() -> None:
    day = Day(NOW - 24 * 60 * MINUTE)
    day.past.append(
        PastProblem(
            code="bridge.stopped",
            store="",
            subject="",
            since=NOW - 90 * MINUTE,
            until=NOW - 60 * MINUTE,
        )
    )
    day.past.append(
        PastProblem(code="menu.held", store="main", subject="", since=NOW - 90 * MINUTE, until=NOW)
    )
    answer = told(OpenProblem("pos.offline", "main", "", NOW - MINUTE, {"detail": "x"}), day=day)
    spans = answer["day"]["spans"]
    assert [(each["code"], each["ended"]) for each in spans] == [
        ("bridge.stopped", True),
        ("pos.offline", False),
    ]
    drawing = drawn(answer["day"])
    assert [round(each["width"]) for each in drawing["spans"]] == [20, 2]


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=24, max_size=24),
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 60)), max_size=8),
)
def test_everything_drawn_is_inside_the_strip(
    hours: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> None:
    hour_ms = 60 * MINUTE
    day = {
        "from_ms": NOW - 24 * hour_ms,
        "hours": [{"orders": good, "failed": bad} for good, bad in hours],
        "spans": [
            {
                "code": "pos.offline",
                "store": "",
                "since": NOW + begin * hour_ms,
                "until": NOW + (begin + length) * hour_ms,
                "ended": True,
            }
            for begin, length in spans
        ],
    }
    drawing = drawn(cast("DayView", day))
    for bar in drawing["bars"]:
        assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= WIDTH
        assert -0.2 <= bar["failed_y"] <= bar["orders_y"] <= HEIGHT
    for span in drawing["spans"]:
        assert 0 <= span["x"] <= WIDTH
        assert span["x"] + span["width"] <= WIDTH + 2.1


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
            ("/stores/{store}/menu/approve", {"store": "main"}),
            ("/stores/{store}/menu/dismiss", {"store": "main"}),
        ],
        "consent.ending": [("/stores/{store}/connect", {"store": "main"})],
    }


def test_an_order_that_was_never_tried_says_what_it_waits_for() -> None:
    day = Day(NOW - 24 * 60 * MINUTE)
    day.waiting.append(WaitingOrder("main", "ord_1", "A-1", NOW - MINUTE, 0, ""))
    day.waiting.append(WaitingOrder("main", "ord_2", "A-2", NOW - MINUTE, 2, "no paper"))
    away = StoreSnapshot(facts={"pos_health": {"online": False, "detail": "off"}})
    assert [each["why"] for each in told(day=day)["waiting"]] == [
        "on its way",
        "no paper (2 tries)",
    ]
    assert told(day=day, stores={"main": away})["waiting"][0]["why"] == "off"


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
