"""Whether a plan may go out by itself, or waits for a person (invariant 4). Pure.

Every reason is a sentence that a restaurant owner understands. A plan that passes is within every
limit; the same plan gives the same reasons.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tillbridge.catalogue.diff import Diff, ItemChange
from tillbridge.i18n import _, ngettext
from tillbridge.model.catalogue import Item
from tillbridge.model.money import to_major

FEW = 5  # so many removals are a day's work, whatever the percentage
SLIP_FACTOR = 50  # a price that moves by this factor is a decimal point that slipped
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The store's limits (settings `[stores.NAME.menu]`); `currency` is for the sentences."""

    max_removed_percent: float
    max_price_change_percent: float
    currency: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What the ledger knows of the accepted menu.

    `items` is how many there are. `category_items` tells, for the categories of removed items, how
    many accepted items each has (it may stop counting at one more than are removed).
    """

    items: int
    category_items: Mapping[str, int] = field(default_factory=dict)
    category_names: Mapping[str, str] = field(default_factory=dict)


def guard(changes: Diff, totals: Totals, limits: Limits) -> tuple[str, ...]:
    """Return why the plan must wait for a person; empty if it may go out."""
    reasons = [
        *_removals(changes, totals, limits),
        *_zeros(changes, totals),
        *_slips(changes, limits),
        *_wild(changes, totals, limits),
    ]
    return tuple(reasons)


def vanished_categories(changes: Diff, totals: Totals) -> tuple[str, ...]:
    """Return the categories that lose all of their items (at least two) and get no new ones."""
    lost = removed_by_category(changes)
    filled = {
        category
        for item in (*changes.added.values(), *(each.after for each in changes.changed.values()))
        for category in item.categories
    }
    return tuple(
        category
        for category, count in lost.items()
        if count >= 2 and count >= totals.category_items.get(category, 0) and category not in filled
    )


def removed_by_category(changes: Diff) -> dict[str, int]:
    """Return how many items each category loses."""
    lost: dict[str, int] = {}
    for item in changes.removed.values():
        for category in item.categories:
            lost[category] = lost.get(category, 0) + 1
    return lost


def _removals(changes: Diff, totals: Totals, limits: Limits) -> Iterator[str]:
    removed = len(changes.removed)
    if not removed:
        return
    left = totals.items - removed + len(changes.added)
    if left <= 0:
        yield _("the export has no items, and the storefront has {count}").format(
            count=totals.items
        )
        return
    vanished = [
        totals.category_names.get(each, each) for each in vanished_categories(changes, totals)
    ]
    too_many = removed > FEW and removed * 100 > limits.max_removed_percent * totals.items
    if too_many:
        text = _("it removes {removed} of {count} items").format(
            removed=removed, count=totals.items
        )
        if vanished:
            text += _(", among them all of {categories}").format(categories=_listed(vanished))
        yield text
    elif vanished:
        yield _("it removes every item of {categories}").format(categories=_listed(vanished))


def _zeros(changes: Diff, totals: Totals) -> Iterator[str]:
    zeroed = [
        name
        for change in changes.changed.values()
        for name, before, after in _prices(change)
        if before > 0 and after == 0
    ]
    if zeroed:
        yield _("it makes {names} free").format(names=_listed(zeroed))
    free = [item.name for item in changes.added.values() if _is_free(item)]
    menu = totals.items + len(changes.added) - len(changes.removed)
    if len(free) * 5 > menu and (len(free) > 1 or len(free) == menu):
        yield ngettext(
            "{count} new item of a menu of {menu} has no price",
            "{count} new items of a menu of {menu} have no price",
            len(free),
        ).format(count=len(free), menu=menu)


def _slips(changes: Diff, limits: Limits) -> Iterator[str]:
    slipped = []
    for change in changes.changed.values():
        for name, before, after in _prices(change):
            if min(before, after) > 0 and max(before, after) >= SLIP_FACTOR * min(before, after):
                slipped.append(_moved(name, before, after, limits.currency))
    for external_id, before_part in changes.add_ons.before.items():
        before, after = before_part.price, changes.add_ons.put[external_id].price
        if min(before, after) > 0 and max(before, after) >= SLIP_FACTOR * min(before, after):
            slipped.append(_moved(before_part.name, before, after, limits.currency))
    if slipped:
        yield _("it moves the price of {names}").format(names=_listed(slipped))


def _wild(changes: Diff, totals: Totals, limits: Limits) -> Iterator[str]:
    known = totals.items - len(changes.removed)
    wild = [
        change.after.name
        for change in changes.changed.values()
        if any(
            abs(after - before) * 100 > limits.max_price_change_percent * before
            for _name, before, after in _prices(change)
            if before > 0
        )
    ]
    if len(wild) * 5 > known:
        yield _("it moves {count} of {known} prices by more than {percent:g} % ({names})").format(
            count=len(wild),
            known=known,
            percent=limits.max_price_change_percent,
            names=_listed(wild),
        )


def _prices(change: ItemChange) -> Iterator[tuple[str, int, int]]:
    """Yield name, price before and price after of the item and of its variants that stay."""
    if change.before.price != change.after.price:
        yield change.after.name, change.before.price, change.after.price
    before = {each.external_id: each.price for each in change.before.variants}
    for variant in change.after.variants:
        was = before.get(variant.external_id, variant.price)
        if was != variant.price:
            yield f"{change.after.name} ({variant.variant_name})", was, variant.price


def _is_free(item: Item) -> bool:
    return item.price == 0 and not any(each.price for each in item.variants)


def _moved(name: str, before: int, after: int, currency: str) -> str:
    return _("{name} from {before} to {after}").format(
        name=name, before=to_major(before, currency), after=to_major(after, currency)
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    if more <= 0:
        return shown
    return _("{names} and {count} more").format(names=shown, count=more)
