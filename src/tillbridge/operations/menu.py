"""A store's menu: how it stands, its items now and then, its pushes; pushed and released."""

from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.i18n import _, joined
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import ConnectedStore, Full, Moment, Store

if TYPE_CHECKING:
    from tillbridge.core.problems import OpenProblem
    from tillbridge.menu.views import ItemsPage, MenuState, PlanView, PushesPage
    from tillbridge.operations.bridge import Bridge

_IN_THE_WAY = (
    "export.unreadable",
    "menu.push_not_allowed",
    "menu.push_failed",
    "menu.held",
    "menu.items_refused",
    "menu.taken_in_part",
)


@operation("menu.show", role=Role.LOOK, reads=True)
async def show(bridge: "Bridge", store: Store) -> "MenuState":
    """Return how the menu stands: what the till says, what the service has, what waits."""
    from tillbridge.menu.views import menu_state

    return await bridge.ledger.read(lambda connection: menu_state(connection, store.name))


@operation("menu.plan", role=Role.LOOK, reads=True, command="menu plan")
async def plan(_bridge: "Bridge", store: Store) -> "PlanView":
    """Show what would be pushed now, as a difference; nothing is pushed.

    Example: tillbridge menu plan main
    """
    return await store.menu.plan_only()


@operation("menu.push", role=Role.TECHNICIAN, command="menu push")
async def push(bridge: "Bridge", store: ConnectedStore, *, full: Full = False) -> Answer:
    """Push the menu now, without waiting for the export to change.

    A change that is held stays held: release it with menu approve.

    Example: tillbridge menu push main --full
    """
    plan = await store.menu.push_again(full=full)
    return _pushed(plan, _open_problem(bridge, store.name))


@operation("menu.approve", role=Role.TECHNICIAN, command="menu approve")
async def approve(bridge: "Bridge", store: Store) -> Answer:
    """Release the menu change that waits for a person.

    Only that very change: if the export changes meanwhile, it is looked at anew.

    Example: tillbridge menu approve main
    """
    from tillbridge.menu.describe import counted

    hold = await store.menu.approve()
    if hold is None:
        return {"ok": False, "text": _("No menu change waits for approval.")}
    counts = hold.summary.get("counts", {})
    what = joined(", ", [text for _kind, text in counted(counts)]) or _("no item changes")
    text = bridge.later(_("The menu change of {since} is released: it {what}."))
    return {
        "ok": True,
        "text": text.format(since=to_iso(hold.since), what=what),
        "counts": dict(counts),
    }


@operation("menu.dismiss", role=Role.TECHNICIAN, command="menu dismiss")
async def dismiss(_bridge: "Bridge", store: Store) -> Answer:
    """Dismiss the menu change that waits: the storefront stays as it is.

    This very change is not offered again; what the till tells next is looked at anew.

    Example: tillbridge menu dismiss main
    """
    hold = await store.menu.dismiss(by=current_actor().who)
    if hold is None:
        return {"ok": False, "text": _("No menu change waits for approval.")}
    text = _(
        "The menu change is dismissed: the storefront stays as it is until the till tells "
        "something else."
    )
    return {"ok": True, "text": text}


@operation("menu.history", role=Role.LOOK, reads=True, command="menu history")
async def history(bridge: "Bridge", store: Store, *, before: int | None = None) -> "PushesPage":
    """List the latest pushes: what was told, how it ended, how long it took.

    Example: tillbridge menu history main
    """
    from tillbridge.menu.views import pushes_page

    return await bridge.ledger.read(lambda connection: pushes_page(connection, store.name, before))


@operation("menu.items", role=Role.LOOK, reads=True, command="menu items")
async def items(
    bridge: "Bridge",
    store: Store,
    text: Annotated[str, Argument("[TEXT]", _("Part of a name, its initials, or an id."))] = "",
    *,
    at: Moment = None,
    page: Annotated[int, Argument("N", _("Which page."), least=1)] = 1,
) -> "ItemsPage":
    """List what the storefront has, or had at a moment.

    Example: tillbridge menu items main pizza --at 2026-11-20T19:30
    """
    from tillbridge.menu.views import items_page

    return await bridge.ledger.read(
        lambda connection: items_page(
            connection, store.name, text, store.settings.currency, page=page, at_ms=at
        )
    )


def _open_problem(bridge: "Bridge", store: str) -> "OpenProblem | None":
    """Return what stands in the way of the store's menu, the worst first."""
    found = {
        each.code: each
        for each in bridge.problems.current()
        if each.store == store and each.subject in {"", "menu"}
    }
    return next((found[code] for code in _IN_THE_WAY if code in found), None)


def _pushed(plan: "PlanView | None", problem: "OpenProblem | None") -> Answer:
    """Return what came of a push."""
    if problem is not None:
        return {"ok": False, "text": problem.text, "fix": problem.fix}
    if plan is None:
        return {
            "ok": False,
            "text": _("The menu was not pushed."),
            "fix": _("See what is wrong: tillbridge status"),
        }
    if plan["calls"]:
        return {"ok": True, "text": _("The menu is pushed.")}
    return {
        "ok": True,
        "text": _("Nothing had to be pushed: the service has what the till says."),
    }
