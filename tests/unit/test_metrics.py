"""What Prometheus reads: parsed by its own parser, named by its conventions, documented whole."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from prometheus_client import process_collector
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.figures import Figures, StoreFigures
from tillbridge.ledger.snapshot import Held, StoreSnapshot
from tillbridge.operations.status import Measures
from tillbridge.status.document import BridgeFacts, document
from tillbridge.web.metrics import exposition

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_795_287_720_000
LABELS = {
    "code",
    "level",
    "operation",
    "outcome",
    "result",
    "severity",
    "span",
    "state",
    "store",
    "version",
    "le",
}


def full() -> str:
    """Everything there is to tell."""
    metrics = Metrics()
    metrics.deliveries.labels(store="main", result="new").inc()
    metrics.service_calls.labels(store="main", operation="orders.accept", outcome="done").inc()
    metrics.surplus_connections.labels(result="replaced").inc()
    metrics.call_duration.labels(operation="orders.accept").observe(0.2)
    metrics.time_to_ticket.labels(store="main").observe(0.04)
    metrics.time_to_accept.labels(store="main").observe(400)
    store = StoreSnapshot(
        waiting=2,
        oldest_waiting_at=NOW - 4_000,
        by_state={"accepted": 2},
        held=Held(NOW, ("too much",)),
        facts={
            "consent": {"expires_at": NOW + 1000},
            "pos_health": {"online": True},
            "last_synced_at": NOW,
            "service_contact": {"ok_at": NOW},
        },
    )
    facts = BridgeFacts(
        version="1.2.3",
        running=True,
        adapters={"main": "folder"},
        stores={"main": store},
        problems=[OpenProblem("pos.offline", "main", "", NOW, {})],
        started_at=NOW - 5000,
        figures={"main": StoreFigures({"24h": Figures(orders=4, needed_a_hand=1)})},
    )
    measures: Measures = {
        "status": document(facts, NOW),
        "pushes": [("main", "success", 3)],
        "ledger_bytes": 4096,
        "ledger_writable": True,
    }
    return exposition(measures, metrics).decode()


def families() -> Iterator[Metric]:
    yield from text_string_to_metric_families(full())


def ours() -> list[Metric]:
    return [each for each in families() if not each.name.startswith("process_")]


def test_every_family_says_what_it_is_and_has_samples() -> None:
    for family in families():
        assert family.documentation.endswith("."), family.name
        assert family.type != "unknown", family.name
        assert family.samples, family.name


@pytest.mark.parametrize("family", ours(), ids=lambda family: str(family.name))
def test_names_follow_the_conventions(family: Metric) -> None:
    name = family.name
    assert re.fullmatch(r"tillbridge_[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert not re.search(r"_(ms|milliseconds|minutes|hours|days|kb|mb|percent)(_|$)", name)
    assert name == "tillbridge_build_info" or not name.endswith(
        ("_total", "_count", "_sum", "_bucket", "_info")
    )
    for unit in ("seconds", "bytes", "ratio"):
        assert f"_{unit}_" not in f"{name}_".removesuffix(f"_{unit}_")
    if family.type == "counter":
        assert all(each.name.endswith("_total") for each in family.samples)
    if family.type == "histogram":
        assert name.endswith("_seconds")


@pytest.mark.parametrize("family", ours(), ids=lambda family: str(family.name))
def test_labels_are_few_and_known(family: Metric) -> None:
    for sample in family.samples:
        assert set(sample.labels) <= LABELS, sample
        assert len(sample.labels) <= 4


def test_the_reference_lists_every_metric_with_its_meaning_and_no_other() -> None:
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(tillbridge_[a-z_]+)` \| (.+) \|$", page, re.MULTILINE))
    shown = {}
    for family in ours():
        ends = {"counter": "_total", "gauge": "", "histogram": ""}
        name = family.name + ends.get(family.type, "")
        labels = sorted({label for each in family.samples for label in each.labels} - {"le"})
        told = ", ".join(f"`{label}`" for label in labels)
        shown[name] = f"{family.type} | {told} | {family.documentation}"
    assert documented == shown


def test_nothing_is_told_of_when_counting_began() -> None:
    assert "_created" not in full()


def test_a_process_that_sees_nothing_of_the_machine_tells_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in its unit: ProcSubset=pid hides /proc/stat."""

    def hidden(path: str, mode: str) -> IO[Any]:
        if path == "/proc/stat":
            raise FileNotFoundError(path)
        return Path(path).open(mode)

    monkeypatch.setattr(process_collector, "open", hidden, raising=False)
    told = [dict(re.findall(r"^(process_\w+) (\S+)$", full(), re.MULTILINE)) for _ in range(2)]
    assert int(float(told[0]["process_resident_memory_bytes"])) > 1_000_000
    began = float(told[0]["process_start_time_seconds"])
    assert 0 < time.time() - began < 86_400
    assert told[1]["process_start_time_seconds"] == told[0]["process_start_time_seconds"]
