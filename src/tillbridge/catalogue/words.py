"""A difference in words and as JSON: for `menu plan`, for holds, for the page. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from tillbridge.catalogue.diff import Diff, ItemChange
from tillbridge.catalogue.plan import (
    PatchItem,
    Plan,
    PushBatch,
    PushFull,
    SetAvailability,
    Step,
)
from tillbridge.i18n import _
from tillbridge.model.catalogue import Catalogue, Item
from tillbridge.model.money import to_major

_SHOWN = 20  # names in one category of a summary


def summary_of(changes: Diff, before: Catalogue, after: Catalogue, currency: str) -> dict[str, Any]:
    """Return counts, and names by category, of what changes: for the ledger and the page.

    Names are in the order of the alphabet; one whose price changes is told with both prices.
    """
    names = {**before.categories, **after.categories}
    by_category: dict[str, dict[str, list[str]]] = {}
    for what, items in (
        ("added", changes.added.values()),
        ("changed", [each.after for each in changes.content.values()]),
        ("removed", changes.removed.values()),
    ):
        for item in sorted(items, key=_by_name):
            category = item.categories[0] if item.categories else ""
            title = names[category].name if category in names else category
            listed = by_category.setdefault(title, {}).setdefault(what, [])
            if len(listed) < _SHOWN:
                listed.append(_named(item, changes.changed.get(item.external_id), currency))
    return {"counts": counts_of(changes), "by_category": by_category}


def counts_of(changes: Diff) -> dict[str, int]:
    """Return how many items of each kind of change, and parts that are new or changed."""
    return {
        "added": len(changes.added),
        "changed": len(changes.content),
        "removed": len(changes.removed),
        "availability": len(changes.availability),
        "parts": sum(
            len(each.put)
            for each in (
                changes.categories,
                changes.add_ons,
                changes.addon_groups,
                changes.menus,
            )
        ),
    }


def sentences(changes: Diff, currency: str) -> Iterator[str]:
    """Yield each change as a line that a person reads."""
    for item in sorted(changes.added.values(), key=_by_name):
        yield _("+ {id} {name}, {price}").format(
            id=item.external_id, name=item.name, price=to_major(item.price, currency)
        )
    for change in sorted(changes.changed.values(), key=lambda each: _by_name(each.after)):
        yield _("~ {id} {name}: {changes}").format(
            id=change.after.external_id,
            name=change.after.name,
            changes="; ".join(_field(change, name, currency) for name in sorted(change.fields)),
        )
    for item in sorted(changes.removed.values(), key=_by_name):
        yield _("- {id} {name}").format(id=item.external_id, name=item.name)
    for kind, title in (
        (changes.categories, _("category")),
        (changes.add_ons, _("add-on")),
        (changes.addon_groups, _("add-on group")),
        (changes.menus, _("menu")),
    ):
        for external_id, part in kind.put.items():
            sign = "~" if external_id in kind.before else "+"
            yield f"{sign} {title} {external_id} {part.name}"


def changes_json(changes: Diff) -> dict[str, Any]:
    """Return the difference as JSON: prices in minor units, items by external id."""
    return {
        "added": [_item(item) for item in changes.added.values()],
        "changed": [
            {
                "external_id": external_id,
                "name": change.after.name,
                "fields": {
                    name: {
                        "from": _value(getattr(change.before, name)),
                        "to": _value(getattr(change.after, name)),
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


def calls_of(plan: Plan) -> list[dict[str, Any]]:
    """Return the calls of a plan: method, path below the store, and how much it tells."""
    return [_call(step) for step in plan.steps]


def _call(step: Step) -> dict[str, Any]:
    match step:
        case PushFull():
            return {"call": "POST menus", "items": len(step.items), "menus": len(step.menus)}
        case PushBatch():
            return {
                "call": "POST menus/batch",
                "add": len(step.add),
                "update": len(step.update),
                "delete": len(step.delete),
            }
        case PatchItem():
            return {
                "call": "PATCH items/{external_id}",
                "external_id": step.item.external_id,
                "fields": sorted(step.fields),
            }
        case SetAvailability():
            return {"call": "POST items/availability", "items": len(step.items)}


def _by_name(item: Item) -> tuple[str, str]:
    return item.name.casefold(), item.external_id


def _named(item: Item, change: ItemChange | None, currency: str) -> str:
    if change is None or "price" not in change.fields or change.before.price == item.price:
        return item.name
    was, is_now = to_major(change.before.price, currency), to_major(item.price, currency)
    return _("{name}: {was}, now {is_now}").format(name=item.name, was=was, is_now=is_now)


def _item(item: Item) -> dict[str, Any]:
    return {"external_id": item.external_id, "name": item.name, "price": item.price}


def _field(change: ItemChange, name: str, currency: str) -> str:
    before, after = getattr(change.before, name), getattr(change.after, name)
    if name == "price":
        before, after = to_major(before, currency), to_major(after, currency)
    if name == "available":
        return _("on sale") if after else _("off sale")
    if isinstance(before, str) and isinstance(after, str):
        return f"{name} {before or '-'} -> {after or '-'}"
    return _("{field} changed").format(field=name)


def _value(value: object) -> object:
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    return {name: _value(getattr(value, name)) for name in getattr(value, "__slots__", ())}
