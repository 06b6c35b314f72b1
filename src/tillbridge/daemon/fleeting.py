"""Wires the reports to whoever looks after many bridges. Imported only where they are wanted."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tillbridge.config import FleetSettings
from tillbridge.config.secrets import resolve_secret
from tillbridge.core.log import learn_secret
from tillbridge.core.supervision import Step
from tillbridge.daemon.rooms import House
from tillbridge.fleet.minisign import SigningKey
from tillbridge.fleet.sender import Places, StatusSender
from tillbridge.ledger.vault import Vault

_KEY = "fleet/signing_key"


def signing_key(vault: Vault) -> SigningKey:
    """Return the bridge's own key; it is made when it is first needed."""
    kept = vault.get(_KEY)
    if kept is not None:
        return SigningKey.kept(kept)
    key = SigningKey.new()
    vault.put(_KEY, key.to_keep)
    return key


def steps(house: House, status: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Step]:
    """Return what runs; it is supervised."""
    fleet = house.settings.fleet
    sender = StatusSender(
        fleet.called,
        _places(house, fleet),
        signing_key(house.ledger.vault),
        every_s=fleet.every_s,
        status=status,
        clock=house.clock,
    )
    return {"fleet": sender.run}


def _places(house: House, fleet: FleetSettings) -> Places:
    folder = None if fleet.folder is None else house.base_dir / fleet.folder
    return Places(folder, fleet.url or "", _token(house, fleet), _tls(fleet.url or ""))


def _tls(url: str) -> ssl.SSLContext | bool:
    if not url.startswith("https:"):
        return True
    # Only for TLS: reading the system's store takes time.
    from tillbridge.alerts.trust import system_trust  # noqa: PLC0415 -- (as above)

    return system_trust()


def _token(house: House, fleet: FleetSettings) -> Callable[[], str] | None:
    source = fleet.token
    if source is None:
        return None

    def read() -> str:
        # Read when it is needed, so that a new one counts without a restart.
        secret = resolve_secret(source, key="fleet.token", base_dir=house.base_dir)
        learn_secret(secret.get_secret_value())
        return secret.get_secret_value()

    return read
