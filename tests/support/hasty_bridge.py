"""The program with a ledger that does not wait for its disk: `python hasty_bridge.py ...`.

A test of power cuts that finds nothing lost here would prove nothing.
"""

from tillbridge.cli import main
from tillbridge.ledger import database

_HASTY: tuple[str, ...] = tuple(
    pragma.replace("synchronous = FULL", "synchronous = NORMAL")
    for pragma in database._WRITER_PRAGMAS
)
assert database._WRITER_PRAGMAS != _HASTY
database._WRITER_PRAGMAS = _HASTY

if __name__ == "__main__":
    main()
