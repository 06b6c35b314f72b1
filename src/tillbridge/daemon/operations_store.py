"""What commands ask of the bridge about a store itself: open or paused, settings, taxes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tillbridge.core.errors import BridgeError, ServiceError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.spans import clock_time
from tillbridge.daemon.rooms import StoreRooms
from tillbridge.model.instant import to_iso
from tillbridge.stores.closure import StoreClosure, Who
from tillbridge.web.ports import Answer


class StoreOperations:
    """The operations. `rooms_of` finds a store; `later` adds that nobody is told just yet."""

    def __init__(self, rooms_of: Callable[[str], StoreRooms], later: Callable[[str], str]) -> None:
        self._rooms_of = rooms_of
        self._later = later

    async def show(self, store: str) -> Answer:
        """Return how the store stands, what its files say, and what is known of its taxes."""
        rooms = self._rooms_of(store)
        keeper = rooms.standing.keeper
        return {
            **_standing(await keeper.standing()),
            "next_change_at": _iso(keeper.next_change_ms()),
            "settings": await self._settings(rooms),
            "tax": _tax(await rooms.standing.tax.known()),
        }

    async def plan(self, store: str, *, full: bool) -> Answer:
        """Return what would be sent now; sends nothing."""
        rooms = self._rooms_of(store)
        # Only whoever has such files needs what reads them.
        from tillbridge.stores.settings import settings_lines  # noqa: PLC0415 -- see above

        plan = await self._flow(rooms).plan(full=full)
        return {
            "body": plan.part,
            "lines": settings_lines(plan.part, plan.accepted, rooms.settings.currency),
            "unsaid": list(plan.unsaid),
            "notes": list(plan.notes),
        }

    async def push(self, store: str, *, full: bool) -> Answer:
        """Send what differs, or everything."""
        rooms = self._connected(store, await self._rooms_of(store).connected_as())
        plan = await self._flow(rooms).push(full=full)
        if not plan.part:
            text = _("Nothing had to be sent: the service has what the files say.")
        else:
            count = len(plan.part)
            text = ngettext("Sent {n} setting: {keys}.", "Sent {n} settings: {keys}.", count)
            text = text.format(n=count, keys=", ".join(sorted(plan.part)))
        if plan.unsaid:
            text += " " + _("No longer said, and kept by the service: {keys}.").format(
                keys=", ".join(plan.unsaid)
            )
        return {"ok": True, "text": text, "sent": sorted(plan.part), "unsaid": list(plan.unsaid)}

    async def pause(self, store: str, *, by: str, reason: str, until_ms: int | None) -> Answer:
        """Close the store in a person's name."""
        rooms = self._connected(store, await self._rooms_of(store).connected_as())
        try:
            stands = await rooms.standing.keeper.pause(by=by, reason=reason, until_ms=until_ms)
        except ServiceError as failure:
            return {**_not_told(failure), **_standing(await rooms.standing.keeper.standing())}
        if until_ms is None:
            text = _("The store takes no orders until somebody opens it: tillbridge store resume.")
        else:
            text = self._later(_("The store takes no orders until {until}."))
        return {
            "ok": True,
            "text": text.format(until="" if until_ms is None else _clock(until_ms)),
            **_standing(stands),
        }

    async def resume(self, store: str, *, by: str) -> Answer:
        """Open the store in a person's name; while the till is away the bridge's pause stays."""
        rooms = self._connected(store, await self._rooms_of(store).connected_as())
        keeper = rooms.standing.keeper
        try:
            stands = await keeper.resume(by=by)
            await rooms.standing.pauser.opened_by_person()
            stands = await keeper.standing() if stands.who is Who.POS_AWAY else stands
        except ServiceError as failure:
            return {**_not_told(failure), **_standing(await keeper.standing())}
        return {"ok": stands.who is None, "text": _resumed(stands), **_standing(stands)}

    async def tax(self, store: str) -> Answer:
        """Read the service's taxes now and compare them."""
        rooms = self._rooms_of(store)
        found = _tax(await rooms.standing.tax.check())
        return {"ok": not found["differences"], **found}

    # -- inside

    async def _settings(self, rooms: StoreRooms) -> Answer | None:
        flow = rooms.standing.settings
        if flow is None:
            return None
        now = datetime.now(UTC)
        hours = flow.hours
        today = None
        if hours is not None:
            from tillbridge.model.hours import zone_of  # noqa: PLC0415 -- only with such a file

            today = [str(span) for span in hours.on(now.astimezone(zone_of(hours.timezone)).date())]
        return {"files": [str(path) for path in flow.files.paths()], "hours_today": today}

    def _flow(self, rooms: StoreRooms) -> Any:  # noqa: ANN401 -- SettingsFlow, which few stores import
        flow = rooms.standing.settings
        if flow is None or not flow.files.paths():
            raise BridgeError(
                _("The configuration names no file for {store}.").format(store=rooms.name),
                fix=_(
                    "Set settings_file or hours_file in [stores.{store}]; see docs/store.md."
                ).format(store=rooms.name),
            )
        return flow

    def _connected(self, store: str, service_store_id: str | None) -> StoreRooms:
        if service_store_id is None:
            raise BridgeError(
                _("The store {store} is not connected yet.").format(store=store),
                fix=_("Run: tillbridge connect {store}").format(store=store),
            )
        return self._rooms_of(store)


def _clock(at_ms: int) -> str:
    return clock_time(at_ms, round(datetime.now(UTC).timestamp() * 1000))


def _resumed(stands: StoreClosure) -> str:
    if stands.who is None:
        return _("The store takes orders.")
    if stands.who is Who.POS_AWAY:
        return _(
            "Noted, but the till is away: the bridge keeps the store closed until it is back, "
            "and opens it then by itself."
        )
    if stands.who is Who.POS_CLOSED:
        return _(
            "Noted, but the till takes no orders: {why} The store opens by itself when it does."
        ).format(why=stands.reason)
    return _("The store is still closed: {who}.").format(who=stands.who)


def _not_told(failure: ServiceError) -> Answer:
    text = _("Noted, but the service could not be told yet: {detail} It is told by itself later.")
    return {"ok": False, "text": text.format(detail=failure.text), "fix": failure.fix}


def _standing(stands: StoreClosure) -> Answer:
    return {
        "status": stands.status,
        "paused_by": None if stands.who is None else str(stands.who),
        "by": stands.by,
        "reason": stands.reason,
        "since": _iso(stands.since_ms),
        "until": _iso(stands.until_ms),
    }


def _tax(fact: Any) -> Answer:  # noqa: ANN401 -- a fact of the ledger, if there is one
    known = fact if isinstance(fact, dict) else {}
    return {
        "checked_at": _iso(known.get("checked_at")),
        "differences": known.get("differences", []),
        "config": known.get("config"),
    }


def _iso(at_ms: int | None) -> str | None:
    return None if at_ms is None else to_iso(at_ms)
