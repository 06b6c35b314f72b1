"""Whether a plan may go out by itself, or waits for a person (invariant 4). Pure.

Every reason is a sentence that a restaurant owner understands. A plan that passes is within every
limit; the same plan gives the same reasons. What guests would notice otherwise than by items that
are removed, and by prices, is a table (`RULES`): a rule says which items or parts it is about, and
when one of them is hit. How many may be hit is decided the same way for all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from tillbridge.config import AssumptionSettings, MenuSettings
from tillbridge.core.i18n import _, ngettext
from tillbridge.menu.describe import listed
from tillbridge.menu.diff import Diff
from tillbridge.model.catalogue import AddOnGroup, Item, ItemTax, has_priced_choice, prices_of
from tillbridge.model.export_facts import FileEncoding
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

    def after(self, before: "Source", *, sent: bool) -> "Source":
        """Return what is remembered when this follows `before`.

        A file of plain ASCII shows no encoding: what was known of it stays known. A line end that
        is missing is no news to rely on where nothing was `sent`.
        """
        if not sent and self.ends_with_newline is False:
            return before
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
    """Return what speaks against letting the plan go out by itself, in the order of `_ORDER`."""
    found: list[Finding] = []
    if totals.items and changes.needs_push:
        found += _source(changes, totals)
    if changes.changed or changes.add_ons.before:
        found += _prices(changes, totals, rules)
    if changes.added:
        found += _additions(changes, totals, rules)
    found += _losses(changes, totals, rules)
    if changes.removed or left_by_category(changes):
        found += _departures(changes, totals, rules)
    return tuple(sorted(found, key=lambda each: _ORDER.index(each.code)))


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


Hit = Callable[[Any, Any], bool]  # of an item or a part as it was and as it is


@dataclass(frozen=True, slots=True)
class Rule:
    """A way in which items, or parts of another `kind` (a field of Diff), change.

    `among` is the field of Item that `hit` looks at, and that an item must have had to be hit (""
    is the name, which all have).
    """

    code: str
    hit: Hit
    among: str = ""
    kind: str = ITEMS

    def hits(self, changes: Diff) -> list[tuple[str, str]]:
        """Return external id and former name of what the rule is about."""
        if self.kind == ITEMS:
            of, changed = self.among or "name", changes.changed.values()
            pairs = [(each.before, each.after) for each in changed if of in each.fields]
        else:
            parts = getattr(changes, self.kind)
            pairs = [(each, parts.put[key]) for key, each in parts.before.items()]
        return [(was.external_id, was.name) for was, is_now in pairs if self.hit(was, is_now)]


def _fewer(name: str) -> Hit:
    return lambda before, after: len(getattr(after, name)) < len(getattr(before, name))


def _lost(name: str) -> Hit:
    return lambda before, after: bool(getattr(before, name)) and not getattr(after, name)


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


def _is_not_required_now(before: AddOnGroup, after: AddOnGroup) -> bool:
    return must_be_chosen(before) and not must_be_chosen(after)


def _is_renamed(before: Item, after: Item) -> bool:
    return plain(before.name) != plain(after.name)


RULES = (
    Rule("sizes_lost", _fewer("variants"), "variants"),
    Rule("size_names_lost", _loses_size_names, "variants"),
    Rule("choices_lost", _fewer("addon_groups"), "addon_groups"),
    Rule("taxes_lost", _lost("tax"), "tax"),
    Rule("taxes_moved", _moves_tax, "tax"),
    Rule("renamed", _is_renamed),
    Rule("headings_lost", _lost("categories"), "categories"),
    Rule("descriptions_lost", _lost("description"), "description"),
    Rule("pictures_lost", _lost("image_url"), "image_url"),
    Rule("options_lost", _fewer("add_ons"), kind="addon_groups"),
    Rule("required_lost", _is_not_required_now, kind="addon_groups"),
    Rule("groups_renamed", _is_renamed, kind="addon_groups"),
    Rule("options_free", lambda before, after: before.price > 0 == after.price, kind="add_ons"),
    Rule("options_renamed", _is_renamed, kind="add_ons"),
    Rule("headings_renamed", _is_renamed, kind="categories"),
)
# What is said of each: how many were hit, of how many that could be, and the first of them by name.
_TEXTS: Mapping[str, str] = {
    "sizes_lost": _("{count} of {known} items with sizes lose some of them ({names})"),
    "size_names_lost": _("{count} of {known} items have sizes without a name ({names})"),
    "choices_lost": _("{count} of {known} items with choices lose some of them ({names})"),
    "taxes_lost": _("{count} of {known} taxed items lose their tax ({names})"),
    "taxes_moved": _("{count} of {known} taxed items get a very different tax rate ({names})"),
    "renamed": _("{count} of {known} items renamed ({names})"),
    "headings_lost": _("{count} of {known} items left without a category ({names})"),
    "descriptions_lost": _("{count} of {known} items with a description lose it ({names})"),
    "pictures_lost": _("{count} of {known} items with a picture lose it ({names})"),
    "options_lost": _("{count} of {known} choices lose options ({names})"),
    "required_lost": _("{count} of {known} choices are no longer required ({names})"),
    "groups_renamed": _("{count} of {known} choices renamed ({names})"),
    "options_free": _("{count} of {known} options become free ({names})"),
    "options_renamed": _("{count} of {known} options renamed ({names})"),
    "headings_renamed": _("{count} of {known} categories renamed ({names})"),
}


def _losses(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    for rule in RULES:
        hits = rule.hits(changes)
        if not hits:
            continue
        if rule.kind == ITEMS:
            known = totals.having.get(rule.among, 0) if rule.among else totals.items
            few, ids = FEW, tuple(external_id for external_id, _name in hits)
        else:
            known, few, ids = totals.parts.get(rule.kind, 0), FEW_PARTS, ()
        if is_mass(len(hits), known, rules.menu.max_changed_percent, few=few):
            names = listed([name for _id, name in hits], _NAMES_SHOWN)
            text = _(_TEXTS[rule.code]).format(count=len(hits), known=known, names=names)
            yield Finding(rule.code, text, ids)


# -- what the text of the export gives away, whatever it says


def _source(changes: Diff, totals: Totals) -> Iterator[Finding]:
    """Yield that it was cut off, or that some program saved it anew and garbled it."""
    before, now = totals.accepted_from, totals.read_from
    if before.ends_with_newline and now.ends_with_newline is False:
        lost = [*changes.removed.values(), *(each.after for each in changes.content.values())]
        names = listed([each.name for each in lost], _NAMES_SHOWN)
        text = _("the export looks cut off: its last line does not end ({names})")
        yield Finding(
            "cut_off",
            text.format(names=names or _("its last rows differ")),
            tuple(each.external_id for each in lost),
        )
    for name, how in now.encodings.items():
        was = before.encodings.get(name)
        if was is None or not was.encoding.startswith(_UTF) or how.chosen:
            continue
        if how.encoded_twice and not was.encoded_twice:
            text = _("{file} used to be {was} and has since been encoded a second time")
        elif how.encoding != _ASCII and not how.encoding.startswith(_UTF):
            text = _(
                "{file} used to be {was} and is now read as {encoding}: line {line}, byte {byte} "
                "does not fit"
            )
        else:
            continue
        found = {"encoding": how.encoding, "line": how.bad_line, "byte": how.bad_byte}
        yield Finding("encoding", text.format(file=name, was=was.encoding.upper(), **found))


# -- items that come and go


def _departures(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield the items that are removed, and the categories that are left without any."""
    removed = len(changes.removed)
    if removed and totals.items - removed + len(changes.added) <= 0:
        text = _("the export has no items; the storefront has {count}")
        yield Finding("empty", text.format(count=totals.items))
    elif removed:
        touched = (*changes.added.values(), *(each.after for each in changes.changed.values()))
        filled = {each for item in touched for each in item.categories}
        lost = _emptied(left_by_category(changes, moved=False), totals)
        vanished = listed([name for key, name in lost.items() if key not in filled], _NAMES_SHOWN)
        text = ""
        if removed > FEW and removed * 100 > rules.menu.max_removed_percent * totals.items:
            text = _("{removed} of {count} items removed").format(
                removed=removed, count=totals.items
            )
            if vanished:
                text += _(", including all of {categories}").format(categories=vanished)
        elif vanished:
            text = _("every item of {categories} removed").format(categories=vanished)
        if text:
            yield Finding("removed", text, tuple(changes.removed))
    emptied = _emptied(left_by_category(changes), totals)
    known = totals.parts.get("categories", 0)
    if is_mass(len(emptied), known, rules.menu.max_changed_percent, few=FEW_PARTS):
        names = listed(list(emptied.values()), _NAMES_SHOWN)
        text = _("{count} of {known} categories left empty ({names})")
        yield Finding("headings_emptied", text.format(count=len(emptied), known=known, names=names))


def _emptied(left: Counter[str], totals: Totals) -> dict[str, str]:
    """Return the names of the categories that lose all of their items, and at least two, by id."""
    accepted, names = totals.category_items, totals.category_names
    return {
        key: names.get(key, key)
        for key, count in left.items()
        if count >= max(2, accepted.get(key, 0))
    }


def _additions(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield new items that nobody has seen, that cost nothing, or that are too many."""
    added, known, percent = changes.added, totals.items, rules.menu.max_changed_percent
    if rules.menu.approve_first and not known:
        text = ngettext(
            "the first menu of this storefront: {count} item to check",
            "the first menu of this storefront: {count} items to check",
            len(added),
        )
        yield Finding("first", text.format(count=len(added)))
    free = [item for item in added.values() if _is_free(item, changes)]
    menu = known + len(added) - len(changes.removed)
    many = len(free) > (FEW if known else 1) and len(free) * 100 > percent * len(added)
    if free and (many or len(free) == menu):
        text = ngettext(
            "{count} new item has no price, on a menu of {menu}",
            "{count} new items have no price, on a menu of {menu}",
            len(free),
        ).format(count=len(free), menu=menu)
        yield Finding("free", text, tuple(each.external_id for each in free))
    most = rules.menu.max_added_percent * known
    if known and is_mass(len(totals.twins), known, percent):
        text = _("{count} new items are already on the menu under other ids ({names})")
        code, fresh = "doubled", {key: each for key, each in added.items() if key in totals.twins}
    elif known and len(added) > FEW_ADDED and len(added) * 100 > most:
        text = _("{count} items added to a menu of {known} ({names})")
        code, fresh = "added", dict(added)
    else:
        return
    names = listed([each.name for each in fresh.values()], _NAMES_SHOWN)
    yield Finding(code, text.format(count=len(fresh), known=known, names=names), tuple(fresh))


def _is_free(item: Item, changes: Diff) -> bool:
    """Whether guests get it for nothing, whatever they choose with it."""
    groups = changes.addon_groups.put
    if any(each.price > 0 for each in prices_of(item)) or set(item.addon_groups) - groups.keys():
        return False  # a choice that was there before may have the price
    return not has_priced_choice(item, groups, changes.add_ons.put)


# -- prices


def _prices(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield what is free now, the decimal points that slipped, and prices that move wildly."""
    moved: list[tuple[str, int, int, str]] = []  # name, before, after, id; of variants that stay
    for external_id, change in changes.changed.items():
        was, now = change.before, change.after
        had = {each.external_id: each.price for each in was.variants}
        moved.append((now.name, was.price, now.price, external_id))
        for each in now.variants:
            price = had.get(each.external_id, each.price)
            moved.append((f"{now.name} ({each.variant_name})", price, each.price, external_id))

    zeroed = {name: key for name, before, after, key in moved if before > 0 == after}
    if zeroed:
        text = _("now free: {names}").format(names=listed(list(zeroed), _NAMES_SHOWN))
        yield Finding("free", text, tuple(zeroed.values()))

    slipped: dict[str, tuple[float, str]] = {}  # those that moved most come first
    put = changes.add_ons.put
    options = [(was.name, was.price, put[k].price, "") for k, was in changes.add_ons.before.items()]
    for name, before, after, external_id in (*moved, *options):
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
        text = _("prices that look wrong: {names}").format(names=listed(worst, _NAMES_SHOWN))
        yield Finding("price_slipped", text, tuple(filter(None, (slipped[e][1] for e in worst))))

    percent, known = rules.menu.max_price_change_percent, totals.items - len(changes.removed)
    wild: dict[str, float] = {}
    for _name, before, after, external_id in moved:
        by = abs(after - before) * 100
        if before > 0 and by > percent * before:
            wild[external_id] = max(wild.get(external_id, 0), by / before)
    if len(wild) * 5 > known:
        ids = sorted(wild, key=lambda each: -wild[each])
        names = listed([changes.changed[each].after.name for each in ids], _NAMES_SHOWN)
        text = _("{count} of {known} prices changed by more than {percent:g} % ({names})")
        text = text.format(count=len(wild), known=known, percent=percent, names=names)
        yield Finding("prices_moved", text, tuple(ids))


_ORDER = (
    *("first", "cut_off", "encoding", "empty", "removed", "free", "price_slipped", "prices_moved"),
    *("doubled", "added"),
    *(rule.code for rule in RULES),
    "headings_emptied",
)
