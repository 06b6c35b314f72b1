"""Who acts just now, and what they may: set at the edge (page, command), read where it acts.

Nobody says in a request who they are: the page knows who has signed in, and a command whose user it
runs as.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum

from tillbridge.core.i18n import _


class Role(IntEnum):
    """What somebody may do; each may do all that those before it may.

    `ANYBODY` needs no password (the page that asks for one), `LOOK` sees everything, `STAFF` also
    acts on orders and takes items off sale, `TECHNICIAN` does the rest.
    """

    ANYBODY = 0
    LOOK = 1
    STAFF = 2
    TECHNICIAN = 3

    @property
    def word(self) -> str:
        """The role as the configuration and the audit trail write it."""
        return self.name.lower()


@dataclass(slots=True)
class Actor:
    """Who it is ("page:anna", "command:root", "bridge"), and whether an entry was written yet.

    The bridge itself has no role: it asks nobody.
    """

    who: str = "bridge"
    role: Role | None = None
    noted: bool = False

    @property
    def name(self) -> str:
        """The person's own name, for people."""
        _kind, _colon, name = self.who.partition(":")
        return name or _("somebody at the page")


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting_as(actor: Actor) -> Iterator[Actor]:
    """Let what is done inside be done by `actor`."""
    token = _actor.set(actor)
    try:
        yield actor
    finally:
        _actor.reset(token)


def current_actor() -> Actor:
    """Return who acts; the bridge itself where nobody is named."""
    return _actor.get() or Actor()


def by_whom(by: object) -> str:
    """Return the name of who acted (`page:anna`, `command:root`) for people."""
    kind, _colon, name = str(by or "").partition(":")
    if kind == "command":
        return _("{name} on the command line").format(name=name or "?")
    if kind == "page":
        return name or _("somebody at the page")
    return str(by or "?")
