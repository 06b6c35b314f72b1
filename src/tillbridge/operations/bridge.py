"""What operations act on: the stores and communities of a bridge, and what they share."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import Settings
    from tillbridge.core.operation import Answer
    from tillbridge.daemon.compose import CommunityServices, Composition
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.ledger.problems import ProblemTracker
    from tillbridge.operations.diagnostics import Diagnostics
    from tillbridge.service.link import ServiceLink


class Bridge:
    """A bridge as operations see it; `is_running` is false where a command works without a daemon.

    `status` returns the status document. `diagnostics` are those of a bridge that runs.
    """

    def __init__(
        self,
        composition: "Composition",
        status: "Callable[[], Awaitable[Answer]]",
        *,
        is_running: bool = False,
        diagnostics: "Diagnostics | None" = None,
    ) -> None:
        self._composition = composition
        self.status = status
        self.is_running = is_running
        self.diagnostics = diagnostics

    @property
    def settings(self) -> "Settings":
        """The whole configuration."""
        return self._composition.bridge.settings

    @property
    def ledger(self) -> "Ledger":
        """The bridge's ledger."""
        return self._composition.bridge.ledger

    @property
    def clock(self) -> Clock:
        """The one clock."""
        return self._composition.bridge.clock

    @property
    def problems(self) -> "ProblemTracker":
        """The problems that are open."""
        return self._composition.bridge.problems

    @property
    def stores(self) -> "Mapping[str, StoreServices]":
        """The stores by their names."""
        return self._composition.stores

    @property
    def communities(self) -> "Mapping[str, CommunityServices]":
        """The communities by their names."""
        return self._composition.communities

    @property
    def base_dir(self) -> Path:
        """Where paths in the settings count from."""
        return self._composition.bridge.base_dir

    @property
    def link(self) -> "ServiceLink":
        """The way to the ordering service, for what is no store's."""
        return self._composition.services.link

    def store(self, name: str) -> "StoreServices":
        """Return a store. Raises ConfigError, which names those there are."""
        found = self._composition.stores.get(name)
        if found is None:
            raise ConfigError(
                _("There is no store {store}.").format(store=name),
                fix=_("There are: {names}.").format(names=", ".join(self._composition.stores)),
            )
        return found

    def later(self, text: str) -> str:
        """Return a sentence, with more where nobody runs who could tell the service now."""
        if self.is_running:
            return text
        return text + " " + _("The bridge is not running: it is told when it runs.")
