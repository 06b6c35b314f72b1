"""The program with a ledger that does not wait for its disk: `python hasty_bridge.py ...`.

A test of power cuts that finds nothing lost here would prove nothing.
"""

from tillbridge.cli import main
from tillbridge.ledger import sqlite

if __name__ == "__main__":  # a test that asks where this lies keeps its own ledger as it is
    hasty = tuple(
        pragma.replace("synchronous = FULL", "synchronous = NORMAL")
        for pragma in sqlite._WRITER_PRAGMAS
    )
    assert hasty != sqlite._WRITER_PRAGMAS
    sqlite._WRITER_PRAGMAS = hasty
    main()
