"""Composes the bridge: the one place where everything is made, whatever `Mode` it is for.

What `tillbridge doctor` looks at without a daemon is composed to be read only: no lock is taken,
nothing is mended or migrated, and a token that is refreshed is not stored (the refresh token stays
the same; specification: Authentication, rule 4). So that may be done at any time, beside a bridge
that is starting too; it is a `Subject`, since all that a `Bridge` has needs the ledger's lock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.adapter import AdapterContext
from tillbridge.config.loading import LoadedSettings
from tillbridge.config.store import StoreSettings
from tillbridge.config.toml import read_file
from tillbridge.core.actor import Actor, Role
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.log import learn_secret
from tillbridge.core.metrics import Metrics
from tillbridge.core.operation import Answer, Dispatcher
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Supervisor, UnwaitedThreads, in_thread
from tillbridge.daemon.alerting import probes_of
from tillbridge.daemon.served import ServedStores, keys_of
from tillbridge.daemon.store_services import StoreServices
from tillbridge.diagnostics.check import StoreSubject, Subject
from tillbridge.diagnostics.checks import examination
from tillbridge.ledger.audit import AuditTrail
from tillbridge.ledger.backend import stored_secrets
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.reading import place_in
from tillbridge.ledger.snapshot import Snapshot, read_snapshot, take_snapshot
from tillbridge.ledger.vault import Vault, client_secret_for, secret_of_setting
from tillbridge.operations.bridge import Bridge, Mode, vault_of
from tillbridge.operations.connect import Connections
from tillbridge.operations.status import CountedFigures, status
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.runner import PosRunner
from tillbridge.pos.watch import FolderEvents
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceLink
from tillbridge.service.oauth import App
from tillbridge.service.tokens import StoreTokens, TokenStore
from tillbridge.status.stopped import status_from_ledger
from tillbridge.stores.consent import ConsentFlow, VaultAppTokens, VaultTokenStore
from tillbridge.stores.link import ServiceReach
from tillbridge.web.listener import redirect_listener

if TYPE_CHECKING:
    from tillbridge.receiver import Echo


@asynccontextmanager
async def compose(loaded: LoadedSettings, mode: Mode) -> AsyncIterator[Bridge]:
    """Compose a bridge, nothing running yet and no store open, and close it in order at the end.

    Raises ConfigError, LedgerLocked, LedgerError.
    """
    settings, clock = loaded.settings, Clock()

    def tokens_of(store: str) -> StoreTokens:
        return bridge.store(store).tokens

    async with AsyncExitStack() as opened:
        ledger = await Ledger.open(
            loaded.data_dir,
            clock=clock,
            url=loaded.ledger_url(),
            key=loaded.ledger_key(),
            name=settings.bridge.known_as,
        )
        opened.push_async_callback(ledger.close)
        problems = await ProblemTracker.start(ledger, clock=clock)
        opened.push_async_callback(problems.settle)
        link = _service_link(loaded, ledger.vault, clock)
        opened.push_async_callback(link.close)
        context = BridgeContext(
            settings=settings,
            base_dir=loaded.base_dir,
            ledger=ledger,
            problems=problems,
            scheduler=Scheduler(clock, Supervisor("", problems)),
            metrics=Metrics(),
            clock=clock,
            may_act=lambda key: bridge.may_act(key),  # noqa: PLW0108 -- a daemon sets another one
        )
        bridge = Bridge(
            mode=mode,
            loaded=loaded,
            context=context,
            link=link,
            events=FolderEvents(),
            reach=ServiceReach(problems, clock=clock),
            figures=CountedFigures(ledger, clock),
            consents=ConsentFlow(link, tokens_of, ledger, clock=clock),
        )
        yield bridge


@asynccontextmanager
async def compose_exclusive(
    loaded: LoadedSettings, *, only: str | None = None
) -> AsyncIterator[Bridge]:
    """Compose a bridge for one command, with its stores open and nothing running.

    `only` is the one store that is wanted; then there are no communities. Raises as `compose`.
    """
    async with compose(loaded, Mode.EXCLUSIVE) as bridge:
        served = ServedStores(bridge)
        keys: Sequence[str] = keys_of(bridge) if only is None else [only]
        if bridge.ledger.is_shared:
            # Whoever is alone on a ledger needs none of it.
            from tillbridge.daemon.leases import DEAD_AFTER_MS  # noqa: PLC0415 -- (as above)
            from tillbridge.daemon.peers import ask_alone  # noqa: PLC0415 -- (as above)
            from tillbridge.ledger import leases  # noqa: PLC0415 -- (as above)

            await bridge.ledger.write(leases.bury, DEAD_AFTER_MS)
            bridge.ask = partial(ask_alone, bridge.ledger)
            bridge.cluster = cluster = await bridge.ledger.read(leases.read_cluster)
            keys = [key for key in keys if cluster.server_of(key) is None]
        try:
            await served.open(keys)
            yield bridge
        finally:
            await served.close()


def _service_link(loaded: LoadedSettings, vault: Vault, clock: Clock) -> ServiceLink:
    """Return the link to the service. Raises ConfigError where the app's secret cannot be had."""
    service = loaded.settings.service

    def client_secret() -> str:
        # Read when it is sent, so that a rotated one counts without a restart.
        from_vault = partial(client_secret_for, vault, service.base_url)
        secret = loaded.client_secret(from_vault).get_secret_value()
        learn_secret(secret)
        return secret

    if loaded.is_set_up:
        client_secret()  # what is missing is found now
    return ServiceLink(
        service.base_url,
        App(
            service.client_id,
            client_secret,
            service.redirect_uri,
            loaded.settings.assumptions.scope_field,
            partial(VaultAppTokens, vault, base_url=service.base_url, client_id=service.client_id),
            signup_with_secret=service.signup_auth == "basic",
        ),
        clock=clock,
        timeout_s=service.timeout_s,
        refresh_early_s=service.refresh_early_s,
        limits=Limits(
            max_attempts=service.max_attempts,
            backoff_first_s=service.backoff_first_s,
            backoff_cap_s=service.backoff_cap_s,
        ),
    )


def subject_of(bridge: Bridge, echo: "Echo | None") -> Subject:
    """Return the bridge that runs in this process, to be examined; `echo` is its receiver's."""
    shared = bridge.context
    return Subject(
        loaded=bridge.loaded,
        clock=shared.clock,
        snapshot=lambda: shared.ledger.read(take_snapshot),
        stores={name: _subject_of(found) for name, found in bridge.stores.items()},
        running=True,
        status=partial(status, bridge),
        channels=probes_of(shared.settings.alerts, shared.base_dir, vault_of(bridge)),
        echo=echo,
        writable=shared.ledger.writable,
    )


@asynccontextmanager
async def compose_read_only(loaded: LoadedSettings, *, hung: bool) -> AsyncIterator[Subject]:
    """Open what may be read while another process has the ledger, and close it at the end.

    `hung`: a daemon is there, and does not answer.
    """
    clock, settings, data_dir = Clock(), loaded.settings, loaded.data_dir

    async def snapshot() -> Snapshot:
        return await in_thread(lambda: read_snapshot(*place_in(loaded)))

    async def current_status() -> Mapping[str, Any]:
        configured = await in_thread(lambda: read_file(loaded.path)[1])
        return await in_thread(lambda: status_from_ledger(loaded.path, data_dir, configured))

    async with AsyncExitStack() as opened:
        vault, no_vault = await in_thread(lambda: _vault(loaded))
        base_url = settings.service.base_url
        link, no_secret = _link_to_read(loaded, vault, clock)
        opened.push_async_callback(link.close)
        known = await _store_ids(snapshot)
        stores = {}
        for name, store in settings.stores.items():
            adapters, failure = _opened_to_read(name, store, loaded.base_dir)
            for adapter in adapters.values():
                opened.push_async_callback(adapter.close)
            tokens = None if vault is None else VaultTokenStore(vault, name, base_url).load()
            access = link.store(TokenStore(tokens))  # what is renewed here is not stored
            stores[name] = StoreSubject(
                name, store, access.tokens, access.client, known.get(name), adapters, failure
            )
        from_vault = None if vault is None else partial(secret_of_setting, vault, base_url)
        yield Subject(
            loaded=loaded,
            clock=clock,
            snapshot=snapshot,
            stores=stores,
            channels=probes_of(settings.alerts, loaded.base_dir, from_vault),
            status=current_status,
            hung=hung,
            no_secret=no_secret or no_vault,
        )


def _vault(loaded: LoadedSettings) -> tuple[Vault | None, str]:
    try:
        return stored_secrets(loaded.data_dir, loaded.ledger_url(), loaded.ledger_key()), ""
    except (ConfigError, LedgerError) as failure:
        return None, str(failure)


def _link_to_read(
    loaded: LoadedSettings, vault: Vault | None, clock: Clock
) -> tuple[ServiceLink, str]:
    """Return the link, and why the app's secret cannot be had, "" where it can."""
    service = loaded.settings.service
    try:
        if vault is not None:
            return _service_link(loaded, vault, clock), ""
        loaded.client_secret(lambda: None)
        why = ""
    except ConfigError as failure:
        why = str(failure)
    app = App(service.client_id, lambda: "", service.redirect_uri)
    return ServiceLink(service.base_url, app, clock=clock), why


async def _store_ids(snapshot: Callable[[], Coroutine[Any, Any, Snapshot]]) -> Mapping[str, str]:
    try:
        seen = await snapshot()
    except (ConfigError, LedgerError):
        return {}
    found = {name: store.facts.get("service_store_id") for name, store in seen.stores.items()}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _opened_to_read(
    store: str, settings: StoreSettings, base_dir: Path
) -> tuple[Mapping[str, PosRunner], str]:
    """Return the adapters by their table, and why they could not be opened, "" where they were."""
    context = AdapterContext(store, settings.currency, settings.location_id, base_dir)
    try:
        return {
            table: PosRunner(
                open_adapter(adapter, options, context, table=table),
                store=store,
                adapter=adapter,
                ticket_timeout_s=settings.orders.write_timeout_s,
            )
            for table, adapter, options in settings.adapters
        }, ""
    except BridgeError as failure:
        return {}, str(failure)


def _subject_of(store: StoreServices) -> StoreSubject:
    pos, store_id = store.pos, store.service_store_id
    adapters = {"pos": pos.menu}
    if pos.orders is not pos.menu:
        adapters["orders"] = pos.orders
    if pos.fallback is not None:
        adapters["fallback"] = pos.fallback
    return StoreSubject(store.name, store.settings, store.tokens, store.client, store_id, adapters)


# -- what commands do while no daemon runs


async def perform_alone(
    loaded: LoadedSettings, name: str, arguments: Mapping[str, object], *, user: str = ""
) -> Any:  # noqa: ANN401 -- as the operation answers
    """Do an operation without a daemon. Raises LedgerLocked while one runs."""
    async with compose_exclusive(loaded) as bridge:
        return await dispatcher_of(bridge).perform(name, arguments, _actor(user))


@dataclass(frozen=True, slots=True)
class Session:
    """Operations one after another, between which the merchant's return is taken."""

    runner: asyncio.Runner
    dispatcher: Dispatcher
    actor: Actor

    def perform(self, name: str, arguments: Mapping[str, object]) -> Answer:
        """Do an operation."""
        return self.runner.run(self.dispatcher.perform(name, arguments, self.actor))

    def wait(self, seconds: float) -> None:
        """Let what was begun go on."""
        self.runner.run(asyncio.sleep(seconds))


@contextmanager
def connecting(loaded: LoadedSettings, store: str, *, user: str = "") -> Iterator[Session]:
    """Connect a store without a daemon. Raises LedgerLocked while one runs."""
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()

        async def begin() -> Bridge:
            bridge = await opened.enter_async_context(compose_exclusive(loaded, only=store))
            bridge.connections = Connections(bridge, _nothing_more)
            redirect_uri = bridge.settings.service.redirect_uri
            await opened.enter_async_context(
                redirect_listener(redirect_uri, bridge.connections.returned)
            )
            return bridge

        try:
            yield Session(runner, dispatcher_of(runner.run(begin())), _actor(user))
        finally:
            runner.run(opened.aclose())


def examine_alone(
    loaded: LoadedSettings, *, hung: bool, on_progress: Callable[[Answer], None]
) -> Answer:
    """Examine what can be seen without a daemon; `on_progress` is called twice a second.

    `hung`: a daemon is there, and does not answer. Blocks for 20 seconds at most.
    """

    async def examine() -> Answer:
        async with compose_read_only(loaded, hung=hung) as subject:
            checkup = examination(subject)
            work = asyncio.ensure_future(checkup.run())
            while not work.done():
                await asyncio.wait({work}, timeout=0.5)
                on_progress(checkup.so_far())
            return work.result()

    with asyncio.Runner() as runner:
        # A look-up that hangs must not be waited for at the end.
        runner.get_loop().set_default_executor(UnwaitedThreads())
        return runner.run(examine())


def dispatcher_of(bridge: Bridge) -> Dispatcher:
    """Return what performs operations on this bridge."""
    return Dispatcher(bridge, AuditTrail(bridge.ledger, bridge.clock))


def _actor(user: str) -> Actor:
    return Actor(f"command:{user or '?'}", Role.TECHNICIAN)


async def _nothing_more(_found: StoreServices) -> None:
    """Nothing runs that could go on with a connected store."""
