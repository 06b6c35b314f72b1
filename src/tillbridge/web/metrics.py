"""`/metrics` for Prometheus: what is so now, from the status document, and what has happened.

Names follow Prometheus's conventions: the prefix tillbridge_, base units (seconds, bytes), `_total`
for counters. Labels come from the configuration and the code only. docs/metrics.md lists them all.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import Severity

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(measures: Mapping[str, Any], metrics: Metrics) -> bytes:
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
    """Return when this machine was started (Unix time, s); OSError where none can tell."""
    if sys.platform == "linux":
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    raise OSError


class _Now(Collector):
    def __init__(self, measures: Mapping[str, Any]) -> None:
        self._measures = measures
        self._document = measures["status"]

    def collect(self) -> Iterator[Metric]:
        bridge = self._document["bridge"]
        yield InfoMetricFamily(
            "tillbridge_build", "The version that runs.", {"version": bridge["version"]}
        )
        yield GaugeMetricFamily(
            "tillbridge_uptime_seconds", "How long it runs.", bridge["uptime_s"] or 0
        )
        yield GaugeMetricFamily(
            "tillbridge_ledger_size_bytes",
            "What the ledger takes on disk.",
            self._measures["ledger_bytes"],
        )
        yield GaugeMetricFamily(
            "tillbridge_ledger_writable",
            "1 while the ledger can be written.",
            float(self._measures["ledger_writable"]),
        )
        yield self._verdict()
        yield from self._problems()
        yield from self._stores()

    def _verdict(self) -> Metric:
        family = GaugeMetricFamily(
            "tillbridge_verdict", "1 for the level that holds now.", labels=["level"]
        )
        for level in ("ok", "warning", "down"):
            family.add_metric([level], self._document["verdict"]["level"] == level)
        return family

    def _problems(self) -> Iterator[Metric]:
        by_severity = GaugeMetricFamily(
            "tillbridge_problems_open", "Open problems by severity.", labels=["severity"]
        )
        problems = self._document["problems"]
        for severity in Severity:
            count = sum(problem["severity"] == severity for problem in problems)
            by_severity.add_metric([severity], count)
        yield by_severity
        family = GaugeMetricFamily(
            "tillbridge_problems",
            "Open problems by code (docs/problems.md).",
            labels=["code", "severity", "store"],
        )
        counts: dict[tuple[str, str, str], int] = {}
        for problem in problems:
            key = (problem["code"], problem["severity"], problem["store"])
            counts[key] = counts.get(key, 0) + 1
        for labels, count in counts.items():
            family.add_metric(labels, count)
        yield family

    def _stores(self) -> Iterator[Metric]:
        stores = self._document["stores"]
        for name, text, value in _STORE_GAUGES:
            family = GaugeMetricFamily(name, text, labels=["store"])
            for store, told in stores.items():
                number = value(told)
                if number is not None:
                    family.add_metric([store], number)
            yield family
        states = GaugeMetricFamily(
            "tillbridge_orders", "Orders that are remembered, by state.", labels=["store", "state"]
        )
        shares = GaugeMetricFamily(
            "tillbridge_orders_needed_a_hand_ratio",
            "Share of orders that needed a hand, or were lost.",
            labels=["store", "span"],
        )
        for store, told in stores.items():
            for state, count in told["orders"]["by_state"].items():
                states.add_metric([store, state], count)
            for span, figures in told["orders"]["figures"].items():
                if figures["needed_a_hand_share"] is not None:
                    shares.add_metric([store, span], figures["needed_a_hand_share"])
        yield states
        yield shares
        pushes = GaugeMetricFamily(
            "tillbridge_menu_pushes",
            "Pushes of the menu that are remembered, by how they ended.",
            labels=["store", "state"],
        )
        for store, state, count in self._measures["pushes"]:
            pushes.add_metric([store, state], count)
        yield pushes


def _seconds(iso: str | None) -> float | None:
    return None if iso is None else datetime.fromisoformat(iso).timestamp()


def _online(told: Mapping[str, Any]) -> float | None:
    online = told["pos"]["online"]
    return None if online is None else float(online)


_STORE_GAUGES: tuple[tuple[str, str, Callable[[Mapping[str, Any]], float | None]], ...] = (
    (
        "tillbridge_orders_waiting",
        "Orders that the till does not have yet.",
        lambda told: told["orders"]["waiting"],
    ),
    (
        "tillbridge_oldest_waiting_order_seconds",
        "For how long the oldest of them waits.",
        lambda told: told["orders"]["oldest_waiting_s"] or 0,
    ),
    (
        "tillbridge_orders_untold",
        "Orders of which the service is still to be told something.",
        lambda told: told["orders"]["untold"],
    ),
    (
        "tillbridge_menu_acknowledged_items",
        "Items of the menu that the service has accepted.",
        lambda told: told["menu"]["acknowledged_items"],
    ),
    (
        "tillbridge_menu_refused_items",
        "Items of the menu that the service has refused.",
        lambda told: told["menu"]["refused_items"],
    ),
    (
        "tillbridge_menu_pending_changes",
        "Changes of the menu that the service has not accepted yet.",
        lambda told: told["menu"]["pending"],
    ),
    (
        "tillbridge_menu_held",
        "1 while a menu change waits for a person.",
        lambda told: float(told["menu"]["held"]),
    ),
    (
        "tillbridge_menu_last_sync_timestamp_seconds",
        "When the service last accepted the menu.",
        lambda told: _seconds(told["menu"]["last_synced_at"]),
    ),
    (
        "tillbridge_consent_expiry_timestamp_seconds",
        "When the merchant's consent ends.",
        lambda told: _seconds(told["service"]["consent_expires_at"]),
    ),
    (
        "tillbridge_service_last_contact_timestamp_seconds",
        "When the ordering service last answered.",
        lambda told: _seconds(told["service"]["last_contact_at"]),
    ),
    (
        "tillbridge_store_paused",
        "1 while the store takes no orders.",
        lambda told: float(told["service"]["paused"]),
    ),
    ("tillbridge_pos_online", "1 while the POS can be reached.", _online),
)
