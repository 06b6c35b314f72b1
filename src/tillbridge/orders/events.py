"""What a committed delivery says. Specification: Events, POS envelope.

The receiver has verified the signature and that the body is an envelope of this store; here only
`data` is read. The specification does not show the data of order.delivered: the order's id is
looked for where such a body would have it (`id`, `order_id`, or an `order` object with one).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tillbridge.core.i18n import _
from tillbridge.model.numbers import parse_finite_float
from tillbridge.model.order import Order, parse_order, unclear_quantities


@dataclass(frozen=True, slots=True)
class OrderCreated:
    """A new order; `payload` is its data as ASCII JSON."""

    order: Order
    payload: str


@dataclass(frozen=True, slots=True)
class OrderDelivered:
    """The service says that the order is completed."""

    order_id: str


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event that changes nothing here; it is kept and acknowledged."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event about an order from which the order cannot be told; `text` says why."""

    text: str


Event = OrderCreated | OrderDelivered | OtherEvent | Unreadable


def read_event(event_type: str, body: bytes) -> Event:
    """Return what the delivery says. Total: whatever cannot be read is Unreadable."""
    if event_type not in {"order.created", "order.delivered"}:
        return OtherEvent()
    try:
        envelope = json.loads(body, parse_float=parse_finite_float)
        data = envelope["data"] if isinstance(envelope, Mapping) else None
    except KeyError:
        return Unreadable("the event has no data")
    except (ValueError, RecursionError):
        return Unreadable("the event is not JSON")
    return _created(data) if event_type == "order.created" else _delivered(data)


def _created(data: object) -> OrderCreated | Unreadable:
    try:
        order = parse_order(data)
        payload = json.dumps(data)
    except (ValueError, RecursionError) as failure:
        return Unreadable(str(failure))
    if not _storable(order.id):
        return Unreadable("the order's id is not text")
    return OrderCreated(order, payload)


def _delivered(data: object) -> OrderDelivered | Unreadable:
    if isinstance(data, Mapping):
        nested = data.get("order")
        places = [data.get("id"), data.get("order_id")]
        if isinstance(nested, Mapping):
            places += [nested.get("id"), nested.get("order_id")]
        for place in places:
            if isinstance(place, str) and place and _storable(place):
                return OrderDelivered(place)
    return Unreadable("the event does not say which order was delivered")


def _storable(text: str) -> bool:
    """Return whether the text can be kept: JSON allows halves of characters that UTF-8 does not."""
    return text.isprintable()


def order_of(order_id: str, payload: str) -> Order:
    """Return an order as it is written to a POS; only its id where the rest is forgotten ("")."""
    return for_ticket(parse_order(_json(payload) if payload else {"id": order_id}))


def for_ticket(order: Order) -> Order:
    """Return an order as it is written to a POS.

    Where a quantity is not clear the kitchen reads so in the note, whatever the POS makes of it.
    """
    unclear = unclear_quantities(order)
    if not unclear:
        return order
    ask = _("[ASK HOW MANY: {names}]").format(names=", ".join(unclear))
    # Behind what the guest says: some tills read the table at its head.
    note = " ".join(filter(None, [order.special_instructions, ask]))
    return replace(order, special_instructions=note)


def _json(payload: str) -> object:
    """Return a stored order; an amount beyond all numbers is one that nobody told (None)."""
    return json.loads(payload, parse_float=parse_finite_float, parse_constant=_nothing)


def _nothing(_constant: str) -> None:
    """Stand for Infinity and NaN, which an earlier version stored and JSON does not have."""
