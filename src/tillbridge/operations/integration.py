"""The integration of a store: show, change, renew, remove. No answer holds a secret."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict, cast

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import Store

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.operations.bridge import Bridge
    from tillbridge.service.types import Integration
    from tillbridge.stores.integration import Integrated, IntegrationSnapshot


class IntegrationFields(TypedDict):
    """What the configuration says of an integration, and the service has."""

    webhook_url: str | None
    menu_sync_direction: str | None
    auto_accept_orders: bool | None
    external_store_id: str | None
    notification_email: str | None


class IntegrationAtService(IntegrationFields):
    """An integration as the service has it."""

    integration_id: str | None
    status: str | None
    connected_at: str | None


class IntegrationView(TypedDict):
    """An integration: at the service and as `configured`, what `plan` would bring; its secret."""

    store_id: str
    state: str
    secret: str  # known, unknown, none
    secret_since: str | None
    old_secret_until: str | None
    service: IntegrationAtService | None
    configured: IntegrationFields
    plan: dict[str, Any]
    removed_since: str | None
    open_orders: int
    rotation_costs: list[str]


@operation("integration.show", role=Role.LOOK, reads=True, command="integration show")
async def show(bridge: "Bridge", store: Store) -> IntegrationView:
    """Show a store's connection at the ordering service next to the configuration.

    Example: tillbridge integration show main
    """
    from tillbridge.ledger.facts import get_fact
    from tillbridge.ledger.orders import open_orders
    from tillbridge.stores.integration_plan import Kind, costs_of

    seen = await store.integrator.look()
    stored = await bridge.ledger.read(
        lambda db: (
            get_fact(db, store.name, "webhook_secret") or {},
            get_fact(db, store.name, "integration_removed") or {},
            len(open_orders(db, store.name)),
        )
    )
    secret, removed, waiting = stored
    known = seen.plan.kind not in {Kind.ROTATE, Kind.INTEGRATE, Kind.WAIT}
    until = secret.get("old_until_ms")
    return {
        "store_id": seen.store.store_id,
        "state": str(seen.plan.state),
        "secret": "known" if known else "unknown" if seen.now else "none",
        "secret_since": to_iso(secret.get("since_ms")) if known else None,
        "old_secret_until": to_iso(until),
        "service": None if seen.now is None else _as_found(seen.now),
        "configured": cast("IntegrationFields", asdict(seen.wanted)),
        "plan": seen.plan.to_json(),
        "removed_since": to_iso(removed.get("at")),
        "open_orders": waiting,
        "rotation_costs": list(costs_of(Kind.ROTATE))
        if store.integrator.new_secret_takes_new_integration
        else [],
    }


@operation("integration.plan", role=Role.LOOK, reads=True, command="integration plan")
async def plan(_bridge: "Bridge", store: Store) -> Answer:
    """Show what differs from the configuration and what applying it does. Changes nothing.

    Example: tillbridge integration plan main
    """
    return (await store.integrator.look()).plan.to_json()


@operation("integration.apply", role=Role.TECHNICIAN, command="integration apply")
async def apply(_bridge: "Bridge", store: Store) -> Answer:
    """Apply the configuration to a store's connection. Sends only what differs.

    The running bridge does this by itself (integration_changes). Another location, or an unknown
    webhook secret, needs a new connection: the command asks before it begins.

    Example: tillbridge integration apply main
    """
    from tillbridge.stores.integration_plan import Kind

    before = await store.integrator.look()
    if before.plan.kind is Kind.WAIT:
        return {"ok": False, "text": _waits(before), "changed": []}
    done = await store.integrator.apply(frozenset(Kind) - {Kind.WAIT})
    if done is None:
        return {"ok": False, "text": _waits(before), "changed": []}
    if done.created:
        text = _("{store} is reconnected with the configured settings.")
    elif done.changed:
        text = _("Changed: {changed}.")
    else:
        text = _("Nothing had to change: the connection matches the configuration.")
    return await _after(store, done, text)


@operation("integration.rotate_secret", role=Role.TECHNICIAN, command="integration rotate-secret")
async def rotate_secret(_bridge: "Bridge", store: Store) -> Answer:
    """Get a new webhook secret. Orders continue: the old one stays valid for old_secret_s.

    Example: tillbridge integration rotate-secret main
    """
    done = await store.integrator.rotate()
    text = _(
        "The store has a new webhook secret. Orders signed with the old one are still accepted."
    )
    return await _after(store, done, text)


@operation("integration.remove", role=Role.TECHNICIAN, command="integration remove")
async def remove(_bridge: "Bridge", store: Store) -> Answer:
    """Disconnect a store from this bridge, at the ordering service and here.

    Other stores are not affected. To bring the store back, use tillbridge connect.

    Example: tillbridge integration remove main
    """
    await store.integrator.remove()
    store.integrating.look()
    text = _(
        "{store} is disconnected: no orders arrive and no menu is sent. To bring it back: "
        "tillbridge connect {store}"
    )
    return {"ok": True, "text": text.format(store=store.name)}


@operation("integration.reintegrate", role=Role.TECHNICIAN, command="integration reintegrate")
async def reintegrate(_bridge: "Bridge", store: Store) -> Answer:
    """Reconnect a store. Needs no new sign-in while the present one is valid.

    Example: tillbridge integration reintegrate main
    """
    done = await store.integrator.reintegrate()
    return await _after(store, done, _("{store} is reconnected."))


async def _after(store: "StoreServices", done: "Integrated", text: str) -> Answer:
    await store.connected()
    store.integrating.look()
    changed = list(done.changed)
    return {
        "ok": True,
        "text": text.format(store=store.name, changed=", ".join(changed)),
        "store_id": done.store_id,
        "created": done.created,
        "changed": changed,
    }


def _waits(seen: "IntegrationSnapshot") -> str:
    return _(
        "The store's connection is {state}: nothing can be applied until it is active again. "
        "See what to do: tillbridge status"
    ).format(state=seen.plan.state)


def _as_found(now: "Integration") -> IntegrationAtService:
    found = asdict(now) | {"connected_at": to_iso(now.connected_at)}
    del found["store_id"]  # it is beside it
    return cast("IntegrationAtService", found)
