"""Communities: a food hall's catalogue, orders and events, beside the stores that are part of it.

A context is what the parts of a community's flow share; what they are is in `communities.flow`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.config.store import CommunitySettings
from tillbridge.core.context import BridgeContext
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.community import key_of
from tillbridge.service.community_calls import CommunityCalls

# The stores of this bridge by their local names: their ids at the service, None if a store is
# not connected yet.
Members = Callable[[], Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class CommunityContext:
    """A community of the configuration; `key` is in the ledger where a store's name may."""

    bridge: BridgeContext
    name: str
    calls: CommunityCalls
    members: Members

    @property
    def settings(self) -> CommunitySettings:
        """The community's own settings."""
        return self.bridge.settings.communities[self.name]

    @property
    def key(self) -> str:
        """The end of its webhook's path, and its name in the ledger."""
        return key_of(self.name)

    @property
    def service_ids(self) -> dict[str, str]:
        """The connected member stores: local name to id at the service."""
        return {name: store_id for name, store_id in self.members().items() if store_id}

    async def fact(self, name: str) -> dict[str, Any]:
        """Return what is stored under this name; {} where nothing is."""
        return await self.bridge.ledger.get_fact(self.key, name, dict) or {}

    def report(self, code: str, subject: str | None, *found: Found) -> None:
        """Make what is open of a problem exactly what is found; of all its subjects for None."""
        self.bridge.problems.report(Scope(self.key, frozenset({code}), subject), found)
