"""The daemon's life: start the listeners, run the flows, and end in order.

Deliveries are taken first and last: the receiver listens before anything else runs, and on SIGTERM
it stops before the flows do, so that what was acknowledged is on disk and nothing more comes in.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

import tillbridge
from tillbridge.config import LoadedSettings, host_and_port
from tillbridge.config.loading import UnconfiguredSettings, load_to_run
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger, set_level
from tillbridge.core.network import raise_file_limit
from tillbridge.core.operation import Dispatcher
from tillbridge.core.restart import RestartController
from tillbridge.core.supervision import Supervisor
from tillbridge.daemon import alerting, self_checks
from tillbridge.daemon.audited import audited
from tillbridge.daemon.compose import Composition, composed
from tillbridge.daemon.connecting import Connecting
from tillbridge.daemon.examining import running_subject
from tillbridge.daemon.housekeeping import count_down, forget, keep_budget, keep_downtime
from tillbridge.daemon.operations import Operations
from tillbridge.daemon.reloading import Change, Reloader
from tillbridge.daemon.service_manager import ServiceManager
from tillbridge.daemon.setup_run import SetupBeside
from tillbridge.daemon.status_page import (
    access_rules,
    announced,
    new_token,
    path_on_status_page,
    reached_at,
    redirect_listener,
)
from tillbridge.daemon.store_services import StoreServices
from tillbridge.daemon.watchdog import watchdog_of
from tillbridge.diagnostics.network import taken_by
from tillbridge.fleet.report import StatusSender
from tillbridge.ledger.facts import note_addresses, put_fact
from tillbridge.ledger.snapshot import FailedStart, forget_failed_start, note_failed_start
from tillbridge.ledger.writer import Storage
from tillbridge.menu.lane import unfreeze
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.operations.bridge import Bridge
from tillbridge.operations.diagnostics import Diagnostics
from tillbridge.receiver.receiver import Receiver, receiver_settings
from tillbridge.web.held_address import HeldAddress
from tillbridge.web.listener import MerchantReturn, StatusListener

if TYPE_CHECKING:
    from tillbridge.diagnostics.subject import Subject

log = get_logger()

_OPEN_AGAIN_S = 15.0  # how often an adapter that was not open is looked at
_HOUR_S = 3600.0


async def live(
    loaded: LoadedSettings,
    restarts: "RestartController",
    address: HeldAddress,
    manager: ServiceManager,
) -> None:
    """Run the bridge until `restarts` ends it. Raises BridgeError."""
    log.info("bridge.starting", version=tillbridge.__version__, pid=os.getpid())
    async with composed(loaded) as composition:
        life = _Daemon(composition, loaded, restarts, manager)
        async with life.listening(address):
            try:
                await supervise(life.tasks(), restarts.end, on_stop=life.drain)
            finally:
                await life.note_running(stopped=True)
    log.info("bridge.stopped")


def _serving(composition: Composition) -> str:
    """Return what `systemctl status` shows."""
    return _("Serving {stores}").format(stores=", ".join(composition.stores))


def _holder(failure: OSError, port: int) -> str:
    """Return who has the port that could not be had, where that is why."""
    return taken_by(port) if failure.errno == errno.EADDRINUSE else ""


def _note_running(
    connection: Connection, fact: dict[str, Any], addresses: Mapping[str, str | None], at: int
) -> None:
    if "stopped_at" not in fact:
        keep_downtime(connection, at)
        note_addresses(connection, addresses, at)
    put_fact(connection, "", "running", fact, at=at)


class _Daemon:
    """The daemon between its start and its end."""

    def __init__(
        self,
        composition: Composition,
        loaded: LoadedSettings,
        restarts: "RestartController",
        manager: ServiceManager,
    ) -> None:
        services = composition.services
        self._loaded = loaded
        self._restarts = restarts
        self._manager = manager
        self._composition = composition
        self._services = services
        self._settings = services.settings
        self._bridge = services.settings.bridge  # as it counts now
        self._page: StatusListener | None = None
        self._reloader = Reloader(loaded, services.tracker, self._reloaded, clock=services.clock)
        self._started_at = services.clock.now_ms()
        self._scheduler = composition.bridge.scheduler
        self._connecting = Connecting(composition, self._connected)
        self._operations = Operations(composition, self._connecting, running_since=self._started_at)
        self._setup = SetupBeside(loaded, services, self._operations, restarts)
        self._receiver = Receiver(
            receiver_settings(loaded),
            {name: store.location_id for name, store in self._settings.stores.items()},
            services.ledger,
            services.tracker,
            clock=services.clock,
            wake=self._deliveries_arrived,
            success_status=self._settings.assumptions.delivery_success_status,
            communities={
                found.key: self._settings.communities[name].community_id
                for name, found in composition.communities.items()
            },
        )
        self._receiver.count_in(services.metrics)
        for store in composition.stores.values():
            store.integrator.on_secret_expected = self._receiver.expect
            store.integrator.on_secret = self._receiver.refresh
            store.on_recalled = partial(self._connected, store)
        self._operations.make_setup = lambda: self._setup.open(self._receiver.echo)
        self._by_key = {found.key: found for found in composition.communities.values()}
        for found in self._by_key.values():
            found.flow.subscriber.on_secret = self._receiver.refresh_community
            found.flow.subscriber.on_secret_expected = self._receiver.expect

    @asynccontextmanager
    async def listening(self, address: HeldAddress) -> AsyncIterator[None]:
        """Listen to the service and to people; log `bridge.ready` once both can come."""
        async with AsyncExitStack() as listeners:
            await self._receiver.start()
            listeners.push_async_callback(self._receiver.stop, 1.0)
            listeners.push_async_callback(self._setup.close)
            await listeners.enter_async_context(self._status_page(address))
            await self.note_running(stopped=False)
            self._plan_housekeeping()
            self._scheduler.start()
            listeners.callback(self._scheduler.stop)
            self._restarts.ready()
            forget_failed_start(self._services.ledger.data_dir)
            log.info("bridge.ready", stores=list(self._composition.stores))
            self._manager.ready(_serving(self._composition))
            if self._manager.watchdog_s is not None:
                watchdog = watchdog_of(self._manager, self._composition)
                watchdog.start(self._manager.watchdog_s)
                listeners.callback(watchdog.stop)
            on_hangup(self._reloader.reload)
            async with self._setup.connecting(self._connecting):
                yield

    def tasks(self) -> dict[str, Coroutine[Any, Any, object]]:
        """Return all that runs.

        What every store depends on ends the bridge where it dies; the rest is begun again.
        """
        supervised = Supervisor("", self._services.tracker).tasks
        tasks: dict[str, Coroutine[Any, Any, object]] = {
            "events": self._services.events.run(),
            "ledger": self._until_damaged(),
            "configuration": self._reloader.worker.run(),
            **self._receiver.tasks(),
        }
        for found in self._composition.stores.values():
            tasks |= found.tasks()
        for community in self._composition.communities.values():
            tasks |= community.tasks()
        if self._settings.alerts.are_wanted:
            tasks |= supervised(
                alerting.steps(self._composition, receiver_url=lambda: self._receiver.url)
            )
        if self._page is not None:
            tasks |= self._page.tasks()
        return tasks

    def _subject(self) -> "Subject":
        """Return this bridge, to be examined."""
        return running_subject(
            self._composition, self._loaded, self._receiver, self._operations.status
        )

    def _deliveries_arrived(self, key: str) -> None:
        """Wake the flow whose inbox has something new: a store's, or a community's."""
        if (community := self._by_key.get(key)) is not None:
            community.flow.deliveries_arrived()
        else:
            self._composition.stores[key].orders.deliveries_arrived()

    async def _until_damaged(self) -> None:
        """Wait for the ledger to be found damaged; the next start sets it aside and goes on."""
        damaged: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def look(storage: Storage) -> None:
            if storage.damaged and not damaged.done():
                damaged.set_result(storage.failure)

        self._services.ledger.on_writable_changed(look)
        raise LedgerError(_("The ledger is damaged: {detail}").format(detail=await damaged))

    async def drain(self) -> None:
        """Take no new delivery, and let the calls under way come to their end, in bounded time."""
        log.info("bridge.draining")
        if self._restarts.again:
            self._manager.reloading()
        else:
            self._manager.stopping()
        drain_s = self._bridge.drain_s
        try:
            async with asyncio.timeout(drain_s):
                await self._receiver.stop(drain_s / 2)
                await asyncio.gather(
                    *(found.orders.drain() for found in self._composition.stores.values())
                )
        except TimeoutError:
            # What is cut off now is taken up at the next start.
            log.warning("bridge.drain_cut_off", after_s=drain_s)

    async def note_running(self, *, stopped: bool) -> None:
        """Write down since when the bridge runs, or that it has stopped, for `status`."""
        at = self._services.clock.now_ms()
        fact: dict[str, Any] = {
            "pid": os.getpid(),
            "started_at": self._started_at,
            "version": tillbridge.__version__,
        }
        if stopped:
            fact["stopped_at"] = at
        with contextlib.suppress(
            LedgerError
        ):  # it is for people only, and the problem is open already
            await self._services.ledger.write(
                partial(_note_running, fact=fact, addresses=self._addresses(), at=at)
            )

    def _addresses(self) -> dict[str, str | None]:
        """Return what evidence is bound to: seen at another address it proves nothing."""
        stores = {
            f"store_id/{name}": found.service_store_id
            for name, found in self._composition.stores.items()
        }
        return {
            "base_url": self._settings.service.base_url,
            "public_url": self._settings.receiver.public_url,
            **stores,
        }

    @asynccontextmanager
    async def _status_page(self, held: HeldAddress) -> AsyncIterator[None]:
        redirect_uri = self._settings.service.redirect_uri
        listen = self._settings.status_page.listen
        callback_path = path_on_status_page(redirect_uri, listen)
        token = new_token()
        trail = AuditTrail(self._services.ledger, self._services.clock)
        bridge = Bridge(
            self._composition,
            self._operations.status,
            is_running=True,
            diagnostics=Diagnostics(self._loaded, self._subject),
        )
        page = StatusListener(
            audited(self._operations, trail),
            Dispatcher(bridge, trail),
            token=token,
            metrics=self._services.metrics,
            clock=self._services.clock,
            access=access_rules(self._settings.status_page, self._loaded.base_dir),
            on_change=self._on_change,
            merchant=MerchantReturn(callback_path, self._connecting.returned)
            if callback_path
            else None,
        )
        self._restarts.authenticator = page.follow(self._restarts.authenticator)
        self._page = page
        page.parting = lambda: self._restarts.again
        async with AsyncExitStack() as opened:
            host, port = host_and_port(listen)
            try:
                opened.push_async_callback(page.close)
                address, port = await page.start(host, port, held)
            except OSError as failure:
                raise ConfigError(
                    _("The status page cannot listen on {listen}: {detail}{holder}.").format(
                        listen=listen, detail=reason_of(failure), holder=_holder(failure, port)
                    ),
                    fix=_("Stop what listens there, or change listen in [status_page]."),
                ) from failure
            if not callback_path:
                await opened.enter_async_context(
                    redirect_listener(redirect_uri, self._connecting.returned)
                )
            url = f"http://{reached_at(address)}:{port}"
            opened.enter_context(announced(self._services.ledger.data_dir, url=url, token=token))
            yield

    def _on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever something may look different: a commit, or a disk that fails."""
        self._services.ledger.on_written(callback)
        self._services.ledger.on_writable_changed(lambda _storage: callback())
        self._setup.changes.subscribe(callback)

    def _plan_housekeeping(self) -> None:
        services, plan = self._services, self._scheduler
        plan.every("forget", _HOUR_S, lambda: forget(services.ledger, self._bridge, services.clock))
        plan.every(
            "keep_budget",
            _HOUR_S,
            lambda: keep_budget(services.ledger, services.tracker, self._bridge),
        )
        plan.every("count_down_consents", _HOUR_S, self._count_down_consents)
        self_checks.plan(self._composition.bridge, services.reach, self._subject)
        self._receiver.plan(plan)
        for store in self._composition.stores.values():
            store.plan(plan)
            if not store.opening.is_complete:
                begin = partial(self._begin_anew, store)
                plan.every(f"{store.name}.open", _OPEN_AGAIN_S, begin, first_s=_OPEN_AGAIN_S)
        if self._settings.fleet.is_wanted:
            StatusSender(self._composition.bridge, self._operations.status).plan()

    async def _begin_anew(self, store: StoreServices) -> None:
        """Compose the bridge again once an adapter that was not open can be."""
        if store.opening.can_be_complete():
            log.info("adapter.can_be_opened", store=store.name)
            self._restarts.restart(lambda _failure: None)

    def _reloaded(self, fresh: LoadedSettings, change: Change) -> None:
        """Let what has changed and can count at once do so. Raises ConfigError, nothing changed."""
        self._manager.reloading()
        try:
            if self._page is not None and any(k.startswith("status_page.") for k in change.live):
                self._page.reconfigure(access_rules(fresh.settings.status_page, fresh.base_dir))
            self._bridge = fresh.settings.bridge
            set_level(self._bridge.log_level)
        finally:
            self._manager.ready(_serving(self._composition))

    async def _count_down_consents(self) -> None:
        for found in self._composition.stores.values():
            await self._count_down(found)

    async def _count_down(self, found: StoreServices) -> None:
        await count_down(
            found.name,
            found.tokens,
            self._services.ledger,
            self._services.tracker,
            clock=self._services.clock,
            warn_days=self._settings.service.consent_warn_days,
        )

    async def _connected(self, found: StoreServices) -> None:
        """Go on with a new consent: the new secret counts, and what waited is told."""
        await self._receiver.refresh(found.name)
        await self._count_down(found)
        found.service_back()


def on_end(stop: Callable[[], object]) -> None:
    """Call `stop` on SIGTERM and SIGINT; until `on_hangup`, SIGHUP means nothing."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_args: loop.call_soon_threadsafe(stop))
    if sys.platform != "win32" and not _in_a_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def on_hangup(reload: Callable[[], None]) -> None:
    """Call `reload` on SIGHUP, where there is one."""
    # A host's thread (a service of Windows, a test) hears no signals.
    hears = threading.current_thread() is threading.main_thread()
    if sys.platform != "win32" and hears and not _in_a_terminal():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


def _in_a_terminal() -> bool:
    """Whether a person started it in a window: closing that ends it, as it ends anything."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def run(
    loaded: LoadedSettings | UnconfiguredSettings,
    ask_to_stop: Callable[[Callable[[], object]], None] = on_end,
) -> int:
    """Run the bridge until it is told to stop; return the exit code. Raises BridgeError.

    `ask_to_stop` is called in the running loop with what ends the bridge, to be called there too.
    """
    raise_file_limit()
    asyncio.run(_run(loaded, ask_to_stop))
    return 0


def _note(
    loaded: LoadedSettings | UnconfiguredSettings, failure: BridgeError, *, started: bool
) -> None:
    """Write down why the bridge ends, where `status`, `doctor` and `logs` find it."""
    event = "bridge.failed" if started else "bridge.not_started"
    log.error(event, error=failure.text, fix=failure.fix)
    if not started:
        told = FailedStart(Clock().now_ms(), failure.text, failure.fix)
        note_failed_start(loaded.data_dir, told)


async def _run(
    loaded: LoadedSettings | UnconfiguredSettings,
    ask_to_stop: Callable[[Callable[[], object]], None],
) -> None:
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
            manager.alive()  # from one life to the next nothing else tells it
            try:
                if isinstance(loaded, UnconfiguredSettings):
                    # Once in a bridge's life.
                    from tillbridge.daemon.setup_run import set_up  # noqa: PLC0415 -- (as above)

                    await set_up(loaded, restarts, address, manager)
                else:
                    await live(loaded, restarts, address, manager)
                if not restarts.again:
                    return
                unfreeze()
                loaded = load_to_run(path)
            except BridgeError as failure:
                if not restarts.take_back(failure):
                    _note(loaded, failure, started=restarts.is_ready)
                    raise
                loaded = load_to_run(path)
    finally:
        address.close()


async def supervise(
    tasks: Mapping[str, Coroutine[Any, Any, object]],
    stop: asyncio.Event,
    *,
    on_stop: Callable[[], Awaitable[None]],
) -> None:
    """Run the tasks until `stop` is set, then await `on_stop` and end them.

    A task that ends by itself, by an exception or by returning, ends all of them: raises
    BridgeError, and the service manager starts the bridge anew.
    """
    running = {asyncio.create_task(work, name=name) for name, work in tasks.items()}
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        done, _rest = await asyncio.wait(running | {stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            failure = _innermost(task.exception())
            log.error("task.died", task=task.get_name(), exc_info=failure)
            raise BridgeError(
                _("The bridge's task {name} ended unexpectedly: {detail}").format(
                    name=task.get_name(), detail=failure or _("it returned")
                ),
                fix=_("The service manager starts the bridge again; the log has the details."),
            ) from failure
        await on_stop()
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)


def _innermost(failure: BaseException | None) -> BaseException | None:
    """Return what a group of tasks died of: the first of them."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
