"""How the service taxes a store: read daily and on request, compared with menu and orders.

Specification: Tax configuration; Menu push body (Item tax); Order (tax_breakdown). Rates are
percent as decimal text. A POS has no compound components: its rates are compared one by one with
the service's, and by their total if they differ. Names of agencies differ between systems and are
not compared. Stored as a fact: the service's taxes, what differs in the menu, how the latest orders
were taxed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.core.errors import BridgeError, LedgerError, ServiceError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import Worker
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu import all_items
from tillbridge.model.numbers import printable
from tillbridge.service.types import TaxConfig

_LATEST = 5  # orders to compare: a repaired fault disappears after this many
_AGAIN_S = 900.0
_SETTLED_S = 30.0  # after connecting, until the first menu has arrived
_A_DAY_MS = 24 * 3600 * 1000
_NAME = 60  # characters of a name or number in a sentence

log = get_logger()

Rates = tuple[str, ...]

_MOST = Decimal(1_000_000)  # percent: anything above is not a tax, and must not cause a failure


class Component(NamedTuple):
    """A part of a tax; a compound one also applies to those before it."""

    rate: str
    compound: bool = False
    agency: str = ""


@dataclass(frozen=True, slots=True)
class Levied:
    """A tax of the service, with its components in order."""

    tax_id: str
    name: str
    components: tuple[Component, ...] = ()


@dataclass(frozen=True, slots=True)
class Taxes:
    """How the service taxes a store, as stored; `default` is the id of a tax."""

    enabled: bool
    level: str
    pricing_mode: str | None
    default: str | None
    taxes: tuple[Levied, ...] = ()

    @classmethod
    def of(cls, read: TaxConfig) -> Self:
        """Return the service's answer as a value."""
        return cls(
            read.enabled is not False,
            read.tax_level or "",
            read.pricing_mode,
            read.default_tax_id,
            tuple(
                Levied(
                    tax.tax_id or "",
                    tax.name or "",
                    tuple(
                        Component(each.rate or "0", bool(each.compound), each.agency or "")
                        for each in tax.components
                    ),
                )
                for tax in read.taxes
            ),
        )

    @property
    def inclusive(self) -> bool | None:
        """Whether prices include the tax; None if not given."""
        return {"inclusive": True, "exclusive": False}.get(self.pricing_mode or "")


@dataclass(frozen=True, slots=True)
class TaxedItem:
    """What the till says about an item's tax: its name and its components' rates."""

    name: str
    tax_name: str
    rates: Rates


@dataclass(frozen=True, slots=True)
class OrderTax:
    """How an order was taxed; `inclusive` None if unknown. No customer data."""

    number: str
    inclusive: bool | None
    rates: Rates


@dataclass(frozen=True, slots=True)
class TaxFact:
    """What is stored: the service's taxes, what differs in the menu, the latest orders."""

    config: Taxes | None = None
    items: list[str] = field(default_factory=list)
    orders: tuple[OrderTax, ...] = ()
    checked_at: int | None = None
    differences: list[str] = field(default_factory=list)


def differences(
    taxes: Taxes, items: Iterable[TaxedItem], orders: Iterable[OrderTax] = ()
) -> tuple[str, ...]:
    """Return the differences, one sentence each; empty if there are none."""
    return (*_of_items(taxes, items), *_of_orders(taxes, orders))


def taxed_orders(data: Mapping[str, Any], number: str) -> OrderTax:
    """Return how an order was taxed according to its `data`. Total."""
    lines = data.get("tax_breakdown")
    found = [
        _rate_text(each.get("rate"))
        for each in (lines if isinstance(lines, list) else ())
        if isinstance(each, Mapping) and each.get("amount") != 0
    ]
    inclusive = data.get("prices_include_tax")
    return OrderTax(
        number,
        inclusive if isinstance(inclusive, bool) else None,
        tuple(sorted({rate for rate in found if rate is not None}, key=Decimal)),
    )


def total(components: Iterable[Component]) -> Decimal:
    """Return the total of the components in percent, with compound ones on top of the others."""
    levied = Decimal(0)
    for each in components:
        part = _decimal(each.rate)
        levied += part * (1 + levied / 100) if each.compound else part
    return levied


def _of_items(taxes: Taxes, items: Iterable[TaxedItem]) -> Iterator[str]:
    groups: dict[tuple[Decimal, Decimal | None], list[TaxedItem]] = {}
    for item in items:
        against = _against(taxes, item)
        if not any(_agree(item.rates, each.components) for each in against):
            till = total(map(Component, item.rates))
            service = total(against[0].components) if len(against) == 1 else None
            groups.setdefault((till, service), []).append(item)
    for (till, service), found in sorted(groups.items(), key=lambda each: -len(each[1])):
        count = len(found)
        where = ngettext("{n} item", "{n} items", count).format(n=count)
        if not taxes.enabled:
            at_service = _("the service charges no tax")
        elif service is None:
            at_service = _("the service has no such tax")
        else:
            at_service = _("the service says {rate}").format(rate=_percent(service))
        yield _("the till says {rate} on {where}, {says}; first: {first}").format(
            rate=_percent(till),
            where=where,
            says=at_service,
            first=printable(found[0].name, most=_NAME),
        )


def _against(taxes: Taxes, item: TaxedItem) -> list[Levied]:
    """Return the taxes one of which the item has to match."""
    if not taxes.enabled:
        return [Levied("", "")]
    default = [each for each in taxes.taxes if each.tax_id == taxes.default]
    if taxes.level == "store" and default:
        return default[:1]
    # Which item has which tax is not given: it is the one with its name, or any.
    named = [each for each in taxes.taxes if _same(each.name, item.tax_name)]
    if named:
        return named
    others = list(taxes.taxes)
    # An untaxed item has no tax.
    return [*others, Levied("", "")] if total(map(Component, item.rates)) == 0 else others


def _agree(till: Rates, service: Sequence[Component]) -> bool:
    ours = sorted(rate for each in till if (rate := _decimal(each)))
    theirs = sorted(rate for each in service if (rate := _decimal(each.rate)))
    return ours == theirs or sum(ours) == total(service)


def _of_orders(taxes: Taxes, orders: Iterable[OrderTax]) -> Iterator[str]:
    levied = taxes.taxes if taxes.enabled else ()
    known = {_decimal(each.rate) for tax in levied for each in tax.components}
    known |= {total(tax.components) for tax in levied}
    strange: dict[Decimal, str] = {}
    turned = ""
    for order in orders:
        for rate in map(_decimal, order.rates):
            if rate and rate not in known:
                strange.setdefault(rate, order.number)
        if None not in {order.inclusive, taxes.inclusive} and order.inclusive != taxes.inclusive:
            turned = turned or order.number
    for rate, number in sorted(strange.items()):
        yield _(
            "order {number} was taxed at {rate}, which is not one of the service's taxes"
        ).format(number=printable(number, most=_NAME), rate=_percent(rate))
    if turned:
        yield (
            _("order {number} says that prices do not include tax, the service's taxes say they do")
            if taxes.inclusive
            else _(
                "order {number} says that prices include tax, the service's taxes say they do not"
            )
        ).format(number=printable(turned, most=_NAME))


def _percent(rate: Decimal) -> str:
    """Return a rate for people: no trailing zeros, at most four decimals."""
    text = format(rate.quantize(Decimal("0.0001")).normalize(), "f")
    return f"{text} %"


def _rate_text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
        return str(value) if found.is_finite() and abs(found) <= _MOST else None
    except (InvalidOperation, ValueError):
        return None


def _decimal(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return Decimal(0)
    return min(max(found, -_MOST), _MOST) if found.is_finite() else Decimal(0)


def _same(one: str, other: str) -> bool:
    return bool(one.strip()) and one.strip().casefold() == other.strip().casefold()


class TaxMonitor:
    """One store. `service_store_id` is None until it is integrated."""

    def __init__(
        self,
        context: StoreContext,
        service_store_id: Callable[[], str | None],
    ) -> None:
        self._store = context.store
        self._client = context.service
        self._service_store_id = service_store_id
        self._ledger = context.bridge.ledger
        self._problems = context.bridge.problems
        self._clock = context.bridge.clock
        self.worker = Worker("tax", self._step, context.supervisor, context.bridge.clock)
        self._arrived: list[OrderTax] = []
        self._compared: set[tuple[object, tuple[str, ...]]] = set()  # how orders were taxed
        self._whole_at: float | None = None  # on the monotonic clock
        self._perhaps = False

    def daily(self) -> None:
        """Read and compare everything soon."""
        self._whole_at = self._clock.monotonic()
        self.worker.wake()

    def service_back(self) -> None:
        """Read and compare everything in a while, if it is due."""
        self._perhaps = True
        self.worker.wake()

    def order_arrived(self, data: Mapping[str, Any], number: str) -> None:
        """Compare how an order was taxed, unless equally taxed orders have already matched.

        While something differs, each order is compared.
        """
        taxed = taxed_orders(data, number)
        how = taxed.inclusive, taxed.rates
        if how not in self._compared or self._problems.is_open("tax.differs", self._store):
            self._compared.add(how)
            self._arrived.append(taxed)
            self.worker.wake()

    async def known(self) -> TaxFact:
        """Return the fact as it was last stored."""
        return await self._ledger.get_fact(self._store, "tax", TaxFact) or TaxFact()

    async def check(self) -> TaxFact:
        """Read the service's taxes and compare; return the fact. Raises BridgeError."""
        store_id = self._service_store_id()
        if store_id is None:
            raise BridgeError(
                _("The store {store} is not connected yet.").format(store=self._store),
                fix=_("Run: tillbridge connect {store}").format(store=self._store),
            )
        taxes = Taxes.of(await self._client.tax_config(store_id))
        self._compared.clear()
        items = await self._ledger.read(self._items)
        found, at = list(differences(taxes, items)), self._clock.now_ms()

        def update(before: TaxFact) -> TaxFact:
            # Orders taxed by earlier rules say nothing about the present ones.
            orders = before.orders if before.config == taxes else ()
            return replace(before, config=taxes, items=found, orders=orders, checked_at=at)

        return await self._update(update)

    async def _step(self) -> float | None:
        """Do what is due, and return after how many seconds something is; None for nothing."""
        try:
            if self._arrived:
                arrived, self._arrived = self._arrived[-_LATEST:], []
                await self._update(
                    lambda before: replace(before, orders=(*before.orders, *arrived)[-_LATEST:])
                )
            if self._perhaps:
                self._perhaps = False
                if self._whole_at is None:
                    at = (await self.known()).checked_at
                    if at is None or self._clock.now_ms() - at > _A_DAY_MS:
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

    async def _update(self, update: Callable[[TaxFact], TaxFact]) -> TaxFact:
        """Change the fact, and report differences."""

        def write(db: Connection) -> TaxFact:
            fact = update(get_fact(db, self._store, "tax", TaxFact) or TaxFact())
            found = [*fact.items]
            if fact.config is not None:
                found += differences(fact.config, (), fact.orders)
            fact = replace(fact, differences=found)
            put_fact(db, self._store, "tax", fact, at=self._clock.now_ms())
            return fact

        fact = await self._ledger.write(write)
        problems = []
        if found := fact.differences:
            first, more = found[0], len(found) - 1
            detail = _("{first} (and {n} more)").format(first=first, n=more) if more else first
            problems.append(Found("tax.differs", detail={"detail": detail}))
        self._problems.report(Scope(self._store, frozenset({"tax.differs"})), problems)
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
