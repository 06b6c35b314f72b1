"""One store's services: its link to the service, its POS, its menu and its orders, composed."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from tillbridge.config import Settings
from tillbridge.core.actor import Actor, acting_as
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext, StoreContext
from tillbridge.core.errors import ConsentLost, Refused
from tillbridge.core.metrics import Metrics
from tillbridge.core.scheduler import Scheduler
from tillbridge.daemon.change_sources import ChangeSources
from tillbridge.daemon.standing import StoreStanding
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.menu.flow import MenuFlow
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.orders.flow import OrdersFlow
from tillbridge.pos.folder_events import FolderEvents
from tillbridge.pos.store_pos import StoreOpening, StorePos
from tillbridge.service.answers import NOT_INTEGRATED
from tillbridge.service.caller import Contact
from tillbridge.service.client import OrderBodies
from tillbridge.service.link import ServiceLink
from tillbridge.service.types import Store
from tillbridge.stores.integration import IntegrationRules, Integrator, settle_s
from tillbridge.stores.integration_reconciler import IntegrationReconciler
from tillbridge.stores.link import IntegrationGate, LinkMonitor, ServiceReach
from tillbridge.stores.vault import VaultTokenStore


@dataclass(frozen=True, slots=True)
class BridgeServices:
    """What all stores share: their context, and what only the composition hands on."""

    bridge: BridgeContext
    link: ServiceLink
    events: FolderEvents
    reach: ServiceReach

    @property
    def settings(self) -> Settings:
        """The whole configuration."""
        return self.bridge.settings

    @property
    def base_dir(self) -> Path:
        """Where paths in the settings count from."""
        return self.bridge.base_dir

    @property
    def ledger(self) -> Ledger:
        """The bridge's ledger."""
        return self.bridge.ledger

    @property
    def tracker(self) -> ProblemTracker:
        """The problems that are open."""
        return self.bridge.problems

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self.bridge.metrics

    @property
    def clock(self) -> Clock:
        """The one clock."""
        return self.bridge.clock


class StoreServices:
    """Everything of one store. Made by the daemon, and by commands that work without it.

    `opening` is done: `tills` are the adapters that came of it.
    """

    def __init__(
        self, name: str, services: BridgeServices, opening: StoreOpening, tills: StorePos
    ) -> None:
        settings = services.settings.stores[name]
        self.name = name
        self.settings = settings
        self.service_store_id: str | None = None
        # Awaited when a new ledger has learnt of the store again.
        self.on_recalled: Callable[[], Awaitable[None]] | None = None
        self._ledger = services.ledger
        self._public_url = services.settings.receiver.public_url
        self._well = False
        self._clock = services.clock
        self._settled_at: float | None = None  # monotonic seconds
        self._settle_least_s = services.settings.service.reintegrate_settle_s
        self._watch = LinkMonitor(
            name, services.ledger, services.tracker, services.reach, clock=services.clock
        )
        self._gate = IntegrationGate(name, self.service_back)
        link = services.link.store(
            VaultTokenStore(services.ledger.vault, name, services.settings.service.base_url),
            bodies=_order_bodies(services.settings),
            on_contact=self._seen,
            hindrance=self._gate.refusal,
        )
        self.tokens = link.tokens
        self.client = link.client
        self.opening = opening
        self.tills = tills
        self.context = StoreContext(services.bridge, name, self.tills, link.client)
        self.integrator = Integrator(
            self.context, rules=_integration_rules(services.settings), gate=self._gate
        )
        self.integrating = IntegrationReconciler(
            self.context,
            self.integrator,
            self._gate,
            link.tokens,
            settles_in_s=self._settles_in_s,
            on_read=self._store_read,
            after_round=self._recall,
        )
        self.catalogue = MenuFlow(self.context)
        self.standing = StoreStanding(
            self.context, lambda: self.service_store_id if self._gate.is_open else None
        )
        self.integrator.on_own_action = self.standing.own_action
        trail = AuditTrail(services.ledger, services.clock)
        effects = Effects(name, self.catalogue, self.standing, trail)
        self.orders = OrdersFlow(self.context, effects)

        self._sources = ChangeSources(name, settings, self.tills, services.events)
        self._sources.subscribe(self.catalogue, self.orders)
        self._sources.watch(self.standing.files(), self.standing.files_changed)

    @property
    def webhook_url(self) -> str:
        """Where the service delivers this store's events."""
        return f"{self._public_url}/webhooks/{self.name}"

    async def connected(self) -> None:
        """Take note of what connecting has changed, here and at every start."""
        self.service_store_id = await self.connected_as()
        if await self.integrator.repository.removed():
            self._gate.block("removed")
        if self._settled_at is None:
            absent = await self._ledger.read(
                partial(absent_s, store=self.name, now_ms=self._clock.now_ms())
            )
            self._settled_at = self._clock.monotonic() + settle_s(absent, self._settle_least_s)
        await self.standing.recall()

    async def _recall(self) -> None:
        """Take note of a store that a new ledger has learnt of again."""
        if self.service_store_id is None and await self.connected_as() is not None:
            await self.connected()
            if self.on_recalled is not None:
                await self.on_recalled()

    async def connected_as(self) -> str | None:
        """Return the store's id at the service; None while it is not connected."""
        found = await self._ledger.read(
            lambda connection: get_fact(connection, self.name, "service_store_id")
        )
        return found if isinstance(found, str) else None

    async def title(self) -> str:
        """Return what guests call the store: as configured, or as the service names it."""
        found = self.settings.tables.title or await self._ledger.read(
            lambda connection: get_fact(connection, self.name, "service_store_name")
        )
        return found if isinstance(found, str) else ""

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return what runs for this store; what fails stops that step of this store only."""
        supervised = self.context.supervisor.tasks(
            {
                "orders": self.orders.run,
                "catalogue": self.catalogue.run,
                "noticing": self._sources.run,
            }
        )
        workers = (*self.standing.workers(), self.integrating.worker)
        supervised |= {worker.name: worker.run() for worker in workers}
        return {f"{self.name}.{step}": running for step, running in supervised.items()}

    def service_back(self) -> None:
        """Go on with what waited: the service, the consent or the integration is back."""
        self.orders.service_back()
        self.catalogue.service_back()
        self.standing.service_back()

    def plan(self, scheduler: Scheduler) -> None:
        """Plan what happens by the clock: all that others may have changed is compared daily."""
        supervisor = self.context.supervisor
        self._sources.plan(scheduler, supervisor)
        if (every_s := self.context.bridge.settings.service.idle_read_s) > 0:
            read = partial(self._watch.read_if_idle, self._read_integration, every_s)
            scheduler.every("idle_read", every_s, read, first_s=every_s, supervisor=supervisor)
        scheduler.daily(
            "full_compare",
            self.settings.menu.full_compare,
            self.settings.timezone,
            self._compare_all,
            supervisor=supervisor,
        )

    async def _compare_all(self) -> None:
        self.catalogue.daily()
        self.standing.daily()

    async def close(self) -> None:
        """Let go of the POS, and write what is still to be written."""
        self.tills.close()
        self.opening.close()
        await self._watch.close()

    def _seen(self, contact: Contact) -> None:
        """Hand on what came of a call; flows that wait are told when the service is back."""
        self._watch.seen(contact)
        code = contact.failure.code if contact.failure else ""
        if code == NOT_INTEGRATED and self._gate.guards(contact.operation):
            self._gate.block(NOT_INTEGRATED)
            self.integrating.look()
        self.context.bridge.metrics.called(self.name, contact)
        well = contact.ok and not isinstance(contact.failure, ConsentLost)
        if well and not self._well:
            self.service_back()
            if self._gate.guards(contact.operation):  # what reads integrations knows already
                self.integrating.look()
        self._well = well

    async def _store_read(self, store: Store, asked_at: float) -> None:
        await self.standing.status.noticed(store.status, asked_at=asked_at)

    async def _read_integration(self) -> None:
        """Read the integration, if the bridge has reason to believe that there is one."""
        if self.service_store_id is None or not self._gate.is_open:
            return
        try:
            await self.client.integration(self.service_store_id)
        except Refused as refused:
            if refused.code == NOT_INTEGRATED:
                self.integrating.look()
            raise

    def _settles_in_s(self) -> float:
        left = 0.0 if self._settled_at is None else self._settled_at - self._clock.monotonic()
        return max(0.0, left)


def _integration_rules(settings: Settings) -> IntegrationRules:
    return IntegrationRules(
        quiet_s=settings.service.reintegrate_quiet_s,
        old_secret_s=settings.receiver.old_secret_s,
        rotate_field=settings.assumptions.rotate_secret_field,
    )


def _order_bodies(settings: Settings) -> OrderBodies:
    assumed = settings.assumptions
    return OrderBodies(
        accept=assumed.accept_body,
        status=assumed.status_body,
        ready=assumed.ready_body,
        preparing=assumed.preparing_status,
    )


class Effects:
    """Hands on what orders find out: to the menu, and to whoever pauses the store.

    What the bridge does by itself is in the audit trail like what people do.
    """

    def __init__(
        self, store: str, catalogue: MenuFlow, standing: StoreStanding, trail: AuditTrail
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._pos_pause = standing.pos_pause
        self._trail = trail
        self.taken_in = standing.taken_in  # what was delivered: taxes, the store's status

    async def items_out(self, external_ids: Sequence[str]) -> None:
        """Take these items off sale."""
        await self._catalogue.out_of_stock(external_ids)
        with acting_as(Actor()):
            for external_id in external_ids:
                await self._trail.note(
                    "item.86", store=self._store, target=external_id, why="out of stock"
                )

    async def price_mismatch(self) -> None:
        """Synchronise the menu again."""
        self._catalogue.resync()

    def pos_offline(self, detail: str) -> None:  # noqa: ARG002 -- the problem is open already
        """Begin to count towards a pause."""
        self._pos_pause.pos_went()

    def pos_closed(self, why: str) -> None:
        """Pause while the till takes no orders."""
        self._pos_pause.pos_closed(why)

    def order_lost(self) -> None:
        """Pause without waiting any longer."""
        self._pos_pause.order_lost()

    def pos_online(self) -> None:
        """Begin to count towards resuming."""
        self._pos_pause.pos_came()


def absent_s(connection: Connection, *, store: str, now_ms: int) -> float:
    """Return for how many seconds nobody received deliveries before this start; 0 at the first.

    A bridge that was killed left no word: then its last contact with the service counts.
    """
    running = get_fact(connection, "", "running") or {}
    contact = get_fact(connection, store, "service_contact") or {}
    known = [
        at
        for at in (running.get("stopped_at"), running.get("started_at"), contact.get("ok_at"))
        if isinstance(at, int)
    ]
    return max(0.0, (now_ms - max(known)) / 1000) if known else 0.0
