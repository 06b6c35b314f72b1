"""The subject of an examination: the running bridge, or what is left of it while it does not run.

Without a daemon nothing is opened for writing: no lock is taken, nothing is mended or migrated, and
a token that is refreshed is not kept (the refresh token stays the same; specification:
Authentication, rule 4). So `doctor` may be run at any time, beside a bridge that is starting too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.adapter import AdapterContext
from tillbridge.config import LoadedSettings, Settings, StoreSettings
from tillbridge.config.toml import read_file
from tillbridge.core.clock import Clock
from tillbridge.core.daemon_threads import UnwaitedThreads, apart
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.daemon.compose import Composition, service_link
from tillbridge.diagnostics.checkup import examination
from tillbridge.diagnostics.subject import StoreSubject, Subject
from tillbridge.ledger.snapshot import Snapshot, read_snapshot, take_snapshot
from tillbridge.ledger.vault import Vault
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.runner import PosRunner
from tillbridge.pos.store_pos import StorePos
from tillbridge.receiver.receiver import Receiver
from tillbridge.service.link import ServiceLink
from tillbridge.service.oauth import App
from tillbridge.service.tokens import TokenStore
from tillbridge.stores.vault import VaultTokenStore
from tillbridge.web.ports import Answer
from tillbridge.web.stopped import status_from_ledger

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel, HeartbeatProbe


def running_subject(
    composition: Composition,
    loaded: LoadedSettings,
    receiver: Receiver,
    status: Callable[[], Awaitable[Mapping[str, Any]]],
) -> Subject:
    """Return the bridge that runs in this process."""
    services = composition.services
    return Subject(
        settings=services.settings,
        config_path=loaded.path,
        base_dir=services.base_dir,
        data_dir=services.ledger.data_dir,
        clock=services.clock,
        snapshot=lambda: services.ledger.read(take_snapshot),
        stores={
            name: StoreSubject(
                name,
                found.settings,
                found.tokens,
                found.client,
                found.service_store_id,
                _parts(found.tills),
            )
            for name, found in composition.stores.items()
        },
        running=True,
        status=status,
        telling=_telling(services.settings, services.base_dir),
        echo=receiver.echo,
        writable=services.ledger.writable,
    )


def examine_alone(loaded: LoadedSettings, *, hung: bool, told: Callable[[Answer], None]) -> Answer:
    """Examine what can be seen without a daemon; `told` hears how far it is, twice a second.

    `hung`: a daemon is there, and does not answer. Blocks for 20 seconds at most.
    """
    with asyncio.Runner() as runner:
        # A look-up that hangs must not be waited for at the end.
        runner.get_loop().set_default_executor(UnwaitedThreads())
        return runner.run(_examine(loaded, hung=hung, told=told))


async def _examine(loaded: LoadedSettings, *, hung: bool, told: Callable[[Answer], None]) -> Answer:
    async with subject_alone(loaded, hung=hung) as subject:
        checkup = examination(subject)
        work = asyncio.ensure_future(checkup.run())
        while not work.done():
            await asyncio.wait({work}, timeout=0.5)
            told(checkup.so_far())
        return work.result()


@asynccontextmanager
async def subject_alone(loaded: LoadedSettings, *, hung: bool = False) -> AsyncIterator[Subject]:
    """Open what may be read, and close it at the end."""
    clock = Clock()
    path = loaded.data_dir / "ledger.db"

    async def snapshot() -> Snapshot:
        return await apart(lambda: read_snapshot(path))

    async with AsyncExitStack() as opened:
        vault, no_vault = await apart(lambda: _vault(loaded.data_dir))
        link, no_secret = _link(loaded, vault, clock)
        opened.push_async_callback(link.close)
        known = await _store_ids(snapshot)
        stores = {}
        for name, settings in loaded.settings.stores.items():
            tills, failure = _tills(name, settings, loaded.base_dir)
            for till in tills.values():
                opened.callback(till.close)
            base_url = loaded.settings.service.base_url
            tokens = None if vault is None else VaultTokenStore(vault, name, base_url).load()
            access = link.store(TokenStore(tokens))  # what is renewed here is not stored
            stores[name] = StoreSubject(
                name, settings, access.tokens, access.client, known.get(name), tills, failure
            )
        yield Subject(
            settings=loaded.settings,
            config_path=loaded.path,
            base_dir=loaded.base_dir,
            data_dir=loaded.data_dir,
            clock=clock,
            snapshot=snapshot,
            stores=stores,
            telling=_telling(loaded.settings, loaded.base_dir),
            status=partial(_status, loaded),
            hung=hung,
            no_secret=no_secret or no_vault,
        )


async def _status(loaded: LoadedSettings) -> Mapping[str, Any]:
    configured = await apart(lambda: read_file(loaded.path)[1])
    return await apart(lambda: status_from_ledger(loaded.data_dir, configured))


def _telling(settings: Settings, base_dir: Path) -> "Sequence[Channel | HeartbeatProbe]":
    if not settings.alerts.are_wanted:
        return ()
    from tillbridge.daemon.alerting import probes_of  # noqa: PLC0415 -- only where configured

    return probes_of(settings.alerts, base_dir)


def _vault(data_dir: Path) -> tuple[Vault | None, str]:
    # Without its file there is nothing to read, and opening would make a key.
    if not (data_dir / "ledger.vault").exists():
        return None, ""
    try:
        return Vault(data_dir), ""
    except LedgerError as failure:
        return None, str(failure)


def _link(loaded: LoadedSettings, vault: Vault | None, clock: Clock) -> tuple[ServiceLink, str]:
    service = loaded.settings.service
    try:
        if vault is not None:
            return service_link(loaded, vault, clock), ""
        loaded.client_secret(lambda: None)
        why = ""
    except ConfigError as failure:
        why = str(failure)
    app = App(service.client_id, lambda: "", service.redirect_uri)
    return ServiceLink(service.base_url, app, clock=clock), why


async def _store_ids(snapshot: Callable[[], Any]) -> Mapping[str, str]:
    try:
        seen: Snapshot = await snapshot()
    except LedgerError:
        return {}
    found = {name: store.facts.get("service_store_id") for name, store in seen.stores.items()}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _tills(
    store: str, settings: StoreSettings, base_dir: Path
) -> tuple[Mapping[str, PosRunner], str]:
    context = AdapterContext(
        store=store,
        currency=settings.currency,
        location_id=settings.location_id,
        base_dir=base_dir,
    )

    def opened(adapter: str, options: dict[str, Any], table: str) -> PosRunner:
        return PosRunner(
            open_adapter(adapter, options, context, table=table),
            store=store,
            adapter=adapter,
            ticket_timeout_s=settings.orders.write_timeout_s,
        )

    try:
        return {
            table: opened(name, options, table) for table, name, options in settings.adapters
        }, ""
    except BridgeError as failure:
        return {}, str(failure)


def _parts(tills: StorePos) -> Mapping[str, PosRunner]:
    parts = {"pos": tills.menu}
    if tills.orders is not tills.menu:
        parts["orders"] = tills.orders
    if tills.fallback is not None:
        parts["fallback"] = tills.fallback
    return parts
