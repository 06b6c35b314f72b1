"""`/metrics` for Prometheus: what is so now, from the status document, and what has happened.

Names follow Prometheus's conventions: the prefix tillbridge_, base units (seconds, bytes), `_total`
for counters. Labels come from the configuration and the code only. docs/metrics.md lists them all.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import Severity
from tillbridge.operations.status import Measures
from tillbridge.status.views import StoreView

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(measures: Measures, metrics: Metrics) -> bytes:
    """Return the text Prometheus reads: what is so now (`Control.measures`), what was counted."""
    registry = CollectorRegistry(auto_describe=False)
    _Process(registry=registry)
    registry.register(metrics)
    registry.register(_Now(measures))
    return generate_latest(registry)


class _Process(ProcessCollector):
    """The process, where /proc/stat is hidden from it too: ProcSubset=pid in its unit."""

    def _boot_time(self) -> float:
        return _booted_at()


@cache  # each look at the clocks tells a little another moment, and would pass for a restart
def _booted_at() -> float:
    """Return when this machine was started (Unix time, s); OSError if that is unknown."""
    if sys.platform == "linux":
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    raise OSError


Samples = Iterable[tuple[Sequence[str], float | None]]
"""Values by their labels; None: there is none now."""


def _gauge(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(f"tillbridge_{name}", text, labels=labels)
    for of, value in samples:
        if value is not None:
            family.add_metric(of, value)
    return family


class _Now(Collector):
    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._document = measures["status"]

    def collect(self) -> Iterator[Metric]:
        measures, bridge = self._measures, self._document["bridge"]
        yield InfoMetricFamily(
            "tillbridge_build", "The version that is running.", {"version": bridge["version"]}
        )
        for name, text, value in (
            ("uptime_seconds", "How long the bridge has been running.", bridge["uptime_s"] or 0),
            ("ledger_size_bytes", "Size of the database on disk.", measures["ledger_bytes"]),
            (
                "ledger_writable",
                "1 while the database is writable.",
                float(measures["ledger_writable"]),
            ),
        ):
            yield _gauge(name, text, (), [((), value)])
        level = self._document["verdict"]["level"]
        yield _gauge(
            "verdict",
            "1 for the current level.",
            ["level"],
            [([each], each == level) for each in ("ok", "warning", "down")],
        )
        yield from self._problems()
        yield from self._stores()

    def _problems(self) -> Iterator[Metric]:
        problems = self._document["problems"]
        by_severity = Counter(each["severity"] for each in problems)
        yield _gauge(
            "problems_open",
            "Open problems by severity.",
            ["severity"],
            [([each], by_severity[each]) for each in Severity],
        )
        labels = ("code", "severity", "store")
        by_code = Counter((each["code"], each["severity"], each["store"]) for each in problems)
        yield _gauge(
            "problems", "Open problems by code (docs/problems.md).", labels, by_code.items()
        )

    def _stores(self) -> Iterator[Metric]:
        stores = self._document["stores"]
        measured = {store: _of_store(part) for store, part in stores.items()}
        for name, text in _STORE_GAUGES.items():
            samples = [([store], values[name]) for store, values in measured.items()]
            yield _gauge(name, text, ["store"], samples)
        yield _gauge(
            "orders",
            "Orders in the database, by state.",
            ["store", "state"],
            [
                ([store, state], count)
                for store, part in stores.items()
                for state, count in part["orders"]["by_state"].items()
            ],
        )
        yield _gauge(
            "orders_needed_a_hand_ratio",
            "Share of orders that needed manual help, or were lost.",
            ["store", "span"],
            [
                ([store, span], figures["needed_a_hand_share"])
                for store, part in stores.items()
                for span, figures in part["orders"]["figures"].items()
            ],
        )
        yield _gauge(
            "menu_pushes",
            "Menu pushes in the database, by outcome.",
            ["store", "state"],
            [([store, state], count) for store, state, count in self._measures["pushes"]],
        )


def _seconds(iso: str | None) -> float | None:
    return None if iso is None else datetime.fromisoformat(iso).timestamp()


def _of_store(view: StoreView) -> Mapping[str, float | None]:
    """Return what is measured of a store, by the names of `_STORE_GAUGES`."""
    orders, menu, service = view["orders"], view["menu"], view["service"]
    return {
        "orders_waiting": orders["waiting"],
        "oldest_waiting_order_seconds": orders["oldest_waiting_s"] or 0,
        "orders_untold": orders["untold"],
        "menu_acknowledged_items": menu["acknowledged_items"],
        "menu_refused_items": menu["refused_items"],
        "menu_pending_changes": menu["pending"],
        "menu_held": menu["held"],
        "menu_last_sync_timestamp_seconds": _seconds(menu["last_synced_at"]),
        "consent_expiry_timestamp_seconds": _seconds(service["consent_expires_at"]),
        "service_last_contact_timestamp_seconds": _seconds(service["last_contact_at"]),
        "store_paused": service["paused"],
        "pos_online": view["pos"]["online"],
    }


_STORE_GAUGES = {
    "orders_waiting": "Orders that the till does not have yet.",
    "oldest_waiting_order_seconds": "How long the oldest of them has been waiting.",
    "orders_untold": "Orders with a change that is not reported to the service yet.",
    "menu_acknowledged_items": "Menu items that the service has accepted.",
    "menu_refused_items": "Menu items that the service has refused.",
    "menu_pending_changes": "Menu changes that the service has not accepted yet.",
    "menu_held": "1 while a menu change is on hold.",
    "menu_last_sync_timestamp_seconds": "When the service last accepted the menu.",
    "consent_expiry_timestamp_seconds": "When the merchant's consent ends.",
    "service_last_contact_timestamp_seconds": "When the ordering service last answered.",
    "store_paused": "1 while the store takes no orders.",
    "pos_online": "1 while the POS can be reached.",
}
