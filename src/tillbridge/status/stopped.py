"""The status of a bridge that does not answer: what its ledger knows. Light to import."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tillbridge
from tillbridge.core.errors import LedgerError
from tillbridge.ledger.figures import StoreFigures, Zones, read_figures, store_zone
from tillbridge.ledger.reading import Place, place_of
from tillbridge.ledger.snapshot import Snapshot, failed_start, read_snapshot
from tillbridge.status.document import BridgeFacts, document
from tillbridge.status.views import StatusDocument


def status_from_ledger(file: Path, data_dir: Path, configured: Mapping[str, Any]) -> StatusDocument:
    """Return the status document of a bridge that does not answer. Raises LedgerError, ConfigError.

    `configured` is the content of the configuration's `file`.
    """
    now_ms = time.time_ns() // 1_000_000
    place = place_of(file, data_dir, configured)
    is_new = place.url is None and not place.path.exists()
    snapshot = Snapshot({}, (), {}) if is_new else read_snapshot(*place)
    running = snapshot.facts.get("running")
    stopped = running.get("stopped_at") if isinstance(running, dict) else None
    stores = _tables(configured, "stores")
    zones = {
        name: store_zone(store.get("timezone"), snapshot.store(name).facts)
        for name, store in stores.items()
    }
    facts = BridgeFacts(
        version=tillbridge.__version__,
        running=False,
        adapters={name: _adapter(store) for name, store in stores.items()},
        stores=snapshot.stores,
        problems=snapshot.problems,
        stopped_at=stopped if isinstance(stopped, int) else None,
        facts=snapshot.facts,
        last_delivery_at=snapshot.last_delivery_at,
        failed_start=failed_start(data_dir),
        figures=_figures(place, now_ms, zones),
        communities={
            name: str(each.get("community_id", ""))
            for name, each in _tables(configured, "communities").items()
        },
    )
    return document(facts, now_ms)


def _figures(place: Place, now_ms: int, zones: Zones) -> dict[str, StoreFigures]:
    try:
        return read_figures(place.path, now_ms, zones, url=place.url)
    except LedgerError:  # as from a folder this user may not write to: the rest is shown
        return {}


def _tables(configured: Mapping[str, Any], name: str) -> dict[str, Mapping[str, Any]]:
    """Return the tables `[NAME.*]` of a file that nobody has checked."""
    found = configured.get(name)
    tables = found.items() if isinstance(found, dict) else ()
    return {key: each if isinstance(each, dict) else {} for key, each in tables}


def _adapter(store: Mapping[str, Any]) -> str:
    pos = store.get("pos")
    adapter = pos.get("adapter") if isinstance(pos, dict) else None
    return adapter if isinstance(adapter, str) else ""
