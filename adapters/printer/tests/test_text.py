"""Text on its way to paper: cleaned, wrapped, encoded or drawn."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge_printer.cleaning import clean
from tillbridge_printer.code_pages import COMMON, NUMBERS, encoded
from tillbridge_printer.emulated.escpos import Machine
from tillbridge_printer.escpos import Language
from tillbridge_printer.layout import Layout
from tillbridge_printer.paper import Align, Cut, Line, Style, cells, fitted
from tillbridge_printer.raster import draw_line, draw_paper, drawn

unhurried = settings(deadline=None, max_examples=40)

LANGUAGE = Language({page: NUMBERS[page] for page in COMMON}, 48, 576)
anything = st.text(st.characters(), max_size=80)
styles = st.builds(
    Style,
    align=st.sampled_from(Align),
    bold=st.booleans(),
    invert=st.booleans(),
    wide=st.integers(1, 2),
    tall=st.integers(1, 2),
)


@unhurried
@given(anything)
def test_clean_text_has_visible_signs_only(text: str) -> None:
    kinds = {unicodedata.category(each) for each in clean(text)}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert clean(clean(text)) == clean(text)


def test_a_pictograph_becomes_its_name_and_accents_are_composed() -> None:
    assert clean("More 🍍!") == "More [pineapple]!"
    assert clean("cre\u0300me") == "crème"
    assert clean("a\u2066b\u2069\ufe0f\u200d") == "ab"


@unhurried
@given(anything, anything, styles, st.integers(24, 80))
def test_lines_fit_the_paper_and_lose_nothing(
    text: str, right: str, style: Style, columns: int
) -> None:
    lines = list(fitted(Line(clean(text), clean(right)[:8], style), columns))
    assert all(cells(line.text) * style.wide <= columns for line in lines)
    assert (
        "".join(clean(text).split())
        in "".join("".join(line.text.split()) for line in lines).replace(
            "".join(clean(right)[:8].split()), "", 1
        )
        or right
    )


@unhurried
@given(anything, styles)
def test_whatever_a_customer_writes_the_printer_gets_one_ticket(text: str, style: Style) -> None:
    """Not one byte of it is a command: nothing is strange, and the paper is cut where we say."""
    machine = Machine()
    layout = Layout("test", "{{ note }}|{{ note }}\n@bold {{ note }}\nEND\n")
    paper = [*layout.parts({"note": text}), Line(clean(text), style=style), Cut()]
    data = LANGUAGE.ticket(paper)
    assert machine.feed(data) == b""
    assert machine.strange == []
    assert len(machine.sheets) == 1
    assert machine.begun is None
    assert "END" in machine.sheets[0].text


@unhurried
@given(anything)
def test_no_picture_holds_a_command_that_printers_obey_at_once(text: str) -> None:
    line = Line("品" + clean(text), style=Style(align=Align.CENTRE, bold=True))
    data = LANGUAGE.ticket([line])
    assert not any(bytes((0x10, second)) in data for second in (0x04, 0x05, 0x14))


def test_a_line_is_encoded_with_few_changes_of_the_page() -> None:
    pieces = encoded("Crème brûlée", COMMON)
    assert pieces is not None
    assert [piece.page for piece in pieces] == ["cp437"]
    mixed = encoded("Борщ à la", COMMON)
    assert mixed is not None
    assert "".join(piece.data.decode(piece.page) for piece in mixed) == "Борщ à la"
    assert len(mixed) == 2
    assert encoded("寿司", COMMON) is None


def test_the_printers_number_of_a_page_can_be_another() -> None:
    language = Language({"cp1251": 73}, 48, 576)
    assert b"\x1bt\x49" in language.ticket([Line("Борщ")])


def test_a_drawn_line_sends_only_the_dots_that_are_black() -> None:
    short, wide = LANGUAGE.ticket([Line("寿")]), LANGUAGE.ticket([Line("寿" * 18)])
    assert len(short) < 32 * 4 + 60
    assert len(wide) < 32 * 72 + 60


def test_arabic_is_joined_and_runs_from_the_right() -> None:
    shown = drawn("كباب")
    assert shown == "\ufe8f\ufe8e\ufe92\ufedb"
    assert drawn("كباب 25 x") == "x 25 " + shown
    assert drawn("2 x كباب, cola") == f"2 x {shown}, cola"
    assert drawn("plain (text) 1") == "plain (text) 1"


def test_brackets_numbers_and_marks_stand_where_they_belong_in_text_from_the_right() -> None:
    assert drawn("קולה 0.5 (L)") == "(L) 0.5 הלוק"
    assert drawn("קולה (גדולה) 2") == "2 (הלודג) הלוק"
    assert drawn("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd") == "\u05dd\u05d5\u05b9\u05dc\u05e9\u05b8"
    assert drawn("crème brûlée") == "crème brûlée"
    assert drawn("cafe\u0301") == "cafe\u0301"


def test_every_script_of_the_plane_has_letters() -> None:
    names = "寿司 Καφές Борщ مشاوي Smörgås 비빔밥 ข้าวผัด"
    (bitmap, *_more) = draw_line(Line(names), 576)
    box = draw_paper([Line("\ufffd")], 576)
    assert any(bitmap.rows)
    assert box.rows != bitmap.rows
