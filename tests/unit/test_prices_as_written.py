"""However people write a price, it is read as they mean it, or refused: never as another one."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter.prices import BadPrice, PriceReader
from tillbridge.model.money import (
    THREE_DECIMALS,
    BadAmount,
    DecimalSign,
    DoubtfulAmount,
    ForeignAmount,
    decimal_sign_of,
    exponent,
    read_amount,
    to_major,
    to_minor,
)

DOUBTFUL = (
    ("25.000", "COP"),
    ("12.500", "COP"),
    ("25.000", "CLP"),
    ("12.500", "CLP"),
    ("1,500", "USD"),
    ("1,000", "USD"),
    ("1,234", "USD"),
    ("15,000", "JPY"),
    ("10,000", "KRW"),
    ("25.000", "IDR"),
    ("1,500", "IQD"),
    ("€ 1.250", "EUR"),
    ("-1.250", "EUR"),
    ("1.500", "CLF"),
)


@pytest.mark.parametrize(("text", "currency"), DOUBTFUL)
def test_what_people_read_in_two_ways_is_refused(text: str, currency: str) -> None:
    with pytest.raises(DoubtfulAmount, match="to some people and"):
        to_minor(text, currency)


@pytest.mark.parametrize(
    ("written", "refusal"),
    [
        ("4.505", "'4.505' is 4.505 to some people and 4505 to others"),
        ("4.5055", "'4.5055' has more than the 2 decimals that EUR has"),
        ("$4.50", "'$4.50' is written with '$', which is not the store's currency EUR"),
        ("4,5O", "'4,5O' is not an amount of money"),
        (int("1234567890" * 6), f"'{'1234567890' * 4}' is not an amount of money"),
    ],
)
def test_a_refusal_says_what_was_written_and_why(written: str | int, refusal: str) -> None:
    with pytest.raises(BadAmount) as refused:
        to_minor(written, "eur")
    assert str(refused.value) == refusal


@pytest.mark.parametrize(("text", "currency"), DOUBTFUL)
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_convention_decides_what_is_doubtful(
    text: str, currency: str, decimal: DecimalSign
) -> None:
    as_decimal = decimal in text
    bare = text.removeprefix("€ ")
    value = Decimal(bare.replace(",", "." if as_decimal else ""))
    if not as_decimal:
        value = Decimal(bare.replace(",", "").replace(".", ""))
    try:
        assert to_minor(text, currency, decimal=decimal) == value.scaleb(exponent(currency))
    except ValueError:
        assert as_decimal  # more decimals than the currency has
        assert value.scaleb(exponent(currency)) % 1


@pytest.mark.parametrize(
    "text",
    [
        *("2'50", "1 00", "16 49", "12 95", "1,2,3", "12,34.5", "1.2.3", "1.23.456", "1,23,456"),
        *("1 2345", "0,123,456", "1,234.567,8", "1.234 567", "1'234 567", "1 234'567.00"),
        *("4.", "4,", ".", ",", "4,-", "12.-", "--4", "4.50-", "(4.50)", "−4.50", "+4.50"),
        *(
            "4⁵⁰",
            "½",
            "4½",
            "٤٫٥٠",
            "0x10",
            "1e3",
            "1_000",
            "4.50 each",
            "4.50/kg",
            "4.50.",
            "4 . 50",
        ),
        *(
            "€4.50€",
            "EUR 4.50 EUR",
            "4.50 5.50",
            "2 x 4.50",
            "4.50\n5.50",
            "",
            " ",
            "free",
            "1" * 40,
        ),
    ],
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    for decimal in ("", ".", ","):
        with pytest.raises(ValueError, match="is not an amount of money"):
            to_minor(text, "EUR", decimal=decimal)


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("R$ 18,00", "BRL", 1800),
        ("R$18", "BRL", 1800),
        ("4.50 €", "EUR", 450),
        ("4,50€", "EUR", 450),
        ("EUR 4,50", "EUR", 450),
        ("4.50 eur", "EUR", 450),
        ("€4.50", "EUR", 450),
        ("¥1500", "JPY", 1500),
        ("￥1500", "JPY", 1500),
        ("1500円", "JPY", 1500),
        ("１５００", "JPY", 1500),
        ("$4.50", "USD", 450),
        ("US$ 4.50", "USD", 450),
        ("$ 4.50", "MXN", 450),
        ("$.50", "USD", 50),
        (".50", "USD", 50),
        (",5", "EUR", 50),
        ("Rs.500", "INR", 50000),
        ("Rs. 500.00", "PKR", 50000),
        ("kr 89,50", "NOK", 8950),
        ("89,50 kr.", "DKK", 8950),
        ("12,50 zł", "PLN", 1250),
        ("1\u202f234,50\u00a0€", "EUR", 123450),
        ("1\u00a0234,50 €", "EUR", 123450),
        ("CHF 1'234.50", "CHF", 123450),
        ("1’234.50", "CHF", 123450),
        ("Rp 1.234.567", "IDR", 123456700),
        ("Rp. 1.234.567,00", "IDR", 123456700),
        ("320 ₽", "RUB", 32000),
        ("320 руб.", "RUB", 32000),
        ("1 500 ₽", "RUB", 150000),
        ("S/.12.50", "PEN", 1250),
        ("1.250", "KWD", 1250),
        ("KD 1.250", "KWD", 1250),
        ("1,250.500", "KWD", 1250500),
        ("0.500", "USD", 50),
        ("1234.500", "USD", 123450),
        ("4.5000", "USD", 450),
        ("25.00", "CLP", 25),
        ("-$4.50", "USD", -450),
        ("$-4.50", "USD", -450),
        ("\ufeff4.50\u200b", "USD", 450),
    ],
)
def test_prices_are_read_as_people_write_them(text: str, currency: str, minor: int) -> None:
    assert to_minor(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("4.50 €", "USD"),
        ("4.50 EUR", "USD"),
        ("$4.50", "EUR"),
        ("R$ 18,00", "USD"),
        ("£4.50", "EUR"),
        ("¥1500", "USD"),
        ("320 руб.", "USD"),
        ("Rs. 500", "IDR"),
    ],
)
def test_a_sign_of_another_currency_is_refused(text: str, currency: str) -> None:
    with pytest.raises(ForeignAmount, match=f"is not the store's currency {currency}"):
        to_minor(text, currency)


@pytest.mark.parametrize(
    ("texts", "currency", "sign"),
    [
        (["25.000", "4,50"], "COP", ","),
        (["25.000", "1.234,50"], "COP", ","),
        (["25.000", "1.234.567"], "CLP", ","),
        (["25.000", "0.500"], "USD", "."),
        (["25.000", "12345.000"], "USD", "."),
        (["1,500", "4.50"], "USD", "."),
        (["1,500", "R$ 4,50"], "BRL", ","),
        (["1,500", "$4,50"], "EUR", ""),  # not a price of this store at all
        (["25.000", "3.000", "950"], "COP", ""),
        (["4.50", "4.20", "4,50"], "EUR", "."),
        (["4.50", "4,50"], "EUR", ""),
        (["1 234,50", "2.500"], "EUR", ","),
        (["1.250", "2.500"], "KWD", "."),
        (["", "free", "variable"], "EUR", ""),
        ([], "EUR", ""),
    ],
)
def test_the_other_prices_of_a_file_show_its_decimal_sign(
    texts: list[str], currency: str, sign: str
) -> None:
    assert decimal_sign_of(texts, currency) == sign


AMOUNTS = ["4.50", "12,5", "25.000", "1,500", "1.234.567", "1,234,567", "450", "free", "", "€ 4,50"]
AMOUNTS += ["Rs. 4,50", "1.234,50", "1,234.50", "4,5\n4.5", "0.500", ".50", "12345.000", "4，50"]


@given(st.lists(st.sampled_from(AMOUNTS)), st.sampled_from(["EUR", "COP", "KWD", "INR"]))
def test_the_sign_is_that_which_more_amounts_show(texts: list[str], currency: str) -> None:
    shown = [decimal_sign_of([each], currency) for each in texts]
    points, commas = shown.count("."), shown.count(",")
    expected = "" if points == commas else "." if points > commas else ","
    assert decimal_sign_of(texts, currency) == expected


def test_a_price_that_contradicts_the_file_is_refused_by_name() -> None:
    prices = PriceReader.of(["4,50", "12,00", "1.234,50", "3.80"], "EUR")
    assert prices.read("2.500", column="Preis", name="Platte") == 250000
    with pytest.raises(BadPrice, match=r'"Cola" is wrong: Preis \'3.80\' does not fit') as bad:
        prices.read("3.80", column="Preis", name="Cola")
    assert (bad.value.column, bad.value.value) == ("Preis", "3.80")
    assert "like 4,50" in bad.value.fix


@pytest.mark.parametrize(
    ("currency", "example"),
    [
        ("USD", "4.50"),
        ("KWD", "4.500"),
        *((each, "12500") for each in ("CLP", "COP", "HUF", "IDR", "IQD", "JPY", "KRW")),
    ],
)
def test_the_remedy_shows_a_price_as_the_currency_has_it(currency: str, example: str) -> None:
    with pytest.raises(BadPrice) as bad:
        PriceReader.of([], currency).read("free", column="Цена (₽)", name="Суп")
    assert f"such as {example}," in bad.value.fix
    assert "Цена (₽)" in bad.value.text


@pytest.mark.parametrize(
    ("written", "currency"),
    [("25.000", "COP"), ("15,000", "JPY"), ("10.000", "KRW"), ("3.500", "CLP"), ("1,500", "IQD")],
)
def test_the_remedy_of_a_doubtful_price_without_cents_names_none(
    written: str, currency: str
) -> None:
    with pytest.raises(BadPrice) as bad:
        PriceReader.of([written], currency).read(written, column="Price", name="Soup")
    assert "in digits alone, like 12500." in bad.value.fix
    assert "cents" not in bad.value.fix


def test_the_remedy_of_a_doubtful_price_is_the_option() -> None:
    with pytest.raises(BadPrice, match=r"25\.000") as bad:
        PriceReader.of(["25.000"], "COP").read("25.000", column="Precio", name="Bandeja")
    assert "the option decimal" in bad.value.fix


@pytest.mark.parametrize("written", ["-1.00", "99999999999999", "80067860005710"])
def test_no_price_is_below_zero_or_a_barcode(written: str) -> None:
    with pytest.raises(BadPrice):
        PriceReader.of([], "EUR").read(written, column="Price", name="Soup")


CURRENCIES = ["USD", "EUR", "COP", "IDR", "CLP", "JPY", "KRW", "KWD", "TND", "IQD", "BRL", "INR"]


@given(st.sampled_from(sorted(CURRENCIES)), st.sampled_from(["", ".", ","]))
def test_a_price_written_as_the_remedy_says_is_read(currency: str, decimal: DecimalSign) -> None:
    prices = PriceReader(currency, decimal)
    assert prices.read(prices.example, column="Price", name="Soup") > 0


# How the world groups thousands and what it has before decimals.
LOCALES: list[tuple[str, DecimalSign]] = [
    (",", "."),
    (".", ","),
    (" ", ","),
    (" ", "."),
    ("\u00a0", ","),
    ("\u202f", ","),
    ("'", "."),
    ("’", "."),
    ("'", ","),
    ("", "."),
    ("", ","),
]


def written(minor: int, currency: str, group: str, decimal: str, *, whole: bool) -> str:
    """Return an amount as a locale writes it; `whole` leaves out decimals that are zero."""
    digits = exponent(currency)
    units, rest = divmod(minor, 10**digits)
    text = f"{units:,}".replace(",", group)
    if digits and not (whole and rest == 0):
        text += f"{decimal}{rest:0{digits}}"
    return text


@st.composite
def menus(draw: st.DrawFn) -> tuple[str, list[int], list[str]]:
    """A currency, the prices that are meant, and how one locale writes them."""
    currency = draw(st.sampled_from(CURRENCIES))
    group, decimal = draw(st.sampled_from(LOCALES))
    # In currencies that are priced by three decimals nobody leaves them out.
    whole = draw(st.booleans()) and currency not in THREE_DECIMALS
    sign = draw(st.sampled_from(["", f"{currency} ", f" {currency}"]))
    meant = draw(st.lists(st.integers(0, 10**10), min_size=1, max_size=6))
    texts = [written(each, currency, group, decimal, whole=whole) for each in meant]
    return currency, meant, [(sign + t if sign.endswith(" ") else t + sign) for t in texts]


@given(menus())
def test_a_price_of_any_locale_is_right_or_refused(menu: tuple[str, list[int], list[str]]) -> None:
    currency, meant, texts = menu
    for right, text in zip(meant, texts, strict=True):
        try:
            assert to_minor(text, currency) == right
        except ValueError:
            continue


@given(menus())
def test_a_file_of_any_locale_is_read_right_or_refused(
    menu: tuple[str, list[int], list[str]],
) -> None:
    currency, meant, texts = menu
    prices = PriceReader.of(texts, currency)
    for right, text in zip(meant, texts, strict=True):
        try:
            assert prices.read(text, column="Price", name="Soup") == right
        except BadPrice:
            continue


@given(st.integers(0, 10**10), st.sampled_from(CURRENCIES), st.sampled_from(LOCALES), st.booleans())
def test_the_option_reads_every_price_of_its_locale(
    minor: int, currency: str, locale: tuple[str, DecimalSign], whole: bool
) -> None:
    group, decimal = locale
    whole = whole and currency not in THREE_DECIMALS
    text = written(minor, currency, group, decimal, whole=whole)
    blank_of_three = currency in THREE_DECIMALS and whole
    if not blank_of_three and not (group in "'’ \u00a0\u202f" and currency in THREE_DECIMALS):
        assert to_minor(text, currency, decimal=decimal) == minor


@given(st.integers(0, 10**12), st.sampled_from(CURRENCIES))
def test_the_plain_form_is_read_with_no_convention_or_that_of_a_point(
    minor: int, currency: str
) -> None:
    text = to_major(minor, currency)
    assert to_minor(text, currency, decimal=".") == minor
    if currency != "IQD":
        assert to_minor(text, currency) == minor


@given(st.text(alphabet="0123456789.,' -€$EURCOP", max_size=14), st.sampled_from(["EUR", "COP"]))
def test_any_text_is_one_amount_or_refused(text: str, currency: str) -> None:
    try:
        found = read_amount(text, currency)
    except ValueError:
        return
    for decimal in (".", ","):
        try:
            assert read_amount(text, currency, decimal) == found
        except DoubtfulAmount:
            continue
