"""What the groups of calls have in common."""

from tillbridge.service.caller import Caller, Outcome, Write
from tillbridge.service.gate import Priority
from tillbridge.service.retry import Kind
from tillbridge.service.transport import Answer, Request


class Calls:
    """A group of calls of one store's merchant."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def _read(self, operation: str, *path: str, priority: Priority) -> Answer:
        url = self._caller.origin.url(*path)
        return (await self._caller.call(_get(operation, url), priority)).answer

    async def _read_url(self, operation: str, url: str, *, priority: Priority) -> Answer:
        return (await self._caller.call(_get(operation, url), priority)).answer

    async def _write(
        self,
        request: tuple[str, str, tuple[str, ...]],
        body: bytes | None,
        *,
        priority: Priority,
        write: Write | None = None,
    ) -> Outcome:
        """Carry out a write; `request` is its operation, method and path below the root."""
        operation, method, path = request
        url = self._caller.origin.url(*path)
        return await self._caller.call(
            Request(operation, method, url, Kind.WRITE, body), priority, write
        )


def _get(operation: str, url: str) -> Request:
    return Request(operation, "GET", url, Kind.READ)
