"""How the bridge is: what `status`, the page and a report to a fleet are made from."""

import os

import tillbridge
from tillbridge.daemon.building import Building
from tillbridge.daemon.figures import CountedFigures
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.pos.loader import adapters_of
from tillbridge.web.document import document
from tillbridge.web.facts import BridgeFacts
from tillbridge.web.ports import Answer


class Condition:
    """The condition of a bridge; `running_since` (ms) is None where no daemon runs."""

    def __init__(self, building: Building, running_since: int | None) -> None:
        self._building = building
        self._running_since = running_since
        self._house = building.house
        self._counted = CountedFigures(building.house)

    async def document(self) -> Answer:
        """Return the status document."""
        return document(await self._facts(), self._house.clock.now_ms())

    async def overview(self) -> Answer:
        """Return the status document with the chain, the day and what waits."""
        # Only the page asks for it.
        from tillbridge.ledger.day import read_day  # noqa: PLC0415 -- see above
        from tillbridge.web.overview import overview  # noqa: PLC0415 -- see above

        now = self._house.clock.now_ms()
        facts = await self._facts()
        day = await self._house.ledger.read(lambda connection: read_day(connection, now))
        return overview(document(facts, now), facts, day, now)

    async def _facts(self) -> BridgeFacts:
        house = self._house
        snapshot = await house.ledger.read(take_snapshot)
        figures = await self._counted.figures()
        running = self._running_since is not None
        seen = {name: rooms.orders.pos_seen_at for name, rooms in self._building.stores.items()}
        return BridgeFacts(
            version=tillbridge.__version__,
            running=running,
            adapters={name: each.pos.adapter for name, each in house.settings.stores.items()},
            stores=snapshot.stores,
            problems=house.desk.current(),
            pid=os.getpid() if running else None,
            started_at=self._running_since,
            facts=snapshot.facts,
            last_delivery_at=snapshot.last_delivery_at,
            figures=figures,
            tills={
                name: adapters_of(each.pos_adapter[0], (each.order_adapter or (None,))[0])
                for name, each in house.settings.stores.items()
            },
            pos_seen={name: at for name, at in seen.items() if at is not None},
            communities={
                name: each.community_id for name, each in house.settings.communities.items()
            },
        )
