"""Wires the alerts and the heartbeat. Imported only where the configuration names them."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tillbridge.alerts.channels import Channel, Heartbeat, HeartbeatProbe, channels_of
from tillbridge.alerts.dispatcher import AlertDispatcher
from tillbridge.config.bridge import AlertSettings
from tillbridge.config.secrets import VaultOfSettings
from tillbridge.core.formats import waiting
from tillbridge.core.log import learn_secret
from tillbridge.core.worker import Step
from tillbridge.diagnostics.network import no_trust
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.operations.bridge import Bridge, vault_of
from tillbridge.web.listener import reached_at

_SELF_CHECK_S = 5.0


def steps(bridge: Bridge, *, receiver_url: Callable[[], str]) -> Mapping[str, Step]:
    """Plan the heartbeat, and return what runs for alerts; it is supervised."""
    alerts = bridge.settings.alerts
    running: dict[str, Step] = {}
    if channels := channels_of(alerts, bridge.base_dir, vault_of(bridge)):
        dispatcher = AlertDispatcher(
            channels,
            alerts,
            bridge.ledger,
            bridge.problems,
            clock=bridge.clock,
            about=partial(_about, bridge),
        )
        running["alerts"] = dispatcher.run
    if alerts.heartbeat_url is not None:
        learn_secret(alerts.heartbeat_url)
        beat = Heartbeat(
            alerts.heartbeat_url,
            every_s=alerts.heartbeat_s,
            fail=alerts.heartbeat_fail,
            is_well=partial(_is_well, bridge, receiver_url),
        )
        beat.plan(bridge.context.scheduler)
    return running


def probes_of(
    alerts: AlertSettings, base_dir: Path, from_vault: VaultOfSettings | None
) -> list[Channel | HeartbeatProbe]:
    """Return all that would tell people, to be looked at and not used."""
    found: list[Channel | HeartbeatProbe] = [*channels_of(alerts, base_dir, from_vault)]
    if alerts.heartbeat_url is not None:
        learn_secret(alerts.heartbeat_url)
        found.append(HeartbeatProbe(alerts.heartbeat_url))
    return found


async def _about(bridge: Bridge, store: str) -> tuple[str, str]:
    found = bridge.stores.get(store)
    if found is None:
        return store.partition("/")[2], ""
    snapshot = (await bridge.ledger.read(take_snapshot)).store(store)
    oldest = snapshot.oldest_waiting_at
    oldest_s = None if oldest is None else (bridge.clock.now_ms() - oldest) / 1000
    return await found.title() or store, waiting(snapshot.waiting, oldest_s)


async def _is_well(bridge: Bridge, receiver_url: Callable[[], str]) -> bool:
    """Whether deliveries are accepted: the ledger writes, and the receiver answers itself."""
    if not bridge.ledger.writable:
        return False
    parts = urlsplit(receiver_url())
    # It asks itself, whoever the certificate says that it is.
    tls = no_trust() if parts.scheme == "https" else None
    host = reached_at(parts.hostname or "").strip("[]")
    try:
        async with asyncio.timeout(_SELF_CHECK_S):
            reader, writer = await asyncio.open_connection(host, parts.port, ssl=tls)
            with contextlib.closing(writer):
                writer.write(
                    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                return b" 200 " in await reader.readline()
    except (OSError, TimeoutError):
        return False
