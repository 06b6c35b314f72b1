"""What the fields of an export's rows mean: text, prices, yes and no, lists, instants.

Each function returns the value or raises `BadCell`, which says in words what to mend.
"""

import html
import re
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from tillbridge.adapter.failures import RowError
from tillbridge.adapter.texts import _, without_markup
from tillbridge.model.money import MAX_PRICE

MAX_TEXT = 500
"""No name of a dish is longer; what is, is a quotation mark that was never closed."""

_MAX_DIGITS = 20
# No end lies outside of these years: before them is another unit, after them for ever is meant.
_FIRST_YEAR, _LAST_YEAR = 2000, 2099
_YES = frozenset(
    "true t yes y 1 1.0 x on ja j si sí oui o sim da ano tak да wahr vrai verdadero "
    "active enabled available visible verfügbar aktiv disponible disponibile ✓ ✔".split()
)
_NO = frozenset(
    "false f no n 0 0.0 off nein non não nao ne nie нет falsch faux falso "
    "inactive disabled unavailable hidden archived ausverkauft inaktiv épuisé epuisé épuisée "
    "rupture indisponible agotado agotada esaurito esaurita ✗ ✘".split()
) | {
    *("sold out", "sold-out", "out of stock", "not available", "nicht verfügbar"),
    *("rupture de stock", "en rupture", "no disponible", "non disponibile", "non disponible"),
}
# Control characters, and what stands for a byte that could not be read.
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffd]")
_ENTITY = re.compile(r"&(?:[A-Za-z]+|#[0-9]{1,7});")
_MARKS = "\ufeff\u200b\u2060"  # invisible, left over from copying between programs
# Directions of writing: within a name they say how it is read, around it they say nothing.
_AROUND = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class BadCell(RowError):
    """A field that cannot be used: which, what it holds, what is wrong and what to do."""

    def __init__(self, column: str, value: object, text: str, fix: str) -> None:
        super().__init__(column, str(value)[:200], text, fix)


class BrokenRow(BadCell):
    """A row whose bounds are wrong: it may be several rows, or a part of one."""


class DoubtfulCell(BadCell):
    """A price that can be read in two ways; the file's other prices may decide."""


class DuplicateId(BadCell):
    """A second row with an id that a row above has."""


def plain(value: str) -> str:
    """Return one line of text without blanks around it or invisible marks."""
    if value.isprintable() and "  " not in value:  # nearly always
        return value.strip()
    for mark in _MARKS:
        value = value.replace(mark, "")
    return " ".join(value.split()).strip(_AROUND + " ")


def unwrapped(cell: str) -> str:
    """Return what is in a cell; `="007"` is how programs keep Excel from making a number of it."""
    return cell[2:-1] if cell.startswith('="') and cell.endswith('"') else cell


def alike(name: str) -> str:
    """Return a header so that it is found however it is written."""
    return name.casefold().replace("\u2019", "'").strip()


def text(field: str, value: str, *, delimiter: str = "", needed: bool = False) -> str:
    """Return `value` as one line, which may be empty unless it is `needed`.

    `delimiter` is what the file separates fields with: text of several lines in which it occurs
    is several rows that a stray quotation mark made one.
    """
    if value.isprintable() and "  " not in value and "\ufffd" not in value:  # nearly always
        line, several_rows = value.strip(), False
    elif match := _UNREADABLE.search(value):
        raise BadCell(
            field,
            value,
            _("{field} holds a character that cannot be read (U+{code:04X}).").format(
                field=field, code=ord(match.group())
            ),
            _("Type it again in the till; if many rows are like this, set the option encoding."),
        )
    else:
        line = plain(value)
        several_rows = bool(delimiter) and "\n" in value.strip() and delimiter in value
    if several_rows or len(line) > MAX_TEXT:
        raise BrokenRow(
            field,
            line,
            _("{field} runs on over what looks like other rows.").format(field=field),
            _("Look for a quotation mark that is opened and never closed."),
        )
    if needed and not line:
        raise empty(field, value)
    return line


def label(value: str) -> str:
    """Return a name as people see it: shops of the web store "Fish &amp; Chips"."""
    return html.unescape(value) if "&" in value and _ENTITY.search(value) else value


def empty(field: str, value: str = "") -> BadCell:
    """Return what is wrong with a field that must hold something."""
    return BadCell(
        field,
        value,
        _("{field} is empty.").format(field=field),
        _("Fill in {field} in the till.").format(field=field),
    )


def paragraph(value: str) -> str:
    """Return text that may have several lines; characters nobody could read are left out."""
    if not value or (value.isprintable() and "\ufffd" not in value):
        return value.strip()
    return _UNREADABLE.sub("", value.replace("\r\n", "\n").replace("\r", "\n")).strip()


def description(value: str) -> str:
    """Return text of several lines, without mark-up where there is any."""
    if not value:
        return ""
    text = paragraph(value)
    return without_markup(text) if "<" in text or "&" in text else text


def checked_price(field: str, minor: int, *, shown: object) -> int:
    """Return a price in minor units if a menu can have it; `shown` is how the export says it."""
    if not 0 <= minor <= MAX_PRICE:
        what = (
            _("{field} {shown} is negative.")
            if minor < 0
            else _("{field} {shown} is too large to be a price.")
        )
        text = what.format(field=field, shown=str(shown))
        raise BadCell(field, shown, text, _("Correct the price in the till."))
    return minor


def minor_price(field: str, line: str) -> int:
    """Return a price in minor units that is written as such (`450` for 4.50)."""
    if not (line.lstrip("-").isascii() and line.lstrip("-").isdigit() and len(line) <= _MAX_DIGITS):
        raise BadCell(
            field,
            line,
            _("{field} is {line!r}, which is no whole number of minor units.").format(
                field=field, line=line
            ),
            _("Export prices as whole minor units (450 for 4.50 EUR, 1500 for 1500 JPY)."),
        )
    return checked_price(field, int(line), shown=line)


@lru_cache(maxsize=64)
def yes_or_no(field: str, value: str, *, empty: bool | None = None) -> bool:
    """Return what a word for yes or no says; nothing at all is `empty`, if that is given."""
    word = plain(value).casefold()
    if word in _YES:
        return True
    if word in _NO:
        return False
    if not word and empty is not None:
        return empty
    text = _("{field} is {value!r}") if word else _("{field} is empty")
    raise BadCell(
        field,
        value,
        _("{text}, which is neither yes nor no.").format(
            text=text.format(field=field, value=value.strip())
        ),
        _("Use true or false."),
    )


def whole_number(field: str, value: str, *, empty: int | None) -> int | None:
    """Return a whole number that is not negative; nothing at all is `empty`."""
    line = plain(value)
    if not line:
        return empty
    if not (line.isascii() and line.isdigit() and len(line) <= 9):
        raise BadCell(
            field,
            line,
            _("{field} is {line!r}, which is no whole number.").format(field=field, line=line),
            _("Use digits only."),
        )
    return int(line)


@lru_cache(maxsize=4096)  # and a few dozen categories
def names(value: str) -> tuple[str, ...]:
    """Return the names in a field that separates several with `|`, each once, in order."""
    return tuple(dict.fromkeys(name for part in value.split("|") if (name := plain(part))))


def instant(field: str, value: str, zone: ZoneInfo | None = None) -> int | None:
    """Return milliseconds since the epoch of an ISO 8601 time; None for nothing, and for ever.

    A time without a zone is local time in `zone`; without one it is unknown when that is, and
    hours too early would sell what is sold out.
    """
    line = plain(value)
    if not line:
        return None
    try:
        moment = datetime.fromisoformat(line)
    except ValueError:
        example = datetime(2026, 1, 31, 18, 30).isoformat()  # noqa: DTZ001 -- only its shape is shown
        raise BadCell(
            field,
            line,
            _("{field} is {line!r}, which is no time.").format(field=field, line=line),
            _("Write it as {example}Z, in UTC, or with its offset as {example}+01:00.").format(
                example=example
            ),
        ) from None
    if moment.year > _LAST_YEAR:
        return None
    if moment.tzinfo is None:
        if zone is None:
            local = moment.isoformat()
            raise BadCell(
                field,
                line,
                _("{field} is {line!r}, which does not say in which time zone.").format(
                    field=field, line=line
                ),
                _(
                    "Write it with its zone: {local}+01:00 or {local}Z; or set the option timezone "
                    "of the "
                    'folder adapter, such as "Europe/Berlin".'
                ).format(local=local),
            )
        moment = moment.replace(tzinfo=zone)
    if moment.year < _FIRST_YEAR:
        raise BadCell(
            field,
            line,
            _("{field} is {line!r}, which is before the year {year}.").format(
                field=field, line=line, year=_FIRST_YEAR
            ),
            _("Correct it; leave {field} empty where there is no end.").format(field=field),
        )
    return round(moment.timestamp() * 1000)
