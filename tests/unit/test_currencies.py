"""The list of currencies, and which one somebody means who writes none of their codes."""

import pytest
from iso4217 import raw_table

from tillbridge.config.values import currency_fix
from tillbridge.model.money import currencies, currency_like, exponent, is_currency


def test_the_list_has_what_people_pay_with_and_nothing_else() -> None:
    codes = [each.code for each in currencies()]
    assert codes == sorted(codes)
    assert {"USD", "EUR", "JPY", "KWD", "XOF", "ZWG"} <= set(codes)
    assert not {"XXX", "XTS", "XAU", "USN", "CHE", "DOL", "DEM"} & set(codes)
    assert next(each.name for each in currencies() if each.code == "CHF") == "Swiss Franc"


def test_money_counts_each_currencys_decimals_as_the_standard_does() -> None:
    differ = {
        each.code: units
        for each in currencies()
        if exponent(each.code) != (units := int(str(raw_table[each.code]["CcyMnrUnts"])))
    }
    assert differ == {}


def test_every_code_of_the_list_is_a_currency() -> None:
    assert [each.code for each in currencies() if is_currency(each.code) is not True] == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("dollars", "USD"),
        ("DOL", "USD"),
        ("usd", "USD"),
        ("US dollars", "USD"),
        ("canadian dollar", "CAD"),
        ("€", "EUR"),
        ("Euros", "EUR"),
        ("pounds", "GBP"),
        ("francs", "CHF"),
        ("yen", "JPY"),
        ("Brasilian Real", "BRL"),
        ("canadin dollar", "CAD"),  # the likest of several that are like it
        ("XXX", None),
        ("", None),
    ],
)
def test_what_is_no_code_leads_to_the_currency_that_is_meant(
    written: str, meant: str | None
) -> None:
    assert is_currency(written) is False
    found = currency_like(written)
    assert (found and found.code) == meant
    fix = currency_fix(written)
    assert fix.startswith(f'Did you mean "{meant}"') if meant else '"USD"' in fix
