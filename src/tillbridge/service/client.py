"""The service as one store's merchant may use it: every call, over one table and one policy.

Each method raises ServiceError and nothing else. Calls of all stores share one transport and one
gate, so that orders of any store go before menus of any other.

Stores: Specification: Stores and integrations. Menus: Menus and items; Menu sync job; Menu sync
status. Patches and availability are upserts keyed on external ids, so that repeating one does no
harm. Of a push or a batch of unknown outcome the sync status tells whether it was applied: it is
not repeated.

Orders: Orders; Order lifecycle driven from the POS. There is no call that reads an order, so after
an unknown outcome the repeat is the reading: where it meets 409 `order.invalid_transition`, the
first try was applied. (It may also be that the order was cancelled meanwhile; then the next
transition is refused, and the orders' flow reconciles.)
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tillbridge.core.errors import Conflict, OutcomeUnknown, Refused
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.model.order import ReasonCode
from tillbridge.model.table import Table
from tillbridge.service import types
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.caller import Caller, Outcome, Write
from tillbridge.service.encoding import encode, encode_small
from tillbridge.service.endpoints import ENDPOINTS, Calls
from tillbridge.service.gate import Priority
from tillbridge.service.transport import Answer

log = get_logger()

ALREADY_INTEGRATED = "integration.already_exists"
INVALID_TRANSITION = "order.invalid_transition"

_APPLIED = Answer(200, None)
# Seconds between looks at the sync status after a push whose answer was lost: the service may have
# taken it as a job, which moves the status only at its end, and must not be given a second one.
_JOB_LOOKS_S = (0.0, 2.0, 4.0, 8.0)


class StoreCalls(Calls):
    """Finds, integrates and pauses stores."""

    async def stores(self) -> list[types.Store]:
        """Return all stores of the merchant."""
        operation = "stores.list"
        answer = await self._read(operation)
        return [
            types.read(types.Store, each, operation)
            for each in types.listing(answer.body, operation)
        ]

    async def integrate(
        self, store_id: str, request: types.IntegrationRequest
    ) -> types.IntegrationWithSecret:
        """Integrate the store; the answer shows the webhook secret, this once.

        Raises Conflict `integration.already_exists` where it is integrated, and also where the
        answer was lost on the way: the secret went with it.
        """
        operation = "integrations.create"

        async def settle() -> None:
            if await self._integrated(store_id) is not None:
                raise Conflict(
                    _("The store is integrated, but the answer with its secret was lost."),
                    code=ALREADY_INTEGRATED,
                    status=409,
                    operation=operation,
                )

        outcome = await self._call(
            operation,
            store_id,
            body=encode_small(request.body()),
            write=Write(settle),
        )
        return types.read_integration_with_secret(outcome.answer.body, operation)

    async def integration(self, store_id: str) -> types.Integration:
        """Return the store's integration; Refused `store.not_integrated` where it has none."""
        operation = "integrations.read"
        answer = await self._read(operation, store_id)
        return types.read(types.Integration, answer.body, operation)

    async def change_integration(self, store_id: str, **changed: str | bool) -> types.Integration:
        """Change `webhook_url`, `notification_email`, `menu_sync_direction`, `auto_accept_orders`.

        Only what is named changes.
        """
        operation = "integrations.change"

        async def settle() -> Answer | None:
            now = await self.integration(store_id)
            same = all(getattr(now, name, None) == value for name, value in changed.items())
            return _APPLIED if same else None

        outcome = await self._call(
            operation,
            store_id,
            body=encode_small(changed),
            write=Write(settle),
        )
        if outcome.settled:
            return await self.integration(store_id)
        return types.read(types.Integration, outcome.answer.body, operation)

    async def rotate_webhook_secret(self, store_id: str, field: str) -> types.RotatedSecret:
        """Rotate the webhook secret by the update call; `field` is what the service calls that.

        The name is not shown in the specification, which also lets no answer but that of
        integrate-store show a secret: `webhook_secret` is None where this one does not.
        """
        operation = "integrations.rotate"
        # Of several tries the last one's secret counts: repeating does no harm.
        outcome = await self._call(
            operation,
            store_id,
            body=encode_small({field: True}),
        )
        body = types.mapping(outcome.answer.body, operation)
        secret = types.text(body.get("webhook_secret")) or None
        return types.RotatedSecret(types.read(types.Integration, body, operation), secret)

    async def remove_integration(self, store_id: str) -> None:
        """Remove the integration: webhooks stop, and the webhook secret is void."""

        async def settle() -> Answer | None:
            return _APPLIED if await self._integrated(store_id) is None else None

        await self._call(
            "integrations.remove",
            store_id,
            write=Write(settle),
        )

    async def set_store_status(self, store_id: str, status: types.StoreStatus) -> None:
        """Open the storefront (active), or show it as temporarily closed (inactive)."""

        async def settle() -> Answer | None:
            now = {store.store_id: store.status for store in await self.stores()}
            return _APPLIED if now.get(store_id) == status else None

        await self._call(
            "stores.status",
            store_id,
            body=encode_small({"status": status}),
            write=Write(settle),
        )

    async def tax_config(self, store_id: str) -> types.TaxConfig:
        """Return how the store taxes."""
        operation = "stores.tax_config"
        answer = await self._read(operation, store_id)
        return types.read(types.TaxConfig, answer.body, operation)

    async def put_settings(self, store_id: str, settings: Mapping[str, Any]) -> None:
        """Push operational settings, in the service's camelCase; they are forwarded verbatim."""
        # No call reads settings; sending the same ones twice does no harm.
        await self._call(
            "stores.settings",
            store_id,
            body=encode_small(settings),
        )

    async def _integrated(self, store_id: str) -> types.Integration | None:
        try:
            return await self.integration(store_id)
        except Refused as failure:
            if failure.code == NOT_INTEGRATED:
                return None
            raise


class MenuCalls(Calls):
    """Tells the service what is on the menu, the availability of it before the rest."""

    _warned_of = ""  # the job whose poll_url was a stranger's
    _writes = 0  # begun or ended: whether another call may have moved last_synced_at

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> types.PushAnswer:
        """Push the whole menu; done at once, or accepted as a background job.

        Should the answer be lost, a `last_synced_at` that has moved shows that the push was applied
        (`settled_by` "status").
        """
        operation = "menus.push"
        before, outcome = await self._write_once(
            store_id,
            operation,
            body,
            looks_after_s=_JOB_LOOKS_S,
        )
        if outcome.settled:
            return types.PushDone("success", settled_by="status")
        answer = types.read_push(
            outcome.answer.body, status=outcome.answer.status, operation=operation
        )
        if isinstance(answer, types.PushAccepted):
            return replace(answer, synced_before=before)
        return answer

    async def _write_once(
        self,
        store_id: str,
        operation: str,
        body: Mapping[str, Any],
        *,
        looks_after_s: Sequence[float] = (0.0,),
    ) -> tuple[int | None, Outcome]:
        """Write what is not to be repeated once it was applied; return when the last sync was.

        The sync status is read first: should the answer be lost, a `last_synced_at` that has moved
        shows that the write was applied. One that has not moved shows nothing where another write
        of this bridge was under way. `looks_after_s` are the pauses before each look.
        """
        data = await encode(body)
        before = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
        others = self._writes

        async def settle() -> Answer | None:
            for pause in looks_after_s:
                if pause:
                    await self._caller.pause(pause)
                now = (await self.menu_status(store_id, priority=Priority.MENU)).last_synced_at
                if now is not None and now != before and self._writes == others:
                    return Answer(200, None)
            return None

        try:
            outcome = await self._call(operation, store_id, body=data, write=Write(settle))
        finally:
            self._writes += 1
        return before, outcome

    async def menu_job(self, store_id: str, job_id: str, *, poll_url: str = "") -> types.MenuJob:
        """Return the state of a background push; Refused `menu.job_not_found` once it is gone.

        A `poll_url` that is not the service's own is never called: the job is asked for under the
        path that the specification gives it.
        """
        operation = "menus.job"
        url = self._job_url(store_id, job_id, poll_url)
        answer = await self._read(operation, url=url)
        return types.read_job(answer.body, operation)

    def _job_url(self, store_id: str, job_id: str, poll_url: str) -> str:
        origin = self._caller.origin
        if poll_url:
            try:
                return origin.poll_url(poll_url)
            except Refused:
                if self._warned_of != job_id:
                    log.warning("menu.poll_url_foreign", store_id=store_id, job=job_id)
                self._warned_of = job_id
        return self._url("menus.job", store_id, job_id)

    async def menu_status(
        self, store_id: str, *, priority: Priority = Priority.POLL
    ) -> types.MenuStatus:
        """Return the menu sync status."""
        operation = "menus.status"
        answer = await self._read(operation, store_id, priority=priority)
        return types.read(types.MenuStatus, answer.body, operation)

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> types.BatchResult:
        """Add, update and delete several items in one call; a lost answer is as in `push_menus`.

        An add that is repeated names an item that is there already, a delete one that is gone.
        """
        operation = "menus.batch"
        _before, outcome = await self._write_once(store_id, operation, body)
        if outcome.settled:
            return types.BatchResult("success")
        return types.read(types.BatchResult, outcome.answer.body, operation)

    async def set_availability(
        self, store_id: str, items: Iterable[Mapping[str, Any]]
    ) -> types.AvailabilityResult:
        """Take items off sale or back on: `{external_id, available, snooze_until?}` each.

        `not_found` in the answer names external ids that the service does not know.
        """
        operation = "items.availability"
        body = await encode({"items": list(items)})
        answer = await self._upsert(operation, store_id, body=body)
        return types.read(types.AvailabilityResult, answer.body, operation)

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> types.PatchResult:
        """Change one item; Refused `menu.item_not_found` where the service does not know it."""
        operation = "items.patch"
        answer = await self._upsert(operation, store_id, external_id, body=encode_small(fields))
        return types.read(types.PatchResult, answer.body, operation)

    async def push_tables(
        self, store_id: str, tables: Sequence[Table], *, cleared: Collection[str] = ()
    ) -> list[types.TableQr]:
        """Push the floor plan whole: tables that are missing from it are deactivated.

        `cleared` are the external ids of tables that have lost their zone: an upsert without the
        field may leave the old one, so theirs is sent empty.
        """
        operation = "tables.push"
        body = await encode(
            {"tables": [_table(each, cleared=each.external_id in cleared) for each in tables]}
        )
        # No call reads tables; the repeat's answer is the state.
        outcome = await self._call(operation, store_id, body=body)
        return types.read_tables(outcome.answer.body, operation)

    async def _upsert(self, operation: str, store_id: str, *ids: str, body: bytes) -> Answer:
        async def settle() -> None:
            # The status does not say which items were taken, only whether it makes sense to go on
            # (it fails where the integration is gone); the repeat then gives the answer.
            await self.menu_status(store_id, priority=ENDPOINTS[operation].priority)

        self._writes += 1
        try:
            outcome = await self._call(operation, store_id, *ids, body=body, write=Write(settle))
        finally:
            self._writes += 1
        return outcome.answer


def _table(table: Table, *, cleared: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"external_id": table.external_id, "name": table.name}
    if table.seats is not None:
        body["seats"] = table.seats
    if table.zone or cleared:
        body["zone"] = table.zone
    return body


class OrderBodies:
    """The bodies that the specification does not show, from the settings [assumptions]."""

    def __init__(
        self,
        *,
        accept: Mapping[str, Any] | None = None,
        status: Mapping[str, Any] | None = None,
        ready: Mapping[str, Any] | None = None,
        preparing: str = "preparing",
    ) -> None:
        self.accept = dict(accept or {})
        self.ready = dict(ready or {})
        self.preparing = filled(status or {"status": "{status}"}, preparing)


def filled(template: Mapping[str, Any], status: str) -> dict[str, Any]:
    """Return the status body with `{status}` replaced wherever it stands, nested values too."""

    def fill(value: object) -> object:
        if isinstance(value, str):
            return value.replace("{status}", status)
        if isinstance(value, Mapping):
            return {name: fill(each) for name, each in value.items()}
        if isinstance(value, list):
            return [fill(each) for each in value]
        return value

    return {name: fill(value) for name, value in template.items()}


class OrderCalls(Calls):
    """Tells the service how orders go on. They go before all other calls."""

    def __init__(self, caller: Caller, bodies: OrderBodies | None = None) -> None:
        super().__init__(caller)
        self._bodies = bodies or OrderBodies()
        # Transitions whose last call ended unknown: their next call is a repeat.
        self._doubted: set[tuple[str, str]] = set()

    async def accept(self, order_id: str) -> None:
        """Accept the order. Raises Conflict where that is not reachable from its state."""
        await self._transition(order_id, "accept", self._bodies.accept)

    async def set_preparing(self, order_id: str) -> None:
        """Tell that the kitchen has begun. Raises Conflict as `accept` does."""
        await self._transition(order_id, "status", self._bodies.preparing)

    async def ready(self, order_id: str) -> None:
        """Tell that the order is ready. Raises Conflict as `accept` does."""
        await self._transition(order_id, "ready", self._bodies.ready)

    async def cancel(
        self, order_id: str, reason: str, reason_code: ReasonCode, message: str = ""
    ) -> None:
        """Cancel the order: `reason` is for the customer, `message` (optional) for support.

        The customer is refunded. Raises Conflict where the order cannot be cancelled any more.
        """
        body = {"reason": reason, "reason_code": reason_code.value}
        if message:
            body["message"] = message
        await self._transition(order_id, "cancel", body)

    async def _transition(self, order_id: str, name: str, body: Mapping[str, Any]) -> None:
        key = (order_id, name)
        try:
            await self._call(
                f"orders.{name}",
                order_id,
                body=encode_small(body),
                write=Write(proof=INVALID_TRANSITION, doubted=key in self._doubted),
            )
        except OutcomeUnknown:
            self._doubted.add(key)
            raise
        self._doubted.discard(key)


class ServiceClient(StoreCalls, MenuCalls, OrderCalls):
    """All calls of one store; see the three groups it is made of."""
