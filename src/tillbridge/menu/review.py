"""A change of the menu as rows that a person reviews: names and prices, the worst first. Pure.

Rows hold values (minor units, names, codes of fields); whoever shows them writes the sentences, in
the reader's language.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from tillbridge.core.formats import money
from tillbridge.core.i18n import _, joined
from tillbridge.menu.describe import FIELD_LABELS, BadRowView, bad_row_json, field_text
from tillbridge.menu.diff import AVAILABILITY, Diff, ItemChange
from tillbridge.model.catalogue import Catalogue, Item, Variant
from tillbridge.model.instant import to_iso

WORST = 8  # rows of each kind that are shown on top
ROWS = 150  # rows of a page
WILD_PERCENT = 50  # a price that moves by more is shown on top, whether the guard minds or not

RowKind = Literal["added", "changed", "removed"]


class FieldChange(TypedDict, total=False):
    """What differs in one field of an item.

    `field` is the item's, or `size` for one size: then `name` is the size's, `was` and `price` its
    prices (None: it was not there, or goes). Of other fields `before` and `after` are texts.
    """

    field: str
    name: str
    was: int | None
    price: int | None
    before: str
    after: str


class ReviewRow(TypedDict):
    """An item, or a part of the menu, that comes, goes or changes.

    `part` is `item`, `category`, `option`, `choice` or `menu`. `was` and `price` are minor units,
    None if it has none on that side. `percent` is by how much the price moves most (its own or a
    size's), 0 for not at all, None from or to nothing. `fields` leaves out the price.
    """

    kind: RowKind
    part: str
    external_id: str
    name: str
    category: str
    was: int | None
    price: int | None
    percent: int | None
    fields: list[FieldChange]


class ReviewGroup(TypedDict):
    """A category's rows on this page, and how many it has in all, by kind."""

    name: str
    counts: dict[str, int]
    rows: list[ReviewRow]


class ReviewPage(TypedDict):
    """A page of a change: `worst` first, then everything by category; `count` is of all rows."""

    worst: list[ReviewRow]
    worst_more: int
    groups: list[ReviewGroup]
    counts: dict[str, int]
    count: int
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class Differing:
    """What a reading of the till has that the storefront has not: for people, not for pushing.

    `before` and `after` name categories, choices and options; their items are in `changes` alone.
    `reasons` say why it waits for a person; `suspects` are the ids these are about.
    """

    changes: Diff
    before: Catalogue
    after: Catalogue
    reasons: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    read_at: int = 0  # ms since the epoch

    def still_open(self, accepted: Mapping[str, Item]) -> "Differing":
        """Return what of it the storefront has not got meanwhile, given what it has now."""
        changes = self.changes
        return replace(
            self,
            changes=replace(
                changes,
                added={k: v for k, v in changes.added.items() if k not in accepted},
                changed={
                    k: v
                    for k, v in changes.changed.items()
                    if k not in accepted or _content(accepted[k]) != _content(v.after)
                },
                removed={k: v for k, v in changes.removed.items() if k in accepted},
            ),
        )


NOTHING = Differing(Diff(), Catalogue(), Catalogue())


def rows_of(found: Differing) -> list[ReviewRow]:
    """Return every row: items, then categories, choices, options and menus."""
    changes = found.changes
    rows = [_whole(found, "removed", each) for each in changes.removed.values()]
    rows += [_changed(found, each) for each in changes.content.values()]
    rows += [_whole(found, "added", each) for each in changes.added.values()]
    return [*rows, *_parts(changes)]


def row_of(found: Differing, external_id: str) -> ReviewRow | None:
    """Return the row of one item; None if nothing of it differs but whether it is on sale."""
    changes = found.changes
    if external_id in changes.added:
        return _whole(found, "added", changes.added[external_id])
    if external_id in changes.removed:
        return _whole(found, "removed", changes.removed[external_id])
    change = changes.content.get(external_id)
    return None if change is None else _changed(found, change)


def worst_of(rows: Sequence[ReviewRow], suspects: Sequence[str] = ()) -> list[ReviewRow]:
    """Return what a person should see first: wild prices, then what goes, then other suspects.

    The largest jumps come first; what becomes free is the largest of all.
    """
    wild = sorted((each for each in rows if is_wild(each)), key=_by_jump)
    gone = [each for each in rows if each["kind"] == "removed" and each["part"] == "item"]
    place = {each: number for number, each in enumerate(suspects)}
    others = [each for each in rows if each["kind"] != "removed" and not is_wild(each)]
    others = [each for each in others if each["part"] == "item" and each["external_id"] in place]
    others.sort(key=lambda each: place[each["external_id"]])
    gone.sort(key=_by_name)
    return [*wild, *gone, *others]


def review_page(found: Differing, page: int, *, per_page: int = ROWS) -> ReviewPage:
    """Return a page of the change: on the first the worst, then all rows by category.

    Categories that lose most come first; in each, what goes, then the largest jumps of a price.
    """
    rows = rows_of(found)
    worst = worst_of(rows, found.suspects)
    shown = _of_each_kind(worst) if page == 1 else []
    by_group: dict[str, list[ReviewRow]] = {}
    for each in rows:
        by_group.setdefault(each["category"] if each["part"] == "item" else "", []).append(each)
    counts = {name: _counts(group) for name, group in by_group.items()}
    names = sorted(by_group, key=lambda name: (name == "", -counts[name]["removed"], name))
    ordered = [
        (name, each) for name in names for each in sorted(by_group[name], key=_within_a_category)
    ]
    start = (page - 1) * per_page
    groups: list[ReviewGroup] = []
    for name, each in ordered[start : start + per_page]:
        if not groups or groups[-1]["name"] != name:
            groups.append({"name": name, "counts": counts[name], "rows": []})
        groups[-1]["rows"].append(each)
    return {
        "worst": shown,
        "worst_more": len(worst) - len(shown) if page == 1 else 0,
        "groups": groups,
        "counts": _counts(rows),
        "count": len(rows),
        "page": page,
        "pages": max(1, -(-len(ordered) // per_page)),
    }


class ReviewView(ReviewPage):
    """The same with why it waits for a person, what cannot be read, and when the till was read."""

    reasons: list[str]
    bad_rows: list[BadRowView]
    read_at: str | None
    currency: str


def review_view(found: Differing, page: int, currency: str) -> ReviewView:
    """Return a page of the change as pages show it."""
    return {
        **review_page(found, page),
        "reasons": list(found.reasons),
        "bad_rows": [bad_row_json(row) for row in found.after.bad_rows],
        "read_at": to_iso(found.read_at) if found.read_at else None,
        "currency": currency,
    }


def is_wild(row: ReviewRow) -> bool:
    """Whether the price moves by more than half, or to nothing."""
    if row["kind"] != "changed":
        return False
    return row["percent"] is None or abs(row["percent"]) > WILD_PERCENT


# -- one row as a line of text


def row_line(row: ReviewRow, currency: str) -> str:
    """Return a row as a sentence: `Lasagne: 12.50 → 1250.00`, `Cola removed`."""
    name = row["name"]
    if row["kind"] == "removed":
        return _("{name} removed").format(name=name)
    if row["kind"] == "added":
        if row["price"] is None:
            return _("{name} added").format(name=name)
        return _("{name} added at {price}").format(name=name, price=money(row["price"], currency))
    what = [] if row["was"] == row["price"] else [_moved(row["was"], row["price"], currency)]
    for each in row["fields"]:
        if each["field"] == "size":
            moved = _moved(each["was"], each["price"], currency)
            what.append(_("{size} {change}").format(size=each["name"], change=moved))
        else:
            label = FIELD_LABELS.get(each["field"])
            what.append(_(label) if label else each["field"])
    return _("{name}: {fields}").format(name=name, fields=joined(", ", what) or _("changed"))


def _moved(was: int | None, now: int | None, currency: str) -> str:
    if now is None:
        return _("removed")
    if was is None:
        return _("added at {price}").format(price=money(now, currency))
    return _("{was} → {now}").format(was=money(was, currency), now=money(now, currency))


# -- rows


def _whole(found: Differing, kind: RowKind, item: Item) -> ReviewRow:
    """Return the row of an item that comes or goes."""
    there = item.price
    return {
        "kind": kind,
        "part": "item",
        "external_id": item.external_id,
        "name": item.name or item.external_id,
        "category": _category(found, item),
        "was": there if kind == "removed" else None,
        "price": there if kind == "added" else None,
        "percent": 0,
        "fields": [],
    }


def _changed(found: Differing, change: ItemChange) -> ReviewRow:
    """Return the row of an item that stays."""
    was, now = change.before, change.after
    fields: list[FieldChange] = []
    moves = [_percent(was.price, now.price)]
    for name in sorted(change.fields - AVAILABILITY - {"price", "external_id"}):
        if getattr(was, name) == getattr(now, name):
            continue
        if name == "variants":
            sizes = list(_sizes(was.variants, now.variants))
            both = [(each["was"], each["price"]) for each in sizes]
            moves += [_percent(a, b) for a, b in both if a is not None and b is not None]
            fields += sizes
        else:
            before = field_text(name, getattr(was, name), found.before, found.after)
            after = field_text(name, getattr(now, name), found.after, found.before)
            fields.append({"field": name, "before": before, "after": after})
    return {
        "kind": "changed",
        "part": "item",
        "external_id": now.external_id,
        "name": now.name or was.name or now.external_id,
        "category": _category(found, now),
        "was": was.price,
        "price": now.price,
        "percent": _most(moves),
        "fields": fields,
    }


def _category(found: Differing, item: Item) -> str:
    return field_text("categories", item.categories[:1], found.after, found.before)


def _sizes(before: Sequence[Variant], after: Sequence[Variant]) -> Iterator[FieldChange]:
    """Yield the sizes that differ in name or price: those that go, that stay, that come."""
    now = {each.external_id: each for each in after}
    for was in before:
        stays = now.pop(was.external_id, None)
        price = None if stays is None else stays.price
        name = was.variant_name if stays is None else stays.variant_name
        if price != was.price or name != was.variant_name:
            yield {"field": "size", "name": name, "was": was.price, "price": price}
    for new in now.values():
        yield {"field": "size", "name": new.variant_name, "was": None, "price": new.price}


_PARTS = (
    ("categories", "category"),
    ("addon_groups", "choice"),
    ("add_ons", "option"),
    ("menus", "menu"),
)


def _parts(changes: Diff) -> Iterator[ReviewRow]:
    for kind, part in _PARTS:
        found = getattr(changes, kind)
        for external_id, now in found.put.items():
            was = found.before.get(external_id)
            price = getattr(now, "price", None)
            old = getattr(was, "price", None)
            fields: list[FieldChange] = []
            if was is not None and was.name != now.name:
                fields.append({"field": "name", "before": was.name, "after": now.name})
            yield {
                "kind": "added" if was is None else "changed",
                "part": part,
                "external_id": external_id,
                "name": now.name or external_id,
                "category": "",
                "was": old,
                "price": price,
                "percent": 0 if old is None or price is None else _percent(old, price),
                "fields": fields,
            }


# -- order


def _percent(was: int, now: int) -> int | None:
    """Return by how many percent a price moves, 0 for not at all; None from or to nothing."""
    if was == now:
        return 0
    if not was or not now:
        return None
    # Rounded away from zero: what moves at all is not shown as 0 %.
    by, rest = divmod(abs(now - was) * 100, was)
    return (by + bool(rest)) * (1 if now > was else -1)


def _most(moves: Sequence[int | None]) -> int | None:
    if None in moves:
        return None
    return max((each for each in moves if each is not None), key=abs, default=0)


def _jump(row: ReviewRow) -> float:
    """Return by which factor the price moves, up or down alike; infinite from or to nothing."""
    percent = row["percent"]
    if row["kind"] != "changed" or percent == 0:
        return 1.0
    if percent is None:
        return float("inf")
    return 1 + percent / 100 if percent > 0 else 100 / max(100 + percent, 0.1)


def _by_name(row: ReviewRow) -> tuple[str, str]:
    return row["name"].casefold(), row["external_id"]


def _by_jump(row: ReviewRow) -> tuple[float, str, str]:
    return -_jump(row), *_by_name(row)


_ORDER = {"removed": 0, "changed": 1, "added": 2}


def _within_a_category(row: ReviewRow) -> tuple[bool, int, float, str, str]:
    return row["part"] != "item", _ORDER[row["kind"]], *_by_jump(row)


def _of_each_kind(worst: Sequence[ReviewRow]) -> list[ReviewRow]:
    """Return the first few of each kind, so that many of one do not hide another."""
    seen: dict[object, int] = {}
    shown = []
    for each in worst:
        kind = (each["kind"], is_wild(each))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= WORST:
            shown.append(each)
    return shown


def _counts(rows: Sequence[ReviewRow]) -> dict[str, int]:
    counts = {"removed": 0, "added": 0, "changed": 0}
    for each in rows:
        if each["part"] == "item":
            counts[each["kind"]] += 1
    return counts


def _content(item: Item) -> Item:
    """Return the item without what goes out apart from its menu: whether it is on sale."""
    return replace(
        item,
        available=True,
        snooze_until=None,
        variants=tuple(replace(each, available=True) for each in item.variants),
    )
