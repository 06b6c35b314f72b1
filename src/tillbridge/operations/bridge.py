"""What operations act on: a composed bridge, with its stores and communities."""

from dataclasses import dataclass, field
from datetime import tzinfo
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.core.errors import BridgeError, ConfigError, NotServedHere, ServedElsewhere
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from tillbridge.communities.flow import CommunityFlow
    from tillbridge.config.bridge import Settings
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.config.secrets import VaultOfSettings
    from tillbridge.core.actor import Actor
    from tillbridge.core.clock import Clock
    from tillbridge.core.context import BridgeContext
    from tillbridge.core.operation import Answer
    from tillbridge.daemon.store_services import StoreServices
    from tillbridge.ledger.leases import Cluster
    from tillbridge.ledger.ledger import Ledger
    from tillbridge.ledger.problems import ProblemTracker
    from tillbridge.operations.connect import Connections
    from tillbridge.operations.diagnostics import Diagnostics
    from tillbridge.operations.setup import Setup
    from tillbridge.operations.status import CountedFigures
    from tillbridge.pos.watch import FolderEvents
    from tillbridge.service.client import ServiceLink
    from tillbridge.stores.consent import ConsentFlow
    from tillbridge.stores.link import ServiceReach


if TYPE_CHECKING:
    Ask = Callable[[ServedElsewhere, str, Mapping[str, Any], Actor], Awaitable[Answer]]


class Mode(Enum):
    """What a bridge is composed for."""

    RUN = "run"  # the daemon
    UNCONFIGURED = "unconfigured"  # the daemon before there is a store: set-up, and nothing else
    EXCLUSIVE = "exclusive"  # one command while no daemon runs; it holds the ledger's lock


@dataclass(slots=True)
class Bridge:
    """A composed bridge. The last fields are there where a daemon runs, which sets them."""

    mode: Mode
    loaded: "LoadedSettings"
    context: "BridgeContext"
    link: "ServiceLink"
    events: "FolderEvents"
    reach: "ServiceReach"
    figures: "CountedFigures"
    consents: "ConsentFlow"
    stores: "dict[str, StoreServices]" = field(default_factory=dict)
    communities: "dict[str, CommunityFlow]" = field(default_factory=dict)
    started_at: int | None = None  # ms since the epoch
    connections: "Connections | None" = None
    setup: "Setup | None" = None
    diagnostics: "Diagnostics | None" = None
    # Whether this bridge may act for a store now, where several share a ledger; from any thread.
    may_act: "Callable[[str], bool]" = lambda _key: True
    # Lets another bridge perform what concerns a store that it serves.
    ask: "Ask | None" = None
    cluster: "Cluster | None" = None  # the bridges on this ledger, as they were last read

    @property
    def is_running(self) -> bool:
        """Whether a daemon runs, and this is inside it."""
        return self.mode in {Mode.RUN, Mode.UNCONFIGURED}

    @property
    def is_set_up(self) -> bool:
        """Whether there is a store; without one there is nothing to ask but how to set one up."""
        return self.mode is not Mode.UNCONFIGURED

    @property
    def settings(self) -> "Settings":
        """The whole configuration."""
        return self.context.settings

    @property
    def ledger(self) -> "Ledger":
        """The bridge's ledger."""
        return self.context.ledger

    @property
    def clock(self) -> "Clock":
        """The one clock."""
        return self.context.clock

    @property
    def problems(self) -> "ProblemTracker":
        """The problems that are open."""
        return self.context.problems

    @property
    def base_dir(self) -> Path:
        """Where paths in the settings count from."""
        return self.context.base_dir

    def store(self, name: str) -> "StoreServices":
        """Return a store.

        Raises ConfigError, which names those there are; BridgeError for one that is not open now.
        """
        found = self.stores.get(name)
        if found is not None:
            return found
        if name in self.settings.stores:
            raise self.not_here(name)
        raise ConfigError(
            _("There is no store {store}.").format(store=name),
            fix=_("Choose from: {names}.").format(names=", ".join(self.settings.stores)),
        )

    def not_here(self, key: str) -> BridgeError:
        """Return why a store or community is not open: another bridge serves it, or it starts."""
        server = None if self.cluster is None else self.cluster.server_of(key)
        if self.cluster is not None and server is not None and server.holder != self.cluster.holder:
            return ServedElsewhere(
                _("The bridge {bridge} serves {store}.").format(bridge=server.name, store=key),
                holder=server.holder,
                fix=_("Ask there."),
            )
        return NotServedHere(
            _("The store {store} is being started.").format(store=key),
            fix=_("Try again in a moment."),
        )

    def begun_elsewhere(self, state: str) -> ServedElsewhere | None:
        """Return which other bridge has begun this sign-in, by its state; None: this one, or none.

        The merchant may come back to any of those behind one address.
        """
        holder = state.partition(".")[0]
        if self.cluster is None or holder == self.cluster.holder:
            return None
        for each in self.cluster.bridges:
            if each.holder and each.holder == holder:
                text = _("The bridge {bridge} has begun this sign-in.").format(bridge=each.name)
                return ServedElsewhere(text, holder=holder, fix=_("Ask there."))
        return None

    def zone(self, store: str = "") -> tzinfo | None:
        """Return the time zone of a store; else the one that all have. None is this machine's."""
        if store in self.stores:
            return self.stores[store].zone
        zones = {each.zone for each in self.stores.values()}
        return zones.pop() if len(zones) == 1 else None

    def later(self, text: str) -> str:
        """Return a sentence, with more if no bridge runs that could notify the service now."""
        if self.is_running:
            return text
        return text + " " + _("The bridge is not running. It applies this at its next start.")


def vault_of(bridge: Bridge) -> "VaultOfSettings":
    """Return what looks up the secret of a setting in the bridge's vault."""
    from tillbridge.ledger.vault import secret_of_setting

    return partial(secret_of_setting, bridge.ledger.vault, bridge.settings.service.base_url)


def not_running() -> BridgeError:
    """Return the failure of what only a running bridge can do."""
    return BridgeError(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
