"""The reference of the adapter API, made from the code: `make reference` writes it.

`docs/adapters/reference.md` is that, and a test holds it to the code.
"""

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any

_SECTIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "How an adapter makes itself known",
        "",
        "tillbridge.adapter",
        ("Adapter", "AdapterOptions", "AdapterContext"),
    ),
    (
        "Capabilities",
        "An adapter is one object. Its methods are its capabilities, all plain blocking calls.",
        "tillbridge.adapter",
        (
            "ReadsCatalogue",
            "ReadsCatalogueChanges",
            "ReadsAvailability",
            "ReadsTables",
            "WritesTickets",
            "WritesLate",
            "CancelsTickets",
            "ListsTickets",
            "ReportsTicketUpdates",
            "ReportsUnreadableUpdates",
            "ReportsHealth",
            "NamesFiles",
            "NotifiesChanges",
            "ReportsFaults",
            "Closes",
        ),
    ),
    (
        "What is read",
        "Prices are whole minor units of the store's currency; ids are the till's own stable keys.",
        "tillbridge.adapter",
        (
            "Catalogue",
            "Item",
            "Variant",
            "ItemTax",
            "TaxComponent",
            "Category",
            "AddOn",
            "AddOnGroup",
            "Menu",
            "BadRow",
            "Source",
            "CatalogueChanges",
            "Availability",
            "AvailabilityReading",
            "Table",
            "TablesReading",
        ),
    ),
    (
        "Orders and tickets",
        "",
        "tillbridge.adapter",
        (
            "Order",
            "OrderLine",
            "OrderOption",
            "Ticket",
            "ListedTicket",
            "TicketUpdate",
            "TicketStatus",
            "RejectReason",
            "Health",
            "Advice",
            "Change",
            "written_once",
        ),
    ),
    (
        "Failures",
        "",
        "tillbridge.adapter",
        (
            "ExportUnreadable",
            "PosFailure",
            "PosOffline",
            "TicketOutcomeUnknown",
            "ItemUnavailable",
            "StoreClosed",
            "AtCapacity",
            "PriceMismatch",
        ),
    ),
    ("Reading a menu as its difference", "", "tillbridge.adapter.known_records", ("KnownRecords",)),
    ("", "", "tillbridge.adapter.claimed_ids", ("ClaimedIds", "Clash")),
    ("Reading files", "", "tillbridge.adapter.csv_export", ("CsvExport", "CsvTable")),
    ("", "", "tillbridge.adapter.xlsx_export", ("XlsxExport", "Sheet", "cell_text")),
    (
        "",
        "",
        "tillbridge.adapter.isolation",
        ("call_in_child", "IsolatedReader", "Limits", "ChildFailed"),
    ),
    (
        "",
        "",
        "tillbridge.adapter.export_files",
        ("reading_whole", "still_being_written", "LastRead"),
    ),
    ("", "", "tillbridge.adapter.modifier_file", ("read_modifiers", "Modifiers")),
    (
        "Asking a till over HTTP",
        "[writing.md](writing.md#5-failures) has the table of what each answer means.",
        "tillbridge.adapter.http_client",
        ("HttpClient", "HttpRefused", "HttpAnswer", "NoAnswer", "json_of"),
    ),
    ("", "", "tillbridge.adapter.json_rows", ("read_rows", "RowReader")),
    ("", "", "tillbridge.adapter.event_cursor", ("EventCursor",)),
    (
        "What is sold online",
        "",
        "tillbridge.adapter.sale_options",
        (
            "SaleOptions",
            "StockOptions",
            "TaxOptions",
            "PriceOptions",
            "SaleRules",
            "NotForSale",
            "chosen_taxes",
            "is_sold_out",
        ),
    ),
    (
        "",
        "",
        "tillbridge.model.export_facts",
        ("ExportFacts", "ExportWarning", "FileEncoding", "LeftOut"),
    ),
    (
        "",
        "",
        "tillbridge.adapter.texts",
        ("_", "ngettext", "joined", "one_line", "plain_text", "without_markup"),
    ),
    (
        "Money and secrets",
        "",
        "tillbridge.model.money",
        ("to_minor", "to_major", "major", "exponent"),
    ),
    ("", "", "tillbridge.adapter.prices", ("PriceReader", "BadPrice")),
    (
        "",
        "",
        "tillbridge.model.numbers",
        ("parse_decimal", "parse_json_int", "parse_json_float"),
    ),
    ("", "", "tillbridge.adapter.secrets", ("read_secret",)),
    (
        "Testing",
        "What each check asks is in [writing.md](writing.md#7-the-checks).",
        "tillbridge.adapter.conformance",
        (
            "Rig",
            "RigTicket",
            "TicketLine",
            "CannotDo",
            "conformance_tests",
            "case_tests",
            "read_quality",
            "run_suite",
            "run_check",
            "run_case",
            "Report",
            "CheckResult",
            "Violation",
        ),
    ),
    ("", "", "tillbridge.adapter.conformance.changes", ("Told",)),
    ("", "", "tillbridge.adapter.conformance.file_rig", ("FileRig",)),
    ("", "", "tillbridge.adapter.conformance.http_rig", ("HttpRig", "HttpRequest")),
    ("", "", "tillbridge.adapter.conformance.workbook", ("write_workbook",)),
)
# What the API hands on, and is told elsewhere.
_ELSEWHERE = {"API_VERSION"}


def text() -> str:
    """Return the page."""
    api = importlib.import_module("tillbridge.adapter")
    lines = [
        "# Reference of the adapter API",
        "",
        f"Version {api.API_VERSION}. Made from the code by `make reference`.",
        "[writing.md](writing.md) is where to begin, [policy.md](policy.md) says what may change.",
    ]
    for title, about, module, names in _SECTIONS:
        if title:
            lines += ["", f"## {title}"]
        if about:
            lines += ["", about]
        lines += ["", f"From `{module}`:"]
        found = importlib.import_module(module)
        for name in (*names, *_others(title)):
            lines += ["", *_entry(name, getattr(found, name))]
    return "\n".join(lines) + "\n"


def _others(title: str) -> tuple[str, ...]:
    """Return the names of the API that no list above has, and that belong under this title."""
    api = importlib.import_module("tillbridge.adapter")
    told = {name for _title, _about, _module, names in _SECTIONS for name in names}
    names = [name for name in api.__all__ if name not in told | _ELSEWHERE]
    return tuple(name for name in names if _belongs(getattr(api, name)) == title)


def _belongs(what: Any) -> str:  # noqa: ANN401 -- a class or a function
    if inspect.isclass(what) and issubclass(what, Exception):
        return "Failures"
    return "Capabilities" if getattr(what, "_is_protocol", False) else "Orders and tickets"


def _entry(name: str, what: Any) -> Iterator[str]:  # noqa: ANN401 -- a class or a function
    if not inspect.isclass(what):
        yield f"### `{name}{_signature(what)}`"
        yield ""
        yield _about(what)
        return
    constructor = f"{name}{_signature(what)}" if _is_made(what) else name
    yield f"### `{constructor}`"
    yield ""
    yield _about(what)
    if dataclasses.is_dataclass(what):
        yield ""
        yield "| field | type | default |"
        yield "|---|---|---|"
        for field in dataclasses.fields(what):
            if not field.name.startswith("_"):
                kind = _type(field.type).replace("|", "\\|")
                yield f"| `{field.name}` | `{kind}` | {_default(field)} |"
    elif issubclass(what, Enum):
        yield ""
        yield ", ".join(f"`{member.value}`" for member in what) + "."
    for method, function in _methods(what):
        yield ""
        yield f"- `{method}{_signature(function)}`"
        yield ""
        yield "  " + _about(function).replace("\n", "\n  ").replace("\n  \n", "\n\n")


def _is_made(kind: type) -> bool:
    """Return whether a class is made with arguments of its own that no table tells."""
    return issubclass(kind, Exception) and kind.__init__ is not Exception.__init__


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, Enum):
        return
    for name, member in vars(kind).items():
        plain = member.__func__ if isinstance(member, classmethod) else member
        if not name.startswith("_") and inspect.isfunction(plain) and plain.__doc__:
            yield name, plain


def _about(what: Any) -> str:  # noqa: ANN401 -- a class or a function
    return inspect.getdoc(what) or ""


def _signature(what: Any) -> str:  # noqa: ANN401 -- a class or a function
    signature = inspect.signature(what)
    parameters = [
        each for name, each in signature.parameters.items() if name not in {"self", "cls"}
    ]
    return _type(str(signature.replace(parameters=parameters)))


def _type(said: object) -> str:
    name = said if isinstance(said, str) else getattr(said, "__name__", str(said))
    if not isinstance(said, str) and hasattr(said, "__args__"):
        name = str(said)
    plain = re.sub(r"<function [^>]*>+ at [^>]*>|<function [^>]*>[^>]*>", "...", name)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", plain).replace("'", "")


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`" if field.default != "" else '`""`'
    if field.default_factory is not dataclasses.MISSING:
        return "empty"
    return "**required**"


if __name__ == "__main__":
    sys.stdout.write(text())
