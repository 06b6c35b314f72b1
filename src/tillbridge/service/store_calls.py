"""The calls about stores and their integration. Specification: Stores and integrations."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.errors import Conflict, Refused
from tillbridge.core.i18n import _
from tillbridge.service import types
from tillbridge.service.caller import Write
from tillbridge.service.calls import Calls
from tillbridge.service.diagnosis import NOT_INTEGRATED
from tillbridge.service.encoding import encode_small
from tillbridge.service.fields import listing
from tillbridge.service.gate import Priority
from tillbridge.service.transport import Answer

ALREADY_INTEGRATED = "integration.already_exists"

_APPLIED = Answer(200, None)


class StoreCalls(Calls):
    """Finds, integrates and pauses stores."""

    async def stores(self) -> list[types.Store]:
        """Return all stores of the merchant."""
        operation = "stores.list"
        answer = await self._read(operation, "pos", "stores", priority=Priority.STORE)
        return [types.parse_store(fields) for fields in listing(answer.body, operation)]

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

        outcome = await self._write(
            (operation, "POST", ("pos", "integrate-store", store_id)),
            encode_small(request.body()),
            priority=Priority.STORE,
            write=Write(settle),
        )
        return types.parse_integration_with_secret(outcome.answer.body, operation)

    async def integration(self, store_id: str) -> types.Integration:
        """Return the store's integration; Refused `store.not_integrated` where it has none."""
        operation = "integrations.read"
        path = ("pos", "integrations", store_id)
        answer = await self._read(operation, *path, priority=Priority.STORE)
        return types.parse_integration(answer.body, operation)

    async def change_integration(self, store_id: str, **changed: str | bool) -> types.Integration:
        """Change `webhook_url`, `notification_email`, `menu_sync_direction`, `auto_accept_orders`.

        Only what is named changes.
        """
        operation = "integrations.change"

        async def settle() -> Answer | None:
            now = await self.integration(store_id)
            same = all(getattr(now, name, None) == value for name, value in changed.items())
            return _APPLIED if same else None

        outcome = await self._write(
            (operation, "PUT", ("pos", "integrations", store_id)),
            encode_small(changed),
            priority=Priority.STORE,
            write=Write(settle),
        )
        if outcome.settled:
            return await self.integration(store_id)
        return types.parse_integration(outcome.answer.body, operation)

    async def rotate_webhook_secret(self, store_id: str, field: str) -> types.RotatedSecret:
        """Rotate the webhook secret by the update call; `field` is what the service calls that.

        The name is not shown in the specification, which also lets no answer but that of
        integrate-store show a secret: `webhook_secret` is None where this one does not.
        """
        operation = "integrations.rotate"
        # Of several tries the last one's secret counts: repeating does no harm.
        outcome = await self._write(
            (operation, "PUT", ("pos", "integrations", store_id)),
            encode_small({field: True}),
            priority=Priority.STORE,
        )
        return types.parse_rotated(outcome.answer.body, operation)

    async def remove_integration(self, store_id: str) -> None:
        """Remove the integration: webhooks stop, and the webhook secret is void."""

        async def settle() -> Answer | None:
            return _APPLIED if await self._integrated(store_id) is None else None

        await self._write(
            ("integrations.remove", "DELETE", ("pos", "integrations", store_id)),
            None,
            priority=Priority.STORE,
            write=Write(settle),
        )

    async def set_store_status(self, store_id: str, status: types.StoreStatus) -> None:
        """Open the storefront (active), or show it as temporarily closed (inactive)."""

        async def settle() -> Answer | None:
            now = {store.store_id: store.status for store in await self.stores()}
            return _APPLIED if now.get(store_id) == status else None

        await self._write(
            ("stores.status", "PUT", ("pos", "stores", store_id, "status")),
            encode_small({"status": status}),
            priority=Priority.STORE,
            write=Write(settle),
        )

    async def tax_config(self, store_id: str) -> types.TaxConfig:
        """Return how the store taxes."""
        operation = "stores.tax_config"
        path = ("pos", "stores", store_id, "tax-config")
        answer = await self._read(operation, *path, priority=Priority.STORE)
        return types.parse_tax_config(answer.body, operation)

    async def put_settings(self, store_id: str, settings: Mapping[str, Any]) -> None:
        """Push operational settings, in the service's camelCase; they are forwarded verbatim."""
        # No call reads settings; sending the same ones twice does no harm.
        await self._write(
            ("stores.settings", "PUT", ("pos", "stores", store_id, "settings")),
            encode_small(settings),
            priority=Priority.STORE,
        )

    async def _integrated(self, store_id: str) -> types.Integration | None:
        try:
            return await self.integration(store_id)
        except Refused as failure:
            if failure.code == NOT_INTEGRATED:
                return None
            raise
