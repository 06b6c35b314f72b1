"""Communities (hubs): what their catalogue, orders and subscriptions say. Values only.

Specification: Community (hub) order; Community catalogue, hours, webhook subscription. Instants
are milliseconds since the epoch, money is minor units; what the service left out is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from tillbridge.model.lenient import (
    Count,
    Flag,
    Instant,
    Needed,
    Objects,
    Text,
    TextOrEmpty,
    Texts,
    flag,
    text,
    texts,
    whole,
)

RecordKind = Literal["store", "category", "item"]

CANCELLED = "cancelled"
STATUSES = ("pending", "confirmed", "preparing", "ready", "out_for_delivery", "delivered")
# Nothing more happens to an order with one of these.
FINAL = frozenset({"delivered", CANCELLED})


@dataclass(frozen=True, slots=True)
class Record:
    """A store, category or item of a community's catalogue, as the service has it.

    `removed`: an incremental read says that it is gone. The properties are those of items, and
    None if the record does not say.
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
        return text(self.body.get("external_id")) or None

    @property
    def available(self) -> bool | None:
        """The effective availability: merchant's and community's."""
        return flag(self.body.get("available"))

    @property
    def community_available(self) -> bool | None:
        """The community's side of it."""
        return flag(self.body.get("community_available"))

    @property
    def snoozed_until(self) -> str | None:
        """Until when the community has it snoozed, as the service writes it."""
        return text(self.body.get("snoozed_until")) or None

    @property
    def price(self) -> int | None:
        """In minor units."""
        return whole(self.body.get("price"))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """An answer of the catalogue; `as_of` is what the next incremental read begins with."""

    records: tuple[Record, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """The part of a community order that is one store's; its id is that of the POS order."""

    order_id: Needed
    store_id: TextOrEmpty = ""
    store_name: TextOrEmpty = ""
    status: TextOrEmpty = ""
    subtotal: Count = None
    line_ids: Texts = ()


@dataclass(frozen=True, slots=True)
class ParentOrder:
    """A community order. `body` is all of it as received: it holds a customer's data."""

    order_id: Needed
    status: Needed
    order_number: TextOrEmpty = ""
    community_id: TextOrEmpty = ""
    updated_at: Instant = None
    children: Annotated[
        tuple[ChildOrder, ...], Objects, Field(validation_alias="child_orders")
    ] = ()
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _with_body(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {**answer, "body": answer}


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


def _listed(events: object) -> tuple[str, ...] | None:
    return texts(events) if isinstance(events, list) else None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A webhook subscription as the service has it."""

    webhook_id: Annotated[Needed, Field(validation_alias=AliasChoices("webhook_id", "id"))]
    name: Text = None
    url: Text = None
    events: Annotated[tuple[str, ...] | None, BeforeValidator(_listed)] = None
    is_active: Flag = None


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """The answer that creates one: the only time its signing secret is shown."""

    subscription: Subscription
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt of the service to deliver an event; `response_status` None: no answer."""

    event_type: TextOrEmpty = ""
    response_status: Count = None
    response_body: TextOrEmpty = ""
    delivery_id: TextOrEmpty = ""
    attempted_at: Instant = None
    error: TextOrEmpty = ""

    @property
    def succeeded(self) -> bool:
        """Whether the receiver took it (any 2xx, which the specification does not show)."""
        return self.response_status is not None and 200 <= self.response_status < 300
