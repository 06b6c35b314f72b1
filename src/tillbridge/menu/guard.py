"""Whether a plan may be sent automatically or has to wait for a person (invariant 4). Pure.

Every reason is a sentence that a restaurant owner understands. A plan within all limits passes;
the same plan always gives the same reasons. Prices and removed items have code of their own.
Everything else that guests would notice is a table (`RULES`): each rule says which items or parts
it looks at and when one of them counts. One function, `is_mass`, decides how many are too many.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.core.i18n import _, ngettext
from tillbridge.menu.describe import listed
from tillbridge.menu.diff import Diff
from tillbridge.model.catalogue import AddOnGroup, Item, ItemTax, has_priced_choice, prices_of
from tillbridge.model.export_facts import FileEncoding
from tillbridge.model.money import to_major

FEW = 5  # up to this many items are normal daily changes, whatever the percentage
FEW_PARTS = 2  # the same for categories, choices and options
FEW_ADDED = 20  # the same for new items
ALL = 3  # with at least this many, changing all of them at once is not normal
SLIP_FACTOR = 50  # a price that changes by this factor has its decimal point in the wrong place
TAX_POINTS = Decimal(5)  # no change of the law moves a tax by more percentage points
TAX_FACTOR = 2  # nor doubles or halves it
ITEMS = "items"
_NAMES_SHOWN = 3
_ASCII = "ascii"
_UTF = "utf"  # prefix of the codecs that can encode every language


@dataclass(frozen=True, slots=True)
class Rules:
    """A store's settings that decide; `currency` is needed for the sentences."""

    menu: MenuSettings
    assumptions: AssumptionSettings
    currency: str


@dataclass(frozen=True, slots=True)
class Source:
    """What is known about the text that a menu was read from.

    `ends_with_newline` as in `Catalogue`; `encodings` are by file.
    """

    ends_with_newline: bool | None = None
    encodings: Mapping[str, FileEncoding] = field(default_factory=dict)

    def after(self, before: "Source", *, sent: bool) -> "Source":
        """Return what to remember when this source follows `before`.

        A pure ASCII file does not show its encoding, so what was known about it stays. A missing
        line end is not remembered if nothing was `sent`.
        """
        if not sent and self.ends_with_newline is False:
            return before
        shown = {name: how for name, how in self.encodings.items() if how.encoding != _ASCII}
        return replace(self, encodings={**before.encodings, **shown})


@dataclass(frozen=True, slots=True)
class Totals:
    """What the ledger knows about the accepted menu.

    `items` is the number of items. `category_items` is the number of accepted items in each
    category of a removed item (counting may stop at one more than are removed). `having` is the
    number of items that have a certain field (sizes, taxes, ...), `parts` the number of parts of a
    kind; both only where the guard needs them (`wanted_counts`). `twins` are the ids of added items
    with the same name as an accepted item that stays. `accepted_from` is the source of the accepted
    menu, `read_from` the source of this one.
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
    """Why a plan has to wait: a sentence, and the ids of the items it is about, worst first."""

    code: str
    text: str
    items: tuple[str, ...] = ()


def findings(changes: Diff, totals: Totals, rules: Rules) -> tuple[Finding, ...]:
    """Return the reasons not to send the plan automatically, in the order of `_ORDER`."""
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
    """Return the fields and the kinds of parts whose accepted number the guard needs.

    Counting reads the whole menu, so only what could break a rule is counted.
    """
    fields = {each.among for each in RULES if each.among and len(each.hits(changes)) >= ALL}
    kinds = {each.kind for each in RULES if each.kind != ITEMS and each.hits(changes)}
    if changes.removed or any("categories" in each.fields for each in changes.changed.values()):
        kinds.add("categories")
    return frozenset(fields), frozenset(kinds)


def is_mass(hits: int, known: int, percent: float, *, few: int = FEW) -> bool:
    """Return whether this is more than normal daily changes: above the limit, or all of them."""
    if hits >= known >= ALL:
        return True
    return hits > few and hits * 100 > percent * known


def left_by_category(changes: Diff, *, moved: bool = True) -> Counter[str]:
    """Return how many items leave each category: removed or, if `moved`, put into another one."""
    left = Counter(each for item in changes.removed.values() for each in item.categories)
    for change in changes.changed.values() if moved else ():
        left.update(set(change.before.categories) - set(change.after.categories))
    return left


def plain(name: str) -> str:
    """Return the name without differences of case and blanks, for comparing."""
    return " ".join(name.split()).casefold()


# -- what guests would notice: one rule for each kind of change


Hit = Callable[[Any, Any], bool]  # takes an item or a part, before and after


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which items, or parts of another `kind` (a field of Diff), can change.

    `among` is the field of Item that `hit` looks at; only items that had it are counted ("" is the
    name, which every item has).
    """

    code: str
    hit: Hit
    among: str = ""
    kind: str = ITEMS

    def hits(self, changes: Diff) -> list[tuple[str, str]]:
        """Return the external id and former name of everything that the rule applies to."""
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
    """Return the sum of the rates in percent, or None if one of them is not a number."""
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
    """Return whether a guest has to choose before ordering."""
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
# The sentence for each rule: how many changed, out of how many, and the first of them by name.
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


# -- what the text of the export shows, whatever its content


def _source(changes: Diff, totals: Totals) -> Iterator[Finding]:
    """Yield a finding if the text was cut off, or was saved again by a program that garbled it."""
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


# -- added and removed items


def _departures(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield removed items, and categories that lose all of their items."""
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
    """Return the names, by id, of the categories that lose all of their items (two or more)."""
    accepted, names = totals.category_items, totals.category_names
    return {
        key: names.get(key, key)
        for key, count in left.items()
        if count >= max(2, accepted.get(key, 0))
    }


def _additions(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield new items if they need a look, cost nothing, or are too many."""
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
    """Return whether guests get the item for nothing, whatever they choose with it."""
    groups = changes.addon_groups.put
    if any(each.price > 0 for each in prices_of(item)) or set(item.addon_groups) - groups.keys():
        return False  # a choice that existed before may have the price
    return not has_priced_choice(item, groups, changes.add_ons.put)


# -- prices


def _prices(changes: Diff, totals: Totals, rules: Rules) -> Iterator[Finding]:
    """Yield items that are now free, misplaced decimal points, and prices that change a lot."""
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

    slipped: dict[str, tuple[float, str]] = {}  # largest change first
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
