"""Events that follow from a write: published in the transaction, handed out after its commit.

A write that is undone (its savepoint, or the whole transaction) publishes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

_KEY = "after_commit"


def publish(connection: Connection, event: object) -> None:
    """Hand `event` to those who listen (`Ledger.on_event`) once this write is committed."""
    _events(connection).append(event)


@contextmanager
def undone_together(connection: Connection) -> Iterator[None]:
    """Forget what was published inside if it raises: it is rolled back with it."""
    before = len(_events(connection))
    try:
        yield
    except BaseException:
        del _events(connection)[before:]
        raise


def take(connection: Connection) -> list[object]:
    """Return what was published since the last call, and forget it."""
    taken = list(_events(connection))
    _events(connection).clear()
    return taken


def _events(connection: Connection) -> list[object]:
    events: list[object] = connection.info.setdefault(_KEY, [])
    return events
