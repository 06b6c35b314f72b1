"""Connecting a store: consent first, then the integration, and what that wakes up."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tillbridge.daemon.building import Building
from tillbridge.daemon.rooms import StoreRooms
from tillbridge.errors import BridgeError
from tillbridge.i18n import _
from tillbridge.status.ports import CallbackAnswer
from tillbridge.stores.callback import answer_callback
from tillbridge.stores.consent import ConsentRequest
from tillbridge.stores.integration import Integrated

Answer = dict[str, Any]
_KEPT = 20


@dataclass(slots=True)
class _Connection:
    """A connection under way, for the command that waits for it."""

    store: str
    reintegrate: bool
    answer: Answer = field(default_factory=lambda: {"done": False})


def begin_consent(building: Building, store: str) -> ConsentRequest:
    """Return the address for the merchant."""
    settings = building.house.settings
    email = settings.stores[store].notification_email
    wanted = email if settings.assumptions.authorize_email else None
    return building.consents.begin(store, email=wanted)


async def integrate(rooms: StoreRooms, *, reintegrate: bool) -> Answer:
    """Integrate the store and return what to tell; raises BridgeError."""
    work = rooms.integrator.reintegrate if reintegrate else rooms.integrator.integrate
    done = await work()
    await rooms.connected()
    rooms.integrating.look()
    if not done.secret_known:
        return _without_secret(rooms, done)
    if done.created:
        text = _("The store {store} is connected.")
    elif done.changed:
        text = _("The store {store} was connected already; changed: {changed}.")
    else:
        text = _("The store {store} is connected; nothing had to change.")
    return {
        "done": True,
        "ok": True,
        "text": text.format(store=rooms.name, changed=", ".join(done.changed)),
        "store_id": done.store_id,
        "webhook_url": rooms.webhook_url,
    }


def _without_secret(rooms: StoreRooms, done: Integrated) -> Answer:
    """Tell that a store was taken over, whose secret cannot be read again."""
    changed = ", ".join(done.changed)
    text = (
        _("The store {store} was integrated elsewhere and is taken over; changed: {changed}.")
        if changed
        else _("The store {store} was integrated elsewhere and is taken over.")
    )
    return {
        "done": True,
        "ok": True,
        "text": text.format(store=rooms.name, changed=changed),
        "fix": _(
            "Its webhook secret cannot be read again, and until there is a new one orders are "
            "refused. Get one with: tillbridge integration rotate-secret {store}"
        ).format(store=rooms.name),
        "store_id": done.store_id,
        "webhook_url": rooms.webhook_url,
        "rotate": True,
    }


class Connecting:
    """Connections while the daemon runs: its status listener takes the merchant's return."""

    def __init__(
        self, building: Building, on_connected: Callable[[StoreRooms], Awaitable[None]]
    ) -> None:
        self._building = building
        self._on_connected = on_connected
        self._known: dict[str, _Connection] = {}  # by state, the oldest first
        self._working: set[asyncio.Task[None]] = set()

    def begin(self, store: str, *, reintegrate: bool) -> Answer:
        """Return `url` and `state`."""
        request = begin_consent(self._building, store)
        self._known[request.state] = _Connection(store, reintegrate)
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return {"url": request.url, "state": request.state}

    def result(self, state: str) -> Answer:
        """Return how far it is. Raises BridgeError for a state that was never given out."""
        known = self._known.get(state)
        if known is None:
            raise BridgeError(
                _("Nothing is known of this connection."),
                fix=_("Begin again: tillbridge connect STORE"),
            )
        return known.answer

    async def returned(self, query: Mapping[str, str]) -> CallbackAnswer:
        """Take the merchant's return from the service."""
        known = self._known.get(query.get("state", ""))
        told = await answer_callback(self._building.consents, query)
        if told.store is None:
            failure = told.failure or BridgeError(_("That did not work."))
            if known is not None:
                known.answer = _failed(failure)
            return CallbackAnswer(ok=False, text=failure.text, fix=failure.fix)
        task = asyncio.create_task(self._finish(told.store, known))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return CallbackAnswer(ok=True, text=_("Thank you! You can close this page."))

    async def _finish(self, store: str, known: _Connection | None) -> None:
        rooms = self._building.stores[store]
        reintegrate = known is not None and known.reintegrate
        try:
            answer = await integrate(rooms, reintegrate=reintegrate)
            await self._on_connected(rooms)
        except BridgeError as failure:
            answer = _failed(failure)
        if known is not None:
            known.answer = answer


def _failed(failure: BridgeError) -> Answer:
    return {"done": True, "ok": False, "text": failure.text, "fix": failure.fix}
