"""A store itself: open or paused, by whom and why; its settings and taxes."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import BridgeError, ServiceError
from tillbridge.core.formats import clock_time
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.arguments import ConnectedStore, Full, Store, ends_at

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.operations.bridge import Bridge
    from tillbridge.stores.closure import StoreClosure
    from tillbridge.stores.settings import SettingsFlow
    from tillbridge.stores.taxes import TaxFact

# Whose wish it is, for colleagues: a note beside the audit trail, which knows who asked.
By = Annotated[str | None, Argument("NAME", _("Who is doing this. Default: this machine's user."))]


@operation("store.show", role=Role.LOOK, reads=True, command="store show")
async def show(_bridge: "Bridge", store: Store) -> Answer:
    """Show whether a store takes orders and why, today's hours and its taxes.

    Example: tillbridge store show main
    """
    status = store.store_status
    return {
        **(await status.closure()).to_json(),
        "next_change_at": to_iso(status.next_change_ms()),
        "settings": _settings(store),
        "tax": _tax(await store.taxes.known()),
    }


@operation("store.plan", role=Role.LOOK, reads=True, command="store plan")
async def plan(_bridge: "Bridge", store: Store, *, full: Full = False) -> Answer:
    """Show which settings would be sent. Sends nothing.

    With --json, also the data as the ordering service gets it.

    Example: tillbridge store plan main
    """
    from tillbridge.stores.settings import settings_lines

    plan = await _flow(store).plan(full=full)
    return {
        "body": plan.part,
        "lines": settings_lines(plan.part, plan.accepted, store.settings.currency),
        "unsaid": list(plan.unsaid),
        "notes": list(plan.notes),
    }


@operation("store.push", role=Role.TECHNICIAN, command="store push")
async def push(_bridge: "Bridge", store: ConnectedStore, *, full: Full = False) -> Answer:
    """Send the store's changed settings now; with --full, all of them.

    Example: tillbridge store push main --full
    """
    plan = await _flow(store).push(full=full)
    if not plan.part:
        text = _("Nothing to send: the ordering service has these settings.")
    else:
        count = len(plan.part)
        text = ngettext("Sent {n} setting: {keys}.", "Sent {n} settings: {keys}.", count)
        text = text.format(n=count, keys=", ".join(sorted(plan.part)))
    if plan.unsaid:
        text += " " + _(
            "Removed from the files, but still set at the ordering service: {keys}."
        ).format(keys=", ".join(plan.unsaid))
    return {"ok": True, "text": text, "sent": sorted(plan.part), "unsaid": list(plan.unsaid)}


@operation("store.pause", role=Role.STAFF, command="store pause")
async def pause(
    bridge: "Bridge",
    store: ConnectedStore,
    *,
    reason: Annotated[str, Argument("TEXT", _("The reason, for your colleagues."))] = "",
    until: Annotated[
        int | None,
        ends_at(
            _("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Default: until you resume it.")
        ),
    ] = None,
    by: By = None,
) -> Answer:
    """Pause a store: guests cannot order, whatever its hours say and its till does.

    It reopens at the time you give, or when somebody resumes it.

    Example: tillbridge store pause main --until 18:30 --reason "too busy"
    """
    status = store.store_status
    who = by or current_actor().name
    try:
        closure = await status.pause(by=who, reason=reason, until_ms=until)
    except ServiceError as failure:
        return {**_not_sent(failure), **(await status.closure()).to_json()}
    if until is None:
        text = _("The store is paused until you reopen it: tillbridge store resume.")
    else:
        end = clock_time(until, bridge.clock.now_ms())
        text = bridge.later(_("The store is paused until {until}.")).format(until=end)
    return {"ok": True, "text": text, **closure.to_json()}


@operation("store.busy", role=Role.STAFF, command="store busy")
async def busy(
    bridge: "Bridge",
    store: ConnectedStore,
    orders: Annotated[
        int,
        Argument(
            "ORDERS",
            _("How many orders the kitchen can take in 15 minutes."),
            least=1,
            most=500,
            audit="orders",
        ),
    ],
    *,
    until: Annotated[
        int | None,
        ends_at(_("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Default: until you end it.")),
    ] = None,
    by: By = None,
) -> Answer:
    """Turn on busy mode: the store takes so many orders in 15 minutes, then pauses itself.

    It reopens as soon as there is room for another order. Orders that arrive all the same go to
    the till as always. Nothing changes for the guest while there is room.

    Example: tillbridge store busy main 10 --until 21:00
    """
    status = store.store_status
    try:
        closure = await status.be_busy(by=by or current_actor().name, orders=orders, until_ms=until)
    except ServiceError as failure:
        return {**_not_sent(failure), **(await status.closure()).to_json()}
    text = ngettext(
        "Busy mode is on: the store takes {n} order every 15 minutes.",
        "Busy mode is on: the store takes {n} orders every 15 minutes.",
        orders,
    ).format(n=orders)
    if until is not None:
        end = clock_time(until, bridge.clock.now_ms())
        text += " " + _("It ends at {time}.").format(time=end)
    return {"ok": True, "text": bridge.later(text), **closure.to_json()}


@operation("store.busy_off", role=Role.STAFF, command="store busy-off")
async def busy_off(bridge: "Bridge", store: ConnectedStore, *, by: By = None) -> Answer:
    """Turn off busy mode: the store takes every order again.

    Example: tillbridge store busy-off main
    """
    status = store.store_status
    try:
        closure = await status.be_busy_no_more(by=by or current_actor().name)
    except ServiceError as failure:
        return {**_not_sent(failure), **(await status.closure()).to_json()}
    text = _("Busy mode is off: the store takes every order.")
    return {"ok": True, "text": bridge.later(text), **closure.to_json()}


@operation("store.resume", role=Role.STAFF, command="store resume")
async def resume(_bridge: "Bridge", store: ConnectedStore, *, by: By = None) -> Answer:
    """Reopen a store, whoever paused it; against its schedule until that changes.

    While the till is offline the store stays closed, and opens by itself when the till is back.
    If the bridge waits because the till comes and goes, this opens the store at once.

    Example: tillbridge store resume main
    """
    from tillbridge.stores.closure import Who

    status = store.store_status
    try:
        closure = await status.resume(by=by or current_actor().name)
        await store.pos_pause.opened_by_person()
        closure = await status.closure() if closure.who is Who.POS_AWAY else closure
    except ServiceError as failure:
        return {**_not_sent(failure), **(await status.closure()).to_json()}
    return {"ok": closure.who is None, "text": _resumed(closure), **closure.to_json()}


@operation("store.tax", role=Role.TECHNICIAN, reads=True, command="store tax")
async def tax(_bridge: "Bridge", store: Store) -> Answer:
    """Compare the taxes of the till, the ordering service and the latest orders now.

    Exit code 1: they differ.

    Example: tillbridge store tax main
    """
    found = _tax(await store.taxes.check())
    return {"ok": not found["differences"], **found}


def _settings(found: "StoreServices") -> Answer | None:
    from datetime import UTC, datetime

    from tillbridge.model.restaurant import zone_of

    flow = found.settings_flow
    if flow is None:
        return None
    hours, today = flow.hours, None
    if hours is not None:
        day = datetime.now(UTC).astimezone(zone_of(hours.timezone)).date()
        today = [str(span) for span in hours.on(day)]
    return {"files": [str(path) for path in flow.files.paths()], "hours_today": today}


def _flow(found: "StoreServices") -> "SettingsFlow":
    flow = found.settings_flow
    if flow is None or not flow.files.paths():
        raise BridgeError(
            _("The configuration has no settings file for {store}.").format(store=found.name),
            fix=_("Set settings_file or hours_file in [stores.{store}] (docs/store.md).").format(
                store=found.name
            ),
        )
    return flow


def _resumed(closure: "StoreClosure") -> str:
    from tillbridge.stores.closure import Who

    if closure.who is None:
        return _("The store is open: guests can order.")
    if closure.who is Who.POS_AWAY:
        return _("Saved. The till is offline: the store opens by itself when the till is back.")
    if closure.who is Who.POS_CLOSED:
        return _(
            "Saved. The till is closed: {why} The store opens by itself when the till opens."
        ).format(why=closure.reason)
    return _("The store is still closed: {who}.").format(who=closure.who)


def _not_sent(failure: ServiceError) -> Answer:
    text = _("Saved, but not sent yet: {detail} The bridge sends it later.")
    return {"ok": False, "text": text.format(detail=failure.text), "fix": failure.fix}


def _tax(fact: "TaxFact") -> Answer:
    return {
        "checked_at": to_iso(fact.checked_at),
        "differences": fact.differences,
        "config": None if fact.config is None else asdict(fact.config),
    }
