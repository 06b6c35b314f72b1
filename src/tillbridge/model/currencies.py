"""The currencies that people pay with (ISO 4217), and which one was probably meant."""

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from tillbridge.model.money import currencies_of_sign

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
