"""One store's standing in the daemon: open or paused, its settings and schedule, its taxes."""

from collections.abc import Callable
from pathlib import Path

from tillbridge.config.restaurant import StoreFiles
from tillbridge.core.actor import Actor, acting_as
from tillbridge.core.context import StoreContext
from tillbridge.core.worker import Worker
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.orders.intake import TakenIn
from tillbridge.stores.closure import PauseRules
from tillbridge.stores.reconciler import PosPause, StoreStatusReconciler
from tillbridge.stores.settings import SettingsFlow, SettingsRules
from tillbridge.stores.taxes import TaxMonitor

_STATUS_CHANGED = "store.status_changed"
_READ_BY_OTHERS_S = 5.0  # at a start and when the service is back the integration is read first


class StoreStanding:
    """What of a store is neither its menu nor its orders. Used from the event loop."""

    def __init__(self, context: StoreContext, service_store_id: Callable[[], str | None]) -> None:
        bridge, self.name = context.bridge, context.store
        self._trail = AuditTrail(bridge.ledger, bridge.clock)
        self.status = StoreStatusReconciler(
            context, service_store_id, on_own_action=self.own_action
        )
        self.status.look(within_s=_READ_BY_OTHERS_S)
        orders = context.settings.orders
        self.pos_pause = PosPause(
            self.status,
            PauseRules(orders.pause_after_s, orders.resume_after_s, orders.max_pauses_per_hour),
        )
        self.tax = TaxMonitor(context, service_store_id)
        self.settings: SettingsFlow | None = None
        if rules := _settings_rules(context):
            self.settings = SettingsFlow(
                context, rules, service_store_id, on_schedule=self.status.follow
            )

    async def own_action(self, action: str, why: str, reason: str) -> None:
        """Write down what the bridge did by itself, as what people do is written down."""
        with acting_as(Actor()):
            await self._trail.note(action, store=self.name, why=why, reason=reason)

    def files(self) -> tuple[Path, ...]:
        """Return the files whose changes have to be told of."""
        return self.settings.files.paths() if self.settings else ()

    def files_changed(self) -> None:
        """Read the restaurant's files again."""
        if self.settings:
            self.settings.changed()

    def taken_in(self, taken: TakenIn) -> None:
        """Learn from what was delivered: how orders are taxed, that the status has changed."""
        if taken.outcome == "order" and taken.change is not None:
            row = taken.change.after
            self.tax.order_came(row.payload, row.order_number or row.order_id)
        elif taken.event_type == _STATUS_CHANGED:
            self.status.look()

    def service_back(self) -> None:
        """What waited goes out: the service, the consent or the integration is back."""
        # Whoever reads the integration now reads the store's status, too.
        self.status.look(within_s=_READ_BY_OTHERS_S)
        self.files_changed()
        self.tax.service_back()

    def daily(self) -> None:
        """Compare what others may have changed."""
        self.tax.daily()

    async def recall(self) -> None:
        """Take up the schedule of the last life, before anything is asked of the status."""
        if self.settings:
            await self.settings.recall()

    def workers(self) -> list[Worker]:
        """Return what works for this store."""
        workers = [self.pos_pause.worker, self.status.worker, self.tax.worker]
        return [*workers, self.settings.worker] if self.settings else workers


def _settings_rules(context: StoreContext) -> SettingsRules | None:
    """Return how the restaurant's files and schedule count; None where it has neither."""
    bridge, chosen = context.bridge, context.settings
    if not (chosen.settings_file or chosen.hours_file or chosen.schedule.pauses):
        return None
    files = StoreFiles.of(chosen, bridge.base_dir)
    return SettingsRules(files, chosen.schedule, bridge.settings.assumptions.end_of_day)
