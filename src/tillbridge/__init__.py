"""tillbridge: the bridge between a restaurant's till and its online orders."""

from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# -- what this version of the program fits together with; light: `--version` prints it

ADAPTER_API = 1
SPECIFICATION = "2.0.0"  # of the ordering service: Versioning

_MIGRATIONS = Path(__file__).parent / "ledger" / "migrations" / "versions"


def ledger_schemas() -> tuple[str, ...]:
    """Return every version of the ledger's schema that this program knows, oldest first."""
    return tuple(sorted(path.name[:4] for path in _MIGRATIONS.glob("[0-9]*_*.py")))


def compatibility() -> dict[str, Any]:
    """Return the versions that count for what stands around the program, for JSON."""
    return {
        "ledger_schema": ledger_schemas()[-1],
        "adapter_api": ADAPTER_API,
        "specification": SPECIFICATION,
    }
