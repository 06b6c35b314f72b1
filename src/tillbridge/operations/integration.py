"""The integration of a store: show, change, renew, remove. No answer holds a secret."""

from typing import TYPE_CHECKING, Any, TypedDict

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import Store

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.operations.bridge import Bridge
    from tillbridge.service.types import Integration, IntegrationRequest
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
    """Show the integration as the ordering service has it, beside as it is configured.

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
        "configured": _as_wanted(seen.wanted),
        "plan": seen.plan.to_json(),
        "removed_since": to_iso(removed.get("at")),
        "open_orders": waiting,
        "rotation_costs": list(costs_of(Kind.ROTATE))
        if store.integrator.new_secret_takes_new_integration
        else [],
    }


@operation("integration.plan", role=Role.LOOK, reads=True, command="integration plan")
async def plan(_bridge: "Bridge", store: Store) -> Answer:
    """Show what differs from the configuration, and what applying it costs; nothing is changed.

    Example: tillbridge integration plan main
    """
    return (await store.integrator.look()).plan.to_json()


@operation("integration.apply", role=Role.TECHNICIAN, command="integration apply")
async def apply(_bridge: "Bridge", store: Store) -> Answer:
    """Bring the integration in line with the configuration; only what differs is sent.

    The running bridge does this by itself (integration_changes). Another location, or a webhook
    secret that is not known here, takes a new integration, and that asks before it begins.

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
        text = _("The store {store} is integrated anew, as configured.")
    elif done.changed:
        text = _("Changed: {changed}.")
    else:
        text = _("Nothing had to change: the service has it as configured.")
    return await _after(store, done, text)


@operation("integration.rotate_secret", role=Role.TECHNICIAN, command="integration rotate-secret")
async def rotate_secret(_bridge: "Bridge", store: Store) -> Answer:
    """Get a new webhook secret; the old one is honoured for old_secret_s, and orders go on.

    Example: tillbridge integration rotate-secret main
    """
    done = await store.integrator.rotate()
    text = _("The webhook secret is new. Deliveries signed with the old one are still taken.")
    return await _after(store, done, text)


@operation("integration.remove", role=Role.TECHNICIAN, command="integration remove")
async def remove(_bridge: "Bridge", store: Store) -> Answer:
    """Take a store off this bridge, at the ordering service and here.

    The bridge goes on with its other stores. tillbridge connect brings the store back.

    Example: tillbridge integration remove main
    """
    await store.integrator.remove()
    store.integrating.look()
    text = _(
        "The store {store} is taken off this bridge: no orders arrive, and nothing is pushed. "
        "Bring it back with: tillbridge connect {store}"
    )
    return {"ok": True, "text": text.format(store=store.name)}


@operation("integration.reintegrate", role=Role.TECHNICIAN, command="integration reintegrate")
async def reintegrate(_bridge: "Bridge", store: Store) -> Answer:
    """Remove the integration and make it anew; no new consent is needed while one lasts.

    Example: tillbridge integration reintegrate main
    """
    done = await store.integrator.reintegrate()
    return await _after(store, done, _("The store {store} is integrated anew."))


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
        "The ordering service has the integration as {state}: nothing can be applied before it "
        "is active again. See who must do what with: tillbridge status"
    ).format(state=seen.plan.state)


def _as_found(now: "Integration") -> IntegrationAtService:
    return {
        "integration_id": now.integration_id,
        "webhook_url": now.webhook_url,
        "menu_sync_direction": now.menu_sync_direction,
        "auto_accept_orders": now.auto_accept_orders,
        "external_store_id": now.external_store_id,
        "notification_email": now.notification_email,
        "status": now.status,
        "connected_at": to_iso(now.connected_at),
    }


def _as_wanted(wanted: "IntegrationRequest") -> IntegrationFields:
    return {
        "webhook_url": wanted.webhook_url,
        "menu_sync_direction": wanted.menu_sync_direction,
        "auto_accept_orders": wanted.auto_accept_orders,
        "external_store_id": wanted.external_store_id,
        "notification_email": wanted.notification_email,
    }
