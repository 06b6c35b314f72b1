"""`tillbridge tables ...`: the floor plan, and QR codes to print."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.answers import no_tables
from tillbridge.cli.commands import Json, Store, add_operations, call, option
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer

app = typer.Typer(help=_("The floor plan, and QR codes to print."), no_args_is_help=True)


class Format(StrEnum):
    """What is made, for the choice on the command line."""

    HTML = "html"
    SVG = "svg"
    PNG = "png"


class PaperSize(StrEnum):
    """The paper, for the choice on the command line."""

    A4 = "a4"
    LETTER = "letter"


add_operations(app, "tables")


@app.command()
def qr(
    context: typer.Context,
    store: Store,
    out: Annotated[Path, option("--out", _("The folder to write to."), "DIR")] = Path(),
    kind: Annotated[
        Format,
        option("--format", _("html: a sheet to print; svg or png: a file a table."), "KIND"),
    ] = Format.HTML,
    paper: Annotated[
        PaperSize, option("--paper", _("The sheet's paper: a4, letter."), "SIZE")
    ] = PaperSize.A4,
    per_page: Annotated[
        int,
        option("--per-page", _("How many codes on a page, up to 30."), "N", min=1, max=30),
    ] = 6,
    zone: Annotated[
        str | None, option("--zone", _("Only the tables of this zone."), "ZONE")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make QR codes of the tables, ready to print and cut.

    The sheet is one file that needs no network: open it in a browser and print it. From then on
    its codes count as printed, and the status tells when one of them is dead.

    Example: tillbridge tables qr main --paper letter --per-page 8
    """
    from tillbridge.qr_sheets.files import sheet_name, single_files, write_files
    from tillbridge.qr_sheets.sheet import Paper, QrTable, make_sheet

    loaded = load_settings(context)
    store_of(loaded, store)
    answer = call(loaded, "tables.list", {"store": store})
    there = _chosen(answer, store, zone)
    coded = [each for each in there if each["qr_url"]]
    if not coded:
        raise BridgeError(
            _("The service has given no QR codes for these tables."),
            fix=_("Push the floor plan again: tillbridge tables push {store}").format(store=store),
        )
    tables = [QrTable(e["external_id"], e["name"], e["zone"], e["qr_url"]) for e in coded]
    title = answer["title"]
    told: dict[str, Any] = {"without_code": [e["name"] for e in there if not e["qr_url"]]}
    if kind is Format.HTML:
        sheet = make_sheet(tables, title, size=Paper(paper.value), per_page=per_page)
        files = {sheet_name(store, zone): sheet.html.encode("utf-8")}
        told |= {"pages": sheet.pages, "hard_to_scan": sheet.hard_to_scan}
    else:
        files = dict(single_files(tables, store, title, kind=kind.value))
    paths = write_files(out, files)
    codes = {each["external_id"]: each["code"] for each in coded}
    call(loaded, "tables.printed", {"store": store, "codes": codes})
    told |= {"ok": True, "files": [str(path) for path in paths], "codes": len(tables)}
    if as_json:
        say.document(told)
    else:
        _tell(told)


def _chosen(answer: Answer, store: str, zone: str | None) -> list[dict[str, Any]]:
    """Return the tables to print. Raises BridgeError where there are none."""
    tables: list[dict[str, Any]] = answer["tables"]
    if not tables:
        raise BridgeError(
            _("The ordering service has no tables of {store}.").format(store=store),
            fix=no_tables(answer, store),
        )
    if zone is None:
        return tables
    wanted = zone.strip().casefold()
    chosen = [each for each in tables if each["zone"].strip().casefold() == wanted]
    if not chosen:
        zones = ", ".join(sorted({each["zone"] for each in tables if each["zone"]}))
        raise BridgeError(
            _("There is no zone {zone}.").format(zone=zone),
            fix=_("There are: {zones}.").format(zones=say.clean(zones) or _("none")),
        )
    return chosen


def _tell(told: dict[str, Any]) -> None:
    for path in told["files"]:
        say.line(path)
    if "pages" in told:
        pages = ngettext("{n} page", "{n} pages", told["pages"]).format(n=told["pages"])
        say.line(
            ngettext(
                "{n} code on {pages}: open the file in a browser and print it at 100 %.",
                "{n} codes on {pages}: open the file in a browser and print it at 100 %.",
                told["codes"],
            ).format(n=told["codes"], pages=pages)
        )
    if told.get("hard_to_scan"):
        say.line(_("These codes are very fine: choose fewer with --per-page."), level="warning")
    if told["without_code"]:
        names = say.clean(", ".join(told["without_code"]))
        text = _("Without a code yet, and left out: {names}").format(names=names)
        say.line(text, level="warning")
