"""Whether a plan may go out by itself, or waits for a person (invariant 4). Pure.

Every reason is a sentence that a restaurant owner understands. A plan that passes is within every
limit; the same plan gives the same reasons. What guests would notice otherwise than by items that
are removed, and by prices, is a table (`RULES`): a rule says which items or parts it is about, and
when one of them is hit. How many may be hit is decided the same way for all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from tillbridge.config import AssumptionSettings, MenuSettings
from tillbridge.core.i18n import _, ngettext
from tillbridge.menu.describe import listed
from tillbridge.menu.diff import Diff, ItemChange
from tillbridge.model.catalogue import AddOnGroup, Item, ItemTax
from tillbridge.model.export_facts import FileEncoding
from tillbridge.model.menu_summary import has_priced_choice, prices_of
from tillbridge.model.money import to_major

FEW = 5  # so many items are a day's work, whatever the percentage
FEW_PARTS = 2  # and so many categories, choices or options
FEW_ADDED = 20  # and so many new items
ALL = 3  # of so few, all at once are no day's work
SLIP_FACTOR = 50  # a price that moves by this factor is a decimal point that slipped
TAX_POINTS = Decimal(5)  # a tax that moves by more percentage points is no change of the law
TAX_FACTOR = 2  # nor is one that doubles or halves
ITEMS = "items"
_NAMES_SHOWN = 3
_ASCII = "ascii"
_UTF = "utf"  # what the codecs begin with that can write every language


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide, of one store; `currency` is for the sentences."""

    menu: MenuSettings
    assumptions: AssumptionSettings
    currency: str


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of the text that a menu was read from.

    `ends_with_newline` as in `Catalogue`; `encodings` are by file.
    """

    ends_with_newline: bool | None = None
    encodings: Mapping[str, FileEncoding] = field(default_factory=dict)

    def after(self, before: "Source") -> "Source":
        """Return what is remembered when this follows `before`.

        A file of plain ASCII shows no encoding: what was known of it stays known.
        """
        shown = {name: how for name, how in self.encodings.items() if how.encoding != _ASCII}
        return replace(self, encodings={**before.encodings, **shown})


@dataclass(frozen=True, slots=True)
class Totals:
    """What the ledger knows of the accepted menu.

    `items` is how many there are. `category_items` is, for the categories of removed items, how
    many accepted items each has (it may stop counting at one more than are removed). `having` is
    how many items have a field of their own (sizes, taxes, ...), `parts` how many parts there are
    of a kind; both only where the guard needs them (`wanted_counts`). `twins` are the ids of added
    items that have the name of an accepted one which stays. `accepted_from` is what the accepted
    menu was read from, `read_from` what this one was.
    """

    items: int
    category_items: Mapping[str, int] = field(default_factory=dict)
    category_names: Mapping[str, str] = field(default_factory=dict)
    having: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    twins: frozenset[str] = frozenset()
    accepted_from: Source = field(default_factory=Source)
    read_from: Source = field(default_factory=Source)


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a plan waits: a sentence, and the ids of the items it is about, the worst first."""

    code: str
    text: str
    items: tuple[str, ...] = ()


def findings(changes: Diff, totals: Totals, rules: Rules) -> tuple[Finding, ...]:
    """Return what speaks against letting the plan go out by itself."""
    return tuple(found for check in _CHECKS for found in check(changes, totals, rules))


def wanted_counts(changes: Diff) -> tuple[frozenset[str], frozenset[str]]:
    """Return of which fields and which kinds of parts the guard needs the number accepted.

    Counting walks through the whole menu, so it is done only for what a rule may hold.
    """
    fields = {each.among for each in RULES if each.among and len(each.hits(changes)) >= ALL}
    kinds = {each.kind for each in RULES if each.kind != ITEMS and each.hits(changes)}
    if changes.removed or any("categories" in each.fields for each in changes.changed.values()):
        kinds.add("categories")
    return frozenset(fields), frozenset(kinds)


def is_mass(hits: int, known: int, percent: float, *, few: int = FEW) -> bool:
    """Whether so many of the known are more than a day's work: over the limit, or all of them."""
    if hits >= known >= ALL:
        return True
    return hits > few and hits * 100 > percent * known


def left_by_category(changes: Diff, *, moved: bool = True) -> Counter[str]:
    """Return how many items leave each category: off the menu or, if `moved`, into another one."""
    left = Counter(each for item in changes.removed.values() for each in item.categories)
    for change in changes.changed.values() if moved else ():
        left.update(set(change.before.categories) - set(change.after.categories))
    return left


def plain(name: str) -> str:
    """Return the name as people compare it: without a difference of case or blanks."""
    return " ".join(name.split()).casefold()


# -- what guests would notice, one rule a way


@dataclass(frozen=True, slots=True)
class Rule:
    """A way in which items, or parts of another `kind` (a field of Diff), change.

    `hit` takes one as it was and as it is. `among` is the field of Item that an item must have had
    to be hit ("" for any). The text takes {count}, {known} (how many could be hit) and {names}.
    """

    code: str
    hit: Callable[[Any, Any], bool]
    text: str
    among: str = ""
    kind: str = ITEMS

    def hits(self, changes: Diff) -> list[tuple[str, str]]:
        """Return external id and former name of what the rule is about."""
        if self.kind == ITEMS:
            pairs = [(each.before, each.after) for each in changes.changed.values()]
        else:
            parts = getattr(changes, self.kind)
            pairs = [(each, parts.put[key]) for key, each in parts.before.items()]
        return [(was.external_id, was.name) for was, is_now in pairs if self.hit(was, is_now)]


def _loses_size_names(before: Item, after: Item) -> bool:
    had = all(each.variant_name.strip() for each in before.variants)
    return had and any(not each.variant_name.strip() for each in after.variants)


def tax_rate(tax: ItemTax) -> Decimal | None:
    """Return the sum of the rates in percent; None where one of them is no number."""
    try:
        return sum((Decimal(each.rate) for each in tax.components), Decimal(0))
    except InvalidOperation:
        return None


def _moves_tax(before: Item, after: Item) -> bool:
    if before.tax is None or after.tax is None or before.tax == after.tax:
        return False
    was, is_now = tax_rate(before.tax), tax_rate(after.tax)
    if was is None or is_now is None:
        return True
    low, high = sorted((was, is_now))
    return high - low > TAX_POINTS or (low > 0 and high >= TAX_FACTOR * low)


def must_be_chosen(group: AddOnGroup) -> bool:
    """Whether a guest cannot order without choosing."""
    return group.required or group.min_select > 0


def _is_renamed(before: Item, after: Item) -> bool:
    return plain(before.name) != plain(after.name)


RULES = (
    Rule(
        "sizes_lost",
        lambda before, after: len(after.variants) < len(before.variants),
        _("it takes sizes from {count} of {known} items that have them ({names})"),
        among="variants",
    ),
    Rule(
        "size_names_lost",
        _loses_size_names,
        _("it leaves sizes of {count} of {known} items without a name ({names})"),
        among="variants",
    ),
    Rule(
        "choices_lost",
        lambda before, after: len(after.addon_groups) < len(before.addon_groups),
        _("it takes choices from {count} of {known} items that have them ({names})"),
        among="addon_groups",
    ),
    Rule(
        "taxes_lost",
        lambda before, after: before.tax is not None and after.tax is None,
        _("it takes the tax from {count} of {known} items that have one ({names})"),
        among="tax",
    ),
    Rule(
        "taxes_moved",
        _moves_tax,
        _("it changes the tax rate of {count} of {known} items wildly ({names})"),
        among="tax",
    ),
    Rule("renamed", _is_renamed, _("it renames {count} of {known} items ({names})")),
    Rule(
        "headings_lost",
        lambda before, after: bool(before.categories) and not after.categories,
        _("it takes {count} of {known} items out of every category ({names})"),
        among="categories",
    ),
    Rule(
        "descriptions_lost",
        lambda before, after: bool(before.description) and not after.description,
        _("it takes the description from {count} of {known} items that have one ({names})"),
        among="description",
    ),
    Rule(
        "pictures_lost",
        lambda before, after: bool(before.image_url) and not after.image_url,
        _("it takes the picture from {count} of {known} items that have one ({names})"),
        among="image_url",
    ),
    Rule(
        "options_lost",
        lambda before, after: len(after.add_ons) < len(before.add_ons),
        _("it takes options out of {count} of {known} choices ({names})"),
        kind="addon_groups",
    ),
    Rule(
        "required_lost",
        lambda before, after: must_be_chosen(before) and not must_be_chosen(after),
        _("it lets guests skip {count} of {known} choices that had to be made ({names})"),
        kind="addon_groups",
    ),
    Rule(
        "groups_renamed",
        _is_renamed,
        _("it renames {count} of {known} choices ({names})"),
        kind="addon_groups",
    ),
    Rule(
        "options_free",
        lambda before, after: before.price > 0 == after.price,
        _("it makes {count} of {known} options free ({names})"),
        kind="add_ons",
    ),
    Rule(
        "options_renamed",
        _is_renamed,
        _("it renames {count} of {known} options ({names})"),
        kind="add_ons",
    ),
    Rule(
        "headings_renamed",
        _is_renamed,
        _("it renames {count} of {known} categories ({names})"),
        kind="categories",
    ),
)


def _losses(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    for rule in RULES:
        hits = rule.hits(changes)
        if rule.kind == ITEMS:
            known = totals.having.get(rule.among, 0) if rule.among else totals.items
            few, ids = FEW, tuple(external_id for external_id, _name in hits)
        else:
            known, few, ids = totals.parts.get(rule.kind, 0), FEW_PARTS, ()
        if is_mass(len(hits), known, rules.menu.max_changed_percent, few=few):
            names = _listed([name for _id, name in hits])
            text = _(rule.text).format(count=len(hits), known=known, names=names)
            yield Finding(rule.code, text, ids)


# -- what the text of the export gives away, whatever it says


def _source(changes: Diff, totals: Totals, _rules: Rules) -> Iterator[Finding]:
    """Yield that it was cut off, or that some program saved it anew and garbled it."""
    before, now = totals.accepted_from, totals.read_from
    if not totals.items or not changes.needs_push:
        return
    if before.ends_with_newline and now.ends_with_newline is False:
        lost = [*changes.removed.values(), *(each.after for each in changes.content.values())]
        yield Finding(
            "cut_off",
            _("the export ends without a line end, as one that was cut off does ({names})").format(
                names=_listed([each.name for each in lost]) or _("its last rows are others")
            ),
            tuple(each.external_id for each in lost),
        )
    for name, how in now.encodings.items():
        was = before.encodings.get(name)
        if was is None or not was.encoding.startswith(_UTF) or how.chosen:
            continue
        if how.encoded_twice and not was.encoded_twice:
            text = _("{file} was in {was}, and was encoded a second time since")
        elif how.encoding != _ASCII and not how.encoding.startswith(_UTF):
            text = _(
                "{file} was in {was}, and is read as {encoding} now: line {line}, byte {byte} "
                "does not fit"
            )
        else:
            continue
        found = {"encoding": how.encoding, "line": how.bad_line, "byte": how.bad_byte}
        yield Finding("encoding", text.format(file=name, was=was.encoding.upper(), **found))


# -- items that come and go


def _first(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield that nobody has seen the menu yet, where a person wants to."""
    count = len(changes.added)
    if rules.menu.approve_first and not totals.items and count:
        text = ngettext(
            "it is the first menu of this storefront: {count} item that nobody has seen yet",
            "it is the first menu of this storefront: {count} items that nobody has seen yet",
            count,
        )
        yield Finding("first", text.format(count=count))


def _removals(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    removed = len(changes.removed)
    if not removed:
        return
    if totals.items - removed + len(changes.added) <= 0:
        text = _("the export has no items, and the storefront has {count}")
        yield Finding("empty", text.format(count=totals.items))
        return
    touched = (*changes.added.values(), *(each.after for each in changes.changed.values()))
    filled = {each for item in touched for each in item.categories}
    lost = _emptied(left_by_category(changes, moved=False), totals)
    vanished = _listed(
        [totals.category_names.get(each, each) for each in lost if each not in filled]
    )
    if removed > FEW and removed * 100 > rules.menu.max_removed_percent * totals.items:
        text = _("it removes {removed} of {count} items").format(
            removed=removed, count=totals.items
        )
        if vanished:
            text += _(", among them all of {categories}").format(categories=vanished)
    elif vanished:
        text = _("it removes every item of {categories}").format(categories=vanished)
    else:
        return
    yield Finding("removed", text, tuple(changes.removed))


def _headings_emptied(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    emptied = _emptied(left_by_category(changes), totals)
    known = totals.parts.get("categories", 0)
    if is_mass(len(emptied), known, rules.menu.max_changed_percent, few=FEW_PARTS):
        names = _listed([totals.category_names.get(each, each) for each in emptied])
        text = _("it empties {count} of {known} categories ({names})")
        yield Finding("headings_emptied", text.format(count=len(emptied), known=known, names=names))


def _emptied(left: Counter[str], totals: Totals) -> dict[str, int]:
    """Return the categories that lose all of their items, and at least two."""
    accepted = totals.category_items
    return {key: count for key, count in left.items() if count >= max(2, accepted.get(key, 0))}


def _additions(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    added, twins = changes.added, totals.twins
    if not totals.items:
        return
    if is_mass(len(twins), totals.items, rules.menu.max_changed_percent):
        text = _("it adds {count} items that are on the menu already, under other ids ({names})")
        code, fresh = "doubled", {key: each for key, each in added.items() if key in twins}
    elif len(added) > FEW_ADDED and len(added) * 100 > rules.menu.max_added_percent * totals.items:
        text = _("it adds {count} items to a menu of {known} ({names})")
        code, fresh = "added", dict(added)
    else:
        return
    names = _listed([each.name for each in fresh.values()])
    yield Finding(
        code, text.format(count=len(fresh), known=totals.items, names=names), tuple(fresh)
    )


# -- prices


def _made_free(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    zeroed = {
        name: change.after.external_id
        for change in changes.changed.values()
        for name, before, after in _prices(change)
        if before > 0 and after == 0
    }
    if zeroed:
        text = _("it makes {names} free").format(names=_listed(list(zeroed)))
        yield Finding("free", text, tuple(zeroed.values()))
    free = [item for item in changes.added.values() if _is_free(item, changes)]
    added = len(changes.added)
    menu = totals.items + added - len(changes.removed)
    few = FEW if totals.items else 1
    many = len(free) > few and len(free) * 100 > rules.menu.max_changed_percent * added
    if free and (many or len(free) == menu):
        text = ngettext(
            "{count} new item of a menu of {menu} has no price",
            "{count} new items of a menu of {menu} have no price",
            len(free),
        ).format(count=len(free), menu=menu)
        yield Finding("free", text, tuple(each.external_id for each in free))


def _slips(changes: Diff, _totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield the prices of which a decimal point slipped, those that moved most first."""
    moved = [
        (*price, change.after.external_id)
        for change in changes.changed.values()
        for price in _prices(change)
    ]
    moved += [
        (was.name, was.price, changes.add_ons.put[key].price, "")
        for key, was in changes.add_ons.before.items()
    ]
    slipped = {}
    for name, before, after, external_id in moved:
        low, high = sorted((before, after))
        if low > 0 and high >= SLIP_FACTOR * low:
            text = _("{name} from {before} to {after}").format(
                name=name,
                before=to_major(before, rules.currency),
                after=to_major(after, rules.currency),
            )
            slipped[text] = (high / low, external_id)
    if slipped:
        worst = sorted(slipped, key=lambda text: -slipped[text][0])
        text = _("it moves the price of {names}").format(names=_listed(worst))
        yield Finding(
            "price_slipped", text, tuple(slipped[each][1] for each in worst if slipped[each][1])
        )


def _wild(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    percent = rules.menu.max_price_change_percent
    known = totals.items - len(changes.removed)
    wild: dict[str, float] = {}
    for external_id, change in changes.changed.items():
        for _name, before, after in _prices(change):
            moved = abs(after - before) * 100
            if before > 0 and moved > percent * before:
                wild[external_id] = max(wild.get(external_id, 0), moved / before)
    if len(wild) * 5 > known:
        worst = sorted(wild, key=lambda each: -wild[each])
        text = _("it moves {count} of {known} prices by more than {percent:g} % ({names})").format(
            count=len(wild),
            known=known,
            percent=percent,
            names=_listed([changes.changed[each].after.name for each in worst]),
        )
        yield Finding("prices_moved", text, tuple(worst))


def _prices(change: ItemChange) -> Iterator[tuple[str, int, int]]:
    """Yield name, price before and price after of the item and of its variants that stay."""
    if change.before.price != change.after.price:
        yield change.after.name, change.before.price, change.after.price
    before = {each.external_id: each.price for each in change.before.variants}
    for variant in change.after.variants:
        was = before.get(variant.external_id, variant.price)
        if was != variant.price:
            yield f"{change.after.name} ({variant.variant_name})", was, variant.price


def _is_free(item: Item, changes: Diff) -> bool:
    """Whether guests get it for nothing, whatever they choose with it."""
    if any(each.price > 0 for each in prices_of(item)):
        return False
    groups = changes.addon_groups.put
    if any(each not in groups for each in item.addon_groups):
        return False  # a choice that was there before may have the price
    return not has_priced_choice(item, groups, changes.add_ons.put)


def _listed(names: Sequence[str]) -> str:
    return listed(names, _NAMES_SHOWN)


_CHECKS: tuple[Callable[[Diff, Totals, Rules], Iterator[Finding]], ...] = (
    _first,
    _source,
    _removals,
    _made_free,
    _slips,
    _wild,
    _additions,
    _losses,
    _headings_emptied,
)
