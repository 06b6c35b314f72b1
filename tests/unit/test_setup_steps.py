"""Which step of setting up may be taken, and how far a bridge that runs is."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_control import FakeControl
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.setup.draft import STEPS, Draft, Finding, findings_of, next_step, steps_of
from tillbridge.setup.pos import SAMPLE_MENU
from tillbridge.setup.service import left_of_practice
from tillbridge.status.document import document
from tillbridge.status.overview import overview


@given(st.dictionaries(st.sampled_from(tuple(STEPS)), st.booleans()))
def test_at_most_one_step_is_open_and_it_is_the_first_that_is_not_done(
    done: dict[str, bool],
) -> None:
    steps = steps_of({name: Finding(each) for name, each in done.items()})
    assert [step.name for step in steps] == list(STEPS)
    opened = [step.name for step in steps if step.state == "open"]
    missing = [name for name in STEPS if not done.get(name)]
    assert opened == missing[:1]
    assert next_step(steps) == (missing[0] if missing else "")


def _findings(
    snapshot: StoreSnapshot, *problems: OpenProblem, delivered: bool = False
) -> dict[str, Finding]:
    control = FakeControl()
    facts = replace(control.facts, stores={"main": snapshot}, problems=problems)
    told = overview(document(facts, control.now_ms), facts, control.day, control.now_ms)
    return findings_of(told, "main", base_url="https://service.example/v2", delivered=delivered)


def test_of_a_new_store_nothing_is_done() -> None:
    findings = _findings(StoreSnapshot())
    assert set(findings) == set(STEPS) - {"save"}
    assert not [name for name, finding in findings.items() if finding.done]
    assert all(finding.text and finding.fix for finding in findings.values())


def test_of_a_store_that_works_everything_is() -> None:
    now = FakeControl().now_ms
    snapshot = StoreSnapshot(
        by_state={"accepted": 3},
        acknowledged_items=80,
        facts={
            "service_contact": {"ok_at": now - 5000},
            "consent": {"expires_at": now + 3 * 86_400_000},
            "integration": {
                "status": "active",
                "webhook_url": "https://store.example/webhooks/main",
            },
            "service_store_id": "st_main",
            "service_store_name": "Harbour",
            "public_address": {"ok_at": now},
        },
    )
    findings = _findings(snapshot)
    assert all(finding.done for finding in findings.values())
    assert findings["store"].text == "Harbour is connected."
    assert "80 items" in findings["adapter"].text

    found = _findings(snapshot, OpenProblem("integration.secret_missing", "main", "", now))
    assert not found["store"].done
    assert found["store"].text.startswith("Another bridge connected Harbour")
    assert "Get a new webhook secret" in found["store"].fix


def test_a_signed_delivery_is_told_before_the_first_order() -> None:
    order = _findings(StoreSnapshot(), delivered=True)["order"]
    assert not order.done
    assert order.text == "The ordering service reaches this bridge; no order has arrived yet."


def test_what_is_good_for_practising_alone_opens_beside_a_real_service() -> None:
    practised = Draft(
        base_url="http://127.0.0.1:9000/v2",
        pos={"adapter": "folder", "menu": SAMPLE_MENU},
        public_url="http://127.0.0.1:8088",
    )
    assert left_of_practice(practised) == {}
    assert left_of_practice(Draft(base_url="https://ordering.example.com/v2")) == {}
    real = practised.with_answers(base_url="https://ordering.example.com/v2")
    left = left_of_practice(real)
    assert left["adapter"].text == "The till is still the sample till."
    assert left["address"].text.endswith("for practising: http://127.0.0.1:8088")
    own = real.with_answers(
        pos={"adapter": "folder", "menu": "menu.csv"}, public_url="https://store-17.example.net"
    )
    assert left_of_practice(own) == {}
