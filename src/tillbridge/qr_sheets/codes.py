"""QR codes of addresses, as SVG and PNG."""

import io
from urllib.parse import quote, urlsplit

import segno

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _

QUIET_ZONE = 4  # modules of white around a code; scanners need them (ISO/IEC 18004)
_AS_IT_IS = "%:/?#[]@!$&'()*+,;="
_PNG_MODULE = 20  # pixels


def code_of(name: str, url: str) -> segno.QRCode:
    """Return the code of a table's address, error correction M or better. Raises BridgeError."""
    try:
        # A code holds bytes, and phones guess their meaning: only ASCII has but one.
        address = quote(url, safe=_AS_IT_IS)
    except UnicodeEncodeError:
        address = ""
    if urlsplit(address).scheme not in {"http", "https"}:
        raise BridgeError(
            _("The service's address of table {name} is no web address.").format(name=name),
            fix=_("Push the tables again; if it stays, tell the ordering service."),
        )
    try:
        return segno.make_qr(address, error="m", boost_error=True)
    except segno.DataOverflowError as failure:
        raise BridgeError(
            _("The service's address of table {name} is too long for a QR code.").format(name=name),
            fix=_("Tell the ordering service."),
        ) from failure


def modules_across(code: segno.QRCode) -> int:
    """Return how many modules wide a code is, its quiet zone included."""
    return int(code.symbol_size(border=QUIET_ZONE)[0])


def inline_svg(code: segno.QRCode) -> str:
    """Return a code as an SVG element without a size of its own; it holds no text."""
    return code.svg_inline(border=QUIET_ZONE, omitsize=True, light="#fff", svgclass=None)


def svg_file(code: segno.QRCode, title: str) -> bytes:
    """Return a code as an SVG file; `title` is what screen readers and viewers show."""
    stream = io.BytesIO()
    code.save(stream, kind="svg", border=QUIET_ZONE, scale=10, light="#fff", title=title)
    return stream.getvalue()


def png_file(code: segno.QRCode) -> bytes:
    """Return a code as a PNG file."""
    stream = io.BytesIO()
    code.save(stream, kind="png", border=QUIET_ZONE, scale=_PNG_MODULE, dpi=300)
    return stream.getvalue()
