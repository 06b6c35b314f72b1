"""How bytes stand for text is found out by one rule, and a wrong byte stays one wrong byte."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.csv_export import CsvExport
from tillbridge.adapter.decoding import BytesPassed, decode, decoding_of, facts_of
from tillbridge.pos.runner import unreadable_detail

MENU = "id,name\n1,Crème brûlée\n2,Thé vert\n3,Gâteau\n"
RUSSIAN = "id,name,price\n1,Борщ украинский со сметаной,320\n2,Сельдь под шубой,280\n"


@pytest.mark.parametrize(
    "text", [MENU, RUSSIAN, "id,name\n1,麻婆豆腐\n2,回鍋肉\n", "id,n\n1,Tea\n"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_unicode_is_recognised_with_and_without_its_mark(text: str, encoding: str) -> None:
    read, found = decode(text.encode(encoding))
    assert read.lstrip("\ufeff") == text
    assert found.bad_byte is None
    assert not found.encoded_twice


@pytest.mark.parametrize("before", [0, 8, 10, 13, 20, 23, 25])
def test_one_wrong_byte_turns_no_file_into_another_encoding(before: int) -> None:
    data = MENU.encode()
    place = len(MENU[:before].encode())
    read, found = decode(data[:place] + b"\xff" + data[place:])
    assert (found.encoding, found.bad_byte, found.bad_line) == (
        "utf-8",
        place,
        data.count(b"\n", 0, place) + 1,
    )
    assert "Thé vert" in read
    assert "\ufffd" in read


def test_a_file_without_any_utf_8_is_western(tmp_path: Path) -> None:
    read, found = decode(MENU.encode("cp1252"))
    assert read == MENU
    assert (found.encoding, found.bad_byte, found.bad_line) == ("cp1252", 12, 2)


DISHES = {
    "cp1251": "Борщ украинский, Пельмени",
    "cp866": "Борщ украинский, Пельмени",
    "cp1253": "Μουσακάς σπέσιαλ, Τζατζίκι",
    "cp1255": "חומוס ביתי, פלאפל",
    "cp1256": "شاورما دجاج, فلافل",
    "cp1250": "Żurek śląski, Gołąbki, Dania główne, Kiełbasa",
    "cp850": "Käsespätzle, Grüner Salat, Crème brûlée",
    "cp437": "Jalapeño, Käse, Crème",
    "mac_roman": "Käsespätzle, Crème brûlée",
    "cp932": "ラーメン, カレーライス",
    "gbk": "宫保鸡丁, 饺子",
}


@pytest.mark.parametrize("encoding", DISHES)
def test_what_makes_no_sense_as_western_text_is_not_guessed(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "menu.csv"
    path.write_bytes(f"id,name\n1,{DISHES[encoding]}\n".encode(encoding))
    with pytest.raises(ExportUnreadable, match="neither in UTF-8 nor in the encoding") as caught:
        CsvExport(path).read()
    assert "set the option encoding" in caught.value.fix
    assert not caught.value.passing
    assert decode(path.read_bytes(), encoding)[0] == path.read_text(encoding)


@pytest.mark.parametrize(
    "text",
    [
        "Crème brûlée, Bœuf à la mode, L’été, ÉCLAIR À LA CRÈME – 12 €",
        "Käsespätzle, Weißwurst, ÄPFEL, Öl, MÜSLI, 1½ Maß",
        "¡Hola!, ¿Qué?, Jalapeños, Piña, JAMÓN, 1ª, N° 5",
        "Pão de queijo, Feijão, Açaí, PÃO",
        "Rødgrød, Æbleskiver, ÆØÅ, Þorskur, ýsa, kjötsúpa",
        "Šašlõkk, Äädikas, õun",
        "Soup™, “Special”, Chef’s, Coca-Cola®, col·lecció",
    ],
)
def test_western_text_is_read_as_such(text: str) -> None:
    read, found = decode(f"{text}\n".encode("cp1252"))
    assert (read.strip(), found.encoding) == (text, "cp1252")


def test_plain_ascii_tells_no_encoding() -> None:
    assert decode(b"id,name\n1,Tea\n")[1].encoding == "ascii"


@pytest.mark.parametrize("mistaken", ["cp1252", "latin-1", "mac_roman", "cp850", "cp437"])
def test_text_that_is_encoded_twice_is_seen(mistaken: str) -> None:
    found = decode(MENU.encode().decode(mistaken, "replace").encode())[1]
    assert found.encoded_twice
    assert [each.place for each in facts_of("menu.csv", found).warnings] == ["menu.csv"]


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x4FF), max_size=80))
def test_what_is_utf_8_is_read_as_it_is(text: str) -> None:
    read, found = decode(f"{text}\né\n".encode())
    assert read == f"{text}\né\n"
    assert not found.encoded_twice  # one letter is right, so the others are meant


@given(st.sampled_from([MENU, RUSSIAN]), st.binary(max_size=3), st.integers(0, 60))
def test_a_file_and_its_bytes_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory, text: str, noise: bytes, at: int
) -> None:
    data = text.encode()[:at] + noise + text.encode()[at:]
    path = tmp_path_factory.mktemp("file") / "menu.csv"
    path.write_bytes(data)
    try:
        read, found = decode(data)
    except UnicodeDecodeError:
        return
    with path.open("rb") as file:
        decoding = decoding_of(file)
        try:
            data.decode(decoding.encoding)
        except UnicodeDecodeError:
            decoding = decoding_of(file, in_doubt=True)
    whole, pieces = BytesPassed(decoding), BytesPassed(decoding)
    whole.feed(data)
    for begin in range(0, len(data), 7):
        pieces.feed(data[begin : begin + 7])
    assert read == data.decode(decoding.encoding, decoding.errors)
    assert whole.encoding() == found
    assert (pieces.encoding().bad_byte, pieces.encoding().bad_line) == (
        found.bad_byte,
        found.bad_line,
    )
    assert whole.ends_with_newline() == pieces.ends_with_newline()
    assert whole.ends_with_newline() == data.rstrip(b"\0").endswith((b"\n", b"\r"))


def test_an_option_that_is_wrong_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "menu.csv"
    path.write_bytes(MENU.encode("cp1252"))
    with pytest.raises(ExportUnreadable, match="is not written in utf-8: byte 12"):
        CsvExport(path, encoding="utf-8").read()
    assert decode(path.read_bytes(), "cp1252")[1].chosen


BROKEN = {
    "quotation": ('id,name\n1,Soup\n2,"Tea\n3,Pie\n', "line 3"),
    "row": ("id,name\n1,Soup\n2", "row 3"),
}


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN.keys())
def test_half_a_file_is_being_written_for_a_while_and_then_wrong(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "menu.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(ExportUnreadable, match="probably still being written") as fresh:
        CsvExport(path).read()
    assert fresh.value.passing
    assert str(unreadable_detail(fresh.value)["detail"]).count("menu.csv") == 1
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    with pytest.raises(ExportUnreadable) as lasting:
        CsvExport(path).read()
    assert not lasting.value.passing
    assert lasting.value.place == f"menu.csv, {place}"
    assert "Nothing to do" not in lasting.value.fix


def test_half_a_header_may_grow_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "menu.csv"
    path.write_text("Handle,SKU,Na", "utf-8")
    assert CsvExport(path).read().may_grow
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    assert not CsvExport(path).read().may_grow
