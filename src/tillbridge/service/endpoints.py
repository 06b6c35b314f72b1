"""Every endpoint of the specification that the bridge calls: one table over one caller."""

from dataclasses import dataclass
from enum import IntEnum

from tillbridge.service.answers import Kind


class Priority(IntEnum):
    """How urgent a call is; a lower number goes first."""

    ORDERS = 0
    AVAILABILITY = 1
    STORE = 2
    MENU = 3
    POLL = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call: `{}` in the path, which is below the root, stands for an id.

    `kind` says whether a repeat needs a look at the state first.
    """

    method: str
    path: str
    priority: Priority
    kind: Kind


def _reads(path: str, priority: Priority = Priority.STORE) -> Endpoint:
    return Endpoint("GET", path, priority, Kind.READ)


def _writes(method: str, path: str, priority: Priority = Priority.STORE) -> Endpoint:
    return Endpoint(method, path, priority, Kind.WRITE)


def _asks(path: str, priority: Priority) -> Endpoint:
    """As to retries a read: nothing can be looked up, and a repeat does no harm."""
    return Endpoint("POST", path, priority, Kind.READ)


_ORDERS, _MENU, _POLL = Priority.ORDERS, Priority.MENU, Priority.POLL
_AVAILABILITY = Priority.AVAILABILITY

ENDPOINTS = {
    # onboarding and tokens
    "signup.url": _asks("pos/signup_url", _MENU),
    # A code that was used up by a lost answer is refused, and the merchant consents again.
    "oauth.exchange": _asks("oauth2/token", _ORDERS),
    "oauth.mint": _asks("oauth2/token", _ORDERS),
    "oauth.refresh": _asks("oauth2/refresh", _ORDERS),
    # stores and integrations
    "stores.list": _reads("pos/stores"),
    "integrations.create": _writes("POST", "pos/integrate-store/{}"),
    "integrations.read": _reads("pos/integrations/{}"),
    "integrations.change": _writes("PUT", "pos/integrations/{}"),
    "integrations.rotate": _writes("PUT", "pos/integrations/{}"),
    "integrations.remove": _writes("DELETE", "pos/integrations/{}"),
    "stores.settings": _writes("PUT", "pos/stores/{}/settings"),
    "stores.status": _writes("PUT", "pos/stores/{}/status"),
    "stores.tax_config": _reads("pos/stores/{}/tax-config"),
    # menus, items and tables
    "menus.push": _writes("POST", "pos/stores/{}/menus", _MENU),
    "menus.job": _reads("pos/stores/{}/menus/jobs/{}", _POLL),
    "menus.status": _reads("pos/stores/{}/menus/status", _POLL),
    "menus.batch": _writes("POST", "pos/stores/{}/menus/batch", _MENU),
    "items.availability": _writes("POST", "pos/stores/{}/items/availability", _AVAILABILITY),
    "items.patch": _writes("PATCH", "pos/stores/{}/items/{}", _MENU),
    "tables.push": _writes("POST", "pos/stores/{}/tables", _MENU),
    # orders
    "orders.accept": _writes("POST", "pos/orders/{}/accept", _ORDERS),
    "orders.status": _writes("POST", "pos/orders/{}/status", _ORDERS),
    "orders.ready": _writes("POST", "pos/orders/{}/ready", _ORDERS),
    "orders.cancel": _writes("POST", "pos/orders/{}/cancel", _ORDERS),
    # communities
    "communities.catalogue": _reads("communities/{}/catalogue", _POLL),
    "communities.item": _reads("communities/{}/catalogue/items/{}"),
    "communities.availability": _writes(
        "PATCH", "communities/{}/catalogue/items/{}", _AVAILABILITY
    ),
    "communities.hours": _writes("PUT", "communities/{}/stores/{}/hours"),
    "communities.order": _reads("communities/{}/orders/{}", _ORDERS),
    "communities.subscribe": _writes("POST", "communities/{}/webhooks"),
    "webhooks.read": _reads("webhooks/{}"),
    "webhooks.change": _writes("PUT", "webhooks/{}"),
    "webhooks.remove": _writes("DELETE", "webhooks/{}"),
    "webhooks.test": _writes("POST", "webhooks/{}/test"),
    "webhooks.deliveries": _reads("webhooks/{}/deliveries"),
}
