"""Writing small workbooks for rigs and cases, without a library: enough for any reader."""

import zipfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

Cell = str | int | Decimal | None

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_ALWAYS = (1980, 1, 1, 0, 0, 0)  # the same workbook is the same bytes


def write_workbook(
    path: Path, sheets: Mapping[str, Sequence[Sequence[Cell]]], *, dimension: str = ""
) -> None:
    """Write a workbook by temporary file and rename.

    `dimension` is the range that each sheet claims; some tills always write "A1".
    """
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _parts(sheets, dimension).items():
            archive.writestr(
                zipfile.ZipInfo(name, _ALWAYS), f'<?xml version="1.0" encoding="UTF-8"?>{text}'
            )
    part.replace(path)


def _parts(sheets: Mapping[str, Sequence[Sequence[Cell]]], dimension: str) -> Mapping[str, str]:
    numbers = range(1, len(sheets) + 1)
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for n in numbers
    )
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="r{n}"/>'
        for n, name in zip(numbers, sheets, strict=True)
    )
    relations = "".join(
        f'<Relationship Id="r{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in numbers
    )
    types = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f"{overrides}</Types>"
    )
    root = (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1"'
        f' Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    )
    book = f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>'
    parts = {
        "[Content_Types].xml": types,
        "_rels/.rels": root,
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": (
            f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>'
        ),
    }
    for n, rows in zip(numbers, sheets.values(), strict=True):
        parts[f"xl/worksheets/sheet{n}.xml"] = _sheet(rows, dimension)
    return parts


def _sheet(rows: Sequence[Sequence[Cell]], dimension: str) -> str:
    claimed = f'<dimension ref="{dimension}"/>' if dimension else ""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(_cell(value, place, number) for place, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    data = "".join(lines)
    return f'<worksheet xmlns="{_MAIN}">{claimed}<sheetData>{data}</sheetData></worksheet>'


def _cell(value: Cell, place: int, number: int) -> str:
    if value is None or value == "":
        return ""
    where = f"{_letters(place)}{number}"
    if isinstance(value, str):
        space = ' xml:space="preserve"'
        return f'<c r="{where}" t="inlineStr"><is><t{space}>{escape(value)}</t></is></c>'
    return f'<c r="{where}"><v>{value}</v></c>'


def _letters(place: int) -> str:
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
