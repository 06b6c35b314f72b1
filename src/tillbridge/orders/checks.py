"""Whether an order's lines are those of the menu that was shown when it was placed.

Nothing here refuses an order: the checks say what they found, and the store's policy decides
whether it is written with a warning or cancelled (settings `unknown_item` and `price_differs`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tillbridge.core.i18n import _
from tillbridge.model.money import to_major
from tillbridge.model.order import (
    Order,
    OrderLine,
    OrderOption,
    ReasonCode,
    unclear_quantities,
)
from tillbridge.orders.reasons import ChecksFailed

OnFinding = Literal["write_and_warn", "cancel"]


@dataclass(frozen=True, slots=True)
class MenuThen:
    """The menu as it was when an order was placed.

    `prices` holds, by external id of an item, variant or add-on, what was shown, in minor units:
    all of them where a change was so fresh that either may have been seen, none where the thing is
    known and its price is not.
    """

    prices: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Findings:
    """What does not fit, one plain phrase each, without the customer's data.

    `currency` is the order's where it is not the store's, else "".
    """

    unknown_items: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    currency: str = ""
    quantities: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.unknown_items or self.prices or self.currency or self.quantities)

    def entry(self) -> dict[str, object]:
        """Return all that was found, for the order's log."""
        always = {"unknown_items": self.unknown_items, "prices": self.prices}
        found = {"currency": self.currency, "quantities": self.quantities}
        return {**always, **{name: what for name, what in found.items() if what}}


def named_ids(order: Order) -> frozenset[str]:
    """Return every external id that the order names."""
    ids: set[str | None] = set()
    for line in order.lines:
        ids.update((line.external_id, line.variant_external_id))
        ids.update(option.external_id for option in line.options)
    return frozenset(each for each in ids if each and each.isprintable())


def findings(order: Order, menu: MenuThen | None, currency: str) -> Findings:
    """Return what does not fit the menu; without one (a fresh ledger) only the currency can."""
    prices: list[str] = []
    unknown: list[str] = []
    if menu is not None:
        for line in order.lines:
            unknown += _unknown(line, menu)
            prices += _prices(line, menu, currency)
    other = _short(order.currency) if order.currency not in {"", currency} else ""
    return Findings(
        tuple(unknown), tuple(prices), other, tuple(map(_short, unclear_quantities(order)))
    )


def unseen_of(found: Findings, currency: str, now_ms: int) -> dict[str, dict[str, object]]:
    """Return what a person has to see of the findings, by problem code."""
    unseen: dict[str, dict[str, object]] = {}
    for code, phrases in (
        ("order.unknown_item", found.unknown_items),
        ("order.price_differs", found.prices),
        ("order.quantity_unclear", found.quantities),
    ):
        if phrases:
            unseen[code] = {"at": now_ms, "detail": in_short(phrases)}
    if found.currency:
        unseen["order.other_currency"] = {
            "at": now_ms,
            "theirs": found.currency,
            "ours": currency,
        }
    return unseen


def verdict(
    found: Findings, unknown_item: OnFinding, price_differs: OnFinding
) -> ChecksFailed | None:
    """Return why the policy cancels the order, or None where it is written."""
    if found.unknown_items and unknown_item == "cancel":
        return ChecksFailed(ReasonCode.ITEM_OUT_OF_STOCK, in_short(found.unknown_items))
    if (found.prices or found.currency) and price_differs == "cancel":
        other = (_("the order is in {currency}").format(currency=found.currency),)
        return ChecksFailed(ReasonCode.PRICE_MISMATCH, in_short(found.prices or other))
    return None


def in_short(phrases: tuple[str, ...]) -> str:
    """Return the first of several phrases, and how many more there are."""
    more = len(phrases) - 1
    return (
        phrases[0]
        if not more
        else _("{first} (and {count} more)").format(first=phrases[0], count=more)
    )


def _unknown(line: OrderLine, menu: MenuThen) -> Iterator[str]:
    things: list[OrderLine | OrderOption] = [line, *line.options]
    for thing in things:
        external_id = thing.external_id
        if external_id is None:
            yield _("{name} (no external_id)").format(name=_short(thing.product_name))
        elif external_id not in menu.prices:
            yield f"{_short(thing.product_name)} ({_short(external_id)})"
    variant = line.variant_external_id
    if variant is not None and variant not in menu.prices:
        yield f"{_short(line.product_name)} ({_short(variant)})"


def _prices(line: OrderLine, menu: MenuThen, currency: str) -> Iterator[str]:
    asked: list[tuple[OrderLine | OrderOption, str | None]] = [
        (line, line.variant_external_id or line.external_id)
    ]
    asked += [(option, option.external_id) for option in line.options]
    for thing, external_id in asked:
        shown = menu.prices.get(external_id or "", frozenset())
        if thing.unit_price is not None and shown and thing.unit_price not in shown:
            yield _("{name} ({id}) was ordered for {ordered}, the menu said {shown}").format(
                name=_short(thing.product_name),
                id=_short(external_id or ""),
                ordered=_money(thing.unit_price, currency),
                shown=" / ".join(_money(price, currency) for price in sorted(shown)),
            )


def _money(minor: int, currency: str) -> str:
    try:
        return to_major(minor, currency)
    except ArithmeticError:  # more digits than any money has
        return _short(str(minor))


def _short(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)[:60]
