"""`tillbridge tables ...`: the floor plan, and QR codes to print."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.menu import Json, Store
from tillbridge.cli.reach import Answer, ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings
    from tillbridge.qr_sheets.sheet import QrTable

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


@app.command("list")
def list_tables(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """List the tables that the ordering service has, with the addresses of their QR codes.

    Example: tillbridge tables list main
    """
    answer = _tables_of(_loaded(context, store), store)
    if as_json:
        say.document(answer)
        return
    if not answer["tables"]:
        say.line(_no_tables(answer, store))
        return
    say.table(
        (_("ID"), _("NAME"), _("SEATS"), _("ZONE"), _("QR CODE")),
        (
            (
                each["external_id"],
                each["name"],
                "" if each["seats"] is None else str(each["seats"]),
                each["zone"],
                _qr_cell(each),
            )
            for each in answer["tables"]
        ),
    )
    for reason in answer["held"]:
        say.line(_("A change waits for a person: {reason}").format(reason=say.clean(reason)))


@app.command()
def plan(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Show what would be pushed now, as a difference; nothing is pushed.

    Example: tillbridge tables plan main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("GET", "stores", store, "tables", "plan"),
        lambda control: control.tables.plan(store),
    )
    if as_json:
        say.document(answer)
        return
    say.line(_head(answer, store))
    for reason in answer["held"]:
        say.line("  ! " + say.clean(reason), level="warning")
    for line in answer["lines"]:
        say.line("  " + say.clean(line))
    for row in answer["bad_rows"]:
        say.line("  ? " + say.clean(f"{row['place']}: {row['text']} {row['fix']}"), level="warning")


@app.command()
def push(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Push the floor plan now, changed or not; tables that are missing from it are deactivated.

    A change that is held stays held: release it with tables approve.

    Example: tillbridge tables push main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "tables", "push", body={}),
        lambda control: control.tables.push(store),
    )
    _end(answer, as_json=as_json)


@app.command()
def approve(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Release the change of the floor plan that waits for a person.

    Only that very change: if the export changes meanwhile, it is looked at anew.

    Example: tillbridge tables approve main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "tables", "approve", body={}),
        lambda control: control.tables.approve(store),
    )
    _end(answer, as_json=as_json)


@app.command()
def qr(
    context: typer.Context,
    store: Store,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help=_("The folder to write to."))
    ] = Path(),
    kind: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="KIND",
            help=_("html: a sheet to print; svg or png: a file a table."),
        ),
    ] = Format.HTML,
    paper: Annotated[
        PaperSize, typer.Option("--paper", metavar="SIZE", help=_("The sheet's paper: a4, letter."))
    ] = PaperSize.A4,
    per_page: Annotated[
        int,
        typer.Option(
            "--per-page", metavar="N", min=1, max=30, help=_("How many codes on a page, up to 30.")
        ),
    ] = 6,
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help=_("Only the tables of this zone."))
    ] = None,
    as_json: Json = False,
) -> None:
    """Make QR codes of the tables, ready to print and cut.

    The sheet is one file that needs no network: open it in a browser and print it. From then on
    its codes count as printed, and the status tells when one of them is dead.

    Example: tillbridge tables qr main --paper letter --per-page 8
    """
    from tillbridge.qr_sheets.files import sheet_name, single_files, write_files
    from tillbridge.qr_sheets.sheet import Paper, make_sheet

    loaded = _loaded(context, store)
    answer = _tables_of(loaded, store)
    there = _chosen(answer, store, zone)
    coded = [each for each in there if each["qr_url"]]
    if not coded:
        raise BridgeError(
            _("The service has given no QR codes for these tables."),
            fix=_("Push the floor plan again: tillbridge tables push {store}").format(store=store),
        )
    tables, title = [_qr_table(each) for each in coded], answer["title"]
    told: dict[str, Any] = {"without_code": [e["name"] for e in there if not e["qr_url"]]}
    if kind is Format.HTML:
        sheet = make_sheet(tables, title, size=Paper(paper.value), per_page=per_page)
        files = {sheet_name(store, zone): sheet.html.encode("utf-8")}
        told |= {"pages": sheet.pages, "hard_to_scan": sheet.hard_to_scan}
    else:
        files = dict(single_files(tables, store, title, kind=kind.value))
    paths = write_files(out, files)
    _note_printed(loaded, store, {each["external_id"]: each["code"] for each in coded})
    told |= {"ok": True, "files": [str(path) for path in paths], "codes": len(tables)}
    if as_json:
        say.document(told)
    else:
        _tell(told)


def _loaded(context: typer.Context, store: str) -> "LoadedSettings":
    loaded = load_settings(context)
    store_of(loaded, store)
    return loaded


def _tables_of(loaded: "LoadedSettings", store: str) -> Answer:
    return ask(
        loaded,
        lambda bridge: bridge.ask("GET", "stores", store, "tables"),
        lambda control: control.tables.list(store),
    )


def _note_printed(loaded: "LoadedSettings", store: str, codes: dict[str, str]) -> None:
    ask(
        loaded,
        lambda bridge: bridge.ask(
            "POST", "stores", store, "tables", "printed", body={"codes": codes}
        ),
        lambda control: control.tables.printed(store, codes),
    )


def _chosen(answer: Answer, store: str, zone: str | None) -> list[dict[str, Any]]:
    """Return the tables to print. Raises BridgeError where there are none."""
    tables: list[dict[str, Any]] = answer["tables"]
    if not tables:
        raise BridgeError(
            _("The ordering service has no tables of {store}.").format(store=store),
            fix=_no_tables(answer, store),
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


def _no_tables(answer: Answer, store: str) -> str:
    if answer["told"]:
        return _("No tables yet: push them with: tillbridge tables push {store}").format(
            store=store
        )
    return _(
        "No tables: name the file of them in [stores.{store}.pos]; see docs/tables.md."
    ).format(store=store)


def _qr_table(each: dict[str, Any]) -> "QrTable":
    from tillbridge.qr_sheets.sheet import QrTable

    return QrTable(each["external_id"], each["name"], each["zone"], each["qr_url"])


def _qr_cell(each: dict[str, Any]) -> str:
    if not each["qr_url"]:
        return _("none yet")
    return f"{each['qr_url']}  {_('(print again)')}" if each["print_again"] else str(each["qr_url"])


def _head(answer: Answer, store: str) -> str:
    if answer["held"] and answer["approved"]:
        return _("This change is approved, and goes out with the next push:")
    if answer["held"]:
        return _(
            "This change waits for a person (release it with: tillbridge tables approve {store}):"
        ).format(store=store)
    if not answer["lines"]:
        return _("Nothing to push: the service has the tables as the till has them.")
    count = answer["tables"]
    return ngettext(
        "This would be pushed, a floor plan of {n} table:",
        "This would be pushed, a floor plan of {n} tables:",
        count,
    ).format(n=count)


def _end(answer: Answer, *, as_json: bool) -> None:
    """Say the answer; end with 1 where it says that it was not done."""
    say.answered(answer, as_json=as_json)
    if answer.get("ok") is False:
        raise typer.Exit(1)


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
