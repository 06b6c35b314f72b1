"""Stores and integrations: list, integrate, read, change, remove; settings, status, taxes."""

from typing import Any

from tillbridge.sandbox.bodies import (
    Integrate,
    IntegrationUpdate,
    StoreSettings,
    StoreStatus,
    VerbatimStoreSettings,
    renamed,
)
from tillbridge.sandbox.endpoints import (
    Call,
    Caller,
    Endpoint,
    Unread,
    caller,
    integrated,
    reachable,
)
from tillbridge.sandbox.hours import check_week
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Integration, Link, new_id, plain
from tillbridge.sandbox.validation import Json, ServiceError
from tillbridge.sandbox.webhooks import new_secret

_SHOWN_WITH_STORE = (
    "integration_id",
    "webhook_url",
    "menu_sync_direction",
    "auto_accept_orders",
    "external_store_id",
    "connected_at",
)


def integration_body(link: Link, integration: Integration) -> dict[str, Any]:
    """The Integration as every endpoint but integrate-store shows it: without its secret."""
    shown = plain(integration, "webhook_secret")
    return {"app_id": link.app_id, "store_id": link.store.store_id, **shown}


def store_body(link: Link) -> dict[str, Any]:
    """The Store, relative to the calling app; `integration` is null unless integrated."""
    body = integration_body(link, link.active) if link.active else None
    return {
        "store_id": link.store.store_id,
        "name": link.store.name,
        "description": link.store.description,
        "status": link.store.status,
        "integration_status": link.integration_status,
        "integration": body and {name: body[name] for name in _SHOWN_WITH_STORE},
    }


async def _stores(call: Call[Caller, Unread]) -> Json:
    world, who = call.sandbox.world, call.found
    return [store_body(world.link(who.app_id, store)) for store in world.stores_of(who.merchant)]


async def _integrate(call: Call[Link, Integrate]) -> Json:
    link, body = call.found, call.body
    if link.active is not None:
        raise ServiceError(
            "integration.already_exists",
            f"Store {link.store.store_id} is already integrated with this app",
        )
    integration = Integration(
        integration_id=new_id("int"),
        webhook_url=body.webhook_url,
        webhook_secret=new_secret(),
        menu_sync_direction=body.menu_sync_direction or "none",
        auto_accept_orders=body.auto_accept_orders or False,
        external_store_id=body.external_store_id or link.location_id or link.store.store_id,
        notification_email=body.notification_email or link.store.merchant_email,
        connected_at_ms=call.sandbox.clock.now_ms(),
    )
    call.sandbox.webhooks.stop_for(link)
    link.integration = integration
    return {**integration_body(link, integration), "webhook_secret": integration.webhook_secret}


async def _show(call: Call[tuple[Link, Integration], Unread]) -> Json:
    return integration_body(*call.found)


async def _update(call: Call[tuple[Link, Integration], IntegrationUpdate]) -> Json:
    link, integration = call.found
    for name in call.body.model_fields_set - {"rotate"}:
        setattr(integration, name, getattr(call.body, name))
    answer = integration_body(link, integration)
    if call.body.rotate:
        integration.webhook_secret = new_secret()
        if call.sandbox.settings.rotation_returns_secret:
            answer["webhook_secret"] = integration.webhook_secret
    return answer


async def _remove(call: Call[tuple[Link, Integration], Unread]) -> Json:
    link, _ = call.found
    link.integration = None
    call.sandbox.webhooks.stop_for(link)
    return {"status": "success", "message": "Integration removed"}


async def _settings(call: Call[tuple[Link, Integration], StoreSettings]) -> Json:
    store, body = call.found[0].store, call.body.sent()
    check_week(
        body.get("availability", {}),
        "availability",
        past_midnight=call.sandbox.settings.hours_past_midnight,
    )
    for name, value in body.items():
        if isinstance(value, dict):
            store.settings[name] = {**store.settings.get(name, {}), **value}
        else:
            store.settings[name] = value
    store.name = body.get("name", store.name)
    store.description = body.get("description", store.description)
    return {"status": "success", "message": "Store settings updated"}


async def _status(call: Call[tuple[Link, Integration], StoreStatus]) -> Json:
    sandbox, link = call.sandbox, call.found[0]
    store = link.store
    previous, store.status = store.status, call.body.status
    data = {"store_id": store.store_id, "previous_status": previous, "status": store.status}
    sandbox.world.channel_events.append(
        {"event_type": "store.status_changed", "at": sandbox.clock.timestamp(), "data": data}
    )
    for other in list(sandbox.world.links_of(store.store_id)):
        if other is not link or sandbox.settings.status_changed_to_pos:
            sandbox.webhooks.emit(other, "store.status_changed", data)
    return {"status": "success", "store_id": store.store_id, "store_status": store.status}


async def _tax_config(call: Call[tuple[Link, Integration], Unread]) -> Json:
    return call.found[0].store.tax_config


def store_endpoints(settings: SandboxSettings) -> list[Endpoint[Any, Any]]:
    """The endpoints under "Stores and integrations"."""
    store, integration = "/pos/stores/{store_id}", "/pos/integrations/{store_id}"
    update = renamed(IntegrationUpdate, "rotate", settings.rotation_field)
    settings_model = VerbatimStoreSettings if settings.settings_accept_unknown else StoreSettings
    return [
        Endpoint("GET", "/pos/stores", caller, Unread, _stores),
        Endpoint("POST", "/pos/integrate-store/{store_id}", reachable, Integrate, _integrate),
        Endpoint("GET", integration, integrated, Unread, _show),
        Endpoint("PUT", integration, integrated, update, _update),
        Endpoint("DELETE", integration, integrated, Unread, _remove),
        Endpoint("PUT", f"{store}/settings", integrated, settings_model, _settings),
        Endpoint("PUT", f"{store}/status", integrated, StoreStatus, _status),
        Endpoint("GET", f"{store}/tax-config", integrated, Unread, _tax_config),
    ]
