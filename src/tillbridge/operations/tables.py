"""Tables: the floor plan, and its QR codes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.core.operation import Answer, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import ConnectedStore, Store

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.ledger.models import AcceptedTable
    from tillbridge.menu.tables import TablePlan, TablesPlanView, TableSync
    from tillbridge.operations.bridge import Bridge


class TableView(TypedDict):
    """A table that the service has; `code` identifies its QR code."""

    external_id: str
    name: str
    seats: int | None
    zone: str
    table_id: str
    qr_url: str
    code: str
    print_again: bool


@operation("tables.list", role=Role.LOOK, reads=True, command="tables list")
async def accepted_tables(_bridge: "Bridge", store: Store) -> Answer:
    """List the tables at the ordering service, with the addresses of their QR codes.

    Example: tillbridge tables list main
    """
    state = await store.menu.tables.state()
    hold = state.hold
    waits = hold is not None and not hold.approved
    return {
        "title": await store.title(),
        "told": store.menu.tables.pos_has_tables,
        "held": list(hold.reasons) if hold is not None and waits else [],
        "tables": [_listed(each, state.printed) for each in state.accepted],
    }


@operation("tables.plan", role=Role.LOOK, reads=True, command="tables plan")
async def plan(_bridge: "Bridge", store: Store) -> "TablesPlanView":
    """Show what would change in the floor plan; nothing is sent.

    Example: tillbridge tables plan main
    """
    plan = await _tables(store).plan_only()
    return plan.to_json()


@operation("tables.push", role=Role.TECHNICIAN, command="tables push")
async def push(_bridge: "Bridge", store: ConnectedStore) -> Answer:
    """Send the floor plan now, changed or not. Tables that are missing from it are deactivated.

    An update on hold stays on hold: publish it with tables approve.

    Example: tillbridge tables push main
    """
    plan = await _tables(store).push_again()
    if plan is None:
        text = _("The floor plan cannot be read. See why: tillbridge status")
        return {"ok": False, "text": text}
    if plan.waits:
        text = _(
            "Floor plan update on hold: {reasons}. To publish it: tillbridge tables approve {store}"
        ).format(reasons=joined("; ", plan.reasons), store=store.name)
        return {"ok": False, "text": text}
    return {"ok": True, "text": _pushed(plan)}


@operation("tables.approve", role=Role.TECHNICIAN, command="tables approve")
async def approve(bridge: "Bridge", store: Store) -> Answer:
    """Publish the floor plan update that is on hold.

    Only this update: if the till's tables change meanwhile, the new update is checked again.

    Example: tillbridge tables approve main
    """
    hold = await store.menu.tables.approve()
    if hold is None:
        return {"ok": False, "text": _("No floor plan update is on hold.")}
    text = bridge.later(_("The floor plan of {since} is published."))
    return {"ok": True, "text": text.format(since=to_iso(hold.since))}


@operation("tables.printed", role=Role.STAFF)
async def printed(_bridge: "Bridge", store: Store, codes: dict[str, str]) -> Answer:
    """Record that these codes (as `tables.list` names them, by external id) are printed."""
    state = await store.menu.tables.printed(codes)
    return {"ok": True, "text": _("Noted."), "dead": list(state.dead)}


def _tables(store: "StoreServices") -> "TableSync":
    if not store.menu.tables.pos_has_tables:
        fix = _("Set its file of tables in [stores.{store}.pos] (docs/tables.md).")
        raise BridgeError(
            _("The till of {store} is not set up to export tables.").format(store=store.name),
            fix=fix.format(store=store.name),
        )
    return store.menu.tables


def _listed(each: "AcceptedTable", printed: Mapping[str, str]) -> TableView:
    table = each.table
    return {
        "external_id": table.external_id,
        "name": table.name,
        "seats": table.seats,
        "zone": table.zone,
        "table_id": each.table_id,
        "qr_url": each.qr_url,
        "code": each.code,
        "print_again": bool(each.code) and printed.get(table.external_id, each.code) != each.code,
    }


def _pushed(plan: "TablePlan") -> str:
    count = len(plan.wanted)
    return ngettext("Floor plan sent: {n} table.", "Floor plan sent: {n} tables.", count).format(
        n=count
    )
