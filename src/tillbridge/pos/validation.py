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
    categories = check.good("categories", catalogue.categories, Category, CategoryModel)
    menus = check.good("menus", catalogue.menus, Menu, MenuModel)
    add_ons = check.good("add_ons", catalogue.add_ons, AddOn, AddOnModel)
    groups = check.good("addon_groups", catalogue.addon_groups, AddOnGroup, GroupModel)
    items = check.good("", catalogue.items, Item, ItemModel)
    if check.bad_rows:
        # What names a part that is refused is refused with it.
        lost = {"add_ons": _lost(catalogue.add_ons, add_ons)}
        groups = check.naming_none("addon_groups", groups, lost)
        lost = {
            "categories": _lost(catalogue.categories, categories),
            "addon_groups": _lost(catalogue.addon_groups, groups),
            "menus": _lost(catalogue.menus, menus),
        }
        items = check.naming_none("", items, lost)
    _must_be(catalogue.fingerprints, Mapping, "fingerprints")
    low, high = _FINGERPRINTS.start, _FINGERPRINTS.stop
    ended = catalogue.ends_with_newline
    return replace(
        catalogue,
        items=items,
        categories=categories,
        add_ons=add_ons,
        addon_groups=groups,
        menus=menus,
        bad_rows=(*storable_rows(catalogue.bad_rows), *check.bad_rows),
        # An item without one is compared by its content.
        fingerprints={
            key: each
            for key, each in catalogue.fingerprints.items()
            if each.__class__ is int and low <= each < high
        },
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
        until = getattr(state, "until", None)
        until = None if _means_never(until) else until
        fields = {
            "external_id": key,
            "available": getattr(state, "available", None),
            "until": until,
        }
        if check.fine(state, Availability, AvailabilityModel, key, fields=fields):
            good[key] = Availability(state.available, until)
    return replace(
        reading, items=good, bad_rows=(*storable_rows(reading.bad_rows), *check.bad_rows)
    )


def valid_tables(reading: TablesReading) -> TablesReading:
    """Return the floor plan without what cannot be used. Raises TypeError."""
    _must_be(reading.tables, Sequence, "tables")
    check = _Check(reading.source)
    good = [
        table
        for table in reading.tables
        if check.fine(
            table, Table, TableModel, table.external_id if isinstance(table, Table) else ""
        )
    ]
    bad_rows = (*storable_rows(reading.bad_rows), *check.bad_rows)
    return replace(reading, tables=tuple(good), bad_rows=bad_rows)


# -- tickets, health, files


def valid_updates(updates: Iterable[Any]) -> tuple[tuple[TicketUpdate, ...], tuple[BadRow, ...]]:
    """Return the news that can be stored, and what of it cannot."""
    check = _Check(Source())
    good = []
    for number, update in enumerate(updates, 1):
        place = _("news {number}").format(number=number)
        if isinstance(update, TicketUpdate):
            key = update.key
            if not isinstance(key, str) or not key:
                check.fine(None if isinstance(key, str) else key, str, UpdateModel, place=place)
                continue
            place = printable(key, most=200)
        if check.fine(update, TicketUpdate, UpdateModel, place=place):
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
        self.source = Source()
        self.bad_rows: list[BadRow] = []
        if isinstance(source, Source) and isinstance(source.places, Mapping):
            columns = source.columns if isinstance(source.columns, Mapping) else {}
            self.source = Source(
                source.places,
                {str(key): storable_text(name, MAX_LINE) for key, name in columns.items()},
                source.part_places if isinstance(source.part_places, Mapping) else {},
            )

    def good(
        self, part: str, found: Mapping[str, T], kind: type[T], model: type[AnswerModel]
    ) -> Mapping[str, T]:
        """Return the items, or the parts of a kind, that are fine.

        A part that is refused lets nothing be removed.
        """
        _must_be(found, Mapping, part or "items")
        changed: dict[str, T | None] = {}
        for key, each in found.items():
            one: Any = each
            if kind is Item and isinstance(each, Item) and _means_never(each.snooze_until):
                one = replace(one, snooze_until=None)
            if not self.fine(one, kind, model, key, part=part, keyed=True):
                changed[key] = None
            elif one is not each:
                changed[key] = one
        if not changed:
            return found
        checked = {key: changed.get(key, each) for key, each in found.items()}
        return {key: each for key, each in checked.items() if each is not None}

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
                    place=self._place(key, part),
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
        value: Any,  # noqa: ANN401 -- it is to be a `kind`, and may be anything
        kind: type[Any],
        model: type[AnswerModel],
        key: object = "",
        *,
        fields: Mapping[str, object] | None = None,
        part: str = "",
        place: str = "",
        keyed: bool = False,
    ) -> bool:
        """Return whether the value is fine; else it is a bad row that stands for item `key`.

        `fields` are what the model validates, where that is not the value itself; `part` is the
        kind of a part of the menu, as the columns name it, for which no item waits. One that is
        `keyed` must have its key as its id.
        """
        column, shown = "", value
        if not isinstance(value, kind):
            text, fix = _("It is no {kind}.").format(kind=kind.__name__), VENDOR
        elif keyed and key != value.external_id:
            text, fix = _("It stands under another external_id than its own."), VENDOR
            column, shown = "external_id", value.external_id
        else:
            try:
                model.model_validate(fields or value)
            except ValidationError as odd:
                error = odd.errors(include_url=False)[0]
            else:
                return True
            column, shown = self._column(".".join(map(str, error["loc"])), part), error["input"]
            what, fix = words_of(error)
            quoted = f"({shown_value(shown)})" if shown != "" else ""
            text = " ".join(each for each in (column, quoted, what) if each) + "."
            place = place or self._place_of_size(value, error["loc"])
        self.bad_rows.append(
            BadRow(
                place=place or self._place(key, part),
                text=text,
                fix=fix,
                external_id="" if part and column != "external_id" else storable_id(key),
                field=column,
                value=shown_value(shown),
            )
        )
        return False

    def _place_of_size(self, item: object, at: Sequence[int | str]) -> str:
        """Return where the size stands that a location in an item is about, "" for none."""
        match at:
            case ("variants", int(number), *_) if isinstance(item, Item):
                size = getattr(item.variants[number], "external_id", None)
                place = self.source.places.get(size) if isinstance(size, str) else None
                return storable_text(place, MAX_LINE) if place else ""
        return ""

    def _place(self, key: object, part: str) -> str:
        """Return where a person finds a record: file and row where the adapter gave them."""
        places = self.source.part_places if part else self.source.places
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
    return frozenset(key for key in found if isinstance(key, str) and key not in good)


def _means_never(at_ms: object) -> bool:
    """Return whether an end means for ever: refused, the item would stay on sale."""
    return type(at_ms) is int and is_never(at_ms)


def _must_be(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        msg = f"{name} is {type(value).__name__}, not {kind.__name__}"
        raise TypeError(msg)
