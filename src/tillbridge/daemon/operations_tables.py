"""What commands ask of the bridge about tables: the floor plan, and its QR codes."""

from collections.abc import Callable, Mapping

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.daemon.rooms import StoreRooms
from tillbridge.ledger.models import AcceptedTable
from tillbridge.menu.floor_plan import FloorPlan
from tillbridge.model.instant import to_iso
from tillbridge.web.ports import Answer


class TableOperations:
    """The operations. `rooms_of` finds a store; `later` adds that nobody is told just yet."""

    def __init__(self, rooms_of: Callable[[str], StoreRooms], later: Callable[[str], str]) -> None:
        self._rooms_of = rooms_of
        self._later = later

    async def list(self, store: str) -> Answer:
        """Return the tables that the service has accepted, with their QR codes."""
        rooms = self._rooms_of(store)
        books = await rooms.catalogue.tables.books()
        hold = books.hold
        waits = hold is not None and not hold.approved
        return {
            "title": await rooms.title(),
            "told": rooms.catalogue.tables.are_told,
            "held": list(hold.reasons) if hold is not None and waits else [],
            "tables": [_listed(each, books.printed) for each in books.accepted],
        }

    async def plan(self, store: str) -> Answer:
        """Return what would be pushed now."""
        plan = await self._told(store).catalogue.tables.plan_only()
        return plan.to_json()

    async def push(self, store: str) -> Answer:
        """Push the floor plan whole, and return what came of it."""
        rooms = self._told(store)
        if await rooms.connected_as() is None:
            raise BridgeError(
                _("The store {store} is not connected yet.").format(store=store),
                fix=_("Run: tillbridge connect {store}").format(store=store),
            )
        plan = await rooms.catalogue.tables.push_again()
        if plan is None:
            return {
                "ok": False,
                "text": _("The floor plan cannot be read; see: tillbridge status"),
            }
        if plan.waits:
            reasons = "; ".join(plan.reasons)
            text = _(
                "The floor plan waits for a person: {reasons}. Release it with: "
                "tillbridge tables approve {store}"
            ).format(reasons=reasons, store=store)
            return {"ok": False, "text": text}
        return {"ok": True, "text": _pushed(plan)}

    async def approve(self, store: str) -> Answer:
        """Release the floor plan that is held."""
        hold = await self._rooms_of(store).catalogue.tables.approve()
        if hold is None:
            return {"ok": False, "text": _("No floor plan waits for approval.")}
        text = self._later(_("The floor plan of {since} is released."))
        return {"ok": True, "text": text.format(since=to_iso(hold.since))}

    async def printed(self, store: str, codes: Mapping[str, str]) -> Answer:
        """Take note that these codes (as `list` names them, by external id) are printed."""
        books = await self._rooms_of(store).catalogue.tables.printed(codes)
        return {"ok": True, "text": _("Noted."), "dead": list(books.dead)}

    def _told(self, store: str) -> StoreRooms:
        rooms = self._rooms_of(store)
        if not rooms.catalogue.tables.are_told:
            raise BridgeError(
                _("The till of {store}, as configured, tells no tables.").format(store=store),
                fix=_(
                    "Name the file of its tables in [stores.{store}.pos]; see docs/tables.md."
                ).format(store=store),
            )
        return rooms


def _listed(each: AcceptedTable, printed: Mapping[str, str]) -> Answer:
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


def _pushed(plan: FloorPlan) -> str:
    count = len(plan.wanted)
    return ngettext(
        "The floor plan is pushed: {n} table.", "The floor plan is pushed: {n} tables.", count
    ).format(n=count)
