"""What people paste into a till becomes text that a storefront can show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter.texts import LONGEST, one_line, plain_text, without_markup


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
        ("<P CLASS='a'>One</P><br/>Two", "One\nTwo"),
        ('<img alt="3 > 2">Tart', "Tart"),
        ("<a title=Joe's>Tart</a>", "Tart"),
        ("Soup<!--[if mso]><xml><o:p>Word</o:p></xml><![endif]--> of the day", "Soup of the day"),
        ("Soup <![if !vml]>of the day<![endif]>", "Soup of the day"),
        ("Soup <!-- of the day", "Soup <!-- of the day"),
        ("Soup <![<of the day", "Soup <![<of the day"),  # html.parser gives up here
        ("<?xml:namespace prefix='o' />Soup", "Soup"),
        ("Soup &#0;&#999999999;", "Soup \ufffd"),
    ],
)
def test_a_description_loses_its_mark_up(written: str, shown: str) -> None:
    assert plain_text(written) == shown


def test_the_number_of_a_character_may_be_of_any_length() -> None:
    assert plain_text("Soup &#" + "9" * 5000 + ";") == "Soup"


@given(st.text(alphabet="<>!-?/a b='\"&#;[]9", max_size=60))
def test_every_description_becomes_text(written: str) -> None:
    assert "\r" not in plain_text(written)


@pytest.mark.timeout(30)  # html.parser took minutes: its time grows with the square of the length
@pytest.mark.parametrize(
    "part", ["<a b='", '<a b="', "<a ", "<!--", "<![", "</", "&#", "<a/ b", "&a", "<"]
)
def test_a_menu_of_long_descriptions_is_no_hang(part: str) -> None:
    written = (part * LONGEST)[:LONGEST]
    assert all(len(plain_text(written)) <= LONGEST for _ in range(50))


def test_a_description_that_is_far_too_long_is_cut() -> None:
    written = "<p>" + "Soup " * 10_000 + "</p>"
    assert plain_text(written) == ("Soup " * 3_999 + "So")
    assert plain_text("x" * (LONGEST - 4) + "<b class='y'>z</b>") == "x" * (LONGEST - 4)


@pytest.mark.parametrize("written", ["One \n\nTwo  three", "Fish & chips, 3 < 4 > 2", "AT&T; <3"])
def test_a_description_without_mark_up_stays_as_it_was_written(written: str) -> None:
    assert without_markup(written) == written


def test_a_description_with_mark_up_loses_it() -> None:
    assert without_markup("Sea moss <br/><b>Detox &amp; energy</b>") == "Sea moss\nDetox & energy"
