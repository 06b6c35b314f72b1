"""What `/metrics` tells beside the status document. Imported only where somebody measures."""

from pathlib import Path
from typing import Any

from tillbridge.daemon.rooms import House
from tillbridge.ledger.database import LEDGER_FILE
from tillbridge.ledger.pushes import push_counts

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
