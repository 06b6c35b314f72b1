"""Communities (hubs): what their catalogue, orders and subscriptions say. Values only.

Specification: Community (hub) order; Community catalogue, hours, webhook subscription. Instants
are milliseconds since the epoch, money is minor units; what the service left out is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

RecordKind = Literal["store", "category", "item"]

CANCELLED = "cancelled"
STATUSES = ("pending", "confirmed", "preparing", "ready", "out_for_delivery", "delivered")
# Nothing more happens to an order with one of these.
FINAL = frozenset({"delivered", CANCELLED})


@dataclass(frozen=True, slots=True)
class Record:
    """A store, category or item of a community's catalogue, as the service has it.

    `removed`: an incremental read says that it is gone. The properties are those of items, and
    None where the record does not say.
    """

    kind: RecordKind
    record_id: str
    store_id: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    removed: bool = False

    @property
    def external_id(self) -> str | None:
        """The id of the till, where the catalogue carries it (not shown in the specification)."""
        return _text(self.body.get("external_id"))

    @property
    def available(self) -> bool | None:
        """The effective availability: merchant's and community's."""
        return _flag(self.body.get("available"))

    @property
    def snoozed_until(self) -> str | None:
        """Until when the community has it snoozed, as the service writes it."""
        return _text(self.body.get("snoozed_until"))

    @property
    def price(self) -> int | None:
        """In minor units."""
        value = self.body.get("price")
        return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """An answer of the catalogue; `as_of` is what the next incremental read begins with."""

    records: tuple[Record, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """One item whole. `merchant_available` and `community_available` are the two sides."""

    record: Record
    currency: str | None = None
    merchant_available: bool | None = None
    community_available: bool | None = None


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """The part of a community order that is one store's; its id is that of the POS order."""

    order_id: str
    store_id: str
    store_name: str = ""
    status: str = ""
    subtotal: int | None = None
    line_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParentOrder:
    """A community order. `body` is all of it as received: it holds a customer's data."""

    order_id: str
    status: str
    order_number: str = ""
    community_id: str = ""
    updated_at: int | None = None
    children: tuple[ChildOrder, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """What a webhook subscription shall be; no `events` means all of them."""

    name: str
    url: str
    events: tuple[str, ...] = ()
    is_active: bool = True

    def body(self) -> dict[str, Any]:
        """Return the body of POST /communities/{communityId}/webhooks."""
        return {
            "name": self.name,
            "url": self.url,
            "events": list(self.events) or ["*"],
            "is_active": self.is_active,
        }


@dataclass(frozen=True, slots=True)
class Subscription:
    """A webhook subscription as the service has it."""

    webhook_id: str
    name: str | None = None
    url: str | None = None
    events: tuple[str, ...] | None = None
    is_active: bool | None = None


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """The answer that creates one: the only time its signing secret is shown."""

    subscription: Subscription
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt of the service to deliver an event; `response_status` None: no answer."""

    event_type: str
    response_status: int | None
    response_body: str = ""
    delivery_id: str = ""
    attempted_at: int | None = None
    error: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the receiver took it (any 2xx, which the specification does not show)."""
        return self.response_status is not None and 200 <= self.response_status < 300


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
