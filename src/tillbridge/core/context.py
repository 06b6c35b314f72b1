"""What every subject needs, passed as one argument: the bridge's, and that of one of its stores.

Neither holds a flow: whoever takes a context can read and write the ledger, read the clock, plan a
job and report a problem, and nothing else. What only one subject needs is an argument of its own.
Loggers are the modules' own (`get_logger()`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.core.clock import Clock
from tillbridge.core.metrics import Metrics
from tillbridge.core.worker import Supervisor

if TYPE_CHECKING:
    from tillbridge.config.bridge import Settings
    from tillbridge.config.store import StoreSettings
    from tillbridge.core.scheduler import Scheduler
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.ledger.problems import ProblemTracker
    from tillbridge.pos.store_pos import StorePos
    from tillbridge.service.client import ServiceClient


@dataclass(frozen=True, slots=True)
class BridgeContext:
    """What all stores share. Paths in the settings count from `base_dir`."""

    settings: "Settings"
    base_dir: Path
    ledger: "Ledger"
    problems: "ProblemTracker"
    scheduler: "Scheduler"
    metrics: Metrics
    clock: Clock
    # Whether this bridge may call the till and the service for a store now; asked in any thread.
    may_act: Callable[[str], bool] = lambda _store: True


@dataclass(frozen=True, slots=True)
class StoreContext:
    """One store: `store` is its name in the configuration. Its steps fail by themselves."""

    bridge: BridgeContext
    store: str
    pos: "StorePos"
    service: "ServiceClient"
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; this is its own making.
        object.__setattr__(self, "supervisor", Supervisor(self.store, self.bridge.problems))

    @property
    def settings(self) -> "StoreSettings":
        """The store's own settings."""
        return self.bridge.settings.stores[self.store]
