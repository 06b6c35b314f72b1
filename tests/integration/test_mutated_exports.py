"""Whatever becomes of an export on its way, an adapter reads it or says that it cannot."""

import shutil
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tillbridge.adapter import AdapterContext, BadRow, ExportUnreadable
from tillbridge_aloha.adapter import ADAPTER as ALOHA
from tillbridge_loyverse.adapter import ADAPTER as LOYVERSE
from tillbridge_square.adapter import ADAPTER as SQUARE

ADAPTERS = {"aloha": ALOHA, "loyverse": LOYVERSE, "square": SQUARE}
NO_EXPORT = {"case.toml", "expected.json"}
# A workbook is read in a process of its own, which takes its time: it has tests of its own.
EXPORTS = [
    pytest.param(name, file, id=f"{name}-{file.parent.name}-{file.name}")
    for name in ADAPTERS
    for file in sorted((Path(__file__).parents[2] / "adapters" / name / "tests/cases").rglob("*"))
    if file.is_file() and file.name not in NO_EXPORT and file.suffix != ".xlsx"
]
PIECES = [
    *(b"", b'"', b",", b";", b"\t", b"\n", b"x\n", b"\n,\n", b"\x00", b"\xff", b"\xed\xa0\x80"),
    *(b"-1", b"9" * 5_000, b"1e400", b"1e999999999", b"\\ud800", b"{}", b"[]", b"null", b"true"),
]
# Where, as a part of the file's length; how many bytes go; and what comes in their place.
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES) | st.binary(max_size=4)),
    min_size=1,
    max_size=4,
)


def opened(name: str, folder: Path) -> Any:  # noqa: ANN401 -- which methods it has is its own
    case = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    adapter = ADAPTERS[name]
    context = AdapterContext("main", case.get("currency", "EUR"), "loc", folder)
    return adapter.open(adapter.options.model_validate(case.get("options", {})), context)


@pytest.mark.parametrize(("name", "file"), EXPORTS)
@settings(max_examples=settings().max_examples // 3)  # of each of sixty files
@given(edits=EDITS)
def test_a_damaged_export_is_read_or_refused_in_words(
    name: str, file: Path, edits: list[tuple[float, int, bytes]]
) -> None:
    content = file.read_bytes()
    for where, length, piece in edits:
        at = int(where * len(content))
        content = content[:at] + piece + content[at + length :]
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "case"
        shutil.copytree(file.parent, folder)
        (folder / file.name).write_bytes(content)
        till = opened(name, folder)
        told: tuple[BadRow | ExportUnreadable, ...]
        try:
            told = till.read_catalogue().bad_rows
        except ExportUnreadable as unreadable:
            told = (unreadable,)
    assert all(each.text and each.fix for each in told)
