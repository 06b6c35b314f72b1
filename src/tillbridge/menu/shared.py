"""What the lanes of one store's flow share: where things are, and what the POS said last."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tillbridge.core.clock import Clock
from tillbridge.core.supervision import Supervisor
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.menu.lane import Lane
from tillbridge.menu.ports import CataloguePos, CatalogueService, Desk
from tillbridge.menu.precedence import InFlight
from tillbridge.model.catalogue import Availability


@dataclass(slots=True)
class Shared:
    """One store: its neighbours, its lanes' alarm clocks, and the POS's last words.

    `words` is None while they are not known; `unsure` are items of which two calls told the
    availability at the same time, so that it is told once more.
    """

    store: str
    pos: CataloguePos
    service: CatalogueService
    ledger: Ledger
    desk: Desk
    clock: Clock
    menu_lane: Lane
    availability_lane: Lane
    tables_lane: Lane
    base_url: str = ""  # of the service
    in_flight: InFlight = field(default_factory=InFlight)
    words: Mapping[str, Availability] | None = None
    unsure: set[str] = field(default_factory=set)
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.store, self.desk)

    async def store_id(self) -> str | None:
        """Return the store's id at the service; None while it is not connected."""
        found = await self.ledger.read(
            lambda connection: get_fact(connection, self.store, "service_store_id")
        )
        return found if isinstance(found, str) else None
