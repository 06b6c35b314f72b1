"""What commands ask of the bridge about a store's integration."""

from collections.abc import Callable

from tillbridge.core.i18n import _
from tillbridge.daemon.rooms import StoreRooms
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.orders import open_orders
from tillbridge.model.instant import to_iso
from tillbridge.service.types import Integration, IntegrationRequest
from tillbridge.stores.integration import Integrated
from tillbridge.stores.integration_plan import Kind, costs_of
from tillbridge.stores.integration_reader import IntegrationSnapshot
from tillbridge.web.ports import Answer

_APPLIED_BY_HAND = frozenset(Kind) - {Kind.WAIT}


class IntegrationOperations:
    """The operations; `rooms_of` finds a store. No answer holds a secret."""

    def __init__(self, rooms_of: Callable[[str], StoreRooms], ledger: Ledger) -> None:
        self._rooms_of = rooms_of
        self._ledger = ledger

    async def show(self, store: str) -> Answer:
        """Return the integration as the service has it, and as it is configured."""
        rooms = self._rooms_of(store)
        seen = await rooms.integrator.look()
        told = await self._ledger.read(
            lambda db: (
                get_fact(db, store, "webhook_secret") or {},
                get_fact(db, store, "integration_removed") or {},
                len(open_orders(db, store)),
            )
        )
        secret, removed, waiting = told
        known = seen.plan.kind not in {Kind.ROTATE, Kind.INTEGRATE, Kind.WAIT}
        until = secret.get("old_until_ms")
        return {
            "store_id": seen.store.store_id,
            "state": str(seen.plan.state),
            "secret": "known" if known else "unknown" if seen.now else "none",
            "secret_since": _iso(secret.get("since_ms")) if known else None,
            "old_secret_until": _iso(until),
            "service": None if seen.now is None else _as_told(seen.now),
            "configured": _as_wanted(seen.wanted),
            "plan": seen.plan.to_json(),
            "removed_since": _iso(removed.get("at")),
            "open_orders": waiting,
            "rotation_costs": list(costs_of(Kind.ROTATE))
            if rooms.integrator.new_secret_takes_new_integration
            else [],
        }

    async def plan(self, store: str) -> Answer:
        """Return what would be done."""
        return (await self._rooms_of(store).integrator.look()).plan.to_json()

    async def apply(self, store: str) -> Answer:
        """Do what the plan says."""
        rooms = self._rooms_of(store)
        before = await rooms.integrator.look()
        if before.plan.kind is Kind.WAIT:
            return {"ok": False, "text": _waits(before), "changed": []}
        done = await rooms.integrator.apply(_APPLIED_BY_HAND)
        if done is None:
            return {"ok": False, "text": _waits(before), "changed": []}
        if done.created:
            text = _("The store {store} is integrated anew, as configured.")
        elif done.changed:
            text = _("Changed: {changed}.")
        else:
            text = _("Nothing had to change: the service has it as configured.")
        return await self._after(rooms, done, text)

    async def rotate_secret(self, store: str) -> Answer:
        """Get a new webhook secret."""
        rooms = self._rooms_of(store)
        done = await rooms.integrator.rotate()
        text = _("The webhook secret is new. Deliveries signed with the old one are still taken.")
        return await self._after(rooms, done, text)

    async def remove(self, store: str) -> Answer:
        """Take the store off this bridge."""
        rooms = self._rooms_of(store)
        await rooms.integrator.remove()
        rooms.integrating.look()
        text = _(
            "The store {store} is taken off this bridge: no orders arrive, and nothing is pushed. "
            "Bring it back with: tillbridge connect {store}"
        )
        return {"ok": True, "text": text.format(store=store)}

    async def reintegrate(self, store: str) -> Answer:
        """Remove the integration and make it anew."""
        rooms = self._rooms_of(store)
        done = await rooms.integrator.reintegrate()
        return await self._after(rooms, done, _("The store {store} is integrated anew."))

    async def _after(self, rooms: StoreRooms, done: Integrated, text: str) -> Answer:
        await rooms.connected()
        rooms.integrating.look()
        changed = list(done.changed)
        return {
            "ok": True,
            "text": text.format(store=rooms.name, changed=", ".join(changed)),
            "store_id": done.store_id,
            "created": done.created,
            "changed": changed,
        }


def _waits(seen: IntegrationSnapshot) -> str:
    return _(
        "The ordering service has the integration as {state}: nothing can be applied before it "
        "is active again. See who must do what with: tillbridge status"
    ).format(state=seen.plan.state)


def _as_told(now: Integration) -> Answer:
    return {
        "integration_id": now.integration_id,
        "webhook_url": now.webhook_url,
        "menu_sync_direction": now.menu_sync_direction,
        "auto_accept_orders": now.auto_accept_orders,
        "external_store_id": now.external_store_id,
        "notification_email": now.notification_email,
        "status": now.status,
        "connected_at": _iso(now.connected_at),
    }


def _as_wanted(wanted: IntegrationRequest) -> Answer:
    return {
        "webhook_url": wanted.webhook_url,
        "menu_sync_direction": wanted.menu_sync_direction,
        "auto_accept_orders": wanted.auto_accept_orders,
        "external_store_id": wanted.external_store_id,
        "notification_email": wanted.notification_email,
    }


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else to_iso(at_ms)
