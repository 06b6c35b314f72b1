"""Texts of an adapter's answers, made such that they can be stored, logged and shown."""

# What is checked here is typed as it should be, and need not be so: that is the point.
# mypy: disable-error-code="redundant-expr, unreachable"

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from tillbridge.adapter import BadRow, ExportUnreadable, ItemUnavailable, PosFailure
from tillbridge.core.i18n import _
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding, LeftOut
from tillbridge.model.texts import is_storable, printable
from tillbridge.pos.answer_models import MAX_LINE, MAX_NEWS_ITEMS, MAX_URL, VENDOR

T = TypeVar("T")

_MAX_SHOWN = 60


def valid_failure(failure: Exception) -> None:
    """Make the texts and ids of an adapter's failure such that they can be stored, in place."""
    if isinstance(failure, ExportUnreadable):
        failure.text = storable_text(getattr(failure, "text", ""), MAX_URL)
        failure.place = storable_text(getattr(failure, "place", ""), MAX_LINE)
        failure.fix = storable_text(getattr(failure, "fix", ""), MAX_URL)
        failure.passing = getattr(failure, "passing", False) is True
    if isinstance(failure, PosFailure):
        failure.message = storable_text(getattr(failure, "message", ""), MAX_URL)
        failure.fix = storable_text(getattr(failure, "fix", ""), MAX_URL)
    if isinstance(failure, ItemUnavailable):
        named = getattr(failure, "external_ids", ())
        failure.external_ids = tuple(
            each
            for each in (named if isinstance(named, tuple) else ())
            if isinstance(each, str) and each and fits(each, MAX_LINE)
        )[:MAX_NEWS_ITEMS]


def valid_line(text: object) -> str:
    """Return one line that can be stored and shown."""
    return storable_text(text, MAX_LINE)


def storable_rows(rows: Iterable[object]) -> tuple[BadRow, ...]:
    """Return bad rows whose texts can be stored."""
    return tuple(_storable_row(row) for row in rows)


def _storable_row(row: object) -> BadRow:
    if not isinstance(row, BadRow):
        return BadRow(place="?", text=_("It is no BadRow."), fix=VENDOR, value=shown_value(row))
    return BadRow(
        place=storable_text(row.place, MAX_LINE),
        text=storable_text(row.text, MAX_URL),
        fix=storable_text(row.fix, MAX_URL),
        external_id=storable_id(row.external_id),
        field=storable_text(row.field, MAX_LINE),
        value=storable_text(row.value, MAX_LINE),
    )


def storable_facts(facts: object) -> ExportFacts:
    """Return facts whose texts can be stored; what is no fact is left out."""
    if not isinstance(facts, ExportFacts):
        return ExportFacts()
    return ExportFacts(
        encodings={
            storable_text(name, MAX_LINE): _storable(how)
            for name, how in _pairs(facts.encodings)
            if isinstance(how, FileEncoding)
        },
        left_out=tuple(_storable(each) for each in facts.left_out if isinstance(each, LeftOut)),
        not_offered=tuple(storable_text(each, MAX_LINE) for each in facts.not_offered),
        warnings=tuple(
            _storable(each) for each in facts.warnings if isinstance(each, ExportWarning)
        ),
    )


def _pairs(found: object) -> Iterator[tuple[object, object]]:
    if isinstance(found, Mapping):
        yield from found.items()


def _storable(value: T) -> T:
    """Return a dataclass with the texts in it as they can be stored."""
    changed = {
        each.name: storable_text(text, MAX_URL)
        for each in dataclasses.fields(value)  # type: ignore[arg-type] # only dataclasses come here
        if isinstance(text := getattr(value, each.name), str) and not fits(text, MAX_URL)
    }
    return replace(value, **changed) if changed else value  # type: ignore[type-var] # (as above)


def fits(text: str, most: int) -> bool:
    """Whether the text is no longer than that, and can be encoded."""
    return len(text) <= most and is_storable(text)


def storable_text(value: object, most: int) -> str:
    """Return the text if it can be stored, else one that can."""
    if isinstance(value, str):
        return value if fits(value, most) else printable(value, most=most)
    return "" if value is None else shown_value(value)


def storable_id(key: object) -> str:
    """Return the id, "" for what can be none."""
    return key if isinstance(key, str) and fits(key, MAX_LINE) else ""


def place_of(key: object) -> str:
    """Return how a person finds a record without a row."""
    return _("external_id {id}").format(id=shown_value(key))


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
