"""What people paste into a till becomes text that a storefront can show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter.texts import one_line, plain_text, without_markup


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("  Fish\tand\nchips ", "Fish and chips"),
        ("Tea\x07\x00 with\u00a0milk", "Tea with milk"),
        ("Kartoffel\u00adsalat\u200b", "Kartoffelsalat"),
        ("\ufeffSoup", "Soup"),
        ("نان\u200cپنیری", "نان\u200cپنیری"),
        ("\U0001f469\u200d\U0001f373 special", "\U0001f469\u200d\U0001f373 special"),
    ],
)
def test_a_name_is_one_line_of_what_can_be_seen(typed: str, shown: str) -> None:
    assert one_line(typed) == shown


@given(st.text())
def test_a_name_that_is_clean_stays(typed: str) -> None:
    clean = one_line(typed)
    assert one_line(clean) == clean
    assert clean == clean.strip()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Sea moss <br><b>Detox &amp; energy</b><br>", "Sea moss\nDetox & energy"),
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("Fish & chips, 3 < 4", "Fish & chips, 3 < 4"),
        ("two\r\nlines", "two\nlines"),
    ],
)
def test_a_description_loses_its_mark_up(written: str, shown: str) -> None:
    assert plain_text(written) == shown


@pytest.mark.parametrize("written", ["One \n\nTwo  three", "Fish & chips, 3 < 4 > 2", "AT&T; <3"])
def test_a_description_without_mark_up_stays_as_it_was_written(written: str) -> None:
    assert without_markup(written) == written


def test_a_description_with_mark_up_loses_it() -> None:
    assert without_markup("Sea moss <br/><b>Detox &amp; energy</b>") == "Sea moss\nDetox & energy"
