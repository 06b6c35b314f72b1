"""Integrating a store with this bridge. Specification: Stores and integrations.

The webhook secret is shown once, by the call that integrates: it is on disk before anything else
happens. Everything here may be run again at any time.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from tillbridge.clock import Clock
from tillbridge.config import StoreSettings
from tillbridge.errors import BridgeError, Conflict, Refused
from tillbridge.i18n import _
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.log import get_logger
from tillbridge.service.client import ServiceClient
from tillbridge.service.diagnosis import NOT_INTEGRATED
from tillbridge.service.store_calls import ALREADY_INTEGRATED
from tillbridge.service.types import Integration, IntegrationRequest, Store
from tillbridge.stores.vaulted import keep_webhook_secret, prove_writable, webhook_secrets

log = get_logger()


@dataclass(frozen=True, slots=True)
class Integrated:
    """What came of it: the service's id of the store, and what was done there."""

    store_id: str
    created: bool
    changed: tuple[str, ...] = ()


def choose_store(stores: Sequence[Store], wanted: str | None) -> Store:
    """Return the store to integrate: the wanted one, or the only one. BridgeError otherwise."""
    listed = ", ".join(f"{store.store_id} ({store.name or '?'})" for store in stores)
    if wanted is not None:
        for store in stores:
            if store.store_id == wanted:
                return store
        raise BridgeError(
            _("The merchant has no store {wanted}; there are: {listed}.").format(
                wanted=wanted, listed=listed or _("none")
            ),
            fix=_("Correct store_id in the configuration."),
        )
    if not stores:
        raise BridgeError(
            _("The merchant has no store yet."),
            fix=_("Let the merchant make one at the ordering service, then run this again."),
        )
    if len(stores) > 1:
        raise BridgeError(
            _("The merchant has several stores: {listed}.").format(listed=listed),
            fix=_("Set store_id in the configuration to the one that is meant."),
        )
    return stores[0]


class Integrator:
    """Integrates one store of the configuration; `name` is its local name."""

    def __init__(
        self,
        name: str,
        settings: StoreSettings,
        client: ServiceClient,
        ledger: Ledger,
        *,
        public_url: str,
        clock: Clock,
    ) -> None:
        self._name = name
        self._settings = settings
        self._client = client
        self._ledger = ledger
        self._clock = clock
        self._wanted = IntegrationRequest(
            webhook_url=f"{public_url.rstrip('/')}/webhooks/{name}",
            menu_sync_direction=settings.menu_sync_direction,
            external_store_id=settings.location_id,
            auto_accept_orders=settings.auto_accept_orders,
            notification_email=settings.notification_email,
        )

    async def integrate(self) -> Integrated:
        """Integrate the store, or bring an integration in line with the configuration.

        Raises BridgeError (ServiceError among them) with what to do.
        """
        store = await self._chosen()
        try:
            return await self._create(store.store_id)
        except Conflict as conflict:
            if conflict.code != ALREADY_INTEGRATED:
                raise
        if store.integration_status in {"not_integrated", "disabled"}:
            # It was not a moment ago: this bridge did it, and the answer was lost on the way.
            log.warning("integration.answer_lost", store=self._name)
            return await self._recreate(store.store_id)
        return await self._align(store.store_id)

    async def reintegrate(self) -> Integrated:
        """Remove the integration and make a new one, with a new webhook secret."""
        store = await self._chosen()
        return await self._recreate(store.store_id)

    async def recall(self) -> bool:
        """Learn again from the service what the ledger has lost; False where there is nothing.

        Nothing is integrated anew: that takes a person.
        """
        store = await self._chosen()
        if store.integration_status not in {"integrated", "active", None}:
            return False
        await self._align(store.store_id)
        return True

    async def _chosen(self) -> Store:
        """Choose the store, and note its name for what is printed."""
        store = choose_store(await self._client.stores(), self._settings.store_id)
        at = self._clock.now_ms()
        if store.name:
            await self._ledger.write(
                lambda db: put_fact(db, self._name, "service_store_name", store.name, at=at)
            )
        return store

    async def _recreate(self, store_id: str) -> Integrated:
        await self._prove_writable()
        try:
            await self._client.remove_integration(store_id)
        except Refused as refused:
            if refused.code != NOT_INTEGRATED:
                raise
        return await self._create(store_id)

    async def _create(self, store_id: str) -> Integrated:
        await self._prove_writable()
        made = await self._client.integrate(store_id, self._wanted)
        await asyncio.to_thread(
            keep_webhook_secret,
            self._ledger.vault,
            self._name,
            made.webhook_secret,
            at_ms=self._clock.now_ms(),
        )
        await self._note(store_id, made.integration)
        log.info("integration.created", store=self._name, store_id=store_id)
        return Integrated(store_id, created=True)

    async def _align(self, store_id: str) -> Integrated:
        now = await self._client.integration(store_id)
        await self._check_secret(now)
        if now.external_store_id not in {None, self._wanted.external_store_id}:
            raise BridgeError(
                _(
                    "The store is integrated as location {now}, the configuration says {wanted}."
                ).format(now=now.external_store_id, wanted=self._wanted.external_store_id),
                fix=self._reintegrate_fix(),
            )
        changed = differences(now, self._wanted)
        if changed:
            now = await self._client.change_integration(store_id, **changed)
        await self._note(store_id, now)
        log.info("integration.aligned", store=self._name, changed=sorted(changed))
        return Integrated(store_id, created=False, changed=tuple(sorted(changed)))

    async def _check_secret(self, now: Integration) -> None:
        known = await self._ledger.read(lambda db: get_fact(db, self._name, "integration"))
        ours = (known or {}).get("integration_id")
        foreign = ours and now.integration_id and ours != now.integration_id
        if foreign or not webhook_secrets(self._ledger.vault, self._name):
            raise BridgeError(
                _("The store is integrated, but this bridge does not have its webhook secret."),
                fix=self._reintegrate_fix(),
            )

    def _reintegrate_fix(self) -> str:
        return _("Make a new integration: tillbridge connect {store} --reintegrate").format(
            store=self._name
        )

    async def _prove_writable(self) -> None:
        await asyncio.to_thread(
            prove_writable, self._ledger.vault, self._name, at_ms=self._clock.now_ms()
        )

    async def _note(self, store_id: str, integration: Integration) -> None:
        at = self._clock.now_ms()
        fact: dict[str, Any] = {
            "integration_id": integration.integration_id,
            "webhook_url": integration.webhook_url or self._wanted.webhook_url,
            "menu_sync_direction": integration.menu_sync_direction
            or self._wanted.menu_sync_direction,
            "auto_accept_orders": self._wanted.auto_accept_orders
            if integration.auto_accept_orders is None
            else integration.auto_accept_orders,
            "status": integration.status or "active",
            "connected_at": integration.connected_at or at,
        }

        def write(db: Connection) -> None:
            put_fact(db, self._name, "service_store_id", store_id, at=at)
            put_fact(db, self._name, "integration", fact, at=at)

        await self._ledger.write(write)


def differences(now: Integration, wanted: IntegrationRequest) -> dict[str, str | bool]:
    """Return what a PUT has to change; what the configuration leaves open stays as it is."""
    changed: dict[str, str | bool] = {}
    if now.webhook_url != wanted.webhook_url:
        changed["webhook_url"] = wanted.webhook_url
    if now.menu_sync_direction != wanted.menu_sync_direction:
        changed["menu_sync_direction"] = wanted.menu_sync_direction
    if now.auto_accept_orders != wanted.auto_accept_orders:
        changed["auto_accept_orders"] = wanted.auto_accept_orders
    email = wanted.notification_email
    if email is not None and now.notification_email != email:
        changed["notification_email"] = email
    return changed
