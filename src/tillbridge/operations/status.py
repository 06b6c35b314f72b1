"""How the bridge is: the status document, the page's overview, and what is measured."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import urlsplit

import tillbridge
from tillbridge.config.values import is_loopback
from tillbridge.core.actor import Role
from tillbridge.core.operation import operation
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.day import read_day
from tillbridge.ledger.figures import store_zone, take_figures
from tillbridge.ledger.pushes import push_counts
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.model.instant import to_iso
from tillbridge.pos.loader import adapters_of
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.overview import overview as overview_of

if TYPE_CHECKING:
    from tillbridge.core.clock import Clock
    from tillbridge.ledger.figures import StoreFigures, Zones
    from tillbridge.ledger.leases import Cluster
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.operations.bridge import Bridge
    from tillbridge.status.overview import Overview
    from tillbridge.status.views import MemberView, StatusDocument

_LEDGER_FILES = ("", "-wal", "-shm")
_LEAST_S, _MOST_S = 0.1, 60.0
_TIMES_AS_LONG = 20  # as counting took, they stay as they are


class Measures(TypedDict):
    """What is measured; `pushes` are store, state and count."""

    status: "StatusDocument"
    pushes: Sequence[tuple[str, str, int]]
    ledger_bytes: int
    ledger_writable: bool


@operation("status", role=Role.LOOK, reads=True, before_setup=True)
async def status(bridge: "Bridge") -> "StatusDocument":
    """Return the status document."""
    return document(await _facts(bridge), bridge.clock.now_ms())


async def own_status(bridge: "Bridge") -> "StatusDocument":
    """Return the status document of what this bridge serves: each of several reports its own."""
    facts = await _facts(bridge)
    if bridge.cluster is not None:
        facts = replace(
            facts,
            adapters={name: each for name, each in facts.adapters.items() if name in bridge.stores},
            communities={
                name: each for name, each in facts.communities.items() if name in bridge.communities
            },
            problems=bridge.problems.current(),
        )
    return document(facts, bridge.clock.now_ms())


@operation("status.overview", role=Role.LOOK, reads=True, before_setup=True)
async def overview(bridge: "Bridge") -> "Overview":
    """Return the status document with the chain, the day and what waits."""
    now = bridge.clock.now_ms()
    facts = await _facts(bridge)
    day = await bridge.ledger.read(read_day, now)
    practice = is_loopback(urlsplit(bridge.settings.service.base_url).hostname or "")
    return overview_of(document(facts, now), facts, day, now, practice=practice)


@operation("status.measures", role=Role.LOOK, reads=True, before_setup=True)
async def measures(bridge: "Bridge") -> "Measures":
    """Return what is measured."""
    return {
        "status": await status(bridge),
        "pushes": await bridge.ledger.read(push_counts),
        "ledger_bytes": _size(bridge.ledger.data_dir / LEDGER_FILE),
        "ledger_writable": bridge.ledger.writable,
    }


class CountedFigures:
    """How well orders go, by store. Counting takes long, so it is done once in a while only."""

    def __init__(self, ledger: "Ledger", clock: "Clock") -> None:
        self._ledger = ledger
        self._clock = clock
        self._counted: Mapping[str, StoreFigures] = {}
        self._fresh_until = float("-inf")

    async def figures(self, zones: "Zones") -> "Mapping[str, StoreFigures]":
        """Return them as they are, or were a little while ago: a minute at most."""
        began = self._clock.monotonic()
        if began >= self._fresh_until:
            now_ms = self._clock.now_ms()
            self._counted = await self._ledger.read(take_figures, now_ms, zones)
            ended = self._clock.monotonic()
            stays_s = min(_MOST_S, max(_LEAST_S, (ended - began) * _TIMES_AS_LONG))
            self._fresh_until = ended + stays_s
        return self._counted


async def _facts(bridge: "Bridge") -> "BridgeFacts":
    snapshot = await bridge.ledger.read(take_snapshot)
    stores = bridge.settings.stores
    seen = {name: found.orders.presence.seen_at for name, found in bridge.stores.items()}
    took = {name: found.orders.presence.took_ms for name, found in bridge.stores.items()}
    if bridge.cluster is not None:
        for each in bridge.cluster.bridges:
            for name, (seen_at, took_ms) in (each.detail.get("tills") or {}).items():
                if name not in bridge.stores and each.holder:
                    seen[name], took[name] = seen_at, took_ms
    return BridgeFacts(
        version=tillbridge.__version__,
        running=bridge.is_running,
        adapters={name: each.pos.adapter for name, each in stores.items()},
        stores=snapshot.stores,
        problems=bridge.problems.all(),
        pid=os.getpid() if bridge.is_running else None,
        started_at=bridge.started_at,
        facts=snapshot.facts,
        last_delivery_at=snapshot.last_delivery_at,
        figures=await bridge.figures.figures(
            {
                name: store_zone(each.timezone, snapshot.store(name).facts)
                for name, each in stores.items()
            }
        ),
        tills={
            name: adapters_of(each.pos_adapter[0], (each.order_adapter or (None,))[0])
            for name, each in stores.items()
        },
        pos_seen={name: at for name, at in seen.items() if at is not None},
        pos_took_ms={name: ms for name, ms in took.items() if ms is not None},
        communities={name: each.community_id for name, each in bridge.settings.communities.items()},
        bridges={} if bridge.cluster is None else _members(bridge.cluster),
    )


def _members(cluster: "Cluster") -> "dict[str, MemberView]":
    """Return all bridges on this ledger by name, with what each serves and since when."""
    return {
        each.name: {
            "version": each.version,
            "url": each.url,
            "started_at": to_iso(each.started_at),
            "last_seen_at": to_iso(each.seen_at),
            "alive": bool(each.holder),
            "serves": {
                lease.store: to_iso(lease.since)
                for lease in cluster.leases
                if each.holder and lease.holder == each.holder
            },
        }
        for each in cluster.bridges
    }


def _size(path: Path) -> int:
    """Return how many bytes the ledger takes, its log included."""
    total = 0
    for end in _LEDGER_FILES:
        try:
            total += path.with_name(path.name + end).stat().st_size
        except FileNotFoundError:
            continue
    return total
