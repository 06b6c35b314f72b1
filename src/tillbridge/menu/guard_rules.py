"""What guests would notice of a change, one rule a way: a table, read by the guard. Pure.

A rule says which items (or add-ons, groups, headings) it is about, and when one of them is hit. How
many may be hit is the guard's to decide, the same way for all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from tillbridge.core.i18n import _
from tillbridge.menu.diff import ItemChange
from tillbridge.model.catalogue import AddOnGroup, Item, ItemTax

TAX_POINTS = Decimal(5)  # a tax that moves by more percentage points is no change of the law
TAX_FACTOR = 2  # nor is one that doubles or halves


@dataclass(frozen=True, slots=True)
class ItemRule:
    """A way in which items change.

    `among` is the field of Item that an item must have had to be hit ("" for any item). The text
    takes {count}, {known} (how many could be hit) and {names}.
    """

    code: str
    among: str
    hit: Callable[[Item, Item], bool]
    text: str


@dataclass(frozen=True, slots=True)
class PartRule:
    """A way in which parts of a kind change (`kind`: a field of Diff); else as `ItemRule`."""

    code: str
    kind: str
    hit: Callable[..., bool]
    text: str


def _loses_size_names(before: Item, after: Item) -> bool:
    had = all(each.variant_name.strip() for each in before.variants)
    return had and any(not each.variant_name.strip() for each in after.variants)


def _moves_tax(before: Item, after: Item) -> bool:
    if before.tax is None or after.tax is None or before.tax == after.tax:
        return False
    was, is_now = tax_rate(before.tax), tax_rate(after.tax)
    if was is None or is_now is None:
        return True
    low, high = sorted((was, is_now))
    return high - low > TAX_POINTS or (low > 0 and high >= TAX_FACTOR * low)


ITEM_RULES = (
    ItemRule(
        "sizes_lost",
        "variants",
        lambda before, after: len(after.variants) < len(before.variants),
        _("it takes sizes from {count} of {known} items that have them ({names})"),
    ),
    ItemRule(
        "size_names_lost",
        "variants",
        _loses_size_names,
        _("it leaves sizes of {count} of {known} items without a name ({names})"),
    ),
    ItemRule(
        "choices_lost",
        "addon_groups",
        lambda before, after: len(after.addon_groups) < len(before.addon_groups),
        _("it takes choices from {count} of {known} items that have them ({names})"),
    ),
    ItemRule(
        "taxes_lost",
        "tax",
        lambda before, after: before.tax is not None and after.tax is None,
        _("it takes the tax from {count} of {known} items that have one ({names})"),
    ),
    ItemRule(
        "taxes_moved",
        "tax",
        _moves_tax,
        _("it changes the tax rate of {count} of {known} items wildly ({names})"),
    ),
    ItemRule(
        "renamed",
        "",
        lambda before, after: plain(before.name) != plain(after.name),
        _("it renames {count} of {known} items ({names})"),
    ),
    ItemRule(
        "headings_lost",
        "categories",
        lambda before, after: bool(before.categories) and not after.categories,
        _("it takes {count} of {known} items out of every category ({names})"),
    ),
    ItemRule(
        "descriptions_lost",
        "description",
        lambda before, after: bool(before.description) and not after.description,
        _("it takes the description from {count} of {known} items that have one ({names})"),
    ),
    ItemRule(
        "pictures_lost",
        "image_url",
        lambda before, after: bool(before.image_url) and not after.image_url,
        _("it takes the picture from {count} of {known} items that have one ({names})"),
    ),
)
PART_RULES = (
    PartRule(
        "options_lost",
        "addon_groups",
        lambda before, after: len(after.add_ons) < len(before.add_ons),
        _("it takes options out of {count} of {known} choices ({names})"),
    ),
    PartRule(
        "required_lost",
        "addon_groups",
        lambda before, after: must_be_chosen(before) and not must_be_chosen(after),
        _("it lets guests skip {count} of {known} choices that had to be made ({names})"),
    ),
    PartRule(
        "groups_renamed",
        "addon_groups",
        lambda before, after: plain(before.name) != plain(after.name),
        _("it renames {count} of {known} choices ({names})"),
    ),
    PartRule(
        "options_free",
        "add_ons",
        lambda before, after: before.price > 0 == after.price,
        _("it makes {count} of {known} options free ({names})"),
    ),
    PartRule(
        "options_renamed",
        "add_ons",
        lambda before, after: plain(before.name) != plain(after.name),
        _("it renames {count} of {known} options ({names})"),
    ),
    PartRule(
        "headings_renamed",
        "categories",
        lambda before, after: plain(before.name) != plain(after.name),
        _("it renames {count} of {known} categories ({names})"),
    ),
)
FEATURES = tuple(dict.fromkeys(rule.among for rule in ITEM_RULES if rule.among))


def hits_of(rule: ItemRule, changes: Iterator[ItemChange]) -> list[ItemChange]:
    """Return the changes that the rule is about."""
    return [each for each in changes if rule.hit(each.before, each.after)]


def must_be_chosen(group: AddOnGroup) -> bool:
    """Whether a guest cannot order without choosing."""
    return group.required or group.min_select > 0


def tax_rate(tax: ItemTax) -> Decimal | None:
    """Return the sum of the rates in percent; None where one of them is no number."""
    try:
        return sum((Decimal(each.rate) for each in tax.components), Decimal(0))
    except InvalidOperation:
        return None


def plain(name: str) -> str:
    """Return the name as people compare it: without a difference of case or blanks."""
    return " ".join(name.split()).casefold()
