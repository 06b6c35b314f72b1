"""From a comparison to the cheapest calls that are right, or to a hold. Pure.

Specification: Menus and items.

| what differs | calls |
|---|---|
| nothing | none |
| availability alone | one availability call |
| one item's fields | one PATCH |
| several things | one batch, with the parts it needs |
| everything (first, drift), most of a large menu, or who is on which menu | a full push |

Full pushes upsert, so what is gone is deleted by a batch afterwards. An item object cannot carry
the end of a snooze, so that goes by an availability call afterwards. Lists longer than the service
may take in one call are split.

Bodies hold only fields that the specification lists (Menu push body; Batch bodies), optional ones
only where they say something. A text or a list that an item no longer has is sent empty.
Money stays an integer all the way; a tax rate, decimal text inside, becomes a JSON number of the
same digits (up to 15 of them).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, TypedDict, TypeVar

from tillbridge.ledger.menu_codec import Parts
from tillbridge.menu.compare import Comparison, availability_of
from tillbridge.menu.diff import AVAILABILITY, ContentDigest, Diff, ItemChange, apply
from tillbridge.menu.guard import Rules, findings
from tillbridge.model.catalogue import Availability, Catalogue, Item, ItemTax, Menu, MenuSummary
from tillbridge.model.instant import to_iso

T = TypeVar("T")

Kind = Literal["nothing", "availability", "patch", "batch", "full"]
Body = dict[str, Any]

DEFAULT_MENU = Menu("menu", "Menu")  # for a POS that knows of no menus
# What an item no longer has is cleared with this. Of a tax and a product type no way to do so
# is shown: they are left out of a whole item object, which then stands for the item as it is.
_CLEARED: Mapping[str, Any] = {
    "description": "",
    "image_url": "",
    "categories": [],
    "addon_groups": [],
    "variants": [],
    "variant_type": "stand_alone",
}
_CANNOT_BE_CLEARED = ("tax", "product_type")


class StepSummary(TypedDict, total=False):
    """What a call carries: the item and its fields of a PATCH, else how much of what."""

    external_id: str
    fields: list[str]
    items: int
    menus: int
    add: int
    update: int
    delete: int


@dataclass(frozen=True, slots=True)
class Step:
    """One call: POST menus (full), POST menus/batch, PATCH item or POST items/availability.

    `before` is what the service has of the items that it knows; a batch adds the others. `delete`
    goes with a batch, `fields` (what differs) with a patch, `menus` with a full push.
    """

    kind: Kind
    items: tuple[Item, ...] = ()
    delete: tuple[str, ...] = ()
    parts: Parts = field(default_factory=Parts)
    before: Mapping[str, Item] = field(default_factory=dict)
    menus: tuple[Menu, ...] = ()
    fields: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        """The external ids of the items that the step carries, in order."""
        return (*(each.external_id for each in self.items), *self.delete)

    @property
    def add(self) -> tuple[Item, ...]:
        """The items of a batch that the service does not know yet."""
        return tuple(each for each in self.items if each.external_id not in self.before)

    @property
    def update(self) -> tuple[Item, ...]:
        """The items of a batch that the service knows."""
        return tuple(each for each in self.items if each.external_id in self.before)

    @property
    def summary(self) -> StepSummary:
        """What the step carries, in short."""
        match self.kind:
            case "patch":
                return {"external_id": self.ids[0], "fields": sorted(self.fields)}
            case "full":
                return {"items": len(self.items), "menus": len(self.menus)}
            case "batch":
                new = len(self.add)
                return {"add": new, "update": len(self.items) - new, "delete": len(self.delete)}
            case _:
                return {"items": len(self.items)}

    @property
    def availability(self) -> dict[str, Availability | None]:
        """The availability that the step carries; None of an item that it deletes."""
        if self.kind == "patch" and "available" not in self.fields:
            return {}
        carried: dict[str, Availability | None] = {
            each.external_id: availability_of(each) for each in self.items
        }
        return carried | dict.fromkeys(self.delete)

    def contradicted_by(self, other: "Step") -> set[str]:
        """Return the items of which both carry something, and not the same."""
        mine: Mapping[str, object]
        theirs: Mapping[str, object]
        if "availability" in {self.kind, other.kind}:
            mine, theirs = self.availability, other.availability
        else:
            mine, theirs = self.carried, other.carried
        return {key for key in mine.keys() & theirs.keys() if mine[key] != theirs[key]}

    @property
    def carried(self) -> dict[str, Item | None]:
        """The items that the step carries; None for one that it deletes."""
        carried: dict[str, Item | None] = {each.external_id: each for each in self.items}
        return carried | dict.fromkeys(self.delete)

    def with_availability(self, sent: Mapping[str, Availability]) -> "Step":
        """Return the step with the availability that was sent of its items since it was planned.

        An item object cannot carry the end of a snooze.
        """
        if sent.keys().isdisjoint(self.ids):
            return self
        ends = self.kind == "availability"
        items = tuple(
            replace(each, available=latest.available, snooze_until=latest.until if ends else None)
            if (latest := sent.get(each.external_id)) is not None
            else each
            for each in self.items
        )
        return replace(self, items=items)

    def body(self) -> Body:
        """Return the body of the call; of a large menu beside the event loop."""
        match self.kind:
            case "full":
                return menus_body(menus_of(self))
            case "batch":
                return batch_body(self.items, self.before, self.delete, self.parts)
            case "patch":
                (item,) = self.items
                whole = item_body(item, self.before[item.external_id])
                sent = self.fields | {"external_id"}
                return {name: value for name, value in whole.items() if name in sent}
            case _:
                return {"items": availability_bodies(self.items)}

    def only(self, ids: AbstractSet[str]) -> "Step":
        """Return the step with these items alone, and the parts that they need."""
        items = tuple(each for each in self.items if each.external_id in ids)
        delete = tuple(each for each in self.delete if each in ids)
        return replace(self, items=items, delete=delete, parts=needed(items, self.parts))


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls to make, in order."""

    kind: Kind
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a reading comes to.

    `reasons` say why the plan waits for a person; then `plan` holds only what may go out meanwhile
    (availability), and `suspects` are the ids of the items the reasons are about, the worst first.
    `digest` names the content of a plan that waits, or waited. `needs_whole` asks for the whole
    export, which a full push takes. `first` sums up a menu that the storefront has nothing to
    compare with.
    """

    comparison: Comparison
    plan: Plan
    digest: str = ""
    reasons: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    approved: bool = False
    needs_whole: bool = False
    first: MenuSummary | None = None


def guard_and_plan(
    comparison: Comparison, rules: Rules, now_ms: int, *, full: bool = False
) -> Assessment:
    """Return the calls that bring the service in line, or why a person has to look first.

    `full`: a full push is asked for, whatever it costs. Takes its time for a large menu: run it
    beside the event loop.
    """
    if rules.assumptions.service_restores_snoozed:
        comparison = _without_ended_snoozes(comparison, now_ms)
    changes, hold, totals = comparison.changes, comparison.hold, comparison.totals
    first = None
    if changes.added and not totals.items:
        first = MenuSummary.of(comparison.current)
    if not changes and not full:
        return Assessment(comparison, Plan("nothing"), first=first)
    found = findings(changes, totals, rules)
    digest = ContentDigest(changes).text if found or hold is not None else ""
    approved = hold is not None and hold.approved and hold.digest == digest
    if found and not approved:
        suspects = tuple(dict.fromkeys(each for finding in found for each in finding.items))
        return Assessment(
            comparison,
            availability_alone(changes, rules),
            digest,
            tuple(each.text for each in found),
            suspects,
            first=first,
        )
    kind: Kind = "full"
    if not full:
        kind = choose(changes, acknowledged=totals.items, menus=comparison.menus, rules=rules)
    if kind == "full" and not comparison.whole:
        return Assessment(comparison, Plan("full"), digest, needs_whole=True, first=first)
    target = apply(changes, comparison.acknowledged) if kind == "full" else Catalogue()
    steps = plan(kind, changes, target, rules)
    return Assessment(comparison, steps, digest, approved=approved, first=first)


def availability_alone(changes: Diff, rules: Rules) -> Plan:
    """Return what never waits: availability, of items that the service has."""
    toggled = {
        external_id: replace(change, fields=AVAILABILITY)
        for external_id, change in changes.changed.items()
        if availability_of(change.before) != availability_of(change.after)
    }
    return plan("availability", Diff(changed=toggled), Catalogue(), rules)


def snooze_ended(change: ItemChange, now_ms: int) -> bool:
    """Whether the change is that a snooze, sent to the service with its end, is over."""
    until = change.before.snooze_until
    return change.after.available and until is not None and until <= now_ms


def _without_ended_snoozes(comparison: Comparison, now_ms: int) -> Comparison:
    """Leave out snoozes that the service ends by itself; the availability lane notes them."""
    changed = {
        external_id: change
        for external_id, change in comparison.changes.changed.items()
        if not (change.fields <= AVAILABILITY and snooze_ended(change, now_ms))
    }
    return replace(comparison, changes=replace(comparison.changes, changed=changed))


def choose(changes: Diff, *, acknowledged: int, menus: int, rules: Rules) -> Kind:
    """Return the kind of plan for `changes`.

    `acknowledged` is how many items the service has, `menus` how many menus the catalogue has.
    """
    if not changes.needs_push:
        return "availability" if changes.changed else "nothing"
    touched = len(changes.added) + len(changes.content)
    large = touched > rules.assumptions.background_threshold
    most = touched * 100 > rules.menu.full_push_percent * max(acknowledged, touched)
    # What only a full push can say: menus, and who is on which.
    menus_move = changes.menus.put or (changes.added and menus > 1)
    if (acknowledged == 0 and touched) or (large and most) or menus_move:
        return "full"
    if any(each.before.menus != each.after.menus for each in changes.changed.values()):
        return "full"
    if changes.added or changes.removed or changes.counts["parts"] or len(changes.changed) != 1:
        return "batch"
    (change,) = changes.changed.values()
    was, is_now = change.before, change.after
    lost = any(getattr(was, name) and not getattr(is_now, name) for name in _CANNOT_BE_CLEARED)
    return "batch" if lost else "patch"


def plan(kind: Kind, changes: Diff, target: Catalogue, rules: Rules) -> Plan:
    """Return the calls of that kind; for a full push `target` is the whole catalogue to be."""
    size = rules.assumptions.batch_max_items
    touched = [*changes.added.values(), *(each.after for each in changes.changed.values())]
    steps: list[Step] = []
    match kind:
        case "patch":
            for key, change in changes.changed.items():
                item, before = without_snooze(change.after), {key: change.before}
                steps.append(Step("patch", (item,), before=before, fields=change.fields))
        case "batch":
            steps += _batches(touched, changes, size)
        case "full":
            touched = list(target.items.values())
            steps += _full(changes, target, size)
    if kind != "availability":  # only that call can say when a snooze ends
        touched = [each for each in touched if not each.available and each.snooze_until is not None]
    steps += [Step("availability", tuple(portion)) for portion in portions(touched, size)]
    return Plan(kind, tuple(steps))


def _batches(touched: Sequence[Item], changes: Diff, size: int) -> Iterator[Step]:
    parts = Parts(changes.categories.put, changes.add_ons.put, changes.addon_groups.put)
    rows: list[Item | str] = [*touched, *changes.removed]
    for portion in portions(rows, size) or [[]]:
        items = tuple(without_snooze(each) for each in portion if isinstance(each, Item))
        before = {
            each.external_id: changes.changed[each.external_id].before
            for each in items
            if each.external_id in changes.changed
        }
        delete = tuple(each for each in portion if isinstance(each, str))
        yield Step("batch", items, delete, parts, before)
        parts = Parts()  # they went with the first


def _full(changes: Diff, target: Catalogue, size: int) -> Iterator[Step]:
    items = tuple(without_snooze(each) for each in target.items.values())
    if items or target.menus:
        parts = Parts(target.categories, target.add_ons, target.addon_groups, target.menus)
        menus = tuple(target.menus.values()) or (DEFAULT_MENU,)
        yield Step("full", items, parts=parts, menus=menus)
    for portion in portions(list(changes.removed), size):
        yield Step("batch", delete=tuple(portion))


def without_snooze(item: Item) -> Item:
    """Return the item as an item object can say it."""
    return item if item.snooze_until is None else replace(item, snooze_until=None)


def portions(values: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return the values in portions of at most `size`."""
    return [values[start : start + size] for start in range(0, len(values), size)]


def needed(items: Sequence[Item], parts: Parts) -> Parts:
    """Return those of the parts that the items refer to, directly or through a group."""
    categories = {each for item in items for each in item.categories}
    groups = {each for item in items for each in item.addon_groups} & parts.addon_groups.keys()
    add_ons = {each for group in groups for each in parts.addon_groups[group].add_ons}
    return Parts(
        {key: part for key, part in parts.categories.items() if key in categories},
        {key: part for key, part in parts.add_ons.items() if key in add_ons},
        {key: part for key, part in parts.addon_groups.items() if key in groups},
        parts.menus,
    )


def menus_of(push: Step) -> Iterator[tuple[Menu, tuple[Item, ...], Parts]]:
    """Yield each menu of a full push with its items and parts.

    An item that names no menu of the push is on the first one; so are parts that no item needs.
    """
    first = push.menus[0].external_id
    if len(push.menus) == 1:
        yield push.menus[0], push.items, push.parts
        return
    on: dict[str, list[Item]] = {menu.external_id: [] for menu in push.menus}
    for item in push.items:
        for menu_id in [each for each in item.menus if each in on] or [first]:
            on[menu_id].append(item)
    needs = {menu_id: needed(items, push.parts) for menu_id, items in on.items()}
    for kind in ("categories", "add_ons", "addon_groups"):
        used = {key for each in needs.values() for key in getattr(each, kind)}
        orphans = {key: part for key, part in getattr(push.parts, kind).items() if key not in used}
        with_them = {**getattr(needs[first], kind), **orphans}
        needs[first] = replace(needs[first], **{kind: with_them})
    for menu in push.menus:
        yield menu, tuple(on[menu.external_id]), needs[menu.external_id]


# -- bodies


def item_body(item: Item, before: Item | None = None) -> Body:
    """Return the whole item; `before` is what the service has, so that what is gone is cleared."""
    optional: Body = {
        "description": item.description,
        "image_url": item.image_url,
        "categories": list(item.categories),
        "addon_groups": list(item.addon_groups),
        "variant_type": item.variant_type,
        "variants": [
            {
                "external_id": each.external_id,
                "variant_name": each.variant_name,
                "price": each.price,
                "available": each.available,
            }
            for each in item.variants
        ],
        "tax": item.tax and _tax(item.tax),
        "product_type": item.product_type,
    }
    body: Body = {"external_id": item.external_id, "name": item.name, "price": item.price}
    body["available"] = item.available
    for name, value in optional.items():
        if value:
            body[name] = value
        elif before is not None and getattr(before, name) and name in _CLEARED:
            body[name] = _CLEARED[name]
    return body


def availability_bodies(items: Iterable[Item]) -> list[Body]:
    """Return the items of a batch availability call (specification: Batch and availability)."""
    bodies: list[Body] = []
    for item in items:
        body: Body = {"external_id": item.external_id, "available": item.available}
        if not item.available and item.snooze_until is not None:
            body["snooze_until"] = to_iso(item.snooze_until)
        bodies.append(body)
    return bodies


def batch_body(
    items: Iterable[Item], before: Mapping[str, Item], delete: Iterable[str], parts: Parts
) -> Body:
    """Return the body of a batch; `before` is what the service has of the items that it knows."""
    body: Body = {"add": [], "update": [], "delete": list(delete)}
    for item in items:
        was = before.get(item.external_id)
        body["add" if was is None else "update"].append(item_body(item, was))
    return body | {name: encoded for name, encoded in _part_lists(parts).items() if encoded}


def menus_body(menus: Iterable[tuple[Menu, Iterable[Item], Parts]]) -> Body:
    """Return the body of a full push in the preferred shape: each menu with its items and parts."""
    listed = []
    for menu, items, parts in menus:
        body: Body = {"external_id": menu.external_id, "name": menu.name}
        if menu.description:
            body["description"] = menu.description
        lists = _part_lists(parts)
        body["categories"] = lists.pop("categories")
        body["items"] = [item_body(item) for item in items]
        listed.append(body | lists)
    return {"menus": listed}


def _tax(tax: ItemTax) -> Body:
    components = [
        {"agency": each.agency, "rate": json_number(each.rate)} for each in tax.components
    ]
    return {"name": tax.name, "components": components}


def json_number(text: str) -> int | float:
    """Return decimal text as a JSON number that is written with the same digits.

    A float of up to 15 significant digits is written back as those digits; tax rates have fewer.
    """
    value = Decimal(text)
    whole = value.to_integral_value()
    return int(whole) if value == whole else float(value)


def _part_lists(parts: Parts) -> dict[str, list[Body]]:
    return {
        "categories": [
            {"external_id": each.external_id, "name": each.name}
            for each in parts.categories.values()
        ],
        "add_ons": [
            {"external_id": each.external_id, "name": each.name, "price": each.price}
            for each in parts.add_ons.values()
        ],
        "addon_groups": [
            {
                "external_id": each.external_id,
                "name": each.name,
                "min_select": each.min_select,
                "max_select": each.max_select or max(len(each.add_ons), each.min_select),
                "required": each.required,
                "add_ons": list(each.offered),
            }
            for each in parts.addon_groups.values()
        ],
    }
