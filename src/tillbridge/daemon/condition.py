"""How the bridge is: what `status`, the page and a report to a fleet are made from."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tillbridge
from tillbridge.daemon.compose import Composition
from tillbridge.daemon.store_services import BridgeServices
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.pushes import push_counts
from tillbridge.ledger.snapshot import StoreFigures, take_figures, take_snapshot
from tillbridge.pos.loader import adapters_of
from tillbridge.web.document import document
from tillbridge.web.facts import BridgeFacts
from tillbridge.web.ports import Answer


class Condition:
    """The condition of a bridge; `running_since` (ms) is None where no daemon runs."""

    def __init__(self, composition: Composition, running_since: int | None) -> None:
        self._composition = composition
        self._running_since = running_since
        self._services = composition.services
        self._counted = CountedFigures(composition.services)

    async def document(self) -> Answer:
        """Return the status document."""
        return document(await self._facts(), self._services.clock.now_ms())

    async def overview(self) -> Answer:
        """Return the status document with the chain, the day and what waits."""
        # Only the page asks for it.
        from tillbridge.ledger.day import read_day  # noqa: PLC0415 -- see above
        from tillbridge.web.overview import overview  # noqa: PLC0415 -- see above

        now = self._services.clock.now_ms()
        facts = await self._facts()
        day = await self._services.ledger.read(lambda connection: read_day(connection, now))
        return overview(document(facts, now), facts, day, now)

    async def _facts(self) -> BridgeFacts:
        services = self._services
        snapshot = await services.ledger.read(take_snapshot)
        figures = await self._counted.figures()
        running = self._running_since is not None
        seen = {name: found.orders.pos_seen_at for name, found in self._composition.stores.items()}
        return BridgeFacts(
            version=tillbridge.__version__,
            running=running,
            adapters={name: each.pos.adapter for name, each in services.settings.stores.items()},
            stores=snapshot.stores,
            problems=services.tracker.current(),
            pid=os.getpid() if running else None,
            started_at=self._running_since,
            facts=snapshot.facts,
            last_delivery_at=snapshot.last_delivery_at,
            figures=figures,
            tills={
                name: adapters_of(each.pos_adapter[0], (each.order_adapter or (None,))[0])
                for name, each in services.settings.stores.items()
            },
            pos_seen={name: at for name, at in seen.items() if at is not None},
            communities={
                name: each.community_id for name, each in services.settings.communities.items()
            },
        )


_LEAST_S, _MOST_S = 1.0, 60.0
_TIMES_AS_LONG = 100  # as counting took, they stay as they are


class CountedFigures:
    """The figures by store, from the ledger. Used from the event loop."""

    def __init__(self, services: BridgeServices) -> None:
        self._ledger = services.ledger
        self._clock = services.clock
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


async def measures(services: BridgeServices) -> dict[str, Any]:
    """Return `pushes` (store, state, count), `ledger_bytes` and `ledger_writable`."""
    return {
        "pushes": await services.ledger.read(push_counts),
        "ledger_bytes": _size(services.ledger.data_dir / LEDGER_FILE),
        "ledger_writable": services.ledger.writable,
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
