"""What the API was asked and how it answered: for tests, and for vendors who wonder."""

import itertools
import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.settings import SandboxSettings

_HIDDEN = ("client_secret", "refresh_token", "code")


@dataclass(slots=True)
class Entry:
    """One call.

    `applied` says that it reached its endpoint; `fault` names the rule that spoiled it.
    """

    seq: int
    at: str
    method: str
    path: str
    query: str
    body: Any = None
    status: int | None = None
    code: str | None = None
    fault: str | None = None
    applied: bool = False


#: Where the middlewares of one call find its entry.
ENTRY: web.RequestKey[Entry] = web.RequestKey("entry", Entry)


class RequestLog:
    """The last calls, in memory."""

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._body_bytes = settings.request_log_body_bytes
        self._entries: deque[Entry] = deque(maxlen=settings.request_log_size)
        self._numbers = itertools.count(1)

    def open(self, method: str, path: str, query: str) -> Entry:
        """Begin the entry of a call."""
        entry = Entry(next(self._numbers), self._clock.timestamp(), method, path, query)
        self._entries.append(entry)
        return entry

    def keep_body(self, entry: Entry, raw: bytes) -> None:
        """The parsed body without its secrets, or the size of one too large or no JSON."""
        if not raw:
            return
        if len(raw) > self._body_bytes:
            entry.body = {"bytes": len(raw)}
            return
        try:
            body = json.loads(raw)
        except ValueError:
            entry.body = {"bytes": len(raw)}
            return
        if isinstance(body, dict):
            body = {name: "(hidden)" if name in _HIDDEN else value for name, value in body.items()}
        entry.body = body

    def clear(self) -> None:
        """Forget all entries; their numbers go on."""
        self._entries.clear()

    def since(self, cursor: int) -> list[Entry]:
        """Entries with a number above `cursor`, oldest first."""
        return [entry for entry in self._entries if entry.seq > cursor]


def entry_body(entry: Entry) -> dict[str, Any]:
    """An entry as the control API shows it."""
    return {
        "seq": entry.seq,
        "at": entry.at,
        "method": entry.method,
        "path": entry.path,
        "query": entry.query,
        "status": entry.status,
        "code": entry.code,
        "body": entry.body,
        "applied": entry.applied,
        "fault": entry.fault,
    }
