"""The audit trail: who did what, and whether anybody changed it afterwards."""

from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument, operation

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tillbridge.ledger.models import AuditEntry
    from tillbridge.operations.bridge import Bridge


@operation("audit.list", role=Role.LOOK, reads=True, before_setup=True, command="audit list")
async def entries(
    bridge: "Bridge",
    *,
    limit: Annotated[int, Argument("N", _("How many, at most."), least=1, most=10_000)] = 100,
    before: int | None = None,
    who: Annotated[str, Argument("WHO", _("Only of this actor, as the list names it."))] = "",
    action: Annotated[str, Argument("ACTION", _("Only actions that begin like this."))] = "",
    store: Annotated[str, Argument("STORE", _("Only this store's."), complete="stores")] = "",
) -> Answer:
    """List recent activity, the newest first: on the page, by commands, by the bridge itself.

    Example: tillbridge audit list --limit 20
    """
    from tillbridge.ledger import audit

    def read(connection: "Connection") -> Answer:
        found = audit.latest(
            connection, limit + 1, before=before, who=who, action=action, store=store
        )
        # `actors`: everybody who ever did something.
        return {
            "entries": [
                audit.to_json(each, target_name=_name(connection, each)) for each in found[:limit]
            ],
            "more": len(found) > limit,
            "actors": audit.actors(connection),
        }

    return await bridge.ledger.read(read)


@operation("audit.verify", role=Role.LOOK, reads=True, before_setup=True, command="audit verify")
async def verify(bridge: "Bridge") -> Answer:
    """Check that nobody changed the activity log. Exit code 1: somebody has.

    Example: tillbridge audit verify
    """
    from dataclasses import asdict

    from tillbridge.ledger import audit

    checked = await bridge.ledger.read(audit.check)
    answer = {"entries": checked.entries, "head": checked.head, "broken": None}
    if checked.broken is None:
        text = ngettext(
            "The activity log is complete: {n} entry.",
            "The activity log is complete: {n} entries.",
            checked.entries,
        ).format(n=checked.entries)
        return {"ok": True, "text": text, **answer}
    text = _("The activity log was changed at entry {entry}: {why}").format(
        entry=checked.broken.entry, why=checked.broken.text
    )
    fix = _(
        "Someone changed the database by hand, or it was rebuilt. Compare it with the newest "
        "backup, and with the log (event audit.noted)."
    )
    return {"ok": False, "text": text, "fix": fix, **answer, "broken": asdict(checked.broken)}


def _name(connection: "Connection", entry: "AuditEntry") -> str:
    """Return what people call the target: an order by its number, an item by its name."""
    from sqlalchemy import select
    from sqlmodel import col

    from tillbridge.ledger.models import OrderRow
    from tillbridge.menu.views import name_of_item

    if entry.target and entry.action.startswith("order."):
        row = connection.execute(
            select(col(OrderRow.order_number)).where(col(OrderRow.order_id) == entry.target)
        ).first()
        return row[0] if row else ""
    if entry.target and entry.store and entry.action.startswith("item."):
        return name_of_item(connection, entry.store, entry.target)
    return ""
