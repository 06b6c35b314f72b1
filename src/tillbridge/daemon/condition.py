"""How the bridge is: what `status`, the page and a report to a fleet are made from."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tillbridge
from tillbridge.daemon.compose import Building
from tillbridge.daemon.store_services import House
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.pushes import push_counts
from tillbridge.ledger.snapshot import StoreFigures, take_figures, take_snapshot
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


_LEAST_S, _MOST_S = 1.0, 60.0
_TIMES_AS_LONG = 100  # as counting took, they stay as they are


class CountedFigures:
    """The figures by store, from the ledger. Used from the event loop."""

    def __init__(self, house: House) -> None:
        self._ledger = house.ledger
        self._clock = house.clock
        self._counted: Mapping[str, StoreFigures] = {}
        self._fresh_until = float("-inf")

    async def figures(self) -> Mapping[str, StoreFigures]:
        """Return them as they are, or were a little while ago: a minute at most."""
        began = self._clock.monotonic()
        if began >= self._fresh_until:
            now_ms = self._clock.now_ms()
            self._counted = await self._ledger.read(
                lambda connection: take_figures(connection, now_ms)
            )
            ended = self._clock.monotonic()
            stays_s = min(_MOST_S, max(_LEAST_S, (ended - began) * _TIMES_AS_LONG))
            self._fresh_until = ended + stays_s
        return self._counted


_FILES = ("", "-wal", "-shm")


async def measures(house: House) -> dict[str, Any]:
    """Return `pushes` (store, state, count), `ledger_bytes` and `ledger_writable`."""
    return {
        "pushes": await house.ledger.read(push_counts),
        "ledger_bytes": _size(house.ledger.data_dir / LEDGER_FILE),
        "ledger_writable": house.ledger.writable,
    }


def _size(path: Path) -> int:
    """Return how many bytes the ledger takes, its log included."""
    total = 0
    for end in _FILES:
        try:
            total += path.with_name(path.name + end).stat().st_size
        except FileNotFoundError:
            continue
    return total
