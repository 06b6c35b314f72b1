"""What is examined: the bridge as it runs, or what can be seen of it while it does not."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.config import Settings, StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.network import system_trust
from tillbridge.diagnostics.network import Exchange, Resolve, Trust, exchange, resolve
from tillbridge.ledger.snapshot import Snapshot
from tillbridge.pos.runner import PosRunner
from tillbridge.service.tokens import StoreTokens

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel, HeartbeatProbe
    from tillbridge.receiver.receiver import Echo
    from tillbridge.service.client import ServiceClient


@dataclass(frozen=True, slots=True)
class StoreSubject:
    """One store. A till that could not be opened has `tills_failure` instead of runners."""

    name: str
    settings: StoreSettings
    tokens: StoreTokens
    client: "ServiceClient"
    store_id: str | None
    tills: Mapping[str, PosRunner] = field(default_factory=dict)  # "pos"; "orders", "fallback"
    tills_failure: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """Everything checks may look at. `running`: a daemon runs, and this is inside it.

    `echo` is None where no receiver of this process listens. `snapshot` raises LedgerError.
    """

    settings: Settings
    config_path: Path
    base_dir: Path
    data_dir: Path
    clock: Clock
    snapshot: Callable[[], Awaitable[Snapshot]]
    stores: Mapping[str, StoreSubject]
    running: bool = False
    echo: "Echo | None" = None
    writable: bool | None = None  # None: not known from here
    hung: bool = False  # a daemon is there and does not answer
    no_secret: str = ""  # why the app's secret cannot be read
    telling: "Sequence[Channel | HeartbeatProbe]" = ()
    # The status document, so that doctor finds what everything else shows; None: there is none.
    status: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    names: Resolve = resolve
    trust: Trust = system_trust
    # What came of asking the service without any credential; several checks look at it.
    asked: "dict[str, asyncio.Task[Exchange]]" = field(default_factory=dict)

    def fetch(self, url: str, timeout_s: float = 8.0) -> Exchange:
        """Ask an address (blocking)."""
        return exchange(url, names=self.names, trust=self.trust, timeout_s=timeout_s)
