"""Amounts, numbers, dates and times as the reader's locale writes them, in the reader's zone."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tillbridge.core.formats import (
    ago,
    clock_time,
    count_of,
    local_second,
    money,
    number,
    percent,
    price,
    short_span,
    span,
    time_since,
    weekday,
)
from tillbridge.core.i18n import Reader, english, reading

_BERLIN = ZoneInfo("Europe/Berlin")
_NBSP = "\N{NO-BREAK SPACE}"


def _ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


@pytest.mark.parametrize(
    ("locale", "amount", "currency", "shown"),
    [
        ("en", 950, "USD", "$9.50"),
        ("en_US", 123_456, "USD", "$1,234.56"),
        ("en_US", 950, "CAD", "CA$9.50"),
        ("de_DE", 950, "EUR", f"9,50{_NBSP}€"),
        ("de_AT", 950, "EUR", f"€{_NBSP}9,50"),
        ("fr_FR", 123_456, "EUR", f"1{_NBSP}234,56{_NBSP}€"),
        ("it_IT", -950, "EUR", f"-9,50{_NBSP}€"),
        ("es_ES", 950, "EUR", f"9,50{_NBSP}€"),
        ("en_US", 450, "JPY", "¥450"),
        ("de_DE", 450, "JPY", f"450{_NBSP}¥"),
        ("en_US", 1500, "KWD", f"KWD{_NBSP}1.500"),
        ("de_DE", 1500, "KWD", f"1,500{_NBSP}KWD"),
        # What ISO gives three decimals is stored with three, whatever people still use.
        ("en_US", 1500, "IQD", f"IQD{_NBSP}1.500"),
        ("en_US", 10**40, "USD", f"{10**40} USD"),
        ("en_US", 950, "", "9.50"),
        ("en_US", 950, "no", "9.50 no"),
    ],
)
def test_an_amount_has_the_sign_and_the_decimals_of_its_currency(
    locale: str, amount: int, currency: str, shown: str
) -> None:
    with reading(Reader(locale)):
        assert str(money(amount, currency)) == shown


def test_an_amount_that_is_not_there_is_nothing() -> None:
    assert money(None, "EUR") == ""


def test_an_amount_in_major_units_is_shown_as_one_in_minor_units() -> None:
    with reading(Reader("de_DE")):
        assert str(price("9.50", "EUR")) == f"9,50{_NBSP}€"
        assert price("market price", "EUR") == "market price EUR"


def test_numbers_and_shares_have_the_signs_of_the_locale() -> None:
    with reading(Reader("de_DE")):
        assert (f"{number(1234567.5)}", f"{percent(0.125)}") == ("1.234.567,5", f"12,5{_NBSP}%")
    with reading(Reader("en_US")):
        assert (f"{number(1234567.5)}", f"{percent(0.125)}") == ("1,234,567.5", "12.5%")


@pytest.mark.parametrize(
    ("locale", "spans"),
    [
        ("en", ("1 second", "3 minutes", "2 hours", "5 days")),
        ("de", ("1 Sekunde", "3 Minuten", "2 Stunden", "5 Tage")),
        ("es", ("1 segundo", "3 minutos", "2 horas", "5 días")),
        ("fr", ("1 seconde", "3 minutes", "2 heures", "5 jours")),
        ("it", ("1 secondo", "3 minuti", "2 ore", "5 giorni")),
    ],
)
def test_a_length_of_time_is_in_its_largest_unit(locale: str, spans: tuple[str, ...]) -> None:
    with reading(Reader(locale)):
        lengths = (1, 190, 2 * 3600 + 5, 5 * 86_400)
        assert tuple(f"{span(each)}".replace(_NBSP, " ") for each in lengths) == spans


def test_how_long_ago_something_was_is_said_as_the_language_says_it() -> None:
    with reading(Reader("de_DE")):
        assert f"{ago(3, 'day')}" == "vor 3 Tagen"
        assert f"{time_since(0, 90_000)}" == "vor 1 Minute"
    with reading(Reader("it_IT")):
        assert f"{ago(3, 'day')}" == "3 giorni fa"
    assert time_since(0, 200) == "1 second ago"
    assert count_of(2, "hour") == "2 hours"


def test_a_measurement_has_the_decimal_sign_of_the_locale() -> None:
    with reading(Reader("de_DE")):
        assert [f"{short_span(each)}" for each in (40, 1249, 185_000)] == [
            "40 ms", "1,2 s", "3 min 5 s",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("locale", "today", "this_year", "long_ago", "second"),
    [
        ("en", "18:05", "21 Nov 18:05", "03 May 2025 19:05", "2026-11-23 18:05:07"),
        ("en_US", "6:05 PM", "Nov 21, 6:05 PM", "May 3, 2025, 7:05 PM", "Nov 23, 2026, 6:05:07 PM"),
        ("en_GB", "18:05", "21 Nov, 18:05", "3 May 2025, 19:05", "23 Nov 2026, 18:05:07"),
        ("de_DE", "18:05", "21. Nov., 18:05", "03.05.2025, 19:05", "23.11.2026, 18:05:07"),
        ("fr_FR", "18:05", "21 nov., 18:05", "3 mai 2025, 19:05", "23 nov. 2026, 18:05:07"),
    ],
)
def test_an_instant_is_shown_in_the_zone_and_the_words_of_its_reader(
    locale: str, today: str, this_year: str, long_ago: str, second: str
) -> None:
    now = _ms("2026-11-23T17:05:07+00:00")
    instants = (now, _ms("2026-11-21T17:05:00+00:00"), _ms("2025-05-03T17:05:00+00:00"))
    with reading(Reader(locale, _BERLIN)):
        shown = [f"{clock_time(each, now)}" for each in instants] + [f"{local_second(now)}"]
    assert [each.replace(_NBSP, " ") for each in shown] == [today, this_year, long_ago, second]


def test_the_hour_before_and_after_the_clocks_change_is_the_store_s() -> None:
    summer, winter = _ms("2026-10-25T00:30:00+00:00"), _ms("2026-10-25T01:30:00+00:00")
    spring = _ms("2026-03-29T01:00:00+00:00")
    with reading(Reader("de_DE", _BERLIN)):
        assert [f"{clock_time(each, each)}" for each in (summer, winter, spring)] == [
            "02:30", "02:30", "03:00",
        ]  # fmt: skip
    with reading(Reader("en_US", ZoneInfo("America/New_York"))):
        assert f"{clock_time(summer, summer)}" == f"8:30{_NBSP}PM"


def test_a_day_is_called_by_its_weekday() -> None:
    with reading(Reader("de_DE")):
        assert [f"{weekday('2026-11-23')}", f"{weekday('2026-11-23', 'long')}"] == ["Mo.", "Montag"]


def test_what_is_stored_of_an_amount_is_the_amount() -> None:
    with reading(Reader("de_DE")):
        text = money(950, "EUR")
    assert english(text) == "€9.50"
    assert text.of == (950, "EUR")  # type: ignore[attr-defined]  # a Text
