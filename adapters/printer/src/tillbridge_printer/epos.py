"""Epson's ePOS-Print: a ticket as XML, and what the printer's answer says."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape

from tillbridge.adapter.texts import _
from tillbridge_printer.code_pages import encoded
from tillbridge_printer.paper import Align, Cut, Feed, Line, Paper, Rule, Style, fitted
from tillbridge_printer.raster import Bitmap, draw_line
from tillbridge_printer.states import PrinterState

_NAMESPACE = "http://www.epson-pos.com/schemas/2011/03/epos-print"
_ALIGN = {Align.LEFT: "left", Align.CENTRE: "center", Align.RIGHT: "right"}
_ENVELOPE = (
    '<?xml version="1.0" encoding="utf-8"?>'
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
    f'<epos-print xmlns="{_NAMESPACE}">%s</epos-print></s:Body></s:Envelope>'
)
# Codes with which surely nothing was printed, and what a person does about each.
NOTHING_PRINTED = {
    "SchemaError": _("does not understand the ticket: tell the adapter's vendor"),
    "DeviceNotFound": _("knows no device of that name: correct the end of the option `printer`"),
    "EX_SPOOLER": _("has a full queue: switch it off and on"),
    "EX_DEVICE_BUSY": _("is busy with somebody else's work"),
    "TooManyRequests": _("is busy with too many tickets"),
    "RequestEntityTooLarge": _("finds the ticket too large"),
}
_ERRORS = {
    "EPTR_CUTTER": _("an error of its cutter"),
    "EPTR_MECHANICAL": _("a mechanical error"),
    "EPTR_UNRECOVERABLE": _("an error that needs a repair"),
    "EPTR_AUTOMATICAL": _("that its head is too hot"),
    "EPTR_BATTERY_LOW": _("that its battery is empty"),
}


@dataclass(frozen=True, slots=True)
class EposAnswer:
    """The printer's answer; `status` are the bits of its state."""

    success: bool
    code: str
    status: int

    @property
    def state(self) -> PrinterState:
        """Return how the printer is."""
        bits = self.status
        error = _ERRORS.get(self.code, "")
        for bit, text in (
            (0x0400, _("a mechanical error")),
            (0x0800, _("an error of its cutter")),
            (0x2000, _("an error that needs a repair")),
            (0x4000, _("that its head is too hot")),
        ):
            error = error or (text if bits & bit else "")
        return PrinterState(
            offline=bool(bits & 0x09),
            cover_open=bool(bits & 0x20) or self.code == "EPTR_COVER_OPEN",
            paper_low=bool(bits & 0x0002_0000),
            paper_out=bool(bits & 0x0008_0000) or self.code == "EPTR_REC_EMPTY",
            error=error,
        )


def ticket_xml(paper: Paper, pages: Sequence[str], columns: int, dots: int) -> bytes:
    """Return the request that prints; an empty paper only asks how the printer is."""
    body = "".join(_part(part, pages, columns, dots) for part in paper)
    return (_ENVELOPE % body).encode()


def answer_of(data: bytes) -> EposAnswer:
    """Return what the printer answered. Raises ValueError for anything else."""
    found: list[dict[str, str]] = []

    def on_start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "response":
            found.append(attributes)

    def on_doctype(*_args: object) -> None:
        raise ValueError(_("a document type has no place in an answer"))

    parser = expat.ParserCreate()
    parser.StartElementHandler = on_start
    parser.StartDoctypeDeclHandler = on_doctype
    try:
        parser.Parse(data, True)  # noqa: FBT003 -- the end of the document, as expat has it
    except expat.ExpatError as failure:
        raise ValueError(_("the answer is no XML: {failure}").format(failure=failure)) from failure
    if not found:
        raise ValueError(_("the answer has no <response>"))
    element = found[0]
    status = element.get("status", "0")
    return EposAnswer(
        success=element.get("success", "").lower() in {"true", "1"},
        code=element.get("code", ""),
        status=int(status) if status.isdigit() else 0,
    )


def _part(part: object, pages: Sequence[str], columns: int, dots: int) -> str:
    match part:
        case Line():
            return "".join(_line(part, pages, columns, dots))
        case Rule():
            return _text("-" * columns, Style())
        case Feed(lines):
            return f'<feed line="{min(lines, 255)}"/>'
        case Cut():
            return '<cut type="feed"/>'
        case _:
            raise TypeError(f"{part!r} is no part of a ticket")


def _line(line: Line, pages: Sequence[str], columns: int, dots: int) -> Iterator[str]:
    lines = list(fitted(line, columns))
    if any(encoded(each.text, pages) is None for each in lines):
        for bitmap in draw_line(line, dots):
            yield _image(bitmap)
        return
    for each in lines:
        yield _text(each.text, each.style)


def _text(text: str, style: Style) -> str:
    return (
        f'<text lang="en" align="{_ALIGN[style.align]}" em="{str(style.bold).lower()}"'
        f' reverse="{str(style.invert).lower()}" width="{style.wide}" height="{style.tall}">'
        f"{escape(text)}&#10;</text>"
    )


def _image(bitmap: Bitmap) -> str:
    data = base64.b64encode(bitmap.packed()).decode()
    return (
        f'<image align="left" mode="mono" width="{bitmap.packed_width * 8}"'
        f' height="{len(bitmap.rows)}">{data}</image>'
    )
