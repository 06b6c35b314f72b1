import pytest

from tillbridge_aloha.code_pages import code_page, fits, guess


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("Бифштекс с яйцом 220гр Картофель", "cp1251"),
        ("Бифштекс с яйцом 220гр Картофель", "cp866"),
        ("Crème brûlée, Bœuf à la mode", "cp1252"),
        ("Crème brûlée Käsespätzle", "cp850"),
        ("Crème brûlée", "utf-8"),
        ("Plain soup", "cp1252"),
    ],
)
def test_letters_speak_for_their_code_page(text: str, page: str) -> None:
    assert guess(text.encode(page)) == page


def test_a_mark_in_the_header_counts_more_than_letters() -> None:
    assert code_page(bytes(29) + b"\x26" + bytes(2), [b"\xe9"]) == "cp866"


def test_a_mark_whose_page_makes_lines_and_boxes_does_not_count() -> None:
    marked = bytes(29) + b"\x26" + bytes(2)
    assert code_page(marked, ["Борщ, уха и пельмени".encode("cp1251")]) == "cp1251"


def test_a_page_fits_where_nearly_all_has_a_character() -> None:
    text = "Борщ, уха и пельмени".encode("cp1251")
    assert fits(text, "cp1251")
    assert fits(text, "cp866")
    assert not fits(text, "utf-8")
