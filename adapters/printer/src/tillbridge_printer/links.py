"""From where a printer is to the way it is reached; only what that way needs is imported."""

import re

from tillbridge.adapter import AdapterContext
from tillbridge.adapter.texts import _
from tillbridge_printer.escpos import Language
from tillbridge_printer.journal import Journal
from tillbridge_printer.link import Link
from tillbridge_printer.options import PrinterOptions
from tillbridge_printer.places import CloudPlace, DevicePlace, EposPlace, TcpPlace


def link_to(options: PrinterOptions, context: AdapterContext, journal: Journal) -> Link:
    """Return the way to the printer of these options."""
    language = Language(options.page_numbers, options.columns, options.paper_dots)
    match options.place:
        case DevicePlace(path, answers=False):
            from tillbridge_printer.file_link import FileLink  # noqa: PLC0415 -- see above

            return FileLink(context.base_dir / path, language)
        case TcpPlace() | DevicePlace() as place:
            from tillbridge_printer.escpos_link import EscPosLink  # noqa: PLC0415 -- see above
            from tillbridge_printer.wires import wire_to  # noqa: PLC0415 -- see above

            return EscPosLink(
                wire_to(place),
                language,
                timeout_s=options.timeout_s,
                answers=options.status,
                by_process_id=options.confirmed_by == "process_id",
            )
        case EposPlace() as place:
            from tillbridge_printer.epos_link import EposLink  # noqa: PLC0415 -- see above

            ca_file = None if options.ca_file is None else context.base_dir / options.ca_file
            return EposLink(place, language, timeout_s=options.timeout_s, ca_file=ca_file)
        case CloudPlace() as place:
            from tillbridge_printer.cloud_link import CloudLink  # noqa: PLC0415 -- see above

            token = _token(options, context)
            dots = options.paper_dots
            return CloudLink(place, token, dots, journal, timeout_s=options.timeout_s)


def _token(options: PrinterOptions, context: AdapterContext) -> str:
    """Return the secret end of the address. Raises ValueError for one that is none."""
    from tillbridge.adapter.secrets import read_secret  # noqa: PLC0415 -- only Star printers have one

    token = "" if options.token is None else read_secret(options.token, "token", context)
    if not re.fullmatch(r"[A-Za-z0-9_-]{16,}", token):
        raise ValueError(_("token: must be 16 letters or digits or more, without blanks"))
    return token
