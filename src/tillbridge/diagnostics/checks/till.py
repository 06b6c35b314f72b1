"""The till: does the adapter open, and does it say that the POS is there? Reads only."""

from dataclasses import replace

from tillbridge.adapter import ExportUnreadable, Health, PosFailure
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import Found
from tillbridge.diagnostics.result import Finding, Level, failed, of_problem, ok
from tillbridge.diagnostics.subject import StoreSubject
from tillbridge.pos.export_problems import bad_rows_problem, unreadable_problem
from tillbridge.pos.store_pos import check_duties


async def check_till(store: StoreSubject, part: str) -> Finding:
    """Probe the adapter of `part`: "pos", "orders" or "fallback"."""
    runner = store.tills.get(part)
    if runner is None:
        return failed(
            _("The adapter cannot be opened: {detail}").format(detail=store.tills_failure),
            _("Correct [stores.{store}.{part}]; see: tillbridge config check").format(
                store=store.name, part=part
            ),
        )
    if part == ("orders" if "orders" in store.tills else "pos"):
        try:
            check_duties(store.name, orders=runner.adapter, takes_orders=runner.writes_tickets)
        except ConfigError as fault:
            return failed(fault.text, fault.fix)
    health = await runner.health()
    if health.online and part == "pos" and runner.reads_availability:
        try:  # a share may be there, and its files not readable
            await runner.read_availability()
        except (ExportUnreadable, PosFailure) as failure:
            return unreadable("availability", failure)
    return verdict(runner.adapter, health, asked=runner.reports_health, part=part)


async def check_menu(store: StoreSubject, part: str) -> Finding:
    """Read the menu, as the bridge does before it pushes it."""
    runner = store.tills[part]
    try:
        read = await runner.read_catalogue()
    except (ExportUnreadable, PosFailure) as failure:
        return unreadable("menu", failure)
    details = {"items": len(read.items), "bad_rows": len(read.bad_rows)}
    if not read.items:
        return unreadable("menu", ExportUnreadable(_("It holds no items.")))
    if read.bad_rows:
        return of_problem(bad_rows_problem("menu", read.bad_rows), **details)
    return ok(
        ngettext(
            "The menu can be read: {n} item.", "The menu can be read: {n} items.", len(read.items)
        ).format(n=len(read.items)),
        **details,
    )


def unreadable(subject: str, failure: ExportUnreadable | PosFailure) -> Finding:
    """Return that an export cannot be read, in the words of the problem."""
    if isinstance(failure, PosFailure):
        failure = ExportUnreadable(failure.message or type(failure).__name__, fix=failure.fix)
    return of_problem(unreadable_problem(subject, failure))


def verdict(adapter: str, health: Health, *, asked: bool, part: str = "pos") -> Finding:
    """Return what a probe means."""
    details = {"adapter": adapter, "online": health.online, "reports_health": asked}
    if not health.online:
        code = "fallback.offline" if part == "fallback" else "pos.offline"
        detail = {"detail": health.detail or _("it does not say why")}
        remedy = {"remedy": health.fix} if health.fix else {}
        found = of_problem(Found(code, detail={**detail, **remedy}), **details)
        return replace(found, level=Level.FAILED)
    if not asked:
        return ok(
            _("The adapter {adapter} works; it does not tell whether the till is on.").format(
                adapter=adapter
            ),
            **details,
        )
    return ok(_("The till is there ({adapter}).").format(adapter=adapter), **details)
