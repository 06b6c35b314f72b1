"""Stores and integrations: list, integrate, read, change, remove; settings, status, taxes."""

import secrets
from typing import Any

from aiohttp import web

from tillbridge.sandbox.bodies import INTEGRATE, STORE_STATUS, integration_update, store_settings
from tillbridge.sandbox.clock import Clock, as_timestamp
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.gate import Gate
from tillbridge.sandbox.hours import check_week
from tillbridge.sandbox.requests import read_body, reply
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Integration, Link, World, new_id
from tillbridge.sandbox.webhooks import Webhooks


def new_secret() -> str:
    """A webhook secret."""
    return f"whsec_{secrets.token_hex(32)}"


def integration_body(link: Link, integration: Integration) -> dict[str, Any]:
    """The Integration as every endpoint but integrate-store shows it: without its secret."""
    return {
        "integration_id": integration.integration_id,
        "app_id": link.app_id,
        "store_id": link.store.store_id,
        "webhook_url": integration.webhook_url,
        "menu_sync_direction": integration.menu_sync_direction,
        "auto_accept_orders": integration.auto_accept_orders,
        "external_store_id": integration.external_store_id,
        "notification_email": integration.notification_email,
        "status": integration.status,
        "connected_at": as_timestamp(integration.connected_at_ms),
    }


def store_body(link: Link) -> dict[str, Any]:
    """The Store, relative to the calling app; `integration` is null unless integrated."""
    integration = link.active
    shown = (
        "integration_id",
        "webhook_url",
        "menu_sync_direction",
        "auto_accept_orders",
        "external_store_id",
        "connected_at",
    )
    body = integration_body(link, integration) if integration else {}
    return {
        "store_id": link.store.store_id,
        "name": link.store.name,
        "description": link.store.description,
        "status": link.store.status,
        "integration_status": link.integration_status,
        "integration": {name: body[name] for name in shown} if integration else None,
    }


class StoreRoutes:
    """The endpoints under "Stores and integrations"."""

    def __init__(
        self, world: World, gate: Gate, webhooks: Webhooks, clock: Clock, settings: SandboxSettings
    ) -> None:
        self._world = world
        self._gate = gate
        self._webhooks = webhooks
        self._clock = clock
        self._settings = settings
        self._update_check = integration_update(settings.rotation_field)
        self._settings_check = store_settings(accept_unknown=settings.settings_accept_unknown)

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.get("/pos/stores", self._stores, allow_head=False),
            web.post("/pos/integrate-store/{store_id}", self._integrate),
            web.get("/pos/integrations/{store_id}", self._integration, allow_head=False),
            web.put("/pos/integrations/{store_id}", self._update),
            web.delete("/pos/integrations/{store_id}", self._remove),
            web.put("/pos/stores/{store_id}/settings", self._store_settings),
            web.put("/pos/stores/{store_id}/status", self._store_status),
            web.get("/pos/stores/{store_id}/tax-config", self._tax_config, allow_head=False),
        ]

    async def _stores(self, request: web.Request) -> web.Response:
        caller = self._gate.caller(request)
        stores = self._world.stores_of(caller.merchant)
        return reply([store_body(self._world.link(caller.app_id, store)) for store in stores])

    async def _integrate(self, request: web.Request) -> web.Response:
        link = self._gate.link(request)
        body = await read_body(request, INTEGRATE)
        if link.active is not None:
            raise ServiceError(
                "integration.already_exists",
                f"Store {link.store.store_id} is already integrated with this app",
            )
        integration = Integration(
            integration_id=new_id("int"),
            webhook_url=body["webhook_url"],
            webhook_secret=new_secret(),
            menu_sync_direction=body.get("menu_sync_direction", "none"),
            auto_accept_orders=body.get("auto_accept_orders", False),
            external_store_id=body.get("external_store_id")
            or link.location_id
            or link.store.store_id,
            notification_email=body.get("notification_email", link.store.merchant_email),
            connected_at_ms=self._clock.now_ms(),
        )
        self._webhooks.forget(link)
        link.integration = integration
        return reply(
            {**integration_body(link, integration), "webhook_secret": integration.webhook_secret}
        )

    async def _integration(self, request: web.Request) -> web.Response:
        return reply(integration_body(*self._gate.integrated(request)))

    async def _update(self, request: web.Request) -> web.Response:
        link, integration = self._gate.integrated(request)
        body = await read_body(request, self._update_check)
        rotate = body.pop(self._settings.rotation_field, False)
        for name, value in body.items():
            setattr(integration, name, value)
        answer = integration_body(link, integration)
        if rotate:
            integration.webhook_secret = new_secret()
            if self._settings.rotation_returns_secret:
                answer["webhook_secret"] = integration.webhook_secret
        return reply(answer)

    async def _remove(self, request: web.Request) -> web.Response:
        link, _ = self._gate.integrated(request)
        link.integration = None
        self._webhooks.forget(link)
        return reply({"status": "success", "message": "Integration removed"})

    async def _store_settings(self, request: web.Request) -> web.Response:
        link, _ = self._gate.integrated(request)
        body = await read_body(request, self._settings_check)
        check_week(
            body.get("availability", {}),
            "availability",
            past_midnight=self._settings.hours_past_midnight,
        )
        store = link.store
        for name, value in body.items():
            if isinstance(value, dict):
                store.settings[name] = {**store.settings.get(name, {}), **value}
            else:
                store.settings[name] = value
        store.name = body.get("name", store.name)
        store.description = body.get("description", store.description)
        return reply({"status": "success", "message": "Store settings updated"})

    async def _store_status(self, request: web.Request) -> web.Response:
        link, _ = self._gate.integrated(request)
        body = await read_body(request, STORE_STATUS)
        store = link.store
        previous, store.status = store.status, body["status"]
        data = {"store_id": store.store_id, "previous_status": previous, "status": store.status}
        self._world.channel_events.append(
            {"event_type": "store.status_changed", "at": self._clock.timestamp(), "data": data}
        )
        for other in list(self._world.links_of(store.store_id)):
            if other is not link or self._settings.status_changed_to_pos:
                self._webhooks.emit(other, "store.status_changed", data)
        return reply(
            {"status": "success", "store_id": store.store_id, "store_status": store.status}
        )

    async def _tax_config(self, request: web.Request) -> web.Response:
        link, _ = self._gate.integrated(request)
        return reply(link.store.tax_config)
