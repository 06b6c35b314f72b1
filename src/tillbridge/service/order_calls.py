"""The order calls. Specification: Orders; Order lifecycle driven from the POS.

There is no call that reads an order, so after an unknown outcome the repeat is the reading: where
it meets 409 `order.invalid_transition`, the first try was applied. (It may also be that the order
was cancelled meanwhile; then the next transition is refused, and the orders' flow reconciles.)
"""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.errors import OutcomeUnknown
from tillbridge.model.order import ReasonCode
from tillbridge.service.caller import Caller, Write
from tillbridge.service.calls import Calls
from tillbridge.service.encoding import encode_small
from tillbridge.service.gate import Priority

INVALID_TRANSITION = "order.invalid_transition"


class OrderBodies:
    """The bodies that the specification does not show, from the settings [assumptions]."""

    def __init__(
        self,
        *,
        accept: Mapping[str, Any] | None = None,
        status: Mapping[str, Any] | None = None,
        ready: Mapping[str, Any] | None = None,
        preparing: str = "preparing",
    ) -> None:
        self.accept = dict(accept or {})
        self.ready = dict(ready or {})
        self.preparing = filled(status or {"status": "{status}"}, preparing)


def filled(template: Mapping[str, Any], status: str) -> dict[str, Any]:
    """Return the status body with `{status}` replaced wherever it stands, nested values too."""

    def fill(value: object) -> object:
        if isinstance(value, str):
            return value.replace("{status}", status)
        if isinstance(value, Mapping):
            return {name: fill(each) for name, each in value.items()}
        if isinstance(value, list):
            return [fill(each) for each in value]
        return value

    return {name: fill(value) for name, value in template.items()}


class OrderCalls(Calls):
    """Tells the service how orders go on. They go before all other calls."""

    def __init__(self, caller: Caller, bodies: OrderBodies | None = None) -> None:
        super().__init__(caller)
        self._bodies = bodies or OrderBodies()
        # Transitions whose last call ended unknown: their next call is a repeat.
        self._doubted: set[tuple[str, str]] = set()

    async def accept(self, order_id: str) -> None:
        """Accept the order. Raises Conflict where that is not reachable from its state."""
        await self._transition(order_id, "accept", self._bodies.accept)

    async def set_preparing(self, order_id: str) -> None:
        """Tell that the kitchen has begun. Raises Conflict as `accept` does."""
        await self._transition(order_id, "status", self._bodies.preparing)

    async def ready(self, order_id: str) -> None:
        """Tell that the order is ready. Raises Conflict as `accept` does."""
        await self._transition(order_id, "ready", self._bodies.ready)

    async def cancel(
        self, order_id: str, reason: str, reason_code: ReasonCode, message: str = ""
    ) -> None:
        """Cancel the order: `reason` is for the customer, `message` (optional) for support.

        The customer is refunded. Raises Conflict where the order cannot be cancelled any more.
        """
        body = {"reason": reason, "reason_code": reason_code.value}
        if message:
            body["message"] = message
        await self._transition(order_id, "cancel", body)

    async def _transition(self, order_id: str, name: str, body: Mapping[str, Any]) -> None:
        key = (order_id, name)
        try:
            await self._write(
                (f"orders.{name}", "POST", ("pos", "orders", order_id, name)),
                encode_small(body),
                priority=Priority.ORDERS,
                write=Write(proof=INVALID_TRANSITION, doubted=key in self._doubted),
            )
        except OutcomeUnknown:
            self._doubted.add(key)
            raise
        self._doubted.discard(key)
