"""Orders: placing, the lifecycle, what a cancel sets off (specification, "Order lifecycle").

A community's order is placed over several stores, split into child orders, and rolled up again. How
their states make up the parent's status is not shown in the specification; `rolled_up` is the
sandbox's choice.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tillbridge.sandbox.bodies import Cancel, OrderStatus, renamed
from tillbridge.sandbox.clock import as_timestamp
from tillbridge.sandbox.endpoints import API, own_order
from tillbridge.sandbox.pricing import (
    BaseLine,
    Basket,
    Line,
    PlacementError,
    price_order,
    priced_lines,
    unchecked_lines,
)
from tillbridge.sandbox.state import Community, Link, Order, ParentOrder, World, new_id
from tillbridge.sandbox.validation import Body, Count, Id, Json, OptionalText, ServiceError, Text
from tillbridge.sandbox.webhooks import Webhooks

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

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

#: In the order in which a community's order goes through them; cancelled ends it from any.
STATUSES = ("pending", "confirmed", "preparing", "ready", "out_for_delivery", "delivered")
CHILD_STATUS: Mapping[str, str] = {
    "created": "pending",
    "accepted": "confirmed",
    "preparing": "preparing",
    "ready": "ready",
    "completed": "delivered",
    "cancelled": "cancelled",
}
#: What each step of courier and customer leads to, and from where.
_STEPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "out-for-delivery": ("out_for_delivery", ("ready",)),
    "deliver": ("delivered", ("ready", "out_for_delivery")),
    "cancel": ("cancelled", STATUSES[:-1]),
}
_SUMS = ("subtotal", "tax", "delivery_fee", "discount", "tip", "total_amount")


class CommunityLine(BaseLine):
    """A line that names an item by its id in the community, or as its store's POS does."""

    store_id: Id | None = None
    item_id: Id | None = None


class Customer(Body):
    """Of a community order."""

    customer_id: OptionalText = ""
    name: OptionalText = ""
    phone: OptionalText = ""


class CommunityBasket(Body):
    """What a customer orders of the member stores."""

    items: list[CommunityLine]
    fulfillment_type: Text = "delivery"
    tip: Count = 0
    discount: Count = 0
    special_instructions: OptionalText = ""
    customer: Customer = Customer()


class Orders:
    """Places orders and moves them; every change goes through here."""

    def __init__(self, world: World, webhooks: Webhooks) -> None:
        self._world = world
        self._webhooks = webhooks
        self._clock = world.clock

    # An order of a store

    def place(self, link: Link, basket: Basket) -> Order:
        """Place an order as a customer would. Raises `PlacementError`."""
        order = self._create(link, basket, self._priced(link, basket))
        self._auto_accept(order)
        return order

    def place_unchecked(self, link: Link, basket: Basket, overrides: Mapping[str, Any]) -> Order:
        """Place an order that a customer could not; `overrides` replaces fields of `data`."""
        if link.active is None:
            raise PlacementError(
                "No till is connected to this store, so nobody would hear of the order"
            )
        lines = unchecked_lines(link, basket.items)
        sent = basket.model_dump(include={"tip", "discount"}, exclude_unset=True)
        money = price_order(lines, inclusive=_inclusive(link))
        order = self._create(link, basket, money, {**sent, **overrides})
        self._auto_accept(order)
        return order

    def _priced(self, link: Link, basket: Basket) -> dict[str, Any]:
        """What an order would cost, if it can be placed now. Raises `PlacementError`."""
        if link.active is None:
            raise PlacementError("No till is connected to this store, so it takes no orders")
        if link.store.status != "active":
            raise PlacementError("The store is temporarily closed")
        settings = link.store.settings.get("deliverySettings", {})
        lines = priced_lines(link, basket.items, self._clock.now_ms())
        subtotal, delivered = sum(line.subtotal for line in lines), basket.order_type == "delivery"
        if subtotal < settings.get("min_order_amount", 0) and delivered:
            raise PlacementError("The basket is below the store's smallest order")
        fee = settings.get("delivery_fee", 0) if delivered and settings.get("enabled") else 0
        discount = min(basket.discount, subtotal)
        return price_order(
            lines, inclusive=_inclusive(link), fee=fee, discount=discount, tip=basket.tip
        )

    def _create(
        self,
        link: Link,
        basket: Basket,
        money: Mapping[str, Any],
        overrides: Mapping[str, Any] = MappingProxyType({}),
    ) -> Order:
        """Record an order and inform the POS; `money` is what `_priced` gave."""
        data: dict[str, Any] = {
            "id": new_id("ord"),
            "order_number": self._world.next_order_number(),
            "order_type": basket.order_type,
            "status": "pending",
            "payment_status": "paid",
            "customer_id": basket.customer_id or new_id("cus"),
            "currency": link.store.currency,
            **money,
            "special_instructions": basket.special_instructions,
            "created_at": self._clock.timestamp(),
            **overrides,
        }
        order = Order(str(data["id"]), str(data["order_number"]), link, data, "created")
        self._world.orders[order.order_id] = order
        self._note(order, "customer")
        self._webhooks.emit(link, "order.created", data, order_id=order.order_id)
        return order

    def _auto_accept(self, order: Order) -> None:
        """Accept on the partner's behalf, where the integration says so."""
        integration = order.link.active
        if integration is not None and integration.auto_accept_orders:
            self.move(order, "accepted", by="service")

    def move(self, order: Order, target: str, *, by: str) -> None:
        """One step of the lifecycle, and of the parent's. Raises order.invalid_transition."""
        if target not in REACHABLE[order.state]:
            raise unreachable(order, target)
        order.state = target
        self._note(order, by)
        parent = self._world.parent_of(order)
        if parent is not None and parent.status != "cancelled":
            parent.updated_at_ms = self._clock.now_ms()
            statuses = [CHILD_STATUS[child.state] for child in parent.children]
            self._become(parent, rolled_up(parent.status, statuses))

    def deliver(self, order: Order) -> None:
        """The courier is done. What order.delivered carries, the specification does not show."""
        self.move(order, "completed", by="courier")
        self._emit(order, "order.delivered", "delivered")

    def cancel(self, order: Order, cancel: Cancel) -> None:
        """The POS cannot fulfil it: refund, and what the reason code sets off."""
        self._cancel(order, "pos", **{"message": None, **cancel.sent()})
        code = cancel.reason_code
        at = self._clock.timestamp()
        effect = {"effect": FOLLOW_UP[code], "at": at, "order_id": order.order_id}
        if code == "OTHER":
            effect["message"] = cancel.message or cancel.reason
        order.effects.append(effect)
        order.link.store.flags.append(effect)
        if code == "POS_OFFLINE" and self._world.settings.pos_offline_pauses_store:
            order.link.store.status = "inactive"

    def cancel_by_customer(self, order: Order, event_type: str | None) -> None:
        """The specification shows no event for this; `event_type` sends one all the same."""
        reason = "Cancelled by the customer"
        self._cancel(order, "customer", reason=reason, reason_code=None, message=None)
        if event_type is not None:
            self._emit(order, event_type, "cancelled")

    def _cancel(self, order: Order, by: str, **why: str | None) -> None:
        self.move(order, "cancelled", by=by)
        amount = order.data.get("total_amount", 0)
        refund = {"effect": "customer_refunded", "at": self._clock.timestamp(), "amount": amount}
        order.cancellation = why
        order.effects.append(refund)

    def _emit(self, order: Order, event_type: str, status: str) -> None:
        data = {"id": order.order_id, "order_number": order.order_number, "status": status}
        self._webhooks.emit(order.link, event_type, data, order_id=order.order_id)

    def _note(self, order: Order, by: str) -> None:
        order.history.append({"state": order.state, "at": self._clock.timestamp(), "by": by})

    # An order of a community

    def check_line(self, community: Community, store_id: str, line: BaseLine) -> Link:
        """Refuse what cannot be ordered here, as far as the community has a say in it."""
        try:
            store = self._world.member(community, store_id)
        except ServiceError as refusal:
            raise PlacementError(refusal.message) from None
        now = self._clock.now_ms()
        if not self._world.is_open(community, store, now):
            raise PlacementError(f"{store.name} is closed")
        link = self._world.active_link(store.store_id)
        item = link.catalogue.items.get(line.external_id or "") if link else None
        if link is None or item is None:
            raise PlacementError(f"{line.external_id} is not on the menu of this community")
        if not community.own_state(item.product_id, now).available:
            raise PlacementError(f"{item.name} is sold out")
        return link

    def place_in(self, community: Community, basket: CommunityBasket) -> ParentOrder:
        """All stores' parts, or none of them. Raises `PlacementError`."""
        if not basket.items:
            raise PlacementError("The basket is empty")
        links = {
            line.store_id or "": self.check_line(community, line.store_id or "", line)
            for line in basket.items
        }
        if len({link.store.currency for link in links.values()}) > 1:
            raise PlacementError("Stores of different currencies do not go into one order")
        customer_id = basket.customer.customer_id or new_id("cus")
        parts = [
            Basket(
                items=[
                    Line(**line.model_dump(include=set(BaseLine.model_fields)))
                    for line in basket.items
                    if line.store_id == store_id
                ],
                order_type=basket.fulfillment_type,
                special_instructions=basket.special_instructions,
                customer_id=customer_id,
            )
            for store_id in links
        ]
        both = list(zip(links.values(), parts, strict=True))
        weights = [self._priced(link, part)["subtotal"] for link, part in both]
        tips = shares(basket.tip, weights)
        discounts = shares(min(basket.discount, sum(weights)), weights)
        shared = [
            (link, part.model_copy(update={"tip": tip, "discount": discount}))
            for (link, part), tip, discount in zip(both, tips, discounts, strict=True)
        ]
        priced = [(link, part, self._priced(link, part)) for link, part in shared]
        number = self._world.next_order_number()
        children = [self._create(link, part, money) for link, part, money in priced]
        parent = self._record(community, number, basket, children)
        self._announce(parent, "order.created", {"order": parent_body(parent)})
        for child in children:
            self._auto_accept(child)
        return parent

    def _record(
        self, community: Community, number: str, basket: CommunityBasket, children: list[Order]
    ) -> ParentOrder:
        now = self._clock.now_ms()
        items = {
            child.order_id: [_line(child, each) for each in child.data["items"]]
            for child in children
        }
        fields: dict[str, Any] = {
            "order_number": number,
            "community_id": community.community_id,
            "fulfillment_type": basket.fulfillment_type,
            "payment_status": "completed",
            "currency": children[0].data["currency"],
            **{name: sum(child.data[name] for child in children) for name in _SUMS},
            "customer": {
                **basket.customer.model_dump(),
                "customer_id": children[0].data["customer_id"],
            },
            "items": [line for lines in items.values() for line in lines],
        }
        line_ids = {key: [str(line["line_id"]) for line in lines] for key, lines in items.items()}
        parent = ParentOrder(
            new_id("ord"), community, "pending", fields, children, line_ids, now, now
        )
        self._world.parent_orders[parent.order_id] = parent
        parent.history.append({"status": parent.status, "at": self._clock.timestamp()})
        return parent

    def step(self, parent: ParentOrder, name: str) -> None:
        """`out-for-delivery`, `deliver` or `cancel`: what courier and customer do."""
        if name not in _STEPS:
            raise ServiceError("request.not_found", f"The last part is one of {', '.join(_STEPS)}")
        target, reachable_from = _STEPS[name]
        if parent.status not in reachable_from:
            raise ServiceError(
                "order.invalid_transition",
                f"Community order {parent.order_id} is {parent.status}; {target} is not reachable",
            )
        if target == "out_for_delivery":
            self._become(parent, target)
        for child in parent.children:
            if target == "delivered" and child.state == "ready":
                self.deliver(child)  # every child completes, and informs its POS
            elif target == "cancelled" and child.state not in ("completed", "cancelled"):
                self.cancel_by_customer(child, None)  # no POS event says so

    def _become(self, parent: ParentOrder, status: str) -> None:
        if status == parent.status:
            return
        previous, parent.status = parent.status, status
        parent.updated_at_ms = self._clock.now_ms()
        parent.history.append({"status": status, "at": self._clock.timestamp()})
        data = {"previous_status": previous, "order": parent_body(parent)}
        self._announce(parent, "order.status_changed", data)

    def _announce(self, parent: ParentOrder, event_type: str, data: Json) -> None:
        subscriptions = self._world.subscriptions_of(parent.community)
        self._webhooks.broadcast(subscriptions, event_type, data, parent.order_id)


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


def rolled_up(current: str, children: Sequence[str]) -> str:
    """The parent's status: that of the child that is least far, cancelled ones left out.

    It never goes back, and is cancelled once all children are.
    """
    live = [status for status in children if status != "cancelled"]
    if not live:
        return "cancelled"
    least = min(live, key=STATUSES.index)
    return max(current, least, key=STATUSES.index)


def shares(amount: int, weights: Sequence[int]) -> list[int]:
    """Split an amount of minor units by weight; what does not divide goes to the first."""
    whole = sum(weights)
    if whole == 0:
        return [amount, *([0] * (len(weights) - 1))]
    parts = [amount * weight // whole for weight in weights]
    parts[0] += amount - sum(parts)
    return parts


def parent_body(parent: ParentOrder) -> dict[str, Any]:
    """The full parent order, as the endpoint and the events show it."""
    return {
        "order_id": parent.order_id,
        "status": parent.status,
        **parent.fields,
        "child_orders": [
            {
                "order_id": child.order_id,
                "store_id": child.link.store.store_id,
                "store_name": child.link.store.name,
                "status": CHILD_STATUS[child.state],
                "subtotal": child.data["subtotal"],
                "line_ids": parent.line_ids[child.order_id],
            }
            for child in parent.children
        ],
        "created_at": as_timestamp(parent.created_at_ms),
        "updated_at": as_timestamp(parent.updated_at_ms),
    }


def _line(child: Order, line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "line_id": new_id("lin"),
        "item_id": line["product_id"],
        "store_id": child.link.store.store_id,
        "name": line["product_name"],
        "quantity": line["quantity"],
        "unit_price": line["unit_price"],
        "subtotal": line["subtotal"],
        "modifiers": [
            {
                "modifier_id": option["product_id"],
                "name": option["product_name"],
                "price": option["unit_price"],
                "quantity": option["quantity"],
            }
            for option in line["options"]
        ],
    }


# Endpoints

_ORDER = "/pos/orders/{order_id}"


def _moved(sandbox: "Sandbox", order: Order, target: str) -> dict[str, Any]:
    """The answer of accept, status and ready (not shown in the specification)."""
    sandbox.orders.move(order, target, by="pos")
    return {"status": "success", "order_id": order.order_id, "order_status": order.state}


@API.serves("POST", f"{_ORDER}/accept", own_order)
def accept(sandbox: "Sandbox", order: Order) -> Json:
    """The restaurant takes the order."""
    return _moved(sandbox, order, "accepted")


@API.serves(
    "POST",
    f"{_ORDER}/status",
    own_order,
    model=lambda settings: renamed(OrderStatus, "status", settings.order_status_field),
)
def change_status(sandbox: "Sandbox", order: Order, body: OrderStatus) -> Json:
    """To preparing; the other states have calls of their own, and answer 409 here."""
    if body.status != "preparing":
        raise unreachable(order, body.status)
    return _moved(sandbox, order, body.status)


@API.serves("POST", f"{_ORDER}/ready", own_order)
def ready(sandbox: "Sandbox", order: Order) -> Json:
    """It may be collected."""
    return _moved(sandbox, order, "ready")


@API.serves("POST", f"{_ORDER}/cancel", own_order)
def cancel(sandbox: "Sandbox", order: Order, body: Cancel) -> Json:
    """The POS cannot fulfil it."""
    sandbox.orders.cancel(order, body)
    return {
        "status": "success",
        "order_id": order.order_id,
        "order_status": order.state,
        "reason": body.reason,
        "reason_code": body.reason_code,
    }
