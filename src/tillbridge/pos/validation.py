"""What an adapter hands over, validated once and whole, before anything else of the bridge sees it.

What passes here can be compared, judged, sent and stored without an error: texts can be encoded,
numbers fit, instants are instants. A bad value costs its row: the item becomes a bad row and keeps
its last good state; what names a part that is refused is refused with it. An answer that is broken
as a whole raises TypeError, which is the adapter's failure and of its store alone.

A menu may have 200,000 items, so an item that is plainly fine is known by a few comparisons; only
what is not goes through pydantic, which finds the field and the words (decision 34).
"""

# What is checked here is typed as it should be, and need not be so: that is the point.
# mypy: disable-error-code="redundant-expr, unreachable"

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    Advice,
    Availability,
    AvailabilityReading,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Category,
    Health,
    Item,
    ItemTax,
    ListedTicket,
    Menu,
    Source,
    Table,
    TablesReading,
    Ticket,
    TicketUpdate,
    Variant,
)
from tillbridge.core.i18n import _
from tillbridge.model.instant import is_never
from tillbridge.model.money import MAX_PRICE
from tillbridge.model.texts import is_storable, printable
from tillbridge.pos.answer_models import (
    MAX_ADVICE,
    MAX_DESCRIPTION,
    MAX_LINE,
    MAX_PARTS,
    MAX_URL,
    VENDOR,
    AddOnModel,
    AnswerModel,
    AvailabilityEntry,
    AvailabilityModel,
    CategoryModel,
    GroupModel,
    ItemModel,
    MenuModel,
    TableModel,
    TaxModel,
    UpdateModel,
    words_of,
)
from tillbridge.pos.storable import (
    fits,
    place_of,
    shown_value,
    storable_facts,
    storable_id,
    storable_rows,
    storable_text,
)

T = TypeVar("T")

_FINGERPRINTS = range(-(1 << 63), 1 << 63)


# -- menus


def valid_catalogue(catalogue: Catalogue) -> Catalogue:
    """Return the menu; what cannot be used becomes bad rows. Raises TypeError."""
    source = _source(catalogue.source)
    check = _Check(source)
    categories = check.parts(catalogue.categories, Category, CategoryModel, "categories")
    menus = check.parts(catalogue.menus, Menu, MenuModel, "menus")
    add_ons = check.parts(catalogue.add_ons, AddOn, AddOnModel, "add_ons")
    groups = check.parts(catalogue.addon_groups, AddOnGroup, GroupModel, "addon_groups")
    lost = _Lost(
        check.lost(catalogue.categories, categories),
        check.lost(catalogue.menus, menus),
        check.lost(catalogue.add_ons, add_ons),
    )
    groups = check.groups(groups, lost.add_ons)
    lost.groups = check.lost(catalogue.addon_groups, groups)
    return replace(
        catalogue,
        items=check.items(catalogue.items, lost),
        categories=categories,
        add_ons=add_ons,
        addon_groups=groups,
        menus=menus,
        bad_rows=(*storable_rows(catalogue.bad_rows), *check.bad_rows),
        fingerprints=_fingerprints(catalogue.fingerprints),
        ends_with_newline=catalogue.ends_with_newline
        if isinstance(catalogue.ends_with_newline, bool)
        else None,
        facts=storable_facts(catalogue.facts),
        source=source,
    )


def valid_changes(changes: CatalogueChanges) -> CatalogueChanges:
    """Return the difference without what cannot be used. Raises TypeError."""
    _must_be(changes.fresh, Catalogue, "fresh")
    _must_be(changes.unseen, AbstractSet, "unseen")
    if not isinstance(changes.items_read, int) or not 0 <= changes.items_read < 1 << 31:
        msg = f"items_read is {shown_value(changes.items_read)}"
        raise TypeError(msg)
    if not all(type(each) is int and each in _FINGERPRINTS for each in changes.unseen):
        msg = "unseen holds something that is no fingerprint"
        raise TypeError(msg)
    return replace(changes, fresh=valid_catalogue(changes.fresh), unseen=frozenset(changes.unseen))


def valid_availability(reading: AvailabilityReading) -> AvailabilityReading:
    """Return the reading without what cannot be used. Raises TypeError."""
    _must_be(reading.items, Mapping, "items")
    check = _Check(_source(reading.source))
    good: dict[str, Availability] = {}
    for key, state in reading.items.items():
        if not isinstance(state, Availability):
            check.refuse_kind(key, state, Availability)
            continue
        entry = replace(state, until=None) if _means_never(state.until) else state
        if check.fine(AvailabilityEntry(key, entry.available, entry.until), AvailabilityModel, key):
            good[key] = entry
    return replace(
        reading, items=good, bad_rows=(*storable_rows(reading.bad_rows), *check.bad_rows)
    )


def _means_never(at_ms: object) -> bool:
    """Return whether an end means for ever: refused, the item would stay on sale."""
    return type(at_ms) is int and is_never(at_ms)


def valid_tables(reading: TablesReading) -> TablesReading:
    """Return the floor plan without what cannot be used. Raises TypeError."""
    _must_be(reading.tables, Sequence, "tables")
    check = _Check(_source(reading.source))
    good = []
    for table in reading.tables:
        if not isinstance(table, Table):
            check.refuse_kind("", table, Table)
        elif check.fine(table, TableModel, table.external_id):
            good.append(table)
    bad_rows = (*storable_rows(reading.bad_rows), *check.bad_rows)
    return replace(reading, tables=tuple(good), bad_rows=bad_rows)


# -- tickets


def valid_updates(updates: Iterable[object]) -> tuple[tuple[TicketUpdate, ...], tuple[BadRow, ...]]:
    """Return the news that can be kept, and what of it cannot."""
    check = _Check(Source())
    good = []
    for number, update in enumerate(updates, 1):
        place = _("news {number}").format(number=number)
        if not isinstance(update, TicketUpdate):
            check.refuse_kind("", update, TicketUpdate, place=place)
            continue
        if not isinstance(update.key, str) or not update.key:
            check.refuse_kind("", update.key, str, place=place)
            continue
        place = printable(update.key, most=200)
        if check.fine(update, UpdateModel, "", place=place):
            good.append(replace(update, message=storable_text(update.message, MAX_URL)))
    return tuple(good), tuple(check.bad_rows)


def valid_ticket(ticket: Ticket) -> Ticket:
    """Return the ticket. A reference that cannot be stored is made to be: the order is written."""
    return replace(ticket, reference=storable_text(ticket.reference, MAX_LINE))


def valid_listed(tickets: Iterable[object]) -> tuple[ListedTicket, ...]:
    """Return the listed tickets. Raises TypeError for anything that cannot be one."""
    found = []
    for ticket in tickets:
        _must_be(ticket, ListedTicket, "a listed ticket")
        assert isinstance(ticket, ListedTicket)  # noqa: S101 -- for the type checker
        texts = (ticket.key, ticket.reference, ticket.record)
        if not all(isinstance(each, str) and fits(each, MAX_LINE) for each in texts):
            msg = "a listed ticket has a key, reference or record that cannot be stored"
            raise TypeError(msg)
        _must_be(ticket.live, bool, "live")
        found.append(ticket)
    return tuple(found)


def valid_health(health: Health) -> Health:
    """Return the answer with texts that can be stored. Raises TypeError for one that is none."""
    _must_be(health.online, bool, "online")
    _must_be(health.advice, tuple, "advice")
    for each in health.advice:
        _must_be(each, Advice, "advice")
    return Health(
        online=health.online,
        detail=storable_text(health.detail, MAX_LINE),
        closed=storable_text(health.closed, MAX_LINE),
        advice=tuple(
            Advice(storable_text(each.text, MAX_LINE), storable_text(each.fix, MAX_LINE))
            for each in health.advice[:MAX_ADVICE]
        ),
        fix=storable_text(health.fix, MAX_LINE),
    )


def valid_paths(paths: Iterable[object]) -> tuple[Path, ...]:
    """Return the paths. Raises TypeError for anything else."""
    found = tuple(paths)
    for path in found:
        _must_be(path, Path, "a file")
    return tuple(path for path in found if isinstance(path, Path))


# -- inside


@dataclasses.dataclass(slots=True)
class _Lost:
    """The parts that were refused, by external id."""

    categories: AbstractSet[str]
    menus: AbstractSet[str]
    add_ons: AbstractSet[str]
    groups: AbstractSet[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.categories or self.menus or self.groups)

    def named_by(self, item: Item) -> tuple[str, str] | None:
        """Return the field of the item that names a refused part, and the part; None for none."""
        for field, lost in (
            ("categories", self.categories),
            ("addon_groups", self.groups),
            ("menus", self.menus),
        ):
            for each in getattr(item, field):
                if each in lost:
                    return field, each
        return None


class _Check:
    """Validates the parts of one reading, and gathers what is refused as bad rows."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.bad_rows: list[BadRow] = []

    def parts(
        self, found: Mapping[str, T], kind: type[T], model: type[AnswerModel], name: str
    ) -> Mapping[str, T]:
        """Return those that are fine. What is refused lets nothing be removed."""
        _must_be(found, Mapping, kind.__name__)
        good: dict[str, T] = {}
        for key, part in found.items():
            place = self._row_of_part(key)
            if not isinstance(part, kind):
                self.refuse_kind("", part, kind, place=place)
            elif self._keyed(key, part, place) and self.fine(
                part, model, "", place=place, part=name
            ):
                good[key] = part
        return good if len(good) < len(found) else found

    def lost(self, found: Mapping[str, T], good: Mapping[str, T]) -> AbstractSet[str]:
        """Return the ids of what is not there any more."""
        if found is good:
            return frozenset()
        return frozenset(key for key in found if isinstance(key, str) and key not in good)

    def groups(
        self, groups: Mapping[str, AddOnGroup], lost: AbstractSet[str]
    ) -> Mapping[str, AddOnGroup]:
        """Return the groups that name no add-on which is refused."""
        if not lost:
            return groups
        good = {}
        for key, group in groups.items():
            missing = next((each for each in group.add_ons if each in lost), "")
            if missing:
                column = self._column("add_ons", "addon_groups")
                self._refuse_naming(self._row_of_part(key), "", column, missing)
            else:
                good[key] = group
        return good

    def items(self, items: Mapping[str, Item], lost: _Lost) -> Mapping[str, Item]:
        """Return the items that are fine."""
        _must_be(items, Mapping, "items")
        seen: set[object] = {()}
        changed: dict[str, Item | None] = {}
        for key, item in items.items():
            if not _plainly_fine(key, item, seen) and (good := self._item(key, item)) is not item:
                changed[key] = good
                if good is None:
                    continue
            if lost and (named := lost.named_by(item)) is not None:
                field, part = named
                self._refuse_naming(self._row(key), key, self._column(field), part)
                changed[key] = None
        if not changed:
            return items
        checked = {key: changed.get(key, item) for key, item in items.items()}
        return {key: item for key, item in checked.items() if item is not None}

    def fine(
        self,
        value: object,
        model: type[AnswerModel],
        key: object,
        *,
        place: str = "",
        part: str = "",
    ) -> bool:
        """Return whether the value is fine; else it is a bad row that stands for item `key`.

        `part` is the kind of a part of the menu, as the columns name it.
        """
        try:
            model.model_validate(value)
        except ValidationError as odd:
            first = odd.errors(include_url=False)[0]
            column = self._column(".".join(map(str, first["loc"])), part)
            place = place or self._row_of_size(value, first["loc"]) or self._row(key)
            self._refuse(place, key, column, first)
            return False
        return True

    def refuse_kind(self, key: object, value: object, kind: type, *, place: str = "") -> None:
        """Refuse what is of another kind altogether."""
        self.bad_rows.append(
            BadRow(
                place=place or self._row(key),
                text=_("It is no {kind}.").format(kind=kind.__name__),
                fix=VENDOR,
                external_id=storable_id(key),
                value=shown_value(value),
            )
        )

    def _item(self, key: object, item: object) -> Item | None:
        """Return the item as it can be used, None where it is refused."""
        if not isinstance(item, Item):
            self.refuse_kind(key, item, Item)
            return None
        if _means_never(item.snooze_until):
            item = replace(item, snooze_until=None)
        fine = self._keyed(key, item, self._row(key)) and self.fine(item, ItemModel, key)
        return item if fine else None

    def _keyed(self, key: object, part: Any, place: str) -> bool:  # noqa: ANN401 -- anything with an id
        if key == part.external_id:
            return True
        self.bad_rows.append(
            BadRow(
                place=place,
                text=_("It stands under another external_id than its own."),
                fix=VENDOR,
                external_id=storable_id(key),
                field="external_id",
                value=shown_value(part.external_id),
            )
        )
        return False

    def _row(self, key: object) -> str:
        """Return where a person finds the record: file and row where the adapter gave them."""
        place = self._source.places.get(key) if isinstance(key, str) else None
        return storable_text(place, MAX_LINE) if place else place_of(key)

    def _row_of_part(self, key: object) -> str:
        place = self._source.part_places.get(key) if isinstance(key, str) else None
        return storable_text(place, MAX_LINE) if place else place_of(key)

    def _row_of_size(self, item: object, at: Sequence[int | str]) -> str:
        """Return where the size stands that a location in an item is about, "" for none."""
        match at:
            case ("variants", int(number), *_) if isinstance(item, Item):
                size = getattr(item.variants[number], "external_id", None)
                place = self._source.places.get(size) if isinstance(size, str) else None
                return storable_text(place, MAX_LINE) if place else ""
        return ""

    def _column(self, field: str, part: str = "") -> str:
        """Return what the file calls a field of an item, or of a `part` of the menu.

        A size's is called as its item's, unless it has a name of its own.
        """
        names = [each for each in field.split(".") if not each.isdecimal()]
        if part:
            known = [f"{part}.{names[0]}"]
        elif names[0] == "variants":
            known = [".".join(names), names[-1], names[0]]
        else:
            known = names[:1]
        return next((name for each in known if (name := self._source.columns.get(each))), field)

    def _refuse(self, place: str, key: object, column: str, error: Any) -> None:  # noqa: ANN401 -- as pydantic gives it
        value = error["input"]
        what, fix = words_of(error)
        shown = f"({shown_value(value)})" if value != "" else ""
        self.bad_rows.append(
            BadRow(
                place=place,
                text=" ".join(each for each in (column, shown, what) if each) + ".",
                fix=fix,
                external_id=storable_id(key),
                field=column,
                value=shown_value(value),
            )
        )

    def _refuse_naming(self, place: str, key: str, column: str, missing: str) -> None:
        self.bad_rows.append(
            BadRow(
                place=place,
                text=_("It names {part}, which cannot be used.").format(part=shown_value(missing)),
                fix=_("Mend {part} first; its own bad row says how.").format(
                    part=shown_value(missing)
                ),
                external_id=storable_id(key),
                field=column,
                value=shown_value(missing),
            )
        )


def _plainly_fine(key: object, item: Item, seen: set[object]) -> bool:
    """Return whether the item is surely fine; False says nothing.

    `seen` holds the tuples of ids, and the ids of the taxes, that were found fine before.
    """
    if item.__class__ is not Item:
        return False
    external_id, name, description, image = (
        item.external_id,
        item.name,
        item.description,
        item.image_url,
    )
    if not (
        external_id.__class__ is str
        and name.__class__ is str
        and description.__class__ is str
        and image.__class__ is str
        and key == external_id
        and 0 < len(external_id) <= MAX_LINE
        and 0 < len(name) <= MAX_LINE
        and len(description) <= MAX_DESCRIPTION
        and len(image) <= MAX_URL
        and item.price.__class__ is int
        and 0 <= item.price <= MAX_PRICE
        and item.available.__class__ is bool
        and item.snooze_until is None
        and item.product_type == ""
    ):
        return False
    if not (
        external_id.isascii() and name.isascii() and description.isascii() and image.isascii()
    ) and not is_storable(f"{external_id}{name}{description}{image}"):
        return False
    if (item.variants or item.variant_type) and not _plain_variants(item):
        return False
    try:
        return all(
            each in seen or _take(each, seen)
            for each in (item.categories, item.addon_groups, item.menus)
        ) and (item.tax is None or item.tax in seen or _take_tax(item.tax, seen))
    except TypeError:  # unhashable, so no tuple of texts
        return False


def _plain_variants(item: Item) -> bool:
    variants = item.variants
    return (
        variants.__class__ is tuple
        and len(variants) <= MAX_PARTS
        and item.variant_type.__class__ is str
        and fits(item.variant_type, MAX_LINE)
        and all(
            each.__class__ is Variant
            and each.external_id.__class__ is str
            and each.variant_name.__class__ is str
            and each.price.__class__ is int
            and 0 <= each.price <= MAX_PRICE
            and each.available.__class__ is bool
            and len(each.external_id) > 0
            and fits(each.external_id, MAX_LINE)
            and fits(each.variant_name, MAX_LINE)
            for each in variants
        )
    )


def _take(ids: object, seen: set[object]) -> bool:
    """Return whether these are ids; they are known from then on."""
    fine = (
        ids.__class__ is tuple
        and isinstance(ids, tuple)
        and len(ids) <= MAX_PARTS
        and all(each.__class__ is str and each and fits(each, MAX_LINE) for each in ids)
    )
    if fine:
        seen.add(ids)
    return fine


def _take_tax(tax: object, seen: set[object]) -> bool:
    if tax.__class__ is not ItemTax:
        return False
    try:
        TaxModel.model_validate(tax)
    except ValidationError:
        return False
    seen.add(tax)
    return True


def _fingerprints(found: Mapping[str, int]) -> Mapping[str, int]:
    """Return what is a fingerprint; an item without one is compared by its content."""
    _must_be(found, Mapping, "fingerprints")
    low, high = _FINGERPRINTS.start, _FINGERPRINTS.stop
    if all(each.__class__ is int and low <= each < high for each in found.values()):
        return found
    return {
        key: each for key, each in found.items() if each.__class__ is int and low <= each < high
    }


def _source(source: object) -> Source:
    if not isinstance(source, Source) or not isinstance(source.places, Mapping):
        return Source()
    columns = source.columns if isinstance(source.columns, Mapping) else {}
    return Source(
        source.places,
        {str(key): storable_text(name, MAX_LINE) for key, name in columns.items()},
        source.part_places if isinstance(source.part_places, Mapping) else {},
    )


def _must_be(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        msg = f"{name} is {type(value).__name__}, not {kind.__name__}"
        raise TypeError(msg)
