"""One store's services: its link to the service, its POS, its menu and its orders, composed."""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from tillbridge.adapter import Change
from tillbridge.core.context import StoreContext
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Step
from tillbridge.daemon.checks import count_down
from tillbridge.ledger.audit import AuditTrail
from tillbridge.ledger.facts import facts_named, get_fact
from tillbridge.menu.flow import MenuFlow
from tillbridge.model.restaurant import zone_of
from tillbridge.orders.flow import OrdersFlow
from tillbridge.orders.intake import IntakeResult
from tillbridge.pos.store_pos import StoreOpening, StorePos
from tillbridge.pos.watch import FileWatch, FolderEvents
from tillbridge.service.client import OrderBodies
from tillbridge.service.types import Store
from tillbridge.stores.consent import VaultTokenStore
from tillbridge.stores.integration import Integrator, settle_s
from tillbridge.stores.integration_reconciler import IntegrationReconciler
from tillbridge.stores.link import LinkMonitor
from tillbridge.stores.reconciler import PosPause, StoreStatusReconciler
from tillbridge.stores.settings import SettingsFlow
from tillbridge.stores.taxes import TaxMonitor

if TYPE_CHECKING:
    from tillbridge.operations.bridge import Bridge

_STATUS_CHANGED = "store.status_changed"
_READ_BY_OTHERS_S = 5.0  # at a start and when the service is back the integration is read first
_READ_ALL_THE_SAME_S = 60.0


class StoreServices:
    """Everything of one store. Made by the daemon, and by commands that work without it.

    `opening` is done: `pos` are the adapters that came of it. Used from the event loop.
    """

    def __init__(self, name: str, bridge: "Bridge", opening: StoreOpening, pos: StorePos) -> None:
        shared, service = bridge.context, bridge.settings.service
        self.name = name
        self.settings = chosen = bridge.settings.stores[name]
        self.service_store_id: str | None = None
        self.webhook_url = f"{bridge.settings.receiver.public_url}/webhooks/{name}"
        self.opening = opening
        self.pos = pos
        self._ledger, self._clock = shared.ledger, shared.clock
        self._started_at = bridge.started_at
        self._settled_at: float | None = None  # monotonic seconds
        self._trail = AuditTrail(shared.ledger, shared.clock)
        self._link = LinkMonitor(name, shared, bridge.reach)
        self._link.on_back = self.service_back
        assumed = bridge.settings.assumptions
        access = bridge.link.store(
            VaultTokenStore(shared.ledger.vault, name, service.base_url),
            bodies=OrderBodies(
                accept=assumed.accept_body,
                status=assumed.status_body,
                ready=assumed.ready_body,
                preparing=assumed.preparing_status,
            ),
            on_contact=self._link.seen,
            hindrance=self._link.refusal,
            may_act=partial(shared.may_act, name),
        )
        self.tokens, self.client = access.tokens, access.client
        self.context = context = StoreContext(shared, name, pos, access.client)
        self.integrator = Integrator(context, self._link)
        self.integrating = IntegrationReconciler(
            context,
            self.integrator,
            self._link,
            self.tokens,
            settles_in_s=self._settles_in_s,
            on_read=self._store_read,
            after_round=self._recall,
        )
        self._link.on_unsure = self.integrating.look
        self.store_status = StoreStatusReconciler(context, self._reachable_store_id)
        self.store_status.look(within_s=_READ_BY_OTHERS_S)
        self.pos_pause = PosPause(self.store_status)
        self.taxes = TaxMonitor(context, self._reachable_store_id)
        # None where the store has neither files of its own nor a schedule.
        self.settings_flow: SettingsFlow | None = None
        if chosen.settings_file or chosen.hours_file or chosen.schedule.pauses:
            self.settings_flow = SettingsFlow(
                context, self._reachable_store_id, on_schedule=self.store_status.follow
            )
        self.menu = MenuFlow(context)
        self.orders = OrdersFlow(context, self)
        self.deliveries_arrived = self.orders.deliveries_arrived
        self.drain = self.orders.drain
        self._watch = self._watched(bridge.events)

    def _watched(self, events: FolderEvents) -> FileWatch:
        """Subscribe the flows to what is new in the POS.

        That is heard by its files or by its own word; what has neither is read every `poll_s`
        seconds. A POS that tells of changes itself is asked all the same, in case one was missed.
        """
        menu, orders, settings = self.pos.menu, self.pos.orders, self.settings
        watch = FileWatch(
            events,
            store=self.name,
            poll_s=settings.pos.poll_s,
            hangs_after_s=settings.pos.hangs_after_s,
            on_hang=menu.hangs,
        )
        flow, settle_ms = self.menu, settings.menu.settle_ms
        self._polled: list[Callable[[], None]] = []
        of_menu: dict[Change, Callable[[], None]] = {}
        parts = (
            (Change.CATALOGUE, menu.reads_catalogue, menu.catalogue_files, flow.export_changed),
            (
                Change.AVAILABILITY,
                menu.reads_availability,
                menu.availability_files,
                flow.availability_changed,
            ),
            (Change.TABLES, menu.reads_tables, menu.table_files, flow.tables_changed),
        )
        for change, is_read, files, on_change in parts:
            if is_read:
                of_menu[change] = on_change
            if paths := files():
                watch.subscribe(paths, settle_ms, on_change)
            elif is_read:
                self._polled.append(on_change)
        of_orders = {
            Change.UPDATES: self.orders.updates_changed,
            Change.HEALTH: self.orders.pos_changed,
        }
        if orders is menu:  # one adapter, which is asked to tell once
            of_menu |= of_orders
        else:
            orders.on_change(partial(_notify, of_orders))
        menu.on_change(partial(_notify, of_menu))
        for folder in orders.update_folders():
            watch.subscribe_folder(folder, self.orders.updates_changed)
            self.orders.updates_are_watched()
        if self.settings_flow is not None and (paths := self.settings_flow.files.paths()):
            watch.subscribe(paths, settle_ms, self.settings_flow.changed)
        return watch

    async def connected(self, known: "Known | None" = None) -> None:
        """Take note of what connecting has changed, here and at every start.

        `known` is what the ledger knows of the store, if that was read with others'.
        """
        if known is None:
            known = (await self._ledger.read(read_known, [self.name]))[self.name]
        self.service_store_id = known.store_id
        if known.is_removed:
            self._link.block("removed")
        if self._settled_at is None:
            absent_s = known.absent_s(self._clock.now_ms(), self._started_at)
            least_s = self.context.bridge.settings.service.reintegrate_settle_s
            self._settled_at = self._clock.monotonic() + settle_s(absent_s, least_s)
        # The schedule of the last run counts before anything is asked of the reconciler.
        if self.settings_flow is not None:
            await self.settings_flow.recall()

    async def connected_as(self) -> str | None:
        """Return the store's id at the service; None while it is not connected."""
        return await self._ledger.get_fact(self.name, "service_store_id", str)

    async def title(self) -> str:
        """Return what guests call the store: as configured, or as the service names it."""
        named = await self._ledger.get_fact(self.name, "service_store_name", str)
        return self.settings.tables.title or named or ""

    def tasks(self) -> Mapping[str, Coroutine[Any, Any, object]]:
        """Return all that runs for this store; what fails stops that step of this store only."""
        steps: dict[str, Step] = {
            "orders": self.orders.run,
            "catalogue": self.menu.run,
            "file_watch": self._watch.run,
        }
        running = self.context.supervisor.tasks(steps)
        workers = [self.pos_pause.worker, self.store_status.worker, self.taxes.worker]
        if self.settings_flow is not None:
            workers.append(self.settings_flow.worker)
        running |= {each.name: each.run() for each in (*workers, self.integrating.worker)}
        return {f"{self.name}.{step}": each for step, each in running.items()}

    @property
    def zone(self) -> tzinfo | None:
        """The time zone: the configuration's, else that of its hours; None is this machine's."""
        hours = None if self.settings_flow is None else self.settings_flow.hours
        return zone_of(self.settings.timezone or (hours.timezone if hours else ""))

    def plan(self, scheduler: Scheduler) -> None:
        """Plan what happens by the clock: all that others may have changed is compared daily."""
        every = partial(scheduler.every, supervisor=self.context.supervisor)
        if self._polled:
            poll_s = self.settings.pos.poll_s
            if self.pos.menu.notifies_changes:
                poll_s = max(poll_s, _READ_ALL_THE_SAME_S)
            every("poll", poll_s, self._poll, first_s=poll_s)
        if (every_s := self.context.bridge.settings.service.idle_read_s) > 0:
            read = partial(self._link.read_if_idle, self._read_integration, every_s)
            every("idle_read", every_s, read, first_s=every_s)
        scheduler.daily(
            "full_compare",
            self.settings.menu.full_compare,
            self.settings.timezone,
            self._compare_all,
            supervisor=self.context.supervisor,
        )

    async def go_on(self) -> None:
        """Go on with a consent that is new, or is known again."""
        await count_down(self.context.bridge, self.name, self.tokens)
        self.service_back()

    def service_back(self) -> None:
        """Go on with what waited: the service, the consent or the integration is back."""
        self.orders.service_back()
        self.menu.service_back()
        # Whoever reads the integration now reads the store's status, too.
        self.store_status.look(within_s=_READ_BY_OTHERS_S)
        if self.settings_flow is not None:
            self.settings_flow.changed()
        self.taxes.service_back()

    async def close(self) -> None:
        """Let go of the POS, and write what is still to be written."""
        self._watch.close()
        self.orders.close()
        await self.pos.close()
        self.opening.close()
        await self._link.close()
        await self.tokens.close()

    # -- what orders bring about elsewhere

    def delivery_processed(self, result: IntakeResult) -> None:
        """Learn from what was delivered: how orders are taxed, that the status has changed."""
        order = None if result.change is None else result.change.order
        if result.outcome == "order" and order is not None:
            self.taxes.order_arrived(order.payload, order.order_number or order.id)
            self.store_status.order_arrived()
        elif result.event_type == _STATUS_CHANGED:
            self.store_status.look()

    async def items_out(self, external_ids: Sequence[str]) -> None:
        """Take these items off sale. What the bridge does by itself is audited like the rest."""
        await self.menu.out_of_stock(external_ids)
        for external_id in external_ids:
            await self._trail.own("item.86", self.name, target=external_id, why="out of stock")

    # -- inside

    async def _recall(self) -> None:
        """Take note of a store that a new ledger has learnt of again."""
        if self.service_store_id is None and await self.connected_as() is not None:
            await self.connected()
            await self.go_on()

    async def _poll(self) -> None:
        for on_change in self._polled:
            on_change()

    async def _compare_all(self) -> None:
        self.menu.daily()
        self.taxes.daily()

    async def _store_read(self, store: Store, asked_at: float) -> None:
        await self.store_status.noticed(store.status, asked_at=asked_at)

    async def _read_integration(self) -> None:
        """Read the integration, if the bridge has reason to believe that there is one."""
        if (store_id := self._reachable_store_id()) is not None:
            await self.client.integration(store_id)

    def _reachable_store_id(self) -> str | None:
        """Return the service's id of the store; None where it is not integrated now."""
        return self.service_store_id if self._link.is_open else None

    def _settles_in_s(self) -> float:
        return max(0.0, (self._settled_at or 0.0) - self._clock.monotonic())


def _notify(listeners: Mapping[Change, Callable[[], None]], change: Change) -> None:
    if change in listeners:  # of what nobody reads nobody hears
        listeners[change]()


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger knows of a store when it begins: its id at the service, and whether it left.

    `contact` is its last one with the service, `running` the last start and end of the bridge.
    """

    store_id: str | None
    is_removed: bool
    contact: Mapping[str, Any]
    running: Mapping[str, Any]

    def absent_s(self, now_ms: int, started_at: int | None) -> float:
        """Return for how many seconds nobody received deliveries before this start; 0 at the first.

        `started_at` is this run's start. A bridge that was killed left no word: then its last
        contact with the service counts.
        """
        if started_at is not None and self.running.get("started_at") == started_at:
            return 0.0  # this run has noted its start: it has been receiving since
        known = [
            at
            for at in (
                self.running.get("stopped_at"),
                self.running.get("started_at"),
                self.contact.get("ok_at"),
            )
            if isinstance(at, int)
        ]
        return max(0.0, (now_ms - max(known)) / 1000) if known else 0.0


def read_known(connection: Connection, stores: Collection[str]) -> Mapping[str, Known]:
    """Return what is known of these stores, in as many reads for all as for one."""
    ids, contacts, removed = (
        facts_named(connection, name)
        for name in ("service_store_id", "service_contact", "integration_removed")
    )
    running = get_fact(connection, "", "running", dict) or {}
    return {
        store: Known(
            ids[store] if isinstance(ids.get(store), str) else None,
            removed.get(store) is not None,
            contacts.get(store) or {},
            running,
        )
        for store in stores
    }
