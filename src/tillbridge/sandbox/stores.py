"""Stores and integrations: list, integrate, read, change, remove; settings, status, taxes."""

from typing import TYPE_CHECKING, Any

from tillbridge.sandbox.bodies import (
    Integrate,
    IntegrationUpdate,
    StoreSettings,
    StoreStatus,
    VerbatimStoreSettings,
    check_week,
    renamed,
)
from tillbridge.sandbox.endpoints import API, Caller, caller, connected, in_force, reachable
from tillbridge.sandbox.state import Integration, Link, new_id, plain
from tillbridge.sandbox.validation import Json, ServiceError
from tillbridge.sandbox.webhooks import new_secret

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox

_SHOWN_WITH_STORE = (
    "integration_id",
    "webhook_url",
    "menu_sync_direction",
    "auto_accept_orders",
    "external_store_id",
    "connected_at",
)


def integration_body(link: Link) -> dict[str, Any]:
    """The Integration as every endpoint but integrate-store shows it: without its secret."""
    shown = plain(link.integration, "webhook_secret")
    return {"app_id": link.app_id, "store_id": link.store.store_id, **shown}


def store_body(link: Link) -> dict[str, Any]:
    """The Store, relative to the calling app; `integration` is null unless integrated."""
    body = integration_body(link) if link.active else None
    return {
        "store_id": link.store.store_id,
        "name": link.store.name,
        "description": link.store.description,
        "status": link.store.status,
        "integration_status": link.integration_status,
        "integration": body and {name: body[name] for name in _SHOWN_WITH_STORE},
    }


_STORE, _INTEGRATION = "/pos/stores/{store_id}", "/pos/integrations/{store_id}"


@API.serves("GET", "/pos/stores", caller)
def show_stores(sandbox: "Sandbox", who: Caller) -> Json:
    """Every store of the merchant."""
    world = sandbox.world
    return [store_body(world.link(who.app_id, store)) for store in world.stores_of(who.merchant)]


@API.serves("POST", "/pos/integrate-store/{store_id}", reachable)
def integrate(sandbox: "Sandbox", link: Link, body: Integrate) -> Json:
    """The only answer with the webhook secret."""
    if link.active is not None:
        raise ServiceError(
            "integration.already_exists",
            f"Store {link.store.store_id} is already integrated with this app",
        )
    sandbox.webhooks.stop_for(link)
    link.integration = Integration(
        integration_id=new_id("int"),
        webhook_url=body.webhook_url,
        webhook_secret=new_secret(),
        menu_sync_direction=body.menu_sync_direction or "none",
        auto_accept_orders=body.auto_accept_orders or False,
        external_store_id=body.external_store_id or link.location_id or link.store.store_id,
        notification_email=body.notification_email or link.store.merchant_email,
        connected_at_ms=sandbox.clock.now_ms(),
    )
    return {**integration_body(link), "webhook_secret": link.integration.webhook_secret}


@API.serves("GET", _INTEGRATION, connected)
def show(_sandbox: "Sandbox", link: Link) -> Json:
    """The integration, without its secret."""
    return integration_body(link)


@API.serves(
    "PUT",
    _INTEGRATION,
    connected,
    model=lambda settings: renamed(IntegrationUpdate, "rotate", settings.rotation_field),
)
def update(sandbox: "Sandbox", link: Link, body: IntegrationUpdate) -> Json:
    """Only what is sent changes."""
    integration = in_force(link)
    for name in body.model_fields_set - {"rotate"}:
        setattr(integration, name, getattr(body, name))
    answer = integration_body(link)
    if body.rotate:
        integration.webhook_secret = new_secret()
        if sandbox.settings.rotation_returns_secret:
            answer["webhook_secret"] = integration.webhook_secret
    return answer


@API.serves("DELETE", _INTEGRATION, connected)
def remove(sandbox: "Sandbox", link: Link) -> Json:
    """What is under way is never delivered."""
    link.integration = None
    sandbox.webhooks.stop_for(link)
    return {"status": "success", "message": "Integration removed"}


@API.serves(
    "PUT",
    f"{_STORE}/settings",
    connected,
    model=lambda settings: (
        VerbatimStoreSettings if settings.settings_accept_unknown else StoreSettings
    ),
)
def change_settings(sandbox: "Sandbox", link: Link, body: StoreSettings) -> Json:
    """Only what is sent changes."""
    store, sent = link.store, body.sent()
    past_midnight = sandbox.settings.hours_past_midnight
    check_week(sent.get("availability", {}), "availability", past_midnight=past_midnight)
    for name, value in sent.items():
        before = store.settings.get(name, {}) if isinstance(value, dict) else None
        store.settings[name] = value if before is None else {**before, **value}
    store.name = sent.get("name", store.name)
    store.description = sent.get("description", store.description)
    return {"status": "success", "message": "Store settings updated"}


@API.serves("PUT", f"{_STORE}/status", connected)
def change_status(sandbox: "Sandbox", link: Link, body: StoreStatus) -> Json:
    """Other apps of the store, and other channels, hear of it."""
    store = link.store
    previous, store.status = store.status, body.status
    data = {"store_id": store.store_id, "previous_status": previous, "status": store.status}
    sandbox.world.channel_events.append(
        {"event_type": "store.status_changed", "at": sandbox.clock.timestamp(), "data": data}
    )
    for other in list(sandbox.world.links_of(store.store_id)):
        if other is not link or sandbox.settings.status_changed_to_pos:
            sandbox.webhooks.emit(other, "store.status_changed", data)
    return {"status": "success", "store_id": store.store_id, "store_status": store.status}


@API.serves("GET", f"{_STORE}/tax-config", connected)
def tax_config(_sandbox: "Sandbox", link: Link) -> Json:
    """How the store taxes."""
    return link.store.tax_config
