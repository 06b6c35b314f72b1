"""Orders: placing, the lifecycle, what a cancel sets off (specification, "Order lifecycle")."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tillbridge.sandbox.bodies import Cancel, OrderStatus, renamed
from tillbridge.sandbox.endpoints import Call, Endpoint, endpoint, own_order
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.pricing import (
    Extras,
    PlacementError,
    Wanted,
    price_order,
    priced_lines,
    unchecked_lines,
)
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Link, Order, World, new_id
from tillbridge.sandbox.validation import Empty, Json
from tillbridge.sandbox.webhooks import Webhooks

#: Where each state may go. Until when cancelling is allowed, the specification does not show.
REACHABLE: Mapping[str, frozenset[str]] = {
    "created": frozenset({"accepted", "cancelled"}),
    "accepted": frozenset({"preparing", "cancelled"}),
    "preparing": frozenset({"ready", "cancelled"}),
    "ready": frozenset({"completed", "cancelled"}),
    "completed": frozenset(),
    "cancelled": frozenset(),
}

#: What follows from each reason, besides the refund (specification, "Orders").
FOLLOW_UP = {
    "ITEM_OUT_OF_STOCK": "availability_resync_prompted",
    "STORE_CLOSED": "store_hours_flagged_for_review",
    "POS_OFFLINE": "store_may_be_paused",
    "CAPACITY": "prep_time_estimates_fed",
    "PRICE_MISMATCH": "menu_flagged_for_resync",
    "OTHER": "message_surfaced_to_support",
}


class Orders:
    """Places orders and moves them; every change goes through here."""

    def __init__(self, world: World, webhooks: Webhooks) -> None:
        self._world = world
        self._webhooks = webhooks
        self._clock = world.clock
        #: Called after every move: a community rolls the states of child orders up.
        self.moved: Callable[[Order], None] | None = None

    def place(
        self,
        link: Link,
        wanted: Sequence[Wanted],
        *,
        order_type: str = "delivery",
        tip: int = 0,
        discount: int = 0,
        special_instructions: str = "",
        customer_id: str | None = None,
    ) -> Order:
        """Place an order as a customer would. Raises `PlacementError`."""
        money = self.priced(link, wanted, order_type=order_type, tip=tip, discount=discount)
        order = self.create(
            link,
            money,
            order_type=order_type,
            special_instructions=special_instructions,
            customer_id=customer_id,
        )
        self.auto_accept(order)
        return order

    def priced(
        self,
        link: Link,
        wanted: Sequence[Wanted],
        *,
        order_type: str = "delivery",
        tip: int = 0,
        discount: int = 0,
    ) -> dict[str, Any]:
        """What an order would cost, if it can be placed now. Raises `PlacementError`."""
        if link.active is None:
            raise PlacementError("No till is connected to this store, so it takes no orders")
        if link.store.status != "active":
            raise PlacementError("The store is temporarily closed")
        delivery = link.store.settings.get("deliverySettings", {})
        lines = priced_lines(link, wanted, self._clock.now_ms())
        subtotal = sum(line.subtotal for line in lines)
        if subtotal < delivery.get("min_order_amount", 0) and order_type == "delivery":
            raise PlacementError("The basket is below the store's smallest order")
        fee = (
            delivery.get("delivery_fee", 0)
            if delivery.get("enabled") and order_type == "delivery"
            else 0
        )
        extras = Extras(fee, min(discount, subtotal), tip)
        return price_order(lines, extras, inclusive=_inclusive(link))

    def place_unchecked(
        self, link: Link, wanted: Sequence[Wanted], overrides: Mapping[str, Any]
    ) -> Order:
        """Place an order that a customer could not; `overrides` replaces fields of `data`."""
        if link.active is None:
            raise PlacementError(
                "No till is connected to this store, so nobody would hear of the order"
            )
        lines = unchecked_lines(link, wanted)
        money = price_order(lines, Extras(), inclusive=_inclusive(link))
        order = self.create(link, money, overrides=overrides)
        self.auto_accept(order)
        return order

    def create(
        self,
        link: Link,
        money: Mapping[str, Any],
        *,
        order_type: str = "delivery",
        special_instructions: str = "",
        customer_id: str | None = None,
        overrides: Mapping[str, Any] = MappingProxyType({}),
    ) -> Order:
        """Record an order and tell the POS; `money` is what `priced` gave."""
        number = self._world.next_order_number()
        data: dict[str, Any] = {
            "id": new_id("ord"),
            "order_number": number,
            "order_type": order_type,
            "status": "pending",
            "payment_status": "paid",
            "customer_id": customer_id or new_id("cus"),
            "currency": link.store.currency,
            **money,
            "special_instructions": special_instructions,
            "created_at": self._clock.timestamp(),
            **overrides,
        }
        order = Order(str(data["id"]), str(data["order_number"]), link, data, "created")
        self._world.orders[order.order_id] = order
        self._note(order, "customer")
        self._webhooks.emit(link, "order.created", data, order_id=order.order_id)
        return order

    def auto_accept(self, order: Order) -> None:
        """Accept on the partner's behalf, where the integration says so."""
        integration = order.link.active
        if integration is not None and integration.auto_accept_orders:
            self.move(order, "accepted", by="service")

    def move(self, order: Order, target: str, *, by: str) -> None:
        """One step of the lifecycle. Raises order.invalid_transition."""
        if target not in REACHABLE[order.state]:
            raise unreachable(order, target)
        order.state = target
        self._note(order, by)
        if self.moved is not None:
            self.moved(order)

    def deliver(self, order: Order) -> None:
        """The courier is done. What order.delivered carries, the specification does not show."""
        self.move(order, "completed", by="courier")
        data = {"id": order.order_id, "order_number": order.order_number, "status": "delivered"}
        self._webhooks.emit(order.link, "order.delivered", data, order_id=order.order_id)

    def cancel(self, order: Order, reason: str, reason_code: str, message: str | None) -> None:
        """The POS cannot fulfil it: refund, and what the reason code sets off."""
        self.move(order, "cancelled", by="pos")
        order.cancellation = {"reason": reason, "reason_code": reason_code, "message": message}
        effect = {
            "effect": FOLLOW_UP[reason_code],
            "at": self._clock.timestamp(),
            "order_id": order.order_id,
        }
        if reason_code == "OTHER":
            effect["message"] = message or reason
        order.effects += [self._refund(order), effect]
        order.link.store.flags.append(effect)
        if reason_code == "POS_OFFLINE" and self._world.settings.pos_offline_pauses_store:
            order.link.store.status = "inactive"

    def cancel_by_customer(self, order: Order, event_type: str | None) -> None:
        """The specification shows no event for this; `event_type` sends one all the same."""
        self.move(order, "cancelled", by="customer")
        order.cancellation = {
            "reason": "Cancelled by the customer",
            "reason_code": None,
            "message": None,
        }
        order.effects.append(self._refund(order))
        if event_type is not None:
            data = {"id": order.order_id, "order_number": order.order_number, "status": "cancelled"}
            self._webhooks.emit(order.link, event_type, data, order_id=order.order_id)

    def _refund(self, order: Order) -> dict[str, Any]:
        amount = order.data.get("total_amount", 0)
        return {"effect": "customer_refunded", "at": self._clock.timestamp(), "amount": amount}

    def _note(self, order: Order, by: str) -> None:
        order.history.append({"state": order.state, "at": self._clock.timestamp(), "by": by})


def unreachable(order: Order, target: str) -> ServiceError:
    """order.invalid_transition, saying where the order stands."""
    allowed = ", ".join(sorted(REACHABLE[order.state])) or "nothing, this is the end"
    message = (
        f"Order {order.order_id} is {order.state}; "
        f"{target} is not reachable by this call (next: {allowed})"
    )
    return ServiceError("order.invalid_transition", message)


def _inclusive(link: Link) -> bool:
    return link.store.tax_config.get("pricing_mode") == "inclusive"


# Endpoints


async def _accept(call: Call[Order, Empty]) -> Json:
    call.sandbox.orders.move(call.found, "accepted", by="pos")
    return _answer(call.found)


async def _status(call: Call[Order, OrderStatus]) -> Json:
    """To preparing; the other states have calls of their own, and answer 409 here."""
    if call.body.status != "preparing":
        raise unreachable(call.found, call.body.status)
    call.sandbox.orders.move(call.found, call.body.status, by="pos")
    return _answer(call.found)


async def _ready(call: Call[Order, Empty]) -> Json:
    call.sandbox.orders.move(call.found, "ready", by="pos")
    return _answer(call.found)


async def _cancel(call: Call[Order, Cancel]) -> Json:
    order, body = call.found, call.body
    call.sandbox.orders.cancel(order, body.reason, body.reason_code, body.message)
    return {**_answer(order), "reason": body.reason, "reason_code": body.reason_code}


def _answer(order: Order) -> dict[str, Any]:
    """Of accept, status and ready (not shown in the specification)."""
    return {"status": "success", "order_id": order.order_id, "order_status": order.state}


def order_endpoints(settings: SandboxSettings) -> list[Endpoint]:
    """The endpoints under "Orders"."""
    path = "/pos/orders/{order_id}"
    status = renamed(OrderStatus, "status", settings.order_status_field)
    return [
        endpoint("POST", f"{path}/accept", own_order, Empty, _accept),
        endpoint("POST", f"{path}/status", own_order, status, _status),
        endpoint("POST", f"{path}/ready", own_order, Empty, _ready),
        endpoint("POST", f"{path}/cancel", own_order, Cancel, _cancel),
    ]
