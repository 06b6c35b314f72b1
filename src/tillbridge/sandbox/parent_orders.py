"""Orders of a community: placed over several stores, split into child orders, rolled up again.

Children move by the POS lifecycle. How their states make up the parent's status is not shown in
the specification; `rolled_up` is the sandbox's choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tillbridge.sandbox.clock import as_timestamp
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.orders import Orders
from tillbridge.sandbox.pricing import PlacementError, Wanted
from tillbridge.sandbox.state import Community, Link, Order, ParentOrder, Store, World, new_id
from tillbridge.sandbox.validation import Json
from tillbridge.sandbox.webhooks import Webhooks

#: In the order in which a parent goes through them; cancelled ends it from any.
STATUSES = ("pending", "confirmed", "preparing", "ready", "out_for_delivery", "delivered")
CHILD_STATUS: Mapping[str, str] = {
    "created": "pending",
    "accepted": "confirmed",
    "preparing": "preparing",
    "ready": "ready",
    "completed": "delivered",
    "cancelled": "cancelled",
}
_SUMS = ("subtotal", "tax", "delivery_fee", "discount", "tip", "total_amount")
_NO_MEMBER = "{} is not on the menu of this community"


@dataclass(frozen=True, slots=True)
class WantedAt:
    """A line of a basket, and the member store that it is of."""

    store_id: str
    line: Wanted


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


class ParentOrders:
    """Places and moves the orders of communities."""

    def __init__(
        self,
        world: World,
        orders: Orders,
        webhooks: Webhooks,
    ) -> None:
        self._world = world
        self._orders = orders
        self._webhooks = webhooks
        self._clock = world.clock

    # Placing

    def check_line(self, community: Community, wanted: WantedAt) -> Link:
        """Refuse what cannot be ordered here, as far as the community has a say in it."""
        store = self._member(community, wanted.store_id)
        now = self._clock.now_ms()
        if not self._world.is_open(community, store, now):
            raise PlacementError(f"{store.name} is closed")
        link = self._world.active_link(store.store_id)
        item = link.catalogue.items.get(wanted.line.external_id or "") if link else None
        if link is None or item is None:
            raise PlacementError(_NO_MEMBER.format(wanted.line.external_id))
        if not community.own_state(item.product_id, now).available:
            raise PlacementError(f"{item.name} is sold out")
        return link

    def place(
        self,
        community: Community,
        wanted: Sequence[WantedAt],
        *,
        fulfillment_type: str = "delivery",
        tip: int = 0,
        discount: int = 0,
        special_instructions: str = "",
        customer: Mapping[str, str] | None = None,
    ) -> ParentOrder:
        """All stores' parts, or none of them. Raises `PlacementError`."""
        if not wanted:
            raise PlacementError("The basket is empty")
        links = {entry.store_id: self.check_line(community, entry) for entry in wanted}
        if len({link.store.currency for link in links.values()}) > 1:
            raise PlacementError("Stores of different currencies do not go into one order")
        baskets = {
            store_id: [entry.line for entry in wanted if entry.store_id == store_id]
            for store_id in links
        }
        weights = [
            self._orders.priced(link, baskets[store_id], order_type=fulfillment_type)["subtotal"]
            for store_id, link in links.items()
        ]
        tips, discounts = shares(tip, weights), shares(min(discount, sum(weights)), weights)
        money = {
            store_id: self._orders.priced(
                link, baskets[store_id], order_type=fulfillment_type, tip=own_tip, discount=own_off
            )
            for (store_id, link), own_tip, own_off in zip(
                links.items(), tips, discounts, strict=True
            )
        }
        who = {"customer_id": new_id("cus"), "name": "", "phone": "", **(customer or {})}
        number = self._world.next_order_number()
        children = [
            self._orders.create(
                link,
                money[store_id],
                order_type=fulfillment_type,
                special_instructions=special_instructions,
                customer_id=who["customer_id"],
            )
            for store_id, link in links.items()
        ]
        parent = self._record(community, number, fulfillment_type, who, children)
        self._announce(parent, "order.created", {"order": parent_body(parent)})
        for child in children:
            self._orders.auto_accept(child)
        return parent

    def _record(
        self,
        community: Community,
        number: str,
        fulfillment_type: str,
        customer: Mapping[str, str],
        children: list[Order],
    ) -> ParentOrder:
        now = self._clock.now_ms()
        items, line_ids = [], {}
        for child in children:
            lines = [_line(child, line) for line in child.data["items"]]
            line_ids[child.order_id] = [str(line["line_id"]) for line in lines]
            items += lines
        fields: dict[str, Any] = {
            "order_number": number,
            "community_id": community.community_id,
            "fulfillment_type": fulfillment_type,
            "payment_status": "completed",
            "currency": children[0].data["currency"],
            **{name: sum(child.data[name] for child in children) for name in _SUMS},
            "customer": dict(customer),
            "items": items,
        }
        parent = ParentOrder(
            new_id("ord"), community, "pending", fields, children, line_ids, now, now
        )
        self._world.parent_orders[parent.order_id] = parent
        self._world.parents |= {child.order_id: parent for child in children}
        self._note(parent)
        return parent

    # Moving

    def child_moved(self, order: Order) -> None:
        """After every move of an order: its parent, if it has one, may move too."""
        parent = self._world.parents.get(order.order_id)
        if parent is None or parent.status == "cancelled":
            return
        parent.updated_at_ms = self._clock.now_ms()
        children = [CHILD_STATUS[child.state] for child in parent.children]
        self._become(parent, rolled_up(parent.status, children))

    def leave(self, parent: ParentOrder) -> None:
        """The courier has everything: ready becomes out_for_delivery."""
        if parent.status != "ready":
            raise _unreachable(parent, "out_for_delivery")
        self._become(parent, "out_for_delivery")

    def deliver(self, parent: ParentOrder) -> None:
        """The courier is done: every child completes, and tells its POS."""
        if parent.status not in ("ready", "out_for_delivery"):
            raise _unreachable(parent, "delivered")
        for child in parent.children:
            if child.state == "ready":
                self._orders.deliver(child)

    def cancel(self, parent: ParentOrder) -> None:
        """The customer cancels all that can be; no POS event tells of it."""
        if parent.status in ("delivered", "cancelled"):
            raise _unreachable(parent, "cancelled")
        for child in parent.children:
            if child.state not in ("completed", "cancelled"):
                self._orders.cancel_by_customer(child, None)

    def _become(self, parent: ParentOrder, status: str) -> None:
        if status == parent.status:
            return
        previous, parent.status = parent.status, status
        parent.updated_at_ms = self._clock.now_ms()
        self._note(parent)
        data = {"previous_status": previous, "order": parent_body(parent)}
        self._announce(parent, "order.status_changed", data)

    def _announce(self, parent: ParentOrder, event_type: str, data: Json) -> None:
        subscriptions = self._world.subscriptions_of(parent.community)
        self._webhooks.broadcast(subscriptions, event_type, data, parent.order_id)

    def _note(self, parent: ParentOrder) -> None:
        parent.history.append({"status": parent.status, "at": self._clock.timestamp()})

    def _member(self, community: Community, store_id: str) -> Store:
        try:
            return self._world.member(community, store_id)
        except ServiceError as refusal:
            raise PlacementError(refusal.message) from None


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


def _unreachable(parent: ParentOrder, target: str) -> ServiceError:
    return ServiceError(
        "order.invalid_transition",
        f"Community order {parent.order_id} is {parent.status}; {target} is not reachable",
    )
