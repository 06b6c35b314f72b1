"""Composes the bridge: the ledger, the link to the service, and what each store needs."""

from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tillbridge.communities import CommunityContext
from tillbridge.communities.flow import CommunityFlow
from tillbridge.communities.hours import Hours
from tillbridge.config import LoadedSettings
from tillbridge.config.restaurant import StoreFiles
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext
from tillbridge.core.log import learn_secret
from tillbridge.core.metrics import Metrics
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.supervision import Supervisor
from tillbridge.daemon.store_services import BridgeServices, StoreServices
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.vault import Vault, client_secret_for
from tillbridge.pos.folder_events import FolderEvents
from tillbridge.pos.store_pos import OPENS_WITHIN_S, StoreOpening
from tillbridge.service.answers import Limits
from tillbridge.service.community_calls import CommunityCalls
from tillbridge.service.link import ServiceLink
from tillbridge.service.oauth import App
from tillbridge.stores.consent import ConsentFlow
from tillbridge.stores.link import ServiceReach

if TYPE_CHECKING:
    from tillbridge.service.tokens import AppTokenStore


@dataclass(frozen=True, slots=True)
class Composition:
    """The bridge with its stores, nothing running yet."""

    bridge: BridgeContext
    services: BridgeServices
    stores: dict[str, StoreServices]
    consents: ConsentFlow
    communities: "dict[str, CommunityServices]" = field(default_factory=dict)


@asynccontextmanager
async def composed(
    loaded: LoadedSettings, names: Iterable[str] | None = None
) -> AsyncIterator[Composition]:
    """Build everything (of these stores only), and close it in order at the end.

    Raises ConfigError, LedgerLocked, LedgerError.
    """
    settings, clock = loaded.settings, Clock()
    async with AsyncExitStack() as open_things:
        ledger = await Ledger.open(loaded.data_dir, clock=clock)
        open_things.push_async_callback(ledger.close)
        tracker = await ProblemTracker.start(ledger, clock=clock)
        open_things.push_async_callback(tracker.settle)
        link = service_link(loaded, ledger.vault, clock)
        open_things.push_async_callback(link.close)
        bridge = BridgeContext(
            settings=settings,
            base_dir=loaded.base_dir,
            ledger=ledger,
            problems=tracker,
            scheduler=Scheduler(clock, Supervisor("", tracker)),
            metrics=Metrics(),
            clock=clock,
        )
        services = BridgeServices(bridge, link, FolderEvents(), ServiceReach(tracker, clock=clock))
        stores = {}
        openings = {
            name: StoreOpening(name, settings.stores[name], loaded.base_dir)
            for name in (settings.stores if names is None else names)
        }
        ends = clock.monotonic() + OPENS_WITHIN_S  # for all of them, beside each other
        for name, opening in openings.items():
            left_s = max(0.0, ends - clock.monotonic())
            tills = await opening.pos(left_s, tracker.report)
            found = StoreServices(name, services, opening, tills)
            open_things.push_async_callback(found.close)
            await found.connected()
            stores[name] = found
        keepers = {name: found.tokens for name, found in stores.items()}
        consents = ConsentFlow(link, keepers, ledger, clock=clock)
        communities = _communities(services, stores) if names is None else {}
        yield Composition(bridge, services, stores, consents, communities)


def _communities(
    services: BridgeServices, stores: dict[str, StoreServices]
) -> "dict[str, CommunityServices]":
    if not services.settings.communities:
        return {}
    return build(services, stores)


def service_link(loaded: LoadedSettings, vault: Vault, clock: Clock) -> ServiceLink:
    """Return the link to the service. Raises ConfigError where the app's secret cannot be had."""
    service = loaded.settings.service

    def kept() -> str | None:
        return client_secret_for(vault, service.base_url)

    learn_secret(loaded.client_secret(kept).get_secret_value())

    def client_secret() -> str:
        # Read when it is sent, so that a rotated one counts without a restart.
        secret = loaded.client_secret(kept).get_secret_value()
        learn_secret(secret)
        return secret

    def token_store() -> "AppTokenStore":
        # Only where such a token is asked for.
        from tillbridge.stores.vault import VaultAppTokens  # noqa: PLC0415 -- (as above)

        return VaultAppTokens(vault, base_url=service.base_url, client_id=service.client_id)

    return ServiceLink(
        service.base_url,
        App(
            service.client_id,
            client_secret,
            service.redirect_uri,
            loaded.settings.assumptions.scope_field,
            token_store,
            signup_with_secret=service.signup_auth == "basic",
        ),
        clock=clock,
        timeout_s=service.timeout_s,
        refresh_early_s=service.refresh_early_s,
        limits=Limits(
            max_attempts=service.max_attempts,
            backoff_first_s=service.backoff_first_s,
            backoff_cap_s=service.backoff_cap_s,
        ),
    )


class CommunityServices:
    """Everything of one community; `stores` are those of this bridge, by their local names."""

    def __init__(
        self, name: str, services: BridgeServices, stores: Mapping[str, StoreServices]
    ) -> None:
        settings = services.settings.communities[name]
        assumed = services.settings.assumptions
        members = settings.stores or list(stores)
        link = services.link.app(
            audience=assumed.community_audience,
            on_contact=partial(services.metrics.called, f"communities/{name}"),
        )
        self.name = name
        context = CommunityContext(
            name,
            settings,
            CommunityCalls(
                link.caller,
                settings.community_id,
                secret_field=assumed.subscription_secret_field,
            ),
            services.ledger,
            services.tracker,
            services.clock,
            partial(_ids, stores, members),
        )
        files = {each: StoreFiles.of(stores[each].settings, services.base_dir) for each in members}
        with_files = {each: found for each, found in files.items() if found.paths()}
        hours = Hours(
            context,
            with_files if settings.push_hours else {},
            hours_field=assumed.override_hours_field,
        )
        self.flow = CommunityFlow(context, hours, public_url=services.settings.receiver.public_url)

    @property
    def key(self) -> str:
        """The end of its webhook's path."""
        return self.flow.context.key

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return what runs for this community; each is supervised."""
        return {f"{self.key} {each.name}": each.run() for each in self.flow.workers}


def build(
    services: BridgeServices, stores: Mapping[str, StoreServices]
) -> dict[str, CommunityServices]:
    """Return the services of every community of the configuration, by name."""
    return {
        name: CommunityServices(name, services, stores) for name in services.settings.communities
    }


def _ids(stores: Mapping[str, StoreServices], members: list[str]) -> dict[str, str | None]:
    return {name: stores[name].service_store_id for name in members}
