"""Connecting a store: consent first, then the integration, and what that wakes up."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.daemon.compose import Composition
from tillbridge.daemon.store_services import StoreServices
from tillbridge.service.types import Store
from tillbridge.stores.consent import (
    ConsentRequest,
    answer_callback,
    faults_of,
    missing,
    request_of,
)
from tillbridge.stores.integration import Integrated
from tillbridge.stores.integration_plan import SeveralStores
from tillbridge.web.ports import Answer, CallbackAnswer

_KEPT = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person wants of a connection; "" where it is left open.

    `store_id` is the service's id of the store, `email` the merchant's.
    """

    store: str
    reintegrate: bool = False
    store_id: str = ""
    email: str = ""


@dataclass(slots=True)
class _Connection:
    """A connection under way, for the command that waits for it."""

    wanted: Wanted
    answer: Answer = field(default_factory=lambda: {"done": False})


def begin_consent(composition: Composition, wanted: Wanted) -> ConsentRequest:
    """Return the address for the merchant."""
    settings = composition.services.settings
    email = wanted.email
    if not email and settings.assumptions.authorize_email:
        email = settings.stores[wanted.store].notification_email or ""
    return composition.consents.begin(wanted.store, email=email or None)


async def begin_signup(
    composition: Composition, store: str, form: Mapping[str, str], flow_type: str
) -> ConsentRequest:
    """Sign the merchant up and return the address; raises ConfigError for a form with faults."""
    if left_out := missing(form):
        raise ConfigError(
            _("A signup needs {fields}.").format(
                fields=", ".join(f"--{name}" for name in left_out)
            ),
            fix=_("Give these options, or run it on a terminal, which asks."),
        )
    faults = faults_of(form)
    if faults:
        first = faults[0]
        raise ConfigError(f"--{first.field}: {first.text}", fix=first.fix)
    location_id = composition.services.settings.stores[store].location_id
    wanted = request_of(form, location_id=location_id, flow_type=flow_type)
    return await composition.consents.sign_up(store, wanted)


async def integrate(found: StoreServices, wanted: Wanted) -> Answer:
    """Integrate the store and return what to tell; raises BridgeError.

    Where the merchant has several stores and nobody said which, the answer holds `choose`.
    """
    try:
        if wanted.store_id:
            await found.integrator.choose(wanted.store_id)
        work = found.integrator.reintegrate if wanted.reintegrate else found.integrator.integrate
        done = await work()
    except SeveralStores as several:
        return {**_failed(several), "choose": [_choice(store) for store in several.stores]}
    await found.connected()
    found.integrating.look()
    if not done.secret_known:
        return _without_secret(found, done)
    if done.created:
        text = _("The store {store} is connected.")
    elif done.changed:
        text = _("The store {store} was connected already; changed: {changed}.")
    else:
        text = _("The store {store} is connected; nothing had to change.")
    return {
        "done": True,
        "ok": True,
        "text": text.format(store=found.name, changed=", ".join(done.changed)),
        "store_id": done.store_id,
        "webhook_url": found.webhook_url,
    }


def _without_secret(found: StoreServices, done: Integrated) -> Answer:
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
        "text": text.format(store=found.name, changed=changed),
        "fix": _(
            "Its webhook secret cannot be read again, and until there is a new one orders are "
            "refused. Get one with: tillbridge integration rotate-secret {store}"
        ).format(store=found.name),
        "store_id": done.store_id,
        "webhook_url": found.webhook_url,
        "rotate": True,
    }


class Connecting:
    """Connections while the daemon runs: its status listener takes the merchant's return."""

    def __init__(
        self, composition: Composition, on_connected: Callable[[StoreServices], Awaitable[None]]
    ) -> None:
        self._composition = composition
        self._on_connected = on_connected
        self._known: dict[str, _Connection] = {}  # by state, the oldest first
        self._working: set[asyncio.Task[None]] = set()

    def begin(self, wanted: Wanted) -> Answer:
        """Return `url` and `state`."""
        return self._begun(begin_consent(self._composition, wanted), wanted)

    async def sign_up(self, store: str, form: Mapping[str, str], flow_type: str) -> Answer:
        """Return `url` and `state`, and `as_login` where the merchant exists. BridgeError else."""
        request = await begin_signup(self._composition, store, form, flow_type)
        return {**self._begun(request, Wanted(store)), "as_login": request.as_login}

    async def choose(self, wanted: Wanted) -> Answer:
        """Go on with a store of the merchant that a person chose. Raises BridgeError."""
        found = self._composition.stores[wanted.store]
        answer = await integrate(found, wanted)
        if answer["ok"]:
            await self._on_connected(found)
        return answer

    def _begun(self, request: ConsentRequest, wanted: Wanted) -> Answer:
        self._known[request.state] = _Connection(wanted)
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
        told = await answer_callback(self._composition.consents, query)
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
        found = self._composition.stores[store]
        wanted = Wanted(store) if known is None else known.wanted
        try:
            answer = await integrate(found, wanted)
            if answer["ok"]:
                await self._on_connected(found)
        except BridgeError as failure:
            answer = _failed(failure)
        if known is not None:
            known.answer = answer


def _choice(store: Store) -> Answer:
    return {
        "store_id": store.store_id,
        "name": store.name,
        "status": store.status,
        "integration_status": store.integration_status,
    }


def _failed(failure: BridgeError) -> Answer:
    return {"done": True, "ok": False, "text": failure.text, "fix": failure.fix}
