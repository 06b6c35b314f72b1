"""One store's standing in the daemon: open or paused, its settings and schedule, its taxes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.config import Settings
from tillbridge.core.clock import Clock
from tillbridge.core.supervision import Step
from tillbridge.daemon.audited import AuditTrail
from tillbridge.daemon.pausing import Pausing
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.orders.arrivals import Kept, NewOrder, TakenIn
from tillbridge.service.client import ServiceClient
from tillbridge.stores.keeper import StoreKeeper
from tillbridge.stores.pause import PauseRules
from tillbridge.stores.pauser import StorePauser
from tillbridge.stores.tax_rounds import TaxRounds
from tillbridge.web.acting import acting_as

if TYPE_CHECKING:
    from tillbridge.stores.settings_flow import SettingsFlow

_STATUS_CHANGED = "store.status_changed"
_READ_BY_OTHERS_S = 5.0  # at a start and when the service is back the integration is read first


class StoreStanding:
    """What of a store is neither its menu nor its orders. Used from the event loop."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        base_dir: Path,
        client: ServiceClient,
        service_store_id: Callable[[], str | None],
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
    ) -> None:
        self.name = name
        chosen = settings.stores[name]
        self._look_every_s = settings.service.store_look_s
        self._trail = AuditTrail(ledger, clock)
        self.keeper = StoreKeeper(
            name,
            client,
            service_store_id,
            ledger,
            desk,
            clock=clock,
            on_own_doing=self.own_doing,
        )
        self.keeper.look(within_s=_READ_BY_OTHERS_S)
        self.pausing = Pausing(
            StorePauser(
                self.keeper,
                clock=clock,
                rules=PauseRules(
                    chosen.orders.pause_after_s,
                    chosen.orders.resume_after_s,
                    chosen.orders.max_pauses_per_hour,
                ),
            )
        )
        self.tax = TaxRounds(name, client, service_store_id, ledger, desk, clock=clock)
        self.settings = _settings_flow(
            name, settings, base_dir, client, service_store_id, ledger, desk, clock
        )

    async def own_doing(self, action: str, why: str, reason: str) -> None:
        """Write down what the bridge did by itself, as what people do is written down."""
        with acting_as("bridge"):
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
        match taken:
            case NewOrder(row=row):
                self.tax.order_came(row.payload, row.order_number or row.order_id)
            case Kept(event_type=event_type) if event_type == _STATUS_CHANGED:
                self.keeper.look()
            case _:
                pass

    def service_back(self) -> None:
        """What waited goes out: the service, the consent or the integration is back."""
        # Whoever reads the integration now reads the store's status, too.
        self.keeper.look(within_s=_READ_BY_OTHERS_S)
        self.files_changed()
        self.tax.service_back()

    def daily(self) -> None:
        """Compare what others may have changed."""
        self.tax.daily()

    async def recall(self) -> None:
        """Take up the schedule of the last life, before anything is asked of the keeper."""
        if self.settings:
            await self.settings.recall(self.keeper.follow)

    def steps(self) -> dict[str, Step]:
        """Return what runs for this store, by name; each is supervised."""
        steps: dict[str, Step] = {
            "pausing": self.pausing.run,
            "keeping": partial(self.keeper.run, self._look_every_s),
            "tax": self.tax.run,
        }
        if self.settings:
            steps["settings"] = partial(self.settings.run, self.keeper.follow)
        return steps


def _settings_flow(
    name: str,
    settings: Settings,
    base_dir: Path,
    client: ServiceClient,
    service_store_id: Callable[[], str | None],
    ledger: Ledger,
    desk: ProblemDesk,
    clock: Clock,
) -> "SettingsFlow | None":
    """Return the flow of the restaurant's files and schedule; None where it has neither."""
    chosen = settings.stores[name]
    if not (chosen.settings_file or chosen.hours_file or chosen.schedule.pauses):
        return None  # and what it is made of is not even imported
    from tillbridge.config.restaurant import StoreFiles  # noqa: PLC0415 -- see above
    from tillbridge.stores.settings_flow import (  # noqa: PLC0415 -- see above
        SettingsFlow,
        SettingsRules,
    )

    files = StoreFiles.of(chosen, base_dir)
    rules = SettingsRules(files, chosen.schedule, settings.assumptions.end_of_day)
    return SettingsFlow(name, rules, client, service_store_id, ledger, desk, clock=clock)
