import pytest

from tillbridge_aloha.code_pages import code_page, guess


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
