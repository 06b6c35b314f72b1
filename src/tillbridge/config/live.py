"""Which settings count at once when the file changes, and which wait for a restart."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.config.bridge import Settings

# What counts at once. A name that ends with a dot: everything below it.
LIVE = (
    "bridge.log_level",
    "bridge.language",
    "bridge.keep_personal_data_days",
    "bridge.keep_history_days",
    "bridge.keep_backups",
    "bridge.disk_budget_mib",
    "bridge.drain_s",
    "status_page.users.",
    "status_page.allowed_hosts",
    "status_page.session_idle_s",
    "status_page.session_longest_s",
)
# These open the page, and `listen` says to whom: a page that was opened to a network for its
# passwords must not lose them before it stops listening there.
_GUARDED_BY_LISTEN = "status_page."


@dataclass(frozen=True, slots=True)
class Change:
    """Dotted keys that differ: those that count at once, and those that wait for a restart."""

    live: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def compare(old: Settings, new: Settings) -> Change:
    """Return what differs between two configurations. Pure."""
    differ = sorted(_differing(old.model_dump(), new.model_dump(), ""))
    listen_moves = "status_page.listen" in differ

    def counts_at_once(key: str) -> bool:
        if listen_moves and key.startswith(_GUARDED_BY_LISTEN):
            return False
        return any(key.startswith(live) if live.endswith(".") else key == live for live in LIVE)

    live = tuple(key for key in differ if counts_at_once(key))
    return Change(live, tuple(key for key in differ if key not in live))


def _differing(old: Any, new: Any, key: str) -> Iterator[str]:  # noqa: ANN401 -- any value of a setting
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in {*old, *new}:
            yield from _differing(old.get(name), new.get(name), f"{key}.{name}" if key else name)
    elif old != new:
        yield key
