"""The status document, and the metrics made of it."""

from tillbridge.core.formats import days_left, span
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.snapshot import Held, StoreSnapshot
from tillbridge.operations.status import Measures
from tillbridge.status.document import BridgeFacts, document
from tillbridge.web.metrics import exposition

NOW = 1_795_287_720_000
DAY = 86_400_000


def facts(
    *problems: OpenProblem, running: bool = True, stores: dict[str, StoreSnapshot] | None = None
) -> BridgeFacts:
    known = {"main": StoreSnapshot()} if stores is None else stores
    return BridgeFacts(
        version="1.2.3",
        running=running,
        adapters=dict.fromkeys(known, "folder"),
        stores=known,
        problems=problems,
        pid=77,
        started_at=NOW - 90_000,
    )


def test_without_problems_orders_are_taken() -> None:
    told = document(facts(), NOW)
    assert told["verdict"] == {
        "level": "ok",
        "text": "Taking orders.",
        "handled": False,
        "effect": "Taking orders.",
    }
    assert {**told["bridge"], "compatibility": None} == {
        "version": "1.2.3",
        "running": True,
        "uptime_s": 90,
        "pid": 77,
        "compatibility": None,
    }
    assert told["problems"] == []


def test_waiting_orders_are_told_with_the_oldest() -> None:
    store = StoreSnapshot(waiting=2, oldest_waiting_at=NOW - 185_000)
    told = document(facts(stores={"main": store}), NOW)
    assert told["verdict"]["text"] == (
        "Taking orders. 2 orders wait for the till, the oldest for 3 minutes."
    )
    orders = told["stores"]["main"]["orders"]
    assert orders["figures"]["24h"]["orders"] == 0
    assert orders["today"]["orders"] == 0
    assert {**orders, "figures": None, "today": None} == {
        "waiting": 2,
        "by_state": {},
        "oldest_waiting_s": 185,
        "untold": 0,
        "figures": None,
        "today": None,
    }


def test_the_worst_problem_leads() -> None:
    ending = OpenProblem("consent.ending", "main", "", NOW - DAY, {"left": "1 day"})
    offline = OpenProblem("pos.offline", "main", "", NOW - 1000, {"detail": "no heartbeat"})
    told = document(facts(ending, offline), NOW)
    assert told["verdict"]["level"] == "down"
    assert told["verdict"]["text"] == (
        "The till is not taking orders: no heartbeat. (And 1 more problem.)"
    )
    assert [problem["code"] for problem in told["problems"]] == ["pos.offline", "consent.ending"]
    assert told["problems"][1]["fix"].endswith("tillbridge connect main")
    assert told["problems"][0]["since"].endswith("Z")


def test_only_warnings_are_a_warning() -> None:
    ending = OpenProblem("consent.ending", "main", "", NOW, {"left": "1 day"})
    assert document(facts(ending), NOW)["verdict"]["level"] == "warning"


def test_with_several_stores_the_verdict_names_the_one() -> None:
    offline = OpenProblem("pos.offline", "bar", "", NOW, {"detail": "off"})
    told = document(facts(offline, stores={"bar": StoreSnapshot(), "main": StoreSnapshot()}), NOW)
    assert told["verdict"]["text"].startswith("bar: The till")


def test_a_bridge_that_does_not_run_is_down() -> None:
    told = document(facts(running=False), NOW)
    assert told["verdict"]["level"] == "down"
    assert told["problems"][0]["code"] == "bridge.stopped"
    assert told["bridge"]["pid"] is None
    assert told["bridge"]["uptime_s"] is None


def test_a_store_the_ledger_does_not_know_yet_is_shown_empty() -> None:
    bare = BridgeFacts(version="1", running=True, adapters={"new": "folder"})
    told = document(bare, NOW)["stores"]["new"]
    assert told["menu"]["acknowledged_items"] == 0
    assert told["pos"] == {
        "adapter": "folder",
        "online": None,
        "since": None,
        "detail": "",
        "last_seen_at": None,
        "latency_ms": None,
        "adapters": [],
    }
    assert told["service"]["consent_days_left"] is None


def test_a_store_shows_service_pos_and_menu() -> None:
    store = StoreSnapshot(
        acknowledged_items=12,
        held=Held(NOW - 5000, ("8 of 12 items would vanish.",)),
        facts={
            "consent": {"expires_at": NOW + 5 * DAY // 2, "obtained_at": NOW},
            "integration": {"status": "active", "menu_sync_direction": "pos_to_quiqqy"},
            "standing": {"pos_away": {"by": "bridge", "since_ms": NOW - 1000}},
            "pos_health": {"online": False, "since_ms": NOW - 1000, "detail": "no heartbeat"},
            "last_synced_at": NOW - 60_000,
            "service_store_id": "st_main",
        },
    )
    told = document(facts(stores={"main": store}), NOW)["stores"]["main"]
    assert told["service"]["consent_days_left"] == 2.5
    assert told["service"]["paused"] is True
    assert told["service"]["store_id"] == "st_main"
    assert told["pos"]["online"] is False
    assert told["menu"]["held"] is True
    assert told["menu"]["held_reasons"] == ["8 of 12 items would vanish."]
    assert told["menu"]["last_synced_at"] == "2026-11-21T19:01:00.000Z"


def test_an_ended_consent_has_no_days_left() -> None:
    store = StoreSnapshot(facts={"consent": {"expires_at": NOW - DAY}})
    told = document(facts(stores={"main": store}), NOW)["stores"]["main"]
    assert told["service"]["consent_days_left"] == 0


def test_a_store_is_connected_only_to_the_service_that_has_let_the_bridge_in() -> None:
    known = {"consent": {"expires_at": NOW + 5 * DAY}, "integration": {"status": "active"}}
    stores = {"main": StoreSnapshot(facts=known)}
    assert document(facts(stores=stores), NOW)["stores"]["main"]["service"]["integrated"]
    moved = OpenProblem("consent.missing", "main", "", NOW, {})  # another address of the service
    told = document(facts(moved, stores=stores), NOW)["stores"]["main"]["service"]
    assert (told["integrated"], told["consent"]) == (False, "none")
    assert (told["consent_days_left"], told["consent_expires_at"]) == (None, None)


def test_spans_are_told_in_their_largest_unit() -> None:
    told = [span(seconds) for seconds in (-1, 1, 59, 61, 119 * 60, 7200, 2 * 86_400)]
    assert told == [
        "0 seconds",
        "1 second",
        "59 seconds",
        "1 minute",
        "119 minutes",
        "2 hours",
        "2 days",
    ]


def test_metrics_tell_the_document_and_what_was_counted() -> None:
    metrics = Metrics()
    metrics.deliveries.labels(store="main", result="new").inc()
    offline = OpenProblem("pos.offline", "main", "", NOW, {"detail": "off"})
    store = StoreSnapshot(waiting=3, oldest_waiting_at=NOW - 4000, by_state={"accepted": 2})
    told = document(facts(offline, stores={"main": store}), NOW)
    measures: Measures = {"status": told, "pushes": [], "ledger_bytes": 9, "ledger_writable": True}
    text = exposition(measures, metrics).decode()
    for line in (
        'tillbridge_build_info{version="1.2.3"} 1.0',
        'tillbridge_verdict{level="down"} 1.0',
        'tillbridge_verdict{level="ok"} 0.0',
        'tillbridge_problems{code="pos.offline",severity="down",store="main"} 1.0',
        'tillbridge_orders_waiting{store="main"} 3.0',
        'tillbridge_oldest_waiting_order_seconds{store="main"} 4.0',
        'tillbridge_orders{state="accepted",store="main"} 2.0',
        'tillbridge_deliveries_total{result="new",store="main"} 1.0',
    ):
        assert line in text.splitlines(), line


def test_where_no_order_arrives_that_leads_whatever_began_before() -> None:
    offline = OpenProblem("pos.offline", "main", "", NOW - DAY, {"detail": "no heartbeat"})
    tunnel = OpenProblem("public_address.unreachable", "", "", NOW, {"detail": "it refuses"})
    held = OpenProblem("menu.held", "main", "", NOW - 2 * DAY, {"detail": "x"})
    told = document(facts(held, offline, tunnel), NOW)
    assert [problem["code"] for problem in told["problems"]] == [
        "public_address.unreachable",
        "pos.offline",
        "menu.held",
    ]
    assert told["verdict"]["text"].startswith("No orders can arrive since ")
    assert told["verdict"]["text"].endswith("(And 2 more problems.)")


def test_a_store_that_takes_no_orders_leads_among_warnings() -> None:
    file = OpenProblem("store.file_unreadable", "main", "", NOW - DAY, {"detail": "2:\n a\n b"})
    paused = OpenProblem("store.paused_by_staff", "main", "", NOW, {"by": "anna", "reason": ""})
    told = document(facts(file, paused), NOW)
    assert told["verdict"]["text"] == (
        "The store takes no orders: anna paused it. (And 1 more problem.)"
    )


def test_a_pause_that_a_person_gave_an_end_is_no_trouble() -> None:
    problem = OpenProblem("store.paused_by_staff", "main", "", NOW, {"by": "anna", "reason": ""})
    pause = {"by": "anna", "since_ms": NOW, "until_ms": NOW + 900_000}
    planned = {"main": StoreSnapshot(facts={"standing": {"person": pause}})}
    told = document(facts(problem, stores=planned), NOW)["verdict"]
    assert (told["level"], told["handled"]) == ("warning", True)
    assert told["text"].startswith("anna paused the store until ")
    # Over, without an end, or not all that is wrong: somebody has to look.
    assert not document(facts(problem, stores=planned), NOW + 900_000)["verdict"]["handled"]
    endless = {"main": StoreSnapshot(facts={"standing": {"person": {**pause, "until_ms": None}}})}
    assert not document(facts(problem, stores=endless), NOW)["verdict"]["handled"]
    other = OpenProblem("pos.offline", "main", "", NOW, {"detail": "gone"})
    assert not document(facts(other, problem, stores=planned), NOW)["verdict"]["handled"]


def test_the_verdict_is_a_sentence_and_not_the_list_that_a_problem_holds() -> None:
    detail = "2 settings are wrong:\n  hours.toml: no week\n  hours.toml: no zone"
    told = document(
        facts(OpenProblem("store.file_unreadable", "main", "", 1, {"detail": detail})), 9
    )
    assert told["verdict"]["text"].endswith("cannot be used: 2 settings are wrong.")
    assert told["problems"][0]["text"].endswith("no zone")


def test_what_is_left_of_a_consent_is_the_same_wherever_it_is_told() -> None:
    for left_ms in (7 * DAY - 1000, 3 * DAY + 7_000_000, 40 * 3_600_000, 1):
        store = StoreSnapshot(facts={"consent": {"expires_at": NOW + left_ms}})
        days = document(facts(stores={"main": store}), NOW)["stores"]["main"]["service"][
            "consent_days_left"
        ]
        assert days is not None
        assert span(days * 86_400) == days_left(left_ms)
    assert days_left(7 * DAY - 1000) == "7 days"
