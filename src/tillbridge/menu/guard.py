"""Whether a plan may go out by itself, or waits for a person (invariant 4). Pure.

Every reason is a sentence that a restaurant owner understands. A plan that passes is within every
limit; the same plan gives the same reasons. What guests would notice otherwise than by items that
are removed, and by prices, is a table of rules (`guard_rules`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tillbridge.core.i18n import _, ngettext
from tillbridge.menu.describe import listed
from tillbridge.menu.diff import Diff, ItemChange
from tillbridge.menu.guard_rules import ITEM_RULES, PART_RULES, hits_of
from tillbridge.model.catalogue import Item
from tillbridge.model.export_facts import FileEncoding
from tillbridge.model.menu_summary import has_priced_choice, prices_of
from tillbridge.model.money import to_major

FEW = 5  # so many items are a day's work, whatever the percentage
FEW_PARTS = 2  # and so many categories, choices or options
FEW_ADDED = 20  # and so many new items
ALL = 3  # of so few, all at once are no day's work
SLIP_FACTOR = 50  # a price that moves by this factor is a decimal point that slipped
_NAMES_SHOWN = 3
_ASCII = "ascii"
_UTF = "utf"  # what the codecs begin with that can write every language


@dataclass(frozen=True, slots=True)
class Limits:
    """The store's limits (settings `[stores.NAME.menu]`); `currency` is for the sentences."""

    max_removed_percent: float
    max_price_change_percent: float
    currency: str
    max_changed_percent: float = 20
    max_added_percent: float = 50
    approve_first: bool = False


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


def guard(changes: Diff, totals: Totals, limits: Limits) -> tuple[str, ...]:
    """Return why the plan must wait for a person; empty if it may go out."""
    return tuple(each.text for each in findings(changes, totals, limits))


def findings(changes: Diff, totals: Totals, limits: Limits) -> tuple[Finding, ...]:
    """Return what speaks against letting the plan go out by itself."""
    return (
        *_first(changes, totals, limits),
        *_source(changes, totals),
        *_removals(changes, totals, limits),
        *_zeros(changes, totals, limits),
        *_slips(changes, limits),
        *_wild(changes, totals, limits),
        *_additions(changes, totals, limits),
        *_items_lose(changes, totals, limits),
        *_parts_lose(changes, totals, limits),
        *_headings_emptied(changes, totals, limits),
    )


def wanted_counts(changes: Diff) -> tuple[frozenset[str], frozenset[str]]:
    """Return of which fields and which kinds of parts the guard needs the number accepted.

    Counting walks through the whole menu, so it is done only for what a rule may hold.
    """
    fields = frozenset(
        rule.among
        for rule in ITEM_RULES
        if rule.among and len(hits_of(rule, iter(changes.changed.values()))) >= ALL
    )
    kinds = {rule.kind for rule in PART_RULES if getattr(changes, rule.kind).before}
    if changes.removed or any("categories" in each.fields for each in changes.changed.values()):
        kinds.add("categories")
    return fields, frozenset(kinds)


def is_mass(hits: int, known: int, percent: float, *, few: int = FEW) -> bool:
    """Whether so many of the known are more than a day's work: over the limit, or all of them."""
    if hits >= known >= ALL:
        return True
    return hits > few and hits * 100 > percent * known


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


def emptied_categories(changes: Diff, totals: Totals) -> tuple[str, ...]:
    """Return the categories that lose all of their items (at least two), gone or moved."""
    return tuple(
        category
        for category, count in left_by_category(changes).items()
        if count >= 2 and count >= totals.category_items.get(category, 0)
    )


def left_by_category(changes: Diff) -> dict[str, int]:
    """Return how many items leave each category, off the menu or into another one."""
    left = removed_by_category(changes)
    for change in changes.changed.values():
        for category in change.before.categories:
            if category not in change.after.categories:
                left[category] = left.get(category, 0) + 1
    return left


def removed_by_category(changes: Diff) -> dict[str, int]:
    """Return how many items each category loses."""
    lost: dict[str, int] = {}
    for item in changes.removed.values():
        for category in item.categories:
            lost[category] = lost.get(category, 0) + 1
    return lost


def _first(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    """Yield that nobody has seen the menu yet, where a person wants to."""
    if limits.approve_first and not totals.items and changes.added:
        yield Finding(
            "first",
            ngettext(
                "it is the first menu of this storefront: {count} item that nobody has seen yet",
                "it is the first menu of this storefront: {count} items that nobody has seen yet",
                len(changes.added),
            ).format(count=len(changes.added)),
        )


def _source(changes: Diff, totals: Totals) -> Iterator[Finding]:
    """Yield what the text of the export gives away, whatever it says."""
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
    for name, encoding in now.encodings.items():
        was = before.encodings.get(name)
        if was is not None and was.encoding.startswith(_UTF) and not encoding.chosen:
            yield from _other_encoding(name, was, encoding)


def _other_encoding(name: str, was: FileEncoding, now: FileEncoding) -> Iterator[Finding]:
    """Yield that a file which was Unicode is not, or is garbled: some program saved it anew."""
    if now.encoded_twice and not was.encoded_twice:
        yield Finding(
            "encoding",
            _("{file} was in {was}, and was encoded a second time since").format(
                file=name, was=was.encoding.upper()
            ),
        )
    elif now.encoding != _ASCII and not now.encoding.startswith(_UTF):
        yield Finding(
            "encoding",
            _(
                "{file} was in {was}, and is read as {encoding} now: line {line}, byte {byte} "
                "does not fit"
            ).format(
                file=name,
                was=was.encoding.upper(),
                encoding=now.encoding,
                line=now.bad_line,
                byte=now.bad_byte,
            ),
        )


def _removals(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    removed = len(changes.removed)
    if not removed:
        return
    left = totals.items - removed + len(changes.added)
    if left <= 0:
        yield Finding(
            "empty",
            _("the export has no items, and the storefront has {count}").format(count=totals.items),
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
        yield Finding("removed", text, tuple(changes.removed))
    elif vanished:
        text = _("it removes every item of {categories}").format(categories=_listed(vanished))
        yield Finding("removed", text, tuple(changes.removed))


def _zeros(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
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
    few = FEW if totals.items else 1
    many = len(free) > few and len(free) * 100 > limits.max_changed_percent * added
    if free and (many or _only(free, changes, totals)):
        menu = totals.items + added - len(changes.removed)
        text = ngettext(
            "{count} new item of a menu of {menu} has no price",
            "{count} new items of a menu of {menu} have no price",
            len(free),
        ).format(count=len(free), menu=menu)
        yield Finding("free", text, tuple(each.external_id for each in free))


def _only(items: Sequence[Item], changes: Diff, totals: Totals) -> bool:
    """Whether the menu has nothing but these items."""
    return len(items) == totals.items + len(changes.added) - len(changes.removed)


def _slips(changes: Diff, limits: Limits) -> Iterator[Finding]:
    slipped: dict[str, tuple[float, str]] = {}
    for change in changes.changed.values():
        for name, before, after in _prices(change):
            if _slip(before, after):
                text = _moved(name, before, after, limits.currency)
                slipped[text] = (_slip(before, after), change.after.external_id)
    for external_id, before_part in changes.add_ons.before.items():
        before, after = before_part.price, changes.add_ons.put[external_id].price
        if _slip(before, after):
            text = _moved(before_part.name, before, after, limits.currency)
            slipped[text] = (_slip(before, after), "")
    if slipped:
        worst = sorted(slipped, key=lambda text: -slipped[text][0])
        yield Finding(
            "price_slipped",
            _("it moves the price of {names}").format(names=_listed(worst)),
            tuple(slipped[text][1] for text in worst if slipped[text][1]),
        )


def _slip(before: int, after: int) -> float:
    """Return the factor between two prices where a decimal point slipped; else 0."""
    low, high = sorted((before, after))
    return high / low if low > 0 and high >= SLIP_FACTOR * low else 0.0


def _wild(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    known = totals.items - len(changes.removed)
    wild = {}
    for change in changes.changed.values():
        moved = [
            abs(after - before) * 100 / before
            for _name, before, after in _prices(change)
            if before > 0 and abs(after - before) * 100 > limits.max_price_change_percent * before
        ]
        if moved:
            wild[change.after.external_id] = max(moved)
    if len(wild) * 5 > known:
        worst = sorted(wild, key=lambda each: -wild[each])
        text = _("it moves {count} of {known} prices by more than {percent:g} % ({names})").format(
            count=len(wild),
            known=known,
            percent=limits.max_price_change_percent,
            names=_listed([changes.changed[each].after.name for each in worst]),
        )
        yield Finding("prices_moved", text, tuple(worst))


def _additions(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    if not totals.items:
        return
    added = changes.added
    if is_mass(len(totals.twins), totals.items, limits.max_changed_percent):
        text = _(
            "it adds {count} items that are on the menu already, under other ids ({names})"
        ).format(
            count=len(totals.twins),
            names=_listed([each.name for key, each in added.items() if key in totals.twins]),
        )
        yield Finding("doubled", text, tuple(key for key in added if key in totals.twins))
    elif len(added) > FEW_ADDED and len(added) * 100 > limits.max_added_percent * totals.items:
        text = _("it adds {count} items to a menu of {known} ({names})").format(
            count=len(added),
            known=totals.items,
            names=_listed([each.name for each in added.values()]),
        )
        yield Finding("added", text, tuple(added))


def _items_lose(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    for rule in ITEM_RULES:
        hits = hits_of(rule, iter(changes.changed.values()))
        known = totals.having.get(rule.among, 0) if rule.among else totals.items
        if is_mass(len(hits), known, limits.max_changed_percent):
            text = _(rule.text).format(
                count=len(hits), known=known, names=_listed([each.before.name for each in hits])
            )
            yield Finding(rule.code, text, tuple(each.before.external_id for each in hits))


def _parts_lose(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    for rule in PART_RULES:
        parts = getattr(changes, rule.kind)
        hits = [each for key, each in parts.before.items() if rule.hit(each, parts.put[key])]
        known = totals.parts.get(rule.kind, 0)
        if is_mass(len(hits), known, limits.max_changed_percent, few=FEW_PARTS):
            names = _listed([each.name for each in hits])
            yield Finding(rule.code, _(rule.text).format(count=len(hits), known=known, names=names))


def _headings_emptied(changes: Diff, totals: Totals, limits: Limits) -> Iterator[Finding]:
    emptied = emptied_categories(changes, totals)
    known = totals.parts.get("categories", 0)
    if is_mass(len(emptied), known, limits.max_changed_percent, few=FEW_PARTS):
        names = [totals.category_names.get(each, each) for each in emptied]
        text = _("it empties {count} of {known} categories ({names})").format(
            count=len(emptied), known=known, names=_listed(names)
        )
        yield Finding("headings_emptied", text)


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


def _moved(name: str, before: int, after: int, currency: str) -> str:
    return _("{name} from {before} to {after}").format(
        name=name, before=to_major(before, currency), after=to_major(after, currency)
    )


def _listed(names: Sequence[str]) -> str:
    return listed(names, _NAMES_SHOWN)
