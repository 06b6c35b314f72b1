"""Amounts, numbers, dates and times as the reader's locale writes them, by Babel.

Each returns a text that is formatted for whoever reads it (`core.i18n`). Times are shown in the
reader's zone: the store's, where the page or command is about one.
"""

import re
from copy import copy
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Literal

from tillbridge.core.i18n import NOBODY, _, ngettext, reader, shown_by_locale
from tillbridge.model.instant import LATEST_MS
from tillbridge.model.money import exponent, to_major

if TYPE_CHECKING:
    from babel.core import Locale
    from babel.numbers import NumberPattern

Unit = Literal["second", "minute", "hour", "day"]
_MOST = 10**18  # more than any price, and within what decimals can be made of
_SECONDS: dict[Unit, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


@shown_by_locale
def money(amount: int | None, currency: str) -> str:
    """Return an amount of minor units with the currency's sign: `$9.50`, `9,50 €`; "" for none.

    Its sign is one that the locale gives to no
    other currency: `CA$9.50` for an American.
    """
    if amount is None:
        return ""
    if abs(amount) > _MOST:
        return f"{amount} {currency}".strip()
    if not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        return f"{to_major(amount, currency)} {currency}".strip()
    digits = exponent(currency)
    # The decimals are those of the minor units, ISO's, whichever of them people still use.
    text = _pattern(reader().locale, digits).apply(
        Decimal(amount).scaleb(-digits), _locale(), currency=currency.upper(), currency_digits=False
    )
    # A code that stands for a sign keeps its distance, as CLDR has it and Babel does not.
    return _shown(re.sub(r"([A-Z])(?=\d)", "\\1\N{NO-BREAK SPACE}", text))


def price(text: str, currency: str) -> str:
    """Return an amount in plain major units (`9.50`), as JSON has it, with the currency's sign."""
    try:
        minor = Decimal(text).scaleb(exponent(currency))
    except (ArithmeticError, LookupError, ValueError):
        return f"{text} {currency}".strip()
    return money(int(minor), currency)


def currency_name(code: str, otherwise: str) -> str:
    """Return what the reader calls a currency: `euro`, `Euro`; `otherwise` where Babel has none."""
    return str(_locale().currencies.get(code, otherwise))


@shown_by_locale
def number(value: float) -> str:
    """Return a number with the locale's signs: `1,234.5`, `1.234,5`."""
    from babel.numbers import format_decimal  # noqa: PLC0415 -- 20 ms, for those who need it

    return _shown(format_decimal(value, locale=_locale()))


def size(count: int) -> str:
    """Return how large so many bytes are: `512 bytes`, `40.3 kB`, `1.2 MB`."""
    if count < 1000:
        return ngettext("{n} byte", "{n} bytes", count).format(n=count)
    if count < 999_950:
        return _("{n} kB").format(n=number(round(count / 1000, 1)))
    return _("{n} MB").format(n=number(round(count / 1_000_000, 1)))


@shown_by_locale
def percent(share: float) -> str:
    """Return a share of 1 in percent, with one decimal at most: `12.5%`, `12,5 %`."""
    from babel.numbers import format_percent  # noqa: PLC0415 -- (as above)

    return _shown(format_percent(round(share, 3), locale=_locale(), decimal_quantization=False))


@shown_by_locale
def count_of(count: int, unit: Unit) -> str:
    """Return a length of time in one unit: `3 minutes`."""
    return _delta(count, unit, add_direction=False)


@shown_by_locale
def ago(count: int, unit: Unit) -> str:
    """Return how long ago something was, in one unit: `3 minutes ago`."""
    return _delta(-max(1, count), unit, add_direction=True)


def _delta(count: int, unit: Unit, *, add_direction: bool) -> str:
    from babel.dates import format_timedelta  # noqa: PLC0415 -- (as above)

    return format_timedelta(
        timedelta(seconds=count * _SECONDS[unit]),
        granularity=unit,
        threshold=float("inf"),  # in this unit, however many there are
        add_direction=add_direction,
        locale=_locale(),
    )


@shown_by_locale
def clock_time(at_ms: int, now_ms: int) -> str:
    """Return an instant as a time of day: of today the time alone, else with its date."""
    at, now = _there(at_ms), _there(now_ms)
    time = _time(at, "short")
    if at.date() == now.date():
        return time
    return _with_date(_day(at, with_year=at.year != now.year), time)


@shown_by_locale
def local_second(at_ms: int) -> str:
    """Return an instant with its date, to the second."""
    at = _there(at_ms)
    if reader().locale == NOBODY.locale:
        return at.strftime("%Y-%m-%d %H:%M:%S")
    return _with_date(_day(at, with_year=True), _time(at, "medium"))


@shown_by_locale
def time_of_day(at_ms: int) -> str:
    """Return an instant as a time of day to the second, without its date."""
    return _time(_there(at_ms), "medium")


@shown_by_locale
def day_of(at_ms: int) -> str:
    """Return the date of an instant: `23 Nov 2026`."""
    return _day(_there(at_ms), with_year=True)


@shown_by_locale
def weekday(iso: str, width: Literal["short", "long"] = "short") -> str:
    """Return the weekday of a date (ISO 8601): `Mon`, `Monday`."""
    from babel.dates import format_date  # noqa: PLC0415 -- (as above)

    pattern = "EEE" if width == "short" else "EEEE"
    return format_date(date.fromisoformat(iso), pattern, locale=_locale())


def day_text(day: date, today: date) -> str:
    """Return a day as people write it: `Sat 21 Nov`, of another year with that."""
    return _day_text(day.isoformat(), day.year != today.year)


@shown_by_locale
def _day_text(iso: str, with_year: bool) -> str:  # noqa: FBT001 -- what is stored is a list
    day = date.fromisoformat(iso)
    if reader().locale == NOBODY.locale:
        return day.strftime("%a %d %b %Y" if with_year else "%a %d %b")
    from babel.dates import format_skeleton  # noqa: PLC0415 -- (as above)

    skeleton = "yMMMEd" if with_year else "MMMEd"
    return format_skeleton(skeleton, day, locale=_locale())


def local_input(at_ms: int) -> str:
    """Return an instant as a field of a form for dates has it: `2026-11-21T18:30`."""
    return _there(at_ms).strftime("%Y-%m-%dT%H:%M")


def _there(at_ms: int) -> datetime:
    """Return an instant in the reader's zone, None being this machine's."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(reader().zone)


def _time(at: datetime, length: Literal["short", "medium"]) -> str:
    if reader().locale == NOBODY.locale:
        return at.strftime("%H:%M" if length == "short" else "%H:%M:%S")
    from babel.dates import format_time  # noqa: PLC0415 -- (as above)

    return _shown(format_time(at, length, locale=_locale()))


def _day(at: datetime, *, with_year: bool) -> str:
    if reader().locale == NOBODY.locale:
        return at.strftime("%d %b %Y" if with_year else "%d %b")
    from babel.dates import format_date, format_skeleton  # noqa: PLC0415 -- (as above)

    if with_year:
        return format_date(at, "medium", locale=_locale())
    return format_skeleton("MMMd", at, tzinfo=at.tzinfo, locale=_locale())


def _with_date(day: str, time: str) -> str:
    if reader().locale == NOBODY.locale:
        return f"{day} {time}"
    from babel.dates import get_datetime_format  # noqa: PLC0415 -- (as above)

    pattern = str(get_datetime_format("medium", locale=_locale())).replace("'", "")
    return pattern.replace("{1}", day).replace("{0}", time)


@cache
def _pattern(locale: str, digits: int) -> "NumberPattern":
    from babel.core import Locale  # noqa: PLC0415 -- (as above)

    pattern: NumberPattern = copy(Locale.parse(locale).currency_formats["standard"])
    pattern.frac_prec = (digits, digits)
    return pattern


def _shown(text: str) -> str:
    """Return text of CLDR without the narrow space, for which an old tablet has no glyph."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", "\N{NO-BREAK SPACE}")


def language_name(language: str) -> str:
    """Return what a language calls itself: `Deutsch`, `Français`."""
    from babel.core import Locale  # noqa: PLC0415 -- (as above)

    name = Locale.parse(language).get_language_name(language) or language
    return name[:1].upper() + name[1:]


def _locale() -> "Locale":
    from babel.core import Locale  # noqa: PLC0415 -- (as above)

    return Locale.parse(reader().locale)


# -- Instants, lengths of time and counts: in words for every surface, and as people type them.
#
# `until_ms` and `since_ms` read what people type: `18:30`, `tomorrow`, `2h`, `1h30m`, or ISO 8601.


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CLOCKS_DIFFER_MS = 5000


def span(seconds: float) -> str:
    """Return a length of time in its largest fitting unit, rounded down: `3 minutes`."""
    return count_of(*_in_unit(seconds))


def _in_unit(seconds: float) -> tuple[int, Unit]:
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return whole, "second"
    if whole < 2 * _HOUR:
        return whole // _MINUTE, "minute"
    if whole < 2 * _DAY:
        return whole // _HOUR, "hour"
    return whole // _DAY, "day"


def days_left(left_ms: int) -> str:
    """Return how long something still lasts, rounded as the status document's days are."""
    if left_ms <= 0:
        return _("that date is over")
    return span(round(max(0, left_ms) / (_DAY * 1000), 1) * _DAY)


def time_since(at_ms: int, now_ms: int) -> str:
    """Return how long ago an instant was; of one that is still to come, that a clock was changed.

    "answered" and the like stand before it.
    """
    if at_ms > now_ms + _CLOCKS_DIFFER_MS:
        return _("at {time}, which is in the future: the clock was changed").format(
            time=clock_time(at_ms, now_ms)
        )
    return ago(*_in_unit((now_ms - at_ms) / 1000))


def waiting(count: int, oldest_s: float | None) -> str:
    """Return the sentence about orders that the till does not have yet; "" where there are none."""
    if not count:
        return ""
    if oldest_s is None:
        return ngettext(
            "{n} order waits for the till.", "{n} orders wait for the till.", count
        ).format(n=count)
    return ngettext(
        "{n} order waits for the till, for {span}.",
        "{n} orders wait for the till, the oldest for {span}.",
        count,
    ).format(n=count, span=span(oldest_s))


@shown_by_locale
def short_span(ms: int) -> str:
    """Return a length of time as a measurement: `40 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`."""
    if ms < 1000:
        return f"{max(0, ms)} ms"
    if ms < 60_000:
        return f"{number(round(ms / 1000, 1))} s"
    seconds = ms // 1000
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE} s"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return span(seconds)


# -- what people type; pure

_SPAN = re.compile(r"(?:(\d{1,3})d)?(?:(\d{1,3})h)?(?:(\d{1,4})m(?:in)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")


def until_ms(text: str, *, now_ms: int, zone: tzinfo | None) -> int:
    """Return the instant (ms since the epoch) that `text` names.

    `HH:MM` is the next such time, `tomorrow` the next midnight, both in `zone` (None: this
    machine's); a timestamp without an offset is in `zone` too. Raises ValueError (text for a
    person) for anything else, and for what is over.
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    moment = _moment(text.strip(), now, zone)
    at_ms = round(moment.timestamp() * 1000)
    if at_ms <= now_ms:
        raise ValueError(_("{text} has already passed").format(text=text))
    if at_ms > LATEST_MS:
        raise ValueError(
            _("{text} is after the year 2100; leave it out for no end").format(text=text)
        )
    return at_ms


def since_ms(text: str, *, now_ms: int, zone: tzinfo | None) -> int:
    """Return the instant (ms since the epoch) that `text` names, looking back.

    `2h` is two hours ago, `HH:MM` the last such time, `today` the last midnight; ISO 8601 as is.
    Raises ValueError (text for a person).
    """
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    typed = text.strip()
    if typed.lower() == "today":
        midnight = _local(datetime.combine(now.astimezone(zone), time()), zone)
        return round(midnight.timestamp()) * 1000
    moment = _moment(typed, now, zone)
    if typed and _SPAN.fullmatch(typed):
        moment = now - (moment - now)
    elif _CLOCK.fullmatch(typed) and moment > now:
        before = moment.astimezone(zone) - timedelta(days=1)
        moment = _local(before.replace(tzinfo=None), zone)
    return round(moment.timestamp() * 1000)


def _moment(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    today = now.astimezone(zone).date()
    if text.lower() == "tomorrow":
        return _local(datetime.combine(today + timedelta(days=1), time()), zone)
    if text and (found := _SPAN.fullmatch(text)):
        days, hours, minutes = (int(part or 0) for part in found.groups())
        return now + timedelta(days=days, hours=hours, minutes=minutes)
    if found := _CLOCK.fullmatch(text):
        hour, minute = int(found[1]), int(found[2])
        if hour > 23 or minute > 59:
            raise ValueError(_("{text} is not a time of day").format(text=text))
        moment = _local(datetime.combine(today, time(hour, minute)), zone)
        if moment <= now:
            following = datetime.combine(today + timedelta(days=1), time(hour, minute))
            moment = _local(following, zone)
        return moment
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        slip = _("{text} is not a time; write 18:30, tomorrow, 2h or 2026-11-21T18:30")
        raise ValueError(slip.format(text=text)) from None
    return moment if moment.tzinfo else _local(moment, zone)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
