"""What a check works on: a till made for it, the adapter opened on it, items and orders."""

import contextlib
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from tillbridge.adapter import protocols
from tillbridge.adapter.conformance.rig import CannotDo, Rig, RigTicket
from tillbridge.adapter.conformance.witness import Witness
from tillbridge.model.catalogue import AddOn, Catalogue, Item, Variant
from tillbridge.model.order import Order, parse_order

CAPABILITIES: Mapping[str, type] = {
    "catalogue": protocols.ReadsCatalogue,
    "catalogue_changes": protocols.ReadsCatalogueChanges,
    "availability": protocols.ReadsAvailability,
    "tables": protocols.ReadsTables,
    "tickets": protocols.WritesTickets,
    "marks": protocols.MarksTickets,
    "cancel": protocols.CancelsTickets,
    "late": protocols.HoldsLateOrders,
    "late_writes": protocols.WritesLate,
    "list": protocols.ListsTickets,
    "updates": protocols.ReportsTicketUpdates,
    "unreadable_updates": protocols.ReportsUnreadableUpdates,
    "health": protocols.ReportsHealth,
    "files": protocols.NamesFiles,
    "changes": protocols.NotifiesChanges,
}


def capabilities_of(pos: object) -> frozenset[str]:
    """Return the names of what an opened adapter can do."""
    return frozenset(name for name, kind in CAPABILITIES.items() if isinstance(pos, kind))


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


class Violation(Exception):
    """How the adapter broke the rule; `fix` says what it should do.

    `method` is the one that did it, where it is another than the check is about; `of_row` is what
    was said of a record that was refused, whose line is then looked up.
    """

    def __init__(self, text: str, *, fix: str, method: str = "", of_row: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix
        self.method = method
        self.of_row = of_row


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: `text` says what was found, or why it was not tried; `took_ms` is its duration.

    `place` is the file and line of the vendor's code (`adapter.py:53`), `traceback` that of an
    unexpected exception. `inexcusable` failures cannot be exempt: the adapter crashed or exposed a
    secret.
    """

    check: str
    title: str
    outcome: Outcome
    text: str = ""
    fix: str = ""
    took_ms: int = 0
    place: str = ""
    traceback: str = ""
    inexcusable: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one adapter, in the suite's order."""

    adapter: str
    api_version: int
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(each.outcome is not Outcome.FAILED for each in self.results)

    def by_check(self) -> Mapping[str, CheckResult]:
        """Return the results by the name of their check."""
        return {each.check: each for each in self.results}

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        counts = {
            outcome.value.replace(" ", "_"): sum(each.outcome is outcome for each in self.results)
            for outcome in Outcome
        }
        return {
            "adapter": self.adapter,
            "api_version": self.api_version,
            "passed": self.passed,
            "counts": counts,
            "checks": [each.to_json() for each in self.results],
        }


T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Subject:
    """The kind of till under test, and what quality.toml says of it.

    `declared` are the capabilities that it names, `not_kept` what the till does not keep of an
    order, with the reason.
    """

    rig: type[Rig]
    declared: frozenset[str] | None = None
    not_kept: Mapping[str, str] = field(default_factory=dict)
    witness: Witness = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "witness", Witness(self.rig.adapter, self.rig))

    @contextlib.contextmanager
    def till(self) -> Iterator[Rig]:
        """Make a fresh till, and clear it away."""
        folder = Path(tempfile.mkdtemp(prefix="till-"))
        try:
            rig = self.rig(folder)
            rig.on_open, rig.on_value = self.witness.opened, self.witness.check_value
            self.witness.collect_secrets(rig)
            try:
                with _of_rig_first(rig):
                    yield rig
            finally:
                rig.close_opened()
                rig.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _of_rig_first(rig: Rig) -> Iterator[None]:
    """Raise what went wrong in the rig, which the adapter could only see as a broken answer."""
    try:
        yield
    except Exception:
        if rig.broke is None:
            raise
    if rig.broke is not None:
        raise rig.broke


def able(pos: object, kind: type[K]) -> K:
    """Return the adapter's object as one that can do this; CannotDo where it cannot."""
    if not isinstance(pos, kind):
        name = next(name for name, each in CAPABILITIES.items() if each is kind)
        raise CannotDo(f"The adapter has no capability {name}.")
    return pos


def can(pos: object, name: str) -> bool:
    """Return whether the adapter's object has that capability."""
    return name in capabilities_of(pos)


def in_time(rig: Rig, what: str, call: Callable[[], T]) -> T:
    """Return what the call gives, or raise what it raises; a Violation where it hangs."""
    outcome: list[Callable[[], T]] = []

    def work() -> None:
        try:
            value = call()
        except BaseException as failure:  # noqa: BLE001 -- handed on to the caller, whatever it is
            raised = failure
            rig.on_value(failure)

            def again() -> T:
                raise raised

            outcome.append(again)
        else:
            rig.on_value(value)
            outcome.append(lambda: value)

    thread = threading.Thread(target=work, daemon=True, name=f"conformance-{what}")
    thread.start()
    thread.join(rig.patience_s)
    if not outcome:
        raise Violation(
            f"{what} had not come back after {rig.patience_s:g} seconds.",
            method=what,
            fix="Give every call to the till a time-out, and raise PosOffline (nothing written) or"
            " TicketOutcomeUnknown (perhaps written).",
        )
    return outcome[0]()


def reader(rig: Rig, pos: object) -> Callable[[], Catalogue]:
    """Return how to read the menu, within the rig's patience."""
    reading = able(pos, protocols.ReadsCatalogue)
    return lambda: in_time(rig, "read_catalogue", reading.read_catalogue)


def writer(pos: object) -> protocols.WritesTickets:
    """Return the adapter's object as one that writes tickets."""
    return able(pos, protocols.WritesTickets)


def items_to_order(rig: Rig, items: Sequence[Item]) -> Sequence[Item]:
    """Return items that the till sells now; a till without a menu takes whatever is ordered."""
    try:
        return rig.sell(items, "EUR")
    except CannotDo:
        return items


def tickets_of(rig: Rig, key: str) -> Sequence[RigTicket]:
    """Return the orders in the till that were written with `key`."""
    return [ticket for ticket in rig.tickets() if ticket.key == key]


def one_ticket(
    rig: Rig, key: str, after: str, *, fix: str, also: Collection[str] = ()
) -> RigTicket:
    """Return the one ticket that must be in the till, beside those with the keys in `also`.

    More of them may be on paper where nobody can look, as long as each of those says so.
    """
    there = [each for each in rig.tickets() if each.key == key or each.key not in also]
    found = [ticket for ticket in there if ticket.key == key]
    plain = [ticket for ticket in found if not ticket.possible_duplicate]
    if len(plain) > 1 or not found or len(found) != len(there):
        counts = Counter(ticket.key for ticket in there if ticket.key != key)
        others = [f"{count} under {name or 'no key'}" for name, count in counts.items()]
        own = f"{len(found) or 'no'} {'ticket' if len(found) == 1 else 'tickets'} under {key}"
        raise Violation(
            f"After {after} the till has {' and '.join([own, *others])}.",
            fix=fix,
            method="write_ticket",
        )
    return (plain or found)[0]


# -- items and orders that the checks use

# Prices that binary fractions get wrong (1.15 * 100 is 114.99999999999999), and the small ones.
ODD_PRICES = (0, 1, 5, 10, 99, 100, 101, 113, 115, 435, 1010, 1999, 8195, 28_95, 123_456)

NAMES = (
    "Crème brûlée",
    "Smörgåstårta",
    "Καφές ελληνικός",
    "Борщ",
    "寿司盛り合わせ",
    "مشاوي مشكلة",
    "Piña colada 🍍",
    "Bœuf bourguignon",
    'Burger "Doppio"; extra, large',
    "Fish & Chips <fresh>",
)


def plain_items(count: int = 3) -> tuple[Item, ...]:
    """Return so many different items, with different prices."""
    return priced_items(range(525, 525 + 25 * count, 25))


def named_items(names: Sequence[str]) -> tuple[Item, ...]:
    """Return an item for each name."""
    return tuple(
        Item(external_id=f"sku-{number}", name=name, price=700)
        for number, name in enumerate(names, 1)
    )


def priced_items(prices: Sequence[int]) -> tuple[Item, ...]:
    """Return an item for each price (minor units)."""
    return tuple(
        Item(external_id=f"sku-{number}", name=f"Dish {number}", price=price)
        for number, price in enumerate(prices, 1)
    )


def order_of(order_id: str, items: Sequence[Item], currency: str = "EUR") -> Order:
    """Return an order of one of each item, paid, as the service delivers it."""
    lines = [order_line(number, item) for number, item in enumerate(items, 1)]
    return made_order(order_id, lines, order_number=order_id[-8:], currency=currency)


def order_line(
    number: int,
    item: Item,
    quantity: int = 1,
    variant: Variant | None = None,
    add_ons: Sequence[tuple[AddOn, int]] = (),
    vat: int = 0,
) -> dict[str, Any]:
    """Return a line of an order's JSON; `vat` is the percentage of tax that its price includes."""
    price = variant.price if variant else item.price
    subtotal = (price + sum(each.price * count for each, count in add_ons)) * quantity
    return {
        "product_id": f"prod_{number}",
        "product_variant_id": f"var_{number}" if variant else None,
        "product_name": f"{item.name} ({variant.variant_name})" if variant else item.name,
        "quantity": quantity,
        "unit_price": price,
        "subtotal": subtotal,
        "tax_amount": _tax_in(subtotal, vat),
        "external_id": item.external_id,
        "variant_external_id": variant.external_id if variant else None,
        "options": [
            {
                "product_id": f"prod_{each.external_id}",
                "product_name": each.name,
                "quantity": count,
                "unit_price": each.price,
                "external_id": each.external_id,
            }
            for each, count in add_ons
        ],
    }


def made_order(
    order_id: str,
    lines: Sequence[Mapping[str, Any]],
    vat: int = 0,
    fees: Mapping[str, int] = MappingProxyType({}),
    **more: str,
) -> Order:
    """Return a paid order of these lines, with `fees` (delivery_fee, discount, tip) and `more`."""
    subtotal = sum(line["subtotal"] for line in lines)
    tax = _tax_in(subtotal, vat)
    added = {"delivery_fee": 0, "discount": 0, "tip": 0, **fees}
    return parse_order(
        {
            "id": order_id,
            "order_type": "delivery",
            "status": "pending",
            "payment_status": "paid",
            "customer_id": "cus_conformance",
            "currency": "EUR",
            "subtotal": subtotal,
            "tax": tax,
            **added,
            "total_amount": subtotal + added["delivery_fee"] + added["tip"] - added["discount"],
            "prices_include_tax": True,
            "tax_breakdown": [{"name": "VAT", "rate": float(vat), "amount": tax}] if vat else [],
            "special_instructions": "Ring twice",
            "created_at": "2026-01-02T18:00:00.000Z",
            "items": list(lines),
            **more,
        }
    )


def _tax_in(amount: int, vat: int) -> int:
    return amount * vat // (100 + vat)
