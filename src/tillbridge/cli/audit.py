"""`tillbridge audit ...`: who did what, and whether anybody changed it afterwards."""

from typing import Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.menu import Json
from tillbridge.cli.reach import ask
from tillbridge.cli.settings import load_settings
from tillbridge.core.i18n import _

app = typer.Typer(help=_("Who did what, chained by hash."), no_args_is_help=True)


@app.command("list")
def list_entries(
    context: typer.Context,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=10_000, help=_("How many, at most.")),
    ] = 100,
    as_json: Json = False,
) -> None:
    """List what was done lately, newest first: on the page, by commands, by the bridge itself.

    Example: tillbridge audit list --limit 20
    """
    answer = ask(
        load_settings(context),
        lambda bridge: bridge.ask("GET", "audit", query={"limit": str(limit)}),
        lambda control: control.audit.list(limit),
    )
    if as_json:
        say.document(answer)
        return
    if not answer["entries"]:
        say.line(_("Nothing has been done by hand yet."))
        return
    say.table(
        (_("WHEN"), _("WHO"), _("WHAT"), _("STORE"), _("ON"), _("DONE")),
        (
            (
                say.local_time(each["at"]),
                each["who"],
                each["action"],
                each["store"],
                each["target"],
                _("yes") if each["detail"].get("ok", True) else _("no"),
            )
            for each in answer["entries"]
        ),
    )


@app.command()
def verify(context: typer.Context, as_json: Json = False) -> None:
    """Check the whole chain, and say where it breaks. Ends with 1 if it does.

    Example: tillbridge audit verify
    """
    answer = ask(
        load_settings(context),
        lambda bridge: bridge.ask("GET", "audit", "verify"),
        lambda control: control.audit.verify(),
    )
    say.answered(answer, as_json=as_json)
    raise typer.Exit(0 if answer["ok"] else 1)
