"""Reads how the service taxes a store, daily and when asked, and compares it.

With the taxes of the menu that the service accepted, and with those of the latest orders. What is
kept is a fact: the service's taxes, what differs in the menu, how the latest orders were taxed.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, LedgerError, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.supervision import Supervisor
from tillbridge.core.worker import Worker
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu import all_items
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.service.client import ServiceClient
from tillbridge.service.types import Tax, TaxConfig
from tillbridge.stores.tax import Levied, OrderTax, TaxedItem, Taxes, differences, taxed_orders

_LATEST = 5  # orders that are compared: a fault that was mended is over after so many
_AGAIN_S = 900.0
_SETTLED_S = 30.0  # after connecting: the first menu is on its way
_A_DAY_MS = 24 * 3600 * 1000
_FACT = "tax"

log = get_logger()


class TaxRounds:
    """One store. `service_store_id` is None until it is integrated."""

    def __init__(
        self,
        store: str,
        client: ServiceClient,
        service_store_id: Callable[[], str | None],
        ledger: Ledger,
        desk: ProblemDesk,
        *,
        clock: Clock,
    ) -> None:
        self._store = store
        self._client = client
        self._service_store_id = service_store_id
        self._ledger = ledger
        self._desk = desk
        self._clock = clock
        self.worker = Worker("tax", self._step, Supervisor(store, desk), clock)
        self._arrived: list[OrderTax] = []
        self._whole_at: float | None = None  # on the monotonic clock
        self._perhaps = False

    def daily(self) -> None:
        """Read and compare everything soon."""
        self._whole_at = self._clock.monotonic()
        self.worker.wake()

    def service_back(self) -> None:
        """Read and compare everything in a while, where that is due."""
        self._perhaps = True
        self.worker.wake()

    def order_came(self, payload: str, number: str) -> None:
        """Compare how an order was taxed; `payload` is its data as JSON."""
        data = json.loads(payload)
        if isinstance(data, Mapping):
            self._arrived.append(taxed_orders(data, number))
            self.worker.wake()

    async def known(self) -> dict[str, Any] | None:
        """Return the fact as it was last kept; None where nothing was checked yet."""
        fact = await self._ledger.read(lambda db: get_fact(db, self._store, _FACT))
        return fact if isinstance(fact, dict) else None

    async def check(self) -> dict[str, Any]:
        """Read the service's taxes and compare; return the fact. Raises BridgeError."""
        store_id = self._service_store_id()
        if store_id is None:
            raise BridgeError(
                _("The store {store} is not connected yet.").format(store=self._store),
                fix=_("Run: tillbridge connect {store}").format(store=self._store),
            )
        read = await self._client.tax_config(store_id)
        config = _kept(read)
        items = await self._ledger.read(self._items)
        at = self._clock.now_ms()

        def update(before: Mapping[str, Any]) -> dict[str, Any]:
            same = before.get("config") == config
            return {
                "config": config,
                "items": list(differences(_taxes(config), items)),
                # Orders that were taxed by other taxes say nothing about these.
                "orders": before.get("orders", []) if same else [],
                "checked_at": at,
            }

        return await self._update(update)

    async def _is_old(self) -> bool:
        at = (await self.known() or {}).get("checked_at")
        return not isinstance(at, int) or self._clock.now_ms() - at > _A_DAY_MS

    async def _step(self) -> float | None:
        """Do what is due, and return after how many seconds something is; None for nothing."""
        try:
            if self._arrived:
                await self._take_orders()
            if self._perhaps:
                self._perhaps = False
                if self._whole_at is None and await self._is_old():
                    self._whole_at = self._clock.monotonic() + _SETTLED_S
            if self._whole_at is None:
                return None
            left_s = self._whole_at - self._clock.monotonic()
            if left_s > 0:
                return left_s
            if self._service_store_id() is not None:
                await self.check()
        except (ServiceError, LedgerError) as failure:
            log.warning("tax.not_read", store=self._store, detail=failure.text)
            return _AGAIN_S
        self._whole_at = None
        return None

    async def _take_orders(self) -> None:
        arrived, self._arrived = self._arrived[-_LATEST:], []
        kept = [
            {"number": each.number, "inclusive": each.inclusive, "rates": list(each.rates)}
            for each in arrived
        ]
        await self._update(
            lambda before: {**before, "orders": [*before.get("orders", []), *kept][-_LATEST:]}
        )

    async def _update(
        self, update: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Change the fact, and open or close the problem."""
        at = self._clock.now_ms()

        def write(db: Connection) -> dict[str, Any]:
            fact = update(get_fact(db, self._store, _FACT) or {})
            config = fact.get("config")
            told: list[str] = [*fact.get("items", [])]
            if config is not None:
                told += differences(_taxes(config), (), map(_order, fact["orders"]))
            fact["differences"] = told
            put_fact(db, self._store, _FACT, fact, at=at)
            return fact

        fact = await self._ledger.write(write)
        found = fact["differences"]
        if found:
            more = len(found) - 1
            detail = (
                found[0] if not more else _("{first} (and {n} more)").format(first=found[0], n=more)
            )
            self._desk.open("tax.differs", self._store, detail=detail)
        else:
            self._desk.close("tax.differs", self._store)
        return fact

    def _items(self, db: Connection) -> list[TaxedItem]:
        return [
            TaxedItem(
                each.item.name,
                each.item.tax.name,
                tuple(component.rate for component in each.item.tax.components),
            )
            for each in all_items(db, self._store).values()
            if each.item.tax is not None
        ]


def _kept(read: TaxConfig) -> dict[str, Any]:
    """Return the tax configuration as a JSON value."""
    return {
        "enabled": read.enabled is not False,
        "level": read.tax_level or "",
        "pricing_mode": read.pricing_mode,
        "default": read.default_tax_id,
        "taxes": [_levied(tax) for tax in read.taxes],
    }


def _levied(tax: Tax) -> dict[str, Any]:
    return {
        "tax_id": tax.tax_id or "",
        "name": tax.name or "",
        "components": [
            [each.rate or "0", bool(each.compound), each.agency or ""] for each in tax.components
        ],
    }


def _taxes(config: Mapping[str, Any]) -> Taxes:
    taxes = tuple(
        Levied(
            each["tax_id"],
            each["name"],
            tuple((rate, compound) for rate, compound, _agency in each["components"]),
        )
        for each in config["taxes"]
    )
    modes = {"inclusive": True, "exclusive": False}
    return Taxes(
        config["enabled"],
        config["level"],
        modes.get(config["pricing_mode"]),
        next((each for each in taxes if each.tax_id == config["default"]), None),
        taxes,
    )


def _order(kept: Mapping[str, Any]) -> OrderTax:
    return OrderTax(kept["number"], kept["inclusive"], tuple(kept["rates"]))
