"""A store's POS: one adapter for all, or another one for orders; how its adapters are opened.

Each adapter is opened in a thread of its own: code of vendors may hang or break while it is opened.
The store then goes on with a POS that is offline and says why; all other stores do not notice.
"""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tillbridge.adapter import AdapterContext, Closes, Health, PosOffline
from tillbridge.config import StoreSettings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.pos.call_thread import CallThread
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
    stands_in: bool = True,
) -> None:
    """Raise ConfigError where the adapter `orders` takes none, or the fallback's does not print."""
    if not takes_orders:
        raise ConfigError(
            _("[stores.{store}]: the adapter {adapter}, as configured, takes no orders.").format(
                store=store, adapter=orders
            ),
            fix=_(
                "Tell it where orders go, or choose another adapter in [stores.{store}.orders]."
            ).format(store=store),
        )
    if not stands_in:
        raise ConfigError(
            _("[stores.{store}.fallback]: its adapter cannot stand in for a till.").format(
                store=store
            ),
            fix=_('Choose one that prints: adapter = "printer".'),
        )


@dataclass(frozen=True, slots=True)
class StorePos:
    """Where the menu is read, and where orders are written; often the same."""

    menu: PosRunner
    orders: PosRunner
    fallback: PosRunner | None = None  # what prints an order that the till cannot take

    def close(self) -> None:
        """Let the adapters' threads end."""
        adapters = (self.menu, self.orders, self.fallback)
        for adapter in {id(each): each for each in adapters}.values():
            if adapter is not None:
                adapter.close()


class NotOpened:
    """Stands in for an adapter that is not open: a POS that is offline, with the reason."""

    def __init__(self, detail: str, fix: str) -> None:
        self._detail = detail
        self._fix = fix

    def health(self) -> Health:
        """Return that the POS is offline."""
        return Health(online=False, detail=self._detail, fix=self._fix)

    def _refuse(self, *_args: object) -> NoReturn:
        """Raise PosOffline: nothing was read, nothing was written, nobody can tell."""
        raise PosOffline(self._detail, fix=self._fix)

    read_catalogue = write_ticket = find_ticket = write_marked_ticket = _refuse


class AdapterOpening:
    """The opening of one adapter of a store. Used from the event loop."""

    def __init__(
        self, adapter: str, options: dict[str, Any], context: AdapterContext, *, table: str
    ) -> None:
        self.adapter = adapter
        self._options = options
        self._context = context
        self._table = table
        self._thread = CallThread(f"{context.store} {table} opens")
        self._attempt = self._begin()

    def _begin(self) -> Future[object]:
        return self._thread.submit(
            lambda: open_adapter(self.adapter, self._options, self._context, table=self._table)
        )

    async def opened(self, within_s: float) -> object:
        """Return the adapter's object, or NotOpened for one that hangs or breaks.

        Raises ConfigError where its options are wrong.
        """
        opened = asyncio.wrap_future(self._attempt)
        opened.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait([opened], timeout=within_s)
        if not self._attempt.done():
            return self._not_opened(
                _("The adapter {adapter} does not get ready: opening it hangs.").format(
                    adapter=self.adapter
                )
            )
        failure = self._attempt.exception()
        if failure is None:
            self._thread.close()
            return self._attempt.result()
        if isinstance(failure, ConfigError) and not isinstance(failure, AdapterNotLoaded):
            raise failure
        text = failure.text if isinstance(failure, ConfigError) else str(failure)
        return self._not_opened(
            _("The adapter {adapter} cannot be opened: {detail}").format(
                adapter=self.adapter, detail=f"{type(failure).__name__}: {text}"
            )
        )

    def _not_opened(self, detail: str) -> NotOpened:
        log.error(
            "adapter.not_opened", store=self._context.store, adapter=self.adapter, detail=detail
        )
        return NotOpened(
            detail,
            _(
                "Check that the till, its database or the network share of its files answers, and "
                "that the adapter fits this bridge. It is opened as soon as that works."
            ),
        )

    def can_be_opened(self) -> bool:
        """Whether an attempt has succeeded meanwhile; one that has failed is begun again."""
        if not self._attempt.done():
            return False
        failure = self._attempt.exception()
        if failure is not None:
            self._attempt = self._begin()
            return False
        return True

    def close(self) -> None:
        """Close what an attempt has opened and nobody has taken."""
        self._thread.close()
        if not self._attempt.done():
            self._attempt.cancel()
        elif self._attempt.exception() is None:
            adapter = self._attempt.result()
            if isinstance(adapter, Closes):
                adapter.close()


class StoreOpening:
    """Opens all adapters of a store, beside each other. Used from the event loop."""

    def __init__(self, store: str, settings: StoreSettings, base_dir: Path) -> None:
        context = AdapterContext(
            store=store,
            currency=settings.currency,
            location_id=settings.location_id,
            base_dir=base_dir,
        )
        self._store = store
        self._settings = settings
        self._openings = {
            table: AdapterOpening(adapter, options, context, table=table)
            for table, adapter, options in settings.adapters
        }
        self._missing: list[AdapterOpening] = []

    async def pos(self, within_s: float, report: Report) -> StorePos:
        """Return the store's POS; an adapter that is not open in time is offline in it.

        Raises ConfigError.
        """
        settings, by_table = self._settings, {}
        ends = asyncio.get_running_loop().time() + within_s
        for table, opening in self._openings.items():
            left_s = max(0.0, ends - asyncio.get_running_loop().time())
            adapter = await opening.opened(left_s)
            if isinstance(adapter, NotOpened):
                self._missing.append(opening)
            by_table[table] = PosRunner(
                adapter,
                store=self._store,
                adapter=opening.adapter,
                ticket_timeout_s=settings.orders.write_timeout_s,
                hangs_after_s=settings.pos.hangs_after_s,
                report=report,
            )
        menu = by_table["pos"]
        pos = StorePos(menu, by_table.get("orders", menu), by_table.get("fallback"))
        check_duties(
            self._store,
            orders=pos.orders.adapter,
            takes_orders=pos.orders.writes_tickets,
            stands_in=pos.fallback is None or pos.fallback.marks_tickets,
        )
        return pos

    @property
    def is_complete(self) -> bool:
        """Whether all adapters were open in time."""
        return not self._missing

    def can_be_complete(self) -> bool:
        """Whether all that were not could be opened meanwhile; begins those again that failed."""
        ready = [opening.can_be_opened() for opening in self._missing]
        return all(ready)

    def close(self) -> None:
        """Let go of what was opened too late."""
        for opening in self._missing:
            opening.close()
