"""The till: does the adapter open, and does it say that the POS is there? Reads only."""

from tillbridge.adapter import ExportUnreadable, Health, PosFailure
from tillbridge.adapters.duties import check_duties
from tillbridge.adapters.runner import PosRunner
from tillbridge.diagnostics.result import Finding, failed, ok
from tillbridge.diagnostics.subject import StoreSubject
from tillbridge.errors import ConfigError
from tillbridge.i18n import _


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
        health = await _readable(runner, health)
    return verdict(runner.adapter, health, asked=runner.reports_health)


async def _readable(runner: PosRunner, health: Health) -> Health:
    """Read the small export too: a share may be there, and its files not readable."""
    try:
        await runner.read_availability()
    except (ExportUnreadable, PosFailure) as failure:
        return Health(online=False, detail=str(failure))
    return health


def verdict(adapter: str, health: Health, *, asked: bool) -> Finding:
    """Return what a probe means."""
    details = {"adapter": adapter, "online": health.online, "reports_health": asked}
    if not health.online:
        return failed(
            _("The till is not there ({adapter}): {detail}").format(
                adapter=adapter, detail=health.detail or _("it does not say why")
            ),
            health.fix
            or _("Check that the till is on and connected, and the paths and rights in [..pos]."),
            **details,
        )
    if not asked:
        return ok(
            _("The adapter {adapter} works; it does not tell whether the till is on.").format(
                adapter=adapter
            ),
            **details,
        )
    return ok(_("The till is there ({adapter}).").format(adapter=adapter), **details)
