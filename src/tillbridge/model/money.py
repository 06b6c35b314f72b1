"""Money: integer minor units of the store's currency; decimals only at the edges.

Specification: General conventions ("integers in minor units of the store currency").

An amount is read as people write it, and refused where people read it in two ways. A point or comma
with exactly three digits behind it ("25.000", "1,500") is the decimal sign to one half of the world
and separates thousands to the other. Which of the two it is, only a convention decides: that of the
file, seen in its other amounts (`decimal_sign_of`), or one that a person set.

In currencies of three decimals that are priced by them (`THREE_DECIMALS`) three digits are those
decimals: "1.250" in Kuwait is 1.250 dinars, since no price leaves its fils out.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, overload

from tillbridge.model.numbers import MAX_EXPONENT, parse_decimal

DecimalSign = Literal[".", ",", ""]
"""What stands before the decimals of a file's amounts; "" where nothing shows it."""

# ISO 4217: the currencies whose minor unit is not a hundredth.
_EXPONENTS = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}

# Those whose minor unit is on paper only: no price in a shop has any.
_WITHOUT_CENTS = frozenset(
    "AMD COP CRC HUF IDR IQD IRR KHR KZT LAK LBP MMK MNT RSD SYP TWD TZS UZS".split()
)

MAX_PRICE = 10**12
"""In minor units. Anything above is a misplaced number, and would not fit a ledger for ever."""


def exponent(currency: str) -> int:
    """Return how many decimal digits `currency` (ISO 4217) has: USD 2, JPY 0, KWD 3."""
    return _EXPONENTS.get(currency.upper(), 2)


def has_cents(currency: str) -> bool:
    """Return whether prices in `currency` (ISO 4217) have decimals: in USD and KWD, not in COP."""
    return exponent(currency) > 0 and currency.upper() not in _WITHOUT_CENTS


def to_minor(amount: str | int | Decimal, currency: str, *, decimal: DecimalSign = "") -> int:
    """Return `amount`, in major units (`4.50`, `4,50`, `1.234,50`, `€ 4,50`), in minor units.

    `decimal` is the sign before the decimals in the file that a text comes from, where it is known
    (`tillbridge.adapter.prices` finds it out); without it a text that can be read in two ways
    (`25.000`) is refused. Raises ValueError for anything that is not one exact amount in
    `currency` (ISO 4217): text, a fraction of a minor unit, infinity, another currency's sign.
    """
    digits = exponent(currency)
    if isinstance(amount, str):
        # Nearly all amounts are as plain as this, and a menu has thousands.
        whole, point, part = amount.partition(".")
        if (
            amount.isascii()
            and whole.isdecimal()
            and len(part) <= digits
            and len(part) != _GROUP
            and len(whole) <= MAX_EXPONENT
            and decimal != ","
        ):
            if part.isdecimal():
                return int(whole + part.ljust(digits, "0"))
            if not point:
                return int(whole + "0" * digits)
        value = read_amount(amount, currency, decimal)
    else:
        try:
            value = parse_decimal(amount)
        except ValueError:
            raise _no_amount(str(amount)[:40]) from None
    scaled = value.scaleb(digits)
    if scaled != scaled.to_integral_value():
        raise BadAmount(
            "{amount!r} has more than the {digits} decimals that {currency} has",
            amount=str(amount),
            digits=digits,
            currency=currency.upper(),
        )
    return int(scaled)


def to_major(minor: int, currency: str) -> str:
    """Return `minor` as plain decimal text in major units: 450, USD -> `4.50`, JPY -> `450`."""
    return f"{major(minor, currency):f}"


@overload
def major(minor: int, currency: str) -> Decimal: ...
@overload
def major(minor: int | None, currency: str) -> Decimal | None: ...
def major(minor: int | None, currency: str) -> Decimal | None:
    """Return `minor` as an exact number in major units: 450, USD -> 4.50; None for none."""
    if minor is None:
        return None
    digits = exponent(currency)
    return Decimal(minor).scaleb(-digits).quantize(Decimal(1).scaleb(-digits))


# Iraq's dinar has three on paper, but nobody uses its fils: 1,500 there is fifteen hundred.
THREE_DECIMALS = frozenset("BHD JOD KWD LYD OMR TND".split())

# The currencies that a sign or word beside an amount can mean.
_SIGNS_FILE = Path(__file__).with_name("currency_signs.toml")
_CURRENCIES = {
    sign: frozenset(codes.split())
    for sign, codes in tomllib.loads(_SIGNS_FILE.read_text("utf-8")).items()
}
_CODE_LENGTH = 3

_GROUP = 3  # so many digits behind a point may be thousands
_MAX_DIGITS = 18  # beyond all prices, and within what a ledger stores
_LONGEST = 80
_BLANKS = dict.fromkeys((0xA0, *range(0x2002, 0x200B), 0x202F), " ")
_UNSEEN = dict.fromkeys((0xFEFF, 0x200B, 0x200E, 0x200F, 0x2060, 0x061C))
_UNSEEN |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_SAME = {0x2019: "'", 0xFF0E: ".", 0xFF0C: ",", 0xFFE5: "¥", 0xFF04: "$"}
_AS_PLAIN = {**_BLANKS, **_UNSEEN, **_SAME}
_BEFORE = re.compile(r"[^\d\s,'-]+")
_NUMBER = re.compile(r"[.,]?\d(?:[\d.,' ]*\d)?")
_SEPARATOR = re.compile(r"([.,' ])")


class BadAmount(ValueError):
    """What is no amount; `text` has places in braces for `values`, so that it can be translated."""

    def __init__(self, text: str, **values: object) -> None:
        super().__init__(text.format(**values))
        self.text = text
        self.values = values


class DoubtfulAmount(BadAmount):
    """An amount that people read in two ways."""


class ForeignAmount(BadAmount):
    """An amount in another currency than the store's."""


def read_amount(text: str, currency: str, decimal: DecimalSign = "") -> Decimal:
    """Return the amount that `text` says, in major units of `currency` (ISO 4217).

    `decimal` is the convention of the file; "" if there is none. A sign or code of the currency
    may stand before or behind. Raises ValueError: DoubtfulAmount, ForeignAmount, or what is no
    amount at all.
    """
    minus, number = _number(text, currency)
    parts = _parts(number, three_decimals=currency.upper() in THREE_DECIMALS)
    if parts is None:
        raise _no_amount(text)
    value = parts.value
    if parts.whole_if is not None:
        if not decimal:
            raise DoubtfulAmount(
                "{amount!r} is {one} to some people and {other} to others",
                amount=text.strip(),
                one=str(parts.value),
                other=str(parts.whole_if),
            )
        if parts.sign != decimal:
            value = parts.whole_if
    elif decimal and parts.sign and parts.sign != decimal:
        amount = text.strip()
        if decimal == ",":
            raise DoubtfulAmount(
                "{amount!r} does not fit the file's prices, "
                "which have a comma before their decimals",
                amount=amount,
            )
        raise DoubtfulAmount(
            "{amount!r} does not fit the file's prices, which have a point before their decimals",
            amount=amount,
        )
    return -value if minus else value


def decimal_sign_of(texts: Iterable[str], currency: str) -> DecimalSign:
    """Return the decimal sign that a file's amounts show, "" where they show none.

    Where both occur it is the one that more of them have: the others contradict the file.
    """
    written = list(texts)
    joined = "\n".join(written)
    if joined.isascii() and _GROUPS.search(joined) is None:
        # As most files are: with the same sign in all amounts, and groups in none.
        signs: tuple[DecimalSign, DecimalSign] = (".", ",")
        for sign, other in (signs, signs[::-1]):
            if other not in joined and _PLAIN_LINE.search(joined):
                return sign
    votes: Counter[DecimalSign] = Counter()
    for text, count in Counter(written).items():
        if sign := _shown_sign(text, currency.upper()):
            votes[sign] += count
    points, commas = votes["."], votes[","]
    if points == commas:
        return ""
    return "." if points > commas else ","


_PLAIN_LINE = re.compile(r"^[0-9]{1,9}[.,][0-9]{1,2}$", re.MULTILINE)
_GROUPS = re.compile(r"[.,][0-9]{3}[.,]")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A number taken apart: its value, and the decimal sign that it shows ("" for none).

    `whole_if` is what else the number can be, if `sign` separates thousands in it; None if it
    has one reading only.
    """

    value: Decimal
    sign: DecimalSign
    whole_if: Decimal | None = None


@lru_cache(maxsize=4096)  # a menu of thousands has a few hundred prices
def _shown_sign(text: str, currency: str) -> DecimalSign:
    try:
        _minus, number = _number(text, currency)
    except ValueError:
        return ""
    parts = _parts(number, three_decimals=currency in THREE_DECIMALS)
    return "" if parts is None or parts.whole_if is not None else parts.sign


def currencies_of_sign(sign: str) -> frozenset[str]:
    """Return the codes of the currencies that a sign or word beside an amount can mean."""
    return _CURRENCIES.get(sign.casefold(), frozenset())


def _number(text: str, currency: str) -> tuple[bool, str]:
    """Return whether there is a minus, and the number without the currency beside it."""
    if len(text) > _LONGEST:
        raise _no_amount(text[:_LONGEST])
    rest = text.translate(_AS_PLAIN).strip()
    minus = rest.startswith("-")
    rest = rest.removeprefix("-").lstrip()
    before = _currency_before(rest)
    rest = rest[len(before) :].lstrip()
    if before and not minus and rest.startswith("-"):
        minus, rest = True, rest[1:].lstrip()
    found = _NUMBER.match(rest)
    if found is None:
        raise _no_amount(text)
    after = rest[found.end() :].strip()
    if before and after:
        raise _no_amount(text)
    if mark := before or after:
        is_code = len(mark) == _CODE_LENGTH and mark.isascii() and mark.isalpha()
        code, meant = currency.upper(), _CURRENCIES.get(mark.casefold())
        if not is_code and meant is None:
            raise _no_amount(text)
        if mark.upper() != code and code not in (meant or ()):
            raise ForeignAmount(
                "{amount!r} is written with {mark!r}, which is not the store's currency {currency}",
                amount=text.strip(),
                mark=mark,
                currency=currency.upper(),
            )
    return minus, found[0]


def _currency_before(text: str) -> str:
    """Return what is before the digits: "Rs." with its point, "$" of "$.50" without."""
    found = _BEFORE.match(text)
    if found is None:
        return ""
    word = found[0]
    if word.endswith(".") and word.casefold() not in _CURRENCIES:
        return word[:-1]
    return word


def _parts(number: str, *, three_decimals: bool) -> _Parts | None:
    """Take a number apart; None for what is no number."""
    if sum(map(str.isdecimal, number)) > _MAX_DIGITS:
        return None
    pieces = _SEPARATOR.split(number)
    digits, separators = pieces[0::2], pieces[1::2]
    if not separators:
        return _Parts(Decimal(number), "")
    last: str = separators[-1]
    kinds = set(separators)
    if not digits[0]:  # ".50": nothing is before it, so it separates no thousands
        return _decimal("0", digits[1], last) if len(separators) == 1 else None
    if not all(digits):
        return None
    if len(kinds) == 1 and last in ".,":
        if len(separators) == 1:
            return _of_one_separator(digits[0], digits[1], last, three_decimals=three_decimals)
        other: DecimalSign = "," if last == "." else "."
        return _Parts(_joined(digits), other) if _are_groups(digits) else None
    if len(kinds) == 1:  # blanks or apostrophes alone
        if not _are_groups(digits) or (three_decimals and len(separators) == 1):
            return None  # "1 500" may be one dinar and a half: some tills print a blank there
        return _Parts(_joined(digits), "")
    if len(kinds) == 2 and last in ".," and separators.count(last) == 1:
        groups = digits[:-1]
        return _decimal("".join(groups), digits[-1], last) if _are_groups(groups) else None
    return None


def _of_one_separator(whole: str, part: str, sign: str, *, three_decimals: bool) -> _Parts:
    decimal = _decimal(whole, part, sign)
    if len(part) != _GROUP or three_decimals or not _are_groups([whole, part]):
        return decimal
    return _Parts(decimal.value, decimal.sign, whole_if=Decimal(whole + part))


def _decimal(whole: str, part: str, sign: str) -> _Parts:
    return _Parts(Decimal(f"{whole}.{part}"), "." if sign == "." else ",")


def _are_groups(digits: list[str]) -> bool:
    """Return whether these are groups of thousands: 1 to 3 digits, then exactly 3 each."""
    first = digits[0]
    return (
        len(first) <= _GROUP
        and not first.startswith("0")
        and all(len(each) == _GROUP for each in digits[1:])
    )


def _joined(digits: list[str]) -> Decimal:
    return Decimal("".join(digits))


def _no_amount(text: str) -> ValueError:
    return BadAmount("{amount!r} is not an amount of money", amount=text.strip())


# -- the currencies that people pay with (ISO 4217), and which one was probably meant

# Of several that a word fits ("dollars"), the one that is most traded comes first.
_FIRST = "USD EUR GBP JPY CNY CHF CAD AUD INR MXN BRL KRW SEK NOK DKK NZD".split()
_LIKENESS = 0.75
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency: its code (`USD`) and its English name (`US Dollar`)."""

    code: str
    name: str


@cache
def currencies() -> tuple[Currency, ...]:
    """Return all currencies that are in use, by code; funds, metals and test codes are none."""
    # Reading the standard's table takes 25 ms, which only those who need it should wait for.
    from iso4217 import raw_xml  # noqa: PLC0415 -- (as above)

    found = {}
    for entry in raw_xml.iterfind("CcyTbl/CcyNtry"):
        code, name, units = (entry.find(tag) for tag in ("Ccy", "CcyNm", "CcyMnrUnts"))
        if code is None or name is None or units is None or "IsFund" in name.attrib:
            continue
        if (units.text or "").isdecimal():
            found[code.text or ""] = Currency(code.text or "", name.text or "")
    return tuple(found[code] for code in sorted(found))


def is_currency(code: str) -> bool:
    """Return whether people pay with a currency of this code, in capital letters."""
    return code in _FIRST or any(each.code == code for each in currencies())


def currency_like(text: str) -> Currency | None:
    """Return the currency that somebody probably meant: `dollars`, `€` or `usd`; None for none."""
    word = text.strip().casefold()
    by_code = {each.code: each for each in currencies()}
    if word.upper() in by_code:
        return by_code[word.upper()]
    if meant := currencies_of_sign(word):
        return min((by_code[code] for code in meant if code in by_code), key=_rank, default=None)
    if len(word) < _SHORTEST:
        return None
    singular = word.removesuffix("s")
    named = [each for each in currencies() if _is_named(each, word) or _is_named(each, singular)]
    if named:
        return min(named, key=_rank)
    close = get_close_matches(word, [each.name.casefold() for each in currencies()], 1, _LIKENESS)
    return next((each for each in currencies() if each.name.casefold() in close), None)


def _is_named(currency: Currency, word: str) -> bool:
    name = currency.name.casefold()
    return name.startswith(word) or any(part.startswith(word) for part in name.split())


def _rank(currency: Currency) -> tuple[int, str]:
    place = _FIRST.index(currency.code) if currency.code in _FIRST else len(_FIRST)
    return place, currency.code
