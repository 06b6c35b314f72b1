"""Every record of the service, held in memory and nowhere else."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from tillbridge.model.numbers import map_leaves
from tillbridge.sandbox.bodies import Signup, is_open
from tillbridge.sandbox.clock import Clock, as_timestamp
from tillbridge.sandbox.settings import SandboxSettings, StoreSeed
from tillbridge.sandbox.validation import ServiceError


def new_id(prefix: str) -> str:
    """An identifier as the specification has them: a prefix and something random."""
    return f"{prefix}_{secrets.token_hex(8)}"


def plain(value: object, *hidden: str) -> Any:  # noqa: ANN401 (whatever JSON holds)
    """Records as JSON has them: fields by name, instants as text, without the hidden fields."""

    def record(value: object) -> object:
        if not is_dataclass(value) or isinstance(value, type):
            return value
        shown: dict[str, Any] = {}
        for name in (entry.name for entry in fields(value) if entry.name not in hidden):
            field_value = getattr(value, name)
            if name.endswith("_ms"):
                shown[name[:-3]] = None if field_value is None else as_timestamp(field_value)
            else:
                shown[name] = plain(field_value)
        return shown

    return map_leaves(value, record)


@dataclass(slots=True)
class Merchant:
    """A merchant organization."""

    email: str
    store_ids: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Store:
    """A store; `flags` are what cancelled orders have set off."""

    store_id: str
    merchant_email: str
    name: str
    description: str | None
    status: str
    currency: str
    tax_config: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    flags: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Integration:
    """`status` is active, pending or disabled.

    Instants are milliseconds since the epoch, here and below.
    """

    integration_id: str
    webhook_url: str
    webhook_secret: str
    menu_sync_direction: str
    auto_accept_orders: bool
    external_store_id: str
    notification_email: str
    connected_at_ms: int
    status: str = "active"


@dataclass(slots=True)
class Variant:
    """One kind of an item; not `active` once a push has left it out."""

    variant_id: str
    external_id: str
    variant_name: str
    price: int
    available: bool
    active: bool = True


@dataclass(slots=True)
class Item:
    """One item, or an entry of add_ons[].

    `fields` are the pushed ones, except availability and variants.
    """

    product_id: str
    external_id: str
    fields: dict[str, Any]
    available: bool = True
    snooze_until_ms: int | None = None
    variants: dict[str, Variant] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What customers read."""
        return str(self.fields["name"])

    @property
    def price(self) -> int:
        """In minor units."""
        return int(self.fields["price"])

    @property
    def is_add_on(self) -> bool:
        """Whether it is sold with other items only."""
        return self.fields.get("product_type") == "addon"


@dataclass(slots=True)
class AddOnGroup:
    """A choice among add-ons, and how many of them."""

    external_id: str
    name: str
    min_select: int
    max_select: int
    add_ons: tuple[str, ...]


@dataclass(slots=True)
class Catalogue:
    """What one app has pushed for one store.

    `revision` moves with every change; `snoozed` names what the clock will bring back.
    """

    menus: dict[str, str] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)
    add_ons: dict[str, Item] = field(default_factory=dict)
    addon_groups: dict[str, AddOnGroup] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    snoozed: set[str] = field(default_factory=set)
    revision: int = 0


@dataclass(slots=True)
class Table:
    """A table and its QR token."""

    external_id: str
    table_id: str
    qr_token: str
    name: str
    seats: int | None
    zone: str
    active: bool = True


@dataclass(slots=True)
class Job:
    """A menu push in the background."""

    job_id: str
    app_id: str
    store_id: str
    status: str
    menus: int
    items: int
    created_at_ms: int
    updated_at_ms: int
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where webhooks go now, and the secret that signs them."""

    url: str
    secret: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Link:
    """An app and a store: everything between the two of them."""

    app_id: str
    store: Store
    integration: Integration | None = None
    location_id: str | None = None
    catalogue: Catalogue = field(default_factory=Catalogue)
    tables: dict[str, Table] = field(default_factory=dict)
    last_synced_at_ms: int | None = None

    @property
    def integration_status(self) -> str:
        """As the store's endpoint tells it to this app."""
        if self.integration is None:
            return "not_integrated"
        return "integrated" if self.integration.status == "active" else self.integration.status

    @property
    def active(self) -> Integration | None:
        """The integration, if it is active."""
        found = self.integration
        return found if found is not None and found.status == "active" else None

    @property
    def receiver(self) -> Receiver | None:
        """The POS, while the integration is active."""
        if self.active is None:
            return None
        location = {"X-Service-Location-Id": self.active.external_store_id}
        return Receiver(self.active.webhook_url, self.active.webhook_secret, location)

    @property
    def ids(self) -> dict[str, str]:
        """As the control API shows them."""
        return {"store_id": self.store.store_id}

    @property
    def named(self) -> dict[str, str]:
        """The fields of an envelope that say whose event it is."""
        store_id = self.store.store_id
        location = self.integration.external_store_id if self.integration else store_id
        return {"store_id": store_id, "location_id": location}


@dataclass(slots=True)
class Order:
    """`data` is what order.created carries, and never changes; `state` is the lifecycle's."""

    order_id: str
    order_number: str
    link: Link
    data: dict[str, Any]
    state: str
    history: list[dict[str, Any]] = field(default_factory=list)
    cancellation: dict[str, Any] | None = None
    effects: list[dict[str, Any]] = field(default_factory=list)


# Records of communities


@dataclass(slots=True)
class OwnState:
    """What the community says of an item, beside the merchant: on, off, or off until then."""

    available: bool = True
    snoozed_until_ms: int | None = None

    def settle(self, now_ms: int) -> None:
        """A snooze that is over ends by itself."""
        if self.snoozed_until_ms is not None and self.snoozed_until_ms <= now_ms:
            self.available, self.snoozed_until_ms = True, None


@dataclass(slots=True)
class Mirrored:
    """How a record was last read, and since when it is so; None once it is gone."""

    fingerprint: str | None
    updated_at_ms: int
    record: dict[str, Any]


@dataclass(slots=True)
class Community:
    """A hub of member stores; `app_id` is the app whose tokens reach it."""

    community_id: str
    name: str
    app_id: str
    store_ids: list[str]
    own: dict[str, OwnState] = field(default_factory=dict)
    hours: dict[str, dict[str, Any]] = field(default_factory=dict)
    mirrored: dict[str, Mirrored] = field(default_factory=dict)

    def own_state(self, item_id: str, now_ms: int) -> OwnState:
        """Of an item, as it is now."""
        state = self.own.setdefault(item_id, OwnState())
        state.settle(now_ms)
        return state


@dataclass(slots=True)
class Subscription:
    """A webhook subscription. `gone` once it was deleted."""

    webhook_id: str
    community_id: str
    secret: str
    name: str
    url: str
    events: tuple[str, ...]
    is_active: bool
    created_at_ms: int
    updated_at_ms: int
    gone: bool = False

    def wants(self, event_type: str) -> bool:
        """Whether such an event is sent here."""
        return self.is_active and bool({"*", event_type} & set(self.events))

    @property
    def receiver(self) -> Receiver | None:
        """Its URL, until it is deleted. A test goes out while it is switched off, too."""
        return None if self.gone else Receiver(self.url, self.secret)

    @property
    def ids(self) -> dict[str, str]:
        """As the control API shows them."""
        return {"community_id": self.community_id, "webhook_id": self.webhook_id}

    @property
    def named(self) -> dict[str, str]:
        """The fields of an envelope that say whose event it is."""
        return {"community_id": self.community_id}


@dataclass(slots=True)
class ParentOrder:
    """An order of a community; `children` are the POS orders that it was split into."""

    order_id: str
    community: Community
    status: str
    fields: dict[str, Any]
    children: list[Order]
    line_ids: dict[str, list[str]]
    created_at_ms: int
    updated_at_ms: int
    history: list[dict[str, Any]] = field(default_factory=list)


class World:
    """Every record of the service, and how to find one."""

    def __init__(self, settings: SandboxSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.reset()

    def reset(self) -> None:
        """Back to the seeds."""
        #: By client_id, which is also the specification's app_id.
        self.apps = {app.client_id: app for app in self.settings.apps}
        self.merchants: dict[str, Merchant] = {}
        self.stores: dict[str, Store] = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.jobs: dict[str, Job] = {}
        #: Signup calls, until the merchant opens their URL.
        self.signups: dict[str, Signup] = {}
        self.orders: dict[str, Order] = {}
        self.rejected_items: dict[str, str] = {}
        self.channel_events: list[dict[str, Any]] = []
        self.auto_consent = self.settings.auto_consent
        self.last_order_number = 1000
        for seed in self.settings.merchants:
            merchant = self.add_merchant(seed.email)
            for each in seed.stores:
                store = self.add_store(merchant, each)
                fee = {"enabled": True, "delivery_fee": each.delivery_fee}
                store.settings["deliverySettings"] = fee
                for app_id in self.apps if each.location_id is not None else ():
                    self.link(app_id, store).location_id = each.location_id
        first_app, first_store = next(iter(self.apps)), next(iter(self.stores), None)
        self.communities: dict[str, Community] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.parent_orders: dict[str, ParentOrder] = {}
        for hub in self.settings.communities:
            members = list(hub.store_ids) or ([first_store] if first_store else [])
            self.communities[hub.community_id] = Community(
                hub.community_id, hub.name, hub.client_id or first_app, members
            )

    def add_merchant(self, email: str) -> Merchant:
        """A merchant who has just signed up."""
        merchant = Merchant(email)
        self.merchants[email.lower()] = merchant
        return merchant

    def merchant(self, email: str) -> Merchant | None:
        """By e-mail, in any case."""
        return self.merchants.get(email.lower())

    def add_store(self, merchant: Merchant, seed: StoreSeed) -> Store:
        """Another store of a merchant."""
        store = Store(
            seed.store_id,
            merchant.email,
            seed.name,
            seed.description,
            seed.status,
            seed.currency,
            dict(seed.tax_config),
        )
        self.stores[store.store_id] = store
        merchant.store_ids.append(store.store_id)
        return store

    def store(self, store_id: str) -> Store:
        """By id. Raises store.not_found."""
        if store_id not in self.stores:
            raise ServiceError("store.not_found", f"There is no store {store_id} here")
        return self.stores[store_id]

    def stores_of(self, merchant: Merchant) -> list[Store]:
        """The merchant's stores."""
        return [self.stores[store_id] for store_id in merchant.store_ids]

    def link(self, app_id: str, store: Store) -> Link:
        """What is between the app and the store, made on first use."""
        key = (app_id, store.store_id)
        if key not in self.links:
            self.links[key] = Link(app_id, store)
        return self.links[key]

    def links_of(self, store_id: str) -> Iterator[Link]:
        """Every app that has to do with a store."""
        return (link for link in self.links.values() if link.store.store_id == store_id)

    def active_link(self, store_id: str) -> Link | None:
        """The link whose menu the storefront shows: the first app with an active integration."""
        return next((link for link in self.links_of(store_id) if link.active), None)

    def connected(self, store_id: str) -> Link:
        """As `active_link`. Raises store.not_integrated."""
        link = self.active_link(store_id)
        if link is None:
            raise ServiceError(
                "store.not_integrated", f"Store {store_id} has no active integration"
            )
        return link

    def next_order_number(self) -> str:
        """Counts from 1001."""
        self.last_order_number += 1
        return str(self.last_order_number)

    # Communities

    def community(self, community_id: str, app_id: str | None = None) -> Community:
        """By id and, for a call to the API, by the app whose community it must be."""
        community = self.communities.get(community_id)
        if community is None or app_id not in (None, community.app_id):
            raise ServiceError("community.not_found", f"No community {community_id} for this app")
        return community

    def member(self, community: Community, store_id: str) -> Store:
        """A member store."""
        if store_id not in self.stores or store_id not in community.store_ids:
            raise ServiceError(
                "store.not_found", f"No store {store_id} in community {community.community_id}"
            )
        return self.stores[store_id]

    def members(self, community: Community) -> list[Store]:
        """The member stores."""
        found = (self.stores.get(store_id) for store_id in community.store_ids)
        return [store for store in found if store is not None]

    def subscriptions_of(self, community: Community) -> list[Subscription]:
        """The community's webhook subscriptions."""
        return [
            found
            for found in self.subscriptions.values()
            if found.community_id == community.community_id
        ]

    def parent_of(self, order: Order) -> ParentOrder | None:
        """The order of a community that this one is a part of."""
        parents = self.parent_orders.values()
        return next((each for each in parents if any(order is one for one in each.children)), None)

    def is_open(self, community: Community, store: Store, now_ms: int) -> bool:
        """Live, connected, and within the hours that were pushed for it, if any were."""
        connected = store.status == "active" and self.active_link(store.store_id) is not None
        return connected and is_open(community.hours.get(store.store_id), now_ms)

    def community_items(self, community: Community) -> Iterator[tuple[Store, Link, Item]]:
        """Everything that is sold, add-ons aside."""
        for store in self.members(community):
            link = self.active_link(store.store_id)
            for item in link.catalogue.items.values() if link else ():
                if link is not None and not item.is_add_on:
                    yield store, link, item

    def community_item(self, community: Community, item_id: str) -> tuple[Store, Link, Item]:
        """An item of a member store by its id in the community."""
        for store, link, item in self.community_items(community):
            if item.product_id == item_id:
                return store, link, item
        raise ServiceError(
            "menu.item_not_found", f"No item {item_id} in community {community.community_id}"
        )
