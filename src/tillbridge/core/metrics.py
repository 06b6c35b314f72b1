"""What is counted since the start, for `/metrics`: prometheus_client's own counters.

Labels come from the configuration or from the code, never from outside: their number is bounded.
docs/metrics.md lists them all.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from tillbridge.service.caller import Contact

# Upper bounds of durations, in seconds; what is longer has no bound.
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics(Collector):
    """The bridge's counters, in a registry of their own. Used from the event loop."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self.deliveries = self._counter(
            "tillbridge_deliveries",
            "Webhook deliveries: new, known, or the reason for the refusal.",
            "store",
            "result",
        )
        self.surplus_connections = self._counter(
            "tillbridge_surplus_connections",
            "Connections beyond max_connections: refused, or accepted, replacing another.",
            "result",
        )
        self.service_calls = self._counter(
            "tillbridge_service_calls",
            "Calls to the ordering service: done, refused, or unanswered.",
            "store",
            "operation",
            "outcome",
        )
        self.time_to_ticket = self._durations(
            "tillbridge_order_time_to_ticket_seconds",
            "From the delivery of an order until the till has its ticket.",
            "store",
        )
        self.time_to_accept = self._durations(
            "tillbridge_order_time_to_accept_seconds",
            "From the delivery of an order until its acceptance is reported to the service.",
            "store",
        )
        self.call_duration = self._durations(
            "tillbridge_service_call_duration_seconds",
            "Duration of calls to the ordering service, including waits and retries.",
            "operation",
        )

    def collect(self) -> Iterator[Metric]:
        """Return what was counted, without the instants at which counting began."""
        for family in self._registry.collect():
            family.samples = [each for each in family.samples if not each.name.endswith("_created")]
            yield family

    def called(self, store: str, contact: "Contact") -> None:
        """Count what came of a call to the ordering service; `store` may be a community's key."""
        outcome = "unanswered" if not contact.ok else "refused" if contact.failure else "done"
        operation = contact.operation
        self.service_calls.labels(store=store, operation=operation, outcome=outcome).inc()
        self.call_duration.labels(operation=operation).observe(max(0.0, contact.took_s))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _durations(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self._registry, buckets=BUCKETS)
