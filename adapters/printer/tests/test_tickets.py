"""What comes out of an emulated printer: read back as text, and as the picture in the README.

A folder in `tickets/` is a case: an order, options, and the paper that is expected. New paper is
written beside it as `found.txt` (and `found.png`) when it differs, to be looked at.
"""

import json
import tomllib
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, Order, TicketMark
from tillbridge.model.order import parse_order
from tillbridge_printer.emulated.sheet import Sheet
from tillbridge_printer.emulated.show import main, sheets_of
from tillbridge_printer.options import PrinterOptions

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("tickets/*/case.toml"))


def order_in(case: Path) -> Order:
    return parse_order(json.loads((case / "order.json").read_text("utf-8")))


def paper_of(case: Path) -> Sequence[Sheet]:
    said = tomllib.loads((case / "case.toml").read_text("utf-8"))
    said.pop("about")
    marks = {TicketMark(name) for name in said.pop("marks", ())}
    now = datetime.fromisoformat(said.pop("now", "2026-11-21T18:05:00Z"))
    options = PrinterOptions.model_validate({"printer": "file:x", "timezone": "UTC"} | said)
    context = AdapterContext("main", "EUR", "loc", case)
    return sheets_of(order_in(case), options, context, marks=marks, now=now)


def told(sheets: Sequence[Sheet]) -> str:
    """Return the paper as text: how a line looks in front of it, `picture` for a drawn one."""
    lines = []
    for sheet in sheets:
        for line in sheet.lines:
            look = line.look
            words = [
                word
                for word, on in (
                    ("picture", line.picture),
                    (("left", "centre", "right")[look.align], look.align),
                    ("bold", look.bold),
                    ("invert", look.invert),
                    ("wide", look.wide == 2),
                    ("tall", look.tall == 2),
                )
                if on
            ]
            lines.append(f"{' '.join(words):<26}|{line.text}")
        lines.append("-- cut --")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_paper_is_as_expected(case: Path) -> None:
    sheets = paper_of(case)
    found, expected = told(sheets), case / "expected.txt"
    if not expected.exists() or found != expected.read_text("utf-8"):
        (case / "found.txt").write_text(found, "utf-8")
        for number, sheet in enumerate(sheets, 1):
            (case / f"found-{number}.png").write_bytes(sheet.png())
    assert found == expected.read_text("utf-8")


def test_a_hostile_customer_cuts_nothing_and_opens_nothing() -> None:
    sheets = paper_of(HERE / "tickets/hostile")
    assert len(sheets) == 2, "one for each ticket, and no cut of the customer's"
    assert all(
        line.look.wide == 1 for sheet in sheets for line in sheet.lines if "PAID" in line.text
    )


@pytest.mark.parametrize(
    ("picture", "case"), [("ticket.png", "everything"), ("marked.png", "marked")]
)
def test_a_picture_in_the_readme_is_what_comes_out(picture: str, case: str) -> None:
    shown = (HERE.parent / picture).read_bytes()
    assert dots(shown) == dots(paper_of(HERE / "tickets" / case)[0].png())


def dots(png: bytes) -> bytes:
    """Return what a picture shows: compressed by another zlib it has other bytes."""
    start = png.index(b"IDAT")
    size = int.from_bytes(png[start - 4 : start], "big")
    return zlib.decompress(png[start + 4 : start + 4 + size])


def test_a_layout_can_be_looked_at_without_a_printer(tmp_path: Path) -> None:
    layout = tmp_path / "kitchen.txt"
    layout.write_text("@big {{ number }}\n", "utf-8")
    assert main([str(tmp_path / "a.png"), "--layout", str(layout)]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    layout.write_text("{{ nothing }}\n", "utf-8")
    assert main([str(tmp_path / "b.png"), "--layout", str(layout)]) == 1


def test_a_layout_that_fails_at_an_order_gives_way_to_ours(tmp_path: Path) -> None:
    layout = tmp_path / "kitchen.txt"
    layout.write_text("{{ 10 // data.parts if data.parts is defined else number }}\n", "utf-8")
    options = PrinterOptions.model_validate({"printer": "file:x", "layouts": {"kitchen": layout}})
    context = AdapterContext("main", "EUR", "loc", tmp_path)
    order = parse_order({"id": "ord_1", "order_number": "7", "parts": 0})
    with pytest.raises(ValueError, match=r"kitchen\.txt, line 1: integer division"):
        sheets_of(order, options, context, now=datetime(2026, 11, 21, tzinfo=UTC))
