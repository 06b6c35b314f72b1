"""A menu, the difference of two, and pushes in words and as JSON: for people and pages. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from pydantic_core import to_jsonable_python

from tillbridge.core.formats import money, number, short_span
from tillbridge.core.i18n import N_, _, joined, ngettext
from tillbridge.menu.diff import Diff, ItemChange
from tillbridge.model.catalogue import BadRow, Catalogue, Item, ItemTax, MenuSummary, Priced
from tillbridge.model.export_facts import LeftOut
from tillbridge.model.money import to_major

# The fields of an item that people know, and what they call them.
FIELD_LABELS: Mapping[str, str] = {
    "name": N_("name"),
    "price": N_("price"),
    "description": N_("description"),
    "image_url": N_("picture"),
    "available": N_("on sale"),
    "categories": N_("categories"),
    "addon_groups": N_("choices"),
    "variants": N_("sizes"),
    "tax": N_("tax"),
    "menus": N_("menus"),
    "product_type": N_("kind"),
}


def counted(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return how much a change does, as (kind, words): ("removed", "3 items removed")."""
    removed, added, changed = (counts.get(each, 0) for each in ("removed", "added", "changed"))
    each_count = (
        ("removed", removed, ngettext("{n} item removed", "{n} items removed", removed)),
        ("changed", changed, ngettext("{n} item changed", "{n} items changed", changed)),
        ("added", added, ngettext("{n} item added", "{n} items added", added)),
    )
    return [(kind, text.format(n=number(n))) for kind, n, text in each_count if n]


def sentences(
    changes: Diff,
    before: Catalogue,
    after: Catalogue,
    currency: str,
    suspects: Sequence[str] = (),
) -> Iterator[str]:
    """Yield each change as a line that a person reads, the items of `suspects` first.

    Names and prices instead of ids, which `changes_json` has.
    """
    lines = _ItemLines(changes, before, after, currency)
    changed = [each.after for each in changes.changed.values()]
    ids = [
        item.external_id
        for items in (changes.added.values(), changed, changes.removed.values())
        for item in sorted(items, key=_by_name)
    ]
    first = set(ids).intersection(suspects)
    for external_id in dict.fromkeys((*(each for each in suspects if each in first), *ids)):
        yield lines.line(external_id)
    for kind, title in (
        (changes.categories, _("category")),
        (changes.add_ons, _("option")),
        (changes.addon_groups, _("choice")),
        (changes.menus, _("menu")),
    ):
        for external_id, part in kind.put.items():
            sign = "~" if external_id in kind.before else "+"
            yield f"{sign} {title} {part.name or external_id}"


class ItemJson(TypedDict):
    """An item that comes or goes; the price is minor units."""

    external_id: str
    name: str
    price: int


class ChangedItem(TypedDict):
    """An item that stays; `fields` has, by name, what differs `from` and `to`."""

    external_id: str
    name: str
    fields: dict[str, dict[str, Any]]


class ChangesView(TypedDict):
    """The difference as JSON: items, and the ids of parts that are new or changed."""

    added: list[ItemJson]
    changed: list[ChangedItem]
    removed: list[ItemJson]
    categories: list[str]
    add_ons: list[str]
    addon_groups: list[str]
    menus: list[str]


def changes_json(changes: Diff) -> ChangesView:
    """Return the difference as JSON: prices in minor units, items by external id."""
    return {
        "added": [_item(item) for item in changes.added.values()],
        "changed": [
            {
                "external_id": external_id,
                "name": change.after.name,
                "fields": {
                    name: {
                        "from": to_jsonable_python(getattr(change.before, name)),
                        "to": to_jsonable_python(getattr(change.after, name)),
                    }
                    for name in sorted(change.fields)
                },
            }
            for external_id, change in changes.changed.items()
        ],
        "removed": [_item(item) for item in changes.removed.values()],
        "categories": list(changes.categories.put),
        "add_ons": list(changes.add_ons.put),
        "addon_groups": list(changes.addon_groups.put),
        "menus": list(changes.menus.put),
    }


def _by_name(item: Item) -> tuple[str, str]:
    return item.name.casefold(), item.external_id


def _item(item: Item) -> ItemJson:
    return {"external_id": item.external_id, "name": item.name, "price": item.price}


@dataclass(frozen=True, slots=True)
class _ItemLines:
    """Says of each item of a difference what changes, with the names that both sides have."""

    changes: Diff
    before: Catalogue
    after: Catalogue
    currency: str

    def line(self, external_id: str) -> str:
        """Return the item's line: a sign, its name, what changes."""
        for sign, items in (("+", self.changes.added), ("-", self.changes.removed)):
            if external_id in items:
                item = items[external_id]
                return f"{sign} {_title(item)}, {to_major(item.price, self.currency)}"
        change = self.changes.changed[external_id]
        fields = [name for name in sorted(change.fields) if name in FIELD_LABELS]
        lines = filter(None, [self._field(change, name) for name in fields])
        what = joined("; ", lines) or _("sent again")
        return f"~ {_title(change.before)}: {what}"

    def _field(self, change: ItemChange, name: str) -> str:
        before, after = getattr(change.before, name), getattr(change.after, name)
        if before == after:
            return ""
        if name == "available":
            return _("on sale") if after else _("off sale")
        was = self._value(name, before, self.before, self.after)
        is_now = self._value(name, after, self.after, self.before)
        return f"{_(FIELD_LABELS[name])} {was or '-'} -> {is_now or '-'}"

    def _value(self, name: str, value: Any, own: Catalogue, other: Catalogue) -> str:  # noqa: ANN401 -- any field of an item
        match name:
            case "price":
                return to_major(value, self.currency)
            case "variants":
                return ", ".join(
                    f"{each.variant_name or '?'} {to_major(each.price, self.currency)}"
                    for each in value
                )
            case _:
                return field_text(name, value, own, other)


def field_text(name: str, value: Any, own: Catalogue, other: Catalogue) -> str:  # noqa: ANN401 -- any field of an item
    """Return a field of an item of `own` as text; `other` has names that `own` may lack."""
    if name in {"categories", "addon_groups", "menus"}:
        known = {**getattr(other, name), **getattr(own, name)}
        return ", ".join(known[each].name if each in known else each for each in value)
    if isinstance(value, ItemTax):
        rates = " + ".join(f"{each.rate} %" for each in value.components)
        return f"{value.name} {rates}".strip()
    return str(value or "")


def _title(item: Item) -> str:
    return item.name or item.external_id


_NAMES_SHOWN = 8

_REASONS = {
    "zero_price": N_("without a price"),
    "category": N_("in a category that is not sold online"),
    "variable_price": N_("with a variable price"),
    "not_a_dish": N_("not a dish"),
    "not_offered": N_("not offered"),
}


def summary_lines(summary: MenuSummary, currency: str) -> Iterator[str]:
    """Yield the summary as sentences: counts, free items, prices, encodings, what was left out."""
    yield _("{items}, {sizes}, {categories}; {choices} with {options}").format(
        items=ngettext("{n} item", "{n} items", summary.items).format(n=summary.items),
        sizes=ngettext("{n} size", "{n} sizes", summary.sizes).format(n=summary.sizes),
        categories=ngettext("{n} category", "{n} categories", summary.categories).format(
            n=summary.categories
        ),
        choices=ngettext("{n} choice", "{n} choices", summary.choices).format(n=summary.choices),
        options=ngettext("{n} option", "{n} options", summary.options).format(n=summary.options),
    )
    if summary.cheapest is not None and summary.dearest is not None:
        yield _("Cheapest: {cheapest}. Most expensive: {dearest}.").format(
            cheapest=_priced(summary.cheapest, currency), dearest=_priced(summary.dearest, currency)
        )
    if summary.free:
        yield ngettext("{n} is free: {names}", "{n} are free: {names}", len(summary.free)).format(
            n=len(summary.free), names=listed(summary.free)
        )
    if summary.sold_out:
        yield ngettext("{n} is sold out", "{n} are sold out", summary.sold_out).format(
            n=summary.sold_out
        )
    if summary.read_as:
        yield _("Format: {format}").format(format=summary.read_as)
    for name, how in summary.encodings.items():
        yield _("{file} uses the encoding {encoding}").format(file=name, encoding=how.encoding)
    yield from _left_out(summary.left_out)
    if summary.not_offered:
        yield _("The export does not say what these choices offer: {names}").format(
            names=listed(summary.not_offered)
        )
    if summary.bad_rows:
        yield ngettext(
            "{n} row cannot be read", "{n} rows cannot be read", summary.bad_rows
        ).format(n=summary.bad_rows)


def _left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in left_out:
        by_reason.setdefault(each.reason, []).append(each.name)
    for reason, names in by_reason.items():
        yield _("Not sold online, {reason}: {names}").format(
            reason=_(_REASONS[reason]) if reason in _REASONS else reason, names=listed(names)
        )


def _priced(priced: Priced, currency: str) -> str:
    return f"{priced.name} {to_major(priced.price, currency)} {currency}"


class BadRowView(TypedDict):
    """A row that cannot be read: where it is, what is wrong, and what to do."""

    place: str
    text: str
    fix: str
    external_id: str


def bad_row_json(row: BadRow) -> BadRowView:
    """Return a row that cannot be read as JSON."""
    return {
        "place": row.place,
        "text": row.text,
        "fix": row.fix,
        "external_id": row.external_id,
    }


def listed(names: Sequence[str], most: int = _NAMES_SHOWN) -> str:
    """Return the names as a text that stays short."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return _("{names} and {count} more").format(names=shown, count=more) if more > 0 else shown


# -- pushes: which dishes, what about them, and how it ended
#
# A record holds names, codes of fields and prices in minor units, of the first few items; sentences
# are made when somebody reads them.

_SHOWN = 3


class PushDetail(TypedDict, total=False):
    """What a push changed about one item.

    `kind` is added, changed, removed, on_sale or sold_out; `fields` are those that differ; `was`
    and `price` (minor units) are there where the price does.
    """

    kind: str
    name: str
    fields: list[str]
    was: int
    price: int


class PushView(TypedDict):
    """A push: what it carried, how it ended, and how long it took."""

    id: int
    kind: str
    state: str
    started_at: str
    took_ms: int | None
    summary: dict[str, Any]
    message: str
    job_id: str | None


_PUSH_ENDS: Mapping[str, str] = {
    "running": N_("in progress"),
    "success": N_("accepted"),
    "partial": N_("accepted in part"),
    "failed": N_("refused"),
    "lost": N_("no answer; sent again"),
}


def push_columns(push: PushView, currency: str) -> tuple[str, str, str]:
    """Return what was pushed, how that ended and how long it took ("" while it is on its way)."""
    duration = "" if push["took_ms"] is None else short_span(push["took_ms"])
    ended = _PUSH_ENDS.get(push["state"])
    return (
        _pushed(push["kind"], push["summary"], currency),
        push["state"] if ended is None else _(ended),
        duration,
    )


def _pushed(kind: str, summary: Mapping[str, Any], currency: str) -> str:
    numbers = {
        each: summary[each] if isinstance(summary.get(each), int) else 0
        for each in ("items", "add", "update", "delete")
    }
    details: Sequence[PushDetail] = summary.get("details") or ()
    match kind:
        case "full":
            text = ngettext("Whole menu, {n} item", "Whole menu, {n} items", numbers["items"])
            return text.format(n=number(numbers["items"]))
        case "availability":
            return _availability(details, numbers["items"])
        case "patch":
            if details:
                return _change(details[0], currency)
            fields = [_(FIELD_LABELS[each]) for each in summary.get("fields", ())
                      if each in FIELD_LABELS]  # fmt: skip
            name = summary.get("name") or summary.get("item", "?")
            return _("{name}: {fields}").format(name=name, fields=joined(", ", fields))
        case "batch":
            return _batch(details, numbers, currency)
        case _:
            return kind


def _availability(details: Sequence[PushDetail], count: int) -> str:
    off = [each["name"] for each in details if each["kind"] == "sold_out"]
    on = [each["name"] for each in details if each["kind"] == "on_sale"]
    if not details or len(details) < count:
        text = ngettext(
            "{n} item sold out or back on sale", "{n} items sold out or back on sale", count
        )
        return text.format(n=number(count))
    texts = []
    if off:
        texts.append(_("Sold out: {names}").format(names=", ".join(off)))
    if on:
        texts.append(_("Back on sale: {names}").format(names=", ".join(on)))
    return joined("; ", texts)


def _batch(details: Sequence[PushDetail], numbers: Mapping[str, int], currency: str) -> str:
    count = numbers["add"] + numbers["update"] + numbers["delete"]
    if not count:
        return _("Categories, choices or options")
    if details and count <= _SHOWN:
        return joined("; ", (_change(each, currency) for each in details))
    texts = [
        text.format(n=number(n))
        for n, text in (
            (numbers["delete"], ngettext("{n} removed", "{n} removed", numbers["delete"])),
            (numbers["update"], ngettext("{n} changed", "{n} changed", numbers["update"])),
            (numbers["add"], ngettext("{n} added", "{n} added", numbers["add"])),
        )
        if n
    ]
    if not details:
        return joined(", ", texts)
    shown = joined("; ", (_change(each, currency) for each in details[:_SHOWN]))
    return _("{counts}: {first}; and more").format(counts=joined(", ", texts), first=shown)


def _change(detail: PushDetail, currency: str) -> str:
    """Return what changed about one item: `Lasagne: price 12.50 → 13.00`."""
    name = detail["name"]
    match detail["kind"]:
        case "added":
            price = money(detail["price"], currency)
            return _("{name} added at {price}").format(name=name, price=price)
        case "removed":
            return _("{name} removed").format(name=name)
        case _:
            fields = [_field(each, detail, currency) for each in detail.get("fields", ())]
            return _("{name}: {fields}").format(
                name=name, fields=joined(", ", fields) or _("sent again")
            )


def _field(field: str, detail: PushDetail, currency: str) -> str:
    if field == "price" and "was" in detail and "price" in detail:
        was, now = money(detail["was"], currency), money(detail["price"], currency)
        return _("price {was} → {now}").format(was=was, now=now)
    return _(FIELD_LABELS[field]) if field in FIELD_LABELS else field
