"""Whether till, service and orders agree about taxes, and what differs in plain words. Pure.

Specification: Tax configuration; Menu push body (Item tax); Order (tax_breakdown). Rates are
percent as decimal text. A till says nothing of compound components: its rates are compared one by
one with the service's, and where they differ as what they come to. The names of agencies differ
between systems and are not compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from tillbridge.core.i18n import _, ngettext

Rates = tuple[str, ...]

_MOST = Decimal(1_000_000)  # percent: what is beyond is no tax, and no reason to stumble


@dataclass(frozen=True, slots=True)
class Levied:
    """A tax of the service: its components as (rate, compound), in their order."""

    tax_id: str
    name: str
    components: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Taxes:
    """How the service taxes a store. `inclusive` None where it is not told."""

    enabled: bool
    level: str
    inclusive: bool | None
    default: Levied | None
    taxes: tuple[Levied, ...] = ()


@dataclass(frozen=True, slots=True)
class TaxedItem:
    """What the till says about an item's tax: the tax's name and its components' rates."""

    name: str
    tax_name: str
    rates: Rates


@dataclass(frozen=True, slots=True)
class OrderTax:
    """How an order was taxed; `inclusive` None where it does not say. No customer's data."""

    number: str
    inclusive: bool | None
    rates: Rates


def differences(
    taxes: Taxes, items: Iterable[TaxedItem], orders: Iterable[OrderTax] = ()
) -> tuple[str, ...]:
    """Return what differs, one sentence each; empty where all agree."""
    return (*_of_items(taxes, items), *_of_orders(taxes, orders))


def taxed_orders(data: Mapping[str, Any], number: str) -> OrderTax:
    """Return how an order's `data` says that it was taxed. Total."""
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


def total(components: Sequence[tuple[str, bool]]) -> Decimal:
    """Return what the components come to, in percent: a compound one is on those before it too."""
    levied = Decimal(0)
    for rate, compound in components:
        part = _decimal(rate)
        levied += part * (1 + levied / 100) if compound else part
    return levied


def _of_items(taxes: Taxes, items: Iterable[TaxedItem]) -> Iterator[str]:
    groups: dict[tuple[Decimal, Decimal | None], list[TaxedItem]] = {}
    for item in items:
        against = _against(taxes, item)
        if not any(_agree(item.rates, each.components) for each in against):
            till = total([(rate, False) for rate in item.rates])
            service = total(against[0].components) if len(against) == 1 else None
            groups.setdefault((till, service), []).append(item)
    for (till, service), found in sorted(groups.items(), key=lambda each: -len(each[1])):
        count = len(found)
        where = ngettext("{n} item", "{n} items", count).format(n=count)
        if not taxes.enabled:
            says = _("the service takes no tax")
        elif service is None:
            says = _("the service has no such tax")
        else:
            says = _("the service says {rate}").format(rate=_percent(service))
        yield _("the till says {rate} on {where}, {says}; first: {first}").format(
            rate=_percent(till), where=where, says=says, first=_short(found[0].name)
        )


def _against(taxes: Taxes, item: TaxedItem) -> list[Levied]:
    """Return the taxes one of which the item has to agree with."""
    if not taxes.enabled:
        return [Levied("", "")]
    if taxes.level == "store" and taxes.default is not None:
        return [taxes.default]
    # Which item has which tax is not told: it is the one of its name, or any.
    named = [each for each in taxes.taxes if _same(each.name, item.tax_name)]
    if named:
        return named
    others = list(taxes.taxes)
    # Nobody taxes what is not taxed at all.
    return [*others, Levied("", "")] if total([(r, False) for r in item.rates]) == 0 else others


def _agree(till: Rates, service: Sequence[tuple[str, bool]]) -> bool:
    ours = sorted(rate for each in till if (rate := _decimal(each)))
    theirs = sorted(rate for each, _compound in service if (rate := _decimal(each)))
    return ours == theirs or sum(ours) == total(service)


def _of_orders(taxes: Taxes, orders: Iterable[OrderTax]) -> Iterator[str]:
    known = {_decimal(rate) for tax in taxes.taxes for rate, _compound in tax.components}
    known |= {total(tax.components) for tax in taxes.taxes}
    if not taxes.enabled:
        known = set()
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
            "order {number} was taxed with {rate}, which the service's taxes do not have"
        ).format(number=_short(number), rate=_percent(rate))
    if turned:
        yield (
            _("order {number} says that prices do not include tax, the service's taxes say they do")
            if taxes.inclusive
            else _(
                "order {number} says that prices include tax, the service's taxes say they do not"
            )
        ).format(number=_short(turned))


def _percent(rate: Decimal) -> str:
    """Return a rate for people: no zeros at its end, four decimals at most."""
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


def _short(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)[:60]
