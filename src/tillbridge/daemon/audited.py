"""Writes down what people ask of connecting and setting up: all that is no mere reading.

What is an operation (`core.operation`) is written down by its dispatcher.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from tillbridge.core.errors import BridgeError
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.web.ports import Control

# Operations that change nothing. Every other one is written down, a new one too.
READS = frozenset(
    {
        "connect_result",
        "measures",
        "overview",
        "setup.show",
        "status",
    }
)
# Arguments worth keeping: no customer's data, no secret.
_KEPT = frozenset({"reintegrate", "store_id"})


def audited(control: Control, trail: AuditTrail) -> Control:
    """Return the same operations; each that is not among `READS` leaves an entry."""
    return cast("Control", _Audited(control, trail, ""))


class _Audited:
    """Stands before an object of operations, and before those it has for each subject."""

    def __init__(self, inner: object, trail: AuditTrail, prefix: str) -> None:
        self._inner = inner
        self._trail = trail
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the operation is
        value = getattr(self._inner, name)
        path = f"{self._prefix}{name}"
        if not callable(value):
            return _Audited(value, self._trail, f"{path}.")
        return value if path in READS else self._noted(path, value)

    def _noted(self, path: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(operation)
        async def noted(*args: Any, **named: Any) -> Any:  # noqa: ANN401 -- (as above)
            given = inspect.signature(operation).bind(*args, **named).arguments
            note = functools.partial(self._trail.note, _action(path), **_about(given))
            try:
                answer = await operation(*args, **named)
            except BridgeError as failure:
                await note(ok=False, failure=type(failure).__name__)
                raise
            await note(ok=not isinstance(answer, Mapping) or answer.get("ok") is not False)
            return answer

        return noted


def _action(path: str) -> str:
    """Return an operation's name in the trail: `connect_choose` is "connect.choose"."""
    return path if "." in path else path.replace("_", ".", 1)


def _about(given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in given.items() if name in _KEPT and value is not None}
    store = given.get("store")
    return {"store": store if isinstance(store, str) else "", **kept}
