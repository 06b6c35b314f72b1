"""The daemon: builds everything, supervises the tasks, and ends in order (floor 6)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tillbridge.without import without, without_certificates, without_file_types

if TYPE_CHECKING:
    from tillbridge.configfile import LoadedSettings

# All are memory for nothing; see docs/decisions/0010.
with without("greenlet"), without_certificates(), without_file_types():
    from tillbridge.daemon.alone import SigningUp, alone, connect_alone
    from tillbridge.daemon.connecting import Wanted
    from tillbridge.daemon.process import run
    from tillbridge.stores.consent import ConsentRequest

__all__ = [
    "ConsentRequest",
    "SigningUp",
    "Wanted",
    "alone",
    "connect_alone",
    "examine_alone",
    "run",
]


def examine_alone(
    loaded: "LoadedSettings", *, hung: bool, told: "Callable[[dict[str, Any]], None]"
) -> "dict[str, Any]":
    """Examine what can be seen without a daemon; see `examining`."""
    # A bridge that nobody examines carries nothing of it.
    from tillbridge.daemon.examining import examine_alone as examine  # noqa: PLC0415 -- see above

    return examine(loaded, hung=hung, told=told)
