"""The receiver: a listener for the ordering service's webhooks, and nothing else.

Verify, commit, acknowledge: nothing here decides what an order means.

`POST /webhooks/{store}`, `POST /webhooks/communities/{community}`, `GET /healthz`, and the same as
`GET /webhooks/healthz`, so that a tunnel has to forward only one path. A store called `communities`
has `/webhooks/communities`, so there is no conflict. `/healthz?nonce=...` answers with the nonce's
proof, which shows the sender that an address leads to this bridge.

Specification: Events, Transport.
"""

import asyncio
import hmac
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tillbridge.config.bridge import ReceiverSettings
from tillbridge.config.loading import LoadedSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.core.network import Acceptor, listening_sockets, port_taken
from tillbridge.core.problems import Found, Scope
from tillbridge.core.scheduler import Scheduler
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.receiver.connections import SERVER, DeadlineServer, LiveCertificate
from tillbridge.receiver.deliveries import Deliveries, Refusals

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge

log = get_logger()

_HOUR_S = 3600.0
_LOOK_S = 5.0  # between checks of the certificate files
_PROBLEM = "receiver.crowded"
_CROWDED = 20  # surplus connections within a minute
_CROWDED_WITHIN_S = 60.0
_CALM_S = 300.0
NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}")
# Also where JSON has escaped the character before it.
PROOF = re.compile(r"proof: ([0-9a-f]{64})(?![0-9a-f])")

_HEALTH = frozenset({"/healthz", "/webhooks/healthz"})


class Echo:
    """Proves from outside that an address leads to this bridge: a nonce in, its proof out.

    The proof is an HMAC of the nonce under a key that only this bridge knows, or only those on one
    database: whichever of them gets a delivery stores it for all. Whoever asks learns nothing but
    that a bridge is here, and no other bridge can answer for it.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def new_nonce(self) -> str:
        """Return an unguessable nonce."""
        return secrets.token_urlsafe(24)

    def answer(self, nonce: str) -> str:
        """Return the line for a nonce; "" for anything else."""
        return f"proof: {self._proof(nonce)}\n" if NONCE.fullmatch(nonce) else ""

    def proves(self, nonce: str, text: str) -> bool:
        """Return whether a text contains the proof of this nonce."""
        wanted = self._proof(nonce)
        return any(hmac.compare_digest(found, wanted) for found in PROOF.findall(text))

    def _proof(self, nonce: str) -> str:
        return hmac.digest(self._key, b"tillbridge-echo\0" + nonce.encode(), "sha256").hex()


class Crowding:
    """Counts connections beyond `max_connections`; many within a minute are a problem."""

    def __init__(self, tracker: ProblemTracker, clock: Clock, metrics: Metrics) -> None:
        self._metrics = metrics
        self._tracker = tracker
        self._clock = clock
        self._began = clock.monotonic()
        self._times: deque[float] = deque(maxlen=_CROWDED)

    def surplus(self, result: str) -> None:
        """Count a connection that was "refused", or that replaced another ("replaced")."""
        self._metrics.surplus_connections.labels(result=result).inc()
        now = self._clock.monotonic()
        self._times.append(now)
        if len(self._times) == _CROWDED and now - self._times[0] <= _CROWDED_WITHIN_S:
            self._tracker.report(Scope.of_one(_PROBLEM), [Found(_PROBLEM)])

    async def look(self) -> None:
        """Close the problem if there were no surplus connections for five minutes."""
        since = self._times[-1] if self._times else self._began
        if self._clock.monotonic() - since >= _CALM_S:
            self._tracker.report(Scope.of_one(_PROBLEM), ())


class Receiver:
    """Receives for the paths in `ids`: a store's name, or `communities/` and a community's.

    `ids` are the location ids of stores, and the ids of communities. `success_status` is the answer
    to a delivery that is on disk; `wake(path)` is called in the event loop after each commit of a
    new one. `port` and `url` are known after `start`.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        ids: Mapping[str, str],
        ledger: Ledger,
        tracker: ProblemTracker,
        *,
        clock: Clock,
        wake: Callable[[str], None],
        metrics: Metrics | None = None,
        success_status: int = 200,
    ) -> None:
        metrics = metrics or Metrics()
        self._settings = settings
        self._paths = tuple(ids)
        self._ledger = ledger
        self._tracker = tracker
        self._clock = clock
        self._certificate: LiveCertificate | None = None
        self._crowding = Crowding(tracker, clock, metrics)
        self.echo = Echo(ledger.vault.mark)
        self.refusals = Refusals(tracker, clock)
        self._deliveries = Deliveries(
            settings, ids, ledger, self.refusals, clock, metrics, wake, success_status
        )
        # When a secret is about to change, and when it has changed, by the last part of the path.
        self.expect = self._deliveries.expect
        self.refresh = self._deliveries.refresh
        self._server: DeadlineServer | None = None
        self._acceptor: Acceptor | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The receiver's URL on this machine."""
        scheme = "http" if self._settings.tls_cert is None else "https"
        return f"{scheme}://{self._settings.listen.rpartition(':')[0]}:{self.port}"

    async def start(self) -> None:
        """Read the stores' secrets and listen. Raises ConfigError if the address cannot be had."""
        for path in self._paths:
            await self.refresh(path)
        host, _colon, port = self._settings.listen.rpartition(":")
        server = DeadlineServer(self._handle, self._settings)
        if self._settings.tls_cert is not None and self._settings.tls_key is not None:
            self._certificate = await asyncio.to_thread(
                LiveCertificate,
                self._settings.tls_cert,
                self._settings.tls_key,
                self._tracker,
                self._clock,
            )
            self._certificate.report()
        try:
            sockets = await listening_sockets(host.strip("[]"), int(port))
        except OSError as failure:
            holder, fix = port_taken(int(port), _("change listen in [receiver]"), failure)
            raise ConfigError(
                _("The receiver cannot listen on {listen}: {detail}{holder}.").format(
                    listen=self._settings.listen,
                    detail=reason_of(failure),
                    holder=holder,
                ),
                fix=fix,
            ) from failure
        self.port = sockets[0].getsockname()[1]
        self._acceptor = Acceptor(
            sockets,
            server,
            max_connections=self._settings.max_connections,
            connections=lambda: len(server.open),
            free_slot=server.free_slot,
            on_surplus=self._crowding.surplus,
            tls=None if self._certificate is None else self._certificate.context,
            handshake_timeout_s=self._settings.head_timeout_s,
        )
        self._server = server
        self._acceptor.start(server.enforce_deadlines)
        log.info("receiver.listening", address=host, port=self.port, url=self.url)

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return the coroutines to run after `start`; each is supervised."""
        acceptor = self._acceptor
        return {} if acceptor is None else {"receiver.accept": acceptor.until_failure()}

    def plan(self, scheduler: Scheduler) -> None:
        """Add its jobs to the scheduler; after `start`."""
        scheduler.every("receiver.forget_strangers", _HOUR_S, self.refusals.close_stale)
        scheduler.every(
            "receiver.crowding", _CROWDED_WITHIN_S, self._crowding.look, first_s=_CROWDED_WITHIN_S
        )
        if self._certificate is not None:
            look = self._certificate.look
            scheduler.every("receiver.certificate", _LOOK_S, look, first_s=_LOOK_S)

    async def stop(self, drain_s: float) -> None:
        """Accept no new request, and finish the running ones within `drain_s` seconds."""
        if self._server is None or self._acceptor is None:
            return
        await self._acceptor.close()
        self._server.pre_shutdown()
        await self._server.shutdown(drain_s)
        self._acceptor = self._server = None
        log.info("receiver.stopped")

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith("/webhooks/") and not (path in _HEALTH and request.method != "POST"):
            if request.method != "POST":
                return _plain(405, {"Allow": "POST"})
            return await self._deliveries.receive(request, path.removeprefix("/webhooks/"))
        if path in _HEALTH:
            if request.method not in {"GET", "HEAD"}:
                return _plain(405, {"Allow": "GET, HEAD"})
            proof = self.echo.answer(request.query.get("nonce", ""))
            return _plain(200 if self._ledger.writable else 503, more=proof)
        return _plain(404)


def receiver_settings(loaded: LoadedSettings) -> ReceiverSettings:
    """Return the receiver's settings, with paths that do not depend on the current folder."""
    receiver = loaded.settings.receiver
    placed = {
        name: loaded.base_dir / path
        for name in ("tls_cert", "tls_key")
        if (path := getattr(receiver, name)) is not None
    }
    return receiver.model_copy(update=placed) if placed else receiver


@asynccontextmanager
async def trial_receiver(bridge: "Bridge", loaded: LoadedSettings) -> AsyncIterator[Echo]:
    """Listen as this configuration's receiver would. Raises ConfigError if that is impossible."""
    receiver = Receiver(
        receiver_settings(loaded),
        {},
        bridge.ledger,
        bridge.problems,
        clock=bridge.clock,
        wake=lambda _store: None,
    )
    # Of this listener alone: the receiver that runs may be where the address leads to now.
    receiver.echo = Echo(secrets.token_bytes(32))
    await receiver.start()
    try:
        yield receiver.echo
    finally:
        await receiver.stop(1.0)


def _plain(
    status: int, headers: Mapping[str, str] | None = None, *, more: str = ""
) -> web.Response:
    texts = {200: "ok\n", 503: "the database cannot be written\n"}
    return web.Response(
        status=status, text=texts.get(status, "") + more, headers={**SERVER, **(headers or {})}
    )
