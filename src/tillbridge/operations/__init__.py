"""Every act that a person or a program can ask of the bridge, by subject: see `core.operation`.

Importing any of it declares all.
"""

from tillbridge.core.operation import OPERATIONS
from tillbridge.operations import (
    audit,
    communities,
    connect,
    diagnostics,
    integration,
    items,
    menu,
    orders,
    problems,
    reporting,
    setup,
    status,
    stores,
    tables,
)

__all__ = [
    "OPERATIONS",
    "audit",
    "communities",
    "connect",
    "diagnostics",
    "integration",
    "items",
    "menu",
    "orders",
    "problems",
    "reporting",
    "setup",
    "status",
    "stores",
    "tables",
]
