"""`/metrics` for Prometheus: what is so now, from the status document, and what has happened."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tillbridge.tally import Tally

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Name in the tally; name and help for Prometheus; labels.
_COUNTED = (
    (
        "deliveries",
        "tillbridge_deliveries",
        "Webhook deliveries by the HTTP status they were answered with.",
        ("store", "status"),
    ),
    (
        "service_calls",
        "tillbridge_service_calls",
        "Calls to the ordering service: done, refused, or not answered.",
        ("store", "operation", "outcome"),
    ),
)


def exposition(document: Mapping[str, Any], tally: Tally) -> bytes:
    """Return the text Prometheus reads: what is so now, and what was counted."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Counters(tally))
    registry.register(_Gauges(document))
    return generate_latest(registry)


class _Counters(Collector):
    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        for counted, name, text, labels in _COUNTED:
            family = CounterMetricFamily(name, text, labels=labels)
            for values, count in self._tally.of(counted).items():
                told = dict(values)
                family.add_metric([told.get(label, "") for label in labels], count)
            yield family


class _Gauges(Collector):
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def collect(self) -> Iterator[Metric]:
        bridge = self._document["bridge"]
        yield InfoMetricFamily(
            "tillbridge_build", "The version that runs.", {"version": bridge["version"]}
        )
        yield GaugeMetricFamily(
            "tillbridge_uptime_seconds", "How long it runs.", bridge["uptime_s"] or 0
        )
        yield self._verdict()
        yield self._problems()
        yield from self._stores()

    def _verdict(self) -> Metric:
        family = GaugeMetricFamily(
            "tillbridge_verdict", "1 for the level that holds now.", labels=["level"]
        )
        for level in ("ok", "warning", "down"):
            family.add_metric([level], self._document["verdict"]["level"] == level)
        return family

    def _problems(self) -> Metric:
        family = GaugeMetricFamily(
            "tillbridge_problems",
            "Open problems by code (docs/problems.md).",
            labels=["code", "severity", "store"],
        )
        counts: dict[tuple[str, str, str], int] = {}
        for problem in self._document["problems"]:
            key = (problem["code"], problem["severity"], problem["store"])
            counts[key] = counts.get(key, 0) + 1
        for labels, count in counts.items():
            family.add_metric(labels, count)
        return family

    def _stores(self) -> Iterator[Metric]:
        for name, text, value in _STORE_GAUGES:
            family = GaugeMetricFamily(name, text, labels=["store"])
            for store, told in self._document["stores"].items():
                number = value(told)
                if number is not None:
                    family.add_metric([store], number)
            yield family
        states = GaugeMetricFamily(
            "tillbridge_orders", "Orders that are remembered, by state.", labels=["store", "state"]
        )
        for store, told in self._document["stores"].items():
            for state, count in told["orders"]["by_state"].items():
                states.add_metric([store, state], count)
        yield states


def _seconds(iso: str | None) -> float | None:
    return None if iso is None else datetime.fromisoformat(iso).timestamp()


def _online(told: Mapping[str, Any]) -> float | None:
    online = told["pos"]["online"]
    return None if online is None else float(online)


_STORE_GAUGES = (
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
        "tillbridge_menu_acknowledged_items",
        "Items of the menu that the service has accepted.",
        lambda told: told["menu"]["acknowledged_items"],
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
        "tillbridge_store_paused",
        "1 while the bridge has paused the store.",
        lambda told: float(told["service"]["paused"]),
    ),
    ("tillbridge_pos_online", "1 while the POS can be reached.", _online),
)
