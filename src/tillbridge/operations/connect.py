"""Connecting a store: consent first, then the integration, and what that wakes up."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError, ConfigError, own_defect
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.operations.arguments import StoreName
from tillbridge.operations.bridge import not_running
from tillbridge.stores.consent import CallbackAnswer, faults_of, refuse_missing, request_of
from tillbridge.stores.integration_plan import SeveralStores

if TYPE_CHECKING:
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.operations.bridge import Bridge
    from tillbridge.service.types import Store
    from tillbridge.stores.consent import ConsentRequest
    from tillbridge.stores.integration import Integrated

log = get_logger()

_MOST_REMEMBERED = 1000  # a bridge may have so many stores, all connected at once

# The service's id of one of the merchant's stores.
StoreId = Annotated[str, Argument(audit="store_id")]
Reintegrate = Annotated[bool, Argument(audit="reintegrate")]


@operation("connect", role=Role.TECHNICIAN)
async def connect(
    bridge: "Bridge",
    store: StoreName,
    *,
    reintegrate: Reintegrate = False,
    store_id: StoreId = "",
    email: str = "",
) -> Answer:
    """Begin to connect a store; return the `url` for the merchant, and its `state`.

    `store_id` says which of the merchant's stores it is, `email` who signs in.
    """
    bridge.store(store)
    settings = bridge.settings
    if not email and settings.assumptions.authorize_email:
        email = settings.stores[store].notification_email or ""
    begun = bridge.consents.begin(store, email=email or None)
    return _connections(bridge).begin(begun, ConnectionRequest(store, reintegrate, store_id))


@operation("signup", role=Role.TECHNICIAN)
async def signup(
    bridge: "Bridge", store: StoreName, *, form: dict[str, str], flow_type: str = ""
) -> Answer:
    """Sign a merchant up; return as `connect`, with `as_login` where the merchant exists."""
    bridge.store(store)
    connections = _connections(bridge)
    refuse_missing(form)
    if faults := faults_of(form):
        raise ConfigError(f"--{faults[0].field}: {faults[0].text}", fix=faults[0].fix)
    location_id = bridge.settings.stores[store].location_id
    wanted = request_of(form, location_id=location_id, flow_type=flow_type)
    begun = await bridge.consents.sign_up(store, wanted)
    return {**connections.begin(begun, ConnectionRequest(store)), "as_login": begun.as_login}


@operation("connect.result", role=Role.TECHNICIAN, reads=True)
async def result(bridge: "Bridge", state: str) -> Answer:
    """Return how far a connection is: `done`, and then what came of it.

    If the merchant has several stores and none was named, the answer holds `choose`.
    """
    if (elsewhere := bridge.begun_elsewhere(state)) is not None:
        raise elsewhere
    return _connections(bridge).result(state)


@operation("connect.returned", role=Role.TECHNICIAN, reads=True)
async def returned(bridge: "Bridge", *, query: dict[str, str]) -> Answer:
    """Take the merchant's return from the service, which came to another bridge."""
    return asdict(await _connections(bridge).returned(query))


@operation("connect.choose", role=Role.TECHNICIAN)
async def choose(
    bridge: "Bridge", store: StoreName, *, store_id: StoreId, reintegrate: Reintegrate = False
) -> Answer:
    """Continue with the merchant's store that a person chose."""
    bridge.store(store)
    return await _connections(bridge).integrate(ConnectionRequest(store, reintegrate, store_id))


@dataclass(slots=True)
class ConnectionRequest:
    """A connection under way; `answer` is for the command that waits for it."""

    store: str
    reintegrate: bool = False
    store_id: str = ""  # the service's; "" where it is left open
    answer: Answer = field(default_factory=lambda: {"done": False})


class Connections:
    """The connections that were begun; `returned` takes the merchant's return from the service."""

    def __init__(
        self, bridge: "Bridge", on_connected: "Callable[[StoreServices], Awaitable[None]]"
    ) -> None:
        self._bridge = bridge
        self._on_connected = on_connected
        self._begun: dict[str, ConnectionRequest] = {}  # by state, the oldest first
        self._working: set[asyncio.Task[None]] = set()

    def begin(self, request: "ConsentRequest", connection: ConnectionRequest) -> Answer:
        """Remember a connection; return its `url` and `state`."""
        self._begun[request.state] = connection
        while len(self._begun) > _MOST_REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return {"url": request.url, "state": request.state}

    def result(self, state: str) -> Answer:
        """Return how far it is. Raises BridgeError for a state that was never given out."""
        known = self._begun.get(state)
        if known is None:
            raise BridgeError(
                _("This sign-in is unknown or too old."),
                fix=_("Start again: tillbridge connect STORE"),
            )
        return known.answer

    async def integrate(self, connection: ConnectionRequest) -> Answer:
        """Integrate the store and return what came of it. Raises BridgeError."""
        found = self._bridge.stores[connection.store]
        answer = await _integrated(found, connection)
        if answer["ok"]:
            await self._on_connected(found)
        return answer

    async def returned(self, query: Mapping[str, str]) -> "CallbackAnswer":
        """Take the merchant's return from the service."""
        state = query.get("state", "")
        ask, elsewhere = self._bridge.ask, self._bridge.begun_elsewhere(state)
        if ask is not None and elsewhere is not None:
            try:
                given = {"query": dict(query)}
                answer = await ask(
                    elsewhere, "connect.returned", given, Actor(role=Role.TECHNICIAN)
                )
            except BridgeError as trouble:
                return CallbackAnswer(ok=False, text=trouble.text, fix=trouble.fix, to="/")
            return CallbackAnswer(**answer)
        known = self._begun.get(state)
        try:
            store = await self._bridge.consents.returned(query)
        except BridgeError as failure:
            if known is not None:
                known.answer = _failed(failure)
            return CallbackAnswer(ok=False, text=failure.text, fix=failure.fix, to="/")
        task = asyncio.create_task(self._finish(known or ConnectionRequest(store)))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return CallbackAnswer(ok=True, text=_("Your restaurant is signed in."), to="/")

    async def _finish(self, connection: ConnectionRequest) -> None:
        try:
            connection.answer = await self.integrate(connection)
        except BridgeError as failure:
            connection.answer = _failed(failure)
        except Exception as failure:  # else the command would wait until its time is over
            log.exception("connect.failed", store=connection.store)
            connection.answer = _failed(own_defect(failure))


def _connections(bridge: "Bridge") -> Connections:
    if bridge.connections is None:
        raise not_running()
    return bridge.connections


async def _integrated(found: "StoreServices", connection: ConnectionRequest) -> Answer:
    try:
        if connection.store_id:
            await found.integrator.choose(connection.store_id)
        again = connection.reintegrate
        done = await (found.integrator.reintegrate() if again else found.integrator.integrate())
    except SeveralStores as several:
        return {**_failed(several), "choose": [_choice(store) for store in several.stores]}
    await found.connected()
    found.integrating.look()
    answer = {
        "done": True,
        "ok": True,
        "text": _sentence(done).format(store=found.name, changed=", ".join(done.changed)),
        "store_id": done.store_id,
        "webhook_url": found.webhook_url,
    }
    if done.secret_known:
        return answer
    return {
        **answer,
        "fix": _(
            "The bridge does not have its webhook secret and has to refuse orders. Get a new "
            "one: tillbridge integration rotate-secret {store}"
        ).format(store=found.name),
        "rotate": True,
    }


def _sentence(done: "Integrated") -> str:
    """Return what came of it; of a store that is taken over the secret cannot be read again."""
    if not done.secret_known:
        return (
            _(
                "{store} was connected to another system and is now connected to this bridge. "
                "Changed: {changed}."
            )
            if done.changed
            else _("{store} was connected to another system and is now connected to this bridge.")
        )
    if done.created:
        return _("{store} is connected.")
    if done.changed:
        return _("{store} was connected already. Changed: {changed}.")
    return _("{store} is connected. Nothing had to change.")


def _choice(store: "Store") -> Answer:
    return {
        "store_id": store.store_id,
        "name": store.name,
        "status": store.status,
        "integration_status": store.integration_status,
    }


def _failed(failure: BridgeError) -> Answer:
    kind = type(failure).__name__
    return {"done": True, "ok": False, "kind": kind, "text": failure.text, "fix": failure.fix}
