"""The daemon: start the listeners, run the flows, and end in order.

Deliveries are accepted first and last: the receiver listens before anything else runs, and on
SIGTERM it stops before the flows do, so that what was acknowledged is on disk and nothing more
comes in. Before anything is set up it is the same daemon, with no store and no receiver.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import tillbridge
from tillbridge.config.bridge import BridgeSettings
from tillbridge.config.loading import LoadedSettings, load_to_run
from tillbridge.config.values import host_and_port
from tillbridge.config.writing import Change
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, reason_of
from tillbridge.core.i18n import Reader, _, negotiated, of_environment, set_reader
from tillbridge.core.log import get_logger, set_level
from tillbridge.core.network import port_taken, raise_file_limit
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Step, Supervisor, Worker, supervise
from tillbridge.daemon import alerting, checks
from tillbridge.daemon.compose import compose, dispatcher_of, subject_of
from tillbridge.daemon.reload import Reloader, RestartController
from tillbridge.daemon.served import Served, ServedStores, keys_of
from tillbridge.daemon.store_services import StoreServices
from tillbridge.daemon.watchdog import ServiceManager, on_end, on_hangup, watchdog_of
from tillbridge.fleet import StatusSender
from tillbridge.ledger.community import key_of
from tillbridge.ledger.ledger import Storage
from tillbridge.ledger.reading import BRIDGES
from tillbridge.ledger.snapshot import FailedStart, forget_failed_start, note_failed_start
from tillbridge.menu.lane import unfreeze
from tillbridge.operations.bridge import Bridge, Mode
from tillbridge.operations.connect import ConnectionRequest, Connections
from tillbridge.operations.diagnostics import Diagnostics
from tillbridge.operations.setup import Setup
from tillbridge.operations.status import own_status
from tillbridge.pos.watch import FileWatch
from tillbridge.receiver import Receiver, receiver_settings, trial_receiver
from tillbridge.setup import updates
from tillbridge.setup.proposal import ChangeSignal, SetupContext
from tillbridge.web.authenticator import Authenticator, access_rules
from tillbridge.web.listener import (
    HeldAddress,
    MerchantReturn,
    StatusListener,
    announced,
    path_on_status_page,
    reached_at,
    redirect_listener,
)

if TYPE_CHECKING:
    from tillbridge.daemon.leases import Leases
    from tillbridge.daemon.peers import Peers

log = get_logger()

_HOUR_S = 3600.0
# How long a thread computes before another has its turn. With Python's own 5 ms a delivery waits 40
# beside one that computes, such as one that reads an export: it needs a turn eight times. With less
# than 1 ms a bridge with 150 stores takes longer to start.
_TURN_S = 0.001
_LOOK_EVERY_S = 30.0  # at the configuration, where the system reports no changes
_SETTLE_MS = 200  # an editor may be half-way through
_NOT_SET_UP = "bridge.not_set_up"


async def live(
    loaded: LoadedSettings,
    restarts: RestartController,
    address: HeldAddress,
    manager: ServiceManager,
) -> None:
    """Run the bridge until `restarts` ends it. Raises BridgeError."""
    set_reader(bridge_reader(loaded.settings.bridge))
    log.info("bridge.starting", version=tillbridge.__version__, pid=os.getpid())
    mode = Mode.RUN if loaded.is_set_up else Mode.UNCONFIGURED
    async with compose(loaded, mode) as bridge:
        daemon = _Daemon(bridge, restarts, manager)
        async with daemon.serving(address):
            try:
                await supervise(daemon.tasks(), restarts.end, on_stop=daemon.drain)
            finally:
                await daemon.served.close()
                await checks.note_running(bridge, stopped=True)
    log.info("bridge.stopped")


def bridge_reader(settings: BridgeSettings) -> Reader:
    """Return who reads what the bridge says by itself: alerts, and what it prints."""
    wanted = settings.language
    return Reader(negotiated([wanted]) if wanted else of_environment())


class _Daemon:
    """The daemon between its start and its end."""

    def __init__(
        self, bridge: Bridge, restarts: RestartController, manager: ServiceManager
    ) -> None:
        self._bridge = bridge
        self._restarts = restarts
        self._manager = manager
        self._limits = bridge.settings.bridge  # as they count now: a reload changes them
        self._page: StatusListener | None = None
        self._changes = ChangeSignal()
        self.served = ServedStores(bridge)
        self._dispatcher = dispatcher_of(bridge)
        self._leases: Leases | None = None
        self._peers: Peers | None = None
        self._ids: dict[str, str] = {}
        self._refreshing: set[asyncio.Task[None]] = set()
        self._notifications: Worker | None = None
        self.served.on_open = self._opened
        self._receiver = self._new_receiver() if bridge.is_set_up else None
        echo = None if self._receiver is None else self._receiver.echo
        self._subject = partial(subject_of, bridge, echo)  # this bridge, to be examined
        supervisor, path = Supervisor("", bridge.problems), bridge.loaded.path
        reloader = Reloader(bridge.loaded, bridge.problems, self._reloaded)
        self._reloading = Worker("configuration", reloader.read, supervisor, bridge.clock)
        self._watch = FileWatch(bridge.events, store="configuration", poll_s=_LOOK_EVERY_S)
        self._watch.subscribe([path], _SETTLE_MS, self._reloading.wake)
        bridge.started_at = bridge.clock.now_ms()
        bridge.connections = self._connections = Connections(bridge, self._connected)
        bridge.diagnostics = Diagnostics(bridge.loaded, self._subject)
        bridge.setup = self._setup = Setup(
            SetupContext(
                bridge.loaded.path,
                bridge.ledger,
                bridge.clock,
                restarts,
                bridge.settings.service.redirect_uri,
                self._changes,
                partial(trial_receiver, bridge),
                echo,
            )
        )
        missing = () if bridge.is_set_up else (Found(_NOT_SET_UP),)
        bridge.problems.report(Scope("", frozenset({_NOT_SET_UP})), missing)

    def _new_receiver(self) -> Receiver:
        bridge, settings = self._bridge, self._bridge.settings
        self._ids = {name: store.location_id for name, store in settings.stores.items()}
        for name, community in settings.communities.items():
            self._ids[key_of(name)] = community.community_id
        return Receiver(
            receiver_settings(bridge.loaded),
            self._ids,
            bridge.ledger,
            bridge.problems,
            clock=bridge.clock,
            metrics=bridge.context.metrics,
            wake=self.served.delivery_stored,
            success_status=settings.assumptions.delivery_success_status,
        )

    def _opened(self, served: Served) -> None:
        """Let the receiver know when the webhook secret of what was opened changes."""
        if self._receiver is None:
            return
        changes = served.integrator if isinstance(served, StoreServices) else served.subscriber
        changes.on_secret_expected = self._receiver.expect
        changes.on_secret = self._receiver.refresh

    @asynccontextmanager
    async def serving(self, address: HeldAddress) -> AsyncIterator[None]:
        """Serve the service and people; log `bridge.ready` once both can come."""
        bridge, manager = self._bridge, self._manager
        async with AsyncExitStack() as opened:
            if self._receiver is not None:
                await self._receiver.start()
                opened.push_async_callback(self._receiver.stop, 1.0)
                opened.push_async_callback(self.served.close)
                await self.served.start(await self._first_stores(opened))
            opened.push_async_callback(self._setup.close)
            url = await self._open_page(opened, address)
            await checks.note_running(bridge, stopped=False)
            self._plan()
            bridge.context.scheduler.start()
            opened.callback(bridge.context.scheduler.stop)
            self._restarts.ready()
            forget_failed_start(bridge.ledger.data_dir)
            if bridge.is_set_up:
                with contextlib.suppress(BridgeError):  # only the page Set-up has use for it
                    await self._setup.context.forget_written()
                log.info("bridge.ready", stores=list(bridge.stores), page=f"{url}/")
                line = _("Serving {stores}").format(stores=", ".join(bridge.stores))
            else:
                path = str(bridge.loaded.path)
                data = str(bridge.ledger.data_dir)
                log.info("bridge.setting_up", page=f"{url}/setup", file=path, data=data)
                line = _("Waiting to be set up at {url}").format(url=f"{url}/setup")
            self._status_line = line  # what `systemctl status` shows
            manager.ready(line)
            if manager.watchdog_s is not None:
                watchdog = watchdog_of(manager, bridge)
                watchdog.start(manager.watchdog_s)
                opened.callback(watchdog.stop)
            if bridge.is_set_up:
                on_hangup(self._reloading.wake)
            # The store that set-up has just written is connected beside everything else.
            store, self._restarts.to_connect = self._restarts.to_connect, ""
            if store in bridge.stores:
                connecting = _beside(self._connect(store), "setup.connect")
                await opened.enter_async_context(connecting)
            yield

    async def _first_stores(self, opened: AsyncExitStack) -> Sequence[str]:
        """Return what to serve: all, or what the other bridges on this ledger leave to this one."""
        bridge = self._bridge
        if (url := bridge.ledger.url) is None:
            return keys_of(bridge)
        # Whoever is alone on a ledger needs none of it.
        from tillbridge.daemon.leases import Leases  # noqa: PLC0415 -- (as above)
        from tillbridge.daemon.peers import Peers  # noqa: PLC0415 -- (as above)
        from tillbridge.ledger.leases import Notifications  # noqa: PLC0415 -- (as above)

        self._leases = leases = Leases(bridge, self.served)
        bridge.may_act = leases.may_act
        bridge.ledger.on_lease_lost = leases.worker.wake
        self._peers = peers = Peers(bridge, leases, self.served, self._dispatcher)
        bridge.ask = peers.ask
        self.served.on_elsewhere = peers.notify_owner
        self.served.on_secrets = self._secrets_changed
        supervisor = Supervisor("", bridge.problems)
        notifications = Notifications(url, peers.on_notification, supervisor, bridge.clock)
        self._notifications = notifications.worker
        opened.callback(notifications.close)
        opened.push_async_callback(leases.leave)
        keys = await leases.start()
        # From now on, and until they are given back: a start takes its time on a busy machine.
        await opened.enter_async_context(_beside(leases.worker.run(), "leases"))
        return keys

    def _secrets_changed(self, names: Collection[str]) -> None:
        """Let the receiver read the secrets that another bridge has changed."""
        for path in self._ids:
            if any(name.startswith(f"{path}/") for name in names):
                task = asyncio.create_task(self._refresh(path))
                self._refreshing.add(task)
                task.add_done_callback(self._refreshing.discard)

    async def _refresh(self, path: str) -> None:
        with contextlib.suppress(LedgerError):
            if self._receiver is not None:
                await self._receiver.refresh(path)

    async def _open_page(self, opened: AsyncExitStack, address: HeldAddress) -> str:
        """Serve the page, what commands ask and the merchant's return; return its address.

        Who has signed in stays so from one run of the bridge to the next. Raises ConfigError.
        """
        bridge, restarts = self._bridge, self._restarts
        settings, redirect_uri = bridge.settings.status_page, bridge.settings.service.redirect_uri
        merchants = self._connections if bridge.is_set_up else self._setup.sign_in
        path = path_on_status_page(redirect_uri, settings.listen)
        rules = access_rules(settings, bridge.base_dir)
        if restarts.authenticator is None:
            restarts.authenticator = Authenticator(rules, bridge.clock)
        else:
            restarts.authenticator.reconfigure(rules)
        token = secrets.token_urlsafe(32)  # for this run alone
        self._page = StatusListener(
            self._dispatcher,
            restarts.authenticator,
            token=token,
            metrics=bridge.context.metrics,
            merchant=MerchantReturn(path, merchants.returned) if path else None,
            on_change=self._on_change,
            is_parting=lambda: restarts.again,
            only_setup=not bridge.is_set_up,
        )
        opened.push_async_callback(self._page.close)
        host, port = host_and_port(settings.listen)
        try:
            host, port = await self._page.start(host, port, address)
        except OSError as failure:
            holder, fix = port_taken(port, _("change listen in [status_page]"), failure)
            text = _("The status page cannot listen on {listen}: {detail}{holder}.")
            raise ConfigError(
                text.format(listen=settings.listen, detail=reason_of(failure), holder=holder),
                fix=fix,
            ) from failure
        if not path:
            await opened.enter_async_context(redirect_listener(redirect_uri, merchants.returned))
        url = f"http://{reached_at(host)}:{port}"
        opened.enter_context(announced(bridge.ledger.data_dir, url=url, token=token))
        return url

    def tasks(self) -> dict[str, Coroutine[Any, Any, object]]:
        """Return all that runs.

        What every store depends on ends the bridge where it dies; the rest is begun again.
        """
        bridge = self._bridge
        tasks: dict[str, Coroutine[Any, Any, object]] = {
            "events": bridge.events.run(),
            "ledger": self._until_damaged(),
        }
        if (receiver := self._receiver) is not None:
            steps: dict[str, Step] = {"configuration.watch": self._watch.run}
            if bridge.settings.alerts.are_wanted:
                steps |= alerting.steps(bridge, receiver_url=lambda: receiver.url)
            tasks |= {"configuration": self._reloading.run(), **receiver.tasks()}
            tasks |= self.served.tasks()
            if self._peers is not None and self._notifications is not None:
                workers = (self._peers.worker, self._notifications)
                tasks |= {each.name: each.run() for each in workers}
            tasks |= Supervisor("", bridge.problems).tasks(steps)
        if self._page is not None:
            tasks |= self._page.tasks()
        return tasks

    def _plan(self) -> None:
        """Plan what happens by the clock."""
        bridge, plan = self._bridge, self._bridge.context.scheduler
        ledger, problems, clock = bridge.ledger, bridge.problems, bridge.clock

        own = f"{BRIDGES}{bridge.settings.bridge.known_as}"

        def served() -> Collection[str] | None:
            return [*self.served.keys, own] if ledger.is_shared else None

        plan.every("forget", _HOUR_S, lambda: checks.forget(ledger, self._limits, clock, served()))
        plan.every(
            "enforce_budget", _HOUR_S, lambda: checks.enforce_budget(ledger, problems, self._limits)
        )
        checks.plan_back_up(bridge.context)
        updates.plan(bridge.context)
        if self._receiver is None:
            return
        plan.every("count_down_consents", _HOUR_S, self._count_down_consents)
        checks.plan(bridge.context, bridge.reach, self._subject)
        self._receiver.plan(plan)
        if bridge.settings.fleet.is_wanted:
            StatusSender(bridge.context, partial(own_status, bridge)).plan()

    async def drain(self) -> None:
        """Take no new delivery, and let the calls under way come to their end, in bounded time."""
        log.info("bridge.draining")
        if self._restarts.again:
            self._manager.reloading()
        else:
            self._manager.stopping()
        drain_s = self._limits.drain_s
        try:
            async with asyncio.timeout(drain_s):
                if self._receiver is not None:
                    await self._receiver.stop(drain_s / 2)
                if self._leases is None or self._peers is None:
                    await self.served.drain()
                else:
                    await self._peers.drain()
                    await self._leases.hand_over()
        except TimeoutError:
            # What is cut off now is resumed at the next start.
            log.warning("bridge.drain_cut_off", after_s=drain_s)

    async def _until_damaged(self) -> None:
        """Wait for the ledger to be found damaged; the next start sets it aside and goes on."""
        damaged: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def look(storage: Storage) -> None:
            if storage.damaged and not damaged.done():
                damaged.set_result(storage.failure)

        self._bridge.ledger.on_writable_changed(look)
        raise LedgerError(_("The database is damaged: {detail}").format(detail=await damaged))

    def _on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever something may look different: a commit, or a disk that fails."""
        self._bridge.ledger.on_written(callback)
        self._bridge.ledger.on_writable_changed(lambda _storage: callback())
        self._changes.subscribe(callback)

    def _reloaded(self, fresh: LoadedSettings, change: Change) -> None:
        """Let what has changed and can count at once do so. Raises ConfigError, nothing changed."""
        self._manager.reloading()
        try:
            if self._page is not None and any(k.startswith("status_page.") for k in change.live):
                rules = access_rules(fresh.settings.status_page, fresh.base_dir)
                self._page.authenticator.reconfigure(rules)
            self._limits = fresh.settings.bridge
            set_level(self._limits.log_level)
            set_reader(bridge_reader(self._limits))
        finally:
            self._manager.ready(self._status_line)

    async def _count_down_consents(self) -> None:
        for found in tuple(self._bridge.stores.values()):
            await checks.count_down(self._bridge.context, found.name, found.tokens)

    async def _connected(self, found: StoreServices) -> None:
        """Go on with a new consent: the new secret counts, and what waited is sent."""
        if self._receiver is not None:
            await self._receiver.refresh(found.name)
        await found.go_on()

    async def _connect(self, store: str) -> None:
        try:
            answer = await self._connections.integrate(ConnectionRequest(store))
            log.info("setup.connected", store=store, ok=answer["ok"])
        except BridgeError as failure:
            # The page shows what is missing, with a button that tries again.
            log.warning("setup.not_connected", store=store, error=failure.text)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, object], name: str) -> AsyncIterator[None]:
    """Do the work beside what is done within this, and end it then."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def run(
    loaded: LoadedSettings, ask_to_stop: Callable[[Callable[[], object]], None] = on_end
) -> int:
    """Run the bridge until it is asked to stop; return the exit code. Raises BridgeError.

    `ask_to_stop` is called in the running loop with what ends the bridge, to be called there too.
    """
    raise_file_limit()
    sys.setswitchinterval(_TURN_S)
    asyncio.run(_run(loaded, ask_to_stop))
    return 0


async def _run(loaded: LoadedSettings, ask_to_stop: Callable[[Callable[[], object]], None]) -> None:
    restarts, address = RestartController(), HeldAddress()

    def stop() -> None:
        restarts.stop()
        address.close()  # whoever comes now is refused, and not kept waiting

    ask_to_stop(stop)
    manager = ServiceManager.of(os.environ)
    path = loaded.path
    try:
        while True:
            restarts.begin()
            manager.alive()  # from one run to the next nothing else reports it
            try:
                await live(loaded, restarts, address, manager)
                if not restarts.again:
                    return
                unfreeze()
                await restarts.between_runs(manager.alive)
                loaded = load_to_run(path)
            except BridgeError as failure:
                if not restarts.undo(failure):
                    _note(loaded, failure, started=restarts.is_ready)
                    raise
                loaded = load_to_run(path)
    finally:
        address.close()


def _note(loaded: LoadedSettings, failure: BridgeError, *, started: bool) -> None:
    """Write down why the bridge ends, where `status`, `doctor` and `logs` find it."""
    event = "bridge.failed" if started else "bridge.not_started"
    log.error(event, error=failure.text, fix=failure.fix)
    if not started:
        failed = FailedStart(Clock().now_ms(), failure.text, failure.fix)
        note_failed_start(loaded.data_dir, failed)
