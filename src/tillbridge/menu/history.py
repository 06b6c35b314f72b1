"""Pushes in words: which dishes, what about them, and how it ended. Pure.

A record holds names, codes of fields and prices in minor units, of the first few items; sentences
are made when somebody reads them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from tillbridge.core.formats import money, number, short_span
from tillbridge.core.i18n import N_, _, joined, ngettext
from tillbridge.menu.describe import FIELD_LABELS

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
