"""The life of a bridge in which nothing is set up yet: the page Set-up, and nothing else."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import tillbridge
from tillbridge.config import LoadedSettings, host_and_port
from tillbridge.config.loading import UnconfiguredSettings
from tillbridge.config.toml import read_file
from tillbridge.core.actor import Actor
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.core.operation import Dispatcher
from tillbridge.core.problems import OpenProblem
from tillbridge.core.restart import RestartController
from tillbridge.daemon.audited import audited
from tillbridge.daemon.connecting import Connecting, Wanted
from tillbridge.daemon.operations import Operations
from tillbridge.daemon.operations_setup import SetupOperations
from tillbridge.daemon.service_manager import ServiceManager
from tillbridge.daemon.status_page import (
    access_rules,
    announced,
    new_token,
    path_on_status_page,
    reached_at,
    redirect_listener,
)
from tillbridge.daemon.store_services import BridgeServices
from tillbridge.daemon.watchdog import Watchdog
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.receiver.receiver import Receiver, receiver_settings
from tillbridge.setup.address import ways
from tillbridge.setup.file import ChangeSignal, SetupContext
from tillbridge.web.document import document
from tillbridge.web.facts import BridgeFacts
from tillbridge.web.held_address import HeldAddress
from tillbridge.web.listener import MerchantReturn, StatusListener
from tillbridge.web.ports import Answer, Control

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge
    from tillbridge.receiver.receiver import Echo
    from tillbridge.setup.draft import Draft, Finding
    from tillbridge.web.site.site import SiteParts

log = get_logger()


async def set_up(
    fresh: UnconfiguredSettings,
    restarts: RestartController,
    held: HeldAddress,
    manager: ServiceManager,
) -> None:
    """Serve the page Set-up until `restarts` ends it. Raises BridgeError."""
    log.info("bridge.starting", version=tillbridge.__version__, pid=os.getpid())
    clock = Clock()
    async with AsyncExitStack() as opened:
        ledger = await Ledger.open(fresh.data_dir, clock=clock)
        opened.push_async_callback(ledger.close)
        tracker = await ProblemTracker.start(ledger, clock=clock)
        opened.push_async_callback(tracker.settle)
        redirect_uri = _redirect_uri(fresh)
        changes = ChangeSignal()
        ledger.on_written(changes.notify)
        place = SetupContext(
            fresh.path,
            ledger,
            clock,
            restarts,
            redirect_uri,
            changes,
            partial(trial_receiver, ledger, tracker, clock),
        )
        setup = SetupOperations(place, tracker)
        opened.push_async_callback(setup.close)
        trail = AuditTrail(ledger, clock)
        token = new_token()
        callback_path = path_on_status_page(redirect_uri, fresh.status_page.listen)
        page = StatusListener(
            audited(cast("Control", FreshControl(setup, clock.now_ms())), trail),
            _RefusingAll(place, trail),
            token=token,
            metrics=Metrics(),
            clock=clock,
            access=access_rules(fresh.status_page, fresh.base_dir),
            merchant=MerchantReturn(callback_path, setup.returned) if callback_path else None,
            on_change=changes.subscribe,
        )
        restarts.authenticator = page.follow(restarts.authenticator)
        page.site_parts = _only_setup
        page.parting = lambda: restarts.again
        opened.push_async_callback(page.close)
        address, port = await _listening(page, fresh, held)
        if not callback_path:
            await opened.enter_async_context(redirect_listener(redirect_uri, setup.returned))
        url = f"http://{reached_at(address)}:{port}"
        opened.enter_context(announced(ledger.data_dir, url=url, token=token))
        restarts.ready()
        log.info("bridge.setting_up", page=f"{url}/setup", file=str(fresh.path))
        manager.ready(_("Waiting to be set up at {url}").format(url=f"{url}/setup"))
        if manager.watchdog_s is not None:
            watchdog = Watchdog(manager, lambda: ())
            watchdog.start(manager.watchdog_s)
            opened.callback(watchdog.stop)
        await restarts.end.wait()
        if restarts.again:
            manager.reloading()
        else:
            manager.stopping()
    log.info("bridge.stopped")


async def _listening(
    page: StatusListener, fresh: UnconfiguredSettings, held: HeldAddress
) -> tuple[str, int]:
    listen = fresh.status_page.listen
    try:
        return await page.start(*host_and_port(listen), held)
    except OSError as failure:
        raise ConfigError(
            _("The status page cannot listen on {listen}: {detail}.").format(
                listen=listen, detail=reason_of(failure)
            ),
            fix=_("Stop what listens there, or change listen in [status_page]."),
        ) from failure


def _redirect_uri(fresh: UnconfiguredSettings) -> str:
    """Return what the file says of it already; else an address of the page's port."""
    _text, said = read_file(fresh.path)
    service = said.get("service")
    uri = service.get("redirect_uri") if isinstance(service, Mapping) else None
    _host, port = host_and_port(fresh.status_page.listen)
    return uri if isinstance(uri, str) else f"http://127.0.0.1:{port}/oauth/callback"


def _only_setup() -> "SiteParts":
    # With the page's other modules: only where somebody opens it.
    from tillbridge.web.site import reach, setup  # noqa: PLC0415 -- see above
    from tillbridge.web.site.site import SiteParts  # noqa: PLC0415 -- see above

    return SiteParts((setup.SUBJECT, reach.SUBJECT), home="/setup")


class FreshControl:
    """What is asked of a bridge in which nothing is set up: all but setting it up is refused."""

    def __init__(self, setup: SetupOperations, since_ms: int) -> None:
        self.setup = setup
        self._since_ms = since_ms

    async def status(self) -> Answer:
        """Return the status document: no store, and one problem."""
        now = Clock().now_ms()
        facts = BridgeFacts(
            version=tillbridge.__version__,
            running=True,
            adapters={},
            problems=(OpenProblem("bridge.not_set_up", "", "", self._since_ms),),
            pid=os.getpid(),
            started_at=self._since_ms,
        )
        return document(facts, now)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the operation is
        if name.startswith("__"):
            raise AttributeError(name)
        return _Refusing() if isinstance(vars(Control).get(name), property) else _refuse


class _Refusing:
    """Operations of a subject, none of which there is yet."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- (as above)
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse


class _RefusingAll(Dispatcher):
    """Refuses every operation but to read the audit trail, and how the internet may get in."""

    def __init__(self, place: SetupContext, trail: AuditTrail) -> None:
        super().__init__(cast("Bridge", SimpleNamespace(ledger=place.ledger)), trail)
        self._place = place

    async def perform(self, name: str, given: Mapping[str, Any], actor: Actor) -> Answer:
        """As a `Dispatcher`. Raises ConfigError for all but those."""
        if name == "diagnostics.reach":
            return await ways(self._place)
        if name.startswith("audit."):
            return await super().perform(name, given, actor)
        return await _refuse(name, given, actor)


async def _refuse(*_args: object, **_named: object) -> Answer:
    raise ConfigError(
        _("Nothing is set up yet."), fix=_("Set it up on the page: /setup, see docs/setup.md.")
    )


@asynccontextmanager
async def trial_receiver(
    ledger: Ledger, problems: ProblemTracker, clock: Clock, loaded: LoadedSettings
) -> AsyncIterator["Echo"]:
    """Listen as this configuration's receiver will. Raises ConfigError where it cannot."""
    receiver = Receiver(
        receiver_settings(loaded), {}, ledger, problems, clock=clock, wake=lambda _store: None
    )
    await receiver.start()
    try:
        yield receiver.echo
    finally:
        await receiver.stop(1.0)


class SetupBeside:
    """Makes the operations of the page, and connects the store that it has just written."""

    def __init__(
        self,
        loaded: LoadedSettings,
        services: BridgeServices,
        operations: Operations,
        restarts: "RestartController",
    ) -> None:
        self._loaded = loaded
        self._services = services
        self._operations = operations
        self._restarts = restarts
        self._opened: SetupOperations | None = None
        self.changes = ChangeSignal()

    def open(self, echo: "Echo") -> "SetupOperations":
        """Return the operations; `echo` is the receiver's."""
        from tillbridge.setup.file import SetupContext  # noqa: PLC0415 -- see above

        services = self._services
        place = SetupContext(
            self._loaded.path,
            services.ledger,
            services.clock,
            self._restarts,
            services.settings.service.redirect_uri,
            self.changes,
            partial(trial_receiver, services.ledger, services.tracker, services.clock),
            echo,
        )
        self._opened = SetupOperations(place, services.tracker, self._stands)
        return self._opened

    async def close(self) -> None:
        """Let go of what the page has opened."""
        if self._opened is not None:
            await self._opened.close()

    @asynccontextmanager
    async def connecting(self, connecting: Connecting) -> AsyncIterator[None]:
        """Connect the store that the last life has written, beside everything else."""
        store, self._restarts.to_connect = self._restarts.to_connect, ""
        if store not in self._services.settings.stores:
            yield
            return
        task = asyncio.create_task(_connect(connecting, store), name="setup.connect")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _stands(self, draft: "Draft") -> "Mapping[str, Finding]":
        """Return how far the running bridge is set up."""
        from tillbridge.ledger.snapshot import take_snapshot  # noqa: PLC0415 -- see above
        from tillbridge.setup.running import findings_of  # noqa: PLC0415 -- see above

        stores = self._services.settings.stores
        snapshot = await self._services.ledger.read(take_snapshot)
        return findings_of(
            await self._operations.overview(),
            draft.store if draft.store in stores else next(iter(stores)),
            base_url=self._services.settings.service.base_url,
            delivered=snapshot.last_delivery_at is not None,
        )


async def _connect(connecting: Connecting, store: str) -> None:
    try:
        answer = await connecting.choose(Wanted(store))
        log.info("setup.connected", store=store, ok=answer["ok"])
    except BridgeError as failure:
        # The page shows what is missing, with a button that tries again.
        log.warning("setup.not_connected", store=store, error=failure.text)
