"""Who acts just now, for the audit trail: set at the edge (page, command), read where it acts."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Actor:
    """Who it is ("page:anna", "command:root", "bridge"), and whether an entry was written yet."""

    who: str = "bridge"
    role: str = ""
    noted: bool = False


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting_as(who: str, role: str = "") -> Iterator[Actor]:
    """Let what is done inside be done by `who`."""
    actor = Actor(who, role)
    token = _actor.set(actor)
    try:
        yield actor
    finally:
        _actor.reset(token)


def actor() -> Actor:
    """Return who acts; the bridge itself where nobody said otherwise."""
    return _actor.get() or Actor()
