"""What a push does to a catalogue: check references, upsert records, keep availability. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tillbridge.sandbox.state import AddOnGroup, Catalogue, Item, Variant, new_id
from tillbridge.sandbox.validation import wrong

#: A record of the body, and where in the body it stands.
Placed = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Push:
    """The records of a push body of either shape, side by side."""

    menus: list[dict[str, Any]] = field(default_factory=list)
    categories: list[Placed] = field(default_factory=list)
    items: list[Placed] = field(default_factory=list)
    add_ons: list[Placed] = field(default_factory=list)
    addon_groups: list[Placed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Applied:
    """Counts of accepted records, and the external_ids of rejected items with the reason."""

    counts: dict[str, int]
    rejected: dict[str, str]

    @property
    def message(self) -> str:
        """The rejected items in words; empty when there were none."""
        if not self.rejected:
            return ""
        reasons = "; ".join(
            f"{external_id} ({reason})" for external_id, reason in self.rejected.items()
        )
        return f"{len(self.rejected)} items were rejected: {reasons}"


def read_push(body: Mapping[str, Any]) -> Push:
    """The records of a checked push body: flat, or menus[] with or without add-ons beside it."""
    push = Push()
    if "menus" in body:
        for index, menu in enumerate(body["menus"]):
            push.menus.append(menu)
            _collect(push, menu, f"menus[{index}].")
    else:
        push.menus.append({"external_id": body["menu_name"], "name": body["menu_name"]})
    _collect(push, body, "")
    return push


def read_batch(body: Mapping[str, Any]) -> Push:
    """The records that a checked batch body adds and updates."""
    push = Push()
    _collect(push, body, "")
    for part in ("add", "update"):
        push.items.extend(_placed(body, part, ""))
    return push


def _collect(push: Push, source: Mapping[str, Any], prefix: str) -> None:
    for name in ("categories", "items", "add_ons", "addon_groups"):
        getattr(push, name).extend(_placed(source, name, prefix))


def _placed(source: Mapping[str, Any], name: str, prefix: str) -> Iterator[Placed]:
    for index, entry in enumerate(source.get(name, ())):
        yield f"{prefix}{name}[{index}]", entry


# Checks across records


def check_push(catalogue: Catalogue, push: Push) -> None:
    """Refuse duplicates, and references to what neither this body nor an earlier push has."""
    menus = [(f"menus[{index}]", menu) for index, menu in enumerate(push.menus)]
    for records in (menus, push.categories, push.items, push.add_ons, push.addon_groups):
        refuse_duplicates((path, record["external_id"]) for path, record in records)
    categories = catalogue.categories.keys() | _ids(push.categories)
    groups = catalogue.addon_groups.keys() | _ids(push.addon_groups)
    for path, item in push.items:
        check_item(path, item, categories, groups)
    sold = [each for each in push.items if each[1].get("product_type") == "addon"]
    add_ons = catalogue.add_ons.keys() | _ids(push.add_ons) | _ids(sold)
    add_ons |= {item.external_id for item in catalogue.items.values() if item.is_add_on}
    for path, group in push.addon_groups:
        _check_group(path, group, add_ons)


def _ids(placed: Iterable[Placed]) -> set[str]:
    return {record["external_id"] for _, record in placed}


def check_item(
    path: str, item: Mapping[str, Any], categories: Iterable[str], groups: Iterable[str]
) -> None:
    """One item's references and variants; `categories` and `groups` are what it may refer to."""
    _refuse_unknown(path, item, "categories", categories, "a category")
    _refuse_unknown(path, item, "addon_groups", groups, "an add-on group")
    refuse_duplicates(
        (f"{path}.variants[{index}]", entry["external_id"])
        for index, entry in enumerate(item.get("variants", ()))
    )


def _check_group(path: str, group: Mapping[str, Any], add_ons: Iterable[str]) -> None:
    _refuse_unknown(path, group, "add_ons", add_ons, "an add-on")
    if "max_select" in group and group.get("min_select", 0) > group["max_select"]:
        raise wrong(f"{path}.min_select", f"is more than max_select ({group['max_select']})")


def _refuse_unknown(
    path: str, record: Mapping[str, Any], name: str, known: Iterable[str], what: str
) -> None:
    for index, reference in enumerate(record.get(name, ())):
        if reference not in known:
            raise wrong(
                f"{path}.{name}[{index}]", f"{reference!r} is not {what} of this or an earlier push"
            )


def refuse_duplicates(placed: Iterable[tuple[str, str]]) -> None:
    """Refuse an external_id that appears twice among paths and external_ids."""
    seen: dict[str, str] = {}
    for path, external_id in placed:
        if external_id in seen:
            raise wrong(
                f"{path}.external_id", f"{external_id!r} stands at {seen[external_id]} already"
            )
        seen[external_id] = path


# Changes


def apply_push(catalogue: Catalogue, push: Push, rejected: Mapping[str, str]) -> Applied:
    """Upsert everything but the items in `rejected`.

    What an earlier push had and this one has not, remains.
    """
    refused: dict[str, str] = {}
    for menu in push.menus:
        catalogue.menus[menu["external_id"]] = menu["name"]
    for _, category in push.categories:
        catalogue.categories[category["external_id"]] = category["name"]
    for _, add_on in push.add_ons:
        _upsert_add_on(catalogue, add_on)
    for _, group in push.addon_groups:
        _upsert_group(catalogue, group)
    for _, record in push.items:
        external_id = record["external_id"]
        if external_id in rejected:
            refused[external_id] = rejected[external_id]
        else:
            upsert_item(catalogue, record)
    catalogue.revision += 1
    counts = {
        "menus": len(push.menus),
        "categories": len(push.categories),
        "items": len(push.items) - len(refused),
        "add_ons": len(push.add_ons),
        "addon_groups": len(push.addon_groups),
    }
    return Applied(counts, refused)


def upsert_item(catalogue: Catalogue, record: Mapping[str, Any]) -> None:
    """Replace an item by a full record.

    Availability that the record does not mention stays as it was.
    """
    key = record["external_id"]
    item = catalogue.items.setdefault(key, Item(new_id("prd"), key, {}))
    item.fields = {}
    _write(catalogue, item, {"variants": [], **record})


def patch_item(catalogue: Catalogue, item: Item, changes: Mapping[str, Any]) -> None:
    """Change only the fields that were sent."""
    _write(catalogue, item, changes)
    catalogue.revision += 1


def _write(catalogue: Catalogue, item: Item, fields: Mapping[str, Any]) -> None:
    item.fields.update(
        {name: value for name, value in fields.items() if name not in ("available", "variants")}
    )
    # `available: false` on an item that is snoozed is no news: its snooze goes on.
    if "available" in fields and fields["available"] != item.available:
        set_available(catalogue, item, available=fields["available"])
    if "variants" in fields:
        _write_variants(item, fields["variants"])


def _write_variants(item: Item, records: Iterable[Mapping[str, Any]]) -> None:
    for variant in item.variants.values():
        variant.active = False
    for record in records:
        external_id = record["external_id"]
        earlier = item.variants.get(external_id)
        item.variants[external_id] = Variant(
            earlier.variant_id if earlier else new_id("var"),
            external_id,
            record["variant_name"],
            record["price"],
            record.get("available", earlier.available if earlier else True),
        )


def _upsert_add_on(catalogue: Catalogue, record: Mapping[str, Any]) -> None:
    key = record["external_id"]
    add_on = catalogue.add_ons.setdefault(key, Item(new_id("prd"), key, {}))
    add_on.fields = {"name": record["name"], "price": record["price"]}


def _upsert_group(catalogue: Catalogue, record: Mapping[str, Any]) -> None:
    add_ons = tuple(record.get("add_ons", ()))
    minimum = record.get("min_select", 1 if record.get("required") else 0)
    maximum = record.get("max_select", max(len(add_ons), minimum))
    external_id = record["external_id"]
    catalogue.addon_groups[external_id] = AddOnGroup(
        external_id, record["name"], minimum, maximum, add_ons
    )


def delete_item(catalogue: Catalogue, external_id: str) -> bool:
    """Take an item off the menu; False when there was none."""
    return catalogue.items.pop(external_id, None) is not None


# Availability


def find_sellable(catalogue: Catalogue, external_id: str) -> Item | None:
    """What an availability call can switch: an item, or an entry of add_ons[]."""
    return catalogue.items.get(external_id) or catalogue.add_ons.get(external_id)


def find_add_on(catalogue: Catalogue, external_id: str) -> Item | None:
    """An entry of add_ons[], or an item with product_type addon."""
    found = catalogue.add_ons.get(external_id)
    if found is not None:
        return found
    item = catalogue.items.get(external_id)
    return item if item is not None and item.is_add_on else None


def groups_of(catalogue: Catalogue, item: Item) -> list[AddOnGroup]:
    """The item's add-on groups, in its order."""
    ids = item.fields.get("addon_groups", ())
    return [
        catalogue.addon_groups[external_id]
        for external_id in ids
        if external_id in catalogue.addon_groups
    ]


def set_available(
    catalogue: Catalogue,
    thing: Item,
    *,
    available: bool,
    snooze_until_ms: int | None = None,
) -> None:
    """On; off until somebody says otherwise; or, with `snooze_until_ms`, off until then."""
    thing.available = available
    thing.snooze_until_ms = None if available else snooze_until_ms
    if thing.snooze_until_ms is None:
        catalogue.snoozed.discard(thing.external_id)
    else:
        catalogue.snoozed.add(thing.external_id)


def wake(catalogue: Catalogue, now_ms: int) -> None:
    """Settle the snoozes that are over, so that a write sees what a customer sees."""
    for external_id in list(catalogue.snoozed):
        thing = find_sellable(catalogue, external_id)
        if thing is None:
            catalogue.snoozed.discard(external_id)
        elif is_available(thing, now_ms):
            set_available(catalogue, thing, available=True)
            catalogue.revision += 1


def is_available(thing: Item, now_ms: int) -> bool:
    """Whether it can be ordered now: switched on, or its snooze is over."""
    return thing.available or (
        thing.snooze_until_ms is not None and thing.snooze_until_ms <= now_ms
    )


def is_orderable(item: Item, now_ms: int) -> bool:
    """As `is_available`, and where it has variants, one of them can be had."""
    live = live_variants(item)
    return is_available(item, now_ms) and (not live or any(variant.available for variant in live))


def live_variants(item: Item) -> list[Variant]:
    """The variants that the last push had."""
    return [variant for variant in item.variants.values() if variant.active]


def version(catalogue: Catalogue, now_ms: int) -> str:
    """Changes whenever what a customer can order changes, a snooze that ends included."""
    over = 0
    for external_id in catalogue.snoozed:
        thing = find_sellable(catalogue, external_id)
        over += thing is not None and is_available(thing, now_ms)
    return f"{catalogue.revision}.{over}"
