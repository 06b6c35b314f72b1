"""A store's menu: how it stands, its items now and then, its pushes; pushed and released."""

from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.i18n import _, joined
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.operations.arguments import ConnectedStore, Full, Moment, Store

if TYPE_CHECKING:
    from tillbridge.core.problems import OpenProblem
    from tillbridge.menu.browse import MenuPage
    from tillbridge.menu.lane import ProgressView
    from tillbridge.menu.review import ReviewView
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

    return await bridge.ledger.read(menu_state, store.name)


@operation("menu.browse", role=Role.LOOK, reads=True)
async def browse(
    bridge: "Bridge",
    store: Store,
    *,
    category: str = "",
    text: str = "",
    page: int = 1,
    item: str = "",
) -> "MenuPage":
    """Return a page of the menu by category, and where the till has it otherwise.

    `item` is the id of one item, of which everything is shown.
    """
    from tillbridge.menu.browse import Asked, menu_page

    differing = await store.menu.differing()
    asked = Asked(category, text, page, item)
    currency = store.settings.currency
    return await bridge.ledger.read(menu_page, store.name, currency, differing, asked)


@operation("menu.review", role=Role.LOOK, reads=True)
async def review(
    _bridge: "Bridge", store: Store, *, page: int = 1, read: bool = True
) -> "ReviewView":
    """Return what the storefront has not got of the till's menu, the worst first.

    `read`: if nothing is known to differ, the till is read again.
    """
    return await store.menu.review(page, read=read)


@operation("menu.progress", role=Role.LOOK, reads=True)
async def progress(_bridge: "Bridge", store: Store) -> "ProgressView":
    """Return how far the menu's way to the storefront is."""
    return store.menu.progress


@operation("menu.plan", role=Role.LOOK, reads=True, command="menu plan")
async def plan(_bridge: "Bridge", store: Store) -> "PlanView":
    """Show what would change on the storefront; nothing is sent.

    Example: tillbridge menu plan main
    """
    return await store.menu.plan_only()


@operation("menu.push", role=Role.TECHNICIAN, command="menu push")
async def push(bridge: "Bridge", store: ConnectedStore, *, full: Full = False) -> Answer:
    """Update the storefront's menu now, without waiting for the till's export to change.

    A change that is on hold stays on hold: publish it with menu approve.

    Example: tillbridge menu push main --full
    """
    plan = await store.menu.push_again(full=full)
    return _pushed(plan, _open_problem(bridge, store.name))


@operation("menu.approve", role=Role.TECHNICIAN, command="menu approve")
async def approve(bridge: "Bridge", store: Store) -> Answer:
    """Publish the menu change that is on hold, after asking on a terminal.

    Only this change: if the till's menu changes meanwhile, the new change is checked again.

    Example: tillbridge menu approve main
    """
    from tillbridge.menu.describe import counted

    hold = await store.menu.approve()
    if hold is None:
        return {"ok": False, "text": _("No menu change is on hold.")}
    counts = hold.summary.get("counts", {})
    what = joined(", ", [text for _kind, text in counted(counts)])
    text = bridge.later(_("Publishing: {what}.") if what else _("Publishing the change."))
    return {
        "ok": True,
        "text": text.format(what=what),
        "counts": dict(counts),
    }


@operation("menu.dismiss", role=Role.TECHNICIAN, command="menu dismiss")
async def dismiss(_bridge: "Bridge", store: Store) -> Answer:
    """Keep the storefront as it is: the menu change that is on hold is not published.

    This change is not offered again; the till's next change is checked as usual.

    Example: tillbridge menu dismiss main
    """
    hold = await store.menu.dismiss(by=current_actor().who)
    if hold is None:
        return {"ok": False, "text": _("No menu change is on hold.")}
    text = _("The storefront stays as it is until the till's menu changes again.")
    return {"ok": True, "text": text}


@operation("menu.history", role=Role.LOOK, reads=True, command="menu history")
async def history(bridge: "Bridge", store: Store, *, before: int | None = None) -> "PushesPage":
    """List the latest changes sent to the storefront, with their result.

    Example: tillbridge menu history main
    """
    from tillbridge.menu.views import pushes_page

    currency = store.settings.currency
    return await bridge.ledger.read(pushes_page, store.name, currency, before)


@operation("menu.items", role=Role.LOOK, reads=True, command="menu items")
async def items(
    bridge: "Bridge",
    store: Store,
    text: Annotated[str, Argument("[TEXT]", _("Part of a name, its initials, or an id."))] = "",
    *,
    at: Moment = None,
    page: Annotated[int, Argument("N", _("Which page."), least=1)] = 1,
) -> "ItemsPage":
    """List the storefront's menu, as it is now or as it was at a moment.

    Example: tillbridge menu items main pizza --at 2026-11-20T19:30
    """
    from tillbridge.menu.views import items_page

    return await bridge.ledger.read(
        items_page, store.name, text, store.settings.currency, page=page, at_ms=at
    )


def _open_problem(bridge: "Bridge", store: str) -> "OpenProblem | None":
    """Return what is in the way of the store's menu, the worst first."""
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
            "text": _("The menu was not sent."),
            "fix": _("See what is wrong: tillbridge status"),
        }
    if plan["calls"]:
        return {"ok": True, "text": _("The storefront has the till's menu.")}
    return {
        "ok": True,
        "text": _("Nothing to do: the storefront already matches the till."),
    }
