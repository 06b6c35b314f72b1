"""What an adapter passes, validated once and whole, before anything else of the bridge sees it.

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
from types import GenericAlias
from typing import Annotated, Any, TypeVar, cast, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    create_model,
)
from pydantic_core import ErrorDetails

from tillbridge import adapter as api
from tillbridge.core.i18n import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding, LeftOut
from tillbridge.model.instant import EARLIEST_MS, LATEST_MS, is_never
from tillbridge.model.money import MAX_PRICE
from tillbridge.model.numbers import is_storable, parse_decimal, printable
from tillbridge.pos.loader import first_fault

T = TypeVar("T")

MAX_LINE = 500
MAX_TEXT = 2_000
_MAX_DESCRIPTION = 20_000
_MAX_COUNT = 10_000
_MAX_PARTS = 1_000  # categories, groups, variants of one item
_MAX_RATE = 1_000  # percent
_MAX_NEWS_ITEMS = 100  # items that one rejection names
_MAX_ADVICE = 20
_MAX_SHOWN = 60
_FINGERPRINTS = range(-(1 << 63), 1 << 63)
_VENDOR = _("Report this to the adapter's vendor: it is a defect in the adapter.")


# -- what a value may be, by its kind and the name of its field


def _rate(text: str) -> str:
    if not 0 <= parse_decimal(text) <= _MAX_RATE:
        msg = f"is not between 0 and {_MAX_RATE} percent"
        raise ValueError(msg)
    return text


_Line = Annotated[str, Field(max_length=MAX_LINE)]
_Identifier = Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
_Identifiers = Annotated[tuple[_Identifier, ...], Field(max_length=_MAX_PARTS)]
_Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
_Key = Annotated[InstanceOf[str], Field(min_length=1)]
_Instant = Annotated[int, Field(ge=EARLIEST_MS, le=LATEST_MS)]

# By the type that the dataclass declares, unless the name of the field says more.
_BY_TYPE: Mapping[Any, Any] = {
    str: _Line,
    int: _Count,
    int | None: _Count | None,
    tuple[str, ...]: _Identifiers,
}
_BY_NAME: Mapping[str, Any] = {
    "add_ons": Annotated[tuple[_Identifier, ...], Field(max_length=_MAX_COUNT)],
    "description": Annotated[str, Field(max_length=_MAX_DESCRIPTION)],
    "external_id": _Identifier,
    "external_ids": Annotated[tuple[_Identifier, ...], Field(max_length=_MAX_NEWS_ITEMS)],
    "image_url": Annotated[str, Field(max_length=MAX_TEXT)],
    "order_id": _Identifier,
    "price": Annotated[int, Field(ge=0, le=MAX_PRICE)],
    "rate": Annotated[_Line, AfterValidator(_rate)],
    "snooze_until": _Instant | None,
    "until": _Instant | None,
}


def _model(kind: type, **others: Any) -> Any:  # noqa: ANN401 -- types of fields; a model's class
    """Return the model of a dataclass: kinds are as declared, nothing is converted."""
    fields = {
        name: _BY_NAME.get(name, _BY_TYPE.get(declared, declared))
        for name, declared in get_type_hints(kind).items()
    }
    config = ConfigDict(strict=True, from_attributes=True, defer_build=True)
    required: dict[str, Any] = {name: (each, ...) for name, each in (fields | others).items()}
    return create_model(kind.__name__, __config__=config, **required)


def _parts(kind: type, **others: Any) -> Any:  # noqa: ANN401 -- (as above)
    part = _model(kind, **others)
    return Annotated[GenericAlias(tuple, (part, ...)), Field(max_length=_MAX_PARTS)]


_TAX = _model(api.ItemTax, components=_parts(api.TaxComponent))
_MODELS: Mapping[type, type[BaseModel]] = {
    **{
        kind: _model(kind)
        for kind in (api.AddOn, api.AddOnGroup, api.Category, api.ListedTicket, api.Menu, api.Table)
    },
    api.Item: _model(api.Item, name=_Identifier, variants=_parts(api.Variant), tax=_TAX | None),
    # An item's id, under which it stands, is no field of it.
    api.Availability: _model(api.Availability, external_id=_Identifier),
    # Their texts are made storable; `key` is for the adapter alone, and may be in no encoding.
    api.Health: _model(
        api.Health, detail=Any, closed=Any, fix=Any, advice=tuple[InstanceOf[api.Advice], ...]
    ),
    api.TicketUpdate: _model(api.TicketUpdate, key=_Key, message=Any),
}


def _describe(error: ErrorDetails) -> tuple[str, str]:
    """Return what is wrong with a value and what to do, in words that follow the field's name."""
    context = error.get("ctx", {})
    in_till = _("Correct it in the till.")
    match error["type"]:
        case "string_unicode":
            return _("contains half a character"), _("Type it again in the till.")
        case "string_too_long" | "too_long":
            most = context.get("max_length")
            return _("is longer than {most}").format(most=most), _("Make it shorter in the till.")
        case "string_too_short":
            return _("is empty"), _("Fill it in in the till.")
        case "greater_than_equal" | "less_than_equal" if error["loc"][-1] in _INSTANTS:
            return (
                _("is not a time between the years 2000 and 2100"),
                _("Use milliseconds since 1970 (UTC), or leave it empty for no end."),
            )
        case "greater_than_equal":
            return _("is negative"), in_till
        case "less_than_equal":
            return _("is too large"), in_till
        case "value_error":
            return str(context.get("error", "")) or _("is wrong"), in_till
        case _:
            return _("is of the wrong kind"), _VENDOR


_INSTANTS = {"until", "snooze_until"}


# -- menus, availability, tables

_PARTS: Mapping[str, type] = {
    "categories": api.Category,
    "menus": api.Menu,
    "add_ons": api.AddOn,
    "addon_groups": api.AddOnGroup,
    "items": api.Item,
}
_KEYED = frozenset(_PARTS.values())


def valid_catalogue(catalogue: api.Catalogue) -> api.Catalogue:
    """Return the menu; what cannot be used becomes bad rows. Raises TypeError."""
    check = _Check(catalogue.source)
    parts: dict[str, Any] = {
        name: check.good(name, getattr(catalogue, name), kind) for name, kind in _PARTS.items()
    }
    if check.bad_rows:
        # What names a part that is refused is refused with it: groups, and then items.
        for name in ("addon_groups", "items"):
            lost = {each: getattr(catalogue, each).keys() - parts[each] for each in _PARTS}
            parts[name] = check.naming_none(name, parts[name], lost)
    _must_be(catalogue.fingerprints, Mapping, "fingerprints")
    low, high = _FINGERPRINTS.start, _FINGERPRINTS.stop
    # An item without one is compared by its content.
    fingerprints = {
        key: each
        for key, each in catalogue.fingerprints.items()
        if each.__class__ is int and low <= each < high
    }
    ended = catalogue.ends_with_newline
    return replace(
        catalogue,
        **parts,
        bad_rows=(*storable_rows(catalogue.bad_rows), *check.bad_rows),
        fingerprints=fingerprints,
        ends_with_newline=ended if isinstance(ended, bool) else None,
        facts=_storable_facts(catalogue.facts),
        source=check.source,
    )


def valid_changes(changes: api.CatalogueChanges) -> api.CatalogueChanges:
    """Return the difference without what cannot be used. Raises TypeError."""
    _must_be(changes.fresh, api.Catalogue, "fresh")
    _must_be(changes.unseen, AbstractSet, "unseen")
    if not isinstance(changes.items_read, int) or not 0 <= changes.items_read < 1 << 31:
        msg = f"items_read is {shown_value(changes.items_read)}"
        raise TypeError(msg)
    if not all(type(each) is int and each in _FINGERPRINTS for each in changes.unseen):
        msg = "unseen holds something that is no fingerprint"
        raise TypeError(msg)
    return replace(changes, fresh=valid_catalogue(changes.fresh), unseen=frozenset(changes.unseen))


def valid_availability(reading: api.AvailabilityReading) -> api.AvailabilityReading:
    """Return the reading without what cannot be used. Raises TypeError."""
    check = _Check(reading.source)
    items = check.good("items", reading.items, api.Availability)
    bad_rows = (*storable_rows(reading.bad_rows), *check.bad_rows)
    return replace(reading, items=items, bad_rows=bad_rows)


def valid_tables(reading: api.TablesReading) -> api.TablesReading:
    """Return the floor plan without what cannot be used. Raises TypeError."""
    _must_be(reading.tables, Sequence, "tables")
    check = _Check(reading.source)
    good = [
        table
        for table in reading.tables
        if check.fine(table, api.Table, table.external_id if isinstance(table, api.Table) else "")
    ]
    bad_rows = (*storable_rows(reading.bad_rows), *check.bad_rows)
    return replace(reading, tables=tuple(good), bad_rows=bad_rows)


# -- tickets, health, files


def valid_updates(
    updates: Iterable[Any],
) -> tuple[tuple[api.TicketUpdate, ...], tuple[api.BadRow, ...]]:
    """Return the news that can be stored, and what of it cannot."""
    check = _Check(api.Source())
    good = []
    for number, update in enumerate(updates, 1):
        key = getattr(update, "key", None)
        named = printable(key, most=200) if isinstance(key, str) else ""
        place = named or _("update {number}").format(number=number)
        if check.fine(update, api.TicketUpdate, place=place):
            good.append(replace(update, message=storable_text(update.message, MAX_TEXT)))
    return tuple(good), tuple(check.bad_rows)


def valid_listed(tickets: Iterable[object]) -> tuple[api.ListedTicket, ...]:
    """Return the listed tickets. Raises TypeError for anything that cannot be one."""
    return tuple(_fitting(ticket, api.ListedTicket) for ticket in tickets)


def valid_health(health: api.Health) -> api.Health:
    """Return the answer with texts that can be stored. Raises TypeError for anything else."""
    advice = tuple(
        storable(each, MAX_LINE) for each in _fitting(health, api.Health).advice[:_MAX_ADVICE]
    )
    return storable(replace(health, advice=advice), MAX_LINE)


def valid_paths(paths: Iterable[object]) -> tuple[Path, ...]:
    """Return the paths. Raises TypeError for anything else."""
    found = tuple(paths)
    for path in found:
        _must_be(path, Path, "a file")
    return cast("tuple[Path, ...]", found)


def valid_failure(failure: Exception) -> None:
    """Make the texts and ids of an adapter's failure such that they can be stored, in place."""
    names = (
        ("text", "place", "fix")
        if isinstance(failure, api.ExportUnreadable)
        else ("message", "fix")
    )
    for name in names:
        most = MAX_LINE if name == "place" else MAX_TEXT
        setattr(failure, name, storable_text(getattr(failure, name, ""), most))
    if isinstance(failure, api.ExportUnreadable):
        failure.passing = getattr(failure, "passing", False) is True
    if isinstance(failure, api.ItemUnavailable):
        named = getattr(failure, "external_ids", ())
        ids = (storable_id(each) for each in (named if isinstance(named, tuple) else ()))
        failure.external_ids = tuple(filter(None, ids))[:_MAX_NEWS_ITEMS]


# -- texts that can be stored, logged and shown


def storable_rows(rows: Iterable[object]) -> tuple[api.BadRow, ...]:
    """Return bad rows whose texts can be stored."""
    return tuple(
        replace(storable(row, MAX_TEXT), external_id=storable_id(row.external_id))
        if isinstance(row, api.BadRow)
        else api.BadRow(
            place="?", text=_("It is not a BadRow."), fix=_VENDOR, value=shown_value(row)
        )
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
        if each.type is str or isinstance(text, str):
            stored = storable_text(text, most)
            if stored is not text:
                changed[each.name] = stored
    return replace(value, **changed) if changed else value  # type: ignore[type-var] # (as above)


def storable_text(value: object, most: int) -> str:
    """Return the text itself if it can be stored, else one that can."""
    if isinstance(value, str):
        fits = len(value) <= most and is_storable(value)
        return value if fits else printable(value, most=most)
    return "" if value is None else shown_value(value)


def storable_id(key: object) -> str:
    """Return the id, "" for what can be none."""
    return key if isinstance(key, str) and storable_text(key, MAX_LINE) == key else ""


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
        self.source = api.Source()
        self.bad_rows: list[api.BadRow] = []
        if isinstance(source, api.Source) and isinstance(source.places, Mapping):
            columns = source.columns if isinstance(source.columns, Mapping) else {}
            self.source = api.Source(
                source.places,
                {str(key): storable_text(name, MAX_LINE) for key, name in columns.items()},
                source.part_places if isinstance(source.part_places, Mapping) else {},
            )

    def good(self, name: str, found: Mapping[str, T], kind: type[T]) -> Mapping[str, T]:
        """Return the items, or the parts of a kind, that are fine.

        A part that is refused lets nothing be removed.
        """
        _must_be(found, Mapping, name)
        part = "" if name == "items" else name
        changed: dict[str, T | None] = {}
        for key, each in found.items():
            one: Any = each
            fields = None
            # An end that means for ever is none: refused, the item would stay on sale.
            if isinstance(each, api.Item):
                if type(each.snooze_until) is int and is_never(each.snooze_until):
                    one = replace(each, snooze_until=None)
            elif isinstance(each, api.Availability):
                if type(each.until) is int and is_never(each.until):
                    one = replace(each, until=None)
                fields = {"external_id": key, "available": one.available, "until": one.until}
            if not self.fine(one, kind, key, fields=fields, part=part):
                changed[key] = None
            elif one is not each:
                changed[key] = one
        if not changed:
            return found
        checked = {key: changed.get(key, each) for key, each in found.items()}
        return {key: each for key, each in checked.items() if each is not None}

    def naming_none(
        self, name: str, found: Mapping[str, T], lost: Mapping[str, AbstractSet[str]]
    ) -> Mapping[str, T]:
        """Return those that name nothing of what is `lost`, by the fields that name it."""
        part = "" if name == "items" else name
        good = {}
        for key, each in found.items():
            named = (
                (field, shown_value(one))
                for field in lost
                for one in getattr(each, field, ())
                if one in lost[field]
            )
            field, missing = next(named, ("", ""))
            if not field:
                good[key] = each
                continue
            self._refuse(
                key,
                part,
                text=_("It refers to {part}, which is not usable.").format(part=missing),
                fix=_("Correct {part} first: its own row says how.").format(part=missing),
                field=self._column(field, part),
                value=missing,
            )
        return good

    def fine(
        self,
        value: Any,  # noqa: ANN401 -- it is to be a `kind`, and may be anything
        kind: type[Any],
        key: object = "",
        *,
        fields: Mapping[str, object] | None = None,
        part: str = "",
        place: str = "",
    ) -> bool:
        """Return whether the value is fine; else it is a bad row that stands for item `key`.

        `fields` are what the model validates, where that is not the value itself; `part` is the
        kind of a part of the menu, as the columns name it, for which no item waits. An item or a
        part must have its key as its id.
        """
        column, shown = "", value
        if not isinstance(value, kind):
            text, fix = _("It is not of the type {kind}.").format(kind=kind.__name__), _VENDOR
        elif kind in _KEYED and key != value.external_id:
            text, fix = _("Its key differs from its external_id."), _VENDOR
            column, shown = "external_id", value.external_id
        else:
            try:
                _MODELS[kind].model_validate(fields or value)
            except ValidationError as odd:
                error = odd.errors(include_url=False)[0]
            else:
                return True
            column, shown = self._column(".".join(map(str, error["loc"])), part), error["input"]
            what, fix = _describe(error)
            quoted = f"({shown_value(shown)})" if shown != "" else ""
            text = " ".join(each for each in (column, quoted, what) if each) + "."
            place = place or self._place_of_size(value, error["loc"])
        self._refuse(key, part, text, fix, column, shown_value(shown), place)
        return False

    def _refuse(
        self, key: object, part: str, text: str, fix: str, field: str, value: str, place: str = ""
    ) -> None:
        """Add the bad row of a record; it stands for an item, unless it is of a part."""
        external_id = "" if part and field != "external_id" else storable_id(key)
        place = place or self._place(key, part)
        self.bad_rows.append(api.BadRow(place, text, fix, external_id, field, value))

    def _place_of_size(self, item: object, at: Sequence[int | str]) -> str:
        """Return where the size stands that a location in an item is about, "" for none."""
        match at:
            case ("variants", int(number), *_) if isinstance(item, api.Item):
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


def _fitting(value: object, kind: type[T]) -> T:
    """Return the value as a `kind`. Raises TypeError for anything else."""
    _must_be(value, kind, "it")
    try:
        _MODELS[kind].model_validate(value)
    except ValidationError as odd:
        raise TypeError(first_fault(odd)) from None  # its values are not logged
    return cast("T", value)


def _must_be(value: object, kind: type, name: str) -> None:
    if not isinstance(value, kind):
        msg = f"{name} is {type(value).__name__}, not {kind.__name__}"
        raise TypeError(msg)
