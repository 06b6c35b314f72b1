"""The service as one store's merchant may use it: every call, over one table and one policy.

Each method raises ServiceError and nothing else. Calls of all stores share one transport and one
gate, so that orders of any store go before menus of any other.

Stores: Specification: Stores and integrations. Menus: Menus and items; Menu sync job; Menu sync
status. Patches and availability are upserts keyed on external ids, so that repeating one does no
harm. If the outcome of a push or a batch is unknown, the sync status shows whether it was applied:
it is not repeated.

Orders: Orders; Order lifecycle driven from the POS. There is no call that reads an order, so after
an unknown outcome the call itself is repeated: a 409 `order.invalid_transition` means that the
first try was applied. (Or the order was cancelled in the meantime; then the next transition is
refused, and the orders' flow reconciles.)
"""

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypeVar

from tillbridge.core.clock import Clock
from tillbridge.core.errors import Conflict, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.model.lenient import objects, text
from tillbridge.model.numbers import map_leaves
from tillbridge.model.order import ReasonCode
from tillbridge.model.restaurant import Table
from tillbridge.service import types
from tillbridge.service.answers import NOT_INTEGRATED, Limits
from tillbridge.service.caller import (
    ENDPOINTS,
    Caller,
    Gate,
    Hindrance,
    OnContact,
    Priority,
    Sleep,
    Write,
    ignore_contact,
    nothing_hinders,
)
from tillbridge.service.oauth import App, OAuth, Signup
from tillbridge.service.tokens import (
    Access,
    AccessGrant,
    AppToken,
    AppTokenStore,
    StoreTokens,
    TokenStore,
)
from tillbridge.service.transport import Answer, Transport, encode

log = get_logger()
T = TypeVar("T")

ALREADY_INTEGRATED = "integration.already_exists"
INVALID_TRANSITION = "order.invalid_transition"
_TRANSITION = Write(proof=INVALID_TRANSITION)

# Seconds between looks at the sync status after a push whose answer was lost: the service may have
# accepted it as a job, which changes the status only at its end, and must not get a second one.
_JOB_LOOKS_S = (0.0, 2.0, 4.0, 8.0)


class Calls:
    """Makes the calls in the table, under the names that logs and problems use."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._call = caller.call
        self._read = caller.read

    @property
    def unanswered_at(self) -> float:
        """When a write was last left without an answer, by the loop's clock; -inf: never."""
        return self._caller.unanswered_at


class StoreCalls(Calls):
    """Finds, integrates and pauses stores."""

    async def stores(self) -> list[types.Store]:
        """Return all stores of the merchant."""
        answer = await self._call("stores.list")
        if not isinstance(answer.body, list):
            raise types.unreadable(answer.operation, _("it is not a list"))
        return [types.read(types.Store, each, answer.operation) for each in objects(answer.body)]

    async def integrate(
        self, store_id: str, request: types.IntegrationRequest
    ) -> types.IntegrationWithSecret:
        """Integrate the store. Only this answer contains the webhook secret.

        Raises Conflict `integration.already_exists` if it is integrated, and also if the answer was
        lost: the secret is lost with it.
        """
        operation = "integrations.create"

        async def settle() -> bool:
            if await self._integrated(store_id):
                raise Conflict(
                    _("The store is connected, but the answer with its secret was lost."),
                    code=ALREADY_INTEGRATED,
                    status=409,
                    operation=operation,
                )
            return False

        body = request.body()
        answer = await self._call(operation, store_id, body=body, write=Write(settle))
        made = types.read(types.Integration, answer.body, answer.operation)
        secret = types.need(answer.body, "webhook_secret", operation)
        return types.IntegrationWithSecret(made, secret)

    async def integration(self, store_id: str) -> types.Integration:
        """Return the store's integration. Raises Refused `store.not_integrated` if it has none."""
        return await self._read(types.Integration, "integrations.read", store_id)

    async def change_integration(self, store_id: str, **changed: str | bool) -> types.Integration:
        """Change `webhook_url`, `notification_email`, `menu_sync_direction`, `auto_accept_orders`.

        Only the given fields change.
        """

        async def settle() -> bool:
            now = await self.integration(store_id)
            return all(getattr(now, name, None) == value for name, value in changed.items())

        answer = await self._call(
            "integrations.change", store_id, body=changed, write=Write(settle)
        )
        if answer.settled:
            return await self.integration(store_id)
        return types.read(types.Integration, answer.body, answer.operation)

    async def rotate_webhook_secret(self, store_id: str, field: str) -> types.IntegrationWithSecret:
        """Rotate the webhook secret in the update call; `field` is the service's name for that.

        The specification does not show the name, and says that only integrate-store returns a
        secret: `webhook_secret` is "" if this answer has none.
        """
        # After several tries the last secret counts: repeating does no harm.
        answer = await self._call("integrations.rotate", store_id, body={field: True})
        rotated = types.read(types.Integration, answer.body, answer.operation)
        return types.IntegrationWithSecret(rotated, text(answer.body.get("webhook_secret"), ""))

    async def remove_integration(self, store_id: str) -> None:
        """Remove the integration: webhooks stop, and the webhook secret becomes invalid."""

        async def settle() -> bool:
            return not await self._integrated(store_id)

        await self._call("integrations.remove", store_id, write=Write(settle))

    async def set_store_status(self, store_id: str, status: types.StoreStatus) -> None:
        """Open the storefront (active), or show it as temporarily closed (inactive)."""

        async def settle() -> bool:
            now = {store.store_id: store.status for store in await self.stores()}
            return now.get(store_id) == status

        await self._call("stores.status", store_id, body={"status": status}, write=Write(settle))

    async def tax_config(self, store_id: str) -> types.TaxConfig:
        """Return the tax configuration of the store."""
        return await self._read(types.TaxConfig, "stores.tax_config", store_id)

    async def put_settings(self, store_id: str, settings: Mapping[str, Any]) -> None:
        """Push operational settings, in the service's camelCase. They are sent unchanged."""
        # No call reads settings; sending the same ones twice does no harm.
        await self._call("stores.settings", store_id, body=settings)

    async def _integrated(self, store_id: str) -> bool:
        try:
            await self.integration(store_id)
        except Refused as failure:
            if failure.code == NOT_INTEGRATED:
                return False
            raise
        return True


class MenuCalls(Calls):
    """Sends the menu to the service."""

    _warned_of = ""  # the job with a foreign poll_url
    _writes = 0  # started or ended: whether another call may have changed last_synced_at

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> types.PushAnswer:
        """Push the complete menu. It is done immediately, or accepted as a background job.

        If the answer is lost, a `last_synced_at` that has changed shows that the push was applied
        (`settled_by` "status").
        """
        operation = "menus.push"
        before, answer = await self._write_once(store_id, operation, body, _JOB_LOOKS_S)
        if answer.settled:
            return types.PushDone("success", settled_by="status")
        push = types.read_push(answer.body, status=answer.status, operation=operation)
        if isinstance(push, types.PushAccepted):
            return replace(push, synced_before=before)
        return push

    async def _write_once(
        self,
        store_id: str,
        operation: str,
        body: Mapping[str, Any],
        looks_after_s: Sequence[float] = (0.0,),
    ) -> tuple[int | None, Answer]:
        """Make a write that must not be repeated once applied; return the time of the last sync.

        The sync status is read first: if the answer is lost, a changed `last_synced_at` shows that
        the write was applied. It proves nothing if another write of this bridge was running.
        `looks_after_s` are the pauses before each look.
        """
        data = encode(body)
        before = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
        others = self._writes

        async def settle() -> bool:
            for pause in looks_after_s:
                if pause:
                    await self._caller.sleep(pause)
                now = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
                if now is not None and now != before and self._writes == others:
                    return True
            return False

        try:
            answer = await self._call(operation, store_id, body=data, write=Write(settle))
        finally:
            self._writes += 1
        return before, answer

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> types.MenuJob:
        """Return the state of a background push. Raises Refused `menu.job_not_found` if it is gone.

        A foreign `poll_url` is never called: the job is then read from the path in the
        specification.
        """
        url = ""
        try:
            url = self._caller.transport.origin.poll_url(poll_url) if poll_url else ""
        except Refused:
            if self._warned_of != job_id:
                log.warning("menu.poll_url_foreign", store_id=store_id, job=job_id)
            self._warned_of = job_id
        answer = await self._call("menus.job", store_id, job_id, url=url)
        return types.read_job(answer.body, answer.operation)

    async def menu_status(
        self, store_id: str, *, priority: Priority = Priority.POLL
    ) -> types.MenuStatus:
        """Return the menu sync status."""
        return await self._read(types.MenuStatus, "menus.status", store_id, priority=priority)

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> types.BatchResult:
        """Add, update and delete several items in one call; for a lost answer, see `push_menus`.

        A repeated add names an item that already exists, a repeated delete one that is gone.
        """
        _before, answer = await self._write_once(store_id, "menus.batch", body)
        if answer.settled:
            return types.BatchResult()
        return types.read(types.BatchResult, answer.body, answer.operation)

    async def set_availability(
        self, store_id: str, items: Iterable[Mapping[str, Any]]
    ) -> types.AvailabilityResult:
        """Take items off sale or back on: `{external_id, available, snooze_until?}` each.

        `not_found` in the answer names external ids that the service does not know.
        """
        body, kind = {"items": list(items)}, types.AvailabilityResult
        return await self._upsert(kind, "items.availability", store_id, body=body)

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> types.PatchResult:
        """Change one item. Raises Refused `menu.item_not_found` if the service does not know it."""
        kind = types.PatchResult
        return await self._upsert(kind, "items.patch", store_id, external_id, body=fields)

    async def push_tables(
        self, store_id: str, tables: Sequence[Table], *, cleared: Collection[str] = ()
    ) -> list[types.TableQr]:
        """Push the complete floor plan: missing tables are deactivated.

        `cleared` are the external ids of tables that have lost their zone: an upsert without the
        field may keep the old one, so theirs is sent empty.
        """
        body = {"tables": [_table(each, cleared=each.external_id in cleared) for each in tables]}
        # No call reads tables; the repeat's answer is the state.
        answer = await self._call("tables.push", store_id, body=body)
        return types.read_tables(answer.body, answer.operation)

    async def _upsert(
        self, kind: type[T], operation: str, store_id: str, *ids: str, body: object
    ) -> T:
        async def settle() -> bool:
            # The status does not say which items were accepted, only whether it makes sense to
            # continue (it fails if the integration is gone); the repeat then gives the answer.
            await self.menu_status(store_id, priority=ENDPOINTS[operation].priority)
            return False

        self._writes += 1
        try:
            return await self._read(kind, operation, store_id, *ids, body=body, write=Write(settle))
        finally:
            self._writes += 1


def _table(table: Table, *, cleared: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"external_id": table.external_id, "name": table.name}
    if table.seats is not None:
        body["seats"] = table.seats
    if table.zone or cleared:
        body["zone"] = table.zone
    return body


@dataclass(frozen=True, slots=True)
class OrderBodies:
    """The bodies that the specification does not show, from the settings [assumptions]."""

    accept: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=lambda: {"status": "{status}"})
    ready: Mapping[str, Any] = field(default_factory=dict)
    preparing: str = "preparing"


def _filled(template: Mapping[str, Any], status: str) -> dict[str, Any]:
    """Return the status body with `{status}` replaced everywhere, also in nested values."""

    def fill(value: object) -> object:
        return value.replace("{status}", status) if isinstance(value, str) else value

    filled: dict[str, Any] = map_leaves(template, fill)
    return filled


class OrderCalls(Calls):
    """Changes the status of orders. These calls go before all others."""

    def __init__(self, caller: Caller, bodies: OrderBodies | None = None) -> None:
        super().__init__(caller)
        self._bodies = bodies or OrderBodies()

    async def accept(self, order_id: str) -> None:
        """Accept the order. Raises Conflict if its state does not allow that."""
        await self._call("orders.accept", order_id, body=self._bodies.accept, write=_TRANSITION)

    async def set_preparing(self, order_id: str) -> None:
        """Report that the kitchen has started. Raises Conflict as `accept` does."""
        body = _filled(self._bodies.status, self._bodies.preparing)
        await self._call("orders.status", order_id, body=body, write=_TRANSITION)

    async def ready(self, order_id: str) -> None:
        """Report that the order is ready. Raises Conflict as `accept` does."""
        await self._call("orders.ready", order_id, body=self._bodies.ready, write=_TRANSITION)

    async def cancel(
        self, order_id: str, reason: str, reason_code: ReasonCode, message: str = ""
    ) -> None:
        """Cancel the order: `reason` is for the customer, `message` (optional) for support.

        The customer is refunded. Raises Conflict if the order cannot be cancelled any more.
        """
        body = {"reason": reason, "reason_code": reason_code.value}
        if message:
            body["message"] = message
        await self._call("orders.cancel", order_id, body=body, write=_TRANSITION)


class ServiceClient(StoreCalls, MenuCalls, OrderCalls):
    """All calls of one store, in three groups."""


# -- the link to one service


@dataclass(frozen=True, slots=True)
class StoreLink:
    """One store's access: its tokens, and the calls that use them."""

    tokens: StoreTokens
    client: ServiceClient


@dataclass(frozen=True, slots=True)
class AppLink:
    """The app's own access for one audience: `await token.access_token()`, or calls with it."""

    token: AppToken
    caller: Caller


class ServiceLink:
    """One per base_url, to be closed: `async with ServiceLink(...) as link`.

    Durations in seconds; `sleep` and `jitter` are for tests.
    """

    def __init__(
        self,
        base_url: str,
        app: App,
        *,
        clock: Clock | None = None,
        timeout_s: float = 15.0,
        refresh_early_s: float = 60.0,
        limits: Limits | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or Clock()
        self._early_s = refresh_early_s
        self._transport = Transport(base_url, timeout_s=timeout_s, clock=self._clock)
        self._caller = partial(
            Caller, self._transport, Gate(), limits or Limits(), sleep=sleep, jitter=jitter
        )
        self._store_tokens: list[StoreTokens] = []
        self._app_tokens: dict[Access, AppToken] = {}
        self._token_store: AppTokenStore | None = None
        self.base_url = base_url
        self.identity = app
        self.oauth = OAuth(self._caller(), app, clock=self._clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_how: object) -> None:
        await self.close()

    def store(
        self,
        token_store: TokenStore,
        *,
        bodies: OrderBodies | None = None,
        on_contact: OnContact = ignore_contact,
        hindrance: Hindrance = nothing_hinders,
        may_act: Callable[[], bool] = lambda: True,
    ) -> StoreLink:
        """Return the access of one store; nothing that `hindrance` or `may_act` refuse is sent."""
        tokens = StoreTokens(
            token_store, self.oauth.refresh, clock=self._clock, refresh_early_s=self._early_s
        )
        self._store_tokens.append(tokens)
        caller = self._caller(tokens, on_contact=on_contact, hindrance=hindrance, may_act=may_act)
        return StoreLink(tokens, ServiceClient(caller, bodies))

    def app(
        self,
        *,
        audience: str,
        scope: str = "",
        on_contact: OnContact = ignore_contact,
        may_act: Callable[[], bool] = lambda: True,
    ) -> AppLink:
        """Return the app's own access, without a merchant, for the community and reporting APIs.

        `scope` is space-separated. Links of one audience and scope share one token.
        """
        if self._token_store is None:
            self._token_store = self.identity.token_store()
        access = Access(audience, " ".join(sorted(scope.split())))
        token = self._app_tokens.get(access) or AppToken(
            access, self._mint, self._token_store, clock=self._clock, early_s=self._early_s
        )
        self._app_tokens[access] = token
        return AppLink(token, self._caller(token, on_contact=on_contact, may_act=may_act))

    def signup(self) -> Signup:
        """Return the call that provisions a merchant and a store."""
        return Signup(self._caller(), self.identity)

    async def _mint(self, access: Access) -> AccessGrant:
        return await self.oauth.mint(access.audience, access.scope)

    async def close(self) -> None:
        """Cancel refreshes that nobody waits for, and close the connections."""
        for token in (*self._store_tokens, *self._app_tokens.values()):
            await token.close()
        await self._transport.close()
