"""What an adapter hands over, validated once and whole, before anything else of the bridge sees it.

What passes here can be compared, judged, sent and stored without an error: texts can be encoded,
numbers fit, instants are instants. A bad value costs its row: the item becomes a bad row and keeps
its last good state; what names a part that is refused is refused with it. An answer that is broken
as a whole raises TypeError, which is the adapter's failure and of its store alone. Texts that only
people read are made storable instead of refused.
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
    ExportUnreadable,
    Health,
    Item,
    ItemUnavailable,
    ListedTicket,
    Menu,
    PosFailure,
    Source,
    Table,
    TablesReading,
    Ticket,
    TicketUpdate,
)
from tillbridge.core.i18n import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding, LeftOut
from tillbridge.model.instant import is_never
from tillbridge.model.texts import is_storable, printable
from tillbridge.pos.answer_models import (
    MAX_ADVICE,
    MAX_LINE,
    MAX_NEWS_ITEMS,
    MAX_TEXT,
    VENDOR,
    AddOnModel,
    AnswerModel,
    AvailabilityModel,
    CategoryModel,
    GroupModel,
    ItemModel,
    MenuModel,
    TableModel,
    UpdateModel,
    words_of,
)

T = TypeVar("T")

_FINGERPRINTS = range(-(1 << 63), 1 << 63)
_MAX_SHOWN = 60


# -- menus, availability, tables


def valid_catalogue(catalogue: Catalogue) -> Catalogue:
    """Return the menu; what cannot be used becomes bad rows. Raises TypeError."""
    check = _Check(catalogue.source)
    categories = check.parts("categories", catalogue.categories, Category, CategoryModel)
    menus = check.parts("menus", catalogue.menus, Menu, MenuModel)
    add_ons = check.parts("add_ons", catalogue.add_ons, AddOn, AddOnModel)
    groups = check.parts("addon_groups", catalogue.addon_groups, AddOnGroup, GroupModel)
    if lost := _lost(catalogue.add_ons, add_ons):
        groups = check.naming_none("addon_groups", groups, {"add_ons": lost})
    items = check.items(catalogue.items)
    named = {
        "categories": _lost(catalogue.categories, categories),
        "addon_groups": _lost(catalogue.addon_groups, groups),
        "menus": _lost(catalogue.menus, menus),
    }
    if any(named.values()):
        items = check.naming_none("", items, named)
    ended = catalogue.ends_with_newline
    return replace(
        catalogue,
        items=items,
        categories=categories,
        add_ons=add_ons,
        addon_groups=groups,
        menus=menus,
        bad_rows=(*storable_rows(catalogue.bad_rows), *check.bad_rows),
        fingerprints=_fingerprints(catalogue.fingerprints),
        ends_with_newline=ended if isinstance(ended, bool) else None,
        facts=_storable_facts(catalogue.facts),
        source=check.source,
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
    check = _Check(reading.source)
    good: dict[str, Availability] = {}
    for key, state in reading.items.items():
        if not isinstance(state, Availability):
            check.refuse_kind(state, Availability, key)
            continue
        until = None if _means_never(state.until) else state.until
        entry = {"external_id": key, "available": state.available, "until": until}
        if check.fine(entry, AvailabilityModel, key):
            good[key] = Availability(state.available, until)
    return replace(
        reading, items=good, bad_rows=(*storable_rows(reading.bad_rows), *check.bad_rows)
    )


def valid_tables(reading: TablesReading) -> TablesReading:
    """Return the floor plan without what cannot be used. Raises TypeError."""
    _must_be(reading.tables, Sequence, "tables")
    check = _Check(reading.source)
    good = []
    for table in reading.tables:
        if not isinstance(table, Table):
            check.refuse_kind(table, Table)
        elif check.fine(table, TableModel, table.external_id):
            good.append(table)
    bad_rows = (*storable_rows(reading.bad_rows), *check.bad_rows)
    return replace(reading, tables=tuple(good), bad_rows=bad_rows)


# -- tickets, health, files


def valid_updates(updates: Iterable[object]) -> tuple[tuple[TicketUpdate, ...], tuple[BadRow, ...]]:
    """Return the news that can be stored, and what of it cannot."""
    check = _Check(Source())
    good = []
    for number, update in enumerate(updates, 1):
        place = _("news {number}").format(number=number)
        if not isinstance(update, TicketUpdate):
            check.refuse_kind(update, TicketUpdate, place=place)
        elif not isinstance(update.key, str) or not update.key:
            check.refuse_kind(update.key, str, place=place)
        elif check.fine(update, UpdateModel, place=printable(update.key, most=200)):
            good.append(replace(update, message=storable_text(update.message, MAX_TEXT)))
    return tuple(good), tuple(check.bad_rows)


def valid_ticket(ticket: Ticket) -> Ticket:
    """Return the ticket. A reference that cannot be stored is made to be: the order is written."""
    return storable(ticket, MAX_LINE)


def valid_listed(tickets: Iterable[object]) -> tuple[ListedTicket, ...]:
    """Return the listed tickets. Raises TypeError for anything that cannot be one."""
    found = []
    for ticket in tickets:
        _must_be(ticket, ListedTicket, "a listed ticket")
        assert isinstance(ticket, ListedTicket)  # noqa: S101 -- for the type checker
        texts = (ticket.key, ticket.reference, ticket.record)
        if not all(isinstance(each, str) and _fits(each, MAX_LINE) for each in texts):
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
    advice = tuple(storable(each, MAX_LINE) for each in health.advice[:MAX_ADVICE])
    return storable(replace(health, advice=advice), MAX_LINE)


def valid_paths(paths: Iterable[object]) -> tuple[Path, ...]:
    """Return the paths. Raises TypeError for anything else."""
    found = tuple(paths)
    for path in found:
        _must_be(path, Path, "a file")
    return tuple(path for path in found if isinstance(path, Path))


def valid_failure(failure: Exception) -> None:
    """Make the texts and ids of an adapter's failure such that they can be stored, in place."""
    if isinstance(failure, ExportUnreadable):
        failure.text = storable_text(getattr(failure, "text", ""), MAX_TEXT)
        failure.place = storable_text(getattr(failure, "place", ""), MAX_LINE)
        failure.passing = getattr(failure, "passing", False) is True
    if isinstance(failure, PosFailure):
        failure.message = storable_text(getattr(failure, "message", ""), MAX_TEXT)
    if isinstance(failure, ExportUnreadable | PosFailure):
        failure.fix = storable_text(getattr(failure, "fix", ""), MAX_TEXT)
    if isinstance(failure, ItemUnavailable):
        named = getattr(failure, "external_ids", ())
        ids = (storable_id(each) for each in (named if isinstance(named, tuple) else ()))
        failure.external_ids = tuple(filter(None, ids))[:MAX_NEWS_ITEMS]


# -- texts that can be stored, logged and shown


def storable_rows(rows: Iterable[object]) -> tuple[BadRow, ...]:
    """Return bad rows whose texts can be stored."""
    return tuple(
        replace(storable(row, MAX_TEXT), external_id=storable_id(row.external_id))
        if isinstance(row, BadRow)
        else BadRow(place="?", text=_("It is no BadRow."), fix=VENDOR, value=shown_value(row))
        for row in rows
    )


def _storable_facts(facts: object) -> ExportFacts:
    """Return facts whose texts can be stored; what is no fact is left out."""
    if not isinstance(facts, ExportFacts):
        return ExportFacts()
    encodings = facts.encodings if isinstance(facts.encodings, Mapping) else {}
    return ExportFacts(
        encodings={
            storable_text(name, MAX_LINE): storable(how, MAX_TEXT)
            for name, how in encodings.items()
            if isinstance(how, FileEncoding)
        },
        left_out=tuple(storable(e, MAX_TEXT) for e in facts.left_out if isinstance(e, LeftOut)),
        not_offered=tuple(storable_text(each, MAX_LINE) for each in facts.not_offered),
        warnings=tuple(
            storable(e, MAX_TEXT) for e in facts.warnings if isinstance(e, ExportWarning)
        ),
        read_as=storable_text(facts.read_as, MAX_LINE),
    )


def storable(value: T, most: int) -> T:
    """Return a dataclass with the texts in it as they can be stored."""
    changed = {}
    for each in dataclasses.fields(value):  # type: ignore[arg-type] # only dataclasses come here
        text = getattr(value, each.name)
        if (each.type is str or isinstance(text, str)) and not _fits(text, most):
            changed[each.name] = storable_text(text, most)
    return replace(value, **changed) if changed else value  # type: ignore[type-var] # (as above)


def _fits(text: object, most: int) -> bool:
    return isinstance(text, str) and len(text) <= most and is_storable(text)


def storable_text(value: object, most: int) -> str:
    """Return the text if it can be stored, else one that can."""
    if isinstance(value, str):
        return value if _fits(value, most) else printable(value, most=most)
    return "" if value is None else shown_value(value)


def storable_id(key: object) -> str:
    """Return the id, "" for what can be none."""
    return key if isinstance(key, str) and _fits(key, MAX_LINE) else ""


def shown_value(value: object) -> str:
    """Return the value for a person, shortened. Whatever it is, this does not fail."""
    if isinstance(value, str):
        return printable(value, most=_MAX_SHOWN)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return _("a number of {bits} bits").format(bits=value.bit_length())
    try:
        return printable(repr(value), most=_MAX_SHOWN)
    except Exception:  # noqa: BLE001 -- a value whose words fail has none
        return type(value).__name__


# -- inside


class _Check:
    """Validates the parts of one reading, and gathers what is refused as bad rows."""

    def __init__(self, source: object) -> None:
        self.source = _source(source)
        self.bad_rows: list[BadRow] = []

    def parts(
        self, name: str, found: Mapping[str, T], kind: type[T], model: type[AnswerModel]
    ) -> Mapping[str, T]:
        """Return the parts that are fine. What is refused lets nothing be removed."""
        _must_be(found, Mapping, kind.__name__)
        good: dict[str, T] = {}
        for key, part in found.items():
            place = self._place(self.source.part_places, key)
            if not isinstance(part, kind):
                self.refuse_kind(part, kind, place=place)
            elif self._is_keyed(key, part, place) and self.fine(
                part, model, place=place, part=name
            ):
                good[key] = part
        return good if len(good) < len(found) else found

    def items(self, found: Mapping[str, Item]) -> Mapping[str, Item]:
        """Return the items that are fine."""
        _must_be(found, Mapping, "items")
        changed: dict[str, Item | None] = {}
        for key, each in found.items():
            if not isinstance(each, Item):
                self.refuse_kind(each, Item, key)
                changed[key] = None
                continue
            item = replace(each, snooze_until=None) if _means_never(each.snooze_until) else each
            fine = self._is_keyed(key, item, "") and self.fine(item, ItemModel, key)
            if not fine or item is not each:
                changed[key] = item if fine else None
        if not changed:
            return found
        checked = {key: changed.get(key, item) for key, item in found.items()}
        return {key: item for key, item in checked.items() if item is not None}

    def naming_none(
        self, part: str, found: Mapping[str, T], lost: Mapping[str, AbstractSet[str]]
    ) -> Mapping[str, T]:
        """Return those that name nothing of what is `lost`, by the fields that name it."""
        good = {}
        for key, each in found.items():
            named = [
                (field, one) for field in lost for one in getattr(each, field) if one in lost[field]
            ]
            if not named:
                good[key] = each
                continue
            field, missing = named[0]
            self.bad_rows.append(
                BadRow(
                    place=self._place(self.source.part_places, key)
                    if part
                    else self._place_of_item(key),
                    text=_("It names {part}, which cannot be used.").format(
                        part=shown_value(missing)
                    ),
                    fix=_("Mend {part} first; its own bad row says how.").format(
                        part=shown_value(missing)
                    ),
                    external_id="" if part else storable_id(key),
                    field=self._column(field, part),
                    value=shown_value(missing),
                )
            )
        return good

    def fine(
        self,
        value: object,
        model: type[AnswerModel],
        key: object = "",
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
            error = odd.errors(include_url=False)[0]
        else:
            return True
        column = self._column(".".join(map(str, error["loc"])), part)
        what, fix = words_of(error)
        shown = f"({shown_value(error['input'])})" if error["input"] != "" else ""
        self.bad_rows.append(
            BadRow(
                place=place or self._place_of_size(value, error["loc"]) or self._place_of_item(key),
                text=" ".join(each for each in (column, shown, what) if each) + ".",
                fix=fix,
                external_id=storable_id(key),
                field=column,
                value=shown_value(error["input"]),
            )
        )
        return False

    def refuse_kind(self, value: object, kind: type, key: object = "", *, place: str = "") -> None:
        """Refuse what is of another kind altogether."""
        self.bad_rows.append(
            BadRow(
                place=place or self._place_of_item(key),
                text=_("It is no {kind}.").format(kind=kind.__name__),
                fix=VENDOR,
                external_id=storable_id(key),
                value=shown_value(value),
            )
        )

    def _is_keyed(self, key: object, part: Any, place: str) -> bool:  # noqa: ANN401 -- anything with an id
        if key == part.external_id:
            return True
        self.bad_rows.append(
            BadRow(
                place=place or self._place_of_item(key),
                text=_("It stands under another external_id than its own."),
                fix=VENDOR,
                external_id=storable_id(key),
                field="external_id",
                value=shown_value(part.external_id),
            )
        )
        return False

    def _place_of_item(self, key: object) -> str:
        return self._place(self.source.places, key)

    def _place_of_size(self, item: object, at: Sequence[int | str]) -> str:
        """Return where the size stands that a location in an item is about, "" for none."""
        match at:
            case ("variants", int(number), *_) if isinstance(item, Item):
                size = getattr(item.variants[number], "external_id", None)
                place = self.source.places.get(size) if isinstance(size, str) else None
                return storable_text(place, MAX_LINE) if place else ""
        return ""

    def _place(self, places: Mapping[str, str], key: object) -> str:
        """Return where a person finds a record: file and row where the adapter gave them."""
        place = places.get(key) if isinstance(key, str) else None
        if place:
            return storable_text(place, MAX_LINE)
        return _("external_id {id}").format(id=shown_value(key))

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
        return next((name for each in known if (name := self.source.columns.get(each))), field)


def _lost(found: Mapping[str, T], good: Mapping[str, T]) -> AbstractSet[str]:
    """Return the ids of what was refused."""
    if found is good:
        return frozenset()
    return frozenset(key for key in found if isinstance(key, str) and key not in good)


def _means_never(at_ms: object) -> bool:
    """Return whether an end means for ever: refused, the item would stay on sale."""
    return type(at_ms) is int and is_never(at_ms)


def _fingerprints(found: Mapping[str, int]) -> Mapping[str, int]:
    """Return what is a fingerprint; an item without one is compared by its content."""
    _must_be(found, Mapping, "fingerprints")
    low, high = _FINGERPRINTS.start, _FINGERPRINTS.stop
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
