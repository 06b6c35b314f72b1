"""Taxes as Odoo levies them: on top of a price or in it, one after the other. Pure.

The arithmetic is Odoo's own, line by line: what a line's taxes come to is rounded to the currency,
and taxes within a price make up together what lies between the price with and without them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter import ItemTax, TaxComponent
from tillbridge_odoo.amounts import decimal_of, plain, rounded
from tillbridge_odoo.odoo import Record

FIELDS = (
    "name",
    "amount",
    "amount_type",
    "price_include",
    "include_base_amount",
    "is_base_affected",
    "children_tax_ids",
    "sequence",
    "company_id",
    "active",
)
_HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Tax:
    """One tax. `amount` is percent, or major units each for a fixed one."""

    id: int
    name: str
    kind: str
    amount: Decimal
    included: bool
    raises_base: bool
    base_affected: bool
    sequence: int
    children: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LineAmounts:
    """What a line comes to, in major units: without and with its taxes, rounded.

    `base` is its price without taxes and `taxes` are they by number, both not rounded: for a
    company that rounds them once an order. `on_top` says that some are not in the price.
    """

    excluded: Decimal
    included: Decimal
    base: Decimal = Decimal(0)
    taxes: Mapping[int, Decimal] = field(default_factory=dict)
    on_top: bool = False


def together(lines: Iterable[LineAmounts], currency: str) -> LineAmounts:
    """Return what lines come to where their prices and each tax are rounded once, for all.

    Where all taxes are in the prices it is what these come to with them that is rounded; else what
    they come to without.
    """
    there = list(lines)
    base, taxes = Decimal(0), dict[int, Decimal]()
    for line in there:
        base += line.base
        for tax, amount in line.taxes.items():
            taxes[tax] = taxes.get(tax, Decimal(0)) + amount
    levied = sum((rounded(each, currency) for each in taxes.values()), Decimal(0))
    if any(line.on_top for line in there):
        without = rounded(base, currency)
    else:
        without = rounded(base + sum(taxes.values()), currency) - levied
    return LineAmounts(without, without + levied)


@dataclass(frozen=True, slots=True)
class Taxes:
    """All taxes by their number."""

    by_id: Mapping[int, Tax]

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Taxes":
        """Return the taxes in records of `account.tax`."""
        return cls({record["id"]: _tax(record) for record in records})

    def flat(self, ids: Sequence[int]) -> list[Tax]:
        """Return the taxes with these numbers in the order they are levied; groups as parts."""
        return list(self._flat(ids))

    def known(self, ids: Sequence[int]) -> list[int]:
        """Return those of the numbers that are known here: of our company, and in use."""
        return [each for each in ids if each in self.by_id]

    def item_tax(self, ids: Sequence[int]) -> ItemTax | None:
        """Return the tax of an item; only what is a percentage can be said of it."""
        parts = [tax for tax in self.flat(ids) if tax.kind in {"percent", "division"}]
        components = tuple(TaxComponent(tax.name, plain(_rate(tax))) for tax in parts)
        return ItemTax(" + ".join(tax.name for tax in parts), components) if parts else None

    def amounts(
        self, unit: Decimal, quantity: int, ids: Sequence[int], currency: str
    ) -> LineAmounts:
        """Return what `quantity` at `unit` (major units) come to with these taxes."""
        taxes = self.flat(ids)
        total = rounded(unit * quantity, currency)
        base = rounded(_without_included(total, quantity, taxes), currency)
        in_price = _levied([tax for tax in taxes if tax.included], base, quantity, currency)
        if in_price:
            in_price[-1] += total - base - sum(in_price)
        on_top = _on_top(taxes, base, quantity, in_price, currency)
        return LineAmounts(
            base,
            base + sum(in_price) + sum(on_top),
            *_exact(unit * quantity, quantity, taxes),
        )

    def with_tax(self, unit: Decimal, ids: Sequence[int]) -> Decimal:
        """Return a unit price with all its taxes, not rounded."""
        taxes = self.flat(ids)
        base = _without_included(unit, 1, taxes)
        in_price = unit - base
        return base + in_price + sum(_on_top(taxes, base, 1, [in_price], None))

    def without_tax(self, unit: Decimal, ids: Sequence[int]) -> Decimal:
        """Return a unit price without the taxes in it, not rounded."""
        return _without_included(unit, 1, self.flat(ids))

    def listed(self, unit: Decimal, ids: Sequence[int], mode: str) -> Decimal:
        """Return the price to put into Odoo for one that was shown in `mode`.

        `listed` stands as it is. A price shown with tax loses the taxes that Odoo puts on top; one
        shown without tax gains those that Odoo expects within. Fixed and mixed taxes are found by
        looking at what a price of Odoo's comes to, which is a straight line.
        """
        if mode == "listed":
            return unit
        shown = self.with_tax if mode == "included" else self.without_tax
        low, high = shown(Decimal(0), ids), shown(_HUNDRED, ids)
        if high == low:
            return unit
        return (unit - low) * _HUNDRED / (high - low)

    def shown(self, unit: Decimal, ids: Sequence[int], mode: str) -> Decimal:
        """Return Odoo's price as the menu shows it in `mode`."""
        match mode:
            case "included":
                return self.with_tax(unit, ids)
            case "excluded":
                return self.without_tax(unit, ids)
            case _:
                return unit

    def _flat(self, ids: Sequence[int]) -> Iterator[Tax]:
        there = [self.by_id[each] for each in ids if each in self.by_id]
        for tax in sorted(there, key=lambda each: (each.sequence, each.id)):
            if tax.kind == "group":
                yield from self._flat(tax.children)
            else:
                yield tax


def _exact(
    total: Decimal, quantity: int, taxes: Sequence[Tax]
) -> tuple[Decimal, dict[int, Decimal], bool]:
    """Return the price without taxes, the taxes, and whether some are on top; nothing rounded."""
    base = _without_included(total, quantity, taxes)
    within = [tax for tax in taxes if tax.included]
    in_price = _levied(within, base, quantity, None)
    on_top = _on_top(taxes, base, quantity, in_price, None)
    added = [tax for tax in taxes if not tax.included]
    amounts = zip([*within, *added], [*in_price, *on_top], strict=True)
    return base, {tax.id: amount for tax, amount in amounts}, bool(added)


def _without_included(total: Decimal, quantity: int, taxes: Sequence[Tax]) -> Decimal:
    """Take the taxes out of `total` that are in it, from the last to the first."""
    percent = fixed = division = Decimal(0)
    base = total
    for tax in reversed(taxes):
        if tax.raises_base:
            base = _taken_out(base, percent, fixed, division)
            percent = fixed = division = Decimal(0)
        if tax.included:
            match tax.kind:
                case "percent":
                    percent += tax.amount
                case "fixed":
                    fixed += tax.amount * quantity
                case "division":
                    division += tax.amount
    return _taken_out(base, percent, fixed, division)


def _taken_out(base: Decimal, percent: Decimal, fixed: Decimal, division: Decimal) -> Decimal:
    left = (base - fixed) / (1 + percent / _HUNDRED)
    return left * (_HUNDRED - division) / _HUNDRED


def _levied(
    taxes: Sequence[Tax], base: Decimal, quantity: int, currency: str | None
) -> list[Decimal]:
    found, affected = [], base
    for tax in taxes:
        amount = _amount(tax, affected if tax.base_affected else base, quantity)
        amount = amount if currency is None else rounded(amount, currency)
        found.append(amount)
        if tax.raises_base:
            affected += amount
    return found


def _on_top(
    taxes: Sequence[Tax],
    base: Decimal,
    quantity: int,
    in_price: Sequence[Decimal],
    currency: str | None,
) -> list[Decimal]:
    """Levy the taxes on top; those in the price raise their base where they say so."""
    raised = sum(in_price) if any(tax.included and tax.raises_base for tax in taxes) else Decimal(0)
    return _levied([tax for tax in taxes if not tax.included], base + raised, quantity, currency)


def _amount(tax: Tax, base: Decimal, quantity: int) -> Decimal:
    match tax.kind:
        case "percent":
            return base * tax.amount / _HUNDRED
        case "fixed":
            return tax.amount * quantity
        case "division":
            return base / (1 - tax.amount / _HUNDRED) - base if tax.amount != _HUNDRED else base * 0
        case _:
            return Decimal(0)


def _rate(tax: Tax) -> Decimal:
    """Return the tax in percent of the price without it."""
    if tax.kind == "division" and tax.amount < _HUNDRED:
        share = tax.amount / (_HUNDRED - tax.amount) * _HUNDRED
        return share.quantize(Decimal("0.0001"))
    return tax.amount


def _tax(record: Record) -> Tax:
    return Tax(
        id=record["id"],
        name=str(record["name"]),
        kind=str(record["amount_type"]),
        amount=decimal_of(record["amount"]),
        included=bool(record.get("price_include")),
        raises_base=bool(record.get("include_base_amount")),
        base_affected=bool(record.get("is_base_affected", True)),
        sequence=int(record.get("sequence") or 0),
        children=tuple(record.get("children_tax_ids") or ()),
    )
