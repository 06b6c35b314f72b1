"""`tillbridge tables qr`: QR codes of the tables, to print."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tillbridge.cli import say
from tillbridge.cli.answers import no_tables
from tillbridge.cli.commands import call, command
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument
from tillbridge.operations.arguments import StoreName

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.operations.tables import TableView


def _show(answer: Answer, _given: Arguments) -> Lines:
    yield from answer["files"]
    if "pages" in answer:
        pages = ngettext("{n} page", "{n} pages", answer["pages"]).format(n=answer["pages"])
        text = ngettext(
            "{n} code on {pages}: open the file in a browser and print it at 100 %.",
            "{n} codes on {pages}: open the file in a browser and print it at 100 %.",
            answer["codes"],
        )
        yield text.format(n=answer["codes"], pages=pages)
    if answer.get("hard_to_scan"):
        yield _("These codes are very small: choose fewer with --per-page."), "warning"
    if answer["without_code"]:
        names = ", ".join(answer["without_code"])
        text = _("Left out, because they have no code yet: {names}").format(names=names)
        yield text, "warning"


@command("tables qr", _show)
def qr(
    loaded: "LoadedSettings",
    store: StoreName,
    *,
    out: Annotated[Path, Argument("DIR", _("The folder to write to."))] = Path(),
    kind: Annotated[
        Literal["html", "svg", "png"],
        Argument(
            "KIND", _("html: a sheet to print; svg or png: one file for each table."), "--format"
        ),
    ] = "html",
    paper: Annotated[
        Literal["a4", "letter"], Argument("SIZE", _("The sheet's paper: a4, letter."))
    ] = "a4",
    per_page: Annotated[
        int, Argument("N", _("How many codes on a page, up to 30."), least=1, most=30)
    ] = 6,
    zone: Annotated[str | None, Argument("ZONE", _("Only the tables of this zone."))] = None,
) -> Answer:
    """Make QR codes of the tables, ready to print and cut.

    The sheet is one file that needs no network: open it in a browser and print it. From then on
    the bridge warns you when one of its codes no longer works.

    Example: tillbridge tables qr main --paper letter --per-page 8
    """
    from tillbridge.qr_sheets import (
        Paper,
        QrTable,
        make_sheet,
        sheet_name,
        single_files,
        write_files,
    )

    listed = call(loaded, "tables.list", {"store": store})
    chosen = _chosen(listed, store, zone)
    coded = [each for each in chosen if each["qr_url"]]
    if not coded:
        raise BridgeError(
            _("The service has given no QR codes for these tables."),
            fix=_("Send the floor plan again: tillbridge tables push {store}").format(store=store),
        )
    tables = [
        QrTable(each["external_id"], each["name"], each["zone"], each["qr_url"]) for each in coded
    ]
    answer: dict[str, Any] = {
        "without_code": [each["name"] for each in chosen if not each["qr_url"]]
    }
    title = listed["title"]
    if kind == "html":
        sheet = make_sheet(tables, title, size=Paper(paper), per_page=per_page)
        files = {sheet_name(store, zone): sheet.html.encode("utf-8")}
        answer |= {"pages": sheet.pages, "hard_to_scan": sheet.hard_to_scan}
    else:
        files = dict(single_files(tables, store, title, kind=kind))
    paths = write_files(out, files)
    codes = {each["external_id"]: each["code"] for each in coded}
    call(loaded, "tables.printed", {"store": store, "codes": codes})
    return answer | {"ok": True, "files": [str(path) for path in paths], "codes": len(tables)}


def _chosen(answer: Answer, store: str, zone: str | None) -> "list[TableView]":
    """Return the tables to print. Raises BridgeError if there are none."""
    tables: list[TableView] = answer["tables"]
    if not tables:
        raise BridgeError(
            _("The ordering service has no tables for {store}.").format(store=store),
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
