"""Communities (hubs): their members, their own say over items and hours, who is subscribed.

Specification, "Community (hub) order" and "Community catalogue, hours, webhook subscription".
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tillbridge.sandbox.deliveries import Endpoint
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.hours import is_open
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Item, Link, Order, Store, World


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


@dataclass(frozen=True, slots=True)
class SubscriptionTarget:
    """A subscription as the receiver of deliveries."""

    subscription: Subscription

    @property
    def key(self) -> str:
        """The subscription's id."""
        return self.subscription.webhook_id

    @property
    def endpoint(self) -> Endpoint | None:
        """Its URL, until it is deleted. A test goes out while it is switched off, too."""
        if self.subscription.gone:
            return None
        return Endpoint(self.subscription.url, self.subscription.secret)

    @property
    def told(self) -> dict[str, str]:
        """The community and the subscription."""
        return {
            "community_id": self.subscription.community_id,
            "webhook_id": self.subscription.webhook_id,
        }


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


class Communities:
    """Every community, and how to find one."""

    def __init__(self, world: World, settings: SandboxSettings) -> None:
        self._world = world
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Back to the seeds; after the world's own reset."""
        first_app = next(iter(self._world.apps))
        first_store = next(iter(self._world.stores), None)
        self.all: dict[str, Community] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.orders: dict[str, ParentOrder] = {}
        #: Parents by the id of each child.
        self.parents: dict[str, ParentOrder] = {}
        for seed in self._settings.communities:
            members = list(seed.store_ids) or ([first_store] if first_store else [])
            self.all[seed.community_id] = Community(
                seed.community_id, seed.name, seed.client_id or first_app, members
            )

    def find(self, community_id: str, app_id: str | None = None) -> Community:
        """By id and, for a call to the API, by the app whose community it must be."""
        community = self.all.get(community_id)
        if community is None or app_id not in (None, community.app_id):
            raise ServiceError("community.not_found", f"No community {community_id} for this app")
        return community

    def store(self, community: Community, store_id: str) -> Store:
        """A member store."""
        store = self._world.stores.get(store_id)
        if store is None or store_id not in community.store_ids:
            raise ServiceError(
                "store.not_found", f"No store {store_id} in community {community.community_id}"
            )
        return store

    def stores(self, community: Community) -> list[Store]:
        """The member stores."""
        found = (self._world.stores.get(store_id) for store_id in community.store_ids)
        return [store for store in found if store is not None]

    def link(self, store: Store) -> Link | None:
        """Whose menu is mirrored: the first app with an active integration."""
        return self._world.active_link(store.store_id)

    def is_open(self, community: Community, store: Store, now_ms: int) -> bool:
        """Live, connected, and within the hours that were pushed for it, if any were."""
        connected = store.status == "active" and self.link(store) is not None
        return connected and is_open(community.hours.get(store.store_id), now_ms)

    def items(self, community: Community) -> Iterator[tuple[Store, Link, Item]]:
        """Everything that is sold, add-ons aside."""
        for store in self.stores(community):
            link = self.link(store)
            for item in link.catalogue.items.values() if link else ():
                if link is not None and not item.is_add_on:
                    yield store, link, item

    def item(self, community: Community, item_id: str) -> tuple[Store, Link, Item]:
        """An item of a member store by its id in the community."""
        for store, link, item in self.items(community):
            if item.product_id == item_id:
                return store, link, item
        raise ServiceError(
            "menu.item_not_found", f"No item {item_id} in community {community.community_id}"
        )
