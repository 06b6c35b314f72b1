"""The page that a merchant sees after consent: made without what the other pages are made with."""

import re

import pytest

from tillbridge.stores.consent import CallbackAnswer
from tillbridge.web.rendering import STATIC, callback_page, static_address


@pytest.mark.parametrize(("ok", "heading"), [(True, "Connected"), (False, "Not connected")])
def test_it_says_whether_it_worked_and_what_to_do(ok: bool, heading: str) -> None:
    page = callback_page(CallbackAnswer(ok, "So it is.", "Do this."))
    assert f"<h1>{heading}</h1>" in page
    assert "<p>So it is.</p>" in page
    assert "<p>Do this.</p>" in page
    assert "<p></p>" not in callback_page(CallbackAnswer(ok, "So it is."))


def test_what_others_say_stays_text() -> None:
    page = callback_page(CallbackAnswer(ok=False, text="<script>\u202e\x07{heading}", fix="\"'&"))
    assert "<p>&lt;script&gt;\ufffd\ufffd{heading}</p>" in page
    assert "<p>&#34;&#39;&amp;</p>" in page


def test_its_head_is_that_of_the_other_pages() -> None:
    base = (STATIC.parent / "templates/base.html").read_text("utf-8")
    head = base.partition("<head>")[2].partition("</head>")[0]
    head = re.sub(r"{% block favicon %}|(?<=}}){% endblock %}", "", head)
    for name in ("icon.svg", "style.css", "pages.css"):
        head = head.replace(f"{{{{ static('{name}') }}}}", static_address(name))
    page = callback_page(CallbackAnswer(ok=True, text="So it is."))
    lines = [line for line in head.splitlines() if line and "{% block" not in line]
    assert len(lines) == 6
    assert all(line in page for line in lines)
