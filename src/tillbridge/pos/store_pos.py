"""A store's POS: one adapter for all, or another one for orders; how its adapters are opened.

Each adapter is opened in a thread of its own: code of vendors may hang or break while it is opened.
The store then works with a POS that is offline and says why; other stores do not notice.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from tillbridge.adapter import AdapterContext, Closes, Health, PosOffline
from tillbridge.config.store import StoreSettings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.pos.call_lane import CallLane
from tillbridge.pos.loader import AdapterNotLoaded, open_adapter
from tillbridge.pos.runner import PosRunner, Report

log = get_logger()

OPENS_WITHIN_S = 5.0
"""How long a start waits for all adapters; one that takes longer is used once it is open."""


def check_duties(
    store: str,
    *,
    orders: str,
    takes_orders: bool,
    fallback_prints: bool = True,
) -> None:
    """Raise ConfigError if the adapter `orders` takes none, or the fallback's does not print."""
    if not takes_orders:
        raise ConfigError(
            _(
                "[stores.{store}]: with these options, the adapter {adapter} does not take orders."
            ).format(store=store, adapter=orders),
            fix=_(
                "Set where orders go, or choose another adapter in [stores.{store}.orders]."
            ).format(store=store),
        )
    if not fallback_prints:
        raise ConfigError(
            _("[stores.{store}.fallback]: this adapter cannot replace a till.").format(store=store),
            fix=_('Choose one that prints, for example adapter = "printer".'),
        )


@dataclass(frozen=True, slots=True)
class StorePos:
    """Where the menu is read, and where orders are written; often the same."""

    menu: PosRunner
    orders: PosRunner
    fallback: PosRunner | None = None  # what prints an order that the till cannot take

    async def close(self) -> None:
        """Let go of the adapters."""
        adapters = (self.menu, self.orders, self.fallback)
        for adapter in {id(each): each for each in adapters}.values():
            if adapter is not None:
                await adapter.close()


class NotOpened:
    """Stands in for an adapter that is not open: a POS that is offline, with the reason."""

    def __init__(self, detail: str, fix: str) -> None:
        self._detail = detail
        self._fix = fix

    def health(self) -> Health:
        """Return that the POS is offline."""
        return Health(online=False, detail=self._detail, fix=self._fix)

    def _refuse(self, *_args: object) -> NoReturn:
        """Raise PosOffline: nothing was read or written, and nothing is known."""
        raise PosOffline(self._detail, fix=self._fix)

    read_catalogue = write_ticket = find_ticket = write_marked_ticket = _refuse


class StoreOpening:
    """Opens all adapters of a store, beside each other. Used from the event loop."""

    def __init__(self, store: str, settings: StoreSettings, base_dir: Path) -> None:
        self._context = AdapterContext(
            store=store,
            currency=settings.currency,
            location_id=settings.location_id,
            base_dir=base_dir,
        )
        self._settings = settings
        self._adapters = {table: (name, options) for table, name, options in settings.adapters}
        self._attempts = {table: self._begin(table) for table in self._adapters}
        self._missing: list[str] = []  # the tables of what was not open in time

    def _begin(self, table: str) -> Future[object]:
        """Open an adapter in a thread of its own: it may hang."""
        adapter, options = self._adapters[table]
        lane = CallLane(f"{self._context.store} {table} opens")
        return lane.submit(partial(open_adapter, adapter, options, self._context, table=table))

    async def pos(self, within_s: float, report: Report, may_act: Callable[[], bool]) -> StorePos:
        """Return the store's POS; an adapter that is not open in time is offline in it.

        Raises ConfigError.
        """
        store, settings = self._context.store, self._settings
        opened = [asyncio.wrap_future(attempt) for attempt in self._attempts.values()]
        for each in opened:
            each.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait(opened, timeout=within_s)
        by_table = {
            table: PosRunner(
                self._opened(table, attempt),
                store=store,
                adapter=self._adapters[table][0],
                ticket_timeout_s=settings.orders.write_timeout_s,
                hangs_after_s=settings.pos.hangs_after_s,
                report=report,
                may_act=may_act,
            )
            for table, attempt in self._attempts.items()
        }
        menu = by_table["pos"]
        pos = StorePos(menu, by_table.get("orders", menu), by_table.get("fallback"))
        check_duties(
            store,
            orders=pos.orders.adapter,
            takes_orders=pos.orders.writes_tickets,
            fallback_prints=pos.fallback is None or pos.fallback.marks_tickets,
        )
        return pos

    def _opened(self, table: str, attempt: Future[object]) -> object:
        """Return the adapter's object, or NotOpened for one that hangs or breaks.

        Raises ConfigError if its options are wrong.
        """
        adapter, _options = self._adapters[table]
        if not attempt.done():
            detail = _("The adapter {adapter} does not start: opening it hangs.").format(
                adapter=adapter
            )
        elif (failure := attempt.exception()) is None:
            return attempt.result()
        elif isinstance(failure, ConfigError) and not isinstance(failure, AdapterNotLoaded):
            raise failure
        else:
            text = failure.text if isinstance(failure, ConfigError) else str(failure)
            detail = _("The adapter {adapter} cannot be opened: {detail}").format(
                adapter=adapter, detail=f"{type(failure).__name__}: {text}"
            )
        self._missing.append(table)
        log.error("adapter.not_opened", store=self._context.store, adapter=adapter, detail=detail)
        return NotOpened(
            detail,
            _(
                "Check that the till, its database or the network share with its files can be "
                "reached, and that the adapter works with this bridge. The bridge opens it as "
                "soon as it can."
            ),
        )

    @property
    def is_complete(self) -> bool:
        """Whether all adapters were open in time."""
        return not self._missing

    def can_be_complete(self) -> bool:
        """Whether all that were not could be opened meanwhile; begins those again that failed."""
        ready = True
        for table in self._missing:
            attempt = self._attempts[table]
            if not attempt.done():
                ready = False
            elif attempt.exception() is not None:
                ready = False
                self._attempts[table] = self._begin(table)
        return ready

    def close(self) -> None:
        """Let go of what was opened too late, and nobody has taken."""
        for attempt in (self._attempts[table] for table in self._missing):
            if attempt.done() and attempt.exception() is None:
                adapter = attempt.result()
                if isinstance(adapter, Closes):
                    adapter.close()
