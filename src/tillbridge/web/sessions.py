"""Who is signed in: random ids, known here by their hash, that end by idleness and by age.

In memory only: a restart of the bridge signs everybody out. Monotonic seconds.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tillbridge.web.roles import Visitor

_MOST = 200  # the oldest go first


@dataclass(slots=True)
class _Session:
    visitor: Visitor
    began: float
    seen: float


class Sessions:
    """The sessions of a bridge's life. A page that refreshes itself is no sign of a person."""

    def __init__(self, *, idle_s: float, longest_s: float) -> None:
        self._idle_s = idle_s
        self._longest_s = longest_s
        self._open: OrderedDict[bytes, _Session] = OrderedDict()

    def begin(self, visitor: Visitor, now: float) -> str:
        """Return the secret id of a new session."""
        secret = secrets.token_urlsafe(32)
        self._open[_known_as(secret)] = _Session(visitor, now, now)
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return secret

    def visitor(self, secret: str, now: float, *, person: bool = True) -> Visitor | None:
        """Return whose session it is; None where it is unknown or over.

        `person` says that somebody asked; otherwise the idle time goes on.
        """
        key = _known_as(secret)
        session = self._open.get(key)
        if session is None:
            return None
        if now - session.seen > self._idle_s or now - session.began > self._longest_s:
            del self._open[key]
            return None
        if person:
            session.seen = now
        return session.visitor

    def obey(self, *, idle_s: float, longest_s: float, stays: Callable[[Visitor], bool]) -> None:
        """Let other times count, and end the sessions of those who may not stay."""
        self._idle_s = idle_s
        self._longest_s = longest_s
        for key in [key for key, each in self._open.items() if not stays(each.visitor)]:
            del self._open[key]

    def end(self, secret: str) -> None:
        """Sign out."""
        self._open.pop(_known_as(secret), None)


def _known_as(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
